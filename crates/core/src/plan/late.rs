//! Cutting in time: a piece that is estimated to take longer than a submission may is halved along
//! entries, rows or columns of C. The halves have its kernel and its splits of K, so that C has the
//! same bits.

use super::piece::Piece;
use super::ranges::{granule, half};
use super::{Candidate, Laid, lay};
use crate::caps::Caps;
use crate::nested;
use crate::problem::{Dimension, Grouping, Problem};

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
pub(super) fn cut(
    piece: Piece,
    laid: Laid,
    candidate: &Candidate,
    caps: &Caps,
    cuts: &mut Vec<Late>,
) -> Vec<(Piece, Laid)> {
    let starts = STARTS * caps.rates().dispatch;
    let bound = caps.max_submission_seconds.max(starts).max(SHARE * laid.cost);
    let (mut done, mut waiting) = (Vec::new(), vec![(piece, laid)]);
    while let Some((piece, laid)) = waiting.pop() {
        let shorter = || shorter(&piece, &laid, candidate, caps);
        let Some((dimension, halves)) = (laid.cost > bound).then(shorter).flatten() else {
            done.push((piece, laid));
            continue;
        };
        if cuts.iter().all(|cut| cut.dimension != dimension) {
            cuts.push(Late { dimension, seconds: laid.cost });
        }
        waiting.extend(halves.into_iter().rev());
    }
    done
}

/// The halves of a piece along a dimension, if they take less time.
fn shorter(
    piece: &Piece,
    laid: &Laid,
    candidate: &Candidate,
    caps: &Caps,
) -> Option<(Dimension, Vec<(Piece, Laid)>)> {
    let Candidate { kernel, variant, splits, .. } = candidate;
    let (dimension, halves) = halves(piece, [variant.bm, variant.bn].map(u64::from))?;
    let halves = halves.into_iter().map(|half| {
        let laid = lay(&half, &half.kinds(caps), caps, kernel, variant, *splits, true).ok()?;
        Some((half, laid))
    });
    let halves = halves.collect::<Option<Vec<_>>>()?;
    let longest = halves.iter().map(|(_, laid)| laid.cost).fold(0.0, f64::max);
    (longest <= SHORTER * laid.cost).then_some((dimension, halves))
}

/// Two halves of a piece: of the entries of a batch, otherwise of the rows or columns, whichever
/// has more tiles. Products of a list have none.
fn halves(piece: &Piece, [bm, bn]: [u64; 2]) -> Option<(Dimension, [Piece; 2])> {
    let Problem { m, n, batch, grouping, .. } = piece.problem;
    let dimension = match grouping {
        Grouping::Listed { .. } => return None,
        _ if batch > 1 && grouping.has_whole_k() => Dimension::Entries,
        _ if m.div_ceil(bm) < n.div_ceil(bn) => Dimension::N,
        _ => Dimension::M,
    };
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
