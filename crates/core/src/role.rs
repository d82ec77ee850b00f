//! The roles of a shader's bindings.

/// The contents of a binding. The discriminant is its number in group 0, the same in every shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Role {
    /// The uniform [`Params`](crate::Params).
    Params = 0,
    /// Elements of A.
    A = 1,
    /// Elements of B; of a quantized one, its first plane.
    B = 2,
    /// The output.
    C = 3,
    /// The bias vector.
    Bias = 4,
    /// The residual matrix.
    Residual = 5,
    /// Cumulative ends of the groups, u32.
    Offsets = 6,
    /// The second plane of a quantized B.
    BPlane1 = 7,
    /// The third plane of a quantized B.
    BPlane2 = 8,
    /// f32 partial sums between two passes.
    Scratch = 9,
    /// Operands copied to where wide loads fit them.
    Packed = 10,
    /// The fourth plane of a quantized B.
    BPlane3 = 11,
    /// Which rows of a table to take, or of a matrix to multiply, u32.
    RowIndex = 12,
    /// Which columns of a table to take, u32.
    ColumnIndex = 13,
    /// The status of a conversion, a word: 0 if nothing went wrong on the device.
    Status = 14,
    /// Powers of two that the rows of a packed A were divided by, as two factors in a word.
    APowers = 15,
    /// Powers of two that the columns of a packed B were divided by, in the form of `APowers`.
    BPowers = 16,
    /// A copy of A that was packed beforehand; bound as A and its powers.
    ACopy = 17,
    /// A copy of B that was packed beforehand; bound as B and its powers.
    BCopy = 18,
}

impl Role {
    /// Number of roles: of bindings that a pass may have.
    pub const COUNT: usize = Role::BCopy as usize + 1;

    /// The planes of B, in their order.
    pub const B_PLANES: [Role; 4] = [Role::B, Role::BPlane1, Role::BPlane2, Role::BPlane3];

    /// This role and those of the other planes of its operand; only B has any.
    pub fn planes(self) -> impl Iterator<Item = Role> {
        std::iter::once(self)
            .chain(if self == Role::B { &Role::B_PLANES[1..] } else { &[] }.iter().copied())
    }

    /// The powers that belong to a packed A or B.
    pub(crate) fn powers(self) -> Role {
        if self == Role::A { Role::APowers } else { Role::BPowers }
    }

    /// Where a copy of A or B lies that was packed beforehand.
    pub fn copy(self) -> Role {
        if self == Role::A { Role::ACopy } else { Role::BCopy }
    }

    /// Which plane of B it is; 0 for any other operand.
    pub fn plane(self) -> usize {
        Role::B_PLANES.iter().position(|role| *role == self).unwrap_or(0)
    }

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
            Role::BPlane1 => "b plane 1",
            Role::BPlane2 => "b plane 2",
            Role::BPlane3 => "b plane 3",
            Role::Scratch => "scratch",
            Role::Packed => "packed",
            Role::RowIndex => "row indices",
            Role::ColumnIndex => "column indices",
            Role::Status => "status",
            Role::APowers => "a powers",
            Role::BPowers => "b powers",
            Role::ACopy => "a's copy",
            Role::BCopy => "b's copy",
        }
    }
}

/// The roles of the buffers that a pass binds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Roles(u32);

impl Roles {
    pub(crate) const fn of(role: Role) -> Self {
        Roles(1 << role as u32)
    }

    pub(crate) const fn count(self) -> u32 {
        self.0.count_ones()
    }
}

impl std::ops::BitOr for Roles {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Roles(self.0 | other.0)
    }
}

impl FromIterator<Role> for Roles {
    fn from_iter<I: IntoIterator<Item = Role>>(roles: I) -> Self {
        roles.into_iter().fold(Roles(0), |all, role| all | Roles::of(role))
    }
}
