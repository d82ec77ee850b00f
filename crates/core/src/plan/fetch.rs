//! How a mainloop fetches its operands: which loader fits the storage, and whether it must be packed first.

use super::pack::{Packing, Side};
use crate::caps::Caps;
use crate::kernel::{Kit, OperandDef, Reject};
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

/// By elements, or eight at a time: the first loader that reads the format and fits.
pub(super) fn fetch_elements(
    kit: &'static Kit,
    caps: &Caps,
    side: &Side,
    step: u64,
    eights: bool,
) -> Result<Fetch, Reject> {
    let fits = |o: &OperandDef| (o.elements || eights && o.eights) && aligned(side, step, o.vector);
    Ok(Fetch { loader: find(kit, caps, &side.operand, fits)?, packing: None })
}

/// By 16 bytes and whole steps along K; packed where that does not fit the storage.
pub(super) fn fetch_words(
    kit: &'static Kit,
    caps: &Caps,
    side: &Side,
    step: u64,
    bk: u64,
    start: u64,
) -> Result<Fetch, Reject> {
    let vectors = |o: &OperandDef| o.words && o.vector > 1;
    let loader = find(kit, caps, &side.operand, vectors)?;
    if aligned(side, step, loader.vector) && side.k.is_multiple_of(bk) {
        return Ok(Fetch { loader, packing: None });
    }
    if !step.is_multiple_of(loader.vector) {
        return Err(Reject(format!("tiles begin anywhere along the storage of {}", side.name)));
    }
    let single = |o: &OperandDef| o.words && o.vector == 1;
    let packing = Packing::new(side, find(kit, caps, &side.operand, single)?, loader.vector, bk, start)?;
    Ok(Fetch { loader, packing: Some(packing) })
}

/// A loader for single elements, as epilogues want them.
pub(super) fn scalar_loader(kit: &'static Kit, caps: &Caps, operand: &Operand) -> Result<&'static OperandDef, Reject> {
    find(kit, caps, operand, |o| o.elements && o.vector == 1)
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
