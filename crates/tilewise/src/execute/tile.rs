//! The sums of a tile. Many rows: the crate `matrixmultiply`, on panels of f32 that stay in the
//! cache if an operand is stored otherwise. Few rows: each line of the right operand is read once,
//! and multiplied with all rows.

use super::source::Source;
use std::ops::Range;
use tilewise_core::lanes::{self, add_scaled, dots};
use tilewise_core::{Format, Operand};

/// The left operand of an entry.
pub(super) struct Left<'a> {
    pub(super) source: &'a Source<'a>,
    pub(super) operand: Operand,
    /// Its first element.
    pub(super) first: u64,
    /// The rows that are its own, of so many, if they are named. Others are zeros.
    pub(super) indices: Option<(&'a [u32], u64)>,
}

/// The right operand of an entry.
pub(super) struct Right<'a> {
    pub(super) source: &'a Source<'a>,
    pub(super) operand: Operand,
    /// Its first element.
    pub(super) first: u64,
}

/// Rows and columns of tiles. A large tile has more sums for each element that is packed.
const HIGH: usize = 512;
const WIDE: usize = 256;
/// Columns of a tile of few rows if those of B are contiguous, and the least of other tiles.
const NARROW: usize = 64;
/// Elements along K of a panel, and of a line at a time. A multiple of all blocks.
const DEEP: usize = 512;

/// The most rows for which a panel costs more than it saves.
fn few(b: &Source<'_>, transposed: bool) -> usize {
    match b.format {
        Format::Quantized(_) => 3,
        Format::Dense(_) if transposed => 2,
        Format::Dense(_) => 1,
    }
}

/// Rows and columns of the tiles of a product: large ones, but four at least if there is enough to
/// do.
pub(super) fn sizes(m: usize, n: usize, b: &Source<'_>, by_columns: bool) -> [usize; 2] {
    let few = few(b, by_columns);
    if m <= few {
        return [m.max(1), if by_columns { NARROW } else { WIDE }];
    }
    let wide = n.div_ceil(2).next_multiple_of(16).clamp(NARROW, WIDE);
    let high = m.div_ceil(2).next_multiple_of(16).clamp(NARROW, HIGH);
    [high, wide]
}

/// Computes rows and columns of a product with a depth of `k`. `sums` are zeros.
pub(super) fn sums(
    left: &Left<'_>,
    right: &Right<'_>,
    [rows, cols]: [Range<usize>; 2],
    k: usize,
    sums: &mut [f32],
) {
    if rows.len() > few(right.source, right.operand.transposed) {
        return many(left, right, [rows, cols], k, sums);
    }
    let mut own = vec![0.0; rows.len() * k];
    left.panel(rows, 0..k, &mut own);
    if right.operand.transposed {
        by_columns(&own, right, cols, k, sums);
    } else {
        by_rows(&own, right, cols, k, sums);
    }
}

/// Few rows, whose columns of B are contiguous: scalar products.
fn by_columns(own: &[f32], right: &Right<'_>, cols: Range<usize>, k: usize, sums: &mut [f32]) {
    let (width, count) = (cols.len(), sums.len() / cols.len());
    let mut line = [0.0; DEEP];
    for (at, col) in cols.enumerate() {
        for first in (0..k).step_by(DEEP) {
            let depth = DEEP.min(k - first);
            let weights = right.part(col, first, &mut line[..depth]);
            let row = |row: usize| &own[row * k + first..][..depth];
            lanes::widest(
                #[inline(always)]
                || {
                    let mut done = 0;
                    while done + 4 <= count {
                        let four: [f32; 4] = dots(lanes::array(|i| row(done + i)), weights);
                        four.iter().zip(done..).for_each(|(sum, r)| sums[r * width + at] += sum);
                        done += 4;
                    }
                    for r in done..count {
                        sums[r * width + at] += dots([row(r)], weights)[0];
                    }
                },
            );
        }
    }
}

/// Few rows, whose rows of B are contiguous: each is added to the sums, times an element of A.
fn by_rows(own: &[f32], right: &Right<'_>, cols: Range<usize>, k: usize, sums: &mut [f32]) {
    let width = cols.len();
    let mut room = [[0.0; WIDE]; 4];
    let zeros = [0.0; WIDE];
    for first in (0..k).step_by(4) {
        // Lines beyond K are zeros.
        let mut lines = [&zeros[..width]; 4];
        let steps = (k - first).min(4);
        for (step, (line, room)) in lines.iter_mut().zip(&mut room).take(steps).enumerate() {
            *line = right.part(first + step, cols.start, &mut room[..width]);
        }
        lanes::widest(
            #[inline(always)]
            || {
                for (row, sums) in sums.chunks_exact_mut(width).enumerate() {
                    let mut factors = [0.0; 4];
                    factors[..steps].copy_from_slice(&own[row * k + first..][..steps]);
                    add_scaled(sums, factors, lines);
                }
            },
        );
    }
}

