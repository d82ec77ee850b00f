//! Which rows, or which range of K, meet in each entry of a product, and what follows from that.

use crate::list_sizes::ListSizes;
use crate::role::Role;
use std::fmt;
use std::ops::Range;

/// A dimension along which a product can be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// Batch entries, or the groups of a grouped product.
    Entries,
    /// Rows of A and C.
    M,
    /// Columns of B and C.
    N,
    /// The summed dimension.
    K,
}

/// Which rows, or which range of K, meet in each entry of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Grouping {
    /// `Problem::batch` independent products, one entry each of A, B and C.
    Batched,
    /// Independent products with a batch of several dimensions. Each operand has a stride along
    /// each of them. The stride is 0 if all indices share one entry.
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
        /// Groups before the first of B, which is a shard: it has entries for `groups` groups
        /// alone. The ends of the earlier groups come first in the storage; their rows are left
        /// untouched.
        first: u64,
        /// The place of the first end in its storage, be it of an earlier group.
        offset: u64,
        /// Rows of each group that has some, if they are known to be about as many. Otherwise rows
        /// are taken to choose their groups at random. Only estimates depend on it.
        expected: Option<u64>,
    },
    /// Row i of A and C is multiplied by entry `indices[i]` of B. The indices are u32, on the
    /// device. A row whose index is no entry is a product with K = 0.
    Indexed {
        /// Number of entries of B.
        groups: u64,
        /// Number of indices, one for each row.
        rows: u64,
        /// The place of the first index in its storage.
        offset: u64,
    },
    /// A batch. Entry g has the first `counts[g]` of the M rows. The counts are u32, on the device;
    /// a count beyond M counts as M. Rows from the count on are left untouched.
    Masked {
        /// Number of entries, as of `Problem::batch`.
        entries: u64,
        /// The place of the first count in its storage.
        offset: u64,
        /// Rows of an entry, if they are known to be about as many in each. Otherwise all rows are
        /// taken to count. Only estimates depend on it.
        expected: Option<u64>,
    },
    /// A batch. Entry g of C is the sum over `ends[g-1] .. ends[g]` of K (0 on for g = 0). All
    /// entries share one A and one B. The ends are as those of `RaggedM`; an empty group is a
    /// product with K = 0.
    RaggedK {
        /// Number of groups, as of `Problem::batch`.
        groups: u64,
        /// The place of the first end in its storage.
        offset: u64,
    },
    /// Products of any sizes, each at its places in A, B and C. Each has nine numbers, u32 on the
    /// device: M, N and K; then place and row stride of A, of B and of C. M, N and K count as those
    /// of the problem if they are larger. Places count from `Operand::offset`, and the operand has
    /// `Operand::batch_stride` elements. All places and row strides of an operand are multiples of
    /// its `Operand::ld` (1: they may be anything). A product is left out if it breaks this, would
    /// leave the elements, or has rows of C that overlap.
    Listed {
        /// Number of products, as of `Problem::batch`.
        groups: u64,
        /// The place of the first number in its storage.
        offset: u64,
        /// Sums of the products' sizes, if the host knows them. The storage then holds their
        /// [tables](ListSizes::tables) behind the numbers.
        sizes: Option<ListSizes>,
    },
}

/// Rows and a range of K that meet in one entry of B.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Entry of A, C and the residual.
    pub entry: u64,
    /// Entry of B and of the bias.
    pub group: u64,
    /// Rows of A and C, in that entry.
    pub rows: Range<u64>,
    /// The range of K over which they are summed.
    pub k: Range<u64>,
}

/// How many numbers describe a product of a list.
pub const LISTED: u64 = 9;

