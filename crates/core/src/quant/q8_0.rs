//! Q8_0 of GGUF: signed bytes in blocks of 32, each block behind its scale in f16. A block has 34 bytes.
//! Encoding follows the Python package gguf, version 0.19, bit for bit.

use super::format::{Codec, FormatDef, Plane, QuantFormat, Stored};
use crate::convert;
use crate::dtype::DType;
use half::f16;

/// See the [module](self).
pub static Q8_0: FormatDef = FormatDef {
    name: "q8_0",
    family: "q8_0",
    block: 32,
    planes: &[Plane { name: "blocks", of: Stored::Bytes, bytes: 34 }],
    constants: &[],
    codec: &Q80,
};

struct Q80;

/// The scale of a block, and its codes.
fn parts(block: &[u8]) -> (f32, impl Iterator<Item = f32>) {
    let scale = f16::from_le_bytes([block[0], block[1]]).to_f32();
    (scale, block[2..].iter().map(|&code| f32::from(code as i8)))
}

impl Codec for Q80 {
    fn decode(&self, block: &[&[u8]], out: &mut [f32]) {
        let (scale, codes) = parts(block[0]);
        for (code, out) in codes.zip(out) {
            *out = scale * code;
        }
    }

    fn encode(&self, weights: &[f32], block: &mut [&mut [u8]]) -> Result<(), String> {
        let largest = weights.iter().fold(0f32, |most, w| most.max(w.abs()));
        let scale = largest / 127.0;
        let stored = f16::from_f32(scale);
        if !stored.is_finite() {
            return Err(format!("its scale {scale:e} is beyond the range of f16"));
        }
        // The codes are fitted to the scale before it is rounded. A scale whose inverse is infinite is
        // stored as zero.
        let inverse = if scale == 0.0 || (1.0 / scale).is_infinite() { 0.0 } else { 1.0 / scale };
        block[0][..2].copy_from_slice(&stored.to_le_bytes());
        for (code, w) in block[0][2..].iter_mut().zip(weights) {
            *code = (w * inverse).round() as i8 as u8;
        }
        Ok(())
    }

    fn error(&self, block: &[&[u8]], out: &mut [f64]) {
        let (scale, codes) = parts(block[0]);
        let scale = f64::from(scale);
        for (code, out) in codes.zip(out) {
            let code = f64::from(code).abs();
            // The product is rounded nowhere: 11 bits times 8. It may be subnormal, as the scale may.
            *out = code * convert::flushed(DType::F16, scale) + f64::from(f32::MIN_POSITIVE);
        }
    }

    /// Half a step, and the rounding of the scale, which is absolute where it is subnormal.
    fn step(&self, block: &[&[u8]]) -> f64 {
        let (scale, _) = parts(block[0]);
        f64::from(scale.abs()) * (0.501 + 127.0 / 2048.0) + 127.0 / f64::from(1 << 25)
    }

    fn integers(&self, random: &mut dyn FnMut() -> u32, block: &mut [&mut [u8]]) {
        block[0][..2].copy_from_slice(&f16::ONE.to_le_bytes());
        block[0][2..].fill_with(|| (random() % 3) as u8);
        block[0][2..].iter_mut().for_each(|code| *code = code.wrapping_sub(1));
    }
}

impl QuantFormat {
    /// GGUF's signed bytes in blocks of 32 with a scale in f16.
    pub const Q8_0: QuantFormat = QuantFormat::new(&Q8_0);
}
