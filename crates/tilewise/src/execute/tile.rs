//! The sums of a tile. The crate `matrixmultiply` multiplies many rows. An operand that is not
//! stored as f32 is read into panels of f32, which stay in the cache. If rows are few, each line
//! of the right operand is read once, and multiplied with all rows.

use super::source::Source;
use std::ops::Range;
use tilewise_core::lanes::{self, add_scaled, dot};
use tilewise_core::{Format, Operand};

/// An operand of an entry.
pub(super) struct Factor<'a> {
    pub(super) source: &'a Source<'a>,
    pub(super) operand: Operand,
    /// Its first element.
    pub(super) first: u64,
    /// The rows that it takes, of so many, if they are named. A row beyond them is zeros.
    pub(super) indices: Option<(&'a [u32], u64)>,
}

/// Rows and columns of tiles. A large tile has more sums for each element that is packed.
const HIGH: usize = 512;
const WIDE: usize = 256;
/// Columns of a tile of few rows if those of B are contiguous, and the least of other tiles.
const NARROW: usize = 64;
/// Elements along K of a panel, and of a line at a time. A multiple of all blocks.
const DEEP: usize = 512;

/// The most rows that are few for any operand.
const FEW: usize = 3;

/// The most rows for which a panel costs more than it saves.
fn few(b: &Source<'_>, transposed: bool) -> usize {
    match b.format {
        Format::Quantized(_) => FEW,
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
    a: &Factor<'_>,
    b: &Factor<'_>,
    [rows, cols]: [Range<usize>; 2],
    k: usize,
    sums: &mut [f32],
) {
    let is_few = rows.len() <= few(b.source, b.operand.transposed);
    let deep = match (a.stored(), b.stored()) {
        (Some(_), Some(_)) if !is_few => k.max(1),
        _ => DEEP,
    };
    let [mut own, mut panel] = [Vec::new(), Vec::new()];
    for first in (0..k).step_by(deep) {
        let ks = first..k.min(first + deep);
        let size = [rows.len(), cols.len(), ks.len()];
        let a = a.matrix([rows.clone(), ks.clone()], &mut own);
        match (is_few, b.operand.transposed) {
            (false, _) => {
                let b = b.matrix([ks, cols.clone()], &mut panel);
                multiply(&a, &b, size, first > 0, sums);
            }
            (true, true) => by_columns(&a, b, cols.clone(), ks, sums),
            (true, false) => by_rows(&a, b, cols.clone(), ks, sums),
        }
    }
}

/// Few rows, whose columns of B are contiguous: adds scalar products.
fn by_columns(
    a: &Matrix<'_>,
    b: &Factor<'_>,
    cols: Range<usize>,
    ks: Range<usize>,
    sums: &mut [f32],
) {
    let (width, depth) = (cols.len(), ks.len());
    let (mut rooms, mut room) = ([[0.0; DEEP]; FEW], [0.0; DEEP]);
    let rooms = rooms.iter_mut().take(sums.len() / width).enumerate();
    let rows: Vec<&[f32]> = rooms.map(|(row, room)| a.row(row, &mut room[..depth])).collect();
    for (at, col) in cols.enumerate() {
        let weights = b.part(col, ks.start, &mut room[..depth]);
        lanes::widest(
            #[inline(always)]
            || {
                for (row, own) in rows.iter().enumerate() {
                    sums[row * width + at] += dot(own, weights);
                }
            },
        );
    }
}

/// Few rows, whose rows of B are contiguous: adds each row of B, times an element of A.
fn by_rows(a: &Matrix<'_>, b: &Factor<'_>, cols: Range<usize>, ks: Range<usize>, sums: &mut [f32]) {
    let width = cols.len();
    let mut rooms = [[0.0; WIDE]; 4];
    let zeros = [0.0; WIDE];
    for first in ks.clone().step_by(4) {
        // Lines beyond K are zeros.
        let mut lines = [&zeros[..width]; 4];
        let steps = (ks.end - first).min(4);
        for (step, (line, room)) in lines.iter_mut().zip(&mut rooms).take(steps).enumerate() {
            *line = b.part(first + step, cols.start, &mut room[..width]);
        }
        lanes::widest(
            #[inline(always)]
            || {
                for (row, sums) in sums.chunks_exact_mut(width).enumerate() {
                    let mut factors = [0.0; 4];
                    for (step, factor) in factors.iter_mut().take(steps).enumerate() {
                        *factor = a.at(row, first - ks.start + step);
                    }
                    add_scaled(sums, factors, lines);
                }
            },
        );
    }
}

impl<'a> Factor<'a> {
    /// All elements, if they are stored as f32 and no rows are named.
    fn stored(&self) -> Option<&'a [f32]> {
        self.source.floats().filter(|_| self.indices.is_none())
    }

    /// Rows and columns of it, where they are stored or in `room`.
    fn matrix<'r>(&'r self, [rows, cols]: [Range<usize>; 2], room: &'r mut Vec<f32>) -> Matrix<'r> {
        let Operand { ld, transposed, .. } = self.operand;
        if let Some(all) = self.stored() {
            let ld = ld as usize;
            let steps = if transposed { [1, ld] } else { [ld, 1] };
            let first = self.first as usize + rows.start * steps[0] + cols.start * steps[1];
            return Matrix { elements: &all[first..], steps };
        }
        room.resize(rows.len() * cols.len(), 0.0);
        match (transposed, self.indices) {
            (false, None) => {
                for (row, out) in rows.zip(room.chunks_exact_mut(cols.len())) {
                    self.part(row, cols.start, out);
                }
            }
            (true, None) => {
                let (first, height) = (rows.start, rows.len());
                for (col, out) in cols.zip(room.chunks_exact_mut(height)) {
                    self.part(col, first, out);
                }
                return Matrix { elements: room, steps: [1, height] };
            }
            (_, Some((indices, all))) => {
                for (row, out) in rows.zip(room.chunks_exact_mut(cols.len())) {
                    match u64::from(indices[row]) {
                        row if row >= all => out.fill(0.0),
                        row if transposed => {
                            let first = self.first + cols.start as u64 * ld + row;
                            self.source.read_apart(first, ld, out);
                        }
                        row => {
                            self.part(row as usize, cols.start, out);
                        }
                    }
                }
            }
        }
        Matrix { elements: room, steps: [cols.len(), 1] }
    }

    /// A part of a line, from its element `first` on: where it is stored, or in `room`, which has
    /// its length.
    fn part<'r>(&'r self, line: usize, first: usize, room: &'r mut [f32]) -> &'r [f32] {
        let at = self.first + line as u64 * self.operand.ld + first as u64;
        match self.stored() {
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

impl Matrix<'_> {
    fn at(&self, row: usize, col: usize) -> f32 {
        self.elements[row * self.steps[0] + col * self.steps[1]]
    }

    /// A row from its start on: where it lies, or in `room`, which has its length.
    fn row<'r>(&'r self, row: usize, room: &'r mut [f32]) -> &'r [f32] {
        if self.steps[1] == 1 {
            return &self.elements[row * self.steps[0]..][..room.len()];
        }
        for (col, out) in room.iter_mut().enumerate() {
            *out = self.at(row, col);
        }
        room
    }

    /// Whether it has an element in the last of so many rows and columns.
    fn reaches(&self, [rows, cols]: [usize; 2]) -> bool {
        (rows - 1) * self.steps[0] + (cols - 1) * self.steps[1] < self.elements.len()
    }
}

/// sums \[m,n\] = A·B, or, if `add`, sums + A·B.
fn multiply(a: &Matrix<'_>, b: &Matrix<'_>, [m, n, k]: [usize; 3], add: bool, sums: &mut [f32]) {
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
