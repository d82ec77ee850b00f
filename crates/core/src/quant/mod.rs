//! Quantized formats as data: [`FAMILIES`] lists a [`FormatDef`] for each; a file per family
//! defines their numbers. `Quantized` is a matrix of any of them.

pub mod affine;
mod bits;
mod format;
pub mod gguf;
pub mod k_quants;
mod matrix;
pub mod mx;
mod power;
pub mod scaled;
#[cfg(test)]
mod tests;

pub use format::{Codec, Encoder, FormatDef, Plane, QuantFormat, Stored, nearest};
pub use matrix::{Quantized, dequantize, quantize, quantize_to};

/// Every format.
pub static FAMILIES: &[&[FormatDef]] =
    &[affine::FORMATS, mx::FORMATS, gguf::FORMATS, k_quants::FORMATS, scaled::FORMATS];
