//! Operands and outputs in disjoint ranges of one buffer, as in an arena or a cache. Every kernel
//! gives the same bits as with separate buffers, and writes nothing beside the output.

use std::collections::BTreeSet;
use tilewise::{Activation, Context, DType, Gemm, Take, Tensor};
use tilewise_tests::{Rng, contexts};

/// Elements of the arena before, between and behind its tensors. Not all gaps are multiples of a
/// binding's alignment, but all are whole words of 16-bit elements.
const GAPS: [usize; 6] = [6, 2, 70, 0, 14, 34];

/// Tensors of these shapes with random numbers, one behind the other in one buffer.
fn arena(context: &Context, dtype: DType, shapes: &[&[usize]]) -> (Tensor, Vec<Tensor>) {
    let mut rng = Rng::new(5);
    let sizes: Vec<usize> = shapes.iter().map(|shape| shape.iter().product()).collect();
    let all: usize = sizes.iter().chain(&GAPS).sum();
    let numbers: Vec<f32> = (0..all).map(|_| rng.number()).collect();
    let bytes = tilewise_core::convert::encode(dtype, &numbers);
    let whole = Tensor::from_bytes(context, dtype, &bytes, &[all]).unwrap();
    let mut first = 0;
    let place = |((shape, size), gap): ((&&[usize], &usize), &usize)| {
        let start = first + gap;
        first = start + size;
        whole.narrow(0, start, *size).unwrap().reshape(shape).unwrap()
    };
    let parts = shapes.iter().zip(&sizes).zip(&GAPS).map(place).collect();
    (whole, parts)
}

/// Copies the elements to another buffer.
fn alone(tensor: &Tensor) -> Tensor {
    let bytes = tensor.read_bytes_blocking().unwrap();
    Tensor::from_bytes(tensor.context(), tensor.dtype(), &bytes, tensor.shape()).unwrap()
}

/// The matrix that rows are gathered from lies beside the output.
#[test]
fn rows_by_index_in_an_arena() {
    for context in contexts() {
        let (_, parts) = arena(&context, DType::F32, &[&[5, 12], &[12, 22], &[7, 22]]);
        let [x, w, y] = &parts[..] else { panic!("three tensors") };
        let indices = Tensor::upload(&context, &[4u32, 0, 9, 1, 1, 3, 2], &[7]).unwrap();
        let product = |x: &Tensor, w: &Tensor| Gemm::new(x, w).gather_rows(&indices);
        let wanted = product(&alone(x), &alone(w)).run().unwrap();
        product(x, w).run_into(y).unwrap();
        let [got, wanted] = [y, &wanted].map(|all| all.read_blocking::<f32>().unwrap());
        assert_eq!(got, wanted);
        assert!(got[2 * 22..3 * 22].iter().all(|number| *number == 0.0), "{got:?}");
    }
}

#[test]
fn products_in_an_arena() {
    for context in contexts() {
        for (dtype, [m, n, k]) in [
            (DType::F32, [65, 66, 34]),
            (DType::F16, [34, 130, 64]),
            (DType::BF16, [2, 62, 96]),
            (DType::F32, [1, 48, 256]),
        ] {
            let shapes: [&[usize]; 5] = [&[m, k], &[k, n], &[n], &[m, n], &[m, n]];
            let names: Vec<Option<String>> = {
                let (_, parts) = arena(&context, dtype, &shapes);
                let mut kernels = Gemm::new(&parts[0], &parts[1]).choices().unwrap();
                // One name for each kernel with K whole, and one with K split.
                let mut met = BTreeSet::new();
                kernels.retain(|choice| met.insert((choice.kernel, choice.splits > 1)));
                kernels.iter().map(|choice| Some(choice.to_string())).chain([None]).collect()
            };
            for name in names {
                let product = |[a, b, bias, residual]: [&Tensor; 4]| {
                    let product = Gemm::new(a, b).bias(bias).residual(residual).beta(0.5);
                    let product = product.alpha(0.75).activation(Activation::Gelu);
                    name.iter().fold(product, |product, name| product.kernel(name))
                };
                let (whole, parts) = arena(&context, dtype, &shapes);
                let [a, b, bias, residual, c] = &parts[..] else { panic!("five tensors") };
                let own = [a, b, bias, residual, c].map(alone);
                let [own_a, own_b, own_bias, own_residual, own_c] = &own;
                let c_before = own_c.read_bytes_blocking().unwrap();
                let before = whole.read_bytes_blocking().unwrap();
                let place = c.buffer().map_or_else(
                    || before.len() - (GAPS[5] + m * n) * dtype.bytes() as usize,
                    |(_, first)| first as usize,
                );
                let here = product([a, b, bias, residual]).run_into(c);
                let there = product([own_a, own_b, own_bias, own_residual]).run_into(own_c);
                assert_eq!(here, there, "{name:?}");
                if here.is_err() {
                    continue;
                }
                let mut wanted = before;
                let made = own_c.read_bytes_blocking().unwrap();
                let size = dtype.bytes() as usize;
                let elements = made.chunks(size).zip(c_before.chunks(size));
                // Few elements stay the same by chance.
                let same = elements.filter(|(after, before)| after == before).count();
                assert!(same * 10 < m * n, "{name:?} {dtype}: {same} of {m}×{n} stayed");
                wanted[place..place + made.len()].copy_from_slice(&made);
                assert!(whole.read_bytes_blocking().unwrap() == wanted, "{name:?} {dtype}");
            }
        }
    }
}

#[test]
fn rows_of_a_table_in_an_arena() {
    for context in contexts() {
        for dtype in DType::FLOATS {
            let (_, parts) = arena(&context, dtype, &[&[9, 32], &[3, 32]]);
            let indices = Tensor::upload(&context, &[7u32, 0, 8], &[3]).unwrap();
            let apart = Take::new(alone(&parts[0])).rows(&indices).run().unwrap();
            Take::new(&parts[0]).rows(&indices).run_into(&parts[1]).unwrap();
            let [here, there] = [&parts[1], &apart].map(|t| t.read_bytes_blocking().unwrap());
            assert_eq!(here, there, "{dtype}");
        }
    }
}
