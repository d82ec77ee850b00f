//! Splits of K: two passes, with partial sums between them.

use tilewise::DType;
use tilewise_tests::case::LAYOUTS;
use tilewise_tests::{Case, Place, Suite, adapters, kernels, one_of_each, run};

/// Few splits and many, splits that are not full, and more splits than steps of K.
#[test]
fn counts() {
    Suite::on_every_adapter(|adapter| {
        let mut cases = Vec::new();
        for kernel in one_of_each(adapter).into_iter().filter(|kernel| kernel.splits) {
            let bk = kernel.variant.bk as usize;
            for (i, splits) in [2, 3, 4, 7, 16, 64].into_iter().enumerate() {
                for k in [1, 3 * bk + 5] {
                    let types = [DType::F32, DType::F32, DType::FLOATS[i % 3]];
                    let case = Case::new([9, 18, k], types)
                        .layout(LAYOUTS[i % 2])
                        .kernel(format!("{}+k{splits}", kernel.name));
                    cases.push(case.clone());
                    cases.push(case.batch(3).odd());
                }
            }
        }
        cases
    });
}

/// Every kernel that takes splits, once, with integers: the sum of the splits is exact.
#[test]
fn every_kernel() {
    Suite::on_every_adapter(|adapter| {
        let mut cases = Vec::new();
        for kernel in kernels(adapter).into_iter().filter(|kernel| kernel.splits) {
            let [m, n, k] =
                [kernel.variant.bm + 1, kernel.variant.bn + 4, 2 * kernel.variant.bk + 4]
                    .map(|s| s as usize);
            let case = Case::new([m, n, k], [DType::F32; 3])
                .kernel(format!("{}+k3", kernel.name))
                .integers();
            cases.push(Case { beta: 2.0, residual: Some(Place::odd(DType::F16)), ..case });
        }
        cases
    });
}

/// The order of the sums is fixed: the same bits, run after run.
#[test]
fn same_bits_twice() {
    for adapter in adapters() {
        for kernel in one_of_each(adapter).into_iter().filter(|kernel| kernel.splits) {
            let case = Case::new([9, 18, 5 * kernel.variant.bk as usize], [DType::F32; 3])
                .kernel(format!("{}+k5", kernel.name));
            let first = run(&adapter.context, &case).unwrap();
            for _ in 0..5 {
                assert!(
                    run(&adapter.context, &case).unwrap().bytes == first.bytes,
                    "{} on {}",
                    kernel.name,
                    adapter.name()
                );
            }
        }
    }
}
