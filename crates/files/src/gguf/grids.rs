//! The points of the grids that types IQ1, IQ2 and IQ3 name by number. `make_grids.py` takes them
//! from gguf's package.

/// Points of 16 bits: 8 numbers of 3 levels or 4 of 8, in 2 or 3 bits, the first in the lowest.
static POINTS: &[u8; 9216] = include_bytes!("grids.bin");

/// Where a grid begins, and its levels.
pub(super) struct Grid {
    first: usize,
    levels: &'static [i8],
}

const IQ2: &[i8] = &[8, 25, 43];
pub(super) const IQ2_XXS: Grid = Grid { first: 0, levels: IQ2 };
pub(super) const IQ2_XS: Grid = Grid { first: 256, levels: IQ2 };
pub(super) const IQ2_S: Grid = Grid { first: 768, levels: IQ2 };
/// One more than the numbers.
pub(super) const IQ1: Grid = Grid { first: 1792, levels: &[0, 1, 2] };
pub(super) const IQ3_XXS: Grid = Grid { first: 3840, levels: &[4, 12, 20, 28, 36, 44, 52, 62] };
pub(super) const IQ3_S: Grid = Grid { first: 4096, levels: &[1, 3, 5, 7, 9, 11, 13, 15] };

impl Grid {
    /// The numbers of a point: 8 of 3 levels, or 4 of 8.
    pub(super) fn point(&self, number: usize, out: &mut [i8]) {
        let at = 2 * (self.first + number);
        let bits = u16::from_le_bytes([POINTS[at], POINTS[at + 1]]);
        let width = if self.levels.len() == 3 { 2 } else { 3 };
        for (i, out) in out.iter_mut().enumerate() {
            *out = self.levels[usize::from(bits >> (width * i) & ((1 << width) - 1))];
        }
    }
}
