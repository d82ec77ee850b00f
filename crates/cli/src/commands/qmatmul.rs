//! `tilewise qmatmul`.

use super::matmul::read;
use crate::args::QmatmulArgs;
use crate::array::read_quantized;
use crate::failure::Result;
use crate::product::{self, Job};
use std::io::Write;
use tilewise::{Gemm, QuantizedTensor};
use tilewise_core::quant::dequantize;
use tilewise_core::reference::Inputs;

pub(super) fn run(args: &QmatmulArgs, out: &mut dyn Write) -> Result<()> {
    product::check_output(&args.output, args.out_dtype)?;
    let x = read(&args.x, 2..=3)?;
    let weights = read_quantized(&args.weights, args.format)?;
    let out_dtype = product::out_dtype(args.out_dtype, &[x.dtype], &args.output)?;

    let context = product::open(args.execution.adapter.as_deref())?;
    let x_tensor = product::upload(&context, &x)?;
    let weights_tensor = QuantizedTensor::upload(&context, &weights)?;
    let gemm = Gemm::new(&x_tensor, &weights_tensor).out_dtype(out_dtype);

    Job { context: &context, gemm, execution: &args.execution, output: &args.output }.run(out, |check| {
        let dequantized: Vec<f64> = dequantize(&weights).into_iter().map(f64::from).collect();
        check(&Inputs {
            a: &product::wide(&x)?,
            b: &dequantized,
            b_error: Some(&product::weight_error(&context, &weights, x.dtype)),
            ..Inputs::default()
        })
    })
}
