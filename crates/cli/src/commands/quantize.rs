//! `tilewise quantize`.

use crate::args::QuantizeArgs;
use crate::array::shape_text;
use crate::failure::{Failure, Result};
use crate::product;
use std::io::Write;
use tilewise::safetensors::{part_name, to_bytes};
use tilewise_core::convert;
use tilewise_core::problem::DType;
use tilewise_core::quant::{QuantFormat, Quantized, dequantize, quantize};

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
    let quantized = quantize(&values, n, k, QuantFormat::AFFINE4_G64, weights.dtype)?;
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
    let [weight, scales, biases] = ["weight", "scales", "biases"].map(|part| part_name(&prefix, part));
    writeln!(out, "written  {} as {weight}, {scales}, {biases}", args.output.path().display())?;
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
///
/// Codes round to the nearest half step, but making zero and the far end of a group exact may shrink its scale by 1/16 (the far
/// end 7.5 steps from zero becomes 8), and the near end, 15 steps away, then lies one whole step beyond the last code. To this comes
/// the rounding of scale and bias to their stored type.
fn check(values: &[f32], restored: &[f32], quantized: &Quantized) -> Result<()> {
    let u = quantized.scale_dtype().unit_roundoff().max(f64::from(f32::EPSILON));
    // Half of the smallest subnormal number, to which u does not apply.
    let subnormal = if quantized.scale_dtype() == DType::F16 { (-25f64).exp2() } else { f64::from(f32::MIN_POSITIVE) };
    let group_size = quantized.format().group_size() as usize;
    let groups = quantized.scales_f32().into_iter().zip(quantized.biases_f32());
    for (group, (scale, bias)) in groups.enumerate() {
        let bound = f64::from(scale).abs() * (1.0 + 64.0 * u) + 4.0 * u * f64::from(bias).abs() + 16.0 * subnormal;
        for index in group * group_size..(group + 1) * group_size {
            let (value, found) = (f64::from(values[index]), f64::from(restored[index]));
            if (value - found).abs() > bound {
                let (row, column) = (index / quantized.k(), index % quantized.k());
                return Err(Failure::Other(format!(
                    "--check: weight {value:e} in row {row}, column {column} became {found:e}, further off than {bound:e}"
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_group_passes_and_a_wrong_code_does_not() {
        for dtype in DType::ALL {
            // A range symmetric about zero: 7.5 steps to either side.
            let values: Vec<f32> =
                (0..64).map(|i| (i as f32 - 31.5) / 31.5).map(|v| convert::round(dtype, v)).collect();
            let quantized = quantize(&values, 1, 64, QuantFormat::AFFINE4_G64, dtype).unwrap();
            let mut restored = dequantize(&quantized);
            assert!(check(&values, &restored, &quantized).is_ok());
            assert!(relative_error(&values, &restored) > 0.0);
            restored[9] += 2.0 * quantized.scales_f32()[0].abs();
            assert!(check(&values, &restored, &quantized).is_err());
        }
    }
}
