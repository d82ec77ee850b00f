//! Custom kernels on the CPU: executed, or checked by the sanitizer.

use super::call::Call;
use super::definition::Kernel;
use super::fitted::{Fitted, error};
use super::generate::{Binding, Layout, UNIFORM};
use super::output::{Output, Slot};
use crate::host::memory;
use crate::tensor::{Tensor, count, packed};
use std::ops::Range;
use tilewise_core::{DType, Error, Result};
use tilewise_sanitizer::{Buffer, Finding, Kind, Label, Launch, Options, Region, Report, Shader};

/// A tensor in host memory, from its first element to its last.
struct Loaded {
    dtype: DType,
    shape: Vec<usize>,
    strides: Vec<usize>,
    bytes: Vec<u8>,
    /// The view, if its elements do not lie one after the other.
    view: Option<Tensor>,
}

impl Loaded {
    fn row_major(dtype: DType, shape: &[usize], bytes: Vec<u8>) -> Self {
        let strides = packed(shape).into_vec();
        Loaded { dtype, shape: shape.to_vec(), strides, bytes, view: None }
    }

    /// Loads a view; `bytes` reach from its first element to its last.
    fn new(kernel: &Kernel, tensor: &Tensor, bytes: Vec<u8>) -> Result<Self> {
        let (dtype, shape) = (tensor.dtype(), tensor.shape());
        if tensor.is_contiguous() {
            let strides = tensor.strides().to_vec();
            return Ok(Loaded { strides, ..Self::row_major(dtype, shape, bytes) });
        }
        if kernel.contiguous {
            return Ok(Self::row_major(dtype, shape, tensor.gather(&bytes)?));
        }
        let (strides, view) = (tensor.strides().to_vec(), Some(tensor.view()));
        Ok(Loaded { dtype, shape: shape.to_vec(), strides, bytes, view })
    }

    /// An output that the call makes.
    fn made(call: &Call, dtype: DType, shape: &[usize]) -> Result<Self> {
        let bytes = match call.filled(dtype, shape)? {
            Some(bytes) => bytes,
            None => {
                let bytes = count(shape)?.checked_mul(dtype.bytes() as usize).ok_or_else(|| {
                    Error::Shape(format!("overflow: an output of {dtype} of shape {shape:?}"))
                })?;
                // NaN as floats, as in the sanitizer's own outputs, unless no invocation writes.
                memory::filled(bytes, if call.is_idle() { 0 } else { 0xFF })?
            }
        };
        Ok(Self::row_major(dtype, shape, bytes))
    }

    /// The elements, row-major. `left` is the buffer after a run, if it was bound.
    fn elements(&self, left: Option<Vec<u8>>) -> Result<Vec<u8>> {
        let mut bytes = left.unwrap_or_else(|| self.bytes.clone());
        bytes.truncate(self.bytes.len());
        match &self.view {
            Some(view) => view.gather(&bytes),
            None => Ok(bytes),
        }
    }

    /// The buffer to bind: whole words, with the elements of the view marked as the operand.
    fn buffer(&self, by_functions: bool) -> Result<Buffer> {
        let size = self.dtype.bytes();
        let mut bytes = memory::filled(self.bytes.len().next_multiple_of(4).max(4), 0u8)?;
        bytes[..self.bytes.len()].copy_from_slice(&self.bytes);
        if self.bytes.is_empty() {
            return Ok(Buffer::new(bytes).range(0..0));
        }
        // A word may hold an element of the view and one outside it, so the words are marked.
        if self.dtype == DType::BF16 || self.dtype == DType::F16 && by_functions {
            let words = self.view.iter().flat_map(words).fold(Buffer::new(bytes), Buffer::range);
            return Ok(words);
        }
        Ok(Buffer::new(bytes).region(Region {
            offset: 0,
            counts: self.shape.iter().map(|&n| n as u64).collect(),
            strides: self.strides.iter().map(|&stride| stride as u64 * size).collect(),
            element_bytes: size,
        }))
    }
}

/// The words in which elements of 16 bits lie, as ranges of bytes from the first element.
fn words(view: &Tensor) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for place in view.places() {
        let word = place as u64 / 2 * 4;
        match ranges.last_mut() {
            Some(last) if (last.start..=last.end).contains(&word) => {
                last.end = last.end.max(word + 4);
            }
            _ => ranges.push(word..word + 4),
        }
    }
    ranges
}

