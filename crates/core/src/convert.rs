//! Converts numbers to the bytes of a [`DType`] and back. Bytes are little-endian. Floats are
//! rounded to nearest, ties to even. Integers lose their fraction, and end at the ends of their
//! range.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::lanes::{self, LANES};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// The numbers that `bytes` hold. [`Error::Shape`] when their count is not a multiple of the
/// element size.
pub fn decode(dtype: DType, bytes: &[u8]) -> Result<Vec<f32>> {
    if !bytes.len().is_multiple_of(dtype.bytes() as usize) {
        return Err(Error::Shape(format!(
            "{} bytes are not a whole number of {dtype} elements",
            bytes.len()
        )));
    }
    Ok(decode_exact(dtype, bytes))
}

/// Like [`decode`], for lengths that are known to fit; bytes left over at the end are ignored.
pub(crate) fn decode_exact(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    let mut numbers = vec![0.0; bytes.len() / dtype.bytes() as usize];
    decode_into(dtype, bytes, &mut numbers);
    numbers
}

/// Like [`decode`], into `out`, for as many numbers as both have room for.
#[doc(hidden)]
pub fn decode_into(dtype: DType, bytes: &[u8], out: &mut [f32]) {
    #[inline(always)]
    fn each<const N: usize>(bytes: &[u8], out: &mut [f32], number: impl Fn([u8; N]) -> f32) {
        let (many, rest) = out.as_chunks_mut::<LANES>();
        let (blocks, _) = bytes.as_chunks::<N>();
        for (out, block) in many.iter_mut().zip(blocks.as_chunks::<LANES>().0) {
            *out = lanes::array(|i| number(block[i]));
        }
        let done = many.len() * LANES;
        for (out, &block) in rest.iter_mut().zip(blocks.get(done..).unwrap_or(&[])) {
            *out = number(block);
        }
    }
    lanes::widest(
        #[inline(always)]
        || match dtype {
            DType::F32 => each(bytes, out, f32::from_le_bytes),
            DType::F16 => each(bytes, out, |b| half(u16::from_le_bytes(b))),
            DType::BF16 => {
                each(bytes, out, |b| f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16))
            }
            DType::I32 => each(bytes, out, |b| i32::from_le_bytes(b) as f32),
            DType::U32 => each(bytes, out, |b| u32::from_le_bytes(b) as f32),
        },
    );
}

/// The first number that `bytes` hold.
#[inline(always)]
pub(crate) fn first(dtype: DType, bytes: &[u8]) -> f32 {
    let word = || bytes[..4].try_into().expect("four bytes");
    match dtype {
        DType::F32 => f32::from_le_bytes(word()),
        DType::F16 => half(u16::from_le_bytes([bytes[0], bytes[1]])),
        DType::BF16 => f32::from_bits(u32::from_le_bytes([0, 0, bytes[0], bytes[1]])),
        DType::I32 => i32::from_le_bytes(word()) as f32,
        DType::U32 => u32::from_le_bytes(word()) as f32,
    }
}

/// The number that the bits of an f16 stand for. Loops over it become vectors, unlike those over
/// the crate half.
#[inline(always)]
pub(crate) fn half(bits: u16) -> f32 {
    const BIAS: u32 = (127 - 15) << 23;
    let magnitude = u32::from(bits & 0x7fff) << 13;
    // Under the least exponent, numbers have no leading 1: add it, and take it away.
    let least = f32::from_bits(BIAS + (1 << 23));
    let subnormal = (f32::from_bits(magnitude + BIAS + (1 << 23)) - least).to_bits();
    let normal = magnitude + BIAS;
    let endless = magnitude | 0x7f80_0000;
    let finite = if magnitude < 1 << 23 { subnormal } else { normal };
    let magnitude = if magnitude >= 0x1f << 23 { endless } else { finite };
    f32::from_bits(magnitude | u32::from(bits & 0x8000) << 16)
}

/// Like [`decode`], widened to f64 for the oracle.
pub fn decode_f64(dtype: DType, bytes: &[u8]) -> Result<Vec<f64>> {
    Ok(decode(dtype, bytes)?.into_iter().map(f64::from).collect())
}

/// The bytes of `values`, each rounded once to `dtype`; what exceeds the range of f16 becomes
/// infinite.
pub fn encode(dtype: DType, values: &[f32]) -> Vec<u8> {
    match dtype {
        DType::F32 => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        DType::F16 => values.iter().flat_map(|&v| f16::from_f32(v).to_le_bytes()).collect(),
        DType::BF16 => values.iter().flat_map(|&v| bf16::from_f32(v).to_le_bytes()).collect(),
        DType::I32 => values.iter().flat_map(|&v| (v as i32).to_le_bytes()).collect(),
        DType::U32 => values.iter().flat_map(|&v| (v as u32).to_le_bytes()).collect(),
    }
}

