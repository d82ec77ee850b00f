//! What all products have in common: the adapter, the run, the check, the report.

use crate::args::{DTypeArg, Execution};
use crate::array::{Array, Sink, shape_text};
use crate::failure::{Failure, Result};
use crate::oracle;
use std::io::Write;
use tilewise::{Context, ContextOptions, DType, Gemm, Tensor};
use tilewise_core::convert::decode_f64;
use tilewise_core::reference::Inputs;

/// Opens the adapter that `--adapter` names, else the best one, else the CPU executor.
pub(crate) fn open(adapter: Option<&str>) -> Result<Context> {
    let options = ContextOptions { adapter: adapter.map(Into::into), ..ContextOptions::default() };
    Ok(Context::with_options(&options)?)
}

/// The context for people.
pub(crate) fn adapter_text(context: &Context) -> String {
    context.adapter_name().to_string()
}

/// An array on the device.
pub(crate) fn upload(context: &Context, array: &Array) -> Result<Tensor> {
    Ok(Tensor::from_bytes(context, array.dtype, &array.bytes, &array.shape)?)
}

/// A tensor back on the host.
pub(crate) fn download(tensor: &Tensor) -> Result<Array> {
    Ok(Array { dtype: tensor.dtype(), shape: tensor.shape().to_vec(), bytes: tensor.read_bytes_blocking()? })
}

/// The elements, for the oracle.
pub(crate) fn wide(array: &Array) -> Result<Vec<f64>> {
    Ok(decode_f64(array.dtype, &array.bytes)?)
}

/// The element type of a result, and whether `sink` takes it: what was asked for, else the type that the operands share, else f32.
pub(crate) fn out_dtype(asked: Option<DTypeArg>, operands: &[DType], sink: &Sink) -> Result<DType> {
    if let Some(asked) = asked {
        let dtype = asked.into();
        return sink.admit(dtype).map(|()| dtype).map_err(Failure::Usage);
    }
    let shared = operands.windows(2).all(|pair| pair[0] == pair[1]);
    let dtype = operands.first().copied().filter(|_| shared).unwrap_or(DType::F32);
    sink.admit(dtype).map(|()| dtype).map_err(Failure::Other)
}
