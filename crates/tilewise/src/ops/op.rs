//! Runs operations with one output.

use super::cut;
use super::texts::{Step, Steps};
use crate::context::Context;
use crate::kernel::{Call, Kernel};
use crate::recorder::{AsRecorder, Recorder, Way};
use crate::tensor::Tensor;
use tilewise_core::{DType, Error, Result};

/// An operation on tensors, made by a function of [`ops`](crate::ops). It owns its operands, which
/// share their storage.
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
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is computed until it is run or recorded"]
pub struct Op<K> {
    pub(super) kind: K,
    dtype: Option<DType>,
}

/// An operation for [`Op`], such as [`Softmax`](super::Softmax).
pub trait Operation: sealed::Plan {}

impl<K: sealed::Plan> Operation for K {}

pub(super) mod sealed {
    use super::{DType, Result, Steps, Tensor};
    use crate::ops::layout::Sizes;
    use std::ops::Range;

    /// How an operation turns its tensors into kernels.
    pub trait Plan: Sized {
        /// The name for messages.
        fn name(&self) -> &'static str;

        /// An operand; the operation runs on its context.
        fn first(&self) -> &Tensor;

        /// Shape and type of the output, once the operands are found to fit together.
        fn output(&self) -> Result<(Sizes, DType)>;

        /// Whether the output may be of this type; `own` is its default type.
        fn takes(&self, dtype: DType, own: DType) -> bool {
            dtype == own || dtype.is_float() && own.is_float()
        }

        /// The kernels, for an output of the right shape and type.
        fn steps(&self, out: &Tensor) -> Result<Steps>;

        /// Gives the operation for a range along an axis of the output, or none if its kernels need
        /// operands from outside that range.
        fn part(&self, _axis: usize, _range: Range<usize>) -> Result<Option<Self>> {
            Ok(None)
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
        return Err(Error::Strides(format!(
            "{operation}: elements of {name} overlap: shape {:?} with strides {:?}; run() makes \
             a tensor whose elements do not",
            out.shape(),
            out.strides()
        )));
    }
    Ok(())
}

impl<K: sealed::Plan> Op<K> {
    pub(super) fn new(kind: K) -> Self {
        Op { kind, dtype: None }
    }
}

impl<K: Operation> Op<K> {
    /// Type of the output that [`run`](Self::run) makes. By default it is the type of the operands,
    /// or f32 if these differ; u32 for indices. A given output must have the type named here.
    pub fn out_dtype(mut self, dtype: DType) -> Self {
        self.dtype = Some(dtype);
        self
    }

    /// Computes into a new tensor. On a GPU the work is submitted, not waited for.
    ///
    /// # Errors
    /// `Shape` for operands that do not fit together, `Unsupported` for their types, `Overflow`,
    /// `TooLarge`, `MissingFeature` for what exceeds the device; `WrongContext` for operands of
    /// different contexts; `Device`, `DeviceLost`.
    pub fn run(&self) -> Result<Tensor> {
        let (shape, dtype) = self.kind.output()?;
        let out = Tensor::zeros(self.context(), self.dtype.unwrap_or(dtype), &shape)?;
        self.run_into(&out)?;
        Ok(out)
    }

    /// Computes into `out`, which may be any view whose elements do not overlap. It may lie in the
    /// buffer of an operand, before its first element or behind its last. It may be an operand
    /// itself, with the same shape, type and strides, if each element of the output depends only on
    /// this operand's elements of the same row.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run); `Aliased` when `out` overlaps an operand otherwise;
    /// `Strides` when its elements overlap; `Misuse` when it is a [prepared
    /// tensor](crate::PreparedTensor) or a view of one, or of another type than
    /// [`out_dtype`](Self::out_dtype).
    pub fn run_into(&self, out: &Tensor) -> Result<()> {
        self.context().submit_as(self.kind.name(), |to| self.record(to, out))
    }

    /// Adds it to the given compute pass, command encoder or recorder.
    ///
    /// # Errors
    /// The errors of [`run_into`](Self::run_into); `WrongContext` on the CPU executor, unless the
    /// recorder is its own, and for the recorder of another context.
    pub fn record(&self, to: &mut impl AsRecorder, out: &Tensor) -> Result<()> {
        let to = &mut to.as_recorder();
        match to.way(self.context())? {
            Way::Plan(_) => Ok(()),
            _ => record(to, &self.steps(out)?),
        }
    }

    /// The kernels that compute `out` one after the other, and their calls: to read their
    /// [text](Kernel::wgsl), or to [check](Kernel::check) them.
    ///
    /// # Errors
    /// The errors of [`run_into`](Self::run_into).
    pub fn calls(&self, out: &Tensor) -> Result<Vec<(Kernel, Call)>> {
        let kernel = |step: Step| ((*step.kernel()).clone(), step.call);
        Ok(self.steps(out)?.into_iter().map(kernel).collect())
    }

    /// Like [`calls`](Self::calls), with other texts, for the mutation check: `text` gets the path
    /// and the text of a file, as [`texts`](super::texts) lists them.
    #[doc(hidden)]
    pub fn calls_of(
        &self,
        out: &Tensor,
        text: impl Fn((&'static str, &'static str)) -> String,
    ) -> Result<Vec<(Kernel, Call)>> {
        let kernel = |step: Step| (step.made_of(&text), step.call);
        Ok(self.steps(out)?.into_iter().map(kernel).collect())
    }

    fn context(&self) -> &Context {
        self.kind.first().context()
    }

    fn steps(&self, out: &Tensor) -> Result<Steps> {
        let (name, (shape, dtype)) = (self.kind.name(), self.kind.output()?);
        self.context().same(out.context(), "the output")?;
        let takes = |kind| self.kind.takes(kind, dtype);
        fits(name, "the output", out, (&shape, dtype), self.dtype, takes)?;
        if out.elem_count() == 0 {
            return Ok(Steps::new());
        }
        cut::steps(&self.kind, [out], &|kind, [out]| kind.steps(out), &K::part, &K::entries)
    }
}
