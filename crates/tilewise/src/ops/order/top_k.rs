//! The largest elements along the last axis.

use crate::ops::host::math::ordered;
use crate::ops::host::{Loop, Row};
use crate::ops::layout::{Axes, Sizes, float};
use crate::ops::op::{Op, Output, sealed::Lower};
use crate::ops::rows::Rows;
use crate::ops::texts::{Function, Steps, TOP_K};
use crate::tensor::Tensor;
use smallvec::smallvec;
use std::ops::Range;
use tilewise_core::{DType, Error, Result};

/// The operation of [`top_k`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct TopK {
    x: Tensor,
    k: usize,
}

/// The `k` largest elements along the last axis of `x`, \[…, n\], from the largest down: values
/// \[…, k\] in the type of `x`, and indices \[…, k\] as u32.
///
/// Among equal elements, the one with the lower index comes first. NaN counts as the largest, as in
/// PyTorch, and the two zeros are equal, as in [`arg_max`](crate::ops::arg_max). Values are exact.
/// The operation is made for a `k` up to 64 or so: the time grows with k·n.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let logits = Tensor::upload(&ctx, &[1.0f32, 5.0, 5.0, 3.0, 2.0, 0.0], &[2, 3])?;
/// let [values, indices] = ops::top_k(&logits, 2).run()?;
/// assert_eq!(values.read_blocking::<f32>()?, [5.0, 5.0, 3.0, 2.0]);
/// assert_eq!(indices.read_blocking::<u32>()?, [1, 2, 0, 1]);
/// # Ok(())
/// # }
/// ```
pub fn top_k(x: &Tensor, k: usize) -> Op<TopK, 2> {
    Op::new(TopK { x: x.clone(), k })
}

impl TopK {
    /// The rows of x, of the values, and of the indices.
    fn rows(&self, [values, indices]: [&Tensor; 2]) -> Result<Rows<3>> {
        let x = &self.x;
        let strides = [x.strides().into(), values.strides().into(), indices.strides().into()];
        let axes = Axes { shape: x.shape().into(), strides };
        Rows::new("top_k", axes, x.shape().len() - 1)
    }

    fn on_host(&self, outs: [&Tensor; 2]) -> Result<()> {
        let (TopK { ref x, k }, rows) = (self.clone(), self.rows(outs)?);
        let [values, indices] = outs;
        let outs = [&rows.view_of(values, 1, k), &rows.view_of(indices, 2, k)];
        let x = rows.view(x, 0);
        let each = Loop::new([Some(&x)], outs);
        each.run(|Row { inputs: [x], outs: [values, indices], .. }| {
            // Larger elements come first, and lower indices among equal elements.
            let key = |(i, x): (usize, &f32)| u64::from(!ordered(*x)) << 32 | i as u64;
            let mut keys: Vec<u64> = x.iter().enumerate().map(key).collect();
            if k < keys.len() {
                keys.select_nth_unstable(k);
                keys.truncate(k);
            }
            keys.sort_unstable();
            for ((value, index), key) in values.iter_mut().zip(indices).zip(keys) {
                *value = x[key as u32 as usize];
                *index = f32::from_bits(key as u32);
            }
        })
    }
}

impl Lower<2> for TopK {
    fn name(&self) -> &'static str {
        "top_k"
    }

    fn first(&self) -> &Tensor {
        &self.x
    }

    fn outputs(&self) -> Result<[Output; 2]> {
        let TopK { ref x, k } = *self;
        float("top_k", "x", x)?;
        let mut shape = Sizes::from(x.shape());
        match shape.last_mut() {
            Some(length) if k <= *length => *length = k,
            _ => {
                return Err(Error::Shape(format!(
                    "top_k: the {k} largest along the last axis of shape {:?}",
                    x.shape()
                )));
            }
        }
        Ok([("values", shape.clone(), x.dtype()), ("indices", shape, DType::U32)])
    }

    fn steps(&self, [values, indices]: [&Tensor; 2]) -> Result<Steps> {
        let TopK { ref x, k } = *self;
        let rows = self.rows([values, indices])?;
        let outs = [&rows.view_of(values, 1, k), &rows.view_of(indices, 2, k)];
        let inputs = [Some(&rows.view(x, 0))];
        let mut step = TOP_K.step("top_k", Function::NONE, &inputs, &outs)?;
        let call = step.call.constant("FLIP", 0u32);
        step.call = rows.dispatch(call, &x.context().0.caps).value("k", k as u32);
        Ok(smallvec![step])
    }

    fn host(&self, outs: [&Tensor; 2]) -> Option<Result<()>> {
        Some(self.on_host(outs))
    }

    fn part(&self, axis: usize, range: Range<usize>) -> Result<Option<Self>> {
        let TopK { ref x, k } = *self;
        if axis + 1 == x.shape().len() {
            return Ok(None);
        }
        Ok(Some(TopK { x: x.narrow(axis, range.start, range.len())?, k }))
    }
}
