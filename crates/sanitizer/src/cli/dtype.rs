//! Element types of the buffers on the command line.

use half::{bf16, f16};
use tilewise_sanitizer::to_odd;

/// The type of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DType {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    Bf16,
    F32,
    F64,
}

impl DType {
    const NAMES: [(&str, DType); 12] = [
        ("i8", DType::I8),
        ("u8", DType::U8),
        ("i16", DType::I16),
        ("u16", DType::U16),
        ("i32", DType::I32),
        ("u32", DType::U32),
        ("i64", DType::I64),
        ("u64", DType::U64),
        ("f16", DType::F16),
        ("bf16", DType::Bf16),
        ("f32", DType::F32),
        ("f64", DType::F64),
    ];

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let found = Self::NAMES.into_iter().find(|(name, _)| *name == text);
        found.map(|(_, dtype)| dtype).ok_or_else(|| {
            format!(
                "unknown element type {text:?}; known are {}",
                Self::NAMES.map(|(name, _)| name).join(", ")
            )
        })
    }

    pub(crate) fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|(_, dtype)| *dtype == self).map_or("", |(name, _)| name)
    }

    /// Bytes of an element.
    pub(crate) fn bytes(self) -> usize {
        match self {
            DType::I8 | DType::U8 => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::Bf16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 | DType::U64 | DType::F64 => 8,
        }
    }

    fn is_signed(self) -> bool {
        matches!(self, DType::I8 | DType::I16 | DType::I32 | DType::I64)
    }

    /// numpy's name of the type, little-endian. numpy has no bf16; its bits are u2.
    pub(crate) fn numpy(self) -> String {
        let kind = match self {
            DType::F16 | DType::F32 | DType::F64 => 'f',
            _ if self.is_signed() => 'i',
            _ => 'u',
        };
        let order = if self.bytes() == 1 { '|' } else { '<' };
        format!("{order}{kind}{}", self.bytes())
    }

    /// The little-endian bytes of numbers separated by commas. Integers may be hexadecimal, after
    /// 0x.
    pub(crate) fn numbers(self, text: &str) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        for number in text.split(',').map(str::trim) {
            let done = match self {
                DType::F16 => number
                    .parse()
                    .map(|value| bytes.extend(f16::from_f32(to_odd(value)).to_le_bytes()))
                    .ok(),
                DType::Bf16 => number
                    .parse()
                    .map(|value| bytes.extend(bf16::from_f32(to_odd(value)).to_le_bytes()))
                    .ok(),
                DType::F32 => {
                    number.parse().map(|value: f32| bytes.extend(value.to_le_bytes())).ok()
                }
                DType::F64 => {
                    number.parse().map(|value: f64| bytes.extend(value.to_le_bytes())).ok()
                }
                _ => self
                    .integer(number)
                    .map(|value| bytes.extend(&value.to_le_bytes()[..self.bytes()])),
            };
            done.ok_or_else(|| format!("{number:?} is no {}", self.name()))?;
        }
        Ok(bytes)
    }

    fn integer(self, text: &str) -> Option<i128> {
        let value = match text.strip_prefix("0x") {
            Some(digits) => i128::from(u64::from_str_radix(digits, 16).ok()?),
            None => text.parse().ok()?,
        };
        let values = 1i128 << (8 * self.bytes());
        let least = if self.is_signed() { -values / 2 } else { 0 };
        (least..least + values).contains(&value).then_some(value)
    }

    /// The little-endian bytes of `count` random numbers: floats in [-1, 1) that are exact in the
    /// type, integers over their whole range.
    pub(crate) fn random(self, count: usize, seed: u64) -> Vec<u8> {
        let mut state = seed;
        let mut bytes = Vec::with_capacity(count * self.bytes());
        for _ in 0..count {
            let bits = split_mix(&mut state);
            // The number of significant bits, one of them for the sign.
            let fraction = |bits_kept: u32| {
                (bits >> (64 - bits_kept)) as f64 / (1u64 << (bits_kept - 1)) as f64 - 1.0
            };
            match self {
                DType::F16 => bytes.extend(f16::from_f32(fraction(11) as f32).to_le_bytes()),
                DType::Bf16 => bytes.extend(bf16::from_f32(fraction(8) as f32).to_le_bytes()),
                DType::F32 => bytes.extend((fraction(24) as f32).to_le_bytes()),
                DType::F64 => bytes.extend(fraction(53).to_le_bytes()),
                _ => bytes.extend(&bits.to_le_bytes()[8 - self.bytes()..]),
            }
        }
        bytes
    }
}

/// SplitMix64 (Steele, Lea and Flood: Fast splittable pseudorandom number generators, 2014).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut bits = *state;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_type() {
        assert_eq!(DType::I8.numbers("-128, 127").unwrap(), [0x80, 0x7f]);
        assert_eq!(DType::U16.numbers("0xabcd").unwrap(), [0xcd, 0xab]);
        assert_eq!(DType::I64.numbers("-2").unwrap(), (-2i64).to_le_bytes());
        assert_eq!(DType::U64.numbers("18446744073709551615").unwrap(), [0xff; 8]);
        assert_eq!(DType::F16.numbers("1,-2").unwrap(), [0x00, 0x3c, 0x00, 0xc0]);
        assert_eq!(DType::Bf16.numbers("1").unwrap(), [0x80, 0x3f]);
        assert_eq!(
            DType::F32.numbers("1e-3,inf").unwrap(),
            [0.001f32.to_le_bytes(), f32::INFINITY.to_le_bytes()].concat()
        );
        for (dtype, bad) in [
            (DType::I8, "128"),
            (DType::U8, "-1"),
            (DType::U32, "1.5"),
            (DType::F32, ""),
            (DType::I32, "1,"),
        ] {
            assert!(dtype.numbers(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_are_read_back() {
        for (name, dtype) in DType::NAMES {
            assert_eq!((DType::parse(name), dtype.name()), (Ok(dtype), name));
        }
        assert!(DType::parse("f31").unwrap_err().contains("f31"));
    }

    #[test]
    fn random_floats_fill_the_interval_in_every_type() {
        let all = |dtype: DType, read: fn(&[u8]) -> f64| {
            let bytes = dtype.random(10_000, 7);
            assert_eq!(bytes, dtype.random(10_000, 7));
            assert_ne!(bytes, dtype.random(10_000, 8));
            let values: Vec<f64> = bytes.chunks(dtype.bytes()).map(read).collect();
            assert!(values.iter().all(|value| (-1.0..1.0).contains(value)));
            assert!(
                values.iter().any(|value| *value < -0.9) && values.iter().any(|value| *value > 0.9)
            );
            assert!(values.iter().sum::<f64>().abs() < 500.0);
        };
        all(DType::F16, |bytes| f16::from_le_bytes([bytes[0], bytes[1]]).to_f64());
        all(DType::Bf16, |bytes| bf16::from_le_bytes([bytes[0], bytes[1]]).to_f64());
        all(DType::F32, |bytes| f32::from_le_bytes(bytes.try_into().unwrap()).into());
        all(DType::F64, |bytes| f64::from_le_bytes(bytes.try_into().unwrap()));
        assert_eq!(DType::U8.random(3, 1).len(), 3);
    }
}
