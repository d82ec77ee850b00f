//! Running operations with two outputs.

use super::cut;
use super::op::{fits, record};
use super::texts::{Step, Steps, apart};
use crate::context::Context;
use crate::kernel::{Call, Kernel};
use crate::recorder::{AsRecorder, Way};
use crate::tensor::Tensor;
use tilewise_core::Result;

/// An operation with two outputs, such as values and indices. It has the methods of
/// [`Op`](super::Op), with `[Tensor; 2]` in place of a tensor. The operation's documentation names
/// the two outputs, in their order.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::upload(&ctx, &[0.5f32, 2.0, 1.0], &[3])?;
/// let op = ops::top_k(&x, 2);
/// let [values, indices] = op.run()?; // new tensors
/// op.run_into([&values, &indices])?; // the caller's
/// assert_eq!(indices.read_blocking::<u32>()?, [1, 2]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is computed until it is run or recorded"]
pub struct Pair<K> {
    pub(crate) kind: K,
}

/// An operation for [`Pair`], such as [`TopK`](super::TopK).
pub trait PairOperation: sealed::Plan {}

impl<K: sealed::Plan> PairOperation for K {}

pub(super) mod sealed {
    use super::{Result, Steps, Tensor};
    use crate::ops::layout::Sizes;
    use std::ops::Range;
    use tilewise_core::DType;

    /// How an operation turns its tensors into kernels.
    pub trait Plan: Sized {
        /// The name for messages.
        fn name(&self) -> &'static str;

        /// An operand; the operation runs on its context.
        fn first(&self) -> &Tensor;

        /// Name, shape and type of the outputs, once the operands are found to fit together. Both
        /// are empty, or neither.
        fn outputs(&self) -> Result<[(&'static str, Sizes, DType); 2]>;

        /// The kernels, for outputs of the right shapes and types.
        fn steps(&self, outs: [&Tensor; 2]) -> Result<Steps>;

        /// Gives the operation for a range along an axis of both outputs, or none if its kernels
        /// need operands from outside that range.
        fn part(&self, _axis: usize, _range: Range<usize>) -> Result<Option<Self>> {
            Ok(None)
        }
    }
}

impl<K: PairOperation> Pair<K> {
    /// Computes into new tensors. On a GPU the work is submitted, not waited for.
    ///
    /// # Errors
    /// The errors of [`Op::run`](super::Op::run).
    pub fn run(&self) -> Result<[Tensor; 2]> {
        let [one, other] = self.kind.outputs()?;
        let zeros = |(_, shape, dtype): (_, crate::ops::layout::Sizes, _)| {
            Tensor::zeros(self.context(), dtype, &shape)
        };
        let outs = [zeros(one)?, zeros(other)?];
        self.run_into(outs.each_ref())?;
        Ok(outs)
    }

    /// Computes into `outs`, which may be any views whose elements do not overlap, also in the
    /// buffer of an operand.
    ///
    /// # Errors
    /// The errors of [`Op::run_into`](super::Op::run_into); `Aliased` also when the outputs
    /// overlap.
    pub fn run_into(&self, outs: [&Tensor; 2]) -> Result<()> {
        self.context().submit_as(self.kind.name(), |to| self.record(to, outs))
    }

    /// Adds it to the given compute pass, command encoder or recorder.
    ///
    /// # Errors
    /// The errors of [`run_into`](Self::run_into); `WrongContext` on the CPU executor, unless the
    /// recorder is its own, and for the recorder of another context.
    pub fn record(&self, to: &mut impl AsRecorder, outs: [&Tensor; 2]) -> Result<()> {
        let to = &mut to.as_recorder();
        match to.way(self.context())? {
            Way::Plan(_) => Ok(()),
            _ => record(to, &self.steps(outs)?),
        }
    }

    /// The kernels that compute `outs` one after the other, and their calls, as
    /// [`Op::calls`](super::Op::calls) gives them.
    ///
    /// # Errors
    /// The errors of [`run_into`](Self::run_into).
    pub fn calls(&self, outs: [&Tensor; 2]) -> Result<Vec<(Kernel, Call)>> {
        let kernel = |step: Step| ((*step.kernel()).clone(), step.call);
        Ok(self.steps(outs)?.into_iter().map(kernel).collect())
    }

    /// Like [`calls`](Self::calls), with other texts, for the mutation check: `text` gets the path
    /// and the text of a file, as [`texts`](super::texts) lists them.
    #[doc(hidden)]
    pub fn calls_of(
        &self,
        outs: [&Tensor; 2],
        text: impl Fn((&'static str, &'static str)) -> String,
    ) -> Result<Vec<(Kernel, Call)>> {
        let kernel = |step: Step| (step.made_of(&text), step.call);
        Ok(self.steps(outs)?.into_iter().map(kernel).collect())
    }

    fn context(&self) -> &Context {
        self.kind.first().context()
    }

    fn steps(&self, outs: [&Tensor; 2]) -> Result<Steps> {
        let (operation, wanted) = (self.kind.name(), self.kind.outputs()?);
        for (out, (name, shape, dtype)) in outs.iter().zip(&wanted) {
            self.context().same(out.context(), name)?;
            fits(operation, name, out, (shape, *dtype), None, |kind| kind == *dtype)?;
        }
        apart(operation, wanted[1].0, outs[1], outs[0], false)?;
        if outs[0].elem_count() == 0 {
            return Ok(Steps::new());
        }
        cut::steps(&self.kind, outs, &K::steps, &K::part, &|_| 1)
    }
}
