//! Quantization compared bit for bit with what MLX computes on its CPU; `vectors/make_mlx_vectors.py` made the file.

use tilewise_core::quant::{Quantized, dequantize, quantize};
use tilewise_core::{DType, QuantFormat};

/// One matrix of the file.
struct Case {
    dtype: DType,
    n: usize,
    k: usize,
    weights: Vec<f32>,
    codes: Vec<u32>,
    scales: Vec<u8>,
    biases: Vec<u8>,
    dequantized: Vec<f32>,
}

fn cases() -> Vec<Case> {
    let mut rest: &[u8] = include_bytes!("../vectors/affine4_g64.bin");
    let mut take = |bytes: usize| rest.split_off(..bytes).expect("the file ends inside a matrix");
    let words = |bytes: &[u8]| bytes.as_chunks().0.iter().map(|&b| u32::from_le_bytes(b)).collect::<Vec<_>>();
    let floats = |bytes: &[u8]| words(bytes).into_iter().map(f32::from_bits).collect::<Vec<_>>();
    let cases = DType::ALL
        .map(|dtype| {
            let [n, k, size] = words(take(12))[..] else { unreachable!("three words") };
            let (n, k) = (n as usize, k as usize);
            assert_eq!(u64::from(size), dtype.bytes());
            let weights = floats(take(n * k * 4));
            let codes = words(take(n * k / 2));
            let [scales, biases] = [0; 2].map(|_| take(n * k / 64 * size as usize).to_vec());
            Case { dtype, n, k, weights, codes, scales, biases, dequantized: floats(take(n * k * 4)) }
        })
        .into();
    assert!(rest.is_empty(), "{} bytes after the last matrix", rest.len());
    cases
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn quantize_gives_the_bits_of_mlx() {
    for case in cases() {
        let ours = quantize(&case.weights, case.n, case.k, QuantFormat::AFFINE4_G64, case.dtype).unwrap();
        for row in 0..case.n {
            let (words, bytes) = (case.k / 8, case.k / 64 * case.dtype.bytes() as usize);
            let at = |part: &[u8]| part[row * bytes..(row + 1) * bytes].to_vec();
            let what = format!("{} weights, row {row}", case.dtype);
            assert_eq!(at(ours.scales()), at(&case.scales), "scales of {what}");
            assert_eq!(at(ours.biases()), at(&case.biases), "biases of {what}");
            let at = |part: &[u32]| part[row * words..(row + 1) * words].to_vec();
            assert_eq!(at(ours.codes()), at(&case.codes), "codes of {what}");
        }
    }
}

#[test]
fn dequantize_gives_the_bits_of_mlx() {
    for Case { dtype, n, k, codes, scales, biases, dequantized, .. } in cases() {
        let ours = Quantized::from_parts(QuantFormat::AFFINE4_G64, n, k, dtype, codes, scales, biases).unwrap();
        assert_eq!(bits(&dequantize(&ours)), bits(&dequantized), "{dtype}");
    }
}
