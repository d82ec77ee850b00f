//! `tilewise quantize`.

use crate::args::QuantizeArgs;
use crate::array::shape_text;
use crate::failure::{Failure, Result};
use crate::product;
use std::io::Write;
use tilewise_core::convert;
use tilewise_core::quant::{QuantFormat, Quantized, dequantize, quantize};
use tilewise_files::planes::{tensor_name, to_bytes};

pub(super) fn run(args: &QuantizeArgs, out: &mut dyn Write) -> Result<()> {
    if !args.output.is_safetensors() {
        return Err(Failure::Usage(format!(
            "{}: quantized weights are written as .safetensors",
            args.output.path().display()
        )));
    }
    let prefix = match (&args.prefix, args.output.tensor()) {
        (Some(prefix), Some(tensor)) if prefix != tensor => {
            return Err(Failure::Usage(format!("two names for the weights: {prefix:?} and {tensor:?}")));
        }
        (Some(prefix), _) => prefix.clone(),
        (None, Some(tensor)) => tensor.into(),
        (None, None) => args.weights.stem(),
    };
    if let Some(kernel) = &args.execution.kernel {
        return Err(Failure::Other(format!(
            "no kernel is named {kernel:?}; quantization runs on the CPU, with one algorithm"
        )));
    }
    args.output.probe()?;
    if args.execution.adapter.is_some() {
        product::open(args.execution.adapter.as_deref())?;
    }
    let weights = args.weights.read()?;
    let &[n, k] = weights.shape.as_slice() else {
        let shape = shape_text(&weights.shape);
        return Err(Failure::Other(format!("{}: shape {shape}; weights are a matrix [N,K]", args.weights)));
    };
    let values = convert::decode(weights.dtype, &weights.bytes)?;
    let format = args.format.map_or_else(|| QuantFormat::affine(4, 64, weights.dtype), Ok)?;
    let quantized = quantize(&values, n, k, format)?;
    let restored = dequantize(&quantized);
    if args.execution.check {
        check(&values, &restored, &quantized)?;
    }
    let bytes = to_bytes(&quantized, &prefix)?;
    args.output.replace(&[&bytes])?;
    writeln!(out, "weights  {} {}", shape_text(&weights.shape), weights.dtype)?;
    writeln!(out, "format   {}, on the CPU", quantized.format())?;
    writeln!(out, "size     {} bytes, {} before", bytes.len(), weights.bytes.len())?;
    writeln!(out, "error    {:.2}% of the weights' norm", 100.0 * relative_error(&values, &restored))?;
    if args.execution.check {
        writeln!(out, "check    every weight lies within one step, and rounding, of its code")?;
    }
    let tensors: Vec<_> = format.planes().iter().map(|plane| tensor_name(&prefix, plane)).collect();
    writeln!(out, "written  {} as {}", args.output.path().display(), tensors.join(", "))?;
    Ok(())
}

/// ‖restored − values‖ / ‖values‖, in the Frobenius norm; 0 for no difference.
fn relative_error(values: &[f32], restored: &[f32]) -> f64 {
    let square = |x: f64| x * x;
    let difference: f64 = values.iter().zip(restored).map(|(&v, &r)| square(f64::from(r) - f64::from(v))).sum();
    let norm: f64 = values.iter().map(|&v| square(f64::from(v))).sum();
    if difference == 0.0 { 0.0 } else { (difference / norm).sqrt() }
}

/// Fails if a weight lies further from what its code stands for than the format can explain.
fn check(values: &[f32], restored: &[f32], quantized: &Quantized) -> Result<()> {
    let block = quantized.format().block() as usize;
    let steps = quantized.steps();
    for (index, (&value, &found)) in values.iter().zip(restored).enumerate() {
        let (value, found, bound) = (f64::from(value), f64::from(found), steps[index / block]);
        if (value - found).abs() > bound {
            let (row, column) = (index / quantized.k(), index % quantized.k());
            return Err(Failure::Other(format!(
                "--check: weight {value:e} in row {row}, column {column} became {found:e}, further off than {bound:e}"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_block_passes_and_a_wrong_code_does_not() {
        for format in QuantFormat::all() {
            // A range symmetric about zero, which is the worst for affine codes.
            let block = format.block() as usize;
            let middle = (block as f32 - 1.0) / 2.0;
            let values: Vec<f32> = (0..block).map(|i| (i as f32 - middle) / middle).collect();
            let quantized = quantize(&values, 1, block, format).unwrap();
            let mut restored = dequantize(&quantized);
            assert!(check(&values, &restored, &quantized).is_ok(), "{format}");
            assert!(relative_error(&values, &restored) > 0.0);
            restored[9] += 2.5 * quantized.steps()[0] as f32;
            assert!(check(&values, &restored, &quantized).is_err(), "{format}");
        }
    }
}
