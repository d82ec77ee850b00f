//! Packing: an operand that wide loads do not fit is copied to where they do, in a pass before the
//! product.
//!
//! Mainloops of matrix units load 16 bytes at a time and whole steps along K. With rows 4095
//! elements apart, or a K of 4095, they would have to load single elements, several times slower;
//! to read and write the operand once costs a few hundredths of the product's time.
//!
//! If an operand has a wider range than the unit's type, its rows of A, or columns of B, are
//! divided by powers of two on the way ([`Unit::scales`](crate::kernel::Unit)). The powers lie
//! behind the copy. An operand of f32 is also split in two terms, so that its copy has three
//! segments along K.

use super::Pass;
use super::builder::Builder;
use super::setup::Setup;
use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::kernel::{
    Constant, Kit, Load, OperandDef, Params, Reject, Role, SUBGROUP, Unit, segment,
};
use crate::problem::{Copied, Format, Grouping, Operand, Problem};

/// Bytes that mainloops of matrix units load at a time.
const VECTOR_BYTES: u64 = 16;

/// Bytes of a power of two, as two factors.
const POWER_BYTES: u64 = 4;

/// Powers of two in a vector. The powers of an entry fill whole vectors.
const QUAD: u64 = 4;

/// Vectors that an invocation loads at a time to find powers of two (`AHEAD` in powers.wgsl).
const LOADS: u64 = 4;

/// Workgroups that fill a device, in a pass that divides by powers of two.
const STRIPS: u64 = 1024;

/// Packed operands start at multiples of this many bytes, which suit every device's bindings.
pub(super) const ALIGNMENT: u64 = 256;

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
    /// Its copy, if it was packed beforehand.
    pub(super) copy: Option<Copied>,
    /// Whether its lines are found by index.
    pub(super) gathered: bool,
    /// Whether entries are ranges of K that end anywhere.
    pub(super) in_ranges: bool,
    /// Whether entries are products of a list.
    pub(super) listed: bool,
    /// The share of an entry's rows that the device is expected to ask for. Absent: all rows are
    /// packed.
    pub(super) wanted: Option<f64>,
    /// Whether its product has many entries of B. Copies along K then lie in slabs.
    many: bool,
}

impl Side {
    pub(super) fn both(problem: &Problem) -> [Side; 2] {
        let Problem { m, n, k, a, b, copies, .. } = *problem;
        let in_ranges = !problem.grouping.has_whole_k();
        let listed = problem.grouping.is_listed();
        let many = problem.entries() > 1;
        // An index may name any row, and entries that share A want unlike ones.
        let all = problem.gathered.is_some() || (a.is_shared() && problem.batch > 1);
        let masked = matches!(problem.grouping, Grouping::Masked { .. }) && !all;
        // Row strides of a list are multiples of `ld`, so there is room to round sizes up.
        let whole = |size: u64, operand: Operand| match listed {
            true => size.next_multiple_of(operand.ld),
            false => size,
        };
        [
            Side {
                name: "a",
                role: Role::A,
                operand: a,
                extent: whole(m, a),
                k: whole(k, a),
                entries: problem.batch,
                along_k: !a.transposed,
                copy: copies[0],
                gathered: problem.gathered.is_some(),
                in_ranges,
                listed,
                wanted: masked.then(|| problem.grouping.expected_rows(m) / m.max(1) as f64),
                many,
            },
            Side {
                name: "b",
                role: Role::B,
                operand: b,
                extent: whole(n, b),
                k: whole(k, b),
                entries: problem.entries(),
                along_k: b.transposed,
                copy: copies[1],
                gathered: false,
                in_ranges,
                listed,
                wanted: None,
                many,
            },
        ]
    }

    /// The operand that a copy was made of.
    pub(super) fn whole(&self, Copied { entries, extent, k }: Copied) -> Self {
        Side { extent, k, entries, wanted: None, many: entries > 1, ..*self }
    }
}

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
    loader: &'static OperandDef,
    /// Elements in `VECTOR_BYTES`.
    vector: u64,
    entries: u64,
    lines: u64,
    /// Elements of a line, zeros at its end included.
    width: u64,
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
    in_ranges: bool,
    /// The share of rows to pack ([`Side::wanted`]).
    wanted: Option<f64>,
    /// Whether elements are split in two terms.
    splits: bool,
    /// Whether it lies in slabs.
    in_slabs: bool,
}