/// The answers of a form of grouping, whatever the sizes of the product.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// The name of the form in a class of problems.
    pub name: &'static str,
    /// The entries in words, for a description of a problem.
    pub(crate) words: &'static str,
    /// Number of entries; none if the batch says it.
    pub(crate) groups: Option<u64>,
    /// Groups before the first of B, whose numbers come first in the buffer that a schedule reads.
    pub(crate) first: u64,
    /// The place of the first number in the buffer that a schedule reads.
    pub(crate) offset: u64,
    /// How many u32 a schedule reads from there on.
    pub(crate) numbers: u64,
    /// Rows of each entry that has some, if they are known to be about as many.
    pub(crate) expected: Option<u64>,
    /// Whether all entries of B share the rows of one A, one C and one residual. Otherwise these
    /// have an entry for each of B.
    pub shares_rows: bool,
    /// Whether the rows of an entry of B are few beside M, so that each entry is read by few tiles.
    pub few_rows: bool,
    /// The dimensions along which the product may be cut: a range of them is a product by itself,
    /// which [`Problem::range`](crate::Problem::range) finds by adding strides to the offsets of
    /// operands. A form is cut along no other dimension, so one that names none is never cut.
    pub(crate) pieces: &'static [Dimension],
    /// Whether each row names its entry.
    pub(crate) indexed: bool,
    /// Whether each entry has a count of rows.
    pub masked: bool,
    /// Whether all entries are summed over all of K, which may then be split. Otherwise a range of
    /// K begins and ends anywhere.
    pub whole_k: bool,
    /// Whether each entry has its sizes, places and strides, which the device alone knows.
    pub listed: bool,
}

impl Grouping {
    /// The answers of each form, a row for each.
    pub const fn traits(self) -> Traits {
        const ALL: [Dimension; 4] = [Dimension::Entries, Dimension::M, Dimension::N, Dimension::K];
        let batch = Traits {
            name: "batch",
            words: "",
            groups: None,
            first: 0,
            offset: 0,
            numbers: 0,
            expected: None,
            shares_rows: false,
            few_rows: false,
            pieces: &[],
            indexed: false,
            masked: false,
            whole_k: true,
            listed: false,
        };
        match self {
            Grouping::Batched => Traits { pieces: &ALL, ..batch },
            Grouping::Nested { .. } => Traits { name: "nested", pieces: &ALL, ..batch },
            Grouping::RaggedM { groups, first, offset, expected } => Traits {
                name: "groups",
                words: "groups of rows",
                groups: Some(groups),
                first,
                offset,
                numbers: first.saturating_add(groups),
                expected,
                shares_rows: true,
                few_rows: true,
                pieces: &ALL,
                ..batch
            },
            Grouping::Indexed { groups, rows, offset } => Traits {
                name: "indexed",
                words: "entries of B by index",
                groups: Some(groups),
                offset,
                numbers: rows,
                shares_rows: true,
                // A row whose entry is in another piece would be taken for one that has none.
                pieces: &[Dimension::M, Dimension::N, Dimension::K],
                indexed: true,
                ..batch
            },
            Grouping::Masked { entries, offset, expected } => Traits {
                name: "masked",
                words: " of masked rows",
                groups: Some(entries),
                offset,
                numbers: entries,
                expected,
                few_rows: true,
                pieces: &ALL,
                masked: true,
                ..batch
            },
            Grouping::RaggedK { groups, offset } => Traits {
                name: "ranges",
                words: " of ranges of K",
                groups: Some(groups),
                offset,
                numbers: groups,
                pieces: &[Dimension::Entries, Dimension::M, Dimension::N],
                whole_k: false,
                ..batch
            },
            Grouping::Listed { groups, offset, sizes } => Traits {
                name: "list",
                words: " of products of a list",
                groups: Some(groups),
                offset,
                numbers: groups
                    .saturating_mul(LISTED + if sizes.is_some() { ListSizes::TABLES } else { 0 }),
                whole_k: false,
                listed: true,
                ..batch
            },
        }
    }

    /// Entries of B: the batch, or the number of groups that share the rows.
    pub const fn entries(self, batch: u64) -> u64 {
        match self.traits() {
            Traits { shares_rows: true, groups: Some(groups), .. } => groups,
            _ => batch,
        }
    }

    /// How many entries the batch must have; none if it may have any.
    pub const fn batch(self) -> Option<u64> {
        let Traits { shares_rows, groups, .. } = self.traits();
        if shares_rows { Some(1) } else { groups }
    }

    /// The dimensions of a nested batch, outermost first.
    pub(crate) const fn nest(self) -> Option<[u64; 4]> {
        if let Grouping::Nested { sizes } = self { Some(sizes) } else { None }
    }

    /// The dimensions of `entries`, outermost first, each with its stride.
    pub(crate) fn levels(self, entries: u64, strides: [u64; 4]) -> [(u64, u64); 4] {
        let sizes = self.nest().unwrap_or([1, 1, 1, entries]);
        std::array::from_fn(|level| (sizes[level], strides[level]))
    }

