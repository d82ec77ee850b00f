//! GGUF's K-quants, and IQ4_XS: 256 elements to a block, in sub-blocks of 16 or 32 with scales of a
//! few bits each, under one scale in f16. If minima are subtracted, they have a second scale in
//! f16. These formats are read and multiplied with, not made.

use super::format::{Codec, FormatDef, Plane, Stored, of_finite};
use super::gguf::IQ4_NL;
use crate::convert;
use crate::dtype::DType;
use crate::lanes::array;
use half::f16;

const BLOCK: usize = 256;

/// GGUF's formats of 256 elements. Blocks of whole words stay whole. In other blocks the scale is a
/// separate plane.
pub static FORMATS: &[FormatDef] = &[
    row("q4_k", 12, "k45", &[words("blocks", 144)], &[("X_HIGH", 0)], &Q4K::<false>),
    row("q5_k", 13, "k45", &[words("blocks", 176)], &[("X_HIGH", 1)], &Q4K::<true>),
    row("q6_k", 14, "q6_k", &[words("codes", 208), SCALES], &[], &Q6K),
    row("q2_k", 10, "q2_k", &[words("blocks", 84)], &[], &Q2K),
    row("q3_k", 11, "q3_k", &[words("codes", 108), SCALES], &[], &Q3K),
    row("iq4_xs", 23, "iq4_xs", &[words("blocks", 136)], &[], &Iq4Xs),
];

const SCALES: Plane = Plane { name: "scales", of: Stored::Numbers(DType::F16), bytes: 2 };

const fn words(name: &'static str, bytes: u64) -> Plane {
    Plane { name, of: Stored::Words, bytes }
}

const fn row(
    name: &'static str,
    number: u32,
    family: &'static str,
    planes: &'static [Plane],
    constants: &'static [(&'static str, u32)],
    codec: &'static dyn Codec,
) -> FormatDef {
    FormatDef {
        name,
        family,
        block: BLOCK as u64,
        planes,
        constants,
        codec,
        encoder: None,
        factor_of: None,
        gguf: Some(number),
    }
}

/// Elements that are sure to share a scale, and how many of these parts a block has.
const PART: usize = 16;
const PARTS: usize = BLOCK / PART;

/// How a block's bytes lie.
trait KQuant: Sync {
    /// d and dmin; 0 if the format has none.
    fn scales(&self, block: &[&[u8]]) -> [f32; 2];

    /// Scale and `less` of each part of a block.
    fn parts(&self, block: &[&[u8]]) -> [[i32; 2]; PARTS];

    /// The codes of a block. An element is d · scale · code - dmin · less. All three are integers,
    /// and the first product is exact in f32: 11 bits times 7 times 5 at most.
    fn codes(&self, block: &[&[u8]], codes: &mut [i8; BLOCK]);

    /// Stores d and dmin.
    fn put_scales(&self, scales: [f32; 2], block: &mut [&mut [u8]]);

    /// Stores codes and sub-scales of elements of -1, 0 and 1, which `picked` gives, under d and
    /// dmin of 1.
    fn put_integers(&self, picked: &mut dyn FnMut() -> i32, block: &mut [&mut [u8]]);

    /// The largest magnitudes of `scale` · `code` and of `less`.
    fn largest(&self) -> [f32; 2];
}

impl<F: KQuant> Codec for F {
    #[inline(always)]
    fn decode(&self, block: &[&[u8]], out: &mut [f32]) {
        let [d, dmin] = self.scales(block);
        let mut codes = [0; BLOCK];
        self.codes(block, &mut codes);
        // Factors are multiplied in gguf's order, which decides the sign of a zero.
        let parts = self.parts(block);
        let scales = array(|part| d * parts[part][0] as f32);
        let less = array(|part| dmin * parts[part][1] as f32);
        scaled(&codes, &scales, &less, out.try_into().expect("a block"));
    }

    fn error(&self, block: &[&[u8]], out: &mut [f64]) {
        let [d, dmin] = self.scales(block).map(f64::from);
        let flushed = |x| convert::flushed(DType::F16, x);
        let subtracts = self.largest()[1] > 0.0;
        let mut codes = [0; BLOCK];
        self.codes(block, &mut codes);
        let parts = self.parts(block);
        for (i, (out, code)) in out.iter_mut().zip(codes).enumerate() {
            let [scale, less] = parts[i / PART];
            let [product, less] = [scale * i32::from(code), less].map(|x| f64::from(x).abs());
            // The difference is rounded, once on either side.
            let rounded = if subtracts { product * d.abs() + less * dmin.abs() } else { 0.0 };
            let flushed =
                product * flushed(d) + less * flushed(dmin) + f64::from(f32::MIN_POSITIVE);
            *out = of_finite(2.0 * DType::F32.unit_roundoff() * rounded + flushed);
        }
    }

