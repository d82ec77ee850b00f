//! `tilewise quantize`.

use crate::args::QuantizeArgs;
use crate::array::{Sink, Source, shape_text};
use crate::failure::{Failure, Result};
use crate::matrix::{Deviation, prefix};
use crate::table::{NUMBER, TEXT, table};
use crate::target::Target;
use std::collections::BTreeMap;
use std::io::Write;
use tilewise_core::convert;
use tilewise_core::quant::{QuantFormat, Quantized, dequantize, quantize};
use tilewise_files::{Output, tensor_name};

pub(super) fn run(args: &QuantizeArgs, out: &mut dyn Write) -> Result<()> {
    match (&args.weights, &args.output) {
        (Some(weights), Some(output)) if !args.list_formats => run_on(weights, output, args, out),
        _ => Ok(write!(out, "{}", formats())?),
    }
}

/// All formats.
fn formats() -> String {
    let columns =
        [("format", TEXT), ("bits/weight", NUMBER), ("block", NUMBER), ("origin", TEXT), ("quantize makes it", TEXT)];
    let row = |format: QuantFormat| {
        let origin = if format.gguf().is_some() { "GGUF" } else { "MLX" };
        let made = if format.quantizes() { "yes" } else { "no, it is only read" };
        let bits = format!("{:.4}", format.bits_per_weight());
        vec![format.to_string(), bits, format.block().to_string(), origin.into(), made.into()]
    };
    table(&columns, QuantFormat::all().map(row).collect())
}

fn run_on(weights: &Source, output: &Sink, args: &QuantizeArgs, out: &mut dyn Write) -> Result<()> {
    let layer = match (&args.prefix, output.tensor()) {
        (Some(prefix), Some(tensor)) if prefix != tensor => {
            return Err(Failure::Usage(format!("two names for the weights: {prefix:?} and {tensor:?}")));
        }
        (Some(prefix), _) => prefix.clone(),
        (None, Some(tensor)) => tensor.into(),
        (None, None) => prefix(&weights.stem()).to_owned(),
    };
    output.probe([weights])?;
    let source = weights;
    let weights = source.read()?;
    let &[n, k] = weights.shape.as_slice() else {
        let shape = shape_text(&weights.shape);
        return Err(Failure::Other(format!("{}: shape {shape}; weights are a matrix [N,K]", source)));
    };
    let values = convert::decode(weights.dtype, &weights.bytes)?;
    let format = args.format.map_or_else(|| QuantFormat::affine(4, 64, weights.dtype), Ok)?;
    Target::Quantized(format).admit()?;
    let quantized = quantize(&values, n, k, format)?;
    let restored = dequantize(&quantized);
    if args.check {
        check(&values, &restored, &quantized)?;
    }
    let mut written = 0;
    let outputs = vec![Output::quantized(&layer, &quantized)];
    tilewise_files::write(output.path(), outputs, &BTreeMap::new(), &mut |_, total| written = total)?;
    writeln!(out, "weights  {} {}", shape_text(&weights.shape), weights.dtype)?;
    writeln!(out, "format   {}, on the CPU", quantized.format())?;
    writeln!(out, "size     {written} bytes, {} before", weights.bytes.len())?;
    writeln!(
        out,
        "error    {:.2}% of the weights' norm",
        100.0 * Deviation::default().and(&values, &restored).relative()
    )?;
    if args.check {
        writeln!(out, "check    every weight lies within one step, and rounding, of its code")?;
    }
    let tensors: Vec<_> = format.planes().iter().map(|plane| tensor_name(&layer, plane)).collect();
    writeln!(out, "written  {} as {}", output.path().display(), tensors.join(", "))?;
    Ok(())
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
        for format in QuantFormat::all().filter(|format| format.quantizes()) {
            // A range symmetric about zero, which is the worst for affine codes.
            let block = format.block() as usize;
            let middle = (block as f32 - 1.0) / 2.0;
            let values: Vec<f32> = (0..block).map(|i| (i as f32 - middle) / middle).collect();
            let quantized = quantize(&values, 1, block, format).unwrap();
            let mut restored = dequantize(&quantized);
            assert!(check(&values, &restored, &quantized).is_ok(), "{format}");
            restored[9] += 2.5 * quantized.steps()[0] as f32;
            assert!(check(&values, &restored, &quantized).is_err(), "{format}");
        }
    }
}
