//! Reading rows from places that indices name.

use crate::ops::elementwise::counted_from;
use crate::ops::host::{self, Loop, Row};
use crate::ops::layout::{Axes, Sizes, rank, vector};
use crate::ops::op::{Op, Output, only, sealed::Lower};
use crate::ops::rows::in_blocks;
use crate::ops::texts::{Function, GATHER, Steps};
use crate::tensor::Tensor;
use std::ops::Range;
use tilewise_core::{DType, Error, Result};

/// The operation of [`gather`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Gather {
    x: Tensor,
    indices: Tensor,
    zeros: bool,
    /// Entries of the whole operand before those of `x`. A later part writes nothing for indices
    /// whose entries it does not have.
    first: usize,
}

/// The entries of `x`, \[n, …\] of any type, that `indices`, \[m\] of u32, name along the first
/// axis: `out[i] = x[indices[i]]`, \[m, …\]. Elements keep their bits, except that a NaN of 16 bits
/// becomes quiet.
///
/// An index beyond `x` gives NaN; for integers it gives `i32::MIN` or `u32::MAX`, which are no
/// indices either. The opposite is [`scatter`](crate::ops::scatter()). [`Take`](crate::Take) takes
/// rows of quantized tables, and the same rows of every matrix of a stack.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
/// let order = Tensor::upload(&ctx, &[1u32, 1, 0], &[3])?;
/// let y = ops::gather(&x, &order).run()?;
/// assert_eq!(y.read_blocking::<f32>()?, [3.0, 4.0, 3.0, 4.0, 1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
pub fn gather(x: &Tensor, indices: &Tensor) -> Op<Gather> {
    Op::new(Gather { x: x.clone(), indices: indices.clone(), zeros: false, first: 0 })
}

impl Op<Gather> {
    /// Gives zeros for an index beyond `x`.
    pub fn or_zeros(mut self) -> Self {
        self.kind.zeros = true;
        self
    }
}

impl Gather {
    /// The bits of what an index beyond `x` gives.
    fn beyond(&self) -> u32 {
        match self.x.dtype() {
            _ if self.zeros => 0,
            DType::I32 => i32::MIN as u32,
            DType::U32 => u32::MAX,
            DType::F32 | DType::F16 | DType::BF16 => f32::NAN.to_bits(),
        }
    }

    fn on_host(&self, out: &Tensor) -> Result<()> {
        let (x, indices) = (&self.x, host::words(&self.indices)?);
        let strides = [x.strides()[1..].into(), out.strides()[1..].into()];
        let axes = Axes { shape: x.shape()[1..].into(), strides }.of_entries();
        let ((_, inner), entries) = (axes.row(), x.shape()[0]);
        let (x, out) = (axes.entries(x, 0), axes.entries(out, 1));
        let (each, beyond) = (Loop::new([], [&out]), f32::from_bits(self.beyond()));
        each.beside(&[&x]).run(|Row { number, outs: [y], others, scratch, .. }| {
            let entry = indices[number / inner] as usize;
            if entry < entries {
                let row = entry * inner + number % inner;
                y.copy_from_slice(others[0].row(row, &mut scratch[0]));
            } else {
                y.fill(beyond);
            }
        })
    }
}

impl Lower for Gather {
    fn name(&self) -> &'static str {
        "gather"
    }

    fn first(&self) -> &Tensor {
        &self.x
    }

    fn outputs(&self) -> Result<[Output; 1]> {
        let Gather { x, indices, .. } = self;
        rank("gather", "x", x)?;
        vector("gather", "indices", indices, None)?;
        x.context().same(indices.context(), "indices")?;
        let mut shape = Sizes::from(x.shape());
        let Some(first) = shape.first_mut() else {
            return Err(Error::Shape("gather: x has shape [], wanted entries".into()));
        };
        *first = indices.elem_count();
        only(shape, x.dtype())
    }

    fn takes(&self, dtype: DType, own: DType) -> bool {
        dtype == own
    }

    fn steps(&self, [out]: [&Tensor; 1]) -> Result<Steps> {
        let Gather { x, indices, first, .. } = self;
        let (indices, mut steps) = counted_from(*first, indices)?;
        let caps = &x.context().0.caps;
        let strides = [x.strides()[1..].into(), out.strides()[1..].into()];
        let axes = Axes { shape: x.shape()[1..].into(), strides }.of_entries();
        let (length, inner) = axes.row();
        let rows = out.shape()[0].checked_mul(inner).and_then(|rows| u32::try_from(rows).ok());
        let rows = rows.ok_or_else(|| {
            Error::Shape(format!(
                "overflow: gather: {} · {inner} rows: kernels count to {}",
                out.shape()[0],
                u32::MAX
            ))
        })?;
        let function = if x.dtype().is_float() { "float" } else { "integer" };
        let inputs = [Some(&axes.entries(x, 0)), Some(&indices)];
        let mut step = GATHER.step(
            "gather",
            Function::new("absent", function),
            &inputs,
            &[&axes.entries(out, 1)],
        )?;
        step.call = in_blocks("gather", step.call, rows, length, caps)?
            .constant("FILLS", *first == 0)
            .value("inner", inner as u32)
            .value("entries", x.shape()[0] as u32)
            .value("beyond", self.beyond());
        steps.push(step);
        Ok(steps)
    }

    fn host(&self, [out]: [&Tensor; 1]) -> Option<Result<()>> {
        Some(self.on_host(out))
    }

    fn part(&self, axis: usize, range: Range<usize>) -> Result<Option<Self>> {
        let part = |tensor: &Tensor| tensor.narrow(axis, range.start, range.len());
        let own = self.clone();
        Ok(Some(match axis {
            0 => Gather { indices: part(&self.indices)?, ..own },
            _ if axis < self.x.shape().len() => Gather { x: part(&self.x)?, ..own },
            _ => Gather {
                x: self.x.narrow(0, range.start, range.len())?,
                first: self.first + range.start,
                ..own
            },
        }))
    }

    fn entries(&self) -> usize {
        self.x.shape()[0]
    }
}
