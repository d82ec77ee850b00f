//! `tilewise qmatmul`.

use super::matmul::read;
use crate::args::QmatmulArgs;
use crate::array::shape_text;
use crate::failure::{Failure, Result};
use crate::matrix::activations;
use crate::product::{self, Job};
use std::io::Write;
use tilewise::{Gemm, QuantizedTensor, Tensor};
use tilewise_core::convert::decode_f64;
use tilewise_core::problem::DType;
use tilewise_core::quant::{Quantized, dequantize};
use tilewise_files::TensorKind;
use tilewise_oracle::Inputs;

/// The stored weights.
enum Weights<'m> {
    Dense(DType, &'m [u8]),
    Quantized(Quantized),
}

pub(super) fn run(args: &QmatmulArgs, out: &mut dyn Write) -> Result<()> {
    product::check_output(&args.output, args.out_dtype, [&args.x, &args.weights])?;
    let x = read(&args.x, 2..=3)?;
    let model = args.weights.model()?;
    let expected = args.known.expected(args.format);
    let tensor = args.weights.matrix(&model, &expected, x.shape.last().copied())?;
    // The shape of an unclear tensor is that of one of its parts.
    if let TensorKind::Unclear(error) = tensor.kind() {
        return Err(error.clone().into());
    }
    let (&[n, k] | &[1, n, k]) = tensor.shape() else {
        let (name, shape) = (tensor.name(), shape_text(tensor.shape()));
        let hint = match tensor.shape().len() {
            3 => "; `tilewise grouped` and `gather-matmul` take stacks",
            _ => "",
        };
        let text = format!("{}: {name}: shape {shape}; W is one matrix [N,K]{hint}", tensor.file());
        return Err(Failure::Other(text));
    };
    let weights = match tensor.kind() {
        TensorKind::Quantized(_) => Weights::Quantized(tensor.quantized()?),
        _ => tensor.dense().map(|(dtype, bytes)| Weights::Dense(dtype, bytes))?,
    };
    let x = activations(tensor.order()?, x);
    let out_dtype = product::out_dtype(args.out_dtype, &[x.dtype], &args.output)?;

    let context = product::open(args.execution.adapter.as_deref())?;
    let x_tensor = product::upload(&context, &x)?;
    let (dense, quantized);
    let gemm = match &weights {
        Weights::Dense(dtype, bytes) => {
            dense = Tensor::from_bytes(&context, *dtype, bytes, &[n, k])?.t();
            Gemm::new(&x_tensor, &dense)
        }
        Weights::Quantized(weights) => {
            quantized = QuantizedTensor::upload(&context, weights)?;
            Gemm::new(&x_tensor, &quantized)
        }
    };
    let gemm = gemm.out_dtype(out_dtype).precision(args.precision);

    let job = Job {
        context: &context,
        gemm,
        alpha: 1.0,
        numbers: &[],
        execution: &args.execution,
        output: &args.output,
    };
    job.run(out, |check| {
        let (b, b_error) = match &weights {
            Weights::Dense(dtype, bytes) => (decode_f64(*dtype, bytes)?, None),
            Weights::Quantized(weights) => {
                let wide = dequantize(weights).into_iter().map(f64::from).collect();
                (wide, Some(product::weight_error(&context, weights, x.dtype)))
            }
        };
        check(&Inputs {
            a: &product::wide(&x)?,
            b: &b,
            b_error: b_error.as_deref(),
            ..Inputs::default()
        })
    })
}