/// Like [`encode`], into `bytes`, which have the alignment of `dtype` and room for all values.
#[doc(hidden)]
pub fn encode_into(dtype: DType, values: &[f32], bytes: &mut [u8]) {
    match dtype {
        DType::F32 => bytes.copy_from_slice(bytemuck::cast_slice(values)),
        DType::F16 => {
            bytemuck::cast_slice_mut::<u8, f16>(bytes).convert_from_f32_slice(values);
        }
        DType::BF16 => {
            bytemuck::cast_slice_mut::<u8, bf16>(bytes).convert_from_f32_slice(values);
        }
        DType::I32 | DType::U32 => bytes.copy_from_slice(&encode(dtype, values)),
    }
}

/// `value` after one rounding to `dtype`.
pub fn round(dtype: DType, value: f32) -> f32 {
    match dtype {
        DType::F32 => value,
        DType::F16 => f16::from_f32(value).to_f32(),
        DType::BF16 => bf16::from_f32(value).to_f32(),
        DType::I32 => value as i32 as f32,
        DType::U32 => value as u32 as f32,
    }
}

/// `value` after one rounding to `dtype`, to nearest with ties to even. Rounding to f32 first would
/// be a second one, and `half::f16::from_f64` drops bits that decide ties.
///
/// ```
/// use tilewise_core::{DType, convert::round_f64};
///
/// // Just above the middle of 1 and the next number of f16.
/// assert_eq!(round_f64(DType::F16, 1.0 + 2f64.powi(-11) + 2f64.powi(-40)), 1.0 + 2f64.powi(-10));
/// ```
pub fn round_f64(dtype: DType, value: f64) -> f64 {
    match dtype {
        DType::F32 => f64::from(value as f32),
        DType::F16 => f16::from_f32(to_odd(value)).to_f64(),
        DType::BF16 => bf16::from_f32(to_odd(value)).to_f64(),
        DType::I32 => f64::from(value as i32),
        DType::U32 => f64::from(value as u32),
    }
}

/// `value` in f32, rounded to odd: of the two neighbours of an inexact value, the one whose last
/// bit is 1. Rounding that to a type with at least two bits fewer is the only rounding: Boldo and
/// Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to
/// odd", 2008.
fn to_odd(value: f64) -> f32 {
    let near = value as f32;
    let wide = f64::from(near);
    if wide == value || value.is_nan() {
        return near;
    }
    let toward_zero = near.to_bits() - u32::from(wide.abs() > value.abs());
    f32::from_bits(toward_zero | 1)
}

/// Smallest positive normal number of `dtype`. A GPU may take or give zero for anything smaller.
/// Integers have no such numbers: 0.
pub const fn min_normal(dtype: DType) -> f64 {
    match dtype {
        DType::F32 | DType::BF16 => f32::MIN_POSITIVE as f64,
        DType::F16 => 1.0 / (1u64 << 14) as f64,
        DType::I32 | DType::U32 => 0.0,
    }
}

/// Largest finite number of `dtype`.
pub fn largest(dtype: DType) -> f64 {
    match dtype {
        DType::F32 => f64::from(f32::MAX),
        DType::F16 => half::f16::MAX.to_f64(),
        DType::BF16 => half::bf16::MAX.to_f64(),
        DType::I32 => f64::from(i32::MAX),
        DType::U32 => f64::from(u32::MAX),
    }
}

