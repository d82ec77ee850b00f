//! How exact a product must be.

use crate::error::Error;

/// How exact a product must be: a permission, not an order. The planner makes use of it where a
/// kernel has a faster way for it, on matrix units or on bytes, and nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Precision {
    /// Sums in f32. Beside quantized weights an element of A may be taken as a whole number of 24
    /// bits, 32 along K under one power of two: it is then off by at most 2⁻²³ of the largest
    /// magnitude of its 32, so that small elements beside large ones have fewer digits than in f32.
    /// Kernels for one or two rows beside weights of 4 and 8 bits do so. Kernels on matrix units
    /// round quantized weights to f16, once, beside A in f16 or bf16; a weight beyond 65504 is
    /// infinite there. They divide lines of bf16 by powers of two: a number below 2⁻²⁹ of the
    /// largest of its row of A, or column of B, is off by at most 2⁻³⁹ of that.
    #[default]
    F32,
    /// Products of f32 by f32 may be computed on matrix units of f16, each number as the sum of two
    /// f16, about as exactly as in f32: with the bound of [`SplitF32Fast`](Self::SplitF32Fast), and
    /// in chains of at most [`CHAIN`](Self::CHAIN) additions on the matrix unit, which rounds
    /// toward zero; their sums are added in f32. On an H200 the largest error of 16,384 elements,
    /// in u·Σ|ab| with u = 2⁻²⁴, was 2.2 at 4096³ and 1.7 at 8192³ of normal data, where the f32
    /// kernel had 4.2 and 4.0; and 25 and 26 of data spread over 2^±20, where that had 32 and 22.
    /// The roots of the mean squares were 0.5 and 0.4 beside 0.5 and 0.5, and 6.0 and 4.5 beside
    /// 2.5 and 2.5.
    SplitF32,
    /// The same in chains as long as the planner likes: 9.4 u·Σ|ab| at 4096³ and 14 at 8192³ of
    /// normal data, 102 and 138 of data spread over 2^±20.
    ///
    /// A number of a row of A is off by at most 2⁻²³ of itself or, where that is more, 2⁻³⁸ of the
    /// largest number of its row; so is a number of a column of B. A product a·b loses 2⁻²²·|ab|
    /// besides, and the sums round as sums of three times as many products do. So the error is that
    /// of f32 by the norms of rows and columns. Where the large numbers of a row meet nothing but
    /// zeros in a column, its small ones make the sum, and have few digits or none below 2⁻³⁸ of
    /// the largest: such products want [`F32`](Self::F32). Infinities and NaN among the operands go
    /// where f32 takes them.
    SplitF32Fast,
    /// Elements of A may be taken as whole numbers of 16 bits beside quantized weights, 32 along K
    /// under one power of two. An element is then off by at most 1/32639 of the largest magnitude
    /// of its 32, about 2⁻¹⁵, so that a product may lose as much of Σ largest·|b|, where f32
    /// arithmetic loses shares of Σ|ab|: small elements beside large ones have few digits or none.
    /// Sums are f32 as ever; infinities and NaN among the operands go where f32 takes them. Kernels
    /// for few rows beside weights of 4 and 8 bits that are stored along K use it. All other
    /// products are computed as with [`F32`](Self::F32).
    Int16Activations,
    /// Partial sums may be kept in f16 where A is f16 and B is f16 or quantized. It costs accuracy,
    /// 2⁻¹¹ of a partial sum with each of the K additions instead of 2⁻²⁴, and range: a partial sum
    /// beyond 65504 is infinite, whatever the type of C and however small alpha is. Splits of
    /// K are added in f32, and the epilogue is computed in f32, as ever.
    F16Sums,
    /// As [`Int16Activations`](Self::Int16Activations), but whole numbers of 8 bits: an element is
    /// off by at most 1/127 of the largest magnitude of its 32.
    Int8Activations,
}

impl Precision {
    /// All of them, the most exact first.
    pub const ALL: [Precision; 6] = [
        Precision::F32,
        Precision::SplitF32,
        Precision::SplitF32Fast,
        Precision::Int16Activations,
        Precision::F16Sums,
        Precision::Int8Activations,
    ];

    /// Additions that a matrix unit may do in a chain with [`SplitF32`](Self::SplitF32), of which
    /// three are for each step along K.
    pub const CHAIN: u64 = 1024;

    /// Lower-case name, as the command line writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Precision::F32 => "f32",
            Precision::SplitF32 => "split-f32",
            Precision::SplitF32Fast => "split-f32-fast",
            Precision::Int16Activations => "int16-activations",
            Precision::F16Sums => "f16-sums",
            Precision::Int8Activations => "int8-activations",
        }
    }
}

impl std::fmt::Display for Precision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl std::str::FromStr for Precision {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let named = Precision::ALL.into_iter().find(|precision| precision.name() == text);
        named.ok_or_else(|| {
            let names = Precision::ALL.map(Precision::name).join(", ");
            Error::InvalidValue(format!("{text:?} is no precision; {names} are"))
        })
    }
}
