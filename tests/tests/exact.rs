//! Small integers, whose sums every order of summation gives exactly, and identity matrices: results must have equal bits.

use tilewise::{Activation, DType};
use tilewise_tests::case::{LAYOUTS, mixtures};
use tilewise_tests::kernels::sizes;
use tilewise_tests::{Case, Data, Place, Suite, kernels};

/// Every kernel, around every edge of its tile, in all four layouts.
#[test]
fn integers_around_every_edge() {
    Suite::on_every_adapter(|adapter| {
        let mut cases = Vec::new();
        for kernel in kernels(adapter) {
            for size in sizes(kernel.variant) {
                for layout in LAYOUTS {
                    cases.push(Case::new(size, [DType::F32; 3]).kernel(&kernel.name).layout(layout).integers());
                }
            }
        }
        cases
    });
}

/// Every kernel with mixtures of types, aligned for vectors and not.
#[test]
fn integers_of_mixed_types() {
    Suite::on_every_adapter(|adapter| {
        let mut cases = Vec::new();
        for kernel in kernels(adapter) {
            for (i, types) in mixtures().into_iter().enumerate() {
                let layout = LAYOUTS[i % 4];
                let case = Case::new([36, 68, 40], types).kernel(&kernel.name).layout(layout).integers();
                cases.push(case.clone());
                cases.push(Case { size: [35, 67, 41], ..case }.odd());
            }
        }
        cases
    });
}

/// A·I = A and I·B = B, with numbers that use every bit of their type.
#[test]
fn identities() {
    Suite::on_every_adapter(|adapter| {
        let mut cases = Vec::new();
        for kernel in kernels(adapter) {
            for (i, dtype) in DType::ALL.into_iter().enumerate() {
                for layout in [LAYOUTS[i], LAYOUTS[i + 1]] {
                    let case = Case { exact: true, ..Case::new([37, 53, 53], [dtype; 3]) };
                    let case = case.kernel(&kernel.name).layout(layout);
                    cases.push(Case { b_data: Data::Identity, ..case.clone() });
                    cases.push(Case { a_data: Data::Identity, size: [53, 37, 53], ..case });
                }
            }
        }
        cases
    });
}

/// An epilogue of small integers is exact as well, so that the order of its steps shows.
#[test]
fn integer_epilogue() {
    Suite::on_every_adapter(|adapter| {
        let mut cases = Vec::new();
        for kernel in kernels(adapter) {
            for (i, dtype) in DType::ALL.into_iter().enumerate() {
                let axis = [tilewise::Axis::M, tilewise::Axis::N][i % 2];
                let case = Case::new([19, 38, 12], [DType::F32, DType::F32, dtype]).kernel(&kernel.name).integers();
                cases.push(Case {
                    alpha: 2.0,
                    beta: -1.0,
                    bias: Some((axis, Place::odd(dtype))),
                    activation: Activation::Relu,
                    residual: Some(Place::odd(dtype)),
                    ..case
                });
            }
        }
        cases
    });
}
