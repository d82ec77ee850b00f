//! Quantized formats as data: [`FORMATS`] lists a [`FormatDef`] for each; a file each, or one for a
//! family, defines their numbers. `Quantized` is a matrix of any of them.

pub mod affine;
mod bits;
mod format;
mod matrix;
pub mod mxfp4;
pub mod q4_0;
pub mod q8_0;
#[cfg(test)]
mod tests;

pub use format::{Codec, FormatDef, Plane, QuantFormat, Stored};
pub use matrix::{Quantized, dequantize, quantize};

/// Every format.
#[rustfmt::skip]
pub static FORMATS: &[&FormatDef] = &[
    &affine::AFFINE4_G64_F32,
    &affine::AFFINE4_G64_F16,
    &affine::AFFINE4_G64_BF16,
    &affine::AFFINE8_G32_F32,
    &affine::AFFINE8_G32_F16,
    &affine::AFFINE8_G32_BF16,
    &mxfp4::MXFP4,
    &q4_0::Q4_0,
    &q8_0::Q8_0,
];
