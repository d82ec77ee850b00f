//! Shaders that convert, take and quantize elements.

use super::{Constant, Kit};

/// The shaders that convert, take and quantize elements, in one language.
#[derive(Clone, Copy)]
pub struct Conversions {
    /// The files that these passes share with products.
    pub kit: &'static Kit,
    /// The loader of dense elements that gives their bits.
    pub exact: &'static str,
    /// The file instantiated beside loaders of quantized elements that gives their bits.
    pub decoded: &'static str,
    /// The file instantiated for rows or columns that an index names.
    pub index: &'static str,
    /// The output, rounded by integers.
    pub put: &'static str,
    /// The mainloop that takes.
    pub take: &'static str,
    /// The mainloop that copies whole rows in blocks of 16 bytes.
    pub take_rows: &'static str,
    /// The mainloop that quantizes.
    pub quantize: &'static str,
    /// The formats that are quantized to.
    pub encoders: &'static [EncoderDef],
}

/// How weights are quantized to a family of formats: one file.
#[derive(Clone, Copy)]
pub struct EncoderDef {
    /// Its file.
    pub file: &'static str,
    /// Whether it makes this format.
    pub serves: fn(crate::QuantFormat) -> bool,
    /// Planes of numbers that belong to a block, such as scales: one or two, of the same size.
    pub numbers: &'static [usize],
    /// The plane of codes, one bit string after the other.
    pub codes: usize,
    /// Values for the file's constants, given the format.
    pub constants: fn(crate::QuantFormat) -> Vec<Constant>,
}