    /// The sizes of a list that the host knows.
    pub const fn list_sizes(self) -> Option<ListSizes> {
        if let Grouping::Listed { sizes, .. } = self { sizes } else { None }
    }

    /// The rows that are expected to count in an entry of A with `m` rows.
    pub fn expected_m(self, m: u64) -> u64 {
        let Traits { masked, expected, .. } = self.traits();
        expected.filter(|_| masked).map_or(m, |rows| rows.min(m))
    }

    /// The elements of K over which an entry is expected to be summed.
    pub fn expected_k(self, k: u64) -> u64 {
        match self.traits() {
            Traits { whole_k: false, listed: false, groups: Some(groups), .. } => {
                k.div_ceil(groups.max(1))
            }
            _ => k,
        }
    }

    /// Tiles of `bm` rows along the `m` rows of an entry, at most. Each group may end in a tile
    /// that is not full, and no tile is without a row. Rows that name their entries have a tile
    /// each.
    pub fn tiles_m(self, m: u64, bm: u64) -> u64 {
        match self.traits() {
            Traits { indexed: true, .. } => m,
            Traits { shares_rows: true, .. } => m.min(m.div_ceil(bm) + self.entries(1)),
            _ => m.div_ceil(bm),
        }
    }

    /// Tiles over all entries that are expected to have rows and columns. A group ends anywhere in
    /// its last tile, and has at least one if it has rows.
    pub fn expected_tiles(self, [m, n]: [u64; 2], batch: u64, [bm, bn]: [u64; 2]) -> f64 {
        if let Some(ListSizes { area, rows, columns }) = self.list_sizes() {
            let [area, rows, columns, bm, bn] = [area, rows, columns, bm, bn].map(|n| n as f64);
            return area / (bm * bn) + (rows / bm + columns / bn) / 2.0;
        }
        let tiles_m = match self.traits() {
            Traits { shares_rows: false, .. } => (self.expected_m(m).div_ceil(bm) * batch) as f64,
            Traits { indexed: true, .. } => m as f64,
            Traits { expected: Some(rows), .. } => {
                self.expected_entries(m, batch) * rows.max(1).div_ceil(bm) as f64
            }
            Traits { expected: None, .. } => {
                let last = (bm - 1) as f64 / 2.0;
                let each = ((self.expected_rows(m) + last) / bm as f64).max(1.0);
                self.expected_entries(m, batch) * each
            }
        };
        tiles_m * n.div_ceil(bn) as f64
    }

    /// Workgroups that are expected to find no tile. If the sizes of a list are not known, all may
    /// be idle.
    pub fn idle_tiles(self, [m, n]: [u64; 2], batch: u64, [bm, bn]: [u64; 2]) -> u64 {
        let tiles = |m: u64| m.div_ceil(bm) * n.div_ceil(bn) * batch;
        let own = match (self.traits(), self.list_sizes()) {
            (Traits { groups: Some(groups), .. }, Some(sizes)) => sizes.tiles(groups, [bm, bn]),
            (Traits { listed: true, .. }, _) => 0,
            _ => tiles(self.expected_m(m)),
        };
        tiles(m).saturating_sub(own)
    }

    /// Entries of B that are expected to have rows: rows choose their groups at random.
    pub fn expected_entries(self, m: u64, batch: u64) -> f64 {
        let groups = self.entries(batch);
        match self.traits() {
            Traits { shares_rows: false, .. } => batch as f64,
            Traits { expected: Some(rows), .. } => {
                (m as f64 / rows.max(1) as f64).min(groups as f64)
            }
            Traits { expected: None, .. } => {
                let groups = groups.max(1) as f64;
                groups * (1.0 - (1.0 - 1.0 / groups).powf(m as f64))
            }
        }
    }

    /// Rows that are expected to meet an entry of B, if any do; one if each row names its own.
    pub fn expected_rows(self, m: u64) -> f64 {
        match self.traits() {
            Traits { indexed: true, .. } => 1.0,
            Traits { shares_rows: true, .. } => m as f64 / self.expected_entries(m, 1).max(1.0),
            _ => self.expected_m(m) as f64,
        }
    }

