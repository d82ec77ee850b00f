//! Packing: an operand whose storage wide loads do not fit is copied to where they do, in a pass before the product.
//!
//! Mainloops of matrix units load 16 bytes at a time and whole steps along K. With rows 4095 elements apart, or a K of 4095, they would have to load
//! single elements, several times slower; to read and write the operand once costs a few hundredths of the product's time.

use super::Pass;
use super::builder::Builder;
use super::layout::Layout;
use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::kernel::{Load, OperandDef, Params, Reject, Role};
use crate::problem::{Operand, Problem};

/// Bytes that mainloops of matrix units load at a time.
const VECTOR_BYTES: u64 = 16;

/// Packed operands start at multiples of so many bytes, which suit every device's bindings.
const ALIGNMENT: u64 = 256;

/// A or B, and how it lies.
#[derive(Clone, Copy)]
pub(super) struct Side {
    pub(super) name: &'static str,
    pub(super) role: Role,
    pub(super) operand: Operand,
    /// Extent along the axis that is not K.
    pub(super) extent: u64,
    pub(super) k: u64,
    pub(super) entries: u64,
    /// Whether storage runs along K.
    pub(super) along_k: bool,
}

impl Side {
    pub(super) fn both(problem: &Problem) -> [Side; 2] {
        let Problem { m, n, k, a, b, .. } = *problem;
        [
            Side { name: "a", role: Role::A, operand: a, extent: m, k, entries: problem.batch, along_k: !a.transposed },
            Side {
                name: "b",
                role: Role::B,
                operand: b,
                extent: n,
                k,
                entries: problem.entries(),
                along_k: b.transposed,
            },
        ]
    }
}

/// Where an operand is packed: lines in the direction of its own storage, one after the other.
#[derive(Clone, Copy)]
pub(super) struct Packing {
    loader: &'static OperandDef,
    /// Elements in `VECTOR_BYTES`.
    vector: u64,
    entries: u64,
    lines: u64,
    /// Elements of a line, zeros at its end included.
    width: u64,
    /// First byte in the memory for packed operands.
    pub(super) start: u64,
    pub(super) bytes: u64,
}

impl Packing {
    /// For loads of `vector` elements and steps of `bk` along K, behind the `start` bytes of others.
    pub(super) fn new(
        side: &Side,
        loader: &'static OperandDef,
        vector: u64,
        bk: u64,
        start: u64,
    ) -> Result<Self, Reject> {
        let entries = if side.operand.batch_stride == 0 { 1 } else { side.entries };
        let k = side.k.next_multiple_of(bk);
        let (lines, width) = if side.along_k { (side.extent, k) } else { (k, side.extent.next_multiple_of(vector)) };
        let elements = u128::from(entries) * u128::from(lines) * u128::from(width);
        let bytes = elements * u128::from(VECTOR_BYTES / vector);
        if bytes > u32::MAX.into() {
            return Err(Reject(format!(
                "{} packed takes {bytes} bytes, at most {} are addressed",
                side.name,
                u32::MAX
            )));
        }
        let (start, bytes) = (start.next_multiple_of(ALIGNMENT), bytes as u64);
        Ok(Packing { loader, vector, entries, lines, width, start, bytes })
    }

    /// Estimated: it is read, written and read again.
    pub(super) fn seconds(&self, caps: &Caps) -> f64 {
        let rates = caps.rates();
        2.0 * self.bytes as f64 / rates.bandwidth + rates.dispatch
    }

    pub(super) fn end(&self) -> u64 {
        self.start + self.bytes
    }

    /// First element, row stride and batch stride of the packed operand, in what is bound of it.
    pub(super) fn place(&self) -> [u32; 3] {
        let batch_stride = if self.entries == 1 { 0 } else { self.lines * self.width };
        [0, self.width as u32, batch_stride as u32]
    }

    /// The pass that packs; `params` are the problem's.
    pub(super) fn pass(&self, side: &Side, caps: &Caps, params: Params, layout: &Layout) -> Result<Pass> {
        let kit = layout.kit;
        let file = kit.pack.ok_or_else(|| Error::NoKernel("nothing packs operands".into()))?;
        let [lines, units] = kit.pack_tile;
        let tiles = [self.lines.div_ceil(lines.into()), (self.width / self.vector).div_ceil(units.into())];
        let workgroups = self.entries * tiles[0] * tiles[1];
        let allowed = u64::from(caps.max_workgroups).pow(2);
        if workgroups > allowed {
            return Err(Error::NoKernel(format!("packing needs {workgroups} workgroups, {allowed} allowed")));
        }
        let params = Params {
            m: side.extent as u32,
            entries: self.entries as u32,
            c_ld: self.width as u32,
            c_batch: (self.lines * self.width) as u32,
            tiles_m: tiles[0] as u32,
            tiles_n: tiles[1] as u32,
            ..params
        };
        let mut builder =
            Builder::new(format!("pack {}", side.name), params, lines * units, 0, (layout.kit, layout.windows));
        builder.load(side.name, side.role, Some(self.loader), Some(&side.operand));
        if !self.loader.loads.contains(&Load::Packing) {
            builder.eights(side.name, self.loader);
            builder.part_if_any(kit.words, Some(side.name));
        }
        builder.axes(side);
        let constants = vec![("LINES", lines), ("UNITS", units), ("VECTOR", self.vector as u32)];
        builder.part(file, Some(side.name), constants);
        builder.packed(Role::Packed, true, self, 16);
        Ok(builder.finish(workgroups, caps))
    }
}
