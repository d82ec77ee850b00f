//! Random numbers against the oracle's bound: mixtures of types, layouts and epilogues, and the
//! planner's choices.

use tilewise::{Activation, DType};
use tilewise_tests::case::LAYOUTS;
use tilewise_tests::{Case, Suite, floor, one_of_each, themes};

/// Every pair of types in every layout, in vectors and in single elements by turns.
#[test]
fn mixtures_in_every_layout() {
    Suite::on_every_adapter(|adapter| themes::sampled(adapter, &themes::mixed(), 3));
}

/// Every step of the epilogue by itself and all together, for each output type: at the end of a
/// mainloop and in a finishing pass.
#[test]
fn epilogues() {
    Suite::on_every_adapter(|adapter| {
        let mut cases = Vec::new();
        for kernel in one_of_each(adapter) {
            for (i, out) in DType::FLOATS.into_iter().enumerate() {
                // Every mainloop ends with the same files. The kernel that compiles fastest meets
                // all of these files, and the other kernels meet the finishing pass.
                let split = if kernel.splits { "+k2" } else { "" };
                let k = 2 * kernel.variant.bk as usize + 3;
                let case = Case::new([13, 22, k], [DType::F32, DType::F32, out])
                    .kernel(format!("{}{split}", kernel.name));
                cases.extend(themes::epilogues(&case, DType::FLOATS[(i + 1) % 3]));
                if !kernel.splits {
                    cases.extend(themes::epilogues(&case.odd(), DType::FLOATS[(i + 2) % 3]));
                }
            }
        }
        cases
    });
}

/// Gates, at the end of a mainloop and in a finishing pass.
#[test]
fn gates() {
    Suite::on_every_adapter(|adapter| {
        let mut cases = Vec::new();
        for (i, out) in DType::FLOATS.into_iter().enumerate() {
            let case = Case::new([13, 22, 9], [DType::F32, DType::F32, out]);
            let case = case.kernel(&floor(adapter).name);
            let gates = themes::gates(&case, DType::FLOATS[(i + 1) % 3]);
            cases.extend(gates.into_iter().skip(if i == 0 { 0 } else { 3 }));
            // Rows that share words are finished by another pass.
            let odd = Case { size: [5, 7, 9], ..case }.odd();
            cases.extend(themes::gates(&odd, DType::FLOATS[i]).pop());
        }
        cases
    });
}

/// Pairs of columns at the end of each mainloop: C in whole vectors, and at odd places, where words
/// may be shared. One case of each kernel splits K.
#[test]
fn pairs() {
    Suite::on_every_adapter(|adapter| {
        let mut cases = Vec::new();
        for (at, kernel) in one_of_each(adapter).into_iter().enumerate() {
            for (i, out) in DType::FLOATS.into_iter().enumerate() {
                let k = 2 * kernel.variant.bk as usize + 3;
                let case = Case::new([13, 22, k], [DType::F32, DType::F32, out]);
                let split = if kernel.splits && i == at % 3 { "+k2" } else { "" };
                let name = format!("{}{split}", kernel.name);
                let extra = DType::FLOATS[(i + 1) % 3];
                let whole = Case { size: [13, 48, k], ..case.clone() }.kernel(&name);
                cases.extend(themes::pairs(&whole, extra).pop());
                cases.extend(themes::pairs(&case.kernel(&name).odd(), extra));
            }
        }
        cases
    });
}

/// Activations at numbers where they are steep, flat, and far beyond the range of the functions
/// inside them.
#[test]
fn wide_activations() {
    Suite::on_every_adapter(|_| {
        let mut cases = Vec::new();
        for activation in Activation::ALL {
            for alpha in [1.0, 30.0, 1e3, 1e10, 1e30, 1e-30] {
                for out in [DType::F32, DType::BF16] {
                    let case =
                        Case::new([16, 16, 3], [DType::F32, DType::F32, out]).kernel("naive");
                    cases.push(Case { alpha, activation, ..case });
                }
            }
        }
        // Results beyond the range of f16 become infinite; results below it become subnormal or
        // zero.
        for alpha in [1e5, 1e4, 1e-4, 1e-6, 1e-9] {
            cases.push(Case {
                alpha,
                ..Case::new([16, 16, 3], [DType::F32, DType::F32, DType::F16]).kernel("naive")
            });
        }
        cases
    });
}

/// Products with many tiles, by the kernels that the planner chooses for them.
#[test]
fn chosen_by_the_planner() {
    Suite::on_every_adapter(|_| {
        let sizes = [
            [257, 131, 263],
            [1, 1031, 509],
            [769, 1, 521],
            [128, 256, 192],
            [3, 5, 4099],
            [515, 3, 130],
        ];
        let case = |(i, size)| {
            Case::new(size, [DType::F32, DType::FLOATS[i % 3], DType::FLOATS[i / 2]])
                .layout(LAYOUTS[i % 4])
        };
        sizes.into_iter().enumerate().map(case).collect()
    });
}
