//! Converts numbers to the bytes of a [`DType`] and back. Bytes are little-endian. Floats are
//! rounded to nearest, ties to even. Integers lose their fraction, and end at the ends of their
//! range.

use crate::dtype::DType;
use crate::error::{Error, Result};
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
    match dtype {
        DType::F32 => bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect(),
        DType::F16 => bytes.as_chunks().0.iter().map(|&b| f16::from_le_bytes(b).to_f32()).collect(),
        DType::BF16 => {
            bytes.as_chunks().0.iter().map(|&b| bf16::from_le_bytes(b).to_f32()).collect()
        }
        DType::I32 => bytes.as_chunks().0.iter().map(|&b| i32::from_le_bytes(b) as f32).collect(),
        DType::U32 => bytes.as_chunks().0.iter().map(|&b| u32::from_le_bytes(b) as f32).collect(),
    }
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
