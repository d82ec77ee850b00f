//! How long a kernel is expected to take. A [`Model`] stands in the table line of each variant,
//! [`seconds`] evaluates it with the rates of a device ([`Caps::rates`]).
//!
//! Estimates order the candidates and promise nothing. The numbers here and in the tables were
//! fitted to measurements on an H200 (benches/record/NOTES.md), unless they say otherwise.

mod few;
mod tiles;

pub use few::BY_HAND;
pub use tiles::{AppleShares, Shares};

use crate::caps::Caps;
use crate::kernel::Variant;
use crate::problem::{Format, Grouping, Problem};

/// The cost model of a variant, with the numbers that belong to that variant alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Model {
    /// Tiles of C: bound by arithmetic, by the way of the operands to it, or by memory.
    Tiles(Shares),
    /// The same on simdgroup matrices, written for Apple's chips: the share of the peak depends on
    /// the chip.
    AppleTiles {
        /// Shares of the peak.
        shares: AppleShares,
        /// [`Shares::passed`] on chips of the late generation.
        late_passed: f64,
    },
    /// Few rows or columns of C: bound by reading the larger operand once.
    Few {
        /// Factor on the modelled time: 1, or [`BY_HAND`].
        time: f64,
    },
}

/// Estimated seconds of one pass over K in `splits` parts, dispatch included.
pub fn seconds(problem: &Problem, caps: &Caps, variant: &Variant, splits: u64) -> f64 {
    match variant.model {
        Model::Tiles(shares) => tiles::seconds(problem, caps, variant, splits, shares.on(caps)),
        Model::AppleTiles { shares, late_passed } => {
            tiles::seconds(problem, caps, variant, splits, shares.on(problem, caps, late_passed))
        }
        Model::Few { time } => time * few::seconds(problem, caps, variant, splits),
    }
}

/// Tiles of C. In a grouped product each group may end in a tile that is not full: half a tile more
/// per group, on average.
fn tiles(problem: &Problem, variant: &Variant) -> f64 {
    let rows = problem.m.div_ceil(u64::from(variant.bm)) as f64;
    let columns = problem.n.div_ceil(u64::from(variant.bn)) as f64;
    match problem.grouping {
        Grouping::Batched => rows * columns * problem.batch as f64,
        Grouping::RaggedM { groups } => (rows + 0.5 * groups as f64) * columns,
    }
}

/// Bytes of A and B, each once.
fn operand_bytes(problem: &Problem) -> [f64; 2] {
    let [m, n, k] = [problem.m, problem.n, problem.k].map(|size| size as f64);
    let a = m * k * problem.batch as f64 * element_bytes(problem.a.format);
    let b = k * n * problem.entries() as f64 * element_bytes(problem.b.format);
    [a, b]
}

/// Bytes per element, scales and biases included.
fn element_bytes(format: Format) -> f64 {
    match format {
        Format::Dense(dtype) => dtype.bytes() as f64,
        Format::Quantized(format, scales) => {
            format.bits() as f64 / 8.0 + 2.0 * scales.bytes() as f64 / format.group_size() as f64
        }
    }
}
