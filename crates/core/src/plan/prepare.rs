//! Preparing: an operand that serves many products is packed once.

use super::fetch::{Request, aligned};
use super::forced::variants;
use super::limits::binding_limit;
use super::packing::COPY_STEP;
use super::params::params;
use super::piece::Step;
use super::setup::Setup;
use super::side::Side;
use super::{Pass, check, ranges};
use crate::caps::Caps;
use crate::error::Result;
use crate::kernel::{Library, Unit};
use crate::problem::{Copied, DType, Format, Operand, Precision, Problem};
use crate::role::Role;

/// How an operand is packed beforehand.
#[derive(Clone, Debug, PartialEq)]
pub struct Preparation {
    /// The pass that packs, to the storage of [`Role::copy`].
    pub pass: Pass,
    /// Bytes of the copy.
    pub bytes: u64,
    /// The copy, as products are told of it ([`Problem::copies`]).
    pub copy: Copied,
}

/// How to pack A \[M,K\] or B \[K,N\] beforehand, for all products of this precision on this
/// device. None if kernels want no copy: there are no matrix units for its type, or they load it
/// from its own storage. f32 has a copy, in two terms, if the precision lets kernels split it.
/// Quantized weights are decoded in theirs: products read it instead of the codes if that is
/// expected to be faster. `extent` is M or N; `entries` is the number of matrices.
///
/// # Errors
/// The errors of [`plan`](super::plan()), for the operand.
pub fn prepare(
    operand: Operand,
    role: Role,
    [entries, extent, k]: [u64; 3],
    precision: Precision,
    caps: &Caps,
    library: &Library,
) -> Result<Option<Preparation>> {
    // The other operand is one that matrix units multiply with this one.
    let single = operand.format == Format::Dense(DType::F32);
    let other = if single { operand.format } else { Format::Dense(DType::F16) };
    let packed = |format, rows, columns| Operand::packed(format, entries, rows, columns);
    let is_a = role == Role::A;
    let ([m, n], [a, b]) = match is_a {
        true => ([extent, 1], [operand, packed(other, k, 1)]),
        false => ([1, extent], [packed(other, 1, k), operand]),
    };
    let c = packed(Format::Dense(DType::F32), m, n);
    let dense = Problem::dense(DType::F16, m, n, k);
    let problem = Problem { a, b, c, batch: entries, precision, ..dense };
    let problem = check(&problem)?;
    if extent == 0 || k == 0 || entries == 0 {
        return Ok(None);
    }
    let serves = |unit: &&'static Unit| {
        unit.matrix.operands == DType::F16 && unit.serves(&problem, caps).is_ok()
    };
    let mut all = variants(library, None);
    let Some((kernel, variant, unit)) =
        all.find_map(|(kernel, variant)| Some((kernel, variant, variant.unit().filter(serves)?)))
    else {
        return Ok(None);
    };
    let (pieces, _) = ranges::cut(&problem, caps, library, None)?;
    let piece = &pieces[0];
    // A product with this operand is cut too, into pieces that no copy of the whole serves.
    if pieces.len() > 1 || piece.steps() > 1 {
        return Ok(None);
    }
    let step = Step::new(piece, 0, caps);
    let copy = Copied { entries: if operand.is_shared() { 1 } else { entries }, extent, k };
    let Ok(setup) = Setup::new(piece, &step, caps, kernel.kit, variant, 1) else {
        return Ok(None);
    };
    let [a, b] = Side::both(&setup.problem);
    let side = if is_a { a } else { b };
    // Loads of 16 bytes, and whole steps of every mainloop.
    let request = Request { kit: kernel.kit, caps, variant, side: &side.whole(copy), step: 0 };
    let Ok((words, packing)) = request.packing(COPY_STEP, 0) else { return Ok(None) };
    let own = operand.format == Format::Dense(unit.matrix.operands);
    let fits = own && aligned(&side, 0, words.vector) && k.is_multiple_of(COPY_STEP);
    if fits && packing.slab().is_none() {
        return Ok(None);
    }
    if packing.bytes > binding_limit(caps).0 {
        return Ok(None);
    }
    let packing = packing.made_before(role);
    let pass = packing.pass(&side, caps, params(piece, &setup), &setup, problem.grouping)?;
    Ok(Some(Preparation { pass, bytes: packing.bytes, copy }))
}
