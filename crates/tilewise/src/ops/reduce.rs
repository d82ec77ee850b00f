//! Sums and largest elements along an axis.

use super::layout::{Axes, Sizes, float};
use super::op::{Op, sealed::Plan};
use super::rows::Rows;
use super::texts::{Function, LARGEST, REDUCE, SUM, Steps};
use crate::tensor::Tensor;
use smallvec::smallvec;
use tilewise_core::{DType, Error, Result};

/// The operation of [`sum`], [`max`] and [`arg_max`].
#[derive(Clone, Debug)]
pub struct Reduce {
    kind: Kind,
    x: Tensor,
    axis: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sum,
    Max,
    ArgMax,
}

/// The sum along an axis, which the output does not have: 0 of no elements.
///
/// With n elements and ε = 2⁻²³ the error is at most (n/8 + 8)·ε·Σ|x|, apart from the output's
/// rounding.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
/// assert_eq!(ops::sum(&x, 0).run()?.read_blocking::<f32>()?, [4.0, 6.0]);
/// # Ok(())
/// # }
/// ```
pub fn sum(x: &Tensor, axis: usize) -> Op<Reduce> {
    Op::new(Reduce { kind: Kind::Sum, x: x.clone(), axis })
}

/// The largest element along an axis, which the output does not have. NaN counts as the largest, as
/// in PyTorch. It is exact, but that −0 may come as 0.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0, -4.0], &[2, 2])?;
/// assert_eq!(ops::max(&x, 1).run()?.read_blocking::<f32>()?, [2.0, 3.0]);
/// # Ok(())
/// # }
/// ```
pub fn max(x: &Tensor, axis: usize) -> Op<Reduce> {
    Op::new(Reduce { kind: Kind::Max, x: x.clone(), axis })
}

/// The index of the largest element along an axis, as u32: the first of several. NaN counts as the
/// largest, as in PyTorch.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let logits = Tensor::upload(&ctx, &[1.0f32, 5.0, 5.0, 3.0, 2.0, 0.0], &[2, 3])?;
/// assert_eq!(ops::arg_max(&logits, 1).run()?.read_blocking::<u32>()?, [1, 0]);
/// # Ok(())
/// # }
/// ```
pub fn arg_max(x: &Tensor, axis: usize) -> Op<Reduce> {
    Op::new(Reduce { kind: Kind::ArgMax, x: x.clone(), axis })
}

impl Kind {
    /// How a row's result is stored.
    fn function(self) -> Function {
        let (header, text) = match self {
            Kind::Sum => (SUM, "fn keep(at: u32, part: Part) { y_store(at, part); }\n"),
            Kind::Max => {
                (LARGEST, "fn keep(at: u32, part: Part) { y_store(at, number(part.x)); }\n")
            }
            Kind::ArgMax => (LARGEST, "fn keep(at: u32, part: Part) { y[at] = part.y; }\n"),
        };
        Function { header: Some(header), text }
    }
}

impl Plan for Reduce {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Sum => "sum",
            Kind::Max => "max",
            Kind::ArgMax => "arg_max",
        }
    }

    fn first(&self) -> &Tensor {
        &self.x
    }

    fn output(&self) -> Result<(Sizes, DType)> {
        let Reduce { kind, ref x, axis } = *self;
        let name = self.name();
        float(name, "x", x)?;
        let mut shape = Sizes::from(x.shape());
        if axis >= shape.len() {
            return Err(Error::Shape(format!(
                "{name}: axis {axis} of shape {:?}, which has {} axes",
                x.shape(),
                shape.len()
            )));
        }
        let length = shape.remove(axis);
        if length == 0 && kind != Kind::Sum && !shape.contains(&0) {
            return Err(Error::Shape(format!(
                "{name}: of shape {:?} along axis {axis}: no element is the largest of 0",
                x.shape()
            )));
        }
        Ok((shape, if kind == Kind::ArgMax { DType::U32 } else { x.dtype() }))
    }

    fn steps(&self, out: &Tensor) -> Result<Steps> {
        let Reduce { kind, ref x, axis } = *self;
        let mut of_out = Sizes::from(out.strides());
        of_out.insert(axis, 0);
        let axes = Axes { shape: x.shape().into(), strides: [x.strides().into(), of_out] };
        let rows = Rows::new(self.name(), axes, axis)?;
        let (view, caps) = (rows.view(x, 0), x.context().caps());
        let step = |out: &Tensor, segments: usize| {
            let mut step = REDUCE.step(self.name(), kind.function(), &[Some(&view)], &[out])?;
            step.call = rows.dispatch_segments(self.name(), step.call, segments, caps)?;
            Ok::<_, Error>(step)
        };
        let segments = if kind == Kind::ArgMax { 1 } else { rows.segments(caps) };
        if segments == 1 {
            return Ok(smallvec![step(&rows.view_of(out, 1, 1), 1)?]);
        }
        // The results of segments, and then of these.
        let mut shape: Sizes = smallvec![segments];
        shape.extend_from_slice(out.shape());
        let parts = Tensor::zeros(x.context(), DType::F32, &shape)?;
        let first = step(&parts.laid_out(&[parts.elem_count(), 1], &[1, 0]), segments)?;
        let mut steps = Reduce { kind, x: parts, axis: 0 }.steps(out)?;
        steps.insert(0, first);
        Ok(steps)
    }
}
