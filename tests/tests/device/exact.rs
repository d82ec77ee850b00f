//! Results that must have equal bits: small integers in mixtures of types, identity matrices, and
//! epilogues of integers.

use tilewise::{Activation, Axis, DType};
use tilewise_tests::case::{LAYOUTS, mixtures};
use tilewise_tests::{Case, Data, Place, Suite, one_of_each};

/// Every pair of types, in vectors and in single elements.
#[test]
fn integers_of_mixed_types() {
    Suite::on_every_adapter(|adapter| {
        let mut cases = Vec::new();
        for kernel in one_of_each(adapter) {
            for (i, types) in mixtures().into_iter().enumerate() {
                let case = Case::new([36, 68, 40], types)
                    .kernel(&kernel.name)
                    .layout(LAYOUTS[i % 4])
                    .integers();
                let case =
                    if i % 2 == 0 { case } else { Case { size: [35, 67, 41], ..case }.odd() };
                cases.push(case);
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
        for kernel in one_of_each(adapter) {
            for (i, dtype) in DType::FLOATS.into_iter().enumerate() {
                let case = Case { exact: true, ..Case::new([37, 53, 53], [dtype; 3]) };
                let mut case = case.kernel(&kernel.name).layout(LAYOUTS[i + 1]);
                // A kernel for matrix units chooses the types of its operands.
                case.c.dtype = case.a.dtype;
                cases.push(Case { b_data: Data::Identity, ..case.clone() });
                cases.push(Case { a_data: Data::Identity, size: [53, 37, 53], ..case });
            }
        }
        cases
    });
}

/// An epilogue of small integers is exact as well, so the results show the order of its steps.
#[test]
fn integer_epilogues() {
    Suite::on_every_adapter(|adapter| {
        let mut cases = Vec::new();
        for kernel in one_of_each(adapter) {
            for (i, dtype) in DType::FLOATS.into_iter().enumerate() {
                let axis = [Axis::M, Axis::N][i % 2];
                cases.push(Case {
                    alpha: 2.0,
                    beta: -1.0,
                    bias: Some((axis, Place::odd(dtype))),
                    activation: Activation::Relu,
                    residual: Some(Place::odd(dtype)),
                    ..Case::new([19, 38, 12], [DType::F32, DType::F32, dtype])
                        .kernel(&kernel.name)
                        .integers()
                });
            }
        }
        cases
    });
}
