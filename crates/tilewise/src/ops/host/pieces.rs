//! How the rows of a loop are cut into pieces, and the memory of each piece.

use super::view::Layout;
use std::ops::Range;

/// How rows are cut into units, and these into pieces.
pub(super) struct Cut<'t> {
    /// Rows of the loop, and the rows of inputs and outputs if these are not the same.
    pub(super) rows: usize,
    pub(super) moves: Option<&'t [[usize; 2]]>,
    /// Units of a row, and the elements of a unit if there are several.
    pub(super) parts: usize,
    pub(super) span: usize,
    /// Units of a piece.
    pub(super) per_piece: usize,
}

/// The memory of the rows of a piece: one row after the other, or each by itself.
pub(super) enum Part<'b> {
    Flat(&'b mut [u8]),
    Rows(Vec<&'b mut [u8]>),
}

impl Default for Part<'_> {
    fn default() -> Self {
        Part::Flat(&mut [])
    }
}

impl Part<'_> {
    /// The bytes of unit `at` of the piece, of which each has so many.
    pub(super) fn unit(&mut self, at: usize, bytes: usize) -> &mut [u8] {
        match self {
            Part::Flat(all) => &mut all[at * bytes..(at + 1) * bytes],
            Part::Rows(rows) => rows[at],
        }
    }
}

impl Cut<'_> {
    pub(super) fn pieces(&self) -> usize {
        (self.rows * self.parts).div_ceil(self.per_piece)
    }

    /// The units of a piece.
    pub(super) fn units(&self, piece: usize) -> Range<usize> {
        let first = piece * self.per_piece;
        first..(first + self.per_piece).min(self.rows * self.parts)
    }

    /// The elements of a unit in its row.
    pub(super) fn range(&self, length: usize, unit: usize) -> Range<usize> {
        match self.parts {
            1 => 0..length,
            parts => unit % parts * self.span..((unit % parts + 1) * self.span).min(length),
        }
    }

    /// The number of a unit's row of inputs, and of outputs.
    pub(super) fn row(&self, unit: usize) -> [usize; 2] {
        let row = unit / self.parts;
        self.moves.map_or([row; 2], |moves| moves[row])
    }

    /// The memory of each piece, for an output whose rows lie one behind the other.
    pub(super) fn flat<'b>(&self, bytes: &'b mut [u8], layout: &Layout) -> Vec<Part<'b>> {
        if self.parts > 1 {
            return self.apart(bytes, layout, |unit| unit / self.parts);
        }
        let row = layout.length * layout.size();
        let first = layout.bytes(0, 0..0).start;
        let all = &mut bytes[first..first + self.rows * row];
        all.chunks_mut((self.per_piece * row).max(1)).map(Part::Flat).collect()
    }

    /// The memory of each piece, for an output whose rows lie apart. `row` gives a unit's row.
    pub(super) fn apart<'b>(
        &self,
        bytes: &'b mut [u8],
        layout: &Layout,
        row: impl Fn(usize) -> usize,
    ) -> Vec<Part<'b>> {
        let units = 0..self.rows * self.parts;
        let ranges = units.map(|unit| layout.bytes(row(unit), self.range(layout.length, unit)));
        let mut all = slices(bytes, ranges.collect()).into_iter();
        let piece = |_| Part::Rows(all.by_ref().take(self.per_piece).collect());
        (0..self.pieces()).map(piece).collect()
    }
}

/// Slices of these ranges, which do not overlap, in the order of the ranges.
fn slices(mut bytes: &mut [u8], ranges: Vec<Range<usize>>) -> Vec<&mut [u8]> {
    let mut order: Vec<usize> = (0..ranges.len()).collect();
    order.sort_by_key(|&at| ranges[at].start);
    let mut slices: Vec<&mut [u8]> = Vec::new();
    slices.resize_with(ranges.len(), Default::default);
    let mut done = 0;
    for at in order {
        let range = &ranges[at];
        let (_, rest) = bytes.split_at_mut(range.start - done);
        let (own, rest) = rest.split_at_mut(range.len());
        (slices[at], bytes, done) = (own, rest, range.end);
    }
    slices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_have_the_order_of_their_ranges() {
        let mut bytes = [0, 1, 2, 3, 4, 5, 6, 7];
        let slices = slices(&mut bytes, vec![5..7, 0..1, 1..4, 4..4]);
        assert_eq!(slices, [&[5u8, 6][..], &[0], &[1, 2, 3], &[]]);
    }
}
