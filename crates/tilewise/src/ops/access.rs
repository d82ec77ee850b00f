//! Functions by which texts read and write four elements of a row: `x_get(at, i, step, count)` and
//! `y_put(at, i, step, count, v)`. The row begins at `at`, and `step` is the distance between its
//! elements. They take `count` elements (1 to 4) from the i-th on; i is a multiple of 4. Elements
//! beyond `count` are read as 0, and not written.

use crate::kernel::blocks;
use crate::tensor::Tensor;
use tilewise_core::DType;

/// The properties of a tensor on which its functions depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Floats in rows that begin and end between blocks of four in memory: `count` is always 4.
    Fours,
    F32,
    /// 16-bit floats in rows that begin and end between words.
    Words,
    /// 16-bit floats. A word may hold the last element of one row and the first of another.
    Halves,
    Integers,
    /// The text has no such functions.
    One,
}

impl Access {
    /// The access to a tensor that is laid out in rows along its last axis.
    pub(super) fn of(tensor: &Tensor) -> Self {
        let (shape, strides) = (tensor.shape(), tensor.strides());
        match tensor.dtype() {
            DType::I32 | DType::U32 => Access::Integers,
            dtype if in_blocks(4, shape, strides) && starts_a_block(tensor, dtype) => Access::Fours,
            DType::F32 => Access::F32,
            DType::F16 | DType::BF16 if in_blocks(2, shape, strides) => Access::Words,
            DType::F16 | DType::BF16 => Access::Halves,
        }
    }

    /// The text of `x_get` for the tensor `name`.
    pub(super) fn get(self, name: &str) -> String {
        let [fours, integers, floats, ..]: [&str; 5] = blocks(include_str!("parts/get.wgsl"));
        let text = match self {
            Access::Fours => fours,
            Access::Integers => integers,
            Access::F32 | Access::Words | Access::Halves | Access::One => floats,
        };
        text.replace("NAME", name)
    }

    /// The text of `x_halves` for the tensor `name`, which is f16: `x_get` as f16.
    pub(super) fn halves(self, name: &str) -> String {
        let [.., fours, others]: [&str; 5] = blocks(include_str!("parts/get.wgsl"));
        let text = if self == Access::Fours { fours } else { others };
        text.replace("NAME", name)
    }

    /// The text of `y_put` for the tensor `name`.
    pub(super) fn put(self, name: &str) -> String {
        let [fours, integers, words, f32, halves] = blocks(include_str!("parts/put.wgsl"));
        let text = match self {
            Access::Fours => fours,
            Access::Integers => integers,
            Access::Words => words,
            Access::F32 => f32,
            Access::Halves | Access::One => halves,
        };
        text.replace("NAME", name)
    }
}

/// The types E of an element and V of four, during the computation: integers if all tensors are
/// integers, otherwise floats.
pub(super) fn types(integers: bool) -> String {
    let [types] = blocks(include_str!("parts/types.wgsl"));
    types.replace("TYPE", if integers { "u32" } else { "f32" })
}

/// Whether rows begin and end between blocks of `size` elements, counted from the first element.
fn in_blocks(size: usize, shape: &[usize], strides: &[usize]) -> bool {
    let (Some((length, outer)), Some((step, starts))) = (shape.split_last(), strides.split_last())
    else {
        return false;
    };
    let whole = |(&stride, &rows): (&usize, &usize)| stride.is_multiple_of(size) || rows == 1;
    *step == 1 && length.is_multiple_of(size) && starts.iter().zip(outer).all(whole)
}

/// Whether the first element begins a block of four in memory, and there is one.
fn starts_a_block(tensor: &Tensor, dtype: DType) -> bool {
    let first = tensor.place().map_or(0, |(_, first)| first);
    tensor.elem_count() > 0 && first.is_multiple_of(4 * dtype.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_in_whole_words() {
        let in_words = |shape: &[usize], strides: &[usize]| in_blocks(2, shape, strides);
        assert!(in_words(&[6], &[1]) && in_words(&[3, 4], &[6, 1]) && in_words(&[1, 4], &[5, 1]));
        assert!(!in_words(&[5], &[1]) && !in_words(&[3, 4], &[5, 1]) && !in_words(&[4], &[2]));
        assert!(!in_words(&[], &[]) && !in_blocks(4, &[2, 6], &[8, 1]));
    }
}
