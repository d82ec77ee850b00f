//! `tilewise dequantize`.

use crate::args::DequantizeArgs;
use crate::array::shape_text;
use crate::failure::{Failure, Result, warn};
use crate::matrix::{Deviation, Matrix, weight_name};
use crate::target::Target;
use std::io::Write;
use tilewise_core::problem::DType;

pub(super) fn run(args: &DequantizeArgs, out: &mut dyn Write) -> Result<()> {
    let dtype = DType::from(args.dtype);
    args.output.admit(dtype).map_err(Failure::Usage)?;
    args.output.probe([&args.weights])?;
    let model = args.weights.model()?;
    let tensor = args.weights.matrix(&model, &args.known.expected(args.format), None)?;
    let matrix = Matrix::of(&tensor)?;

    let output = args.output.clone().or_named(&weight_name(tensor.name()));
    let (mut size, mut deviation) = (0, Deviation::default());
    output.stream(dtype, tensor.shape(), |sink| {
        matrix.transcode(Target::Dense(dtype), sink, &mut |stored| {
            size += stored.planes.iter().map(Vec::len).sum::<usize>();
            deviation = deviation.and(stored.values, stored.restored);
            Ok(())
        })
    })?;
    let Deviation { beyond, undefined, .. } = deviation;
    if beyond > 0 {
        warn(&format!(
            "{}: {beyond} weights are beyond the range of {dtype}, and became infinite or NaN",
            args.weights
        ));
    }
    if undefined > 0 {
        warn(&format!("{}: {undefined} weights are infinite or NaN", args.weights));
    }
    writeln!(out, "weights  {} {}, {}", tensor.name(), shape_text(tensor.shape()), tensor.kind())?;
    writeln!(out, "size     {size} bytes, {} before", tensor.stored_bytes())?;
    writeln!(out, "written  {} as {dtype}", output.path().display())?;
    Ok(())
}
