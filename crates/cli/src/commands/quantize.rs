//! `tilewise quantize`.

use crate::args::QuantizeArgs;
use crate::array::{Sink, Source, shape_text};
use crate::failure::{Failure, Result};
use crate::matrix::{Deviation, Matrix, Stored, prefix};
use crate::table::{NUMBER, TEXT, table};
use crate::target::Target;
use std::collections::BTreeMap;
use std::io::Write;
use tilewise_core::quant::{QuantFormat, Quantized};
use tilewise_files::{Error, Expected, Output, TensorKind, tensor_name};

pub(super) fn run(args: &QuantizeArgs, out: &mut dyn Write) -> Result<()> {
    match (&args.weights, &args.output) {
        (Some(weights), Some(output)) if !args.list_formats => run_on(weights, output, args, out),
        _ => Ok(write!(out, "{}", formats())?),
    }
}

/// The table of all formats.
fn formats() -> String {
    let columns = [
        ("format", TEXT),
        ("bits/weight", NUMBER),
        ("block", NUMBER),
        ("origin", TEXT),
        ("quantize makes it", TEXT),
    ];
    let row = |format: QuantFormat| {
        let origin = match format.gguf() {
            Some(_) => "GGUF",
            None if Expected::in_words(format).is_some() => "MLX",
            None => "others",
        };
        let made = if format.quantizes() { "yes" } else { "no, it is only read" };
        let bits = format!("{:.4}", format.bits_per_weight());
        vec![format.to_string(), bits, format.block().to_string(), origin.into(), made.into()]
    };
    table(&columns, QuantFormat::all().map(row).collect())
}

fn run_on(weights: &Source, output: &Sink, args: &QuantizeArgs, out: &mut dyn Write) -> Result<()> {
    let layer = match (&args.prefix, output.tensor()) {
        (Some(prefix), Some(tensor)) if prefix != tensor => {
            return Err(Failure::Usage(format!(
                "two names for the weights: {prefix:?} and {tensor:?}"
            )));
        }
        (Some(prefix), _) => prefix.clone(),
        (None, Some(tensor)) => tensor.into(),
        (None, None) => prefix(&weights.stem()).to_owned(),
    };
    output.probe([weights])?;
    let source = weights;
    let weights = source.read()?;
    let (dtype, before, shape) = (weights.dtype, weights.bytes.len(), weights.shape.clone());
    let matrix = Matrix::of_array(weights, source)?;
    let format = args.format.map_or_else(|| QuantFormat::affine(4, 64, dtype), Ok)?;
    let target = Target::Quantized(format);
    target.admit()?;
    let (mut written, mut deviation) = (0, Deviation::default());
    let made = Output::streamed(&layer, TensorKind::Quantized(format), &shape, |sink| {
        matrix.transcode(target, sink, &mut |stored| {
            deviation = deviation.and(stored.values, stored.restored);
            if args.check { check(&stored, format, matrix.k) } else { Ok(()) }
        })
    });
    let done =
        tilewise_files::write(output.path(), vec![made], &BTreeMap::new(), &mut |_, total| {
            written = total
        });
    done?;
    writeln!(out, "weights  {} {dtype}", shape_text(&shape))?;
    writeln!(out, "format   {format}, on the CPU")?;
    writeln!(out, "size     {written} bytes, {before} before")?;
    writeln!(out, "error    {:.2}% of the weights' norm", 100.0 * deviation.relative())?;
    if args.check {
        writeln!(out, "check    every weight lies within one step, and rounding, of its code")?;
    }
    let tensors: Vec<_> = format.planes().iter().map(|plane| tensor_name(&layer, plane)).collect();
    writeln!(out, "written  {} as {}", output.path().display(), tensors.join(", "))?;
    Ok(())
}

/// Fails if a weight differs from the number of its code by more than the format can explain.
fn check(stored: &Stored<'_>, format: QuantFormat, k: usize) -> tilewise_files::Result<()> {
    let block = format.block() as usize;
    let rows = stored.values.len() / k;
    let steps = Quantized::from_planes(format, rows, k, stored.planes.to_vec())?.steps();
    for (index, (&value, &found)) in stored.values.iter().zip(stored.restored).enumerate() {
        let (value, found, bound) = (f64::from(value), f64::from(found), steps[index / block]);
        if (value - found).abs() > bound {
            let (row, column) = (stored.first + index / k, index % k);
            return Err(Error::Misuse(format!(
                "--check: weight {value:e} in row {row}, column {column} became {found:e}, further \
                 off than {bound:e}"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewise_core::quant::{dequantize, quantize};

    #[test]
    fn the_worst_block_passes_and_a_wrong_code_does_not() {
        for format in QuantFormat::all().filter(|format| format.quantizes()) {
            // A range symmetric about zero, which is the worst for affine codes.
            let block = format.block() as usize;
            let middle = (block as f32 - 1.0) / 2.0;
            let values: Vec<f32> = (0..block).map(|i| (i as f32 - middle) / middle).collect();
            let quantized = quantize(&values, 1, block, format).unwrap();
            let mut restored = dequantize(&quantized);
            let checked = |restored: &[f32]| {
                let stored =
                    Stored { first: 7, values: &values, planes: quantized.planes(), restored };
                check(&stored, format, block)
            };
            assert!(checked(&restored).is_ok(), "{format}");
            restored[9] += 2.5 * quantized.steps()[0] as f32;
            assert!(
                checked(&restored).unwrap_err().to_string().contains("in row 7, column 9 became"),
                "{format}"
            );
        }
    }
}
