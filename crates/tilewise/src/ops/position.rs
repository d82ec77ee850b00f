//! Positions: a number, or u32 on the device.

use super::host;
use super::layout::{Sizes, words};
use super::texts::Function;
use crate::kernel::Call;
use crate::tensor::Tensor;
use smallvec::smallvec;
use std::ops::Range;
use tilewise_core::{Error, Result};

/// The most places that positions count, and keys, and windows, where these are compared.
pub(super) const FAR: usize = 1 << 30;

/// The place of the first row of an operand: a number, or a tensor of u32 on the device. It is made
/// of either; calls that take `impl Into<Position>` take a number or `&tensor`.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let scores = Tensor::upload(&ctx, &[4.0f32, 4.0, 4.0], &[1, 3])?;
/// let position = Tensor::upload(&ctx, &[1u32], &[1])?;
/// for position in [ops::Position::from(1), ops::Position::from(&position)] {
///     let p = ops::softmax(&scores).causal(position).run()?;
///     assert_eq!(p.read_blocking::<f32>()?, [0.5, 0.5, 0.0]);
/// }
/// # Ok(())
/// # }
/// ```
///
/// A tensor has one element for all rows, or one for each entry along the first axes of the
/// operand, apart from its last two: \[B\] for an operand \[B, heads, T, D\]. An axis of 1 is
/// repeated. The device reads it when the operation runs. Neither a number nor a tensor's contents
/// changes the text of a kernel, and a step that reads its position from a tensor binds the same
/// buffers each time.
#[derive(Clone, Debug)]
pub struct Position {
    /// Rows before the first one. The tensor's number is added.
    number: usize,
    tensor: Option<Tensor>,
}

/// The rows of an output \[…, rows, D\] into which those of an operand are written, from a position
/// on. All are 0 if the operation writes elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    pub(super) rows: usize,
    /// Rows of the whole output before those of this part.
    first: usize,
}

impl Room {
    pub(super) fn new(rows: usize) -> Self {
        Room { rows, first: 0 }
    }

    /// The output's shape.
    pub(super) fn shape(&self, operand: &Tensor) -> Sizes {
        let mut shape = Sizes::from(operand.shape());
        let rows = shape.len() - 2;
        shape[rows] = self.rows;
        shape
    }

    /// The room of a part: of a range of the rows.
    pub(super) fn part(&self, range: &Range<usize>) -> Self {
        Room { rows: range.len(), first: self.first + range.start }
    }

    /// Adds `before`, `tokens`, `room` and `first` to a call: row t of the operand's `tokens` goes
    /// to row placed(t, before) + t − first of `room` rows, if there is one.
    pub(super) fn values(&self, call: Call, position: &Position, operand: &Tensor) -> Call {
        call.value("before", position.before(u32::MAX as usize))
            .value("tokens", operand.shape()[operand.shape().len() - 2] as u32)
            .value("room", self.rows as u32)
            .value("first", self.first as u32)
    }
}

/// The positions of rows, once they are read.
pub(super) struct Placed {
    tensor: Option<Vec<u32>>,
    number: usize,
}

impl Placed {
    /// The position of a row's entry, as `placed` in parts/choices.wgsl gives it.
    pub(super) fn of(&self, row: usize) -> usize {
        let own = self.tensor.as_ref().map_or(0, |all| all[row].min(0x7fff_ffff));
        own as usize + self.number
    }

    /// The rows of operands whose T rows are written into a room from their position on, and the
    /// rows of the output that they become. What is beyond the room is left out.
    pub(super) fn moves(&self, rows: usize, tokens: usize, room: usize) -> Vec<[usize; 2]> {
        let to = |row: usize| {
            let place = self.of(row) + row % tokens;
            (place < room).then(|| [row, row / tokens * room + place])
        };
        (0..rows).filter_map(to).collect()
    }
}

impl From<usize> for Position {
    fn from(number: usize) -> Self {
        Position { number, tensor: None }
    }
}

impl From<&Tensor> for Position {
    fn from(tensor: &Tensor) -> Self {
        Position { number: 0, tensor: Some(tensor.clone()) }
    }
}

impl Position {
    /// The tensor: the input `position` of a text.
    pub(super) fn tensor(&self) -> Option<&Tensor> {
        self.tensor.as_ref()
    }

    /// The last argument of `placed`: what is added to the tensor, at most `most`. Without a tensor
    /// it is the position.
    pub(super) fn before(&self, most: usize) -> u32 {
        self.number.min(most) as u32
    }

    /// The positions of rows on the host. `view` is the tensor, with an element for each row, and
    /// `most` bounds the number that is added to it.
    pub(super) fn on_host(&self, view: Option<&Tensor>, most: usize) -> Result<Placed> {
        let tensor = view.map(host::words).transpose()?;
        Ok(Placed { tensor, number: self.before(most) as usize })
    }

    /// The function `placed(row, number)`, which gives the position of a row's entry. The text's
    /// input `position` has a row for each row.
    pub(super) fn function(&self) -> Function {
        Function::new("placed", if self.tensor.is_some() { "tensor" } else { "number" })
    }

    /// Strides of the tensor in the operand's shape. `Unsupported` unless it is u32; `Shape` if it
    /// does not fit the operand's first axes.
    pub(super) fn strides(&self, operation: &str, operand: &Tensor) -> Result<Sizes> {
        let shape = operand.shape();
        let mut strides: Sizes = smallvec![0; shape.len()];
        let Some(tensor) = &self.tensor else { return Ok(strides) };
        words(operation, "the position", tensor)?;
        operand.context().same(tensor.context(), "the position")?;
        if tensor.elem_count() == 1 {
            return Ok(strides);
        }
        let lead = &shape[..shape.len().saturating_sub(2)];
        let fits = |(own, size): (&usize, &usize)| *own == 1 || own == size;
        if tensor.shape().len() > lead.len() || !tensor.shape().iter().zip(lead).all(fits) {
            return Err(Error::Shape(format!(
                "{operation}: the position has shape {:?}, wanted one element, or the first axes \
                 of {lead:?} for an operand of shape {shape:?}",
                tensor.shape()
            )));
        }
        for (axis, (&size, &stride)) in tensor.shape().iter().zip(tensor.strides()).enumerate() {
            strides[axis] = if size == 1 { 0 } else { stride };
        }
        Ok(strides)
    }

    /// `Shape` if the operand's rows do not fit between the known position and the end of `rows`.
    pub(super) fn fits(
        &self,
        operation: &str,
        operand: &Tensor,
        rows: usize,
        of: &str,
    ) -> Result<()> {
        let shape = operand.shape();
        let all = shape[shape.len() - 2].checked_add(self.number);
        all.filter(|&all| all <= rows).map(drop).ok_or_else(|| {
            Error::Shape(format!(
                "{operation}: x of shape {shape:?} at position {}, and {rows} rows of {of}",
                self.number
            ))
        })
    }

    /// The position of a part: of a range along an axis of an operand of `rank` axes.
    pub(super) fn part(&self, rank: usize, axis: usize, range: &Range<usize>) -> Result<Self> {
        let rows = if axis + 2 == rank { range.start } else { 0 };
        let part = |tensor: &Tensor| match tensor.shape().get(axis) {
            Some(&size) if size > 1 => tensor.narrow(axis, range.start, range.len()),
            _ => Ok(tensor.clone()),
        };
        let tensor = self.tensor.as_ref().map(part).transpose()?;
        Ok(Position { number: self.number.saturating_add(rows), tensor })
    }
}
