//! The logical ranges of operands: exactly the bytes that a right kernel touches.
//!
//! A storage word is 4 bytes. A shader that takes 16-bit elements from an `array<u32>` also touches
//! the neighbour of an element at an odd place. Only for such a shader the ranges are widened to
//! whole words.

use std::ops::Range;
use tilewise_core::Operand;
use tilewise_sanitizer::{Buffer, Region};

/// The blocks of an operand in one plane, each of `bytes` bytes; for a dense operand, its elements.
/// `firsts` are the blocks at which matrices begin. Each matrix has `lines` runs of `width`
/// neighbouring blocks. The operand's numbers count blocks.
#[derive(Clone, Debug)]
pub(super) struct Elements {
    pub(super) firsts: Vec<u64>,
    pub(super) ld: u64,
    pub(super) lines: u64,
    pub(super) width: u64,
    pub(super) bytes: u64,
}

impl Elements {
    /// The elements of an operand whose entries begin with the elements `firsts`.
    pub(super) fn new(
        operand: Operand,
        plane: usize,
        mut firsts: Vec<u64>,
        [rows, cols]: [u64; 2],
    ) -> Self {
        let [lines, width] = if operand.transposed { [cols, rows] } else { [rows, cols] };
        let (block, bytes) = (operand.format.block(), operand.format.planes()[plane].bytes);
        firsts.sort_unstable();
        firsts.dedup();
        firsts.iter_mut().for_each(|first| *first /= block);
        Elements { firsts, ld: operand.ld / block, lines, width: width / block, bytes }
    }

    /// Whether some words hold both elements and other bytes.
    pub(super) fn shares_words(&self) -> bool {
        let starts = [if self.lines > 1 { self.ld } else { 0 }, self.width];
        self.firsts.iter().chain(&starts).any(|blocks| !(blocks * self.bytes).is_multiple_of(4))
    }

    /// The byte after the last element, in the storage.
    pub(super) fn end(&self) -> u64 {
        let last = self
            .firsts
            .last()
            .map_or(0, |first| first + (self.lines.max(1) - 1) * self.ld + self.width);
        if self.lines * self.width == 0 { 0 } else { last * self.bytes }
    }

    /// The distance from each matrix to the next, if all distances are equal.
    fn step(&self) -> Option<u64> {
        let mut steps = self.firsts.windows(2).map(|pair| pair[1] - pair[0]);
        let first = steps.next().unwrap_or(0);
        steps.all(|step| step == first).then_some(first)
    }

    /// Declares the elements as the logical range of `buffer`, which holds the bytes `bound` of
    /// their storage. If the shader takes them from words, whole words are declared.
    pub(super) fn declare(&self, buffer: Buffer, words: bool, bound: &Range<u64>) -> Buffer {
        let bytes = |blocks: u64| blocks * self.bytes;
        let all = bound.start == 0 && self.end() <= bound.end;
        if let (Some(step), Some(&first)) = (self.step(), self.firsts.first())
            && all
            && !(words && self.shares_words())
        {
            let counts = vec![self.firsts.len() as u64, self.lines, bytes(self.width)];
            let strides = vec![bytes(step), bytes(self.ld), 1];
            return buffer.region(Region {
                offset: bytes(first),
                counts,
                strides,
                element_bytes: 1,
            });
        }
        let word = if words { 4 } else { 1 };
        let buffer = buffer.range(0..0);
        let starts = self
            .firsts
            .iter()
            .flat_map(|first| (0..self.lines).map(move |line| first + line * self.ld));
        starts.fold(buffer, |buffer, block| {
            let start = bytes(block);
            let (start, end) =
                (start / word * word, (start + bytes(self.width)).next_multiple_of(word));
            let [start, end] =
                [start, end].map(|byte| byte.clamp(bound.start, bound.end) - bound.start);
            if start < end { buffer.range(start..end) } else { buffer }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewise_core::{DType, Format};

    fn elements(dtype: DType, offset: u64, ld: u64, shape: [u64; 2]) -> Elements {
        let operand =
            Operand { offset, ld, ..Operand::packed(Format::Dense(dtype), 1, shape[0], shape[1]) };
        Elements::new(operand, 0, vec![offset], shape)
    }

    #[test]
    fn words_are_shared_where_something_is_odd() {
        assert!(!elements(DType::F32, 3, 5, [2, 3]).shares_words());
        assert!(!elements(DType::F16, 2, 6, [2, 4]).shares_words());
        assert!(elements(DType::F16, 1, 6, [2, 4]).shares_words());
        assert!(elements(DType::F16, 2, 5, [2, 4]).shares_words());
        assert!(elements(DType::F16, 2, 6, [2, 3]).shares_words());
        assert!(!elements(DType::F16, 2, 5, [1, 4]).shares_words());
    }

    #[test]
    fn transposes_swap_lines_and_width() {
        let operand = Operand::packed(Format::Dense(DType::F32), 1, 3, 7).t();
        let elements = Elements::new(operand, 0, vec![0], [7, 3]);
        assert_eq!((elements.lines, elements.width), (3, 7));
    }
}
