//! How a mainloop fetches its operands: which loader fits the storage, and whether it must be packed first.

use super::pack::{Packing, Side};
use crate::caps::Caps;
use crate::kernel::{Access, Kit, Load, OperandDef, Reject, Variant};
use crate::problem::Operand;

/// How a mainloop fetches an operand, packed or from where it lies.
#[derive(Clone, Copy)]
pub(super) struct Fetch {
    pub(super) loader: &'static OperandDef,
    pub(super) packing: Option<Packing>,
}

/// Whether vectors of so many elements fit the operand and the steps in which tiles start along its storage.
fn aligned(side: &Side, step: u64, vector: u64) -> bool {
    let Side { operand, extent, k, along_k, .. } = *side;
    let numbers = [operand.offset, operand.ld, operand.batch_stride, if along_k { k } else { extent }, step];
    numbers.iter().all(|number| number.is_multiple_of(vector))
}

/// Through the first loader that reads the format and provides what the variant wants. `step` is
/// that of tiles along the storage; a packed operand lies behind the `start` bytes of others.
pub(super) fn fetch(
    kit: &'static Kit,
    caps: &Caps,
    variant: &Variant,
    side: &Side,
    step: u64,
    start: u64,
) -> Result<Fetch, Reject> {
    let provides = |o: &OperandDef| o.provides(variant.access);
    let Access::Words { .. } = variant.access else {
        let fits = |o: &OperandDef| provides(o) && aligned(side, step, o.vector);
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