    fn integers(&self, random: &mut dyn FnMut() -> u32, block: &mut [&mut [u8]]) {
        self.put_integers(&mut || (random() % 3) as i32 - 1, block);
        self.put_scales([1.0; 2], block);
    }

    fn sample(&self, random: &mut dyn FnMut() -> u32, block: &mut [&mut [u8]]) {
        for share in block.iter_mut() {
            share.fill_with(|| random() as u8);
        }
        let [product, less] = self.largest();
        let factor = 0.5 + (random() % 32) as f32 / 64.0;
        let sign = if random().is_multiple_of(2) { 1.0 } else { -1.0 };
        let dmin = if less > 0.0 { factor / less } else { 0.0 };
        self.put_scales([sign * factor / product, dmin], block);
    }

    fn rescale(&self, numbers: [f32; 2], block: &mut [&mut [u8]]) {
        self.put_scales(numbers, block);
    }
}

#[inline(always)]
fn half_at(bytes: &[u8], at: usize) -> f32 {
    convert::first(DType::F16, &bytes[at..])
}

/// Multiplies the codes of each part by a number, and subtracts another. The loop has one level, or
/// the compiler would take elements of 16 parts at once.
#[inline(always)]
fn scaled(codes: &[i8; BLOCK], scales: &[f32; PARTS], less: &[f32; PARTS], out: &mut [f32; BLOCK]) {
    for i in 0..BLOCK {
        out[i] = scales[i / PART] * f32::from(codes[i]) - less[i / PART];
    }
}

/// Fills the codes of a block, whose halves have four quarters of 32 elements each. `code` gives an
/// element's bits from its half, its quarter and its place there; `less` is subtracted from them.
#[inline(always)]
fn each_quarter(codes: &mut [i8; BLOCK], less: i8, code: impl Fn(usize, usize, usize) -> u8) {
    for half in 0..2 {
        for quarter in 0..4 {
            for l in 0..32 {
                codes[128 * half + 32 * quarter + l] = code(half, quarter, l) as i8 - less;
            }
        }
    }
}

fn put_half(value: f32, bytes: &mut [u8], at: usize) {
    bytes[at..at + 2].copy_from_slice(&f16::from_f32(value).to_le_bytes());
}

/// Q2_K: 16 bytes with a scale and a minimum of 4 bits each, 64 of codes, d and dmin.
struct Q2K;

impl KQuant for Q2K {
    fn scales(&self, block: &[&[u8]]) -> [f32; 2] {
        [80, 82].map(|at| half_at(block[0], at))
    }

    #[inline(always)]
    fn parts(&self, block: &[&[u8]]) -> [[i32; 2]; PARTS] {
        array(|part| [block[0][part] & 15, block[0][part] >> 4].map(i32::from))
    }

    #[inline(always)]
    fn codes(&self, block: &[&[u8]], codes: &mut [i8; BLOCK]) {
        let bytes: &[u8; 84] = block[0].try_into().expect("a block");
        each_quarter(codes, 0, |half, quarter, l| bytes[16 + 32 * half + l] >> (2 * quarter) & 3);
    }

    fn put_scales(&self, [d, dmin]: [f32; 2], block: &mut [&mut [u8]]) {
        put_half(d, block[0], 80);
        put_half(dmin, block[0], 82);
    }

    fn put_integers(&self, picked: &mut dyn FnMut() -> i32, block: &mut [&mut [u8]]) {
        block[0].fill(0);
        block[0][..16].fill(0x11);
        for i in 0..BLOCK {
            block[0][16 + 32 * (i / 128) + i % 32] |= ((picked() + 1) as u8) << (i % 128 / 32 * 2);
        }
    }

    fn largest(&self) -> [f32; 2] {
        [45.0, 15.0]
    }
}

/// Q3_K: 32 bytes of high bits, 64 of codes, 12 with 16 scales of 6 bits; d.
struct Q3K;

impl Q3K {
    /// Scale i. Bytes 0 to 7 have the low four bits of scales 0 to 7, and above them those of
    /// scales 8 to 15. Bytes 8 to 11 have the high two bits.
    fn scale(scales: &[u8], i: usize) -> i32 {
        let low = scales[i % 8] >> (i / 8 * 4) & 15;
        let high = scales[8 + i % 4] >> (i / 4 * 2) & 3;
        i32::from(low | high << 4) - 32
    }
}

