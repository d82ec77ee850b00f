//! Custom kernels on the CPU: executed, or checked by the sanitizer.

use super::call::Call;
use super::definition::Kernel;
use super::fitted::{Fitted, error};
use super::generate::{Slot, UNIFORM};
use crate::memory;
use crate::tensor::{Tensor, count, packed};
use tilewise_core::{DType, Error, Result};
use tilewise_sanitizer::{Buffer, Finding, Kind, Label, Launch, Options, Region, Report, Shader};

/// An input in host memory, from its first element to its last.
pub(super) struct Loaded {
    dtype: DType,
    shape: Vec<usize>,
    strides: Vec<usize>,
    bytes: Vec<u8>,
}

impl Loaded {
    /// `bytes` are the view's extent.
    pub(super) fn new(kernel: &Kernel, tensor: &Tensor, bytes: Vec<u8>) -> Result<Self> {
        let (dtype, shape) = (tensor.dtype(), tensor.shape().to_vec());
        if kernel.contiguous && !tensor.is_contiguous() {
            return Ok(Loaded {
                dtype,
                strides: packed(&shape).into_vec(),
                bytes: tensor.gather(&bytes)?,
                shape,
            });
        }
        Ok(Loaded { dtype, strides: tensor.strides().to_vec(), bytes, shape })
    }

    /// What is bound: whole words, of which the elements of the view are the operand.
    fn buffer(&self) -> Result<Buffer> {
        let size = self.dtype.bytes();
        let mut bytes = memory::filled(self.bytes.len().next_multiple_of(4).max(4), 0u8)?;
        bytes[..self.bytes.len()].copy_from_slice(&self.bytes);
        if self.bytes.is_empty() {
            return Ok(Buffer::new(bytes).range(0..0));
        }
        // bf16 is read as words, and a word may hold an element of the view and one beside it.
        if self.dtype == DType::BF16 {
            return Ok(Buffer::new(bytes));
        }
        Ok(Buffer::new(bytes).region(Region {
            offset: 0,
            counts: self.shape.iter().map(|&n| n as u64).collect(),
            strides: self.strides.iter().map(|&stride| stride as u64 * size).collect(),
            element_bytes: size,
        }))
    }
}

/// The inputs of a call on the CPU executor.
pub(super) fn load(kernel: &Kernel, call: &Call) -> Result<Vec<Loaded>> {
    call.inputs.iter().map(|tensor| Loaded::new(kernel, tensor, tensor.host_bytes()?)).collect()
}

/// Runs a call. When there is nothing to run, nothing is reported but that outputs are not written.
pub(super) fn launch(
    kernel: &Kernel,
    call: &Call,
    fitted: &Fitted,
    shader: &Shader,
    inputs: &[Loaded],
    options: Options,
) -> Result<(Report, Vec<Tensor>)> {
    if call.is_idle() {
        let findings = if options.checks { never_written(kernel, call) } else { Vec::new() };
        return Ok((Report::of(findings), call.allocate()?));
    }
    let generated = &fitted.generated;
    let mut launch = Launch::new(shader).grid(fitted.workgroups).options(options);
    if generated.uniform {
        let packed: Vec<_> = call.outputs.iter().map(|(_, shape)| packed(shape)).collect();
        let layout = |slot| match slot {
            Slot::Input(i) => (inputs[i].shape.as_slice(), inputs[i].strides.as_slice()),
            Slot::Output(i) => (call.outputs[i].1.as_slice(), packed[i].as_slice()),
        };
        launch =
            launch.bind(0, UNIFORM, Buffer::new(generated.uniform_bytes(fitted.grid, layout)?));
    }
    for (binding, &slot) in (UNIFORM + 1..).zip(&generated.storage) {
        let buffer = match slot {
            Slot::Input(i) => inputs[i].buffer()?,
            Slot::Output(i) => output(call, i)?,
        };
        launch = launch.bind(0, binding, buffer);
    }
    let mut report = launch.run().map_err(error)?;
    // Outputs are declared where the user has not written.
    let unwritten = report.findings.iter_mut().filter(|finding| finding.kind == Kind::NeverWritten);
    unwritten.flat_map(|finding| &mut finding.labels).for_each(|label| label.span = None);
    let mut outputs = Vec::with_capacity(call.outputs.len());
    for (i, (dtype, shape)) in call.outputs.iter().enumerate() {
        let bound =
            (UNIFORM + 1..).zip(&generated.storage).find(|(_, slot)| **slot == Slot::Output(i));
        let left = bound.and_then(|(binding, _)| report.buffers.remove(&(0, binding)));
        outputs.push(match left {
            Some(mut bytes) => {
                bytes.truncate(bytes_of(call, i)?);
                Tensor::from_bytes(&call.context, *dtype, &bytes, shape)?
            }
            // The text does not mention it, so that it is as it was filled.
            None => call.new_output(*dtype, shape)?,
        });
    }
    Ok((report, outputs))
}

/// The findings of a grid without invocations: every output with elements, unless it is filled.
fn never_written(kernel: &Kernel, call: &Call) -> Vec<Finding> {
    let outputs = kernel.outputs.iter().zip(&call.outputs);
    let outputs = outputs.filter(|(_, (_, shape))| call.init.is_none() && !shape.contains(&0));
    let finding = |(name, _): (&String, _)| {
        let message = format!("the output `{name}` is never written");
        let labels = vec![Label::new("the grid has no invocations")];
        let mut finding = Finding::new(Kind::NeverWritten, message, labels);
        finding.variable = Some(name.clone());
        finding
    };
    outputs.map(finding).collect()
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
        // As `Buffer::output`, or an error.
        None => Buffer::new(memory::filled(whole, 0xFF)?).poisoned().must_write(),
    };
    Ok(buffer.range(0..operand as u64))
}

fn bytes_of(call: &Call, index: usize) -> Result<usize> {
    let (dtype, shape) = &call.outputs[index];
    let bytes = count(shape)?.checked_mul(dtype.bytes() as usize);
    bytes.ok_or_else(|| Error::Overflow(format!("an output of {dtype} of shape {shape:?}")))
}