/// How the workgroups of the pass share an entry of the operand.
struct Work {
    file: &'static str,
    constants: Vec<Constant>,
    /// The file that finds powers of two, if lines are divided.
    powers: Option<(&'static str, Vec<Constant>)>,
    tiles: [u64; 2],
    threads: u32,
    workgroup_bytes: u32,
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
    fn decodes_to_f32(&self) -> bool {
        self.vector == 4 && !self.loader.loads.contains(&Load::Packing)
    }

    /// Storage buffers of the pass that packs an operand in a format.
    pub(super) fn storage_buffers(&self, format: Format) -> u64 {
        if self.from != Role::Packed {
            return 0;
        }
        let grouped = self.in_ranges || self.wanted.is_some();
        let others = u64::from(self.powers.is_some()) + u64::from(grouped);
        format.planes().len() as u64 + 1 + others
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

    /// The file that packs, and how its workgroups share the operand.
    fn work(&self, side: &Side, kit: &Kit, caps: &Caps) -> Result<Work> {
        let none = || Error::NoKernel("nothing packs operands".into());
        if self.powers.is_some() {
            let file = if self.splits { kit.split } else { kit.scale }.ok_or_else(none)?;
            // For a number of invocations: the strip, how many stand side by side along the
            // storage, how many share a line, and the bytes of workgroup memory.
            let shared = |threads: u32| {
                // An invocation has one vector of a line, or as many as it loads at a time if
                // enough workgroups are left to fill a device.
                let vectors = side.k.div_ceil(self.vector).next_power_of_two();
                let filled = (side.extent / STRIPS).clamp(1, LOADS).next_power_of_two();
                let lines = (u64::from(threads) * filled).div_ceil(vectors);
                let lines = lines.min(kit.scale_strip.into()).min(threads.into()) as u32;
                let strip = if side.along_k { lines } else { kit.scale_strip };
                let abreast =
                    if side.along_k { threads / strip } else { strip / self.vector as u32 };
                let shares = if side.along_k { abreast } else { threads / abreast };
                (strip, abreast, shares, 4 * strip * (shares + 1))
            };
            let most = kit.scale_threads[usize::from(!side.along_k)];
            let fits = |threads: &u32| {
                *threads <= caps.max_threads() && shared(*threads).3 <= caps.max_workgroup_bytes
            };
            let halves = std::iter::successors(Some(most), |threads| Some(threads / 2));
            let threads =
                halves.take_while(|threads| *threads >= SUBGROUP).find(fits).ok_or_else(none)?;
            let (strip, abreast, shares, workgroup_bytes) = shared(threads);
            // A has its low terms first, B its high terms: low terms never meet.
            let order = self.splits.then_some(("LOW_FIRST", u32::from(side.role == Role::A)));
            let powers = vec![
                ("STRIP", strip),
                ("THREADS", threads),
                ("ABREAST", abreast),
                ("SHARES", shares),
                ("X_POWERS", side.role.powers().binding()),
            ];
            let tiles = [side.extent.next_multiple_of(QUAD).div_ceil(strip.into()), 1];
            let powers = Some((kit.powers.ok_or_else(none)?, powers));
            return Ok(Work {
                file,
                constants: order.into_iter().collect(),
                powers,
                tiles,
                threads,
                workgroup_bytes,
            });
        }
        let file = kit.pack.ok_or_else(none)?;
        let [lines, vectors] = caps.tile(kit.pack_tile, 1);
        let constants =
            vec![("LINES", lines), ("VECTORS", vectors), ("VECTOR", self.vector as u32)];
        let tiles = [
            self.lines.div_ceil(lines.into()),
            (self.width / self.vector).div_ceil(vectors.into()),
        ];
        Ok(Work {
            file,
            constants,
            powers: None,
            tiles,
            threads: lines * vectors,
            workgroup_bytes: 0,
        })
    }

    /// The pass that packs; `params` are the problem's, and `whole` groups the whole product.
    pub(super) fn pass(
        &self,
        side: &Side,
        caps: &Caps,
        params: Params,
        setup: &Setup,
        whole: Grouping,
    ) -> Result<Pass> {
        let kit = setup.kit;
        let work = self.work(side, kit, caps)?;
        let [tiles_m, tiles_n] = work.tiles;
        let entries = if self.powers.is_some() { self.sharing } else { self.entries };
        let workgroups = entries * tiles_m * tiles_n;
        let allowed = u64::from(caps.max_workgroups).pow(2);
        if workgroups > allowed {
            return Err(Error::NoKernel(format!(
                "packing needs {workgroups} workgroups, {allowed} allowed"
            )));
        }
        let params = Params {
            m: side.extent as u32,
            entries: entries as u32,
            c_ld: self.width as u32,
            c_batch: (self.lines * self.width) as u32,
            tiles_m: tiles_m as u32,
            tiles_n: tiles_n as u32,
            ..params
        };
        let label = format!("pack {}", side.name);
        let mut builder =
            Builder::new(label, params, work.threads, work.workgroup_bytes, (kit, setup.windows));
        builder.load(side.name, side.role, Some(self.loader), Some(&side.operand));
        if self.powers.is_some() {
            builder.eights(side.name, self.loader);
        } else if self.decodes_to_f32() {
            builder.part_if_any(kit.floats, Some(side.name));
        } else if !self.loader.loads.contains(&Load::Packing) {
            builder.eights(side.name, self.loader);
            builder.part_if_any(kit.words, Some(side.name));
        }
        builder.axes(side.name, side.along_k);
        builder.slabs(side.name, Some(self));
        builder.bases(setup.problem.grouping);
        let rows = self.wanted.map_or(kit.all_rows, |_| setup.schedule.wanted);
        builder.part_if_any(rows, None);
        if self.wanted.is_some() || self.in_ranges {
            builder.groups(whole, None);
        }
        if let Some((file, constants)) = work.powers {
            for file in setup.schedule.powers {
                builder.part(file, None, Vec::new());
            }
            builder.part(file, Some(side.name), constants);
        }
        builder.part(work.file, Some(side.name), work.constants);
        builder.packed(Role::Packed, true, self.from, [self.start, self.elements_bytes()], 16);
        if let Some(place) = self.powers_place() {
            builder.packed(side.role.powers(), true, self.from, place, POWER_BYTES);
        }
        Ok(builder.finish(workgroups, caps))
    }
}
