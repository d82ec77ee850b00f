//! Runs operations.

use super::cut;
use super::layout::Sizes;
use super::texts::{Step, Steps, apart};
use crate::context::Context;
use crate::kernel::{Call, Kernel};
use crate::recorder::{AsRecorder, Recorder, Way};
use crate::tensor::Tensor;
use tilewise_core::{DType, Error, Result};

/// An operation on tensors, made by a function of [`ops`](crate::ops). It owns its operands, which
/// share their storage. `N` is the number of its outputs: with one, its methods take and give a
/// tensor, with two, arrays of two. The operation's documentation names them, in their order.
///
/// ```
/// use tilewise::{Context, DType, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::upload(&ctx, &[1.0f32, 1.0, 5.0, 5.0], &[2, 2])?;
/// let op = ops::softmax(&x);
/// assert_eq!(op.run()?.read_blocking::<f32>()?, [0.5; 4]); // a new tensor
/// op.run_into(&x)?; // in place
/// assert_eq!(x.read_blocking::<f32>()?, [0.5; 4]);
///
/// let op = ops::top_k(&x, 1);
/// let [values, indices] = op.run()?; // new tensors
/// op.run_into([&values, &indices])?; // the caller's
/// assert_eq!(indices.read_blocking::<u32>()?, [0, 0]);
/// # Ok(())
/// # }
/// ```
///
/// A struct that holds an operation names its kind, as the signature of the function does:
///
/// ```
/// use tilewise::ops::{Op, Softmax, TopK};
///
/// struct Sampler {
///     probabilities: Op<Softmax>,
///     best: Op<TopK, 2>,
/// }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is computed until it is run or recorded"]
pub struct Op<K, const N: usize = 1> {
    pub(crate) kind: K,
    dtype: Option<DType>,
}

/// An operation for [`Op`].
pub trait Operation<const N: usize = 1>: sealed::Lower<N> {}

impl<K: sealed::Lower<N>, const N: usize> Operation<N> for K {}

/// A tensor is the only output of an operation that has one.
impl<'a> From<&'a Tensor> for [&'a Tensor; 1] {
    fn from(tensor: &'a Tensor) -> Self {
        [tensor]
    }
}

