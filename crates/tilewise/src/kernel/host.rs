//! Custom kernels on the CPU: executed, or checked by the sanitizer.

use super::call::Call;
use super::generate::{Slot, UNIFORM};
use super::{Kernel, Prepared};
use crate::tensor::{Tensor, packed};
use tilewise_core::{DType, Error, Result};
use tilewise_sanitizer::{Buffer, Launch, Options, Region, Report, Shader};

/// An input in host memory, from its first element to its last.
pub(super) struct Loaded {
    dtype: DType,
    shape: Vec<usize>,
    strides: Vec<usize>,
    bytes: Vec<u8>,
}

impl Loaded {
    /// `bytes` are the view's extent.
    pub(super) fn new(kernel: &Kernel, tensor: &Tensor, bytes: Vec<u8>) -> Self {
        let (dtype, shape) = (tensor.dtype(), tensor.shape().to_vec());
        if kernel.contiguous && !tensor.is_contiguous() {
            return Loaded { dtype, strides: packed(&shape), bytes: tensor.gather(&bytes), shape };
        }
        Loaded { dtype, strides: tensor.strides().to_vec(), bytes, shape }
    }

    /// What is bound: whole words, of which the elements of the view are the operand.
    fn buffer(&self) -> Buffer {
        let size = self.dtype.bytes();
        let mut bytes = self.bytes.clone();
        bytes.resize(bytes.len().next_multiple_of(4).max(4), 0);
        if self.bytes.is_empty() {
            return Buffer::new(bytes).range(0..0);
        }
        // bf16 is read as words, and a word may hold an element of the view and one beside it.
        if self.dtype == DType::BF16 {
            return Buffer::new(bytes);
        }
        Buffer::new(bytes).region(Region {
            offset: 0,
            counts: self.shape.iter().map(|&n| n as u64).collect(),
            strides: self.strides.iter().map(|&stride| stride as u64 * size).collect(),
            element_bytes: size,
        })
    }
}

/// The inputs of a call on the CPU executor.
pub(super) fn load(kernel: &Kernel, call: &Call) -> Result<Vec<Loaded>> {
    call.inputs.iter().map(|tensor| Ok(Loaded::new(kernel, tensor, tensor.host_bytes()?))).collect()
}

/// Runs a call. Nothing runs, and nothing is reported, when there is nothing to run.
pub(super) fn launch(
    call: &Call,
    prepared: &Prepared,
    shader: &Shader,
    inputs: &[Loaded],
    options: Options,
) -> Result<(Report, Vec<Tensor>)> {
    if call.is_idle() {
        return Ok((Report::default(), call.allocate()?));
    }
    let generated = &prepared.generated;
    let mut launch = Launch::new(shader).grid(prepared.workgroups).options(options);
    if generated.uniform {
        let packed: Vec<_> = call.outputs.iter().map(|(_, shape)| packed(shape)).collect();
        let layout = |slot| match slot {
            Slot::Input(i) => (inputs[i].shape.as_slice(), inputs[i].strides.as_slice()),
            Slot::Output(i) => (call.outputs[i].1.as_slice(), packed[i].as_slice()),
        };
        launch = launch.bind(0, UNIFORM, Buffer::new(generated.uniform_bytes(prepared.grid, layout)?));
    }
    for (binding, &slot) in (UNIFORM + 1..).zip(&generated.storage) {
        let buffer = match slot {
            Slot::Input(i) => inputs[i].buffer(),
            Slot::Output(i) => output(call, i)?,
        };
        launch = launch.bind(0, binding, buffer);
    }
    let mut report = launch.run().map_err(error)?;
    let outputs = (UNIFORM + 1..).zip(&generated.storage).filter_map(|(binding, &slot)| {
        let Slot::Output(i) = slot else { return None };
        Some((i, report.buffers.remove(&(0, binding)).unwrap_or_default()))
    });
    let mut outputs: Vec<_> = outputs.collect();
    outputs.sort_by_key(|(i, _)| *i);
    let tensor = |(i, mut bytes): (usize, Vec<u8>)| {
        let (dtype, shape) = &call.outputs[i];
        bytes.truncate(bytes_of(call, i)?);
        Tensor::from_bytes(&call.context, *dtype, &bytes, shape)
    };
    let outputs = outputs.into_iter().map(tensor).collect::<Result<_>>()?;
    Ok((report, outputs))
}

/// The buffer of an output: filled, or with nothing in it that may be read.
fn output(call: &Call, index: usize) -> Result<Buffer> {
    let (dtype, shape) = &call.outputs[index];
    let len = bytes_of(call, index)?;
    let whole = len.next_multiple_of(4).max(4);
    // Words of bf16 are written whole.
    let operand = if *dtype == DType::BF16 { len.next_multiple_of(4) } else { len };
    let buffer = match call.filled(*dtype, shape)? {
        Some(mut bytes) => {
            bytes.resize(whole, 0);
            Buffer::new(bytes)
        }
        None => Buffer::output(whole),
    };
    Ok(buffer.range(0..operand as u64))
}

fn bytes_of(call: &Call, index: usize) -> Result<usize> {
    let (dtype, shape) = &call.outputs[index];
    let bytes = crate::tensor::count(shape)?.checked_mul(dtype.bytes() as usize);
    bytes.ok_or_else(|| Error::Overflow(format!("an output of {dtype} of shape {shape:?}")))
}

/// The sanitizer's errors as ours.
pub(super) fn error(error: tilewise_sanitizer::Error) -> Error {
    match error {
        unsupported @ tilewise_sanitizer::Error::Unsupported { .. } => Error::Unsupported(unsupported.to_string()),
        other => Error::Kernel(other.to_string()),
    }
}
