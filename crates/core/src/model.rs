//! The expected cost of a variant, as data in its table line. [`cost`](crate::cost) evaluates
//! it.

/// The cost model of a variant, with the numbers that belong to that variant alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Model {
    /// Tiles of C: bound by arithmetic, by the way of the operands to it, or by memory.
    Tiles(Shares),
    /// Like [`Tiles`](Self::Tiles), on simdgroup matrices of Apple's chips: the share of the peak
    /// depends on the chip.
    AppleTiles {
        /// Shares of the peak.
        shares: AppleShares,
        /// [`Shares::passed`] on chips of the late generation and after it.
        late_passed: f64,
        /// How many times as long a step along K takes whose matrices do not lie whole in memory.
        partial: f64,
    },
    /// Few rows against bytes of codes: bound by reading them once, by arithmetic, or by the steps
    /// of a workgroup.
    Bytes {
        /// Share of the memory's bandwidth.
        bandwidth: f64,
        /// Seconds that a workgroup takes before and after its weights.
        start: f64,
        /// Seconds from a load of weights to their sums.
        step: f64,
        /// Steps along K of an invocation whose loads are under way together. If a core has several
        /// workgroups, more steps slow down reading by the square root of their number.
        together: f64,
        /// Factor on `bandwidth` if an invocation loads its first codes before it converts A. The
        /// start is shorter then; this was fitted together with the rest.
        early: f64,
        /// Operations of a weight.
        work: Work,
    },
    /// Few rows or columns of C: bound by reading the larger operand once.
    Few {
        /// Factor on the modelled time: 1, or [`BY_HAND`](crate::cost::BY_HAND).
        time: f64,
    },
}

/// Operations of a weight that is multiplied with few rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Products of four bytes by four, for each row and each byte of an element of A.
    pub products: f64,
    /// Floating-point operations, for each row.
    pub row: f64,
    /// Share of the operations of decoding a weight ([`decode`](crate::kernel::OperandDef::decode))
    /// that it takes.
    pub decoded: f64,
}

/// How much of a device a tiled mainloop uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// Share of a core's f32 operations in a whole tile. It is above 1 on matrix units.
    pub arithmetic: f64,
    /// Whether the sums need more registers than chips that share the host's memory have.
    pub spills: bool,
    /// Invocations resident on a core that hide its latencies.
    pub resident: f64,
    /// With fewer workgroups than hide its latencies, a core keeps their share of its speed to this
    /// power.
    pub latency: f64,
    /// Share of the memory's bandwidth.
    pub bandwidth: f64,
    /// Steps along K that take as long as starting and storing a tile.
    pub start: f64,
    /// Bytes per element on its way through caches and workgroup memory.
    pub passed: f64,
    /// Share of a whole tile's time that a tile of a group takes with one row, if weights need no
    /// decoding. It is 1 for variants that save nothing with fewer rows.
    pub least: f64,
    /// Operations of decoding a weight that take no time beside those of the tile, unless it waits
    /// for codes.
    pub decoded: f64,
}

/// Shares of the f32 peak that tiles of simdgroup matrices reach on Apple's chips. None was
/// measured here: they follow MLX's choice of tiles by chip, type and layout. The best is 76%, as
/// published of MLX on the M2 Ultra and of metal-flash-attention on the M1 Max.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AppleShares {
    /// On small chips of the early generation, with matrices of f32.
    pub f32: f64,
    /// On those chips, with matrices of 16-bit elements.
    pub half: f64,
    /// On those chips, if A and B are both stored along K.
    pub along_k: f64,
    /// On large chips of the early generation.
    pub large: f64,
    /// On the late generation, and after it.
    pub late: f64,
}
