//! The types of tensors in GGUF: a table of ggml's.

use super::recode::Recoding;
use crate::raw::Element;
use std::borrow::Cow;
use tilewise_core::{DType, QuantFormat};

/// A type by its number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Type(pub(super) u32);

/// Number, name, elements of a block and its bytes. With 0 elements, no file has the type.
#[rustfmt::skip]
pub(super) const TYPES: &[(u32, &str, u64, u64)] = &[
    (0, "F32", 1, 4),
    (1, "F16", 1, 2),
    (2, "Q4_0", 32, 18),
    (3, "Q4_1", 32, 20),
    (4, "Q4_2", 0, 0),
    (5, "Q4_3", 0, 0),
    (6, "Q5_0", 32, 22),
    (7, "Q5_1", 32, 24),
    (8, "Q8_0", 32, 34),
    (9, "Q8_1", 0, 0),
    (10, "Q2_K", 256, 84),
    (11, "Q3_K", 256, 110),
    (12, "Q4_K", 256, 144),
    (13, "Q5_K", 256, 176),
    (14, "Q6_K", 256, 210),
    (15, "Q8_K", 0, 0),
    (16, "IQ2_XXS", 256, 66),
    (17, "IQ2_XS", 256, 74),
    (18, "IQ3_XXS", 256, 98),
    (19, "IQ1_S", 256, 50),
    (20, "IQ4_NL", 32, 18),
    (21, "IQ3_S", 256, 110),
    (22, "IQ2_S", 256, 82),
    (23, "IQ4_XS", 256, 136),
    (24, "I8", 1, 1),
    (25, "I16", 1, 2),
    (26, "I32", 1, 4),
    (27, "I64", 1, 8),
    (28, "F64", 1, 8),
    (29, "IQ1_M", 256, 56),
    (30, "BF16", 1, 2),
    (31, "Q4_0_4_4", 0, 0),
    (32, "Q4_0_4_8", 0, 0),
    (33, "Q4_0_8_8", 0, 0),
    (34, "TQ1_0", 256, 54),
    (35, "TQ2_0", 256, 66),
    (39, "MXFP4", 32, 17),
    (40, "NVFP4", 64, 36),
    (41, "Q1_0", 128, 18),
    (42, "Q2_0", 64, 18),
];

/// The names of all types that are read.
pub(crate) fn read() -> Vec<&'static str> {
    let is_read =
        |row: &&(u32, &str, u64, u64)| !matches!(Type(row.0).element(), Element::Other(_));
    TYPES.iter().filter(is_read).map(|row| row.1).collect()
}

/// Whether the size of the blocks of a type is known, by its name.
pub(crate) fn is_sized(name: &str) -> bool {
    TYPES.iter().any(|row| row.1 == name && row.2 > 0)
}

impl Type {
    fn row(self) -> Option<&'static (u32, &'static str, u64, u64)> {
        TYPES.iter().find(|row| row.0 == self.0)
    }

    pub(super) fn name(self) -> Cow<'static, str> {
        self.row().map_or_else(|| format!("type {}", self.0).into(), |row| row.1.into())
    }

    /// Elements of a block and its bytes, if they are known.
    pub(super) fn block(self) -> Option<(u64, u64)> {
        self.row().filter(|row| row.2 > 0).map(|row| (row.2, row.3))
    }

    pub(super) fn element(self) -> Element {
        let dtype = match self.0 {
            0 => Some(DType::F32),
            1 => Some(DType::F16),
            26 => Some(DType::I32),
            30 => Some(DType::BF16),
            _ => None,
        };
        let blocks = || QuantFormat::from_gguf(self.0).map(Element::Blocks);
        let recoded = || self.row().and_then(Recoding::of).map(Element::Recoded);
        let element = dtype.map(Element::Dense).or_else(blocks).or_else(recoded);
        element.unwrap_or_else(|| Element::Other(self.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_those_of_the_formats() {
        let mut seen = 0;
        for format in QuantFormat::all() {
            let Some(number) = format.gguf() else { continue };
            assert_eq!(
                Type(number).block(),
                Some((format.block(), format.block_bytes())),
                "{format}"
            );
            assert_eq!(Type(number).element(), Element::Blocks(format));
            seen += 1;
        }
        assert_eq!(seen, 13);
        assert_eq!(Type(77).name(), "type 77");
    }
}
