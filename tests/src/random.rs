//! Products drawn at random: shapes, strides, offsets, batches, transposes, types, epilogues.

use crate::case::Groups;
use crate::{Case, Data, Entries, Place, quant_formats};
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, RngAlgorithm, TestRng, TestRunner};
use tilewise::{Activation, Axis, DType};

fn dtype() -> impl Strategy<Value = DType> {
    prop::sample::select(DType::FLOATS.to_vec())
}

fn entries() -> impl Strategy<Value = Entries> {
    prop_oneof![
        (0..6usize).prop_map(Entries::Apart),
        Just(Entries::Between),
        Just(Entries::Stride0),
        Just(Entries::Single)
    ]
}

/// The places of the entries of a nested batch.
fn nested() -> impl Strategy<Value = Entries> {
    prop_oneof![
        2 => entries(),
        3 => Just(Entries::Heads),
        1 => Just(Entries::SharedHeads),
        1 => Just(Entries::Shared),
        1 => Just(Entries::Inner),
        1 => Just(Entries::SharedInner),
        1 => Just(Entries::SharedOuter),
    ]
}

fn place() -> impl Strategy<Value = Place> {
    // With offsets and gaps of zero or of multiples of four, vector loads happen.
    let gap = prop_oneof![3 => Just(0), 2 => Just(4), 3 => 0..9usize];
    let lead = prop_oneof![Just(8), 8..20usize];
    (dtype(), any::<bool>(), lead, gap, entries()).prop_map(
        |(dtype, transposed, lead, pad, entries)| Place { dtype, transposed, lead, pad, entries },
    )
}

/// The place of an output: each element has its own.
fn output() -> impl Strategy<Value = Place> {
    place().prop_map(|place| {
        let entries = match place.entries {
            Entries::Stride0 | Entries::Single => Entries::Apart(0),
            apart => apart,
        };
        Place { transposed: false, entries, ..place }
    })
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![
        6 => 1..40usize,
        3 => (1..12usize).prop_map(|quads| 4 * quads),
        2 => 40..140usize,
        1 => Just(0),
    ]
}

fn groups(m: usize) -> impl Strategy<Value = Groups> {
    let ends = prop::collection::vec(prop_oneof![9 => 0..=m as u32 + 2, 1 => any::<u32>()], 1..6);
    (ends, any::<bool>()).prop_map(move |(mut ends, on_device)| {
        if !on_device {
            ends.iter_mut().for_each(|end| *end = (*end).min(m as u32));
            ends.sort_unstable();
        }
        Groups { ends, on_device }
    })
}

/// Makes a case a product over a nested batch. C has all entries. A has all entries, too, unless B
/// has.
fn in_nest(case: Case, sizes: [usize; 4], [a, b, c, bias, residual]: [Entries; 5]) -> Case {
    let is_whole = |entries| {
        matches!(entries, Entries::Apart(_) | Entries::Between | Entries::Heads | Entries::Stride0)
    };
    let whole = |entries| if is_whole(entries) { entries } else { Entries::Heads };
    let a = if is_whole(b) && case.quantized.is_none() { a } else { whole(a) };
    let c = if c == Entries::Stride0 { Entries::Heads } else { whole(c) };
    // An entry of bias or residual never serves a group.
    let each = |entries| match entries {
        Entries::Shared | Entries::SharedHeads => Entries::Heads,
        Entries::SharedInner | Entries::SharedOuter => Entries::Inner,
        other => other,
    };
    Case {
        a: case.a.entries(a),
        b: case.b.entries(b),
        c: case.c.entries(c),
        bias: case.bias.map(|(axis, place)| (axis, place.entries(each(bias)))),
        residual: case.residual.map(|place| place.entries(each(residual))),
        ..case
    }
    .nested(sizes)
}

/// The kind of right operands.
#[derive(Clone, Copy, PartialEq)]
pub enum Weights {
    /// One operand in six is quantized.
    Any,
    /// All right operands are quantized.
    Quantized,
}

