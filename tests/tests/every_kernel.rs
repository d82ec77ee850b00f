//! Every kernel and variant × type × transposes, forced past the planner, around every edge of its tile: small integers first, which
//! must come out exact, then random numbers within the oracle's bound.
//!
//! Compiling takes far longer than running, so each pipeline meets all sizes and contents before the next one is made. There are twelve
//! for each variant: in them each operand meets every type, vector loads and single ones, contiguous and not. Epilogues do not depend on
//! the variant, and are tested elsewhere.

use tilewise::DType;
use tilewise_tests::case::LAYOUTS;
use tilewise_tests::kernels::{Kernel, even_sizes, odd_sizes};
use tilewise_tests::{Case, Data, Suite, kernels};

#[test]
fn f32() {
    Suite::on_every_adapter(|adapter| kernels(adapter).iter().flat_map(|kernel| cases(kernel, 0)).collect());
}

#[test]
fn f16() {
    Suite::on_every_adapter(|adapter| kernels(adapter).iter().flat_map(|kernel| cases(kernel, 1)).collect());
}

#[test]
fn bf16() {
    Suite::on_every_adapter(|adapter| kernels(adapter).iter().flat_map(|kernel| cases(kernel, 2)).collect());
}

/// With A in the type of this index; B and C take their turns.
fn cases(kernel: &Kernel, a: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for (i, layout) in LAYOUTS.into_iter().enumerate() {
        // NN and TT in vectors, NT and TN in single elements, or the other way round: see above.
        let vectors = (i == 0 || i == 3) == (a != 1);
        let types = [a, (a + i) % 3, (a + 2 * i) % 3].map(|t| DType::ALL[t]);
        let sizes = if vectors { even_sizes(kernel.variant) } else { odd_sizes(kernel.variant) };
        for (j, size) in sizes.into_iter().enumerate() {
            let case = Case { seed: (100 * i + j) as u64, ..Case::new(size, types) };
            let case = case.kernel(&kernel.name).layout(layout);
            let case = if vectors { case } else { case.odd() };
            // The sums of more products outgrow the integers that bf16 holds.
            if types[2] != DType::BF16 || size[2] <= 512 {
                cases.push(case.clone().integers());
            }
            cases.push(Case { a_data: Data::Random, b_data: Data::Random, exact: false, ..case });
        }
    }
    cases
}
