//! What the bindings of a shader hold.

/// What a binding holds. The discriminant is its number in group 0, the same in every shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Role {
    /// The uniform [`Params`](crate::Params).
    Params = 0,
    /// Elements of A.
    A = 1,
    /// Elements (or codes) of B.
    B = 2,
    /// The output.
    C = 3,
    /// The bias vector.
    Bias = 4,
    /// The residual matrix.
    Residual = 5,
    /// Cumulative ends of the groups, u32.
    Offsets = 6,
    /// Scales of a quantized B.
    BScales = 7,
    /// Biases of a quantized B.
    BBiases = 8,
    /// f32 partial sums between two passes.
    Scratch = 9,
    /// Operands copied to where wide loads fit them.
    Packed = 10,
}

impl Role {
    /// The binding number in group 0.
    pub const fn binding(self) -> u32 {
        self as u32
    }

    /// Lower-case name for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Params => "params",
            Role::A => "a",
            Role::B => "b",
            Role::C => "c",
            Role::Bias => "bias",
            Role::Residual => "residual",
            Role::Offsets => "offsets",
            Role::BScales => "b scales",
            Role::BBiases => "b biases",
            Role::Scratch => "scratch",
            Role::Packed => "packed",
        }
    }
}
