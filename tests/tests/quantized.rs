//! Quantized weights under every kernel.

use tilewise::DType;
use tilewise_tests::{Case, Suite, kernels, quant_families, themes};

#[test]
fn types_and_batches() {
    Suite::on_every_adapter(|adapter| themes::sampled(adapter, &themes::quantized(), 2));
}

#[test]
fn every_kernel_around_its_edges() {
    Suite::on_every_adapter(|adapter| {
        let mut cases = Vec::new();
        for kernel in kernels(adapter) {
            for format in quant_families() {
                let [bm, bn] = [kernel.variant.bm, kernel.variant.bn].map(|size| size as usize);
                for (blocks, [m, n]) in [(1, [bm, bn]), (2, [bm + 1, bn + 1]), (9, [1, bn - 1]), (3, [2 * bm + 1, 2])] {
                    let size = [m, n, blocks * format.block() as usize];
                    let case = Case { quantized: Some(format), ..Case::new(size, [DType::F32; 3]) };
                    let case = case.kernel(&kernel.name);
                    cases.push(case.clone());
                    cases.push(case.integers());
                }
            }
        }
        cases
    });
}
