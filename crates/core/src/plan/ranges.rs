//! Cutting: if no binding of the device holds an operand, the product is computed in pieces. Each
//! piece binds ranges that fit.
//!
//! An operand spans its strides times its extents. Only a cut along the dimension with the largest
//! of these products makes it much shorter: rows for a row-major A, but K for a transposed one.
//!
//! ```text
//!     A, row-major: cut along M            A, transposed: cut along K
//!
//!          K                                    K
//!       +--------+                           +-----+-----+
//!     M | piece  |  C, rows 0 to M/2       M |     |     |  range 0 leaves sums in scratch,
//!       +--------+                           |  0  |  1  |  range 1 adds to them,
//!       | piece  |  C, the other rows        |     |     |  then C = epilogue(sums)
//!       +--------+                           +-----+-----+
//! ```
//!
//! A piece along entries, rows or columns is a separate product. A range of K is a pass that adds
//! to partial sums, like a split of K. So the epilogue and the rounding to C's type happen once.
//!
//! The pieces give the product: a cut halves one dimension in two parts that meet and do not
//! overlap, so each element of C is in one piece, and each step along K in one of its ranges.
//! Cutting ends: each cut makes an extent shorter, and an extent of one granule (an element, or a
//! block of weights) is not cut. If an operand is too large even then, the product is refused.

use super::check::{span, title};
use super::fetch::{Fetches, decoded};
use super::forced::{Forced, variants};
use super::limits::{binding_limit, scratch_limit};
use super::piece::{
    Piece, Step, Window, least_splits, scratch_bytes, split_length, splits_of, window,
};
use super::setup::{direct_roles, tile_store};
use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::kernel::{Access, Kit, Library, Unit, Variant};
use crate::nested;
use crate::problem::{Dimension, Grouping, Operand, Problem};
use crate::role::Role;

/// Passes beyond which a plan is of no use to anybody.
const MAX_PASSES: u64 = 1 << 16;

/// Rows, columns or steps along K that the largest tiles have. Cuts lie at multiples of it if they
/// can; if less is left, at multiples of 4, for vector loads.
const TILE: u64 = 256;

/// Why a product was cut along a dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Where it was cut.
    pub dimension: Dimension,
    /// The operand, or the scratch memory, that was too large.
    pub operand: &'static str,
    /// Bytes that it spanned before; 0 for entries of C that share words of memory.
    pub bytes: u64,
}

/// Cuts a product into pieces that fit the device. Returns the pieces, and a reason for each cut. A
/// product that fits is one piece.
pub(super) fn cut(
    problem: &Problem,
    caps: &Caps,
    library: &Library,
    forced: Option<&Forced>,
) -> Result<(Vec<Piece>, Vec<Cut>)> {
    let mut cutter = Cutter {
        caps,
        library,
        forced,
        whole: problem.grouping,
        passes: 0,
        pieces: Vec::new(),
        cuts: Vec::new(),
    };
    cutter.cut(Piece::whole(problem))?;
    Ok((cutter.pieces, cutter.cuts))
}

/// Something that a piece binds and the device does not.
struct Excess {
    operand: &'static str,
    bytes: u64,
    elements: u64,
    /// The dimension along which to halve it; none when it is down to one element.
    dimension: Option<Dimension>,
}

struct Cutter<'a> {
    caps: &'a Caps,
    library: &'a Library,
    forced: Option<&'a Forced>,
    whole: Grouping,
    passes: u64,
    pieces: Vec<Piece>,
    cuts: Vec<Cut>,
}

