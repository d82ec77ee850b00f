//! The points of the grids that types IQ1, IQ2 and IQ3 name by number. `make_grids.py` takes them
//! from gguf's package.

/// Points of 16 bits: 8 numbers of 3 levels or 4 of 8, in 2 or 3 bits, the first in the lowest.
const POINTS: &[u8; 9216] = include_bytes!("grids.bin");

/// The number of the first point of a grid with 8 numbers to a point.
pub(super) const IQ2_XXS: usize = 0;
pub(super) const IQ2_XS: usize = 256;
pub(super) const IQ2_S: usize = 768;
/// One more than the numbers.
pub(super) const IQ1: usize = 1792;
/// Points of 8 numbers.
const EIGHTS: usize = 3840;

/// The number of the first point of a grid with 4 numbers to a point.
pub(super) const IQ3_XXS: usize = 0;
/// 8 and half of the odd numbers, rounded down.
pub(super) const IQ3_S: usize = 256;

/// The numbers of points, as bytes, the first in the lowest.
pub(super) static EIGHT: [u64; EIGHTS] = eights();
pub(super) static FOUR: [u32; 768] = fours();

const fn point(number: usize) -> u16 {
    u16::from_le_bytes([POINTS[2 * number], POINTS[2 * number + 1]])
}

const fn eights() -> [u64; EIGHTS] {
    let mut points = [0; EIGHTS];
    let mut i = 0;
    while i < 8 * points.len() {
        let levels = if i / 8 < IQ1 { [8, 25, 43, 0] } else { [0, 1, 2, 0] };
        let level = point(i / 8) >> (i % 8 * 2) & 3;
        points[i / 8] |= levels[level as usize] << (i % 8 * 8);
        i += 1;
    }
    points
}

const fn fours() -> [u32; 768] {
    let mut points = [0; 768];
    let mut i = 0;
    while i < 4 * points.len() {
        let levels = if i / 4 < IQ3_S {
            [4, 12, 20, 28, 36, 44, 52, 62]
        } else {
            [8, 9, 10, 11, 12, 13, 14, 15]
        };
        let level = point(EIGHTS + i / 4) >> (i % 4 * 3) & 7;
        points[i / 4] |= levels[level as usize] << (i % 4 * 8);
        i += 1;
    }
    points
}