    /// The buffers that its schedule reads, and how many u32 each has.
    pub fn operands(self) -> impl Iterator<Item = (Role, u64)> {
        let Traits { groups, offset, numbers, .. } = self.traits();
        groups.map(|_| (Role::Offsets, offset.saturating_add(numbers))).into_iter()
    }

    /// Ends of groups of equal size, counts of all rows, or indices of all entries in turn, for a
    /// measurement.
    pub fn even_ends(self, m: u64, k: u64) -> Vec<u32> {
        let even =
            |groups, size| (1..=groups).map(|group| (group * size / groups) as u32).collect();
        match self {
            // A list is not measured: the device alone knows its products.
            Grouping::Batched | Grouping::Nested { .. } | Grouping::Listed { .. } => Vec::new(),
            Grouping::RaggedM { groups, first, .. } => {
                [vec![0; first as usize], even(groups, m)].concat()
            }
            Grouping::Indexed { groups, rows, .. } => {
                (0..rows).map(|row| (row % groups.max(1)) as u32).collect()
            }
            Grouping::Masked { entries, .. } => {
                vec![self.expected_m(m) as u32; entries as usize]
            }
            Grouping::RaggedK { groups, .. } => even(groups, k),
        }
    }

    /// The grouping of a piece together with the `before` groups ahead of it.
    pub(crate) fn behind(self, before: u64) -> Self {
        match self {
            Grouping::RaggedM { groups, first, offset, expected } => {
                Grouping::RaggedM { groups: groups + before, first, offset, expected }
            }
            Grouping::RaggedK { groups, offset } => {
                Grouping::RaggedK { groups: groups + before, offset }
            }
            other => other,
        }
    }

    /// Leaves `entries` entries, for a range of a product.
    pub(crate) fn cut(&mut self, batch: &mut u64, entries: u64) {
        match self {
            Grouping::Batched | Grouping::Nested { .. } => *batch = entries,
            Grouping::RaggedM { groups, .. } | Grouping::Indexed { groups, .. } => {
                *groups = entries
            }
            Grouping::Masked { entries: own, .. }
            | Grouping::RaggedK { groups: own, .. }
            | Grouping::Listed { groups: own, .. } => {
                (*own, *batch) = (entries, entries);
            }
        }
    }

    /// The segments of a product of `m` rows and a depth of `k`, in their order; `numbers` are the
    /// ends, or the counts of rows. An end below the one before it, or beyond the last row (or all
    /// of K), is clamped, and so is a count. A group without an end has no rows, and a row without
    /// an index has no entry.
    pub fn segments(self, [m, k]: [u64; 2], batch: u64, numbers: &[u32]) -> Vec<Segment> {
        let Traits { first, offset, indexed, .. } = self.traits();
        let number =
            |group: u64| numbers.get((offset + group) as usize).map(|&number| u64::from(number));
        let mut end = 0;
        let mut next = |group, most| {
            let start = end;
            end = number(group).map_or(start, |end| end.clamp(start, most));
            start..end
        };
        for before in 0..first {
            next(before, m);
        }
        let segment = |group: u64| {
            let whole = Segment { entry: group, group, rows: 0..m, k: 0..k };
            match self {
                Grouping::Batched | Grouping::Nested { .. } | Grouping::Listed { .. } => whole,
                Grouping::Indexed { groups, .. } => {
                    let named = number(group).filter(|entry| *entry < groups);
                    let k = if named.is_some() { 0..k } else { 0..0 };
                    let row = group;
                    Segment { entry: 0, group: named.unwrap_or(0), rows: row..row + 1, k }
                }
                Grouping::RaggedM { .. } => {
                    Segment { entry: 0, rows: next(first + group, m), ..whole }
                }
                Grouping::Masked { .. } => {
                    Segment { rows: 0..number(group).unwrap_or(0).min(m), ..whole }
                }
                Grouping::RaggedK { .. } => Segment { k: next(group, k), ..whole },
            }
        };
        let count = if indexed { m } else { self.entries(batch) };
        (0..count).map(segment).collect()
    }
}

impl fmt::Display for Grouping {
    /// Writes its name in a class of problems: `batch`, `nested`, `groups`, `indexed`, `masked`,
    /// `ranges`, `list`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.traits().name)
    }
}

#[cfg(test)]
mod tests;
