//! GGUF's formats of 32 elements to a block: a scale, perhaps a least element, and codes of 4, 5 or
//! 8 bits that are numbers or stand for them in a table. Encoding follows the Python package gguf,
//! version 0.19, bit for bit.
//!
//! The low nibbles of 16 bytes are elements 0 to 15, the high ones elements 16 to 31. The fifth bit
//! of element j is bit j of the word before them.

use super::format::{
    Codec, Encoder, FormatDef, Plane, QuantFormat, Stored, decode_planes, of_finite,
};
use crate::convert;
use crate::dtype::DType;
use crate::lanes::{self, array};
use half::f16;

const BLOCK: usize = 32;

/// Values of IQ4_NL's codes.
pub(super) const IQ4_NL: [i8; 16] =
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// Values of the codes of e2m1, doubled; bit 3 is the sign.
const E2M1: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// The type of a block's scale.
#[derive(Clone, Copy, PartialEq)]
enum Scale {
    F16,
    /// 2^(byte - 128), for doubled values.
    E8M0,
}

/// The number that a code stands for.
#[derive(Clone, Copy, PartialEq)]
enum Value {
    /// The code less a number.
    Less(i16),
    /// A signed byte.
    Signed,
    Table([i8; 16]),
}

impl Value {
    #[inline(always)]
    fn of(self, code: u8) -> f32 {
        match self {
            Value::Less(by) => f32::from(i16::from(code) - by),
            Value::Signed => f32::from(code as i8),
            Value::Table(values) => f32::from(values[usize::from(code & 15)]),
        }
    }
}

/// A format by its planes, in the order in which a block has them.
#[derive(Clone, Copy, PartialEq)]
struct Block {
    scale: Scale,
    /// A least element in f16.
    least: bool,
    bits: u32,
    value: Value,
}

const Q4_0: Block = Block { scale: Scale::F16, least: false, bits: 4, value: Value::Less(8) };
const Q4_1: Block = Block { scale: Scale::F16, least: true, bits: 4, value: Value::Less(0) };
const Q5_0: Block = Block { scale: Scale::F16, least: false, bits: 5, value: Value::Less(16) };
const Q5_1: Block = Block { scale: Scale::F16, least: true, bits: 5, value: Value::Less(0) };
const Q8_0: Block = Block { scale: Scale::F16, least: false, bits: 8, value: Value::Signed };
const NL: Block = Block { scale: Scale::F16, least: false, bits: 4, value: Value::Table(IQ4_NL) };
const MXFP4: Block = Block { scale: Scale::E8M0, least: false, bits: 4, value: Value::Table(E2M1) };

const ALL: [Block; 7] = [Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, NL, MXFP4];

/// Scale and least element are a separate plane, so that codes are words.
macro_rules! row {
    (
        $name:literal, $number:literal, $codec:ident, $encoder:expr, [$($plane:expr),*],
        $constants:expr
    ) => {
        FormatDef {
            name: $name,
            family: "gguf",
            block: BLOCK as u64,
            planes: &[$($plane),*],
            constants: &$constants,
            codec: &$codec,
            encoder: $encoder,
            factor_of: None,
            gguf: Some($number),
        }
    };
}

const fn scales(bytes: u64) -> Plane {
    Plane { name: "scales", of: Stored::Bytes, bytes }
}

const fn codes(bytes: u64) -> Plane {
    Plane { name: "codes", of: Stored::Words, bytes }
}

