//! Peeling: a product a few rows or columns larger than a whole number of tiles is planned as its
//! tiles and its edges.
//!
//! One row too many costs a whole row of tiles, and on a full device often a whole wave: 4097³ ran
//! at 74% of the rate of 4096³. The edges are products with few rows or columns, which other
//! kernels do in the time it takes to read an operand once.

use super::candidates::{Candidate, Candidates};
use super::piece::Piece;
use crate::caps::Caps;
use crate::kernel::Library;
use crate::problem::{Dimension, Problem, Traits};

/// Rows or columns that make an edge rather than most of a tile.
const MAX_EDGE: u64 = 8;

/// The tiles and edges of a product whose best single kernel is given, if together they are
/// cheaper.
pub(super) fn peel(best: &Candidate, caps: &Caps, library: &Library) -> Option<Vec<Candidate>> {
    let Candidate { piece: Piece { problem, .. }, variant, .. } = best;
    let whole = |size: u64, tile: u32| match size % u64::from(tile) {
        rest @ 1..=MAX_EDGE if size > u64::from(tile) => size - rest,
        _ => size,
    };
    let (m, n) = (whole(problem.m, variant.bm), whole(problem.n, variant.bn));
    let Traits { groups, pieces: cuts, .. } = problem.grouping.traits();
    if groups.is_some() || ![Dimension::M, Dimension::N].iter().all(|cut| cuts.contains(cut)) {
        return None;
    }
    // The last wave of tiles may have room for an edge, so each edge is also left with them.
    let mut ways = vec![(m, n), (m, problem.n), (problem.m, n)];
    ways.retain(|way| *way != (problem.m, problem.n));
    ways.dedup();
    let peeled = ways.into_iter().filter_map(|(m, n)| pieces(problem, caps, library, m, n));
    let total = |pieces: &[Candidate]| pieces.iter().map(Candidate::weight).sum::<f64>();
    peeled
        .min_by(|a, b| total(a).total_cmp(&total(b)))
        .filter(|pieces| total(pieces) < best.weight())
}

/// The first `m` rows and `n` columns of a product, and what is left.
fn pieces(
    problem: &Problem,
    caps: &Caps,
    library: &Library,
    m: u64,
    n: u64,
) -> Option<Vec<Candidate>> {
    let mut pieces = Vec::new();
    for (rows, cols) in [(0..m, 0..n), (m..problem.m, 0..n), (0..problem.m, n..problem.n)] {
        if rows.is_empty() || cols.is_empty() {
            continue;
        }
        let piece = Piece::whole(&problem.piece(rows, cols));
        pieces.push(Candidates::new(&piece, caps, library, None).accepted.into_iter().next()?);
    }
    Some(pieces)
}
