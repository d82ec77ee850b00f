//! How a mainloop fetches its operands: which loader fits the storage, and whether it must be packed first.

use super::pack::{Packing, Side};
use crate::caps::Caps;
use crate::kernel::{Access, Kit, Load, OperandDef, Reject, Variant};
use crate::problem::{Operand, Problem};
use crate::role::Role;

/// How a mainloop fetches an operand, packed or from where it lies.
#[derive(Clone, Copy)]
pub(super) struct Fetch {
    pub(super) loader: &'static OperandDef,
    pub(super) packing: Option<Packing>,
}

/// How A and B are fetched.
#[derive(Clone, Copy, Default)]
pub(super) struct Fetches {
    /// None with K = 0: there is no element to bind.
    pub(super) a: Option<Fetch>,
    pub(super) b: Option<Fetch>,
}

impl Fetches {
    pub(super) fn new(kit: &'static Kit, caps: &Caps, variant: &Variant, problem: &Problem) -> Result<Self, Reject> {
        if problem.k == 0 {
            return Ok(Fetches::default());
        }
        // Where the storage of an operand runs along the tile, vectors must not straddle the tile's start either.
        let row_step = if problem.grouping.has_aligned_rows() { variant.bm.into() } else { 1 };
        let a_step = if problem.a.transposed { row_step } else { 0 };
        let b_step = if problem.b.transposed { 0 } else { variant.bn.into() };
        let [a_side, b_side] = Side::both(problem);
        let a = fetch(kit, caps, variant, &a_side, a_step, 0)?;
        let b = fetch(kit, caps, variant, &b_side, b_step, a.packed_end())?;
        Ok(Fetches { a: Some(a), b: Some(b) })
    }

    /// Which operands are packed, and the bytes that each then takes.
    pub(super) fn packed(&self) -> impl Iterator<Item = (Role, u64)> {
        let sides = [(Role::A, self.a), (Role::B, self.b)].into_iter();
        sides.filter_map(|(role, fetch)| Some((role, fetch?.packing?.bytes)))
    }

    /// Bytes of the memory for both.
    pub(super) fn packed_bytes(&self) -> u64 {
        [self.a, self.b].into_iter().flatten().map(|fetch| fetch.packed_end()).max().unwrap_or(0)
    }
}

impl Fetch {
    fn packed_end(&self) -> u64 {
        self.packing.map_or(0, |packing| packing.end())
    }
}

/// Whether vectors of so many elements fit the operand and the steps in which tiles start along its storage.
fn aligned(side: &Side, step: u64, vector: u64) -> bool {
    let Side { operand, extent, k, along_k, .. } = *side;
    let numbers = [operand.offset, operand.ld, operand.batch_stride, if along_k { k } else { extent }, step];
    numbers.iter().all(|number| number.is_multiple_of(vector))
}

/// Through the first loader that reads the format and provides what the variant wants. `step` is
/// that of tiles along the storage; a packed operand lies behind the `start` bytes of others.
fn fetch(
    kit: &'static Kit,
    caps: &Caps,
    variant: &Variant,
    side: &Side,
    step: u64,
    start: u64,
) -> Result<Fetch, Reject> {
    let provides = |o: &OperandDef| o.provides(variant.access);
    let Access::Words { .. } = variant.access else {
        let fits = |o: &OperandDef| provides(o) && aligned(side, step, o.vector) && (side.along_k || !o.along_k);
        let loader = find(kit, caps, &side.operand, fits)?;
        return Ok(Fetch { loader, packing: None });
    };
    let loader = find(kit, caps, &side.operand, provides)?;
    let bk = variant.bk.into();
    if aligned(side, step, loader.vector) && side.k.is_multiple_of(bk) {
        return Ok(Fetch { loader, packing: None });
    }
    if !step.is_multiple_of(loader.vector) {
        return Err(Reject(format!("tiles begin anywhere along the storage of {}", side.name)));
    }
    let packer = find(kit, caps, &side.operand, |o| o.loads.contains(&Load::Packing))?;
    let packing = Packing::new(side, packer, loader.vector, bk, start)?;
    Ok(Fetch { loader, packing: Some(packing) })
}

/// A loader for single elements, as epilogues want them.
pub(super) fn scalar_loader(kit: &'static Kit, caps: &Caps, operand: &Operand) -> Result<&'static OperandDef, Reject> {
    find(kit, caps, operand, |o| o.provides(Access::Elements) && o.vector == 1)
}

fn find(
    kit: &'static Kit,
    caps: &Caps,
    operand: &Operand,
    fits: impl Fn(&OperandDef) -> bool,
) -> Result<&'static OperandDef, Reject> {
    let found = kit.operands.iter().find(|o| (o.accepts)(operand.format, caps) && fits(o));
    found.ok_or_else(|| Reject(format!("no loader for {}", operand.format)))
}