/// Constants of the loader: bits of a code; 1 if there is a least element; the offset of the codes;
/// their meaning: 0 for numbers, 1 for signed bytes, 2 for places in IQ4_NL's table, 3 for doubled
/// e2m1 under exponents.
const fn constants(bits: u32, least: u32, less: u32, values: u32) -> [(&'static str, u32); 4] {
    [("X_BITS", bits), ("X_LEAST", least), ("X_LESS", less), ("X_TABLE", values)]
}

/// GGUF's formats of 32 elements.
#[rustfmt::skip]
pub static FORMATS: &[FormatDef] = &[
    row!("q4_0", 2, Q4_0, Some(&Q4_0), [scales(2), codes(16)], constants(4, 0, 8, 0)),
    row!("q8_0", 8, Q8_0, Some(&Q8_0), [scales(2), codes(32)], constants(8, 0, 0, 1)),
    row!("q4_1", 3, Q4_1, Some(&Q4_1), [scales(4), codes(16)], constants(4, 1, 0, 0)),
    row!("q5_0", 6, Q5_0, Some(&Q5_0), [scales(2), codes(20)], constants(5, 0, 16, 0)),
    row!("q5_1", 7, Q5_1, Some(&Q5_1), [scales(4), codes(20)], constants(5, 1, 0, 0)),
    row!("iq4_nl", 20, NL, None, [scales(2), codes(16)], constants(4, 0, 0, 2)),
    row!("gguf-mxfp4", 39, MXFP4, Some(&MXFP4), [scales(1), codes(16)], constants(4, 0, 0, 3)),
];

impl QuantFormat {
    /// GGUF's codes of four bits in blocks of 32 with a scale in f16.
    pub const Q4_0: QuantFormat = QuantFormat::new(&FORMATS[0]);
    /// GGUF's signed bytes in blocks of 32 with a scale in f16.
    pub const Q8_0: QuantFormat = QuantFormat::new(&FORMATS[1]);
}

/// A block's numbers.
struct Numbers {
    scale: f32,
    least: f32,
    codes: [u8; BLOCK],
}

/// The codes of four bits.
#[inline(always)]
fn nibbles(codes: &[u8]) -> [u8; BLOCK] {
    let codes: &[u8; 16] = codes.try_into().expect("16 bytes");
    array(|j| codes[j % 16] >> (j / 16 * 4) & 15)
}

/// The low four bits of codes of five, and the word with the fifth bits.
#[inline(always)]
fn fives(codes: &[u8]) -> ([u8; BLOCK], u32) {
    let (high, low) = codes.split_at(4);
    (nibbles(low), u32::from_le_bytes(high.try_into().expect("four bytes")))
}

impl Block {
    /// The numbers of a block, whose shares of the planes are the scales and the codes.
    #[inline(always)]
    fn numbers(&self, block: &[&[u8]]) -> Numbers {
        let (scales, codes) = (block[0], block[1]);
        let scale = match self.scale {
            Scale::F16 => convert::first(DType::F16, scales),
            Scale::E8M0 => exponent(scales[0]),
        };
        let least = if self.least { convert::first(DType::F16, &scales[2..]) } else { 0.0 };
        let codes = match self.bits {
            8 => codes.try_into().expect("32 bytes"),
            5 => {
                let (low, high) = fives(codes);
                array(|j| low[j] | ((high >> j & 1) as u8) << 4)
            }
            _ => nibbles(codes),
        };
        Numbers { scale, least, codes }
    }

    /// The numbers that codes stand for.
    #[inline(always)]
    fn values(&self, codes: &[u8; BLOCK]) -> [f32; BLOCK] {
        match self.value {
            // The match stands outside the loops, or each element would go through it.
            Value::Less(by) => array(|i| Value::Less(by).of(codes[i])),
            Value::Signed => array(|i| Value::Signed.of(codes[i])),
            Value::Table(values) => array(|i| Value::Table(values).of(codes[i])),
        }
    }

    /// Stores scale, least element and codes. A scale of type `E8M0` becomes a power of two.
    fn put(&self, numbers: &Numbers, block: &mut [&mut [u8]]) {
        let mut bytes: Vec<u8> = Vec::with_capacity(34);
        match self.scale {
            Scale::F16 => bytes.extend(f16::from_f32(numbers.scale).to_le_bytes()),
            Scale::E8M0 => bytes.push(byte_of(numbers.scale)),
        }
        if self.least {
            bytes.extend(f16::from_f32(numbers.least).to_le_bytes());
        }
        let codes = &numbers.codes;
        if self.bits == 5 {
            let high = (0..BLOCK).fold(0u32, |word, j| word | u32::from(codes[j] >> 4 & 1) << j);
            bytes.extend(high.to_le_bytes());
        }
        match self.bits {
            8 => bytes.extend(codes),
            _ => bytes.extend((0..16).map(|j| codes[j] & 15 | codes[j + 16] << 4)),
        }
        let mut rest = &bytes[..];
        for share in block {
            share.copy_from_slice(
                rest.split_off(..share.len()).expect("a block is as long as its parts"),
            );
        }
    }

    /// Fits codes that are numbers to one end of the range (`least` false) or to both.
    fn fit(&self, weights: &[f32]) -> Numbers {
        let most = ((1 << self.bits) - 1) as f32;
        let (scale, least, shift) = match self.value {
            Value::Less(by) if !self.least => {
                // The first of equal magnitudes counts, with its sign, even if it is a zero.
                let largest = weights
                    .iter()
                    .copied()
                    .reduce(|most, w| if w.abs() > most.abs() { w } else { most });
                (largest.unwrap_or(0.0) / -f32::from(by), 0.0, f32::from(by) + 0.5)
            }
            _ => {
                let end =
                    |pick: fn(f32, f32) -> f32| weights.iter().copied().reduce(pick).unwrap_or(0.0);
                let least = end(|a, b| if b < a { b } else { a });
                ((end(|a, b| if b > a { b } else { a }) - least) / most, least, 0.5)
            }
        };
        let inverse = inverse(scale);
        let mut codes = [0; BLOCK];
        for (code, w) in codes.iter_mut().zip(weights) {
            // A weight of the other sign may lie beyond the last code.
            *code = (((w - least) * inverse + shift) as u8).min(most as u8);
        }
        Numbers { scale, least, codes }
    }

    fn fit_signed(weights: &[f32]) -> Numbers {
        let scale = weights.iter().fold(0f32, |most, w| most.max(w.abs())) / 127.0;
        let inverse = inverse(scale);
        let mut codes = [0; BLOCK];
        for (code, w) in codes.iter_mut().zip(weights) {
            *code = half_away(w * inverse) as u8;
        }
        Numbers { scale, least: 0.0, codes }
    }

    /// Takes the scale that brings the largest weight to 8 or more and below 16, and the nearest
    /// values; of equally near ones the first in the table.
    fn fit_table(weights: &[f32], values: &[i8; 16]) -> Numbers {
        let largest = weights.iter().fold(0f32, |most, w| most.max(w.abs()));
        // The logarithm is rounded to f32 before its floor, as in numpy: just below 2^n it may be
        // n.
        let exponent_of = |x: f32| (f64::from(x).log2() as f32).floor();
        let byte = if largest > 0.0 { (exponent_of(largest) - 2.0 + 127.0) as u8 } else { 0 };
        let scale = exponent(byte);
        let mut codes = [0; BLOCK];
        for (code, w) in codes.iter_mut().zip(weights) {
            let off = |i: &usize| (scale * f32::from(values[*i]) - w).abs();
            let nearest = (0..16).reduce(|best, i| if off(&i) < off(&best) { i } else { best });
            *code = nearest.unwrap_or(0) as u8;
        }
        Numbers { scale, least: 0.0, codes }
    }
}

/// The scale of a byte: 2^(byte - 128).
#[inline(always)]
fn exponent(byte: u8) -> f32 {
    // The two smallest are subnormal.
    if byte < 2 {
        f32::from_bits(0x0020_0000 << byte)
    } else {
        f32::from_bits(u32::from(byte - 1) << 23)
    }
}

/// The byte of a scale that is a power of two; for any other number, of the power of two below its
/// magnitude.
fn byte_of(scale: f32) -> u8 {
    let bits = scale.abs().to_bits().min(exponent(255).to_bits());
    if bits < 0x0080_0000 { (bits >> 22) as u8 } else { ((bits >> 23) + 1) as u8 }
}

/// The nearest whole number; of two that are equally near, the one further from 0. MinGW's own
/// `round` gives 1 for the number before 0.5.
fn half_away(x: f32) -> i8 {
    (x.trunc() + if x.fract().abs() >= 0.5 { x.signum() } else { 0.0 }) as i8
}

/// 1 / scale; 0 if that is infinite, so that all weights are stored as zero.
fn inverse(scale: f32) -> f32 {
    if scale == 0.0 || (1.0 / scale).is_infinite() { 0.0 } else { 1.0 / scale }
}

/// Decodes blocks of format `ALL[AT]`. The format is a constant of the function, so the compiler
/// leaves out the code of all other formats.
fn decode_own<const AT: usize>(format: &FormatDef, planes: &[&[u8]], out: &mut [f32]) {
    lanes::widest(
        #[inline(always)]
        || {
            if let [scales, codes] = *planes {
                decode_planes(&const { ALL[AT] }, [scales, codes], format, out);
            }
        },
    );
}

impl Codec for Block {
    #[inline(always)]
    fn decode(&self, block: &[&[u8]], out: &mut [f32]) {
        let Numbers { scale, least, codes } = self.numbers(block);
        let values: [f32; BLOCK] = match self.value {
            // Vectors choose one of two numbers by a bit faster than they shift each bit.
            Value::Less(by) if self.bits == 5 => {
                let (low, high) = fives(block[1]);
                let [without, with] = [-by, 16 - by].map(f32::from);
                array(|j| f32::from(low[j]) + if high & 1 << j == 0 { without } else { with })
            }
            _ => self.values(&codes),
        };
        let out: &mut [f32; BLOCK] = out.try_into().expect("a block");
        *out = if self.least {
            array(|i| scale * values[i] + least)
        } else {
            array(|i| scale * values[i])
        };
    }

    fn decode_all(&self, format: &FormatDef, planes: &[&[u8]], out: &mut [f32]) {
        match ALL.iter().position(|own| own == self) {
            Some(0) => decode_own::<0>(format, planes, out),
            Some(1) => decode_own::<1>(format, planes, out),
            Some(2) => decode_own::<2>(format, planes, out),
            Some(3) => decode_own::<3>(format, planes, out),
            Some(4) => decode_own::<4>(format, planes, out),
            Some(5) => decode_own::<5>(format, planes, out),
            _ => decode_own::<6>(format, planes, out),
        }
    }

    fn error(&self, block: &[&[u8]], out: &mut [f64]) {
        let numbers = self.numbers(block);
        let [scale, least] = [numbers.scale, numbers.least].map(f64::from);
        let flushed = |x: f64| match self.scale {
            Scale::F16 => convert::flushed(DType::F16, x),
            Scale::E8M0 => convert::flushed(DType::F32, x),
        };
        for (code, out) in numbers.codes.into_iter().zip(out) {
            let value = f64::from(self.value.of(code)).abs();
            // The product is rounded nowhere: 11 bits times 8. The sum is, once on either side.
            let sum = if self.least {
                2.0 * DType::F32.unit_roundoff() * (value * scale.abs() + least.abs())
            } else {
                0.0
            };
            *out = of_finite(
                sum + value * flushed(scale) + flushed(least) + f64::from(f32::MIN_POSITIVE),
            );
        }
    }

    fn integers(&self, random: &mut dyn FnMut() -> u32, block: &mut [&mut [u8]]) {
        let mut numbers = Numbers { scale: 1.0, least: 0.0, codes: [0; BLOCK] };
        let picks: [u8; 3] = match self.value {
            Value::Less(0) => [14, 15, 16].map(|code: u8| code - u8::from(self.bits == 4)),
            Value::Less(by) => [-1, 0, 1].map(|i| (by + i) as u8),
            Value::Signed => [255, 0, 1],
            Value::Table(E2M1) => [10, 0, 2],
            // 1 is the only value of use: the scale gives signs and zeros.
            Value::Table(_) => [8; 3],
        };
        match self.value {
            Value::Less(0) => numbers.least = -f32::from(picks[1]),
            Value::Table(E2M1) => numbers.scale = 0.5,
            Value::Table(_) => numbers.scale = [-1.0, 0.0, 1.0][random() as usize % 3],
            _ => {}
        }
        numbers.codes.fill_with(|| picks[random() as usize % 3]);
        self.put(&numbers, block);
    }

    fn sample(&self, random: &mut dyn FnMut() -> u32, block: &mut [&mut [u8]]) {
        let most = (0..=((1u32 << self.bits) - 1) as u8)
            .map(|code| self.value.of(code).abs())
            .fold(0f32, f32::max);
        let factor = 0.5 + (random() % 32) as f32 / 64.0;
        let scale = match self.scale {
            Scale::F16 => factor * if random().is_multiple_of(2) { 1.0 } else { -1.0 } / most,
            // The smallest scale comes now and then.
            Scale::E8M0 => [1.0 / 16.0, 0.125, 0.0625, exponent(0)][random() as usize % 4],
        };
        let least = if self.least { -scale * most * factor } else { 0.0 };
        let codes = std::array::from_fn(|_| (random() & ((1 << self.bits) - 1)) as u8);
        self.put(&Numbers { scale, least, codes }, block);
    }

    fn rescale(&self, [scale, least]: [f32; 2], block: &mut [&mut [u8]]) {
        let shares: Vec<&[u8]> = block.iter().map(|share| &**share).collect();
        let numbers = Numbers { scale, least, ..self.numbers(&shares) };
        self.put(&numbers, block);
    }
}

impl Encoder for Block {
    fn encode(&self, weights: &[f32], block: &mut [&mut [u8]]) -> Result<(), String> {
        let numbers = match &self.value {
            Value::Less(_) => self.fit(weights),
            Value::Signed => Self::fit_signed(weights),
            Value::Table(values) => Self::fit_table(weights, values),
        };
        // Codes are fitted to the scale and the least element before these are rounded.
        let beyond = |x: f32| self.scale == Scale::F16 && !f16::from_f32(x).is_finite();
        if beyond(numbers.scale) || beyond(numbers.least) {
            let least = if self.least {
                format!(" or its least element {:e}", numbers.least)
            } else {
                String::new()
            };
            return Err(format!("its scale {:e}{least} is beyond the range of f16", numbers.scale));
        }
        self.put(&numbers, block);
        Ok(())
    }

    /// A whole step, in case a weight of the other sign is as large as the largest, and the
    /// rounding of scale and least element, which is absolute if they are subnormal.
    fn step(&self, block: &[&[u8]]) -> f64 {
        let numbers = self.numbers(block);
        let [scale, least] = [numbers.scale, numbers.least].map(|x| f64::from(x).abs());
        let most = f64::from((1 << (self.bits - u32::from(!self.least))) - 1);
        match self.value {
            // The largest code is 12; the largest weight lies below 16.
            Value::Table(_) => 4.0 * scale,
            _ => {
                scale * (1.001 + (most + 1.0) / 2048.0)
                    + least / 2048.0
                    + (most + 2.0) / f64::from(1 << 25)
            }
        }
    }
}
