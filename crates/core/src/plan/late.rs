//! Cutting in time: a piece that is estimated to take longer than a submission may is halved along
//! entries, rows or columns of C. The halves have its kernel and its splits of K, so that C has the
//! same bits.

use super::candidates::Candidate;
use super::piece::Piece;
use super::ranges::{granule, half};
use crate::caps::Caps;
use crate::nested;
use crate::problem::{Dimension, Problem, Traits};

/// Starts of a dispatch that a bound must last: a shorter one would be spent on starting.
const STARTS: f64 = 100.0;

/// Share of the product that a bound must last, lest plans be endless.
const SHARE: f64 = 1.0 / 2048.0;

/// Share of the whole that the longer half may take. If it takes more, nothing is cut: there are
/// fewer tiles than cores, say.
const SHORTER: f64 = 0.9;

/// Why a product was cut in time.
#[derive(Clone, Debug, PartialEq)]
pub struct Late {
    /// Where it was cut.
    pub dimension: Dimension,
    /// Seconds that it was estimated to take before.
    pub seconds: f64,
}

/// Halves a piece for which a candidate was chosen, and its halves in turn, until they take no
/// longer than a submission may, or halving saves no time.
pub(super) fn cut(whole: Candidate, caps: &Caps, cuts: &mut Vec<Late>) -> Vec<Candidate> {
    let starts = STARTS * caps.rates().dispatch;
    let bound = caps.max_submission_seconds.max(starts).max(SHARE * whole.cost);
    let (mut done, mut waiting) = (Vec::new(), vec![whole]);
    while let Some(candidate) = waiting.pop() {
        let shorter = || shorter(&candidate, caps);
        let Some((dimension, halves)) = (candidate.cost > bound).then(shorter).flatten() else {
            done.push(candidate);
            continue;
        };
        if cuts.iter().all(|cut| cut.dimension != dimension) {
            cuts.push(Late { dimension, seconds: candidate.cost });
        }
        waiting.extend(halves.into_iter().rev());
    }
    done
}

/// The halves of a piece along a dimension, if they take less time.
fn shorter(whole: &Candidate, caps: &Caps) -> Option<(Dimension, Vec<Candidate>)> {
    let Candidate { piece, variant, .. } = whole;
    let (dimension, halves) = halves(piece, [variant.bm, variant.bn].map(u64::from))?;
    let halves = halves.iter().map(|half| whole.on(half, caps)).collect::<Option<Vec<_>>>()?;
    let longest = halves.iter().map(|half| half.cost).fold(0.0, f64::max);
    (longest <= SHORTER * whole.cost).then_some((dimension, halves))
}

/// Two halves of a piece: of the entries of a batch, otherwise of the rows or columns, whichever
/// has more tiles. Products of a list have none.
fn halves(piece: &Piece, [bm, bn]: [u64; 2]) -> Option<(Dimension, [Piece; 2])> {
    let Problem { m, n, batch, grouping, .. } = piece.problem;
    let Traits { whole_k, pieces, .. } = grouping.traits();
    let dimension = match [m.div_ceil(bm), n.div_ceil(bn)] {
        _ if batch > 1 && whole_k => Dimension::Entries,
        [rows, columns] if rows < columns => Dimension::N,
        _ => Dimension::M,
    };
    if !pieces.contains(&dimension) {
        return None;
    }
    let outermost = nested::outermost(grouping);
    let extent = outermost.unwrap_or(piece.problem.extent(dimension));
    let granule = granule(&piece.problem, dimension);
    let middle = (extent > granule).then(|| half(extent, granule))?;
    let halves = [0..middle, middle..extent].map(|range| match outermost {
        Some(_) => Piece { problem: nested::of_outermost(&piece.problem, range), ..*piece },
        None => piece.range(dimension, range),
    });
    Some((dimension, halves))
}
