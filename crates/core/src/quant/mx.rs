//! The microscaling formats: codes that are small floating-point numbers, in blocks with a scale of
//! 8 bits. mxfp4 and mxfp8 have codes of e2m1 and e4m3 under a power of two (e8m0); nvfp4 has codes
//! of e2m1 under a scale in e4m3, and may have a factor for the whole matrix. Encoding follows
//! MLX's CPU implementation, version 0.32, bit for bit.

use super::bits::{read_codes, unpack, write_codes};
use super::format::{Codec, Encoder, FormatDef, Plane, QuantFormat, Stored};
use crate::convert;
use crate::dtype::DType;

/// Values of e2m1; bit 3 is the sign.
const E2M1: [f32; 16] =
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

/// The ends of the ranges that round to each magnitude of e2m1: a tie goes to the smaller one.
const ENDS: [f32; 7] = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0];

/// The largest numbers of e2m1 and e4m3.
const LARGEST_E2M1: f32 = 6.0;
const LARGEST_E4M3: f32 = 448.0;

/// A scale beyond this is farther from 448, the largest of e4m3, than the gap below 448.
const BEYOND_E4M3: f32 = 480.0;

struct Mx {
    codes: Small,
    scale: Small,
}

/// How 8 bits, or 4, stand for a number.
#[derive(Clone, Copy, PartialEq)]
enum Small {
    E2M1,
    E4M3,
    E8M0,
}

macro_rules! row {
    ($name:literal, $bits:literal, $block:literal, $codes:ident, $scale:ident, $factor_of:expr) => {
        FormatDef {
            name: $name,
            family: "mx",
            block: $block,
            planes: &[
                Plane { name: "weight", of: Stored::Words, bytes: $bits * $block / 8 },
                Plane { name: "scales", of: Stored::Bytes, bytes: 1 },
            ],
            constants: &[
                ("X_BITS", $bits),
                ("X_BLOCK", $block),
                ("X_E4M3_SCALE", matches!(Small::$scale, Small::E4M3) as u32),
            ],
            codec: &Mx { codes: Small::$codes, scale: Small::$scale },
            encoder: Some(&Mx { codes: Small::$codes, scale: Small::$scale }),
            factor_of: $factor_of,
            gguf: None,
        }
    };
}

/// The microscaling formats.
pub static FORMATS: &[FormatDef] = &[
    row!("mxfp4", 4, 32, E2M1, E8M0, None),
    row!("mxfp8", 8, 32, E4M3, E8M0, None),
    row!("nvfp4", 4, 16, E2M1, E4M3, Some(LARGEST_E2M1 * LARGEST_E4M3)),
];

impl QuantFormat {
    /// Codes of e2m1 in blocks of 32 with a power of two.
    pub const MXFP4: QuantFormat = QuantFormat::new(&FORMATS[0]);
    /// Codes of e4m3 in blocks of 32 with a power of two.
    pub const MXFP8: QuantFormat = QuantFormat::new(&FORMATS[1]);
    /// Codes of e2m1 in blocks of 16 with a scale in e4m3.
    pub const NVFP4: QuantFormat = QuantFormat::new(&FORMATS[2]);
}

impl Small {
    const fn bits(self) -> u32 {
        if matches!(self, Small::E2M1) { 4 } else { 8 }
    }

    #[inline(always)]
    fn decode(self, code: u8) -> f32 {
        match self {
            Small::E2M1 => E2M1[usize::from(code)],
            Small::E4M3 => e4m3(code),
            // 2^-127 is subnormal; 255 is infinite.
            Small::E8M0 if code == 0 => f32::from_bits(1 << 22),
            Small::E8M0 => f32::from_bits(u32::from(code) << 23),
        }
    }

    /// The nearest code. Ties go to the smaller magnitude in e2m1, where no zero is negative, and
    /// to the even code in e4m3. What lies beyond the largest becomes the largest.
    fn encode(self, x: f32) -> u8 {
        match self {
            Small::E2M1 => {
                let magnitude = ENDS.iter().filter(|&&end| x.abs() > end).count() as u8;
                if x < 0.0 && magnitude > 0 { magnitude + 8 } else { magnitude }
            }
            Small::E4M3 => {
                let bits = x.abs().to_bits();
                let code = if bits >= LARGEST_E4M3.to_bits() {
                    0x7e
                } else if bits < power(-6).to_bits() {
                    // A sum with 2^14 rounds to a multiple of 2^-9.
                    (f32::from_bits(bits) + 16384.0).to_bits() - 16384f32.to_bits()
                } else {
                    (bits - (120 << 23) + 0x7_ffff + (bits >> 20 & 1)) >> 20
                };
                code as u8 | if x.is_sign_negative() { 0x80 } else { 0 }
            }
            // The smallest power of two that is not below x.
            Small::E8M0 => {
                let (exponent, mantissa) = (x.to_bits() >> 23, x.to_bits() & 0x007f_ffff);
                let code = match exponent {
                    // A block of zeros.
                    _ if x == 0.0 => 127,
                    // Subnormal: 2^-127 or 2^-126.
                    0 => u32::from(mantissa > 1 << 22),
                    _ => exponent + u32::from(mantissa != 0),
                };
                code as u8
            }
        }
    }
}

/// The value of a code of e4m3.
#[inline(always)]
pub(super) fn e4m3(code: u8) -> f32 {
    let own = u32::from(code & 0x7f);
    let normal = f32::from_bits((own << 20) + (120 << 23));
    let finite = if own < 8 { own as f32 / 512.0 } else { normal };
    let magnitude = if own == 0x7f { f32::NAN } else { finite };
    if code & 0x80 == 0 { magnitude } else { -magnitude }
}

/// 2^`exponent`, normal.
fn power(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) as u32) << 23)
}

