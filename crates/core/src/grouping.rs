//! How the rows of A and C are split among the entries of B. A grouping answers for itself: nobody
//! else asks which one it is, except a schedule, which serves one of them.

use crate::role::Role;
use std::fmt;
use std::ops::Range;

/// How the rows of A and C are split among the entries of B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Grouping {
    /// `Problem::batch` independent products, one entry each of A, B and C.
    Batched,
    /// The same, with a batch of several dimensions. Each operand has a stride along each of them.
    /// The stride is 0 where all indices share one entry.
    Nested {
        /// The sizes of four dimensions, outermost first; a missing dimension has size 1.
        /// `Problem::batch` is their product.
        sizes: [u64; 4],
    },
    /// Rows `ends[g-1] .. ends[g]` of A and C (row 0 on for g = 0) are multiplied by entry g of B.
    /// The `groups` ends are cumulative, u32, on the device. Rows from the last end on are left
    /// untouched.
    RaggedM {
        /// Number of groups.
        groups: u64,
        /// The place of the first end in its storage.
        offset: u64,
        /// The rows of each group that has some, where they are known to be about as many; else
        /// rows are taken to choose their groups at random. Estimates alone depend on it.
        expected: Option<u64>,
    },
}

/// Rows that meet one entry of B.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Entry of A, C and the residual.
    pub entry: u64,
    /// Entry of B and of the bias.
    pub group: u64,
    /// Rows of that entry of A and C.
    pub rows: Range<u64>,
}

impl Grouping {
    /// Entries of B: the batch, or the number of groups.
    pub const fn entries(self, batch: u64) -> u64 {
        match self {
            Grouping::Batched | Grouping::Nested { .. } => batch,
            Grouping::RaggedM { groups, .. } => groups,
        }
    }

    /// The dimensions of `entries`, outermost first, each with its stride.
    pub(crate) fn levels(self, entries: u64, strides: [u64; 4]) -> [(u64, u64); 4] {
        let sizes = match self {
            Grouping::Nested { sizes } => sizes,
            Grouping::Batched | Grouping::RaggedM { .. } => [1, 1, 1, entries],
        };
        std::array::from_fn(|level| (sizes[level], strides[level]))
    }

    /// Whether A, C and the residual have an entry for each of B. Otherwise the groups share one.
    pub const fn has_entries(self) -> bool {
        !matches!(self, Grouping::RaggedM { .. })
    }

    /// Whether it may come with a batch.
    pub const fn takes_batch(self) -> bool {
        self.has_entries()
    }

    /// Whether rows and columns at the edges may be computed apart from the whole tiles.
    pub const fn may_peel(self) -> bool {
        self.has_entries()
    }

    /// Whether every tile of `bm` rows starts at a multiple of `bm`.
    pub const fn has_aligned_rows(self) -> bool {
        self.has_entries()
    }

    /// Tiles of `bm` rows along the `m` rows of an entry, at most: each group may end in one that
    /// is not full, and none is without a row.
    pub fn tiles_m(self, m: u64, bm: u64) -> u64 {
        match self {
            Grouping::Batched | Grouping::Nested { .. } => m.div_ceil(bm),
            Grouping::RaggedM { groups, .. } => m.min(m.div_ceil(bm) + groups),
        }
    }

    /// Tiles of `bm` rows that have rows, over all entries, as far as can be known: a group ends
    /// anywhere in its last tile, and has one at least if it has rows.
    pub fn expected_tiles_m(self, m: u64, batch: u64, bm: u64) -> f64 {
        match self {
            Grouping::Batched | Grouping::Nested { .. } => (m.div_ceil(bm) * batch) as f64,
            Grouping::RaggedM { expected: Some(rows), .. } => {
                self.expected_entries(m, batch) * rows.max(1).div_ceil(bm) as f64
            }
            Grouping::RaggedM { .. } => {
                let met = self.expected_entries(m, batch);
                let last = (bm - 1) as f64 / 2.0;
                met * ((self.expected_rows(m) + last) / bm as f64).max(1.0)
            }
        }
    }

    /// Entries of B that have rows, as far as can be known: rows choose their groups at random.
    pub fn expected_entries(self, m: u64, batch: u64) -> f64 {
        match self {
            Grouping::Batched | Grouping::Nested { .. } => batch as f64,
            Grouping::RaggedM { groups, expected: Some(rows), .. } => {
                (m as f64 / rows.max(1) as f64).min(groups as f64)
            }
            Grouping::RaggedM { groups, .. } => {
                let groups = groups.max(1) as f64;
                groups * (1.0 - (1.0 - 1.0 / groups).powf(m as f64))
            }
        }
    }

