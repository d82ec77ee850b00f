//! f16, and the rounding to odd that makes a narrower rounding after it a single one.

use super::lane::narrow;

/// An f16 lane at work: held in f32, rounded to f16 when written to its plane.
#[derive(Clone, Copy)]
pub(super) struct Half(pub(super) f32);

narrow!(Half, |bits: u32| Half(widen(bits)), |value: Half| round(value.0));

/// The value of an f16, given by its bits. It has no branches: loops over it become vector code.
#[inline]
pub(super) fn widen(bits: u32) -> f32 {
    let magnitude = (bits & 0x7fff) << 13;
    // The product moves the exponent from f16's bias to f32's and normalises subnormals.
    let scaled = (f32::from_bits(magnitude) * f32::from_bits(0x7780_0000)).to_bits();
    let special = if magnitude >= 0x7c00 << 13 { 0x7f80_0000 } else { 0 };
    f32::from_bits(scaled | special | (bits & 0x8000) << 16)
}

/// The bits of the f16 nearest to `value`, ties to even; NaNs become quiet.
#[inline]
pub(super) fn round(value: f32) -> u32 {
    let bits = value.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    // Adds half a unit in the last place, less one if the last kept bit is even. 112 is the
    // difference of the exponents' biases.
    let normal =
        magnitude.wrapping_sub((112 << 23) - 0xfff).wrapping_add(magnitude >> 13 & 1) >> 13;
    // One unit in the last place of 0.5 is f16's least subnormal: the addition rounds to a multiple
    // of it.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let finite = if magnitude < 0x3880_0000 { subnormal } else { normal };
    let rounded = if magnitude < 0x4780_0000 { finite } else { 0x7c00 };
    let result = if magnitude > 0x7f80_0000 { 0x7e00 } else { rounded };
    result | bits >> 16 & 0x8000
}

/// Turns a value rounded to nearest into one rounded to odd: of the two neighbours of an inexact
/// result, the one with an odd last bit. Rounding it to a format with at least two bits fewer gives
/// the same as rounding the exact value: Boldo and Melquiond, "Emulation of FMA and correctly
/// rounded sums: proved algorithms using rounding to odd", 2008.
macro_rules! round_to_odd {
    ($name:ident, $sum:ident, $float:ty, $bits:ty) => {
        /// The value rounded to odd; `above` and `below` say on which side of `value` the exact
        /// value lies.
        #[inline]
        fn $name(value: $float, above: bool, below: bool) -> $float {
            let bits = value.to_bits();
            let even = !bits & 1;
            let negative = bits >> (<$bits>::BITS - 1);
            let away = <$bits>::from(above) ^ (<$bits>::from(above | below) & negative);
            let toward = <$bits>::from(above | below) ^ away;
            <$float>::from_bits(bits.wrapping_add(away & even).wrapping_sub(toward & even))
        }

        /// a + b rounded to odd. The error is that of Knuth's two-sum. It is NaN, on no side, if
        /// the sum is not finite.
        #[inline]
        fn $sum(a: $float, b: $float) -> $float {
            let sum = a + b;
            let rest = sum - a;
            let error = (a - (sum - rest)) + (b - rest);
            $name(sum, error > 0.0, error < 0.0)
        }
    };
}
round_to_odd!(odd_f32, sum_to_odd_f32, f32, u32);
round_to_odd!(odd_f64, sum_to_odd_f64, f64, u64);

/// An f64 in f32, rounded to odd, so that rounding it to f16 or bf16 remains the only rounding.
#[inline]
pub fn to_odd(value: f64) -> f32 {
    let near = value as f32;
    let error = value - f64::from(near);
    odd_f32(near, error > 0.0, error < 0.0)
}

impl Half {
    /// Rounds an f64 to odd.
    #[inline]
    pub(super) fn from_f64(value: f64) -> Half {
        Half(to_odd(value))
    }

    /// a * b + c. The product is exact in f32.
    #[inline]
    pub(super) fn fma(a: Half, b: Half, c: Half) -> Half {
        Half(sum_to_odd_f32(a.0 * b.0, c.0))
    }
}

/// a * b + c, rounded once. The product is exact in f64.
#[inline]
pub(super) fn fma(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(any(target_feature = "fma", target_arch = "aarch64")) {
        a.mul_add(b, c)
    } else {
        // mul_add would be a call into the C library for every lane.
        sum_to_odd_f64(f64::from(a) * f64::from(b), f64::from(c)) as f32
    }
}
