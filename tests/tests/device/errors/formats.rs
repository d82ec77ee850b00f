//! Types and formats that an operation does not take give errors of their own.

use super::*;

#[test]
fn formats_that_are_not_supported() {
    let format = QuantFormat::affine(4, 64, DType::F16).unwrap();
    let quantized = Format::Quantized(format);
    let caps = Caps::webgpu_default();
    let problem = Problem::dense(DType::F32, 8, 8, 64);
    let planned = |problem: &Problem| plan(problem, &caps, &LIBRARY, None);
    refused(
        planned(&Problem { a: Operand { format: quantized, ..problem.a }, ..problem }),
        kind!(Unsupported),
        &["A", "affine-4bit-g64"],
    );
    refused(
        planned(&Problem { c: Operand { format: quantized, ..problem.c }, ..problem }),
        kind!(Unsupported),
        &["C", "affine-4bit-g64"],
    );
    refused(
        planned(&Problem { b: Operand { format: quantized, ..problem.b }, ..problem }),
        SHAPE,
        &["N = 8", "64"],
    );
    refused(
        QuantFormat::affine(9, 64, DType::F16),
        kind!(Unsupported),
        &["affine-9bit-g64-f16", "affine-4bit-g64-f16"],
    );
    let short = Problem {
        b: Operand::packed(quantized, 1, 8, 60).t(),
        ..Problem::dense(DType::F32, 8, 8, 60)
    };
    refused(planned(&short), SHAPE, &["60", "64"]);
    let shifted = Operand { offset: 8, len: 520, ..Operand::packed(quantized, 1, 8, 64).t() };
    refused(
        planned(&Problem { b: shifted, ..problem }),
        SHAPE,
        &["misaligned: the offset", "8", "64"],
    );
    for context in contexts() {
        let weights = [0.5f32; 60];
        let of_shape =
            |shape: &[usize]| QuantizedTensor::quantize(&context, &weights, shape, format);
        refused(of_shape(&[1, 60]), SHAPE, &["60", "64"]);
        refused(of_shape(&[1, 64]), SHAPE, &["60", "[1, 64]", "64 elements"]);
        refused(of_shape(&[60]), SHAPE, &["[60]", "[N,K] or [G,N,K]"]);
        refused(of_shape(&[2, 3, 64]), SHAPE, &["60", "[2, 3, 64]", "384"]);
        refused(of_shape(&[usize::MAX, 2, 64]), SHAPE, &["overflow: ", "2, 64]"]);
        let whole = QuantizedTensor::quantize(&context, &[0.5; 256], [2, 128], format).unwrap();
        refused(whole.slice(0..3, 0..128), SHAPE, &["0..3", "[2, 128]"]);
        refused(whole.slice(0..2, 32..128), SHAPE, &["misaligned: ", "32", "64"]);

        let nvfp4 = |n, factor| {
            quantize_to(&[0.5; 64][..n * 32], n, 32, QuantFormat::NVFP4, factor).unwrap()
        };
        let groups = |weights: &[Quantized]| QuantizedTensor::upload_groups(&context, weights);
        refused(groups(&[]), SHAPE, &["no quantized matrix"]);
        refused(groups(&[nvfp4(2, 1.0), nvfp4(1, 1.0)]), SHAPE, &["2, 32", "1, 32"]);
        let other = quantize(&[0.5; 64], 2, 32, QuantFormat::MXFP4).unwrap();
        refused(groups(&[nvfp4(2, 1.0), other]), SHAPE, &["nvfp4", "mxfp4"]);
        let differ = groups(&[nvfp4(1, 2688.0), nvfp4(1, 5376.0)]);
        refused(differ, kind!(Misuse), &["these have 1 and 2"]);
        let uploaded = || groups(&[nvfp4(1, 2.0)]).unwrap();
        refused(uploaded().with_factor(f32::NAN), kind!(Misuse), &["NaN"]);
        refused(uploaded().with_factor(f32::INFINITY), kind!(Misuse), &["inf"]);
    }
    for (largest, word) in
        [(0.0, "0"), (f32::NAN, "NaN"), (f32::INFINITY, "inf"), (-1.0, "-1"), (1e-40, "too small")]
    {
        refused(
            quantize_to(&[0.5; 32], 1, 32, QuantFormat::NVFP4, largest),
            kind!(Misuse),
            &["largest", word],
        );
    }
    refused(
        quantize_to(&[0.5; 32], 1, 32, QuantFormat::MXFP4, 1.0),
        kind!(Unsupported),
        &["mxfp4", "factor"],
    );
}

/// Kernels read whole words: the buffer must contain all of the last word.
#[test]
fn words_that_are_cut_off() {
    for adapter in adapters() {
        let context = &adapter.context;
        let descriptor = wgpu::BufferDescriptor {
            label: None,
            size: 6,
            usage: BufferUsages::STORAGE | BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        };
        let buffer = context.device().unwrap().create_buffer(&descriptor);
        let of = |dtype, count| Tensor::from_buffer(context, buffer.clone(), 0, dtype, &[count]);
        of(DType::F16, 2).unwrap();
        refused(of(DType::F16, 3), SHAPE, &["6 bytes", "whole words", "make it 8"]);
        refused(of(DType::F16, 4), SHAPE, &["buffer too small: ", "needs 4", "holds 2"]);
        refused(of(DType::F32, 2), SHAPE, &["buffer too small: ", "needs 2", "holds 1"]);
    }
}

#[test]
fn affine_formats() {
    for (bits, group, dtype) in
        [(7, 64, DType::F16), (4, 48, DType::F16), (1, 64, DType::F32), (4, 64, DType::U32)]
    {
        let error = QuantFormat::affine(bits, group, dtype);
        let asked = format!("affine-{bits}bit-g{group}-{dtype}");
        refused(error, kind!(Unsupported), &[&asked, "2, 3, 4, 5, 6 or 8", "32, 64 or 128"]);
    }
    // All formats that the message names exist, and no others do.
    let named = [2, 3, 4, 5, 6, 8].map(|bits| [32, 64, 128].map(|group| (bits, group)));
    let all = named.as_flattened().iter().flat_map(|&(bits, group)| {
        DType::FLOATS.map(|dtype| QuantFormat::affine(bits, group, dtype).unwrap())
    });
    let affine = QuantFormat::all().filter(|format| format.name().starts_with("affine"));
    assert_eq!(all.count(), affine.count());
}
