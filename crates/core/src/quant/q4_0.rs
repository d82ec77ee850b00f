//! Q4_0 of GGUF: codes of four bits in blocks of 32, each block behind its scale in f16. A block
//! has 18 bytes. The low nibbles of its 16 bytes of codes are the first 16 elements, the high ones
//! the others. Encoding follows the Python package gguf, version 0.19, bit for bit.

use super::format::{Codec, FormatDef, Plane, QuantFormat, Stored};
use crate::convert;
use crate::dtype::DType;
use half::f16;

/// See the [module](self).
pub static Q4_0: FormatDef = FormatDef {
    name: "q4_0",
    family: "q4_0",
    block: 32,
    planes: &[Plane { name: "blocks", of: Stored::Bytes, bytes: 18 }],
    constants: &[],
    codec: &Q40,
};

struct Q40;

/// The scale of a block, and its codes less 8.
fn parts(block: &[u8]) -> (f32, impl Iterator<Item = f32>) {
    let scale = f16::from_le_bytes([block[0], block[1]]).to_f32();
    let low = block[2..].iter().map(|&pair| pair & 15);
    let high = block[2..].iter().map(|&pair| pair >> 4);
    (scale, low.chain(high).map(|code| f32::from(code) - 8.0))
}

/// Stores a scale and 32 codes.
fn put(scale: f16, codes: &[u8; 32], block: &mut [u8]) {
    block[..2].copy_from_slice(&scale.to_le_bytes());
    let (low, high) = codes.split_at(16);
    for ((pair, low), high) in block[2..].iter_mut().zip(low).zip(high) {
        *pair = low | high << 4;
    }
}

impl Codec for Q40 {
    fn decode(&self, block: &[&[u8]], out: &mut [f32]) {
        let (scale, codes) = parts(block[0]);
        for (code, out) in codes.zip(out) {
            *out = scale * code;
        }
    }

    fn encode(&self, weights: &[f32], block: &mut [&mut [u8]]) -> Result<(), String> {
        // Of equals the first; its sign counts, that of a zero too.
        let largest = weights.iter().copied().reduce(|most, w| if w.abs() > most.abs() { w } else { most });
        let scale = largest.unwrap_or(0.0) / -8.0;
        let stored = f16::from_f32(scale);
        if !stored.is_finite() {
            return Err(format!("its scale {scale:e} is beyond the range of f16"));
        }
        // The codes are fitted to the scale before it is rounded. Where its inverse is infinite, all
        // weights are stored as zero.
        let inverse = if scale == 0.0 || (1.0 / scale).is_infinite() { 0.0 } else { 1.0 / scale };
        let mut codes = [0; 32];
        for (code, w) in codes.iter_mut().zip(weights) {
            // A weight of the other sign may lie beyond the last code.
            *code = ((w * inverse + 8.5) as u8).min(15);
        }
        put(stored, &codes, block[0]);
        Ok(())
    }

    fn error(&self, block: &[&[u8]], out: &mut [f64]) {
        let (scale, codes) = parts(block[0]);
        let scale = f64::from(scale);
        for (code, out) in codes.zip(out) {
            let code = f64::from(code).abs();
            // The product is rounded nowhere: 11 bits times 4. The scale may be subnormal in f16.
            *out = code * convert::flushed(DType::F16, scale) + f64::from(f32::MIN_POSITIVE);
        }
    }

    /// A whole step, where the largest weight has an equal of the other sign; and the rounding of
    /// the scale, which is absolute where it is subnormal.
    fn step(&self, block: &[&[u8]]) -> f64 {
        let (scale, _) = parts(block[0]);
        f64::from(scale.abs()) * (1.001 + 8.0 / 2048.0) + 8.0 / f64::from(1 << 25)
    }

    fn integers(&self, random: &mut dyn FnMut() -> u32, block: &mut [&mut [u8]]) {
        put(f16::ONE, &std::array::from_fn(|_| 7 + (random() % 3) as u8), block[0]);
    }
}

impl QuantFormat {
    /// GGUF's codes of four bits in blocks of 32 with a scale in f16.
    pub const Q4_0: QuantFormat = QuantFormat::new(&Q4_0);
}
