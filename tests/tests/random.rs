//! Random numbers against the oracle's bound: mixtures of types, layouts, epilogues, whatever the planner would choose.

use tilewise::{Activation, Axis, DType};
use tilewise_tests::case::{LAYOUTS, mixtures};
use tilewise_tests::{Case, Place, Suite, one_of_each};

/// Every pair of types in every layout, in vectors and in single elements by turns.
#[test]
fn mixtures_in_every_layout() {
    Suite::on_every_adapter(|adapter| {
        let mut cases = Vec::new();
        for kernel in one_of_each(adapter) {
            for (i, types) in mixtures().into_iter().enumerate() {
                for (j, layout) in LAYOUTS.into_iter().enumerate() {
                    let case = Case::new([36, 44, 72], types).kernel(&kernel.name).layout(layout);
                    cases.push(if (i + j) % 2 == 0 { case } else { Case { size: [35, 43, 71], ..case }.odd() });
                }
            }
        }
        cases
    });
}

/// Every step of the epilogue by itself and all together, for each output type: at the end of a mainloop and in a finishing pass.
#[test]
fn epilogues() {
    Suite::on_every_adapter(|adapter| {
        let mut cases = Vec::new();
        for kernel in one_of_each(adapter) {
            // One kernel that takes little time to compile stands for all that end in the same files.
            let naive = kernel.variant.workgroup_bytes == 0;
            let split = if kernel.splits { "+k2" } else { "" };
            for (i, out) in DType::ALL.into_iter().enumerate() {
                let k = 2 * kernel.variant.bk as usize + 3;
                let case =
                    Case::new([13, 22, k], [DType::F32, DType::F32, out]).kernel(format!("{}{split}", kernel.name));
                cases.extend(epilogues_of(&case, DType::ALL[(i + 1) % 3]));
                if naive {
                    cases.extend(epilogues_of(&case.odd(), DType::ALL[(i + 2) % 3]));
                }
            }
        }
        cases
    });
}

fn epilogues_of(case: &Case, dtype: DType) -> Vec<Case> {
    let [packed, odd] = [Place::packed(dtype), Place::odd(dtype)];
    let case = || case.clone();
    vec![
        Case { alpha: -0.75, ..case() },
        Case { alpha: 0.0, ..case() },
        Case { beta: 1.5, ..case() },
        Case { bias: Some((Axis::N, packed)), ..case() },
        Case { bias: Some((Axis::M, odd)), ..case() },
        Case { activation: Activation::Relu, ..case() },
        Case { activation: Activation::Gelu, ..case() },
        Case { activation: Activation::Silu, ..case() },
        Case { residual: Some(odd), ..case() },
        Case {
            alpha: 1.25,
            beta: -0.5,
            bias: Some((Axis::N, odd)),
            activation: Activation::Gelu,
            residual: Some(packed),
            ..case()
        },
        Case {
            alpha: -1.25,
            beta: 0.5,
            bias: Some((Axis::M, packed)),
            activation: Activation::Silu,
            residual: Some(odd),
            ..case()
        },
    ]
}

/// Activations where they are steep, flat, and far beyond the range of the functions inside them.
#[test]
fn wide_activations() {
    Suite::on_every_adapter(|adapter| {
        let mut cases = Vec::new();
        for activation in Activation::ALL {
            for alpha in [1.0, 30.0, 1e3, 1e10, 1e30, 1e-30] {
                for out in [DType::F32, DType::BF16] {
                    let case = Case::new([16, 16, 3], [DType::F32, DType::F32, out]).kernel("naive");
                    cases.push(Case { alpha, activation, ..case });
                }
            }
        }
        // Beyond the range of f16 results become infinite, below it subnormal or zero.
        for alpha in [1e5, 1e4, 1e-4, 1e-6, 1e-9] {
            cases.push(Case { alpha, ..Case::new([16, 16, 3], [DType::F32, DType::F32, DType::F16]).kernel("naive") });
        }
        assert!(!adapter.name().is_empty());
        cases
    });
}

/// Products large enough to have many tiles, by the kernels that the planner takes for them.
#[test]
fn chosen_by_the_planner() {
    Suite::on_every_adapter(|_| {
        let sizes = [[257, 131, 263], [1, 1031, 509], [769, 1, 521], [128, 256, 192], [3, 5, 4099], [515, 3, 130]];
        let case =
            |(i, size)| Case::new(size, [DType::F32, DType::ALL[i % 3], DType::ALL[i / 2]]).layout(LAYOUTS[i % 4]);
        sizes.into_iter().enumerate().map(case).collect()
    });
}
