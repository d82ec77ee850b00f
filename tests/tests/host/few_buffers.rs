//! Devices that bind few storage buffers, four by WebGPU's `downlevel_defaults`. Every product is
//! planned, and every product is right.

use tilewise::DType;
use tilewise_core::problem::Bias;
use tilewise_core::{
    Axis, Caps, Epilogue, Error, Format, Gathered, Grouping, Operand, Plan, Problem, QuantFormat,
    plan,
};
use tilewise_shaders::LIBRARY;
use tilewise_tests::cases::{self, WGSL};
use tilewise_tests::sanitized::{check, options, plans};

const FOUR: u32 = 4;

fn caps(max_storage_buffers: u32) -> Caps {
    Caps { max_storage_buffers, ..Caps::webgpu_default() }
}

/// Every format of B under every combination of steps that bind something, in a batch and grouped.
pub(crate) fn problems() -> Vec<(String, Problem)> {
    let formats = QuantFormat::all().map(Format::Quantized);
    let formats =
        [Format::Dense(DType::F32), Format::Dense(DType::BF16)].into_iter().chain(formats);
    let (m, n, k) = (40, 256, 256);
    let mut problems = Vec::new();
    for format in formats {
        for choice in 0..32u32 {
            let [grouped, bias, residual, beta, half] =
                [0, 1, 2, 3, 4].map(|bit| choice >> bit & 1 == 1);
            let c = if half { DType::F16 } else { DType::F32 };
            let entries = if grouped { 3 } else { 1 };
            let packed = |dtype, rows, cols| Operand::packed(Format::Dense(dtype), 1, rows, cols);
            let problem = Problem {
                a: packed(DType::F32, m, k),
                b: Operand::packed(format, entries, n, k).t(),
                c: packed(c, m, n),
                grouping: if grouped {
                    Grouping::RaggedM { groups: entries, first: 0, offset: 0, expected: None }
                } else {
                    Grouping::Batched
                },
                epilogue: Epilogue {
                    beta: f32::from(u8::from(beta)),
                    bias: bias.then(|| Bias {
                        axis: Axis::N,
                        operand: Operand::packed(Format::Dense(DType::F32), entries, n, 1),
                    }),
                    residual: residual.then(|| packed(DType::F32, m, n)),
                    ..Epilogue::default()
                },
                ..Problem::dense(DType::F32, m, n, k)
            };
            problems.push((format!("{format}, choice {choice:05b}"), problem));
        }
    }
    problems
}

fn most_bindings(plan: &Plan) -> usize {
    plan.passes.iter().map(|pass| pass.bindings.len()).max().unwrap_or(0)
}

#[test]
fn four_are_enough_for_every_product() {
    for (title, problem) in problems() {
        let plan = plan(&problem, &caps(FOUR), &LIBRARY, None)
            .unwrap_or_else(|error| panic!("{title}: {error}"));
        assert!(most_bindings(&plan) <= FOUR as usize, "{title}: {plan:?}");
    }
}

/// Rows by index need one more buffer; if that is too many, rows are copied before.
#[test]
fn four_are_enough_for_rows_by_index() {
    let mut copies = Vec::new();
    for (title, problem) in problems().into_iter().step_by(13) {
        let gathered = Some(Gathered { rows: 7, offset: 1, step: 2, len: 2 * problem.m });
        let a = Operand::packed(problem.a.format, 1, 7, problem.k);
        let problem = Problem { a, gathered, ..problem };
        let roomy = plan(&problem, &caps(9), &LIBRARY, None).unwrap();
        assert!(!roomy.copies_rows && roomy.passes.len() == 1, "{title}: {roomy:?}");
        let few = plan(&problem, &caps(FOUR), &LIBRARY, None)
            .unwrap_or_else(|error| panic!("{title}: {error}"));
        assert!(most_bindings(&few) <= FOUR as usize, "{title}: {few:?}");
        copies.push(few.copies_rows);
    }
    assert!(copies.contains(&true) && copies.contains(&false));
}

/// The table of docs/platforms.md: how many buffers a product binds if the device has enough for
/// one pass.
#[test]
fn what_a_product_binds_at_once() {
    for (title, problem) in problems() {
        let Epilogue { bias, residual, .. } = problem.epilogue;
        let grouped = problem.grouping != Grouping::Batched;
        let steps = [bias.is_some(), residual.is_some(), grouped];
        let needed =
            2 + problem.b.format.planes().len() + steps.into_iter().filter(|step| *step).count();
        assert!(needed <= 8, "{title}: WebGPU's default is not enough for {needed}");
        let plan = |most: usize| plan(&problem, &caps(most as u32), &LIBRARY, None).unwrap();
        let roomy = plan(8);
        assert_eq!((roomy.passes.len(), most_bindings(&roomy)), (1, needed), "{title}");
        if needed > FOUR as usize {
            assert_eq!(plan(needed).passes, roomy.passes, "{title}");
            assert!(plan(needed - 1).passes.len() > 1, "{title}");
        }
    }
}

/// Decoded weights are larger than the weights: if no binding holds them, the product is cut.
#[test]
fn decoded_weights_are_cut() {
    let caps = Caps { max_binding_bytes: 1 << 16, ..caps(FOUR) };
    let mut cuts = 0;
    // The step is a prime number, so every combination meets some format.
    for (title, problem) in problems().into_iter().step_by(11) {
        let plan = plan(&problem, &caps, &LIBRARY, None)
            .unwrap_or_else(|error| panic!("{title}: {error}"));
        let mut bindings = plan.passes.iter().flat_map(|pass| &pass.bindings);
        assert!(bindings.all(|binding| binding.bytes <= 1 << 16), "{title}");
        cuts += plan.cuts.iter().filter(|cut| cut.operand == "packed B").count();
    }
    assert!(cuts > 0, "no copy was too large");
}

#[test]
fn three_are_too_few_for_some() {
    let (_, problem) =
        problems().into_iter().find(|(title, _)| title.starts_with("affine")).unwrap();
    let refused = plan(&problem, &caps(3), &LIBRARY, None).unwrap_err();
    let Error::DeviceLimit(why) = &refused else { panic!("{refused}") };
    assert!(why.contains("storage buffers: 4 needed, 3 allowed"), "{why}");
}

/// Runs in the sanitizer, with f16 and without.
#[test]
fn every_product_is_right() {
    let (caps, cases) = cases::few_buffers(WGSL);
    let few = [Caps { f16: false, ..caps.clone() }, caps];
    let mut finishes = Vec::new();
    for (_, _, plan) in plans(&few, &cases) {
        finishes.push(plan.passes.iter().filter(|pass| pass.label == "finish").count());
    }
    assert!([0, 1, 2].iter().all(|count| finishes.contains(count)), "{finishes:?}");
    check(&few, &cases, &options(), false);
    let (three, cases) = cases::three_buffers(WGSL);
    check(&[three], &cases, &options(), false);
}
