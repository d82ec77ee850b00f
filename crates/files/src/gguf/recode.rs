//! Types of GGUF that have no own format: their blocks are decoded into a format that has
//! the same numbers.
//!
//! A weight is code · scale, or code · scale + bias. A block's number in f16 has 11 bits, a group's
//! scale and a code few: their product is exact in f32, and so is the sum. Nothing is rounded. With
//! a bias, a zero has no sign, and all weights are NaN if the block's number is infinite.

use super::grids::{EIGHT, FOUR, IQ1, IQ2_S, IQ2_XS, IQ2_XXS, IQ3_S, IQ3_XXS};
use half::f16;
use tilewise_core::quant::Stored;
use tilewise_core::{DType, QuantFormat};

/// A type of GGUF, and the format that it becomes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Recoding {
    pub(crate) name: &'static str,
    pub(crate) format: QuantFormat,
    /// Elements of a block.
    pub(crate) elements: usize,
    number: u32,
    bytes: usize,
}

/// A block of at most 256 elements, in groups with a scale each, and a bias if the format has them.
struct Block {
    codes: [i8; 256],
    scales: [f32; 16],
    biases: [f32; 16],
}

type Decode = fn(&[u8], &mut Block);

/// The number of the type NVFP4.
const NVFP4: u32 = 40;

/// The format that a type becomes, by the type's number, and the function that decodes a block.
fn recoding(number: u32) -> Option<(&'static str, Decode)> {
    const TERNARY: &str = "affine-2bit-g128-f16";
    let (format, decode): (_, Decode) = match number {
        16 => ("int8-g32", iq2_xxs),
        17 => ("int8-g16", iq2_xs),
        18 => ("int8-g32", iq3_xxs),
        19 => ("affine-2bit-g32-f32", iq1_s),
        21 => ("affine-4bit-g32-f32", iq3_s),
        22 => ("int8-g16", iq2_s),
        29 => ("int8-g16", iq1_m),
        34 => (TERNARY, tq1_0),
        35 => (TERNARY, tq2_0),
        NVFP4 => ("nvfp4", nvfp4),
        41 => (TERNARY, q1_0),
        42 => ("affine-2bit-g64-f16", q2_0),
        _ => return None,
    };
    Some((format, decode))
}