    /// Rows that meet an entry of B which has rows.
    pub fn expected_rows(self, m: u64) -> f64 {
        match self {
            Grouping::Batched | Grouping::Nested { .. } => m as f64,
            Grouping::RaggedM { .. } => m as f64 / self.expected_entries(m, 1).max(1.0),
        }
    }

    /// The buffers that its schedule reads, each with its elements, which are u32.
    pub fn operands(self) -> impl Iterator<Item = (Role, u64)> {
        match self {
            Grouping::Batched | Grouping::Nested { .. } => None,
            Grouping::RaggedM { groups, offset, .. } => {
                Some((Role::Offsets, offset.saturating_add(groups)))
            }
        }
        .into_iter()
    }

    /// Ends of groups of equal size, for a measurement.
    pub fn even_ends(self, m: u64) -> Vec<u32> {
        match self {
            Grouping::Batched | Grouping::Nested { .. } => Vec::new(),
            Grouping::RaggedM { groups, .. } => {
                (1..=groups).map(|group| (group * m / groups) as u32).collect()
            }
        }
    }

    /// With so many groups before the first.
    pub(crate) fn behind(self, before: u64) -> Self {
        match self {
            Grouping::Batched | Grouping::Nested { .. } => self,
            Grouping::RaggedM { groups, offset, expected } => {
                Grouping::RaggedM { groups: groups + before, offset, expected }
            }
        }
    }

    /// With `entries` of them, for a range of a product.
    pub(crate) fn cut(&mut self, batch: &mut u64, entries: u64) {
        match self {
            Grouping::Batched | Grouping::Nested { .. } => *batch = entries,
            Grouping::RaggedM { groups, .. } => *groups = entries,
        }
    }

    /// The segments of `m` rows, in their order. An end below the one before it, or beyond the last
    /// row, is clamped; a group without an end has no rows.
    pub fn segments(self, m: u64, batch: u64, ends: &[u32]) -> Vec<Segment> {
        match self {
            Grouping::Batched | Grouping::Nested { .. } => {
                (0..batch).map(|entry| Segment { entry, group: entry, rows: 0..m }).collect()
            }
            Grouping::RaggedM { groups, offset, .. } => {
                let mut start = 0;
                let segment = |group: u64| {
                    let end = ends
                        .get((offset + group) as usize)
                        .map_or(start, |&end| u64::from(end).clamp(start, m));
                    let rows = start..end;
                    start = end;
                    Segment { entry: 0, group, rows }
                };
                (0..groups).map(segment).collect()
            }
        }
    }
}

impl fmt::Display for Grouping {
    /// `batch`, `nested`, `groups`: its name in a class of problems.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Grouping::Batched => "batch",
            Grouping::Nested { .. } => "nested",
            Grouping::RaggedM { .. } => "groups",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_cover_rows_once_whatever_the_ends() {
        let rows = |ends: &[u32]| {
            let grouping =
                Grouping::RaggedM { groups: ends.len() as u64, offset: 0, expected: None };
            let segments = grouping.segments(9, 1, ends);
            assert!(segments.iter().enumerate().all(|(i, s)| s.group == i as u64 && s.entry == 0));
            segments.into_iter().map(|segment| segment.rows).collect::<Vec<_>>()
        };
        assert_eq!(rows(&[2, 2, 7]), [0..2, 2..2, 2..7]);
        assert_eq!(rows(&[5, 3, u32::MAX]), [0..5, 5..5, 5..9]);
        assert_eq!(rows(&[]), []);
        let batched = Grouping::Batched.segments(4, 2, &[]);
        assert_eq!(batched[1], Segment { entry: 1, group: 1, rows: 0..4 });
    }

    #[test]
    fn enough_tiles_for_any_ends() {
        let grouping = Grouping::RaggedM { groups: 3, offset: 0, expected: None };
        for ends in [[1, 2, 20], [0, 0, 20], [9, 10, 20], [20, 20, 20]] {
            let needed: u64 = grouping
                .segments(20, 1, &ends)
                .iter()
                .map(|s| (s.rows.end - s.rows.start).div_ceil(8))
                .sum();
            assert!(needed <= grouping.tiles_m(20, 8), "{ends:?}");
        }
    }
}
