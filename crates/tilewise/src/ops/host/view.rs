//! Views of host memory, as rows of numbers.

use crate::ops::layout::Sizes;
use crate::tensor::Tensor;
use half::{bf16, f16};
use smallvec::smallvec;
use std::ops::Range;
use tilewise_core::{DType, convert};

/// The places of a view's rows, which lie along its last axis.
pub(super) struct Layout {
    pub(super) dtype: DType,
    /// Elements of the storage before the view's first.
    first: usize,
    shape: Sizes,
    strides: Sizes,
    /// Elements of a row, and the step from one to the next.
    pub(super) length: usize,
    pub(super) step: usize,
}

impl Layout {
    pub(super) fn of(view: &Tensor) -> Self {
        let (mut shape, mut strides) = (Sizes::from(view.shape()), Sizes::from(view.strides()));
        let (length, step) = (shape.pop().unwrap_or(1), strides.pop().unwrap_or(1));
        let first = (view.first() / view.dtype().bytes()) as usize;
        let step = if length == 1 { 1 } else { step };
        Layout { dtype: view.dtype(), first, shape, strides, length, step }
    }

    /// Rows of words, one after the other.
    pub(super) fn packed(rows: usize, length: usize) -> Self {
        let (shape, strides) = (smallvec![rows], smallvec![length]);
        Layout { dtype: DType::U32, first: 0, shape, strides, length, step: 1 }
    }

    /// Elements of the storage before a row's first.
    pub(super) fn place(&self, row: usize) -> usize {
        let (mut place, mut rest) = (self.first, row);
        for (axis, (&size, &stride)) in self.shape.iter().zip(&self.strides).enumerate().rev() {
            if axis == 0 {
                place += rest * stride;
            } else {
                place += rest % size * stride;
                rest /= size;
            }
        }
        place
    }

    /// Bytes of the storage in which elements of a row lie, if they lie one after the other.
    pub(super) fn bytes(&self, row: usize, range: Range<usize>) -> Range<usize> {
        let (size, place) = (self.size(), self.place(row));
        (place + range.start) * size..(place + range.end) * size
    }

    /// Bytes of an element.
    pub(super) fn size(&self) -> usize {
        self.dtype.bytes() as usize
    }
}

/// An operand in host memory. Floats are read as f32, and integers as f32 of the same bits.
pub(in crate::ops) struct Reader<'w> {
    words: &'w [u32],
    layout: Layout,
}

impl<'w> Reader<'w> {
    pub(super) fn new(words: &'w [u32], layout: Layout) -> Self {
        Reader { words, layout }
    }

    /// Elements of a row.
    pub(in crate::ops) fn length(&self) -> usize {
        self.layout.length
    }

    /// Whether the rows are read where they lie.
    pub(in crate::ops) fn is_plain(&self) -> bool {
        self.layout.dtype.bytes() == 4 && self.layout.step == 1
    }

    /// A row, where it lies or in the buffer.
    pub(in crate::ops) fn row<'r>(&'r self, row: usize, buffer: &'r mut Vec<f32>) -> &'r [f32] {
        self.part(row, 0..self.layout.length, buffer)
    }

    /// Elements of a row, where they lie or in the buffer.
    pub(in crate::ops) fn part<'r>(
        &'r self,
        row: usize,
        range: Range<usize>,
        buffer: &'r mut Vec<f32>,
    ) -> &'r [f32] {
        let Layout { dtype, step, .. } = self.layout;
        if range.is_empty() {
            return &[];
        }
        let place = self.layout.place(row) + range.start * step;
        if self.is_plain() {
            return &bytemuck::cast_slice(self.words)[place..place + range.len()];
        }
        buffer.clear();
        buffer.resize(range.len(), 0.0);
        load(self.words, dtype, place, step, buffer);
        buffer
    }
}

/// Loads elements from a place on.
fn load(words: &[u32], dtype: DType, place: usize, step: usize, to: &mut [f32]) {
    let Some(last) = to.len().checked_sub(1) else { return };
    let (size, end) = (dtype.bytes() as usize, place + last * step + 1);
    let bytes = &bytemuck::cast_slice(words)[place * size..end * size];
    match dtype {
        _ if step == 1 => decode(bytes, dtype, to),
        DType::F16 => spaced(bytemuck::cast_slice(bytes), step, to, f16::to_f32),
        DType::BF16 => spaced(bytemuck::cast_slice(bytes), step, to, bf16::to_f32),
        DType::F32 | DType::I32 | DType::U32 => {
            let words: &[u32] = bytemuck::cast_slice(bytes);
            spaced(words, step, bytemuck::cast_slice_mut(to), |word| word);
        }
    }
}

/// Loads every element that is a step from the one before.
fn spaced<T: Copy, U: Copy>(from: &[T], step: usize, to: &mut [U], as_is: impl Fn(T) -> U) {
    match step {
        0 => to.fill(as_is(from[0])),
        _ => to.iter_mut().zip(from.iter().step_by(step)).for_each(|(to, &own)| *to = as_is(own)),
    }
}

/// Loads elements that fill these bytes. Elements of four bytes keep their bits.
pub(super) fn decode(bytes: &[u8], dtype: DType, to: &mut [f32]) {
    match dtype.bytes() {
        2 => convert::decode_into(dtype, bytes, to),
        _ => bytemuck::cast_slice_mut::<f32, u8>(to).copy_from_slice(bytes),
    }
}

/// Stores elements into the bytes that they fill. Elements of four bytes keep their bits.
pub(super) fn encode(from: &[f32], dtype: DType, bytes: &mut [u8]) {
    match dtype.bytes() {
        2 => convert::encode_into(dtype, from, bytes),
        _ => bytes.copy_from_slice(bytemuck::cast_slice(from)),
    }
}

/// Stores elements from a place on, a step apart. Floats are rounded.
pub(super) fn store(words: &mut [u32], dtype: DType, place: usize, step: usize, from: &[f32]) {
    let places = (place..).step_by(step);
    match dtype {
        DType::F16 => {
            let all: &mut [f16] = bytemuck::cast_slice_mut(words);
            places.zip(from).for_each(|(at, &x)| all[at] = f16::from_f32(x));
        }
        DType::BF16 => {
            let all: &mut [bf16] = bytemuck::cast_slice_mut(words);
            places.zip(from).for_each(|(at, &x)| all[at] = bf16::from_f32(x));
        }
        DType::F32 | DType::I32 | DType::U32 => {
            let from: &[u32] = bytemuck::cast_slice(from);
            places.zip(from).for_each(|(at, &word)| words[at] = word);
        }
    }
}
