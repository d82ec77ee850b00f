//! Reading elements of each row from places that indices name.

use crate::ops::host::{Loop, Row};
use crate::ops::layout::{float, words};
use crate::ops::op::{Op, Output, only, sealed::Lower};
use crate::ops::rows::{counted, in_blocks, singly};
use crate::ops::texts::{Function, Steps, TAKE_ALONG};
use crate::tensor::Tensor;
use smallvec::smallvec;
use std::ops::Range;
use tilewise_core::{Error, Result};

/// The operation of [`take_along`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct TakeAlong {
    x: Tensor,
    indices: Tensor,
}

/// The elements of each row of `x`, \[m, n\], that the row of `indices`, \[m, k\] of u32, names:
/// `out[i, j] = x[i, indices[i, j]]`, \[m, k\]. An index beyond the row gives NaN.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let scores = Tensor::upload(&ctx, &[0.1f32, 0.2, 0.7, 0.5, 0.4, 0.1], &[2, 3])?;
/// let experts = Tensor::upload(&ctx, &[2u32, 1, 0, 1], &[2, 2])?;
/// let y = ops::take_along(&scores, &experts).run()?;
/// assert_eq!(y.read_blocking::<f32>()?, [0.7, 0.2, 0.5, 0.4]);
/// # Ok(())
/// # }
/// ```
pub fn take_along(x: &Tensor, indices: &Tensor) -> Op<TakeAlong> {
    Op::new(TakeAlong { x: x.clone(), indices: indices.clone() })
}

impl TakeAlong {
    fn on_host(&self, out: &Tensor) -> Result<()> {
        let inputs = [Some(&self.x), Some(&self.indices)];
        Loop::new(inputs, [out]).run(|Row { inputs: [x, indices], outs: [y], .. }| {
            for (y, index) in y.iter_mut().zip(indices) {
                *y = x.get(index.to_bits() as usize).copied().unwrap_or(f32::NAN);
            }
        })
    }
}

impl Lower for TakeAlong {
    fn name(&self) -> &'static str {
        "take_along"
    }

    fn first(&self) -> &Tensor {
        &self.x
    }

    fn outputs(&self) -> Result<[Output; 1]> {
        let TakeAlong { x, indices } = self;
        float("take_along", "x", x)?;
        words("take_along", "indices", indices)?;
        x.context().same(indices.context(), "indices")?;
        match (x.shape(), indices.shape()) {
            (&[rows, _], &[m, k]) if m == rows => only(smallvec![rows, k], x.dtype()),
            (x, indices) => Err(Error::Shape(format!(
                "take_along: x has shape {x:?} and indices {indices:?}, wanted two dimensions of \
                 each and as many rows"
            ))),
        }
    }

    fn steps(&self, [out]: [&Tensor; 1]) -> Result<Steps> {
        let (TakeAlong { x, indices }, caps) = (self, &self.x.context().0.caps);
        let &[rows, k] = out.shape() else { return Ok(Steps::new()) };
        let inputs = [Some(&singly(x)), Some(indices)];
        let mut step = TAKE_ALONG.step("take_along", Function::NONE, &inputs, &[out])?;
        let rows = counted("take_along", rows)?;
        step.call = in_blocks("take_along", step.call, rows, k, caps)?
            .value("columns", counted("take_along", x.shape()[1])?)
            .value("beyond", f32::NAN.to_bits());
        Ok(smallvec![step])
    }

    fn host(&self, [out]: [&Tensor; 1]) -> Option<Result<()>> {
        Some(self.on_host(out))
    }

    fn part(&self, axis: usize, range: Range<usize>) -> Result<Option<Self>> {
        let part = |tensor: &Tensor| tensor.narrow(axis, range.start, range.len());
        let x = if axis == 0 { part(&self.x)? } else { self.x.clone() };
        Ok(Some(TakeAlong { x, indices: part(&self.indices)? }))
    }
}