impl Cutter<'_> {
    fn cut(&mut self, piece: Piece) -> Result<()> {
        if self.passes.saturating_add(piece.steps()) > MAX_PASSES {
            return Err(Error::DeviceLimit(format!(
                "it takes more than {MAX_PASSES} passes, because the device binds little at a time"
            )));
        }
        let excess = self.excess(&piece);
        if let Some(entries) = nested::outermost(piece.problem.grouping) {
            let shared = self.shares_words(&piece.problem);
            let cause = excess.as_ref().map(|excess| (excess.operand, excess.bytes));
            if let Some((operand, bytes)) = cause.or(shared.then_some(("C", 0))) {
                self.note(Dimension::Entries, operand, bytes);
                for index in 0..entries {
                    let entry = nested::of_outermost(&piece.problem, index..index + 1);
                    self.cut(Piece::whole(&entry))?;
                }
                return Ok(());
            }
        }
        let Some(excess) = excess else {
            self.passes += piece.steps();
            self.pieces.push(piece);
            return Ok(());
        };
        let Excess { operand, bytes, dimension: Some(dimension), .. } = excess else {
            return Err(self.error(&excess));
        };
        if self.is_whole(dimension) {
            return Err(self.error(&excess));
        }
        self.note(dimension, operand, bytes);
        if dimension == Dimension::K {
            return self.cut(Piece {
                k_step: half(piece.k_step, granule(&piece.problem, dimension)),
                ..piece
            });
        }
        let extent = piece.problem.extent(dimension);
        let middle = half(extent, granule(&piece.problem, dimension));
        self.cut(piece.range(dimension, 0..middle))?;
        self.cut(piece.range(dimension, middle..extent))
    }

    /// Whether the grouping has no pieces along a dimension.
    fn is_whole(&self, dimension: Dimension) -> bool {
        !self.whole.traits().pieces.contains(&dimension)
    }

    fn note(&mut self, dimension: Dimension, operand: &'static str, bytes: u64) {
        if !self.cuts.iter().any(|cut| (cut.dimension, cut.operand) == (dimension, operand)) {
            self.cuts.push(Cut { dimension, operand, bytes });
        }
    }

    /// Whether C can only be stored word by word, and the entries of a nested batch do not follow
    /// one another. The place of a word then does not tell whose it is.
    fn shares_words(&self, problem: &Problem) -> bool {
        let mut kits = variants(self.library, self.forced).map(|(kernel, _)| kernel.kit);
        !nested::is_even(problem.grouping, &problem.c)
            && kits
                .all(|kit| kit.by_words.is_some() && tile_store(kit, self.caps, problem).is_none())
    }

    /// The first operand, or the scratch memory, that one binding does not hold.
    fn excess(&self, piece: &Piece) -> Option<Excess> {
        let limit = binding_limit(self.caps).0;
        let too_large = |bytes: u64, elements: u64| bytes > limit || elements > u32::MAX.into();
        let most = scratch_limit(self.caps).0;
        let beyond_scratch = |bytes: u64| bytes > most || bytes / 4 > u32::MAX.into();
        // Every piece of a grouped product reads the ends of all groups.
        let indices = piece.problem.indices().map(|elements| (Role::RowIndex, elements));
        for (role, elements) in self.whole.operands().chain(indices) {
            let bytes = elements * 4;
            if too_large(bytes, elements) {
                return Some(Excess { operand: role.name(), bytes, elements, dimension: None });
            }
        }
        for index in 0..piece.steps() {
            let mut step = piece.step(index);
            let problem = step;
            for (role, operand, strides) in step.operands() {
                let (elements, bytes) = bound(&problem, role, operand, &strides, self.caps);
                if too_large(bytes, elements) {
                    // Rows by index lie anywhere in their matrix: a range of M or of K binds no
                    // less of it.
                    let gathered = role == Role::A && problem.gathered.is_some();
                    let dimension = longest(&problem, &strides).filter(|_| !gathered);
                    return Some(Excess { operand: title(role), bytes, elements, dimension });
                }
            }
        }
        let steps = piece.kinds(self.caps);
        let bytes = self.scratch(piece, &steps[0]);
        let Problem { m, n, batch, .. } = piece.problem;
        // A grouped product has no batch, and its groups share the rows.
        let row = n.next_multiple_of(4);
        let entry = if batch > 1 { m.saturating_mul(row) } else { 0 };
        let strides = [(Dimension::Entries, entry), (Dimension::M, row), (Dimension::N, 1)];
        let dimension = longest(&piece.problem, &strides);
        let scratch = Excess { operand: "scratch", bytes, elements: bytes / 4, dimension };
        if beyond_scratch(bytes) {
            return Some(scratch);
        }
        let bytes = self.chains(&steps[0]);
        // Ranges of K leave sums as well: K is cut only if those of a few tiles have room.
        let room = most >= 4 * (2 * TILE).pow(2);
        if room && beyond_scratch(bytes) && piece.k_step > granule(&piece.problem, Dimension::K) {
            return Some(Excess {
                bytes,
                elements: bytes / 4,
                dimension: Some(Dimension::K),
                ..scratch
            });
        }
        self.packing(&steps)
    }

    /// Bytes of scratch memory that a piece needs whichever kernel computes it. Kernels write
    /// partial sums of one size, except that a forced one may split K.
    fn scratch(&self, piece: &Piece, first: &Step) -> u64 {
        let asked = self.forced.and_then(|forced| forced.splits).unwrap_or(1);
        let needed = variants(self.library, self.forced).map(|(kernel, variant)| {
            let k = variant.multiplied(&first.problem).k;
            let splits = splits_of(k, split_length(k, asked, variant.bk.into()));
            let direct = splits == 1
                && piece.steps() == 1
                && tile_store(kernel.kit, self.caps, &first.problem).is_some()
                && self.binds_all(kernel.kit, variant, &first.problem);
            if direct { 0 } else { scratch_bytes(&first.problem, splits) }
        });
        needed.min().unwrap_or(0)
    }

    /// Whether a mainloop can bind everything that it reads and C.
    fn binds_all(&self, kit: &'static Kit, variant: &Variant, problem: &Problem) -> bool {
        Fetches::new(kit, self.caps, variant, problem, 1).is_ok_and(|fetches| {
            direct_roles(&fetches, problem).count() <= self.caps.max_storage_buffers
        })
    }

    /// Bytes of scratch memory for as many splits of K as the precision wants on matrix units. A
    /// variant that keeps its chains short by itself needs no splits and no memory.
    fn chains(&self, first: &Step) -> u64 {
        let problem = &first.problem;
        let serves = |unit: &Unit| unit.serves(problem, self.caps).is_ok();
        let serving = variants(self.library, self.forced)
            .filter(|(_, variant)| variant.unit().is_some_and(serves));
        let splits = serving.map(|(_, variant)| least_splits(problem, variant)).min().unwrap_or(1);
        if splits > 1 { scratch_bytes(problem, splits) } else { 0 }
    }

    /// The copy of an operand, if it is too large for every variant that needs one. Matrix units
    /// need a copy if their loads do not fit the storage; the piece is then halved only while it
    /// stays large enough to be worth them. Other kernels may need weights decoded; the piece is
    /// then halved until their copy fits.
    fn packing(&self, steps: &[Step]) -> Option<Excess> {
        let problem = steps[0].problem;
        let mut first = None;
        let decoded = decoded(&problem, self.caps);
        let serves = |variant: &Variant| match variant.unit() {
            Some(unit) => unit.serves(&problem, self.caps).is_ok(),
            None => decoded && !matches!(variant.access, Access::Codes { .. }),
        };
        for (kernel, variant) in
            variants(self.library, self.forced).filter(|(_, variant)| serves(variant))
        {
            let fetches = steps
                .iter()
                .map(|step| Fetches::new(kernel.kit, self.caps, variant, &step.problem, 1));
            let Ok(fetches) = fetches.collect::<Result<Vec<_>, _>>() else { continue };
            // A variant needs no cut if its copies fit, or if it has no copies.
            first = first.or(Some(fetches.iter().find_map(|fetches| fetches.unbound(self.caps))?));
        }
        let (role, bytes, allowed) = first?;
        let Problem { m, n, k, .. } = problem;
        let strides = match role {
            Role::B => {
                [(Dimension::Entries, k.saturating_mul(n)), (Dimension::N, k), (Dimension::K, 1)]
            }
            _ => [(Dimension::Entries, m.saturating_mul(k)), (Dimension::M, k), (Dimension::K, 1)],
        };
        // A dimension that stays whole is not cut. Cutting any other makes a copy shorter.
        let strides = strides.map(|(dimension, stride)| {
            (dimension, if self.is_whole(dimension) { 0 } else { stride })
        });
        let dimension = longest(&problem, &strides)?;
        // Nothing is cut if even the last piece would be too large.
        let lines = if role == Role::B { n } else { m };
        let fewest = if lines > 2 * TILE { TILE } else { lines };
        let line = bytes / problem.batch.max(1) / lines.max(1);
        let fits = line.saturating_mul(fewest) <= allowed;
        let long = problem.extent(dimension) > 2 * TILE || dimension == Dimension::Entries;
        let large = decoded || long && fits;
        let operand = if role == Role::B { "packed B" } else { "packed A" };
        large.then_some(Excess { operand, bytes, elements: 0, dimension: Some(dimension) })
    }

    fn error(&self, excess: &Excess) -> Error {
        let &Excess { operand, bytes, elements, .. } = excess;
        let (limit, which) = match operand {
            "scratch" => scratch_limit(self.caps),
            _ => binding_limit(self.caps),
        };
        if bytes > limit {
            return Error::too_large(operand, bytes, limit, which);
        }
        Error::Shape(format!(
            "overflow: {operand} spans {elements} elements, kernels index at most {}",
            u32::MAX
        ))
    }
}

