//! Scalar types, and the functions of scalars that operations apply.

/// The type of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ty {
    Bool,
    I16,
    U16,
    F16,
    I32,
    U32,
    F32,
    I64,
    U64,
    F64,
}

impl Ty {
    pub(crate) fn is_wide(self) -> bool {
        matches!(self, Ty::I64 | Ty::U64 | Ty::F64)
    }

    pub(crate) fn is_float(self) -> bool {
        matches!(self, Ty::F16 | Ty::F32 | Ty::F64)
    }

    pub(crate) fn is_signed(self) -> bool {
        matches!(self, Ty::I16 | Ty::I32 | Ty::I64)
    }

    /// Registers of a value.
    pub(crate) fn planes(self) -> u32 {
        1 + u32::from(self.is_wide())
    }

    /// Bytes in memory.
    pub(crate) fn bytes(self) -> u32 {
        match self {
            Ty::Bool => 1,
            Ty::I16 | Ty::U16 | Ty::F16 => 2,
            Ty::I32 | Ty::U32 | Ty::F32 => 4,
            Ty::I64 | Ty::U64 | Ty::F64 => 8,
        }
    }

    pub(crate) fn bits(self) -> u32 {
        8 * self.bytes()
    }
}

/// Functions of one scalar. Unless a comment says otherwise, the result has the type of the
/// argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    /// Wrapping for integers, the sign bit for floats.
    Negate,
    /// Takes a bool.
    LogicalNot,
    BitwiseNot,
    /// The least integer gives itself.
    Abs,
    /// NaN gives 0.
    Sign,
    Ceil,
    Floor,
    /// Halves to even.
    Round,
    Trunc,
    /// x - floor(x).
    Fract,
    /// NaN gives 0.
    Saturate,
    Sqrt,
    InverseSqrt,
    Exp,
    Exp2,
    Log,
    Log2,
    Sin,
    Cos,
    Tan,
    Sinh,
    Cosh,
    Tanh,
    Asin,
    Acos,
    Atan,
    Asinh,
    Acosh,
    Atanh,
    Radians,
    Degrees,
    QuantizeToF16,
    CountOneBits,
    CountLeadingZeros,
    CountTrailingZeros,
    ReverseBits,
    /// Like WGSL's: -1 if there is no such bit; for signed types the sign bit does not count.
    FirstLeadingBit,
    FirstTrailingBit,
    /// The result is a bool.
    IsNan,
    /// The result is a bool.
    IsInf,
    /// Fraction of `frexp` of a float, in [0.5, 1) or 0.
    FrexpFraction,
    /// Exponent of `frexp` of a float, as i32.
    FrexpExponent,
}

/// Functions of two scalars of one type. Results have that type, except those of comparisons
/// (bool).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Subtract,
    Multiply,
    /// For integers x / 0 = x and MIN / -1 = MIN, as in WGSL.
    Divide,
    /// x - y * trunc(x / y). For floats every step is rounded, as on devices. For integers x % 0 =
    /// 0 and MIN % -1 = 0.
    Modulo,
    And,
    Or,
    Xor,
    /// The second scalar is u32 for every type, and is taken modulo the width.
    ShiftLeft,
    /// Arithmetic for signed types.
    ShiftRight,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    /// If one of two floats is NaN, the result is the other.
    Min,
    Max,
    /// NaN for a negative base, as with exp2(y * log2(x)).
    Pow,
    Atan2,
    /// Step(edge, x).
    Step,
    /// The second scalar is i32.
    Ldexp,
}

impl Binary {
    /// Whether the result is a bool.
    pub(crate) fn compares(self) -> bool {
        matches!(
            self,
            Binary::Equal
                | Binary::NotEqual
                | Binary::Less
                | Binary::LessEqual
                | Binary::Greater
                | Binary::GreaterEqual
        )
    }
}

/// Functions of three scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ternary {
    /// a * b + c with one rounding.
    Fma,
    /// min(max(x, low), high).
    Clamp,
    /// x * (1 - t) + y * t.
    Mix,
    /// SmoothStep(low, high, x).
    SmoothStep,
    /// Select(reject, accept, condition as bool).
    Select,
    /// ExtractBits(x, offset: u32, count: u32), sign-extended for signed types. Offset and count
    /// are clamped as in WGSL.
    ExtractBits,
}

/// Packing and unpacking; see WGSL's functions of these names. Sources and results are lists of
/// registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// 4 × f32 to u32.
    Pack4x8snorm,
    Pack4x8unorm,
    /// 2 × f32 to u32.
    Pack2x16snorm,
    Pack2x16unorm,
    Pack2x16float,
    /// 4 × i32 to u32.
    Pack4xI8,
    /// 4 × u32 to u32.
    Pack4xU8,
    Pack4xI8Clamp,
    Pack4xU8Clamp,
    /// u32 to 4 × f32.
    Unpack4x8snorm,
    Unpack4x8unorm,
    /// u32 to 2 × f32.
    Unpack2x16snorm,
    Unpack2x16unorm,
    Unpack2x16float,
    /// u32 to 4 × i32.
    Unpack4xI8,
    /// u32 to 4 × u32.
    Unpack4xU8,
    /// 2 × u32 to i32.
    Dot4I8,
    /// 2 × u32 to u32.
    Dot4U8,
}