impl KQuant for Q3K {
    fn scales(&self, block: &[&[u8]]) -> [f32; 2] {
        [half_at(block[1], 0), 0.0]
    }

    #[inline(always)]
    fn parts(&self, block: &[&[u8]]) -> [[i32; 2]; PARTS] {
        array(|part| [Self::scale(&block[0][96..], part), 0])
    }

    #[inline(always)]
    fn codes(&self, block: &[&[u8]], codes: &mut [i8; BLOCK]) {
        let bytes: &[u8; 108] = block[0].try_into().expect("a block");
        each_quarter(codes, 4, |half, quarter, l| {
            let low = bytes[32 + 32 * half + l] >> (2 * quarter) & 3;
            let high = bytes[l] >> (4 * half + quarter) & 1;
            low | high << 2
        });
    }

    fn put_scales(&self, [d, _]: [f32; 2], block: &mut [&mut [u8]]) {
        put_half(d, block[1], 0);
    }

    fn put_integers(&self, picked: &mut dyn FnMut() -> i32, block: &mut [&mut [u8]]) {
        block[0].fill(0);
        // All scales are 1, which is stored as 33.
        block[0][96..104].fill(0x11);
        block[0][104..].fill(0xaa);
        for i in 0..BLOCK {
            let (half, quarter, l) = (i / 128, i % 128 / 32, i % 32);
            let code = (picked() + 4) as u8;
            block[0][32 + 32 * half + l] |= (code & 3) << (2 * quarter);
            block[0][l] |= (code >> 2) << (4 * half + quarter);
        }
    }

    fn largest(&self) -> [f32; 2] {
        [128.0, 0.0]
    }
}

/// Q4_K: d, dmin, 12 bytes with 8 scales and 8 minima of 6 bits, 128 of codes. Q5_K has 32 bytes of
/// fifth bits before the codes.
struct Q4K<const HIGH: bool>;

impl<const HIGH: bool> Q4K<HIGH> {
    const SCALES: usize = 4;

    /// Scale and minimum of a sub-block.
    fn scale(scales: &[u8], j: usize) -> [i32; 2] {
        let [scale, least] = if j < 4 {
            [scales[j] & 63, scales[j + 4] & 63]
        } else {
            [scales[j + 4] & 15 | scales[j - 4] >> 6 << 4, scales[j + 4] >> 4 | scales[j] >> 6 << 4]
        };
        [i32::from(scale), i32::from(least)]
    }

    /// The first byte of codes.
    const fn first() -> usize {
        if HIGH { 48 } else { 16 }
    }
}

impl<const HIGH: bool> KQuant for Q4K<HIGH> {
    fn scales(&self, block: &[&[u8]]) -> [f32; 2] {
        [0, 2].map(|at| half_at(block[0], at))
    }

    #[inline(always)]
    fn parts(&self, block: &[&[u8]]) -> [[i32; 2]; PARTS] {
        array(|part| Self::scale(&block[0][Self::SCALES..], part / 2))
    }

    #[inline(always)]
    fn codes(&self, block: &[&[u8]], codes: &mut [i8; BLOCK]) {
        let low: &[u8; 128] = block[0][Self::first()..].try_into().expect("128 bytes of codes");
        for j in 0..4 {
            for l in 0..32 {
                codes[64 * j + l] = (low[32 * j + l] & 15) as i8;
                codes[64 * j + 32 + l] = (low[32 * j + l] >> 4) as i8;
            }
        }
        if HIGH {
            let high: &[u8; 32] = block[0][16..48].try_into().expect("32 bytes");
            for j in 0..8 {
                for l in 0..32 {
                    codes[32 * j + l] |= ((high[l] >> j & 1) << 4) as i8;
                }
            }
        }
    }

    fn put_scales(&self, [d, dmin]: [f32; 2], block: &mut [&mut [u8]]) {
        put_half(d, block[0], 0);
        put_half(dmin, block[0], 2);
    }

