//! Affine quantization, the convention of MLX: w ≈ scale · code + bias, with one scale and one bias
//! per group of elements along K.
//!
//! The arithmetic is that of MLX's CPU implementation (`mlx/backend/cpu/quantized.cpp`, version
//! 0.32), bit for bit: all in f32, whatever the type of the weights, rounded once more when a scale
//! or a bias is stored. `vectors/` holds its answers.
//!
//! A group's codes are one little-endian stream of bits, the first code in the lowest.

use super::bits::{read_codes, unpack, write_codes};
use super::format::{Codec, Encoder, FormatDef, Plane, QuantFormat, Stored, of_finite};
use crate::convert;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// Smallest magnitude of a scale, so that a constant group divides by something.
const SMALLEST_SCALE: f32 = 1e-7;

/// Codes of `bits` bits, in groups that share a scale and a bias of type `scales`.
struct Affine {
    bits: u32,
    scales: DType,
}

/// The row of a format: bits, elements of a group, and the type of scales and biases.
macro_rules! row {
    ($bits:literal, $group:literal, $scales:ident, $shown:literal) => {
        FormatDef {
            name: concat!("affine-", $bits, "bit-g", $group, "-", $shown),
            family: "affine",
            block: $group,
            planes: &[
                Plane { name: "weight", of: Stored::Words, bytes: $bits * $group / 8 },
                scale_plane("scales", DType::$scales),
                scale_plane("biases", DType::$scales),
            ],
            constants: &[
                ("X_BITS", $bits),
                ("X_BLOCK", $group),
                ("X_SCALE", DType::$scales.number()),
            ],
            codec: &Affine { bits: $bits, scales: DType::$scales },
            encoder: Some(&Affine { bits: $bits, scales: DType::$scales }),
            factor_of: None,
            gguf: None,
        }
    };
}

/// The rows of some numbers of bits: every group and every type.
macro_rules! rows {
    ($($bits:literal)*) => {
        &[$(
            row!($bits, 64, F32, "f32"),
            row!($bits, 64, F16, "f16"),
            row!($bits, 64, BF16, "bf16"),
            row!($bits, 32, F32, "f32"),
            row!($bits, 32, F16, "f16"),
            row!($bits, 32, BF16, "bf16"),
            row!($bits, 128, F32, "f32"),
            row!($bits, 128, F16, "f16"),
            row!($bits, 128, BF16, "bf16"),
        )*]
    };
}

/// Codes of 2 to 8 bits.
#[rustfmt::skip]
pub static FORMATS: &[FormatDef] = rows!(4 8 2 3 5 6);

const fn scale_plane(name: &'static str, dtype: DType) -> Plane {
    Plane { name, of: Stored::Numbers(dtype), bytes: dtype.bytes() }
}

impl QuantFormat {
    /// The affine format of these numbers: bits of a code, elements of a group, type of the scales
    /// and biases.
    ///
    /// # Errors
    /// [`Unsupported`](crate::Error) for a combination that is not implemented; the message lists
    /// the formats.
    pub fn affine(bits: u32, group_size: u32, scales: DType) -> Result<QuantFormat> {
        let named = format!("affine-{bits}bit-g{group_size}-{scales}").parse();
        named.map_err(|error| match error {
            Error::Unsupported(text) => Error::Unsupported(format!(
                "{text}; bits may be 2, 3, 4, 5, 6 or 8, groups 32, 64 or 128, scales f32, f16 or \
                 bf16"
            )),
            other => other,
        })
    }
}

impl Affine {
    #[inline(always)]
    fn numbers(&self, block: &[&[u8]]) -> [f32; 2] {
        [convert::first(self.scales, block[1]), convert::first(self.scales, block[2])]
    }

    fn most(&self) -> f32 {
        ((1 << self.bits) - 1) as f32
    }

    /// Stores codes, and a scale and a bias that the scales' type holds.
    fn put(&self, codes: impl Iterator<Item = u32>, numbers: [f32; 2], block: &mut [&mut [u8]]) {
        write_codes(block[0], self.bits, codes);
        self.rescale(numbers, block);
    }

