//! Inputs for a case. They are the same in every run of an answer.

use crate::puzzle::{Array, Case};

/// The number of sets of inputs that are the same for every answer.
pub(crate) const SETS: u64 = 3;

/// The sets of inputs on which an answer is run: the common sets, and a set of its own, drawn from
/// its text. Writing expected numbers into an answer, instead of computing them, changes its text,
/// and with it the expected numbers.
pub(crate) fn sets(body: &str) -> impl Iterator<Item = u64> {
    (0..SETS).chain([hash(body)])
}

/// The Fowler-Noll-Vo hash, FNV-1a in 64 bits: the same on every machine and for every release of
/// the compiler.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
    text.bytes().fold(0xCBF2_9CE4_8422_2325, step)
}

/// Set `set` of the inputs of a case: whole numbers from -9 to 9, which make every sum and product
/// exact, but never 0, which would hide a missing term.
pub(crate) fn inputs(case: &Case, set: u64) -> Vec<Array> {
    let mut state = set;
    let array = |shape: &&[usize]| {
        let values = (0..shape.iter().product()).map(|_| number(split_mix(&mut state))).collect();
        Array { shape: shape.to_vec(), values }
    };
    case.inputs.iter().map(array).collect()
}

/// One of -9 … -1, 1 … 9.
fn number(random: u64) -> f32 {
    let magnitude = (1 + (random >> 1) % 9) as f32;
    if random & 1 == 0 { magnitude } else { -magnitude }
}

/// Steele, Lea and Flood's SplitMix64, the usual generator for a few good numbers from a small
/// seed.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::PUZZLES;

    #[test]
    fn small_whole_and_never_zero() {
        let mut seen = Vec::new();
        for case in PUZZLES.iter().flat_map(|puzzle| puzzle.cases) {
            for array in (0..SETS).flat_map(|set| inputs(case, set)) {
                assert_eq!(array.values.len(), array.shape.iter().product::<usize>());
                seen.extend(array.values);
            }
        }
        assert!(
            seen.iter().all(|value| value.fract() == 0.0 && (1.0..=9.0).contains(&value.abs()))
        );
        for expected in (-9..=9).filter(|&value| value != 0) {
            assert!(seen.contains(&(expected as f32)), "{expected} never comes up");
        }
    }

    #[test]
    fn every_text_has_a_set_of_its_own() {
        // Test vectors of Fowler, Noll and Vo.
        assert_eq!(
            [hash(""), hash("a"), hash("foobar")],
            [0xCBF29CE484222325, 0xAF63DC4C8601EC8C, 0x85944171F73967E8]
        );
        assert_eq!(sets("a").collect::<Vec<_>>(), [0, 1, 2, 0xAF63DC4C8601EC8C]);
    }

    #[test]
    fn sets_differ_and_repeat() {
        let case = &PUZZLES[8].cases[0];
        let values = |set| inputs(case, set).remove(0).values;
        assert_eq!(values(1), values(1));
        assert_ne!(values(0), values(1));
    }
}
