//! Writing rows into a cache, from a position on.

use super::{Rows, in_blocks};
use crate::ops::host::{Loop, Row};
use crate::ops::layout::{Axes, rank};
use crate::ops::op::{Op, Output, only, sealed::Lower};
use crate::ops::position::{Position, Room};
use crate::ops::texts::{APPEND, Steps};
use crate::tensor::Tensor;
use smallvec::smallvec;
use std::ops::Range;
use tilewise_core::{Error, Result};

/// The operation of [`append`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Append {
    x: Tensor,
    room: Room,
    position: Position,
}

/// Writes the rows of `x`, \[…, T, D\] of any type, into an output \[…, room, D\]: row t to row
/// position + t. An output of floats may have another type than `x`.
///
/// ```
/// use half::f16;
/// use tilewise::{Context, DType, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let cache = Tensor::zeros(&ctx, DType::F16, &[3, 2])?;
/// let x = Tensor::upload(&ctx, &[1.0f32, 2.0], &[1, 2])?;
/// let position = Tensor::upload(&ctx, &[1u32], &[1])?;
/// ops::append(&x, 3, &position).run_into(&cache)?;
/// let wanted = [0.0, 0.0, 1.0, 2.0, 0.0, 0.0];
/// assert_eq!(cache.read_blocking::<f16>()?, wanted.map(f16::from_f32));
/// # Ok(())
/// # }
/// ```
///
/// Other rows are 0 in a new tensor, and keep their contents in a given one. Rows that a tensor
/// places beyond the room are not written; a number beyond it is [`Shape`](crate::Error). Elements
/// keep their bits or are rounded once, except that a NaN of 16 bits becomes quiet.
pub fn append(x: &Tensor, room: usize, position: impl Into<Position>) -> Op<Append> {
    Op::new(Append { x: x.clone(), room: Room::new(room), position: position.into() })
}

impl Append {
    /// The rows of x and of the position.
    fn rows(&self) -> Result<Rows<2>> {
        let Append { x, position, .. } = self;
        let strides = [x.strides().into(), position.strides("append", x)?];
        let last = x.shape().len() - 1;
        Rows::new("append", Axes { shape: x.shape().into(), strides }, last)
    }

    fn on_host(&self, out: &Tensor) -> Result<()> {
        let Append { x, room, position } = self;
        if x.elem_count() == 0 {
            return Ok(());
        }
        let rows = self.rows()?;
        let tensor = position.tensor().map(|tensor| rows.view_of(tensor, 1, 1));
        let placed = position.on_host(tensor.as_ref(), u32::MAX as usize)?;
        let moves = placed.moves(rows.count as usize, x.shape()[x.shape().len() - 2], room.rows);
        let out = Rows::of("append", out, rows.length())?.view(out, 0);
        let x = rows.view(x, 0);
        let each = Loop::new([Some(&x)], [&out]).moving(&moves);
        each.run(|Row { inputs: [x], outs: [y], .. }| y.copy_from_slice(x))
    }
}

impl Lower for Append {
    fn name(&self) -> &'static str {
        "append"
    }

    fn first(&self) -> &Tensor {
        &self.x
    }

    fn outputs(&self) -> Result<[Output; 1]> {
        let Append { x, room, position } = self;
        rank("append", "x", x)?;
        if x.shape().len() < 2 {
            return Err(Error::Shape(format!(
                "append: x has shape {:?}, wanted [..., T, D]",
                x.shape()
            )));
        }
        position.strides("append", x)?;
        position.fits("append", x, room.rows, "the output")?;
        only(room.shape(x), x.dtype())
    }

    fn steps(&self, [out]: [&Tensor; 1]) -> Result<Steps> {
        let Append { x, room, position } = self;
        if x.elem_count() == 0 {
            return Ok(Steps::new());
        }
        let rows = self.rows()?;
        let tensor = position.tensor().map(|tensor| rows.view(tensor, 1));
        let inputs = [Some(&rows.view(x, 0)), tensor.as_ref()];
        let of_out = Rows::of("append", out, rows.length())?;
        let out = of_out.view(out, 0);
        let mut step = APPEND.step("append", position.function(), &inputs, &[&out])?;
        let caps = &x.context().0.caps;
        let call = in_blocks("append", step.call, rows.count, rows.length(), caps)?;
        step.call = room.values(call, position, x);
        Ok(smallvec![step])
    }

    fn host(&self, [out]: [&Tensor; 1]) -> Option<Result<()>> {
        Some(self.on_host(out))
    }

    fn part(&self, axis: usize, range: Range<usize>) -> Result<Option<Self>> {
        let Append { x, room, position } = self;
        let rank = x.shape().len();
        if axis + 2 == rank {
            return Ok(Some(Append { room: room.part(&range), ..self.clone() }));
        }
        // The axis behind the output's is that of the operand's rows.
        let axis = if axis == rank { rank - 2 } else { axis };
        Ok(Some(Append {
            x: x.narrow(axis, range.start, range.len())?,
            room: *room,
            position: position.part(rank, axis, &range)?,
        }))
    }

    fn entries(&self) -> usize {
        self.x.shape()[self.x.shape().len() - 2]
    }
}