impl Mx {
    fn codes(&self, block: &[&[u8]]) -> impl Iterator<Item = f32> {
        read_codes(block[0], self.codes.bits()).map(|code| self.codes.decode(code as u8))
    }

    /// Fits the scale to the largest weight, times `inverse`.
    fn fit(&self, weights: &[f32], inverse: f32, block: &mut [&mut [u8]]) -> Result<(), String> {
        let largest = weights.iter().fold(0f32, |most, w| most.max(w.abs()));
        let most = if self.codes == Small::E4M3 { LARGEST_E4M3 } else { LARGEST_E2M1 };
        let wanted = largest / most * inverse;
        let beyond = match self.scale {
            Small::E4M3 => wanted > BEYOND_E4M3,
            // The largest weight rounds to a code that is infinite under the scale: 4 · 2^126 or
            // 256 · 2^120.
            _ if self.codes == Small::E2M1 => largest > 3.5 * power(126),
            _ => largest >= 248.0 * power(120),
        };
        if beyond {
            return Err(format!(
                "its largest weight is {largest:e}, beyond the range of the format"
            ));
        }
        let byte = self.scale.encode(wanted);
        let scale = self.scale.decode(byte);
        let code = |&w: &f32| {
            // Every weight is zero under a scale that was rounded to zero.
            let x = if scale == 0.0 { 0.0 } else { w / scale * inverse };
            u32::from(self.codes.encode(x))
        };
        block[1][0] = byte;
        write_codes(block[0], self.codes.bits(), weights.iter().map(code));
        Ok(())
    }
}

impl Codec for Mx {
    #[inline(always)]
    fn decode(&self, block: &[&[u8]], out: &mut [f32]) {
        self.decode_by(1.0, block, out);
    }

    #[inline(always)]
    fn decode_by(&self, factor: f32, block: &[&[u8]], out: &mut [f32]) {
        let scale = self.scale.decode(block[1][0]) * factor;
        // The match stands outside the loops, or each element would go through it.
        match self.codes {
            Small::E2M1 => unpack(block[0], 4, out, |code| E2M1[code as usize] * scale),
            Small::E4M3 => unpack(block[0], 8, out, |code| e4m3(code as u8) * scale),
            Small::E8M0 => unreachable!("codes are no powers of two"),
        }
    }

    fn error(&self, block: &[&[u8]], out: &mut [f64]) {
        // Products are exact. Scales and weights may be subnormal, and taken for zero.
        let flushed = convert::flushed(DType::F32, f64::from(self.scale.decode(block[1][0])));
        for (value, out) in self.codes(block).zip(out) {
            *out = f64::from(f32::MIN_POSITIVE)
                + if flushed > 0.0 { f64::from(value.abs()) * flushed } else { 0.0 };
        }
    }

    fn integers(&self, random: &mut dyn FnMut() -> u32, block: &mut [&mut [u8]]) {
        // In e4m3 a power of two may be subnormal, under a scale that makes it 1.
        let (one, scale) = match self.codes {
            Small::E4M3 => {
                [(1.0, 1.0), (1.0 / 512.0, 512.0), (1.0 / 128.0, 128.0)][random() as usize % 3]
            }
            _ => (1.0, 1.0),
        };
        let values = [0.0, one, -one].map(|value| u32::from(self.codes.encode(value)));
        let count = block[0].len() * 8 / self.codes.bits() as usize;
        let codes: Vec<u32> = (0..count).map(|_| values[random() as usize % 3]).collect();
        write_codes(block[0], self.codes.bits(), codes.into_iter());
        block[1][0] = self.scale.encode(scale);
    }

    fn sample(&self, random: &mut dyn FnMut() -> u32, block: &mut [&mut [u8]]) {
        let largest = if self.codes == Small::E4M3 { LARGEST_E4M3 } else { LARGEST_E2M1 };
        let count = block[0].len() * 8 / self.codes.bits() as usize;
        // No NaN.
        let code = |_| loop {
            let code = random() & ((1 << self.codes.bits()) - 1);
            if self.codes.decode(code as u8).is_finite() {
                return code;
            }
        };
        let codes: Vec<u32> = (0..count).map(code).collect();
        write_codes(block[0], self.codes.bits(), codes.into_iter());
        block[1][0] = self.scale.encode((0.5 + (random() % 64) as f32 / 128.0) / largest);
    }

    fn rescale(&self, [scale, _]: [f32; 2], block: &mut [&mut [u8]]) {
        block[1][0] = match self.scale {
            Small::E4M3 if scale.is_nan() => 0x7f,
            Small::E4M3 => self.scale.encode(scale),
            _ if scale.is_finite() => self.scale.encode(scale.abs()),
            // Infinite; NaN has no code.
            _ => 0xff,
        };
    }
}

impl Encoder for Mx {
    fn encode(&self, weights: &[f32], block: &mut [&mut [u8]]) -> Result<(), String> {
        self.fit(weights, 1.0, block)
    }

    fn encode_by(
        &self,
        inverse: f32,
        weights: &[f32],
        block: &mut [&mut [u8]],
    ) -> Result<(), String> {
        self.fit(weights, inverse, block)
    }

    /// Half the gap below the largest code, or twice that beyond it; for nvfp4 also the rounding of
    /// a scale that is subnormal in e4m3.
    fn step(&self, block: &[&[u8]]) -> f64 {
        let scale = f64::from(self.scale.decode(block[1][0]));
        let half_gap = if self.codes == Small::E4M3 { 16.0 } else { 1.0 };
        let scale_step =
            if self.scale == Small::E4M3 { f64::from(LARGEST_E2M1) / 1024.0 } else { 0.0 };
        2.0 * half_gap * scale + scale_step
    }
}
