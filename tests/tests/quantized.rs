//! Quantized weights under every kernel.

use std::collections::HashSet;
use tilewise::{Context, DType, Gemm, Quantized, QuantizedTensor, Tensor};
use tilewise_core::quant::quantize;
use tilewise_tests::{Case, Rng, Suite, adapters, kernels, quant_families, themes};

#[test]
fn types_and_batches() {
    Suite::on_every_adapter(|adapter| themes::sampled(adapter, &themes::quantized(), 2));
}

#[test]
fn every_kernel_around_its_edges() {
    Suite::on_every_adapter(|adapter| {
        let mut cases = Vec::new();
        let mut met = HashSet::new();
        for kernel in kernels(adapter) {
            // Variants differ in numbers only: each mainloop meets every family, each variant the first.
            let mainloop = kernel.name.split('/').next().map(str::to_owned);
            let families = quant_families();
            let families = if met.insert(mainloop) { &families[..] } else { &families[..1] };
            for &format in families {
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

/// Rows and whole blocks of columns, far inside the memory of the weights, give the bits of weights
/// cut before they are quantized.
#[test]
fn slices() {
    let contexts = adapters().iter().map(|adapter| adapter.context.clone()).chain([Context::cpu()]);
    for context in contexts {
        for format in quant_families() {
            let block = format.block() as usize;
            let [n, k] = [300, 5 * block];
            let (rows, columns) = (271..299, block..4 * block);
            let mut rng = Rng::new(9);
            let weights: Vec<f32> = (0..n * k).map(|_| rng.unit()).collect();
            let cut = rows.clone().flat_map(|row| weights[row * k..][columns.clone()].to_vec()).collect::<Vec<_>>();
            let upload = |weights: &Quantized| QuantizedTensor::upload(&context, weights).unwrap();
            let whole = upload(&quantize(&weights, n, k, format).unwrap());
            let alone = upload(&quantize(&cut, rows.len(), columns.len(), format).unwrap());
            let slice = whole.slice(rows.clone(), columns.clone()).unwrap();
            assert_eq!(slice.shape(), alone.shape());
            let values: Vec<f32> = (0..3 * columns.len()).map(|_| rng.unit()).collect();
            let x = Tensor::upload(&context, &values, &[3, columns.len()]).unwrap();
            let product = |w| Gemm::new(&x, w).kernel("naive").run().unwrap().read_blocking::<f32>().unwrap();
            assert_eq!(product(&slice), product(&alone), "{format} on {context:?}");
        }
    }
}
