//! A shape as a list of products in its operands, and as a problem.

use super::experts::HALVINGS;
use super::{Experts, Shape, Sharing};
use tilewise_core::plan::Table;
use tilewise_core::problem::ListSizes;
use tilewise_core::{Activation, Epilogue, Format, Gathered, Grouping, Operand, Problem};

/// A matrix in its storage: the place of its first element, and the distances from one row to the
/// next and from one column to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) first: usize,
    pub(crate) row: usize,
    pub(crate) col: usize,
}

/// The product of one entry of a batch, or of one group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) mnk: [usize; 3],
    /// The places of A, B and C.
    pub(crate) places: [Place; 3],
}

impl Place {
    fn packed(first: usize, [rows, cols]: [usize; 2], transposed: bool) -> Self {
        match transposed {
            true => Place { first, row: 1, col: rows },
            false => Place { first, row: cols, col: 1 },
        }
    }

    /// The place of an element.
    pub(crate) fn at(self, row: usize, col: usize) -> usize {
        self.first + row * self.row + col * self.col
    }

    /// A place that begins at this element.
    fn from(self, row: usize, col: usize) -> Self {
        Place { first: self.at(row, col), ..self }
    }
}

impl Shape {
    /// A product with packed matrices that begin at these places.
    fn part(&self, mnk: [usize; 3], [a, b, c]: [usize; 3]) -> Part {
        let ([m, n, k], [a_turned, b_turned]) = (mnk, self.transposed());
        let places = [
            Place::packed(a, [m, k], a_turned),
            Place::packed(b, [k, n], b_turned),
            Place::packed(c, [m, n], false),
        ];
        Part { mnk, places }
    }

    /// All products, with these numbers of groups. If the shape has no groups, the numbers are ends
    /// of groups of rows.
    pub(crate) fn parts(&self, numbers: &[u32]) -> Vec<Part> {
        let [m, n, k] = self.mnk;
        let entry = |i: usize| self.part(self.mnk, [m * k, k * n, m * n].map(|size| i * size));
        let starts = [0].into_iter().chain(numbers.iter().copied());
        let ranges = starts.zip(numbers).map(|(start, &end)| [start as usize, end as usize]);
        match self.experts {
            None if numbers.is_empty() => (0..self.batch).map(entry).collect(),
            None | Some(Experts { sharing: Sharing::Even | Sharing::Zipf, .. }) => {
                let [a, _, c] = entry(0).places;
                let part = |(group, [start, end]): (usize, [usize; 2])| Part {
                    mnk: [end - start, n, k],
                    places: [a.from(start, 0), entry(group).places[1], c.from(start, 0)],
                };
                ranges.enumerate().map(part).collect()
            }
            Some(Experts { sharing: Sharing::Indexed, .. }) => {
                let [a, _, c] = entry(0).places;
                let part = |(row, &group): (usize, &u32)| Part {
                    mnk: [1, n, k],
                    places: [a.from(row, 0), entry(group as usize).places[1], c.from(row, 0)],
                };
                numbers.iter().enumerate().map(part).collect()
            }
            Some(Experts { sharing: Sharing::Masked(_), .. }) => {
                let part = |(group, &rows): (usize, &u32)| Part {
                    mnk: [rows as usize, n, k],
                    ..entry(group)
                };
                numbers.iter().enumerate().map(part).collect()
            }
            Some(Experts { sharing: Sharing::AlongK, .. }) => {
                let [a, b, _] = entry(0).places;
                let part = |(group, [start, end]): (usize, [usize; 2])| Part {
                    mnk: [m, n, end - start],
                    places: [a.from(0, start), b.from(start, 0), entry(group).places[2]],
                };
                ranges.enumerate().map(part).collect()
            }
            Some(Experts { count, sharing: Sharing::Halves }) => {
                let mut firsts = [0; 3];
                let part = |i: usize| {
                    let sizes @ [m, n, k] = self.mnk.map(|side| side >> i.min(HALVINGS));
                    let part = self.part(sizes, firsts);
                    let used = [m * k, k * n, m * n];
                    (0..3).for_each(|at| firsts[at] += used[at]);
                    part
                };
                (0..count).map(part).collect()
            }
        }
    }