impl Recoding {
    /// How a type is decoded, if it is: its number, name, and its blocks' elements and bytes.
    pub(super) fn of(row: &(u32, &'static str, u64, u64)) -> Option<Self> {
        let (number, name, elements, bytes) = *row;
        let format = recoding(number)?.0.parse().ok()?;
        Some(Recoding { name, format, number, elements: elements as usize, bytes: bytes as usize })
    }

    /// Whether weights may have scales beside them.
    pub(crate) fn is_scaled(self) -> bool {
        self.number == NVFP4
    }

    /// Fills planes with whole blocks, in the type's usual format or in int8-g16, with each
    /// block under the factor that `factors` gives for its number.
    pub(crate) fn decode(
        self,
        format: QuantFormat,
        factors: impl Fn(usize) -> f32,
        blocks: &[u8],
        planes: &mut [&mut [u8]],
    ) {
        let Some((_, decode)) = recoding(self.number) else { return };
        if format == QuantFormat::NVFP4 {
            return rearrange(blocks, planes);
        }
        let groups = self.elements / format.block() as usize;
        let mut block = Block { codes: [0; 256], scales: [0.0; 16], biases: [0.0; 16] };
        for (at, bytes) in blocks.chunks_exact(self.bytes).enumerate() {
            decode(bytes, &mut block);
            let factor = factors(at);
            block.scales.iter_mut().for_each(|scale| *scale *= factor);
            let numbers = [&block.scales[..groups], &block.biases[..groups]];
            for (i, (plane, out)) in format.planes().iter().zip(&mut *planes).enumerate() {
                let size = plane.bytes as usize * groups;
                let out = &mut out[at * size..][..size];
                match plane.of {
                    Stored::Numbers(dtype) => put(dtype, numbers[i - 1], out),
                    _ => pack(&block.codes[..self.elements], out),
                }
            }
        }
    }
}

/// Fills the planes of nvfp4 with blocks of NVFP4.
fn rearrange(blocks: &[u8], planes: &mut [&mut [u8]]) {
    for (i, block) in blocks.as_chunks::<36>().0.iter().enumerate() {
        // A code of -0 is 0 in GGUF.
        let codes = fours(block).map(|code| if code == 8 { 0 } else { code as i8 });
        pack(&codes, &mut planes[0][32 * i..][..32]);
        planes[1][4 * i..][..4].copy_from_slice(&[0, 1, 2, 3].map(|i| e4m3(block[i])));
    }
}

/// Twice the numbers of e2m1, under half the scales.
fn nvfp4(bytes: &[u8], block: &mut Block) {
    const TWICE: [i8; 8] = [0, 1, 2, 3, 4, 6, 8, 12];
    for (code, out) in fours(bytes).into_iter().zip(&mut block.codes) {
        let twice = TWICE[usize::from(code & 7)];
        *out = if code & 8 == 0 { twice } else { -twice };
    }
    for (&byte, out) in bytes[..4].iter().zip(&mut block.scales) {
        let byte = u32::from(e4m3(byte));
        *out = 0.5
            * match byte {
                0x7f => f32::NAN,
                0..8 => byte as f32 / 512.0,
                // Exponents of e4m3 are stored plus 7, those of f32 plus 127.
                _ => f32::from_bits((byte << 20) + ((127 - 7) << 23)),
            };
    }
}

/// The codes of e2m1 in a block of NVFP4. Bytes have the first half of a group in the lower bits.
fn fours(block: &[u8]) -> [u8; 64] {
    std::array::from_fn(|i| block[4 + i / 16 * 8 + i % 8] >> (i / 8 % 2 * 4) & 15)
}

/// The scale in e4m3. GGUF has no sign, and 0x7f is 0. 0xff, which no program writes, becomes NaN.
fn e4m3(byte: u8) -> u8 {
    match byte {
        0x7f => 0,
        _ => byte & 0x7f,
    }
}

/// Fills bytes with numbers of f16, or of f32.
fn put(dtype: DType, numbers: &[f32], out: &mut [u8]) {
    if dtype == DType::F16 {
        let out = out.as_chunks_mut().0.iter_mut();
        out.zip(numbers).for_each(|(out, &number)| *out = f16::from_f32(number).to_le_bytes());
    } else {
        let out = out.as_chunks_mut().0.iter_mut();
        out.zip(numbers).for_each(|(out, number)| *out = number.to_le_bytes());
    }
}

/// Fills bytes with codes, the first in the lowest bits.
fn pack(codes: &[i8], out: &mut [u8]) {
    match codes.len() / out.len() {
        2 => {
            let codes = codes.as_chunks().0.iter();
            out.iter_mut().zip(codes).for_each(|(out, [a, b])| *out = (a | b << 4) as u8);
        }
        4 => {
            let codes = codes.as_chunks().0.iter();
            let byte = |[a, b, c, d]: &[i8; 4]| (a | b << 2 | c << 4 | d << 6) as u8;
            out.iter_mut().zip(codes).for_each(|(out, codes)| *out = byte(codes));
        }
        _ => out.iter_mut().zip(codes).for_each(|(out, &code)| *out = code as u8),
    }
}

impl Block {
    /// Sets 8 codes to bytes, the first in the lowest.
    fn eight(&mut self, at: usize, bytes: u64) {
        let codes = bytes.to_le_bytes().map(|byte| byte as i8);
        self.codes[8 * at..8 * at + 8].copy_from_slice(&codes);
    }

