//! A packed operand: a copy of A or B that wide loads fit.

use super::side::Side;
use crate::caps::Caps;
use crate::kernel::{Load, OperandDef, Reject, Role, Unit, segment};
use crate::problem::Format;
use crate::role::Roles;

/// Bytes that mainloops of matrix units load at a time.
const VECTOR_BYTES: u64 = 16;

/// Powers of two in a vector. The powers of an entry fill whole vectors.
pub(super) const QUAD: u64 = 4;

/// Packed operands start at multiples of this many bytes, which suit every device's bindings.
pub(super) const ALIGNMENT: u64 = 256;

/// K of a copy that is made beforehand is filled up to a multiple of this: whole steps of every
/// mainloop.
pub(super) const COPY_STEP: u64 = 256;

/// Steps along K of a slab. If a product has many entries of B, a copy along K for a matrix unit
/// has one slab after the other, and in each slab all lines. A slice of a tile is then read from
/// one place in memory. As measured, products of one entry gain less than they lose, and so do two
/// terms of f32.
const SLAB: u64 = 32;

/// A packed operand. Its lines have the direction of its storage. They follow one another, or lie
/// in slabs.
#[derive(Clone, Copy)]
pub(super) struct Packing {
    pub(super) loader: &'static OperandDef,
    /// Elements in `VECTOR_BYTES`.
    pub(super) vector: u64,
    pub(super) entries: u64,
    pub(super) lines: u64,
    /// Elements of a line, zeros at its end included.
    pub(super) width: u64,
    /// First byte in the memory for packed operands.
    pub(super) start: u64,
    /// Bytes of the copy, with the powers.
    pub(super) bytes: u64,
    /// Where it lies: `Packed` for what a pass before the mainloop packs.
    pub(super) from: Role,
    /// Where the powers begin, in bytes from `start`; none if lines are copied undivided.
    pub(super) powers: Option<u64>,
    /// How many entries, or ranges of K, have a power for each line.
    pub(super) sharing: u64,
    /// Whether ranges of K have powers, not entries.
    pub(super) in_ranges: bool,
    /// The share of rows to pack ([`Side::wanted`]).
    pub(super) wanted: Option<f64>,
    /// Whether elements are split in two terms.
    pub(super) splits: bool,
    /// Whether it lies in slabs.
    in_slabs: bool,
}

impl Packing {
    /// Packs for loads of `vector` elements and steps of `bk` along K, behind the `start` bytes of
    /// others. Without a matrix unit the copy holds weights in f32.
    pub(super) fn new(
        side: &Side,
        loader: &'static OperandDef,
        unit: Option<&Unit>,
        vector: u64,
        bk: u64,
        start: u64,
    ) -> Result<Self, Reject> {
        let entries = if side.operand.is_shared() { 1 } else { side.entries };
        let format = side.operand.format;
        let scales = unit.is_some_and(|unit| unit.scales(format));
        let splits = unit.is_some_and(|unit| unit.splits(format));
        let k = if splits { 3 * segment(side.k) } else { side.k }.next_multiple_of(bk);
        let in_slabs = side.along_k && side.many && unit.is_some() && !splits;
        let (lines, width) = match side.along_k {
            true => (side.extent, if in_slabs { k.next_multiple_of(SLAB) } else { k }),
            false => (k, side.extent.next_multiple_of(vector)),
        };
        let elements = u128::from(entries) * u128::from(lines) * u128::from(width);
        let copied = elements * u128::from(VECTOR_BYTES / vector);
        let powers = copied.next_multiple_of(ALIGNMENT.into());
        let sharing = if side.in_ranges { side.entries } else { entries };
        let quads = u128::from(sharing) * u128::from(side.extent.div_ceil(QUAD));
        let bytes = if scales { powers + quads * u128::from(VECTOR_BYTES) } else { copied };
        if bytes > u32::MAX.into() {
            return Err(Reject(format!(
                "{} packed takes {bytes} bytes, at most {} are addressed",
                side.name,
                u32::MAX
            )));
        }
        let (start, bytes) = (start.next_multiple_of(ALIGNMENT), bytes as u64);
        let powers = scales.then_some(powers as u64);
        Ok(Packing {
            loader,
            vector,
            entries,
            lines,
            width,
            start,
            bytes,
            from: Role::Packed,
            powers,
            sharing,
            in_ranges: scales && side.in_ranges,
            wanted: side.wanted,
            splits,
            in_slabs,
        })
    }

    /// Steps along K of its slabs, if it has any.
    pub(super) fn slab(&self) -> Option<u32> {
        self.in_slabs.then_some(SLAB as u32)
    }

    /// This packing, for a copy of A or B that was made beforehand.
    pub(super) fn made_before(self, role: Role) -> Self {
        Packing { from: role.copy(), ..self }
    }

    /// Estimated seconds of reading the operand and writing its copy. 0 if it was packed
    /// beforehand.
    pub(super) fn seconds(&self, caps: &Caps) -> f64 {
        if self.from != Role::Packed {
            return 0.0;
        }
        let rates = caps.rates();
        // An element of four bytes that becomes six is read twice.
        let read = if self.splits { 4.0 / 3.0 } else { 1.0 };
        let bytes = self.wanted.unwrap_or(1.0) * self.bytes as f64;
        (1.0 + read) * bytes / rates.bandwidth + rates.dispatch
    }

    /// Whether it holds weights in f32, four of them in [`VECTOR_BYTES`].
    pub(super) fn decodes_to_f32(&self) -> bool {
        self.vector == 4 && !self.loader.loads.contains(&Load::Packing)
    }

    /// The roles that the pass binds that packs an operand in a format.
    pub(super) fn roles(&self, role: Role, format: Format) -> Roles {
        let planes = role.planes().take(format.planes().len());
        let powers = self.powers.map(|_| role.powers());
        let numbers = (self.in_ranges || self.wanted.is_some()).then_some(Role::Offsets);
        planes.chain([Role::Packed]).chain(powers).chain(numbers).collect()
    }

    /// Bytes of the memory for packed operands up to its end.
    pub(super) fn end(&self) -> u64 {
        if self.from == Role::Packed { self.start + self.bytes } else { 0 }
    }

    /// First element, stride of rows or slabs, and batch stride of the packed operand, counted from
    /// where it is bound.
    pub(super) fn place(&self) -> [u32; 3] {
        let batch_stride = if self.entries == 1 { 0 } else { self.lines * self.width };
        let stride = if self.in_slabs { SLAB * self.lines } else { self.width };
        [0, stride as u32, batch_stride as u32]
    }

    /// Bytes without the powers.
    pub(super) fn elements_bytes(&self) -> u64 {
        self.entries * self.lines * self.width * VECTOR_BYTES / self.vector
    }

    /// The powers in the memory for packed operands: their first byte, and how many bytes they
    /// take.
    pub(super) fn powers_place(&self) -> Option<[u64; 2]> {
        self.powers.map(|powers| [self.start + powers, self.bytes - powers])
    }
}