    /// How many matrices of a dense B fit a buffer of `most` bytes; none if it holds those of all
    /// experts.
    pub(crate) fn shards(&self, groups: usize, most: u64) -> Option<usize> {
        let [_, [entries, rows, columns], _] = self.storage(groups);
        let by_rows =
            matches!(self.experts, Some(Experts { sharing: Sharing::Even | Sharing::Zipf, .. }));
        let bytes = rows as u64 * columns as u64 * self.dtype.bytes();
        let held = usize::try_from(most / bytes).unwrap_or(usize::MAX);
        (by_rows && self.quantized.is_none() && held < entries).then_some(held.max(1))
    }

    /// The storage of A, B and C for `groups` groups: entries, rows and columns.
    pub(crate) fn storage(&self, groups: usize) -> [[usize; 3]; 3] {
        let ([m, n, k], batch) = (self.mnk, self.batch);
        // Indexed rows have a number for each row, not for each group.
        let groups = match self.experts {
            Some(Experts { count, sharing: Sharing::Indexed }) => count,
            _ => groups,
        };
        match self.experts.map(|experts| experts.sharing) {
            None if groups == 0 => [[batch, m, k], [batch, k, n], [batch, m, n]],
            None | Some(Sharing::Even | Sharing::Zipf | Sharing::Indexed) => {
                [[1, m, k], [groups, k, n], [1, m, n]]
            }
            Some(Sharing::Masked(_)) => [[groups, m, k], [groups, k, n], [groups, m, n]],
            Some(Sharing::AlongK) => [[1, m, k], [1, k, n], [groups, m, n]],
            Some(Sharing::Halves) => {
                let parts = self.parts(&[]);
                let sum = |[one, other]: [usize; 2]| {
                    parts.iter().map(|part| part.mnk[one] * part.mnk[other]).sum()
                };
                [[0, 2], [2, 1], [0, 1]].map(|sides| [1, 1, sum(sides)])
            }
        }
    }

    /// The product as a problem, with packed operands and with weights as the library stores them.
    pub fn problem(&self) -> Problem {
        let [m, n, k] = self.mnk.map(|size| size as u64);
        let groups = self.experts.map_or(0, |experts| experts.count);
        let dense = Format::Dense(self.dtype);
        let turned = [&self.transposed()[..], &[false]].concat();
        let [a, b, c] = [(0, dense), (1, self.b_format()), (2, dense)].map(|(at, format)| {
            let [entries, rows, cols] = self.storage(groups)[at].map(|size| size as u64);
            match (format, turned[at]) {
                (Format::Quantized(format), _) => {
                    Table::stored(format, entries, cols, rows).operand.t()
                }
                (_, true) => Operand::packed(format, entries, cols, rows).t(),
                (_, false) => Operand::packed(format, entries, rows, cols),
            }
        });
        let rows = Gathered { rows: m, offset: 0, step: 1, len: m };
        let gated = Epilogue {
            activation: Activation::Silu,
            residual: Some(c),
            gated: true,
            ..Epilogue::default()
        };
        let problem = Problem {
            batch: self.batch as u64,
            a,
            b,
            c,
            gathered: self.gathered.then_some(rows),
            epilogue: if self.gated { gated } else { Epilogue::default() },
            ..Problem::dense(self.dtype, m, n, k)
        };
        let Some(Experts { sharing, .. }) = self.experts else { return problem };
        let (groups, offset) = (groups as u64, 0);
        let grouping = match sharing {
            Sharing::Even | Sharing::Zipf => {
                Grouping::RaggedM { groups, first: 0, offset, expected: None }
            }
            Sharing::Indexed => Grouping::Indexed { groups, rows: m, offset },
            Sharing::Masked(rows) => {
                Grouping::Masked { entries: groups, offset, expected: rows.map(|rows| rows as u64) }
            }
            Sharing::AlongK => Grouping::RaggedK { groups, offset },
            Sharing::Halves => {
                let parts = self.parts(&[]);
                let sizes = parts.iter().map(|part| [part.mnk[0], part.mnk[1]].map(|n| n as u32));
                Grouping::Listed { groups, offset, sizes: Some(ListSizes::of(sizes)) }
            }
        };
        // All groups share one A, and one B.
        let shared = |own: Operand| match sharing {
            Sharing::AlongK => Operand { batch_stride: 0, ..own },
            // Products of a list may begin anywhere.
            Sharing::Halves => Operand { ld: 1, ..own },
            _ => own,
        };
        let batch = grouping.batch().unwrap_or(1);
        Problem { grouping, batch, a: shared(a), b: shared(b), ..problem }
    }
}