/// Random cases without a kernel.
fn case(of: Weights) -> impl Strategy<Value = Case> {
    let factor = || prop_oneof![Just(0.0f32), Just(1.0), -2.0..2.0f32];
    let shape = ([size(), size(), size()], prop_oneof![Just(None), (0..4usize).prop_map(Some)]);
    let places = (place(), place(), output());
    let kind = prop_oneof![6 => Just(None), 1 => Just(Some(false)), 1 => Just(Some(true))];
    let formats = prop::sample::select(quant_formats());
    let share = if of == Weights::Quantized { 0 } else { 5 };
    let quantized = prop_oneof![share => Just(None), 1 => formats.prop_map(Some)];
    let axis = prop::sample::select(vec![Axis::M, Axis::N]);
    let ends = (
        (factor(), prop_oneof![2 => Just(0.0f32), 1 => factor()]),
        prop::option::of((axis, place())),
        prop::sample::select(Activation::ALL.to_vec()),
        prop::option::weighted(0.3, place()),
    );
    let sizes = || {
        (1..3usize, prop::array::uniform3(1..4usize)).prop_map(|(far, [o, g, e])| [far, o, g, e])
    };
    let nest = prop::option::weighted(0.25, (sizes(), prop::array::uniform5(nested())));
    let base = (
        shape,
        places,
        ends,
        (any::<bool>(), any::<u64>()),
        (kind, quantized, any::<bool>()),
        nest,
    );
    base.prop_flat_map(
        |(
            shape,
            (a, b, c),
            (factors, bias, activation, residual),
            (integers, seed),
            (kind, quantized, across),
            nest,
        )| {
            let ([m, n, k], batch) = shape;
            // The size of a batch is seen from A or B, unless one entry serves all; weights that
            // serve all entries are one matrix. A product with groups has no batch.
            let once = |entries| {
                entries == Entries::Single || quantized.is_some() && entries == Entries::Stride0
            };
            let hidden = a.entries == Entries::Single && once(b.entries);
            let batch = if kind.is_some() || hidden { None } else { batch };
            // Weights have at least one matrix.
            let batch = if quantized.is_some() { batch.map(|batch| batch.max(1)) } else { batch };
            // Blocks lie along K, or along N.
            let blocks =
                |size: usize| quantized.map_or(size, |format| size / 16 * format.block() as usize);
            let across = across && quantized.is_some();
            let [n, k] = if across { [blocks(n), k] } else { [n, blocks(k)] };
            let data = if integers { Data::Integers } else { Data::Random };
            // Every group or entry has its own weights.
            let b = if kind.is_some() { Place { entries: Entries::Apart(4), ..b } } else { b };
            let bias = bias.map(|(axis, place)| (axis, Place { transposed: false, ..place }));
            let residual = residual.map(|place| Place { transposed: false, ..place });
            let (alpha, beta) = factors;
            let case = Case {
                size: [m, n, k],
                batch,
                a,
                b,
                c,
                quantized,
                across,
                alpha,
                beta,
                bias,
                activation,
                residual,
                seed,
                ..Case::new([0; 3], [DType::F32; 3])
            };
            let may_pair = kind.is_none() && residual.is_none() && beta == 0.0;
            let gated = may_pair && n.is_multiple_of(2) && seed.is_multiple_of(4);
            let case = Case { gated, a_data: data.clone(), b_data: data, ..case };
            let case = match nest {
                Some((sizes, ways)) if kind.is_none() => in_nest(case, sizes, ways),
                _ => case,
            };
            match kind {
                None => Just(case).boxed(),
                Some(_) => groups(m)
                    .prop_map(move |groups| Case { groups: Some(groups), ..case.clone() })
                    .boxed(),
            }
        },
    )
}

/// Checks `cases` random cases, or as many as `PROPTEST_CASES` says. Failures are kept in `file`.
///
/// # Panics
/// When a check fails.
pub fn property(
    cases: u32,
    of: Weights,
    file: &'static str,
    check: impl Fn(Case) -> Result<(), String>,
) {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|count| count.parse().ok());
    let config = Config {
        cases: asked.unwrap_or(cases),
        // The path is relative to the package, in which cargo runs its tests.
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(file))),
        max_shrink_iters: 300,
        ..Config::default()
    };
    // Every run has the same cases, so a change is never blamed for a failure that it did not
    // cause. If a number of cases is asked for, they are others.
    let mut runner = match asked {
        None => TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
        Some(_) => TestRunner::new(config),
    };
    let outcome = runner.run(&case(of), |case| check(case).map_err(TestCaseError::fail));
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