    fn put_integers(&self, picked: &mut dyn FnMut() -> i32, block: &mut [&mut [u8]]) {
        block[0].fill(0);
        // All scales are 1 and all minima are 8, or 16 if codes have five bits.
        let least = if HIGH { 16 } else { 8 };
        block[0][4..8].fill(1);
        block[0][8..12].fill(least);
        block[0][12..16].fill(1 | (least & 15) << 4);
        if HIGH {
            // Bits 4 and 5 of the minima of sub-blocks 4 to 7.
            block[0][8..12].fill(least | (least >> 4) << 6);
        }
        for i in 0..BLOCK {
            let (j, l) = (i / 32, i % 32);
            let code = (picked() + i32::from(least)) as u8;
            block[0][Self::first() + j / 2 * 32 + l] |= (code & 15) << (j % 2 * 4);
            if HIGH {
                block[0][16 + l] |= (code >> 4) << j;
            }
        }
    }

    fn largest(&self) -> [f32; 2] {
        [63.0 * if HIGH { 31.0 } else { 15.0 }, 63.0]
    }
}

/// Q6_K: 128 bytes of low nibbles, 64 of high pairs of bits, 16 signed scales; d.
struct Q6K;

impl KQuant for Q6K {
    fn scales(&self, block: &[&[u8]]) -> [f32; 2] {
        [half_at(block[1], 0), 0.0]
    }

    #[inline(always)]
    fn parts(&self, block: &[&[u8]]) -> [[i32; 2]; PARTS] {
        array(|part| [i32::from(block[0][192 + part] as i8), 0])
    }

    #[inline(always)]
    fn codes(&self, block: &[&[u8]], codes: &mut [i8; BLOCK]) {
        let bytes: &[u8; 208] = block[0].try_into().expect("a block");
        each_quarter(codes, 32, |half, quarter, l| {
            let low = bytes[64 * half + 32 * (quarter & 1) + l] >> (quarter / 2 * 4) & 15;
            let high = bytes[128 + 32 * half + l] >> (2 * quarter) & 3;
            low | high << 4
        });
    }

    fn put_scales(&self, [d, _]: [f32; 2], block: &mut [&mut [u8]]) {
        put_half(d, block[1], 0);
    }

    fn put_integers(&self, picked: &mut dyn FnMut() -> i32, block: &mut [&mut [u8]]) {
        block[0].fill(0);
        block[0][192..].fill(1);
        for i in 0..BLOCK {
            let (half, quarter, l) = (i / 128, i % 128 / 32, i % 32);
            let code = (picked() + 32) as u8;
            block[0][64 * half + 32 * (quarter & 1) + l] |= (code & 15) << (quarter / 2 * 4);
            block[0][128 + 32 * half + l] |= (code >> 4) << (2 * quarter);
        }
    }

    fn largest(&self) -> [f32; 2] {
        [128.0 * 32.0, 0.0]
    }
}

/// IQ4_XS: d, 8 scales of 6 bits (two bytes with their high two bits, four with the low ones), and
/// 128 bytes of codes that are places in IQ4_NL's table.
struct Iq4Xs;

impl KQuant for Iq4Xs {
    fn scales(&self, block: &[&[u8]]) -> [f32; 2] {
        [half_at(block[0], 0), 0.0]
    }

    #[inline(always)]
    fn parts(&self, block: &[&[u8]]) -> [[i32; 2]; PARTS] {
        array(|part| {
            let j = part / 2;
            let low = block[0][4 + j / 2] >> (j % 2 * 4) & 15;
            let high = block[0][2 + j / 4] >> (j % 4 * 2) & 3;
            [i32::from(low | high << 4) - 32, 0]
        })
    }

    #[inline(always)]
    fn codes(&self, block: &[&[u8]], codes: &mut [i8; BLOCK]) {
        let bytes: &[u8; 136] = block[0].try_into().expect("a block");
        for j in 0..8 {
            for l in 0..16 {
                let pair = usize::from(bytes[8 + 16 * j + l]);
                codes[32 * j + l] = IQ4_NL[pair & 15];
                codes[32 * j + 16 + l] = IQ4_NL[pair >> 4];
            }
        }
    }

    fn put_scales(&self, [d, _]: [f32; 2], block: &mut [&mut [u8]]) {
        put_half(d, block[0], 0);
    }

    fn put_integers(&self, picked: &mut dyn FnMut() -> i32, block: &mut [&mut [u8]]) {
        block[0].fill(0);
        // All codes stand for 1, the only value of use: the scales give signs and zeros.
        block[0][8..].fill(0x88);
        for j in 0..8 {
            let scale = (picked() + 32) as u8;
            block[0][4 + j / 2] |= (scale & 15) << (j % 2 * 4);
            block[0][2 + j / 4] |= (scale >> 4) << (j % 4 * 2);
        }
    }

    fn largest(&self) -> [f32; 2] {
        [32.0 * 127.0, 0.0]
    }
}
