//! Types of elements.

/// Type of a stored dense element. Products take the floating-point types. Their sums are f32, or
/// f16 if [`Precision::F16Sums`](crate::problem::Precision::F16Sums) permits it. Integers are
/// for indices and custom kernels.
///
/// The enum is closed, so that your `match` on a type covers all of them; a new type is a breaking
/// change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16: the upper half of a binary32.
    BF16,
    /// Signed 32-bit integer.
    I32,
    /// Unsigned 32-bit integer.
    U32,
}

impl DType {
    /// The types of floating point, which products take, in the order of their declaration.
    pub const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

    /// Whether it is one of [`DType::FLOATS`].
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F16 | DType::BF16)
    }

    /// Size of one element in bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F16 | DType::BF16 => 2,
        }
    }

    /// The number of a floating-point type in the constants of kernels.
    #[doc(hidden)]
    pub const fn number(self) -> u32 {
        match self {
            DType::F16 => 1,
            DType::BF16 => 2,
            _ => 0,
        }
    }

    /// Lower-case name, as the command line and the recorded figures write it: `f32`, `f16`,
    /// `bf16`, `i32`, `u32`.
    pub const fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::I32 => "i32",
            DType::U32 => "u32",
        }
    }

    /// Half the distance from 1 to the next number: the relative error of one rounding to this
    /// type. 0 for integers, where it has no meaning.
    pub const fn unit_roundoff(self) -> f64 {
        match self {
            DType::F32 => 1.0 / (1u64 << 24) as f64,
            DType::F16 => 1.0 / (1u64 << 11) as f64,
            DType::BF16 => 1.0 / (1u64 << 8) as f64,
            DType::I32 | DType::U32 => 0.0,
        }
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
