//! How long a kernel is expected to take. A [`Model`] stands in the table line of each variant,
//! [`seconds`] evaluates it with the rates of a device ([`Caps::rates`]).
//!
//! Estimates order the candidates and promise nothing. The numbers here and in the tables were
//! fitted to measurements on an H200 (benches/record/NOTES.md), unless they say otherwise.

mod bytes;
mod few;
mod tiles;

pub use few::BY_HAND;
pub use tiles::{AppleShares, Shares, staged};

use crate::caps::Caps;
use crate::kernel::Variant;
use crate::problem::Problem;

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
        /// [`Shares::passed`] on chips of the late generation and after it.
        late_passed: f64,
        /// A step along K whose matrices do not lie whole in memory takes so many times as long.
        partial: f64,
    },
    /// Few rows against bytes of codes: bound by reading them once, or by arithmetic.
    Bytes {
        /// Share of the memory's bandwidth.
        bandwidth: f64,
        /// Seconds that a workgroup takes before and after its weights.
        start: f64,
        /// Seconds from a load of weights to their sums.
        step: f64,
        /// Operations of a weight.
        work: Work,
    },
    /// Few rows or columns of C: bound by reading the larger operand once.
    Few {
        /// Factor on the modelled time: 1, or [`BY_HAND`].
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
    /// Share of the time in which others decode it.
    pub decoded: f64,
}

/// Estimated seconds of one pass over K in `splits` parts, dispatch included. Decoding a weight takes as
/// long as `decode` operations in f32.
pub fn seconds(problem: &Problem, caps: &Caps, variant: &Variant, splits: u64, decode: f64) -> f64 {
    let multiplied = match variant.model {
        Model::Tiles(shares) => tiles::seconds(problem, caps, variant, splits, shares.on(caps)),
        Model::AppleTiles { shares, late_passed, partial } => {
            let shares = shares.on(problem, caps, variant, late_passed);
            let arithmetic = shares.arithmetic / tiles::partial_steps(problem, partial);
            tiles::seconds(problem, caps, variant, splits, Shares { arithmetic, ..shares })
        }
        Model::Bytes { .. } => return bytes::seconds(problem, caps, variant, decode),
        Model::Few { time } => time * few::seconds(problem, caps, variant, splits),
    };
    multiplied + decoding(problem, caps, variant, decode)
}

/// Estimated seconds in which tiles decode weights: all of them, for each row of tiles.
pub(crate) fn decoding(problem: &Problem, caps: &Caps, variant: &Variant, decode: f64) -> f64 {
    let rates = caps.rates();
    let weights = tiles(problem, variant) * f64::from(variant.bn) * problem.k as f64;
    weights * decode / (rates.cores * rates.core_flops)
}

/// Tiles of C, as far as can be known.
fn tiles(problem: &Problem, variant: &Variant) -> f64 {
    let columns = problem.n.div_ceil(u64::from(variant.bn)) as f64;
    problem.grouping.expected_tiles_m(problem.m, problem.batch, variant.bm.into()) * columns
}

/// Bytes of A and B, each once.
fn operand_bytes(problem: &Problem) -> [f64; 2] {
    let [m, n, k] = [problem.m, problem.n, problem.k].map(|size| size as f64);
    let a = m * k * problem.batch as f64 * problem.a.format.element_bytes();
    let b = k * n * problem.entries() as f64 * problem.b.format.element_bytes();
    [a, b]
}
