//! Softmax along the last axis.

use super::Rows;
use crate::ops::layout::{Axes, broadcast, float, part_of};
use crate::ops::op::{Op, Output, only, sealed::Lower};
use crate::ops::texts::{Function, SOFTMAX, Steps};
use crate::tensor::Tensor;
use smallvec::smallvec;
use std::ops::Range;
use tilewise_core::{Error, Result};

/// The operation of [`softmax`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Softmax {
    x: Tensor,
    scale: f32,
    mask: Option<Tensor>,
    causal: Option<usize>,
}

/// exp(x) / Σ exp(x) along the last axis of `x`, which may have any shape with at least one axis.
///
/// A row of only −∞ gives zeros (PyTorch gives NaN). A row with +∞ or NaN among its scores gives
/// NaN.
///
/// With d the distance between the largest and the smallest finite score of a row, n its length and
/// ε = 2⁻²³, the relative error is at most (20 + 5·d + n/2)·ε, apart from the rounding of scores by
/// scale and mask and of the output to its type; results below 2⁻¹²⁶ may be 0.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let scores = Tensor::upload(&ctx, &[4.0f32, 4.0, 4.0, 4.0], &[2, 2])?;
/// let p = ops::softmax(&scores).scale(0.5).causal(0).run()?;
/// assert_eq!(p.read_blocking::<f32>()?, [1.0, 0.0, 0.5, 0.5]);
/// # Ok(())
/// # }
/// ```
pub fn softmax(x: &Tensor) -> Op<Softmax> {
    Op::new(Softmax { x: x.clone(), scale: 1.0, mask: None, causal: None })
}

impl Op<Softmax> {
    /// Multiplies the scores by a factor first: 1/√D in attention.
    pub fn scale(mut self, scale: f32) -> Self {
        self.kind.scale = scale;
        self
    }

    /// Adds a mask to the scaled scores: 0 for scores that count, −∞ for scores that do not. It is
    /// broadcast to the shape of the scores as numpy does.
    pub fn mask(mut self, mask: &Tensor) -> Self {
        self.kind.mask = Some(mask.clone());
        self
    }

    /// Counts the scores of row i (along the second-last axis) only up to column i + `offset`.
    /// `offset` is the number of keys before the first query, 0 without a cache.
    pub fn causal(mut self, offset: usize) -> Self {
        self.kind.causal = Some(offset);
        self
    }
}

impl Lower for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn first(&self) -> &Tensor {
        &self.x
    }

    fn outputs(&self) -> Result<[Output; 1]> {
        let Softmax { x, mask, causal, .. } = self;
        float("softmax", "x", x)?;
        let axes = 1 + usize::from(causal.is_some());
        if x.shape().len() < axes {
            return Err(Error::Shape(format!(
                "softmax: x has shape {:?}, wanted {axes} dimensions at least",
                x.shape()
            )));
        }
        if let Some(mask) = mask {
            float("softmax", "the mask", mask)?;
            x.context().same(mask.context(), "the mask")?;
            if broadcast(mask, x.shape()).is_none() {
                return Err(Error::Shape(format!(
                    "softmax: a mask of shape {:?} for scores of shape {:?}",
                    mask.shape(),
                    x.shape()
                )));
            }
        }
        only(x.shape().into(), x.dtype())
    }

    fn steps(&self, [out]: [&Tensor; 1]) -> Result<Steps> {
        let (x, shape) = (&self.x, self.x.shape());
        let mask = self.mask.as_ref();
        let of_mask = mask.and_then(|mask| broadcast(mask, shape));
        let strides = [
            x.strides().into(),
            of_mask.unwrap_or_else(|| smallvec![0; shape.len()]),
            out.strides().into(),
        ];
        let axes = Axes { shape: shape.into(), strides };
        let rows = Rows::new("softmax", axes, shape.len() - 1)?;
        let inputs = [Some(rows.view(x, 0)), mask.map(|mask| rows.view(mask, 1))];
        let inputs = inputs.each_ref().map(Option::as_ref);
        let mut step = SOFTMAX.step("softmax", Function::NONE, &inputs, &[&rows.view(out, 2)])?;
        // All offsets beyond the last column have the same effect.
        let before = self.causal.map(|offset| offset.min(rows.length()) as u32);
        let queries = if before.is_some() { shape[shape.len() - 2] as u32 } else { 1 };
        step.call = rows
            .dispatch_kept(step.call, &x.context().0.caps)
            .constant("MASKED", mask.is_some())
            .constant("CAUSAL", before.is_some())
            .value("scale", self.scale)
            .value("queries", queries)
            .value("before", before.unwrap_or_default());
        Ok(smallvec![step])
    }

    fn part(&self, axis: usize, range: Range<usize>) -> Result<Option<Self>> {
        let rank = self.x.shape().len();
        if axis + 1 == rank {
            return Ok(None);
        }
        let part = |tensor| part_of(tensor, rank, axis, &range);
        let first = if axis + 2 == rank { range.start } else { 0 };
        Ok(Some(Softmax {
            x: part(&self.x)?,
            mask: self.mask.as_ref().map(part).transpose()?,
            causal: self.causal.map(|offset| offset.saturating_add(first)),
            scale: self.scale,
        }))
    }
}
