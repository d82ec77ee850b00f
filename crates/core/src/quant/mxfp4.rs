//! mxfp4, the microscaling format of four bits: codes of e2m1 in blocks of 32, each block with a scale that
//! is a power of two (e8m0). Encoding follows MLX's CPU implementation, version 0.32, bit for bit.

use super::bits::{read_codes, write_codes};
use super::format::{Codec, FormatDef, Plane, QuantFormat, Stored};

/// Values of the codes; bit 3 is the sign.
const VALUES: [f32; 16] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

/// The ends of the ranges that round to each magnitude: a tie goes to the smaller one.
const ENDS: [f32; 7] = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0];

/// Beyond it a weight rounds to a code that is infinite under the largest scale.
const LARGEST: f32 = 3.5 * f32::from_bits(253 << 23);

/// See the [module](self).
pub static MXFP4: FormatDef = FormatDef {
    name: "mxfp4",
    family: "mxfp4",
    block: 32,
    planes: &[
        Plane { name: "weight", of: Stored::Words, bytes: 16 },
        Plane { name: "scales", of: Stored::Bytes, bytes: 1 },
    ],
    constants: &[],
    codec: &Mxfp4,
};

struct Mxfp4;

/// The scale of a byte: 2^(byte - 127); infinite for 255.
fn scale(byte: u8) -> f32 {
    // 2^-127 is subnormal.
    if byte == 0 { f32::from_bits(1 << 22) } else { f32::from_bits(u32::from(byte) << 23) }
}

impl Codec for Mxfp4 {
    fn decode(&self, block: &[&[u8]], out: &mut [f32]) {
        let scale = scale(block[1][0]);
        for (code, out) in read_codes(block[0], 4).zip(out) {
            *out = VALUES[code as usize] * scale;
        }
    }

    fn encode(&self, weights: &[f32], block: &mut [&mut [u8]]) -> Result<(), String> {
        let largest = weights.iter().fold(0f32, |most, w| most.max(w.abs()));
        // The smallest power of two of which the largest code is not below the largest weight.
        let wanted = (largest / 6.0).to_bits();
        let (exponent, mantissa) = (wanted >> 23, wanted & 0x007f_ffff);
        let byte = match exponent {
            // A block of zeros.
            _ if wanted == 0 => 127,
            // Subnormal: 2^-127 or 2^-126.
            0 => u32::from(mantissa > 1 << 22),
            _ => exponent + u32::from(mantissa != 0),
        };
        if largest > LARGEST {
            return Err(format!("its largest weight is {largest:e}, beyond the range of mxfp4"));
        }
        block[1][0] = byte as u8;
        let scale = scale(byte as u8);
        let code = |&w: &f32| {
            let magnitude = ENDS.iter().filter(|&&end| w.abs() / scale > end).count() as u32;
            if w < 0.0 && magnitude > 0 { magnitude + 8 } else { magnitude }
        };
        write_codes(block[0], 4, weights.iter().map(code));
        Ok(())
    }

    fn error(&self, block: &[&[u8]], out: &mut [f64]) {
        // Products with a power of two are exact. Scales and weights may be subnormal, and taken for zero.
        let smallest = f64::from(f32::MIN_POSITIVE);
        let flushed = if block[1][0] == 0 { 6.0 * f64::from(scale(0)) } else { 0.0 };
        out.fill(smallest + flushed);
    }

    /// The gap between the two largest codes, which is beyond the largest one, too.
    fn step(&self, block: &[&[u8]]) -> f64 {
        2.0 * f64::from(scale(block[1][0]))
    }

    fn integers(&self, random: &mut dyn FnMut() -> u32, block: &mut [&mut [u8]]) {
        const CODES: [u32; 3] = [0, 2, 10];
        let codes: Vec<u32> = (0..32).map(|_| CODES[random() as usize % 3]).collect();
        write_codes(block[0], 4, codes.into_iter());
        block[1][0] = 127;
    }
}

impl QuantFormat {
    /// Codes of e2m1 in blocks of 32 with a power of two.
    pub const MXFP4: QuantFormat = QuantFormat::new(&MXFP4);
}