/// Elements of an operand that a product binds, and bytes of the largest of its planes.
fn bound(
    problem: &Problem,
    role: Role,
    operand: &Operand,
    strides: &[(Dimension, u64); 3],
    caps: &Caps,
) -> (u64, u64) {
    let end = span(problem, role, operand, strides).unwrap_or(u64::MAX);
    let Window { elements, .. } = window(operand, end, caps);
    let block = operand.format.block();
    let planes = operand.format.planes().iter().map(|plane| plane.bytes_of(block, elements));
    (elements, planes.max().unwrap_or(0))
}

/// Bytes of the largest binding of an operand, if the product is not cut.
pub(super) fn bytes_bound(problem: &Problem, role: Role, caps: &Caps) -> u64 {
    let mut own = *problem;
    let mut operands = own.operands().filter(|(other, ..)| *other == role);
    let found = operands.next();
    found.map_or(0, |(_, operand, strides)| bound(problem, role, operand, &strides, caps).1)
}

/// The dimension along which an operand with these strides reaches farthest, of those that can be
/// halved.
fn longest(problem: &Problem, strides: &[(Dimension, u64); 3]) -> Option<Dimension> {
    let reach = |&(dimension, stride): &(Dimension, u64)| {
        let extent = problem.extent(dimension);
        let reach = stride.saturating_mul(extent.saturating_sub(1));
        (extent > granule(problem, dimension) && reach > 0).then_some((dimension, reach))
    };
    strides.iter().filter_map(reach).max_by_key(|(_, reach)| *reach).map(|(dimension, _)| dimension)
}

