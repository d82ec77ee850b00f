//! Codes of 8 or 4 bits that stand for numbers, in blocks with a scale in f32. An element is number
//! · scale, rounded once. Weights of many programs become these formats when they are read
//! (FORMATS.md); no weights are quantized to them.

use super::bits::{read_codes, unpack, write_codes};
use super::format::{Codec, FormatDef, Plane, Stored, of_finite};
use super::mx::e4m3;
use crate::convert;
use crate::dtype::DType;

/// NF4's numbers (T. Dettmers and others, QLoRA, 2023), as bitsandbytes has them.
#[rustfmt::skip]
const NF4: [f32; 16] = [
    -1.0, -0.696_192_8, -0.525_073_05, -0.394_917_5, -0.284_441_38, -0.184_773_43, -0.091_050_036,
    0.0, 0.079_580_3, 0.160_930_2, 0.246_112_3, 0.337_915_24, 0.440_709_83, 0.562_617, 0.722_956_84,
    1.0,
];

/// FP4's numbers in bitsandbytes, where both zeros are positive.
#[rustfmt::skip]
const FP4: [f32; 16] = [
    0.0, 0.0625 / 12.0, 8.0 / 12.0, 1.0, 4.0 / 12.0, 0.5, 2.0 / 12.0, 0.25,
    0.0, -0.0625 / 12.0, -8.0 / 12.0, -1.0, -4.0 / 12.0, -0.5, -2.0 / 12.0, -0.25,
];

/// A kind of number that codes stand for. The loader's constant X_NUMBER is its place here.
#[derive(Clone, Copy)]
enum Number {
    /// Signed bytes.
    Int8,
    /// Floats of 8 bits (OCP, 2023) without infinities.
    E4M3,
    /// Floats of 8 bits (OCP, 2023): the upper bytes of f16.
    E5M2,
    Nf4,
    Fp4,
}

macro_rules! row {
    ($name:literal, $number:ident, $bits:literal, $block:literal) => {
        FormatDef {
            name: $name,
            family: "scaled",
            block: $block,
            planes: &[
                Plane { name: "codes", of: Stored::Words, bytes: $bits * $block / 8 },
                Plane { name: "scales", of: Stored::Numbers(DType::F32), bytes: 4 },
            ],
            constants: &[
                ("X_BITS", $bits),
                ("X_BLOCK", $block),
                ("X_NUMBER", Number::$number as u32),
            ],
            codec: &Number::$number,
            encoder: None,
            factor_of: None,
            gguf: None,
        }
    };
}

/// Formats with scales in f32.
pub static FORMATS: &[FormatDef] = &[
    row!("int8-g16", Int8, 8, 16),
    row!("int8-g32", Int8, 8, 32),
    row!("int8-g128", Int8, 8, 128),
    row!("fp8-e4m3-g32", E4M3, 8, 32),
    row!("fp8-e4m3-g128", E4M3, 8, 128),
    row!("fp8-e5m2-g32", E5M2, 8, 32),
    row!("fp8-e5m2-g128", E5M2, 8, 128),
    row!("nf4-g64", Nf4, 4, 64),
    row!("fp4-g64", Fp4, 4, 64),
];

impl Number {
    const fn bits(self) -> u32 {
        if matches!(self, Number::Nf4 | Number::Fp4) { 4 } else { 8 }
    }

    #[inline(always)]
    fn number(self, code: u32) -> f32 {
        match self {
            Number::Int8 => f32::from(code as i8),
            Number::E4M3 => e4m3(code as u8),
            Number::E5M2 => convert::half((code as u16) << 8),
            Number::Nf4 => NF4[code as usize],
            Number::Fp4 => FP4[code as usize],
        }
    }