/// Name, shape and type of an output.
pub(super) type Output = (&'static str, Sizes, DType);

/// The only output of an operation.
pub(super) fn only(shape: Sizes, dtype: DType) -> Result<[Output; 1]> {
    Ok([("the output", shape, dtype)])
}

pub(super) mod sealed {
    use super::{DType, Output, Result, Steps, Tensor};
    use std::ops::Range;

    /// How an operation turns its tensors into kernels.
    pub trait Lower<const N: usize = 1>: Sized {
        /// The name for messages.
        fn name(&self) -> &'static str;

        /// An operand; the operation runs on its context.
        fn first(&self) -> &Tensor;

        /// The outputs, once the operands are found to fit together. All are empty, or none.
        fn outputs(&self) -> Result<[Output; N]>;

        /// Whether the output may be of this type; `own` is its default type.
        fn takes(&self, dtype: DType, own: DType) -> bool {
            dtype == own || N == 1 && dtype.is_float() && own.is_float()
        }

        /// The kernels, for outputs of the right shapes and types.
        fn steps(&self, outs: [&Tensor; N]) -> Result<Steps>;

        /// Computes the outputs on the CPU executor by a loop; none if the operation has no loop.
        /// Then its kernels are interpreted. [`steps`](Self::steps) has found the outputs to be
        /// right, and they have elements.
        fn host(&self, _outs: [&Tensor; N]) -> Option<Result<()>> {
            None
        }

        /// Gives the operation for a range along an axis of all outputs, or none if its kernels
        /// need operands from outside that range.
        fn part(&self, _axis: usize, _range: Range<usize>) -> Result<Option<Self>> {
            Ok(None)
        }

        /// Ranges of an axis begin and end at multiples of this number, or at the axis's end.
        fn granule(&self, _axis: usize) -> usize {
            1
        }

        /// The length of an additional axis that only operands have. It counts as the axis behind
        /// the output's, and the operation can be cut along it, too. Later parts keep the results
        /// of earlier parts.
        fn entries(&self) -> usize {
            1
        }
    }
}

/// Records the steps one after the other.
pub(super) fn record(to: &mut Recorder<'_>, steps: &[Step]) -> Result<()> {
    steps.iter().try_for_each(|step| step.kernel().record(to, &step.call).map(drop))
}

/// Checks that an output can be written, and is as the operation wants it.
pub(super) fn fits(
    operation: &str,
    name: &str,
    out: &Tensor,
    (shape, dtype): (&[usize], DType),
    wanted: Option<DType>,
    takes: impl Fn(DType) -> bool,
) -> Result<()> {
    out.writable()?;
    if out.shape() != shape {
        return Err(Error::Shape(format!(
            "{operation}: {name} has shape {:?}, wanted {:?}",
            out.shape(),
            shape
        )));
    }
    let (wanted, kind) = (wanted.unwrap_or(out.dtype()), out.dtype());
    if kind != wanted {
        return Err(Error::Misuse(format!(
            "{operation}: {name} is {kind}, and out_dtype says {wanted}"
        )));
    }
    if !takes(kind) {
        return Err(Error::Unsupported(format!("{operation}: {name} is {kind}, not {dtype}")));
    }
    if out.overlaps_itself() {
        return Err(Error::Shape(format!(
            "strides: {operation}: elements of {name} overlap: shape {:?} with strides {:?}; run() \
             makes a tensor whose elements do not",
            out.shape(),
            out.strides()
        )));
    }
    Ok(())
}

impl<K> Op<K> {
    /// Type of the output that [`run`](Self::run) makes. By default it is the type of the operands,
    /// or f32 if these differ; u32 for indices. A given output must have the type named here.
    pub fn out_dtype(mut self, dtype: DType) -> Self {
        self.dtype = Some(dtype);
        self
    }
}

impl<K: Operation> Op<K> {
    /// Computes into a new tensor. On a GPU the work is submitted, not waited for.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) for operands that do not fit together, `Unsupported` for their
    /// types, `DeviceLimit` for what exceeds the device; `Misuse` for operands of different
    /// contexts.
    pub fn run(&self) -> Result<Tensor> {
        let [out] = self.zeros()?;
        let out = out?;
        self.run_into(&out)?;
        Ok(out)
    }
}

impl<K: Operation<2>> Op<K, 2> {
    /// Computes into new tensors. On a GPU the work is submitted, not waited for.
    ///
    /// # Errors
    /// The errors of [`Op::run`] with one output.
    pub fn run(&self) -> Result<[Tensor; 2]> {
        let [one, other] = self.zeros()?;
        let outs = [one?, other?];
        self.run_into(outs.each_ref())?;
        Ok(outs)
    }
}

impl<K, const N: usize> Op<K, N> {
    pub(crate) fn new(kind: K) -> Self {
        Op { kind, dtype: None }
    }
}

impl<K: Operation<N>, const N: usize> Op<K, N> {
    /// Computes into the given outputs, which may be any views whose elements do not overlap. They
    /// may lie in the buffer of an operand, before its first element or behind its last. The output
    /// of an operation with one may be an operand itself, with the same shape, type and strides, if
    /// each element of the output depends only on this operand's elements of the same row.
    ///
    /// # Errors
    /// The errors of `run`; [`Shape`](crate::Error) when an output overlaps itself, an operand
    /// otherwise, or another output; `Misuse` when it is a [prepared tensor](crate::Prepared)
    /// or a view of one, or of another type than [`out_dtype`](Op::out_dtype).
    pub fn run_into<'o>(&self, outs: impl Into<[&'o Tensor; N]>) -> Result<()> {
        self.context().submit_as(self.kind.name(), |to| self.record(to, outs))
    }

    /// Adds it to the given compute pass, command encoder or recorder.
    ///
    /// # Errors
    /// The errors of [`run_into`](Self::run_into); [`Misuse`](crate::Error) on the CPU executor,
    /// unless the recorder is its own, and for the recorder of another context.
    pub fn record<'o>(
        &self,
        to: &mut impl AsRecorder,
        outs: impl Into<[&'o Tensor; N]>,
    ) -> Result<()> {
        let (to, outs) = (&mut to.as_recorder(), outs.into());
        let computes = matches!(to.way(self.context())?, Way::Run);
        let steps = self.steps(outs)?;
        if computes
            && outs[0].elem_count() > 0
            && let Some(done) = self.kind.host(outs)
        {
            return done;
        }
        record(to, &steps)
    }

    /// The kernels that compute the outputs one after the other, and their calls: to read their
    /// [text](Kernel::wgsl), or to [check](Kernel::check) them.
    ///
    /// # Errors
    /// The errors of [`run_into`](Self::run_into).
    #[doc(hidden)]
    pub fn calls<'o>(&self, outs: impl Into<[&'o Tensor; N]>) -> Result<Vec<(Kernel, Call)>> {
        let kernel = |step: Step| ((*step.kernel()).clone(), step.call);
        Ok(self.steps(outs.into())?.into_iter().map(kernel).collect())
    }

    /// Like [`calls`](Self::calls), with other texts, for the mutation check: `text` gets the path
    /// and the text of a file, as [`texts`](super::texts) lists them.
    #[doc(hidden)]
    pub fn calls_of<'o>(
        &self,
        outs: impl Into<[&'o Tensor; N]>,
        text: impl Fn((&'static str, &'static str)) -> String,
    ) -> Result<Vec<(Kernel, Call)>> {
        let kernel = |step: Step| (step.made_of(&text), step.call);
        Ok(self.steps(outs.into())?.into_iter().map(kernel).collect())
    }

    fn context(&self) -> &Context {
        self.kind.first().context()
    }

    /// New outputs.
    fn zeros(&self) -> Result<[Result<Tensor>; N]> {
        let zeros = |(_, shape, dtype): Output| {
            Tensor::zeros(self.context(), self.dtype.unwrap_or(dtype), &shape)
        };
        Ok(self.kind.outputs()?.map(zeros))
    }

    fn steps(&self, outs: [&Tensor; N]) -> Result<Steps> {
        let (operation, wanted) = (self.kind.name(), self.kind.outputs()?);
        for (at, (out, (name, shape, dtype))) in outs.iter().zip(&wanted).enumerate() {
            self.context().same(out.context(), name)?;
            let takes = |kind| self.kind.takes(kind, *dtype);
            fits(operation, name, out, (shape, *dtype), self.dtype, takes)?;
            for other in &outs[..at] {
                apart(operation, name, out, other, false)?;
            }
        }
        if outs[0].elem_count() == 0 {
            return Ok(Steps::new());
        }
        cut::steps(&self.kind, outs, &K::steps, &K::part, &K::granule, &K::entries)
    }
}