/// Many rows. What is not stored as f32 is read in panels.
fn many(
    left: &Left<'_>,
    right: &Right<'_>,
    [rows, cols]: [Range<usize>; 2],
    k: usize,
    sums: &mut [f32],
) {
    let (a, b) = (left.stored(), right.source.floats());
    let deep = if a.is_some() && b.is_some() { k.max(1) } else { DEEP };
    let [mut own, mut panel] = [Vec::new(), Vec::new()];
    for first in (0..k).step_by(deep) {
        let ks = first..k.min(first + deep);
        let (m, n, depth) = (rows.len(), cols.len(), ks.len());
        let a = match a {
            Some(stored) => {
                Matrix::stored(stored, &left.operand, left.first, [rows.start, ks.start])
            }
            None => {
                own.resize(m * depth, 0.0);
                left.panel(rows.clone(), ks.clone(), &mut own);
                Matrix { elements: &own, steps: [depth, 1] }
            }
        };
        let b = match b {
            Some(stored) => {
                Matrix::stored(stored, &right.operand, right.first, [ks.start, cols.start])
            }
            None => {
                panel.resize(n * depth, 0.0);
                let [lines, along] = match right.operand.transposed {
                    true => [cols.clone(), ks],
                    false => [ks, cols.clone()],
                };
                for (line, out) in lines.zip(panel.chunks_exact_mut(along.len())) {
                    let at = right.first + line as u64 * right.operand.ld + along.start as u64;
                    right.source.read(at, out);
                }
                let steps = if right.operand.transposed { [1, depth] } else { [n, 1] };
                Matrix { elements: &panel, steps }
            }
        };
        multiply(a, b, [m, n, depth], first > 0, sums);
    }
}

impl Left<'_> {
    /// All elements, if rows follow one another and are stored as f32.
    fn stored(&self) -> Option<&[f32]> {
        self.source.floats().filter(|_| self.indices.is_none())
    }

    /// Reads a part of its rows, row after row.
    fn panel(&self, rows: Range<usize>, ks: Range<usize>, out: &mut [f32]) {
        if ks.is_empty() {
            return;
        }
        let Operand { ld, transposed, .. } = self.operand;
        for (row, out) in rows.zip(out.chunks_exact_mut(ks.len())) {
            let row = match self.indices {
                None => row as u64,
                Some((indices, all)) if u64::from(indices[row]) < all => indices[row].into(),
                Some(_) => {
                    out.fill(0.0);
                    continue;
                }
            };
            let first = ks.start as u64;
            match transposed {
                true => self.source.read_apart(self.first + first * ld + row, ld, out),
                false => self.source.read(self.first + row * ld + first, out),
            }
        }
    }
}

impl Right<'_> {
    /// A part of a line, from its element `first` on. `room` has its length.
    fn part<'r>(&'r self, line: usize, first: usize, room: &'r mut [f32]) -> &'r [f32] {
        let at = self.first + line as u64 * self.operand.ld + first as u64;
        match self.source.floats() {
            Some(all) => &all[at as usize..][..room.len()],
            None => {
                self.source.read(at, room);
                room
            }
        }
    }
}

/// Elements, and the distances of rows and of columns.
struct Matrix<'a> {
    elements: &'a [f32],
    steps: [usize; 2],
}

impl<'a> Matrix<'a> {
    /// An operand from a row and a column on.
    fn stored(all: &'a [f32], own: &Operand, first: u64, [row, col]: [usize; 2]) -> Self {
        let ld = own.ld as usize;
        let steps = if own.transposed { [1, ld] } else { [ld, 1] };
        Matrix { elements: &all[first as usize + row * steps[0] + col * steps[1]..], steps }
    }

    /// Whether it has an element in the last of so many rows and columns.
    fn reaches(&self, [rows, cols]: [usize; 2]) -> bool {
        (rows - 1) * self.steps[0] + (cols - 1) * self.steps[1] < self.elements.len()
    }
}

/// sums \[m,n\] = A·B, or, if `add`, sums + A·B.
fn multiply(a: Matrix<'_>, b: Matrix<'_>, [m, n, k]: [usize; 3], add: bool, sums: &mut [f32]) {
    assert!(m * n * k > 0 && a.reaches([m, k]) && b.reaches([k, n]) && sums.len() == m * n);
    let [a_steps, b_steps] = [a.steps, b.steps].map(|steps| steps.map(|step| step as isize));
    // SAFETY: sgemm reads A at i·a_steps[0] + j·a_steps[1] for i < m, j < k, and B likewise; the
    // largest index of each was just compared with its length. It writes m·n elements of `sums`,
    // row-major, which has just that length and overlaps neither.
    unsafe {
        matrixmultiply::sgemm(
            m,
            k,
            n,
            1.0,
            a.elements.as_ptr(),
            a_steps[0],
            a_steps[1],
            b.elements.as_ptr(),
            b_steps[0],
            b_steps[1],
            f32::from(add),
            sums.as_mut_ptr(),
            n as isize,
            1,
        );
    }
}
