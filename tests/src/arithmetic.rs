//! The f32 arithmetic on bits of `shaders/convert/float.wgsl`, against the host's.

use crate::Rng;
use half::{bf16, f16};
use tilewise_shaders::FILES;

/// The file of the functions.
pub const FILE: &str = "convert/float.wgsl";

/// Results of a pair, as [`BODY`] writes them.
pub const RESULTS: usize = 13;

/// Applies all functions to the pair `x`, `y`, and writes the results to `out` from `at` on.
pub const BODY: &str = include_str!("arithmetic.wgsl");

/// The text of the functions.
pub fn text() -> &'static str {
    FILES.iter().find(|(path, _)| *path == FILE).map_or("", |(_, text)| text)
}

/// Numbers at which rounding, range or sign change.
fn edges() -> Vec<u32> {
    let mut edges = vec![
        0,
        1,
        2,
        3,
        0x0040_0000,
        0x007f_ffff,
        0x0080_0000,
        0x0080_0001,
        0x00ff_ffff,
        0x0100_0000,
    ];
    // Ties and their neighbours: those of f32's integers, of f16 and of bf16, and subnormal ones.
    let ties = [
        0.5f32, 1.5, 2.5, 62.5, 63.5, 8388607.5, 4194304.5, 8388608.0, 8388609.0, 65520.0, 65504.0,
        0.25, 1.0,
    ];
    let halves = [1.0 + 1.0 / 2048.0, 1.0 + 3.0 / 2048.0, 1.0 + 1.0 / 256.0, 1.0 + 3.0 / 256.0];
    let small = [
        2f32.powi(-14),
        2f32.powi(-24),
        2f32.powi(-25),
        3.0 * 2f32.powi(-25),
        2f32.powi(-26),
        2f32.powi(-126),
    ];
    for value in ties.into_iter().chain(halves).chain(small).chain([
        f32::MAX,
        3.389_531_4e38,
        1e-7,
        255.0,
        127.0,
    ]) {
        let bits = value.to_bits();
        edges.extend([bits - 1, bits, bits + 1]);
    }
    edges.extend([f32::INFINITY.to_bits(), 0x7f80_0001, 0x7fc0_0000, 0x7fff_ffff]);
    // f16 and bf16 in the upper halves of words.
    edges.extend(
        [0x0001, 0x0002, 0x0200, 0x03ff, 0x0400, 0x7bff, 0x7c00, 0x7c01, 0x7e01, 0x7f81]
            .map(|half| half << 16),
    );
    let negative: Vec<u32> = edges.iter().map(|bits| bits | 1 << 31).collect();
    edges.into_iter().chain(negative).collect()
}

/// Pairs of bits: all edges with each other, and `count` pairs of random numbers. Those are drawn
/// so that their exponents meet: any bits, near exponents, few digits, subnormal numbers.
pub fn pairs(count: usize) -> Vec<[u32; 2]> {
    let edges = edges();
    let mut pairs: Vec<_> =
        edges.iter().flat_map(|&x| edges.iter().map(move |&y| [x, y])).collect();
    // A product that lies above a tie by its 13th bit alone.
    pairs.push([0x3f81_0040, 0x3f80_0040]);
    let mut rng = Rng::new(25);
    for i in 0..count {
        let [x, y] = [rng.bits() as u32, rng.bits() as u32];
        let sign = (rng.bits() as u32) << 31;
        pairs.push(match i % 6 {
            0 => [x, y],
            // The exponents are at most 31 apart.
            1 => [
                x,
                (y & 0x807f_ffff)
                    | ((x >> 23 & 0xff).wrapping_add(rng.below(32) as u32) & 0xff) << 23,
            ],
            // The mantissas have few digits, so that there are ties.
            2 => [x & 0xffff_e000, (y & 0x807f_f000) | (x & 0x7f80_0000)],
            // One number or both are subnormal.
            3 => [x & 0x80ff_ffff, y & 0x83ff_ffff],
            // Quotients and products are subnormal, or integers.
            4 => [(x & 0x01ff_ffff) | sign, 0x3f00_0000 | (y & 0x81ff_ffff)],
            _ => [
                0x3f00_0000 | (x & 0x8fff_ffff),
                (y & 0x8000_0000) | (0x3000_0000 + (y & 0x1fff_ffff)),
            ],
        });
    }
    pairs
}

/// The results that a pair must have.
pub fn expected([x, y]: [u32; 2]) -> [u32; RESULTS] {
    let [a, b] = [x, y].map(f32::from_bits);
    // One NaN stands for all NaN that arithmetic gives.
    let bits = |value: f32| if value.is_nan() { 0x7fc0_0000 } else { value.to_bits() };
    let half = (x >> 16) as u16;
    let key = |bits: u32| if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
    let level = a.round_ties_even().clamp(0.0, 63.0);
    let rint = if a.is_nan() { x } else { a.round_ties_even().to_bits() };
    [
        bits(a + b),
        bits(a - b),
        bits(a * b),
        bits(a / b),
        rint,
        if level.is_nan() { 0 } else { level as u32 },
        u32::from(f16::from_f32(a).to_bits()),
        u32::from(bf16::from_f32(a).to_bits()),
        f16::from_bits(half).to_f32().to_bits(),
        bf16::from_bits(half).to_f32().to_bits(),
        x,
        u32::from(key(x) < key(y)) | u32::from(a.is_finite()) << 1,
        if a.abs() < 8388608.0 { half_up(a.abs()) } else { 0 },
    ]
}

/// Rounds halves up. MinGW's `round` gives 1 for the number before 0.5.
fn half_up(a: f32) -> u32 {
    a as u32 + u32::from(a.fract() >= 0.5)
}

/// Describes the first few results that are wrong.
pub fn complaints(pairs: &[[u32; 2]], results: &[u32]) -> Vec<String> {
    let of = |(pair, got): (&[u32; 2], &[u32])| {
        let wanted = expected(*pair);
        let wrong = wanted.iter().zip(got).position(|(wanted, got)| wanted != got)?;
        Some(format!(
            "result {wrong} of {pair:08x?} is {:08x}, wanted {:08x}",
            got[wrong], wanted[wrong]
        ))
    };
    pairs.iter().zip(results.chunks_exact(RESULTS)).filter_map(of).take(8).collect()
}