/// Elements along a dimension that cannot be cut further.
pub(super) fn granule(problem: &Problem, dimension: Dimension) -> u64 {
    let along = if problem.b.transposed { Dimension::K } else { Dimension::N };
    let block = if dimension == along { problem.b.format.block() } else { 1 };
    // Blocks have an even number of elements.
    if dimension == Dimension::N { block.max(problem.epilogue.columns()) } else { block }
}

/// Where to cut an extent in two, about in the middle.
pub(super) fn half(extent: u64, granule: u64) -> u64 {
    let step = match extent {
        0..=4 => 1,
        5..=1024 => 4,
        _ => TILE,
    };
    extent.div_ceil(2).next_multiple_of(step.max(granule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_shorter_and_at_multiples() {
        for extent in 2..5000 {
            let middle = half(extent, 1);
            assert!((1..extent).contains(&middle), "{extent} at {middle}");
            let step = if extent > 4 * TILE { TILE } else { 4 };
            assert!(extent <= 4 || middle.is_multiple_of(step), "{extent} at {middle}");
        }
        for groups in 2..100 {
            let middle = half(64 * groups, 64);
            assert!(
                (64..64 * groups).contains(&middle) && middle.is_multiple_of(64),
                "{groups} groups at {middle}"
            );
        }
    }
}
