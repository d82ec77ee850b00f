//! The logical ranges of operands: exactly the bytes that a right kernel touches.
//!
//! A storage word is 4 bytes, so a shader that takes 16-bit elements from an `array<u32>` touches
//! the neighbour of an element at an odd place as well; there the ranges are widened to whole
//! words, and nowhere else.

use std::ops::Range;
use tilewise_core::Operand;
use tilewise_sanitizer::{Buffer, Region};

/// The blocks of an operand in one plane, each of `bytes` bytes; of a dense operand, its elements.
/// There are `entries` matrices, each of `lines` runs of `width` neighbouring blocks, and the
/// operand's numbers count blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elements {
    pub(super) operand: Operand,
    pub(super) entries: u64,
    pub(super) lines: u64,
    pub(super) width: u64,
    pub(super) bytes: u64,
}

impl Elements {
    pub(super) fn new(
        mut operand: Operand,
        plane: usize,
        entries: u64,
        [rows, cols]: [u64; 2],
    ) -> Self {
        let [lines, mut width] = if operand.transposed { [cols, rows] } else { [rows, cols] };
        let (block, bytes) = (operand.format.block(), operand.format.planes()[plane].bytes);
        for elements in
            [&mut operand.offset, &mut operand.ld, &mut operand.batch_stride, &mut width]
        {
            *elements /= block;
        }
        Elements { operand, entries, lines, width, bytes }
    }

    /// Whether words hold both elements and something else.
    pub(super) fn shares_words(&self) -> bool {
        let Operand { offset, ld, batch_stride, .. } = self.operand;
        let starts = [
            offset,
            if self.lines > 1 { ld } else { 0 },
            if self.entries > 1 { batch_stride } else { 0 },
        ];
        starts.iter().chain([&self.width]).any(|blocks| !(blocks * self.bytes).is_multiple_of(4))
    }

    /// The byte after the last of them, in their storage.
    pub(super) fn end(&self) -> u64 {
        let Operand { offset, ld, batch_stride, .. } = self.operand;
        let last = offset
            + (self.entries.max(1) - 1) * batch_stride
            + (self.lines.max(1) - 1) * ld
            + self.width;
        if self.entries * self.lines * self.width == 0 { 0 } else { last * self.bytes }
    }

    /// Declares them as the logical range of `buffer`, which holds the bytes `bound` of their
    /// storage; in whole words if the shader takes them from words.
    pub(super) fn declare(&self, buffer: Buffer, words: bool, bound: &Range<u64>) -> Buffer {
        let bytes = |blocks: u64| blocks * self.bytes;
        let Operand { offset, ld, batch_stride, .. } = self.operand;
        let last = offset
            + (self.entries.max(1) - 1) * batch_stride
            + (self.lines.max(1) - 1) * ld
            + self.width;
        let all = bound.start == 0 && bytes(last) <= bound.end;
        if all && !(words && self.shares_words()) {
            let counts = vec![self.entries, self.lines, bytes(self.width)];
            let strides = vec![bytes(batch_stride), bytes(ld), 1];
            return buffer.region(Region {
                offset: bytes(offset),
                counts,
                strides,
                element_bytes: 1,
            });
        }
        let word = if words { 4 } else { 1 };
        let buffer = buffer.range(0..0);
        let starts =
            (0..self.entries).flat_map(|entry| (0..self.lines).map(move |line| (entry, line)));
        starts.fold(buffer, |buffer, (entry, line)| {
            let start = bytes(offset + entry * batch_stride + line * ld);
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
        Elements::new(operand, 0, 1, shape)
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
        let elements = Elements::new(operand, 0, 1, [7, 3]);
        assert_eq!((elements.lines, elements.width), (3, 7));
    }
}
