//! Quantized storage formats: their names and sizes here, the arithmetic of each in a file of its own.
//!
//! A later format is one new variant of [`QuantFormat`] and one new file beside [`affine`].

use crate::error::{Error, Result};

pub mod affine;

pub use affine::{Quantized, dequantize, quantize};

/// A way of storing weights in a few bits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QuantFormat {
    /// w ≈ scale · code + bias, one scale and one bias per group of elements along K: the convention of MLX. See [`affine`].
    Affine {
        /// Bits per code.
        bits: u8,
        /// Elements that share a scale and a bias.
        group_size: u16,
    },
}

impl QuantFormat {
    /// Four bits, groups of 64: the affine format that is implemented.
    pub const AFFINE4_G64: QuantFormat = QuantFormat::Affine { bits: 4, group_size: 64 };

    /// Bits per code.
    pub const fn bits(self) -> u64 {
        match self {
            QuantFormat::Affine { bits, .. } => bits as u64,
        }
    }

    /// Elements along K that share a scale and a bias. K must be a multiple of it.
    pub const fn group_size(self) -> u64 {
        match self {
            QuantFormat::Affine { group_size, .. } => group_size as u64,
        }
    }

    /// `Error::Unsupported` unless this combination of numbers is implemented.
    pub fn supported(self) -> Result<()> {
        if self == Self::AFFINE4_G64 {
            return Ok(());
        }
        let QuantFormat::Affine { bits, group_size } = self;
        Err(Error::Unsupported(format!(
            "affine codes of {bits} bits in groups of {group_size}; only 4 bits in groups of 64"
        )))
    }

    /// u32 words that the codes of a matrix `[n, k]` take, rows one after the other.
    ///
    /// Errors: `Unsupported` for a combination that is not implemented, `Shape` when the group size does not divide k,
    /// `Overflow` when the count does not fit.
    pub fn code_words(self, n: u64, k: u64) -> Result<u64> {
        let elements = self.elements(n, k)?;
        // A group fills whole words in every implemented format, so a row never ends inside a word.
        Ok(elements / (u32::BITS as u64 / self.bits()))
    }

    /// Groups in a matrix `[n, k]`: the length of the scales, and of the biases. Errors as for [`code_words`](Self::code_words).
    pub fn groups(self, n: u64, k: u64) -> Result<u64> {
        Ok(self.elements(n, k)? / self.group_size())
    }

    fn elements(self, n: u64, k: u64) -> Result<u64> {
        self.supported()?;
        let group_size = self.group_size();
        if !k.is_multiple_of(group_size) {
            return Err(Error::Shape(format!("K = {k} is not a multiple of the group size {group_size} of {self}")));
        }
        n.checked_mul(k).ok_or_else(|| Error::Overflow(format!("a {self} matrix of {n} by {k} elements")))
    }
}

impl std::fmt::Display for QuantFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            QuantFormat::Affine { bits, group_size } => f.pad(&format!("affine-{bits}bit-g{group_size}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sizes() {
        let format = QuantFormat::AFFINE4_G64;
        assert_eq!(format.to_string(), "affine-4bit-g64");
        assert_eq!((format.bits(), format.group_size()), (4, 64));
        assert_eq!((format.code_words(3, 128), format.groups(3, 128)), (Ok(48), Ok(6)));
        assert!(matches!(format.code_words(u64::MAX, 64), Err(Error::Overflow(_))));
    }

    #[test]
    fn other_numbers_are_not_supported_yet() {
        for (bits, group_size) in [(3, 64), (4, 32), (8, 128), (0, 0)] {
            let format = QuantFormat::Affine { bits, group_size };
            assert!(
                matches!(format.code_words(1, 128), Err(Error::Unsupported(text)) if text.contains(&group_size.to_string()))
            );
        }
    }
}