    /// The codes less 1, times `d`.
    fn less_one(&mut self, d: f32) {
        self.scales.fill(d);
        self.biases.fill(-d);
    }
}

/// Two points of 4 numbers.
fn four(first: usize, points: [usize; 2]) -> u64 {
    let [low, high] = points.map(|point| u64::from(FOUR[first + point]));
    low | high << 32
}

/// 8 bytes of 1.
const ONES: u64 = 0x0101_0101_0101_0101;

/// All bits of the bytes whose signs are set.
fn spread(signs: u8) -> u64 {
    // Byte i keeps bit i alone, which then goes through the highest bit to all.
    let bits = (u64::from(signs) * ONES) & 0x8040_2010_0804_0201;
    let rest = 0x7f * ONES;
    let highest = ((bits & rest) + rest) | bits;
    (highest >> 7 & ONES) * 0xff
}

/// Negates the bytes whose signs are set. None is 0.
fn signed(bytes: u64, signs: u8) -> u64 {
    let all = spread(signs);
    (bytes ^ all) + (all & ONES)
}

/// The signs of 8 numbers of which an even number is negative: the lowest 7 bits tell them.
fn even(bits: u32) -> u8 {
    let seven = bits as u8 & 0x7f;
    seven | (seven.count_ones() as u8 & 1) << 7
}

/// The number of 16 bits at a byte.
fn word(block: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([block[at], block[at + 1]])
}

/// The number of 32 bits at a byte.
fn long(block: &[u8], at: usize) -> u32 {
    u32::from(word(block, at)) | u32::from(word(block, at + 2)) << 16
}

/// The number in f16 at a byte.
fn half(block: &[u8], at: usize) -> f32 {
    f16::from_bits(word(block, at)).to_f32()
}

/// Some of the bits of bytes: the fields of `bits` bits follow each other from the lowest on.
fn field(bytes: &[u8], bits: usize, number: usize) -> usize {
    let at = bits * number;
    usize::from(bytes[at / 8]) >> (at % 8) & ((1 << bits) - 1)
}

fn iq2_xxs(bytes: &[u8], block: &mut Block) {
    let d = half(bytes, 0);
    for i in 0..8 {
        let (points, rest) = (2 + 8 * i, long(bytes, 6 + 8 * i));
        block.scales[i] = d * (0.5 + (rest >> 28) as f32) * 0.25;
        for j in 0..4 {
            let point = EIGHT[IQ2_XXS + usize::from(bytes[points + j])];
            block.eight(4 * i + j, signed(point, even(rest >> (7 * j))));
        }
    }
}

fn iq2_xs(bytes: &[u8], block: &mut Block) {
    let d = half(bytes, 0);
    for i in 0..16 {
        block.scales[i] = d * (0.5 + field(&bytes[66..], 4, i) as f32) * 0.25;
    }
    for i in 0..32 {
        let bits = word(bytes, 2 + 2 * i);
        let point = EIGHT[IQ2_XS + usize::from(bits & 511)];
        block.eight(i, signed(point, even(u32::from(bits >> 9))));
    }
}

fn iq2_s(bytes: &[u8], block: &mut Block) {
    let d = half(bytes, 0);
    for i in 0..16 {
        block.scales[i] = d * (0.5 + field(&bytes[74..], 4, i) as f32) * 0.25;
    }
    for i in 0..32 {
        let point = usize::from(bytes[2 + i]) | field(&bytes[66..], 2, i) << 8;
        block.eight(i, signed(EIGHT[IQ2_S + point], bytes[34 + i]));
    }
}

fn iq3_xxs(bytes: &[u8], block: &mut Block) {
    let d = half(bytes, 0);
    for i in 0..8 {
        let rest = long(bytes, 66 + 4 * i);
        block.scales[i] = d * (0.5 + (rest >> 28) as f32) * 0.5;
        for j in 0..4 {
            let at = 4 * i + j;
            let points = [2 + 2 * at, 3 + 2 * at].map(|at| usize::from(bytes[at]));
            block.eight(at, signed(four(IQ3_XXS, points), even(rest >> (7 * j))));
        }
    }
}

fn iq3_s(bytes: &[u8], block: &mut Block) {
    let d = half(bytes, 0);
    for i in 0..8 {
        let scale = d * (1 + 2 * field(&bytes[106..], 4, i)) as f32;
        (block.scales[i], block.biases[i]) = (2.0 * scale, -15.0 * scale);
    }
    for i in 0..32 {
        let point = |at| usize::from(bytes[2 + at]) | field(&bytes[66..], 1, at) << 8;
        let codes = four(IQ3_S, [2 * i, 2 * i + 1].map(point));
        // The number -v has the code 15 less that of v.
        block.eight(i, codes ^ spread(bytes[74 + i]) & (15 * ONES));
    }
}

fn iq1_s(bytes: &[u8], block: &mut Block) {
    let d = half(bytes, 0);
    for i in 0..8 {
        let high = word(bytes, 34 + 2 * i);
        let scale = d * f32::from(2 * (high >> 12 & 7) + 1);
        let shift = if high >> 15 == 0 { 0.125 } else { -0.125 };
        (block.scales[i], block.biases[i]) = (scale, scale * (shift - 1.0));
        for j in 0..4 {
            let point = usize::from(bytes[2 + 4 * i + j]) | usize::from(high >> (3 * j) & 7) << 8;
            block.eight(4 * i + j, EIGHT[IQ1 + point]);
        }
    }
}

fn iq1_m(bytes: &[u8], block: &mut Block) {
    let words: [u16; 4] = std::array::from_fn(|i| word(bytes, 48 + 2 * i));
    // The highest bits of four words are the number of the block.
    let d = words.iter().rev().fold(0, |d, word| d << 4 | word >> 12);
    let d = f16::from_bits(d).to_f32();
    for i in 0..16 {
        block.scales[i] = d * f32::from(2 * (words[i / 4] >> (3 * (i % 4)) & 7) + 1) * 0.125;
    }
    for i in 0..32 {
        let high = field(&bytes[32..], 4, i);
        let point = usize::from(bytes[i]) | (high & 7) << 8;
        block.eight(i, EIGHT[IQ1 + point]);
        // In eighths, with one more or less.
        let shift = if high & 8 == 0 { -7 } else { -9 };
        block.codes[8 * i..8 * i + 8].iter_mut().for_each(|code| *code = 8 * *code + shift);
    }
}

fn tq1_0(bytes: &[u8], block: &mut Block) {
    // A byte holds 5 digits of base 3, or 4, as a fraction of 256. The first digits of some bytes
    // come first, then their second digits.
    let mut at = 0;
    for (range, digits) in [(0..32, 5), (32..48, 5), (48..52, 4)] {
        for digit in 0..digits {
            let bytes = &bytes[range.clone()];
            let codes = &mut block.codes[at..at + bytes.len()];
            for (byte, code) in bytes.iter().zip(codes) {
                *code = ((u16::from(byte.wrapping_mul(3u8.pow(digit))) * 3) >> 8) as i8;
            }
            at += bytes.len();
        }
    }
    block.less_one(half(bytes, 52));
}

fn tq2_0(bytes: &[u8], block: &mut Block) {
    for (i, codes) in block.codes.chunks_exact_mut(32).enumerate() {
        for (byte, code) in bytes[i / 4 * 32..].iter().zip(codes) {
            *code = (byte >> (i % 4 * 2) & 3) as i8;
        }
    }
    block.less_one(half(bytes, 64));
}

fn q1_0(bytes: &[u8], block: &mut Block) {
    for (&byte, codes) in bytes[2..].iter().zip(block.codes.as_chunks_mut::<8>().0) {
        *codes = std::array::from_fn(|i| 2 * (byte >> i & 1) as i8);
    }
    block.less_one(half(bytes, 0));
}

fn q2_0(bytes: &[u8], block: &mut Block) {
    for (&byte, codes) in bytes[2..].iter().zip(block.codes.as_chunks_mut::<4>().0) {
        *codes = std::array::from_fn(|i| (byte >> (2 * i) & 3) as i8);
    }
    block.less_one(half(bytes, 0));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gguf::types::TYPES;

    #[test]
    fn nothing_is_rounded() {
        let mut state = 1u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        let mut block = Block { codes: [0; 256], scales: [0.0; 16], biases: [0.0; 16] };
        let kinds: Vec<Recoding> = TYPES.iter().filter_map(Recoding::of).collect();
        assert_eq!(kinds.len(), 12);
        for kind in kinds.into_iter().filter(|kind| kind.number != NVFP4) {
            let (_, decode) = recoding(kind.number).unwrap();
            let (group, has_bias) = (kind.format.block() as usize, kind.format.planes().len() == 3);
            // All bits of the number in f16, subnormal, smallest, middling and largest.
            for d in [0, 1, 15, 30].into_iter().flat_map(|exponent| {
                (0..1024).map(move |bits| u16::from(bits % 2 == 0) << 15 | exponent << 10 | bits)
            }) {
                let mut stored: Vec<u8> = (0..kind.bytes).map(|_| random()).collect();
                match kind.number {
                    29 => (0..4).for_each(|i| {
                        stored[49 + 2 * i] = stored[49 + 2 * i] & 15 | (d >> (4 * i) << 4) as u8;
                    }),
                    _ => {
                        let at = match kind.number {
                            34 => 52,
                            35 => 64,
                            _ => 0,
                        };
                        stored[at..at + 2].copy_from_slice(&d.to_le_bytes());
                    }
                }
                decode(&stored, &mut block);
                let d = f64::from(f16::from_bits(d).to_f32());
                for i in 0..kind.elements {
                    let scale = block.scales[i / group];
                    let bias = if has_bias { block.biases[i / group] } else { 0.0 };
                    // A multiple of an eighth of the block's number.
                    let is_exact = |number: f32| (f64::from(number) * 8.0 / d).fract() == 0.0;
                    assert!(d == 0.0 || is_exact(scale) && is_exact(bias), "{}", kind.name);
                    let code = block.codes[i];
                    let exact = f64::from(code) * f64::from(scale) + f64::from(bias);
                    let ours = f32::from(code) * scale + bias;
                    assert!(f64::from(ours) == exact, "{}", kind.name);
                }
            }
        }
    }
}