/// Copies of a call's tensors in host memory.
pub(super) struct Tensors {
    inputs: Vec<Loaded>,
    outputs: Vec<Loaded>,
}

impl Tensors {
    /// Loads the tensors. `views` are the bytes of the given ones: inputs, then outputs.
    pub(super) fn new(kernel: &Kernel, call: &Call, views: Vec<Vec<u8>>) -> Result<Self> {
        let mut views = views.into_iter();
        let mut load =
            |tensor: &Tensor| Loaded::new(kernel, tensor, views.next().unwrap_or_default());
        let inputs = call.inputs.iter().map(&mut load).collect::<Result<_>>()?;
        let output = |output: &Output| match output {
            Output::New(dtype, shape) => Loaded::made(call, *dtype, shape),
            Output::Given(tensor, _) => load(tensor),
        };
        let outputs = call.outputs.iter().map(output).collect::<Result<_>>()?;
        Ok(Tensors { inputs, outputs })
    }

    fn get(&self, slot: Slot) -> &Loaded {
        match slot {
            Slot::Input(i) => &self.inputs[i],
            Slot::Output(i) => &self.outputs[i],
        }
    }

    /// The buffer that is bound for a tensor of the call.
    fn buffer(&self, call: &Call, binding: &Binding) -> Result<Buffer> {
        let buffer = self.get(binding.slot).buffer(binding.by_functions)?;
        Ok(match binding.slot {
            Slot::Input(_) => buffer,
            Slot::Output(i) if call.is_filled(i) => buffer,
            // Storing one half of a word reads the other.
            Slot::Output(_) if binding.by_halves => buffer.must_write(),
            Slot::Output(_) => buffer.poisoned().must_write(),
        })
    }
}

/// Runs a call. Gives the report, and the elements of each output, row-major. If there is nothing
/// to run, the report only says that outputs are not written.
pub(super) fn launch(
    kernel: &Kernel,
    call: &Call,
    fitted: &Fitted,
    shader: &Shader,
    tensors: &Tensors,
    options: Options,
) -> Result<(Report, Vec<Vec<u8>>)> {
    let loaded = &tensors.outputs;
    if call.is_idle() {
        let findings = if options.checks { never_written(kernel, call) } else { Vec::new() };
        let outputs = loaded.iter().map(|output| output.elements(None)).collect::<Result<_>>()?;
        return Ok((Report::of(findings), outputs));
    }
    let generated = fitted.generated();
    let mut launch = Launch::new(shader).grid(fitted.workgroups).options(options);
    if generated.has_uniform {
        let layout = |slot| {
            let Loaded { shape, strides, .. } = tensors.get(slot);
            Layout { shape, strides, offset: 0 }
        };
        let words = generated.uniform(call, layout)?;
        launch = launch.bind(0, UNIFORM, Buffer::new(bytemuck::cast_slice(&words)));
    }
    for (number, binding) in (UNIFORM + 1..).zip(&generated.storage) {
        launch = launch.bind(0, number, tensors.buffer(call, binding)?);
    }
    let mut report = launch.run().map_err(error)?;
    // Outputs are declared in generated text, so labels that point there have no place.
    let unwritten = report.findings.iter_mut().filter(|finding| finding.kind == Kind::NeverWritten);
    unwritten.flat_map(|finding| &mut finding.labels).for_each(|label| label.span = None);
    let mut outputs = Vec::with_capacity(loaded.len());
    for (i, output) in loaded.iter().enumerate() {
        let bound = generated.binding(Slot::Output(i));
        outputs.push(output.elements(bound.and_then(|at| report.buffers.remove(&(0, at))))?);
    }
    Ok((report, outputs))
}

/// The findings of a grid without invocations: every output with elements, unless it is filled.
fn never_written(kernel: &Kernel, call: &Call) -> Vec<Finding> {
    let unwritten = |i: &usize| !call.is_filled(*i) && !call.outputs[*i].shape().contains(&0);
    let finding = |i: usize| {
        let message = format!("the output `{}` is never written", kernel.outputs[i]);
        let labels = vec![Label::new("the grid has no invocations")];
        let mut finding = Finding::new(Kind::NeverWritten, message, labels);
        finding.variable = Some(kernel.outputs[i].clone());
        finding
    };
    (0..call.outputs.len()).filter(unwritten).map(finding).collect()
}
