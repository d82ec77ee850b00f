//! The operands of a call, while their storage is collected.

use crate::context::Context;
use crate::tensor::Tensor;
use crate::tensor::storage::{Bound, Buffers};
use tilewise_core::Result;
use tilewise_core::kernel::Role;

pub(crate) struct Operands<'a> {
    context: &'a Context,
    /// The output, if it is there already.
    out: Option<&'a Tensor>,
    pub(crate) buffers: Buffers<'a>,
    /// Whether an operand lies in the output's buffer, beside it.
    pub(crate) beside_out: bool,
}

impl<'a> Operands<'a> {
    pub(crate) fn new(context: &'a Context, out: Option<&'a Tensor>) -> Self {
        Operands { context, out, buffers: Buffers::default(), beside_out: false }
    }

    /// Adds a tensor.
    ///
    /// # Errors
    /// [`Misuse`](crate::Error) for a tensor of another context, `Shape` if it overlaps the output.
    pub(crate) fn add(
        &mut self,
        role: Role,
        name: &'static str,
        tensor: &Tensor,
        bound: Bound<'a>,
    ) -> Result<()> {
        self.bind(role, name, (tensor.context(), Some(tensor)), bound)
    }

    /// Adds an operand that is no tensor, or whose device alone knows what it reads: all of its
    /// buffer counts.
    ///
    /// # Errors
    /// The errors of [`add`](Self::add), and [`Shape`](crate::Error) if it shares a buffer with the
    /// output.
    pub(crate) fn add_buffer(
        &mut self,
        role: Role,
        name: &'static str,
        owner: &Context,
        bound: Bound<'a>,
    ) -> Result<()> {
        self.bind(role, name, (owner, None), bound)
    }

    /// Adds the output.
    ///
    /// # Errors
    /// [`Misuse`](crate::Error) for an output of another context.
    pub(crate) fn add_output(&mut self, name: &str, out: &Tensor, bound: Bound<'a>) -> Result<()> {
        self.context.same(out.context(), name)?;
        self.buffers[Role::C as usize] = Some(bound);
        Ok(())
    }

    fn bind(
        &mut self,
        role: Role,
        name: &'static str,
        (owner, tensor): (&Context, Option<&Tensor>),
        bound: Bound<'a>,
    ) -> Result<()> {
        self.context.same(owner, name)?;
        if let Some(out) = self.out {
            self.beside_out |= out.lies_beside(name, bound, tensor)?;
        }
        self.buffers[role as usize] = Some(bound);
        Ok(())
    }
}
