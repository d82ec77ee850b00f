//! Writing rows to places that indices name.

use crate::host::memory;
use crate::ops::elementwise::counted_from;
use crate::ops::host::{self, Loop, Row};
use crate::ops::layout::{Axes, Sizes, rank, vector};
use crate::ops::op::{Op, Output, only, sealed::Lower};
use crate::ops::rows::{in_blocks, one_each};
use crate::ops::texts::{Function, OWNERS, SCATTER, Steps};
use crate::tensor::Tensor;
use std::ops::Range;
use tilewise_core::{DType, Error, Result};

/// The operation of [`scatter`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Scatter {
    x: Tensor,
    indices: Tensor,
    rows: usize,
    /// Rows of the whole output before those of this part.
    first: usize,
}

/// Writes the rows of `x`, \[m, …\] of any type, to the places that `indices`, \[m\] of u32, name
/// in an output \[rows, …\]: `out[indices[i]] = x[i]`. Elements keep their bits, except that a NaN
/// of 16 bits becomes quiet.
///
/// Rows that no index names are 0 in a new tensor, and keep their contents in a given one. An index
/// beyond the rows is skipped. If indices are equal, the last one counts. The opposite is
/// [`gather`](crate::ops::gather()).
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
/// let places = Tensor::upload(&ctx, &[2u32, 0], &[2])?;
/// let y = ops::scatter(&x, &places, 3).run()?;
/// assert_eq!(y.read_blocking::<f32>()?, [3.0, 4.0, 0.0, 0.0, 1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
pub fn scatter(x: &Tensor, indices: &Tensor, rows: usize) -> Op<Scatter> {
    Op::new(Scatter { x: x.clone(), indices: indices.clone(), rows, first: 0 })
}

impl Scatter {
    fn on_host(&self, out: &Tensor) -> Result<()> {
        let Scatter { ref x, ref indices, rows, .. } = *self;
        let indices = host::words(indices)?;
        let strides = [x.strides()[1..].into(), out.strides()[1..].into()];
        let axes = Axes { shape: x.shape()[1..].into(), strides }.of_entries();
        let (_, inner) = axes.row();
        // The last of equal indices counts.
        let mut owners = memory::filled(rows, 0)?;
        for (from, &to) in indices.iter().enumerate() {
            if let Some(owner) = owners.get_mut(to as usize) {
                *owner = from;
            }
        }
        let mut moves = Vec::new();
        for (from, &to) in indices.iter().enumerate() {
            let to = to as usize;
            if owners.get(to) == Some(&from) {
                moves.extend((0..inner).map(|i| [from * inner + i, to * inner + i]));
            }
        }
        let (x, out) = (axes.entries(x, 0), axes.entries(out, 1));
        let each = Loop::new([Some(&x)], [&out]).moving(&moves);
        each.run(|Row { inputs: [x], outs: [y], .. }| y.copy_from_slice(x))
    }
}

impl Lower for Scatter {
    fn name(&self) -> &'static str {
        "scatter"
    }

    fn first(&self) -> &Tensor {
        &self.x
    }

    fn outputs(&self) -> Result<[Output; 1]> {
        let Scatter { x, indices, rows, .. } = self;
        rank("scatter", "x", x)?;
        let mut shape = Sizes::from(x.shape());
        let Some(first) = shape.first_mut() else {
            return Err(Error::Shape("scatter: x has shape [], wanted rows".into()));
        };
        vector("scatter", "indices", indices, Some(*first))?;
        x.context().same(indices.context(), "indices")?;
        *first = *rows;
        only(shape, x.dtype())
    }

    fn takes(&self, dtype: DType, own: DType) -> bool {
        dtype == own
    }

    fn steps(&self, [out]: [&Tensor; 1]) -> Result<Steps> {
        let Scatter { x, indices, rows, first } = self;
        let (indices, mut steps) = counted_from(*first, indices)?;
        let (count, caps) = (x.shape()[0], &x.context().0.caps);
        if count == 0 {
            return Ok(Steps::new());
        }
        // Among equal indices the largest number wins, whatever the order of invocations.
        let owners = Tensor::zeros(x.context(), DType::U32, &[*rows])?;
        let mut owned = OWNERS.step("scatter", Function::NONE, &[Some(&indices)], &[&owners])?;
        owned.call = one_each("scatter", owned.call, count, caps)?;

        let strides = [x.strides()[1..].into(), out.strides()[1..].into()];
        let axes = Axes { shape: x.shape()[1..].into(), strides }.of_entries();
        let inputs = [Some(&axes.entries(x, 0)), Some(&indices), Some(&owners)];
        let mut moved =
            SCATTER.step("scatter", Function::NONE, &inputs, &[&axes.entries(out, 1)])?;
        let (length, outer) = axes.row();
        let all = count.checked_mul(outer).and_then(|all| u32::try_from(all).ok());
        let all = all.ok_or_else(|| {
            Error::Shape(format!(
                "overflow: scatter: {count} · {outer} rows: kernels count to {}",
                u32::MAX
            ))
        })?;
        moved.call =
            in_blocks("scatter", moved.call, all, length, caps)?.value("inner", outer as u32);
        steps.extend([owned, moved]);
        Ok(steps)
    }

    fn host(&self, [out]: [&Tensor; 1]) -> Option<Result<()>> {
        Some(self.on_host(out))
    }

    fn part(&self, axis: usize, range: Range<usize>) -> Result<Option<Self>> {
        let part = |tensor: &Tensor, axis| tensor.narrow(axis, range.start, range.len());
        let (own, Scatter { x, indices, .. }) = (self.clone(), self);
        Ok(Some(match axis {
            0 => Scatter { rows: range.len(), first: self.first + range.start, ..own },
            _ if axis < x.shape().len() => Scatter { x: part(x, axis)?, ..own },
            // The last of several rows wins, and so does the last part.
            _ => Scatter { x: part(x, 0)?, indices: part(indices, 0)?, ..own },
        }))
    }

    fn entries(&self) -> usize {
        self.x.shape()[0]
    }
}
