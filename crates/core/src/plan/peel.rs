//! Peeling: a product a few rows or columns larger than a whole number of tiles is planned as its tiles and its edges.
//!
//! One row too many costs a whole row of tiles, and on a full device often a whole wave: 4097³ ran at 74% of the rate of 4096³. The edges are
//! products with few rows or columns, which other kernels do in the time it takes to read an operand once.

use super::ranges::Piece;
use super::{Candidate, best, candidates};
use crate::caps::Caps;
use crate::kernel::{Library, Variant};
use crate::problem::{Grouping, Problem};

/// Rows or columns that make an edge rather than most of a tile.
const MAX_EDGE: u64 = 8;

/// A part of a product with the candidate chosen for it.
pub(super) struct Peeled {
    pub(super) piece: Piece,
    pub(super) candidate: Candidate,
    pub(super) cost: f64,
}

/// The tiles and edges of a product whose best single kernel is `variant`, when together they are cheaper than `cost`.
pub(super) fn peel(
    problem: &Problem,
    caps: &Caps,
    library: &Library,
    variant: &Variant,
    cost: f64,
) -> Option<Vec<Peeled>> {
    let whole = |size: u64, tile: u32| match size % u64::from(tile) {
        rest @ 1..=MAX_EDGE if size > u64::from(tile) => size - rest,
        _ => size,
    };
    let (m, n) = (whole(problem.m, variant.bm), whole(problem.n, variant.bn));
    if problem.grouping != Grouping::Batched || (m, n) == (problem.m, problem.n) {
        return None;
    }
    let mut parts = Vec::new();
    for (rows, cols) in [(0..m, 0..n), (m..problem.m, 0..n), (0..problem.m, n..problem.n)] {
        if rows.is_empty() || cols.is_empty() {
            continue;
        }
        let piece = Piece::whole(&problem.part(rows, cols));
        let (candidate, cost) = best(&candidates(&piece, caps, library, None))?;
        parts.push(Peeled { piece, candidate, cost });
    }
    let total: f64 = parts.iter().map(|part| part.cost).sum();
    (total < cost).then_some(parts)
}