    /// Scale and bias of a group. The end of its range that lies farther from zero is represented
    /// exactly, and so is zero when it lies inside the range; the scale is negative when that end
    /// is the positive one.
    fn fit(&self, group: &[f32]) -> [f32; 2] {
        let min = group.iter().copied().fold(f32::INFINITY, f32::min);
        let max = group.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let magnitude = ((max - min) / self.most()).max(SMALLEST_SCALE);
        let (step, edge) = if min.abs() > max.abs() { (magnitude, min) } else { (-magnitude, max) };
        let steps = (edge / step).round_ties_even();
        if steps == 0.0 { [step, 0.0] } else { [edge / steps, edge] }
    }
}

impl Codec for Affine {
    #[inline(always)]
    fn decode(&self, block: &[&[u8]], out: &mut [f32]) {
        let [scale, bias] = self.numbers(block);
        unpack(block[0], self.bits, out, |code| scale * code as f32 + bias);
    }

    fn error(&self, block: &[&[u8]], out: &mut [f64]) {
        let u = DType::F32.unit_roundoff();
        let [scale, bias] = self.numbers(block).map(f64::from);
        let flushed = |x| convert::flushed(self.scales, x);
        for (code, out) in read_codes(block[0], self.bits).zip(out) {
            let code = f64::from(code);
            // A product beyond f32 is infinite, unless it is fused with the sum.
            if scale.is_finite() && bias.is_finite() && (scale * code).abs() > f64::from(f32::MAX) {
                *out = f64::INFINITY;
                continue;
            }
            // One rounding of the product and two of the sum, one on either side; the sum is at
            // most product + |bias|. Scale, bias and product may be subnormal.
            let rounded = u * (3.0 * (scale * code).abs() + 2.0 * bias.abs());
            let flushed =
                code * flushed(scale) + flushed(bias) + 2.0 * f64::from(f32::MIN_POSITIVE);
            *out = of_finite(rounded + flushed);
        }
    }

    fn integers(&self, random: &mut dyn FnMut() -> u32, block: &mut [&mut [u8]]) {
        let (count, half) = (block[0].len() * 8 / self.bits as usize, 1 << (self.bits - 1));
        let codes: Vec<u32> = (0..count).map(|_| half - 1 + random() % 3).collect();
        self.put(codes.into_iter(), [1.0, -(half as f32)], block);
    }

    fn sample(&self, random: &mut dyn FnMut() -> u32, block: &mut [&mut [u8]]) {
        let count = block[0].len() * 8 / self.bits as usize;
        let codes: Vec<u32> = (0..count).map(|_| random() & ((1 << self.bits) - 1)).collect();
        // The scale has either sign. From the least code to the largest, weights span 1 to 2.
        let scale = (1.0 + (random() % 64) as f32 / 64.0) / self.most()
            * if random().is_multiple_of(2) { 1.0 } else { -1.0 };
        let bias = -scale * self.most() * (0.25 + (random() % 32) as f32 / 64.0);
        self.put(codes.into_iter(), [scale, bias], block);
    }

    fn rescale(&self, numbers: [f32; 2], block: &mut [&mut [u8]]) {
        for (share, number) in block[1..].iter_mut().zip(numbers) {
            share.copy_from_slice(&convert::encode(self.scales, &[number]));
        }
    }
}

impl Encoder for Affine {
    fn encode(&self, weights: &[f32], block: &mut [&mut [u8]]) -> std::result::Result<(), String> {
        let [scale, bias] = self.fit(weights);
        if ![scale, bias].iter().all(|&x| convert::round(self.scales, x).is_finite()) {
            return Err(format!(
                "its scale {scale:e} and bias {bias:e} are beyond the range of {}",
                self.scales
            ));
        }
        // The codes are fitted to the scale and bias before these are rounded to their stored type.
        let code = |&w: &f32| ((w - bias) / scale).round_ties_even().clamp(0.0, self.most()) as u32;
        self.put(weights.iter().map(code), [scale, bias], block);
        Ok(())
    }

    /// A step and the rounding of scale and bias. Codes round to half a step, but making zero and
    /// the far end of a group exact may shrink its scale: the near end then lies up to a whole step
    /// beyond the last code. The rounding is relative and, if they are subnormal, absolute.
    fn step(&self, block: &[&[u8]]) -> f64 {
        let u = self.scales.unit_roundoff().max(f64::from(f32::EPSILON));
        let subnormal = convert::min_normal(self.scales) * 2.0 * self.scales.unit_roundoff();
        let [scale, bias] = self.numbers(block).map(|x| f64::from(x).abs());
        let most = f64::from(self.most());
        scale * (1.0 + 4.0 * most * u) + 4.0 * u * bias + most * subnormal
    }
}
