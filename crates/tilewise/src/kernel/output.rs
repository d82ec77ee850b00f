//! The outputs of a call: tensors that it makes, and given tensors.

use super::call::Call;
use super::definition::Kernel;
use crate::context::Context;
use crate::tensor::Tensor;
use tilewise_core::{DType, Error, Result};

/// A tensor of the call, by its place among the inputs or the outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    Input(usize),
    Output(usize),
}

/// An output of a call.
#[derive(Clone, Debug)]
pub(super) enum Output {
    /// Made by the call: type and shape.
    New(DType, Vec<usize>),
    /// A given tensor, and whether the kernel may read it.
    Given(Tensor, bool),
}

impl Output {
    pub(super) fn dtype(&self) -> DType {
        match self {
            Output::New(dtype, _) => *dtype,
            Output::Given(tensor, _) => tensor.dtype(),
        }
    }

    pub(super) fn shape(&self) -> &[usize] {
        match self {
            Output::New(_, shape) => shape,
            Output::Given(tensor, _) => tensor.shape(),
        }
    }

    /// A new tensor of this type and shape with these bytes.
    pub(super) fn holding(&self, context: &Context, bytes: &[u8]) -> Result<Tensor> {
        Tensor::from_bytes(context, self.dtype(), bytes, self.shape())
    }

    /// The given tensor, if there is one.
    pub(super) fn given(&self) -> Option<&Tensor> {
        match self {
            Output::New(..) => None,
            Output::Given(tensor, _) => Some(tensor),
        }
    }
}

/// Whether an input lies in the buffer of an output. One dispatch binds a buffer only for reading
/// or only for writing, so this input is bound as the output is.
pub(super) fn beside_output(call: &Call, input: &Tensor) -> bool {
    let given = call.outputs.iter().filter_map(Output::given);
    given.into_iter().any(|output| output.storage().shares(input.storage()))
}

/// Checks that given outputs can be written: `Misuse` for a tensor of another context, a prepared
/// one, and an output that would have to be filled; `Shape` if an output overlaps itself or another
/// tensor of the call.
pub(super) fn writable(kernel: &Kernel, call: &Call) -> Result<()> {
    for (at, (name, output)) in kernel.outputs.iter().zip(&call.outputs).enumerate() {
        let Output::Given(tensor, read) = output else { continue };
        call.context.same(tensor.context(), name)?;
        tensor.writable()?;
        if call.init.is_some() && !read {
            return Err(Error::Misuse(format!(
                "kernel {}: Call::init_value fills outputs that the call makes, and {name:?} is \
                 given by Call::output_into; Call::inout keeps what it holds",
                kernel.name
            )));
        }
        if tensor.overlaps_itself() {
            return Err(Error::Shape(format!(
                "strides: kernel {}: elements of the output {name:?} overlap: shape {:?} with \
                 strides {:?}; Call::output makes a tensor whose elements do not",
                kernel.name,
                tensor.shape(),
                tensor.strides()
            )));
        }
        let earlier = kernel.outputs.iter().zip(&call.outputs).take(at);
        let earlier = earlier.filter_map(|(name, output)| Some((name, output.given()?)));
        for (other, of) in kernel.inputs.iter().zip(&call.inputs) {
            let remedy = "Call::inout gives one tensor to be read and written, Call::output makes \
                          one";
            apart(kernel, (name, tensor), ("the input", other, of), remedy)?;
        }
        for (other, of) in earlier {
            let remedy = "Call::output makes a tensor beside the other";
            apart(kernel, (name, tensor), ("the output", other, of), remedy)?;
        }
    }
    Ok(())
}

/// `Shape` when an output and another tensor of the call share a word of memory.
fn apart(
    kernel: &Kernel,
    (name, tensor): (&str, &Tensor),
    (operand, other, of): (&'static str, &str, &Tensor),
    remedy: &str,
) -> Result<()> {
    let Some(shared) = tensor.shares_bytes(of)? else { return Ok(()) };
    let how = format!("{other:?} {shared} (kernel {}, output {name:?}): {remedy}", kernel.name);
    Err(Error::aliased(operand, how))
}