/// By how much `value` changes when a GPU that reads it as `dtype` takes subnormals for zero.
pub fn flushed(dtype: DType, value: f64) -> f64 {
    if value.abs() < min_normal(dtype) { value.abs() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_and_rounds_to_even() {
        for dtype in DType::FLOATS {
            let values = [0.0, -0.0, 1.0, -2.5, 0.375, f32::INFINITY];
            let bytes = encode(dtype, &values);
            assert_eq!(bytes.len() as u64, values.len() as u64 * dtype.bytes());
            assert_eq!(decode(dtype, &bytes).unwrap(), values);
            assert!(decode(dtype, &encode(dtype, &[f32::NAN])).unwrap()[0].is_nan());
            assert_eq!(decode_f64(dtype, &bytes).unwrap()[3], -2.5);
        }
        // Halfway between 1 and the next number goes to 1, halfway above that goes up.
        let f16_step = 1.0 / 1024.0;
        assert_eq!(round(DType::F16, 1.0 + f16_step / 2.0), 1.0);
        assert_eq!(round(DType::F16, 1.0 + f16_step * 1.5), 1.0 + 2.0 * f16_step);
        let bf16_step = 1.0 / 128.0;
        assert_eq!(round(DType::BF16, 1.0 + bf16_step / 2.0), 1.0);
        assert_eq!(round(DType::BF16, 1.0 + bf16_step * 1.5), 1.0 + 2.0 * bf16_step);
        assert_eq!(round(DType::F16, 65519.0), 65504.0);
        assert_eq!(round(DType::F16, 65520.0), f32::INFINITY);
        assert_eq!(encode(DType::F16, &[1.0]), [0x00, 0x3c]);
        assert_eq!(encode(DType::BF16, &[1.0]), [0x80, 0x3f]);
    }

    /// Compares with a search among all numbers of the type. Their neighbours' middles are exact in
    /// f64.
    #[test]
    fn numbers_of_f64_are_rounded_once() {
        let nearest = |dtype: DType, value: f64| {
            let widen = |bits: u16| match dtype {
                DType::F16 => f16::from_bits(bits).to_f64(),
                _ => bf16::from_bits(bits).to_f64(),
            };
            let infinity: u16 = if dtype == DType::F16 { 0x7c00 } else { 0x7f80 };
            // The largest number that is not above the value, by bisection.
            let (mut low, mut high) = (0u16, infinity);
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if widen(middle) <= value { low = middle } else { high = middle }
            }
            // The middle of two neighbours has one bit more than they have: it is exact in f64.
            // Infinity counts as the number after the largest.
            let above = match high == infinity {
                true => 2.0 * widen(high - 1) - widen(high - 2),
                false => widen(high),
            };
            let middle = (widen(low) + above) / 2.0;
            let up = value > middle || value == middle && low % 2 == 1;
            widen(if up { high } else { low })
        };
        let mut tried = 0;
        for dtype in [DType::F16, DType::BF16] {
            let widen = |bits: u16| match dtype {
                DType::F16 => f16::from_bits(bits).to_f64(),
                _ => bf16::from_bits(bits).to_f64(),
            };
            let infinity: u16 = if dtype == DType::F16 { 0x7c00 } else { 0x7f80 };
            for bits in 0..infinity {
                let (this, next) = (widen(bits), widen(bits + 1));
                let next = if next.is_finite() { next } else { 2.0 * this - widen(bits - 1) };
                let tie = (this + next) / 2.0;
                let near = [this, tie, next].into_iter().flat_map(|x| {
                    [x.next_down(), x, x.next_up(), x * (1.0 + 1e-9), x * (1.0 - 1e-9)]
                });
                for value in near.filter(|value| *value >= 0.0) {
                    let expected = nearest(dtype, value);
                    assert_eq!(round_f64(dtype, value), expected, "{dtype} {value:e}");
                    assert_eq!(round_f64(dtype, -value), -expected, "{dtype} {value:e}");
                    tried += 1;
                }
            }
            for value in [f64::MAX, f64::INFINITY, 1e39, 2f64.powi(128)] {
                assert_eq!(round_f64(dtype, value), f64::INFINITY);
            }
            assert!(round_f64(dtype, f64::NAN).is_nan());
            assert_eq!(round_f64(dtype, -5e-324).to_bits(), (-0.0f64).to_bits());
        }
        assert!(tried > 900_000, "{tried}");
        // The faults that this replaces: a tie and a little more, which half drops, and a number
        // that f32 rounds to the tie.
        let value = 1.0 + 2f64.powi(-11) + 2f64.powi(-45);
        assert_eq!(f16::from_f32(value as f32).to_f64(), 1.0);
        assert_eq!(round_f64(DType::F16, value), 1.0 + 2f64.powi(-10));
        let numbers = [DType::F32, DType::I32, DType::U32].map(|dtype| round_f64(dtype, -1.75));
        assert_eq!(numbers, [-1.75, -1.0, 0.0]);
    }

    #[test]
    fn integers() {
        assert_eq!(
            encode(DType::I32, &[-2.5, 3e9]),
            [(-2i32).to_le_bytes(), i32::MAX.to_le_bytes()].concat()
        );
        assert_eq!(
            encode(DType::U32, &[-2.5, 7.0]),
            [0u32.to_le_bytes(), 7u32.to_le_bytes()].concat()
        );
        assert_eq!(decode(DType::I32, &(-7i32).to_le_bytes()).unwrap(), [-7.0]);
        assert_eq!(decode(DType::U32, &u32::MAX.to_le_bytes()).unwrap(), [4294967296.0]);
        assert_eq!((round(DType::I32, -1.5), round(DType::U32, -1.5)), (-1.0, 0.0));
    }

    #[test]
    fn odd_byte_counts_are_refused() {
        assert!(matches!(decode(DType::F16, &[0; 3]), Err(Error::Shape(_))));
        assert!(matches!(decode(DType::F32, &[0; 6]), Err(Error::Shape(_))));
        assert_eq!(decode(DType::F32, &[]).unwrap(), []);
    }
}
