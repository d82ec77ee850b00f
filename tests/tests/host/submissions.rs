//! Plans with a bound on the time of a submission.

use tilewise_core::caps::RECORDED;
use tilewise_core::plan::Table;
use tilewise_core::{
    Caps, DType, Dimension, Format, Gathered, Grouping, Operand, Plan, Problem, QuantFormat,
    explain, plan,
};
use tilewise_shaders::LIBRARY;
use tilewise_tests::pieces;

fn caps(name: &str, max_submission_seconds: f64) -> Caps {
    let (_, caps) = RECORDED.iter().find(|(known, _)| *known == name).unwrap();
    Caps { max_submission_seconds, ..caps() }
}

fn planned(problem: &Problem, caps: &Caps) -> Plan {
    plan(problem, caps, &LIBRARY, None).unwrap()
}

/// Estimated seconds of the longest piece.
fn longest(plan: &Plan) -> f64 {
    plan.passes.iter().filter_map(|pass| pass.piece_seconds).fold(0.0, f64::max)
}

/// The kernel and its splits of K stay the same. A product that is short enough is planned as
/// without a bound.
#[test]
fn no_piece_takes_longer_than_half_a_second() {
    let sizes = [1, 300, 4096, 20_000, 40_000];
    let mut cut = 0;
    for (at, size) in (0..125).map(|i| [i, i / 5, i / 25].map(|j| sizes[j % 5])).enumerate() {
        let [m, n, k] = size;
        let problem = Problem::dense([DType::F32, DType::F16][at % 2], m, n, k);
        // Software devices have no bound, and would have thousands of pieces.
        for (name, _) in RECORDED.iter().filter(|(_, own)| own().max_submission_seconds == 0.5) {
            let bounded = planned(&problem, &caps(name, 0.5));
            let free = planned(&problem, &caps(name, f64::INFINITY));
            assert!(longest(&bounded) <= 0.5, "{name}: {size:?}: {} s", longest(&bounded));
            assert_eq!((&bounded.choice, &bounded.cuts), (&free.choice, &free.cuts), "{size:?}");
            match bounded.late.is_empty() {
                true => assert_eq!(bounded, free, "{name}: {size:?}"),
                false => cut += 1,
            }
        }
    }
    assert!(cut > 20, "{cut} are cut");
}

fn packed(dtype: DType, entries: u64, rows: u64, cols: u64) -> Operand {
    Operand::packed(Format::Dense(dtype), entries, rows, cols)
}

/// A problem of every form, and the dimension along which it is cut first.
fn forms() -> Vec<(&'static str, Problem, Dimension)> {
    let [f32, f16] = [DType::F32, DType::F16].map(|dtype| Problem::dense(dtype, 640, 512, 1024));
    let batched = |grouping| {
        let [a, b, c] = [[80, 1024], [1024, 512], [80, 512]]
            .map(|[rows, cols]| packed(DType::F16, 8, rows, cols));
        Problem { m: 80, batch: 8, a, b, c, grouping, ..f16 }
    };
    let in_gaps = |operand: Operand| {
        let inner = operand.batch_stride;
        let strides = [0, 0, 4 * inner + 64, inner];
        Operand { len: 2 * operand.len, ..operand.with_entry_strides(strides) }
    };
    let nested = batched(Grouping::Nested { sizes: [1, 1, 2, 4] });
    let c = nested.c.with_entry_strides([0, 0, 4 * nested.c.batch_stride, nested.c.batch_stride]);
    let nested = Problem { a: in_gaps(nested.a), b: in_gaps(nested.b), c, ..nested };
    let experts = |grouping| Problem { b: packed(DType::F16, 8, 1024, 512), grouping, ..f16 };
    let groups = Grouping::RaggedM { groups: 8, first: 0, offset: 0, expected: None };
    let shared = |operand: Operand| Operand { batch_stride: 0, ..operand };
    let along_k = Problem {
        m: 320,
        batch: 4,
        a: shared(packed(DType::F32, 1, 1024, 320).t()),
        b: shared(f32.b),
        c: packed(DType::F32, 4, 320, 512),
        grouping: Grouping::RaggedK { groups: 4, offset: 0 },
        ..f32
    };
    let format = QuantFormat::affine(4, 64, DType::F16).unwrap();
    let weights = Table::stored(format, 1, 512, 1024).operand.t();
    let gathered = Some(Gathered { rows: 640, offset: 3, step: 2, len: 1300 });
    let masked = Grouping::Masked { entries: 8, offset: 0, expected: None };
    let indexed = Grouping::Indexed { groups: 8, rows: 640, offset: 0 };
    vec![
        ("dense", f32, Dimension::M),
        ("wide", Problem::dense(DType::F16, 64, 8192, 1024), Dimension::N),
        ("odd", Problem::dense(DType::F16, 641, 513, 1023), Dimension::M),
        ("transposed", Problem { a: packed(DType::F32, 1, 1024, 640).t(), ..f32 }, Dimension::M),
        ("a batch", batched(Grouping::Batched), Dimension::Entries),
        ("a nested batch", nested, Dimension::Entries),
        ("masked", batched(masked), Dimension::Entries),
        ("groups", experts(groups), Dimension::M),
        ("entries by index", experts(indexed), Dimension::M),
        ("ranges of K", along_k, Dimension::N),
        ("rows by index", Problem { gathered, ..f32 }, Dimension::M),
        ("weights", Problem { b: weights, ..f16 }, Dimension::M),
    ]
}

#[test]
fn pieces_of_every_form_cover_the_product() {
    for (title, problem, dimension) in forms() {
        let whole = planned(&problem, &caps("lavapipe", f64::INFINITY));
        let bound = caps("lavapipe", whole.seconds() / 6.0);
        let cut = planned(&problem, &bound);
        assert!(longest(&cut) <= bound.max_submission_seconds, "{title}: {:?}", cut.late);
        assert_eq!(cut.late[0].dimension, dimension, "{title}");
        pieces::check(&cut, &bound).unwrap_or_else(|why| panic!("{title}: {why}"));
    }
}

/// `explain` says where the cuts are and which bound they keep to, and what is not cut.
#[test]
fn cuts_in_time_are_explained() {
    let explained =
        |problem, seconds| explain(&problem, &caps("apple-m1", seconds), &LIBRARY, None).unwrap();
    let large = Problem::dense(DType::F32, 16_384, 16_384, 16_384);
    let text = explained(large, 0.5);
    let found = text.lines().find(|line| line.starts_with("cut ")).unwrap();
    assert!(found.starts_with("cut     into 16 submissions: of rows because one would take "));
    assert!(found.ends_with("; one may take 500 ms"), "{found}");
    assert!(!text.contains("more than"), "{text}");
    assert!(!explained(large, 60.0).contains("cut "));
    // If tiles are fewer than cores, their number does not change the time.
    let one = "a submission takes ~";
    let deep = explained(Problem::dense(DType::F32, 64, 64, 1 << 24), 1e-3);
    assert!(deep.contains(one) && deep.contains("1.00 ms: it is not cut further"), "{deep}");
    let grouping = Grouping::Listed { groups: 4, offset: 0, sizes: None };
    let storage = packed(DType::F32, 1, 1, 1 << 30);
    let list = Problem { a: storage, b: storage, c: storage, batch: 4, grouping, ..large };
    let list = explained(list, 0.5);
    assert!(list.contains(one) && list.contains("500 ms: products of a list are not"), "{list}");
}