    /// The numbers of a block, and its scale.
    fn numbers<'a>(self, block: &[&'a [u8]]) -> (impl Iterator<Item = f32> + 'a, f32) {
        let scale = convert::first(DType::F32, block[1]);
        (read_codes(block[0], self.bits()).map(move |code| self.number(code)), scale)
    }

    /// The finite numbers that codes stand for, with their codes.
    fn finite(self) -> Vec<(u32, f32)> {
        let all = (0..1 << self.bits()).map(|code| (code, self.number(code)));
        all.filter(|(_, number)| number.is_finite()).collect()
    }

    /// Stores some of the codes, drawn at random, and a scale of either sign.
    fn draw(
        self,
        codes: &[u32],
        scale: f32,
        random: &mut dyn FnMut() -> u32,
        block: &mut [&mut [u8]],
    ) {
        let count = block[0].len() * 8 / self.bits() as usize;
        let drawn = (0..count).map(|_| codes[random() as usize % codes.len()]).collect::<Vec<_>>();
        write_codes(block[0], self.bits(), drawn.into_iter());
        let sign = if random().is_multiple_of(2) { 1.0 } else { -1.0 };
        self.rescale([sign * scale, 0.0], block);
    }
}

impl Codec for Number {
    #[inline(always)]
    fn decode(&self, block: &[&[u8]], out: &mut [f32]) {
        let scale = convert::first(DType::F32, block[1]);
        // The match stands outside the loops, or each element would go through it.
        match *self {
            Number::Int8 => unpack(block[0], 8, out, |code| Number::Int8.number(code) * scale),
            Number::E4M3 => unpack(block[0], 8, out, |code| Number::E4M3.number(code) * scale),
            Number::E5M2 => unpack(block[0], 8, out, |code| Number::E5M2.number(code) * scale),
            Number::Nf4 => unpack(block[0], 4, out, |code| Number::Nf4.number(code) * scale),
            Number::Fp4 => unpack(block[0], 4, out, |code| Number::Fp4.number(code) * scale),
        }
    }

    fn error(&self, block: &[&[u8]], out: &mut [f64]) {
        let (numbers, scale) = self.numbers(block);
        let scale = f64::from(scale).abs();
        for (number, out) in numbers.zip(out) {
            let number = f64::from(number).abs();
            // The product is rounded, once on either side.
            let rounded = 2.0 * DType::F32.unit_roundoff() * number * scale;
            let flushed = number * convert::flushed(DType::F32, scale);
            *out = of_finite(rounded + flushed + f64::from(f32::MIN_POSITIVE));
        }
    }

    fn integers(&self, random: &mut dyn FnMut() -> u32, block: &mut [&mut [u8]]) {
        let all = self.finite();
        // Powers of two are 1 under their inverse as the scale. The smallest floats are subnormal.
        let is_power = |number: f32| number > 0.0 && number.to_bits() << 9 == 0;
        let ones: Vec<f32> =
            all.iter().map(|(_, number)| *number).filter(|n| is_power(*n)).collect();
        let one = ones[random() as usize % ones.len()];
        let codes = [0.0, one, -one].map(|wanted| {
            all.iter().find(|(_, number)| *number == wanted).expect("it has a code").0
        });
        self.draw(&codes, 1.0 / one, random, block);
    }

    fn magnitudes(&self) -> Option<[f32; 2]> {
        let all = || self.finite().into_iter().map(|(_, number)| number.abs());
        Some([all().filter(|number| *number > 0.0).reduce(f32::min)?, all().reduce(f32::max)?])
    }

    fn sample(&self, random: &mut dyn FnMut() -> u32, block: &mut [&mut [u8]]) {
        let codes: Vec<u32> = self.finite().into_iter().map(|(code, _)| code).collect();
        let [_, largest] = self.magnitudes().unwrap_or([1.0; 2]);
        let scale = (0.5 + (random() % 64) as f32 / 128.0) / largest;
        self.draw(&codes, scale, random, block);
    }

    fn rescale(&self, [scale, _]: [f32; 2], block: &mut [&mut [u8]]) {
        block[1].copy_from_slice(&scale.to_le_bytes());
    }
}
