//! How exact a product must be.

use crate::error::Error;

/// How exact a product must be: a permission, not an order. The planner uses it only if it makes a
/// kernel faster, on matrix units or on bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Precision {
    /// Sums in f32. Beside quantized weights an element of A may be taken as a whole number of 24
    /// bits; 32 elements along K share one power of two. An element is then off by at most 2⁻²³ of
    /// the largest magnitude of these 32, so that small elements beside large ones have fewer
    /// digits than in f32. Kernels for few rows do this beside codes that stand for small whole
    /// numbers: all formats but 8-bit floats, NF4, FP4, IQ4_NL and IQ4_XS. Others add up to 32
    /// elements of A, and their products with codes, before they multiply by scale and bias: there
    /// a small element beside large ones has fewer digits as well.
    ///
    /// Beside A in f16 or bf16, kernels on matrix units round quantized weights to f16, once; a
    /// weight beyond 65504 becomes infinite. They divide rows of A and columns of B in bf16 by
    /// powers of two: a number below 2⁻²⁹ of the largest number of its row or column is off by at
    /// most 2⁻³⁹ of that largest number.
    #[default]
    F32,
    /// Products of f32 by f32 may be computed on matrix units of f16, each number as the sum of two
    /// f16. The result is about as exact as in f32. The bound of
    /// [`SplitF32Fast`](Self::SplitF32Fast) holds. Besides, a matrix unit, which rounds toward
    /// zero, adds in chains of at most [`CHAIN`](Self::CHAIN) additions; the sums of the chains are
    /// added in f32.
    ///
    /// Errors of 16,384 elements on an H200, in u·Σ|ab| with u = 2⁻²⁴, and in parentheses those of
    /// the f32 kernel:
    ///
    /// | data | size | largest error | root of the mean square |
    /// |---|---|---|---|
    /// | normal | 4096³ | 2.2 (4.2) | 0.5 (0.5) |
    /// | normal | 8192³ | 1.7 (4.0) | 0.4 (0.5) |
    /// | spread over 2^±20 | 4096³ | 25 (32) | 6.0 (2.5) |
    /// | spread over 2^±20 | 8192³ | 26 (22) | 4.5 (2.5) |
    SplitF32,
    /// Like [`SplitF32`](Self::SplitF32), with chains of any length. The largest errors were 9.4
    /// u·Σ|ab| at 4096³ and 14 at 8192³ of normal data, 102 and 138 of data spread over 2^±20.
    ///
    /// A number in a row of A is off by at most 2⁻²³ of itself or, if that is more, 2⁻³⁸ of the
    /// largest number of its row. The same holds for a number in a column of B. Besides, a product
    /// a·b loses 2⁻²²·|ab|, and a sum rounds as a sum of three times as many products does. So the
    /// error is that of f32, measured by the norms of rows and columns. But if the large numbers of
    /// a row of A meet only zeros in a column of B, the small numbers make the sum, and they have
    /// few digits or none below 2⁻³⁸ of the largest: take [`F32`](Self::F32) for such products.
    /// Infinities and NaN among the operands have the same effect as in f32.
    SplitF32Fast,
    /// Elements of A may be taken as whole numbers of 16 bits beside quantized weights; 32 elements
    /// along K share one power of two. An element is then off by at most 1/32639, about 2⁻¹⁵, of
    /// the largest magnitude of these 32. So a product may lose this share of Σ largest·|b|, where
    /// f32 arithmetic loses shares of Σ|ab|: small elements beside large ones have few digits or
    /// none. Sums are f32; infinities and NaN among the operands have the same effect as in f32.
    /// Kernels for few rows use it beside the formats that [`F32`](Self::F32) names, if both
    /// operands are stored along K. All other products are computed as with `F32`.
    Int16Activations,
    /// Partial sums may be kept in f16 if A is f16 and B is f16 or quantized. This costs accuracy:
    /// each of the K additions may lose 2⁻¹¹ of a partial sum instead of 2⁻²⁴. It costs range: a
    /// partial sum beyond 65504 is infinite, whatever the type of C and however small alpha is.
    /// Splits of K are still added in f32, and the epilogue is computed in f32.
    F16Sums,
    /// Like [`Int16Activations`](Self::Int16Activations), but with whole numbers of 8 bits: an
    /// element is off by at most 1/127 of the largest magnitude of the 32.
    Int8Activations,
}

impl Precision {
    /// Every precision, the most exact first.
    pub const ALL: [Precision; 6] = [
        Precision::F32,
        Precision::SplitF32,
        Precision::SplitF32Fast,
        Precision::Int16Activations,
        Precision::F16Sums,
        Precision::Int8Activations,
    ];

    /// The most additions of one chain on a matrix unit with [`SplitF32`](Self::SplitF32). Each
    /// step along K takes three of them.
    #[doc(hidden)]
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
            Error::Misuse(format!("{text:?} is no precision; {names} are"))
        })
    }
}
