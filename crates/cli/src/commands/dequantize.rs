//! `tilewise dequantize`.

use crate::args::DequantizeArgs;
use crate::array::{Array, shape_text};
use crate::failure::{Failure, Result, warn};
use crate::matrix::{Deviation, Matrix, weight_name};
use std::io::Write;
use tilewise_core::convert::{decode, encode};
use tilewise_core::problem::DType;

pub(super) fn run(args: &DequantizeArgs, out: &mut dyn Write) -> Result<()> {
    let dtype = DType::from(args.dtype);
    args.output.admit(dtype).map_err(Failure::Usage)?;
    args.output.probe([&args.weights])?;
    let model = args.weights.model()?;
    let tensor = args.weights.matrix(&model, &args.known.expected(args.format))?;
    let matrix = Matrix::of(&tensor)?;

    let (mut bytes, mut deviation) = (Vec::new(), Deviation::default());
    let size = matrix.n.saturating_mul(matrix.k).saturating_mul(dtype.bytes() as usize);
    let room = bytes.try_reserve_exact(size);
    room.map_err(|why| Failure::Other(format!("{}: no memory for {size} bytes of {dtype}: {why}", args.weights)))?;
    for rows in matrix.parts() {
        let values = matrix.rows(rows)?;
        let stored = encode(dtype, &values);
        deviation = deviation.and(&values, &decode(dtype, &stored)?);
        bytes.extend(stored);
    }
    if deviation.largest.is_infinite() {
        warn(&format!("{}: weights beyond the range of {dtype} became infinite", args.weights));
    }
    let array = Array { dtype, shape: tensor.shape().to_vec(), bytes };
    let output = args.output.clone().or_named(&weight_name(tensor.name()));
    output.write(&array)?;
    writeln!(out, "weights  {} {}, {}", tensor.name(), shape_text(tensor.shape()), tensor.kind())?;
    writeln!(out, "size     {} bytes, {} before", array.bytes.len(), tensor.stored_bytes())?;
    writeln!(out, "written  {} as {dtype}", output.path().display())?;
    Ok(())
}
