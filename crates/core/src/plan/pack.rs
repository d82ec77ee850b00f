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
use super::packing::{Packing, QUAD};
use super::setup::Setup;
use super::side::Side;
use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::kernel::{Constant, Pack, Params, Role, SUBGROUP};
use crate::problem::Grouping;

/// Bytes of a power of two, as two factors.
const POWER_BYTES: u64 = 4;

/// Vectors that an invocation loads at a time to find powers of two (`AHEAD` in powers.wgsl).
const LOADS: u64 = 4;

/// Workgroups that fill a device, in a pass that divides by powers of two.
const STRIPS: u64 = 1024;

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

fn nothing_packs() -> Error {
    Error::DeviceLimit("nothing packs operands".into())
}

impl Packing {
    /// The file that packs, and how its workgroups share the operand.
    fn work(&self, side: &Side, pack: &Pack, caps: &Caps) -> Result<Work> {
        if self.powers.is_some() {
            let file = if self.splits { pack.split } else { pack.scale };
            // For a number of invocations: the strip, how many stand side by side along the
            // storage, how many share a line, and the bytes of workgroup memory.
            let shared = |threads: u32| {
                // An invocation has one vector of a line, or as many as it loads at a time if
                // enough workgroups are left to fill a device.
                let vectors = side.k.div_ceil(self.vector).next_power_of_two();
                let filled = (side.extent / STRIPS).clamp(1, LOADS).next_power_of_two();
                let lines = (u64::from(threads) * filled).div_ceil(vectors);
                let lines = lines.min(pack.strip.into()).min(threads.into()) as u32;
                let strip = if side.along_k { lines } else { pack.strip };
                let abreast =
                    if side.along_k { threads / strip } else { strip / self.vector as u32 };
                let shares = if side.along_k { abreast } else { threads / abreast };
                (strip, abreast, shares, 4 * strip * (shares + 1))
            };
            let most = pack.threads[usize::from(!side.along_k)];
            let fits = |threads: &u32| {
                *threads <= caps.max_threads() && shared(*threads).3 <= caps.max_workgroup_bytes
            };
            let halves = std::iter::successors(Some(most), |threads| Some(threads / 2));
            let threads = halves.take_while(|threads| *threads >= SUBGROUP).find(fits);
            let threads = threads.ok_or_else(nothing_packs)?;
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
            let powers = Some((pack.powers, powers));
            return Ok(Work {
                file,
                constants: order.into_iter().collect(),
                powers,
                tiles,
                threads,
                workgroup_bytes,
            });
        }
        let [lines, vectors] = caps.tile(pack.tile, 1);
        let constants =
            vec![("LINES", lines), ("VECTORS", vectors), ("VECTOR", self.vector as u32)];
        let tiles = [
            self.lines.div_ceil(lines.into()),
            (self.width / self.vector).div_ceil(vectors.into()),
        ];
        Ok(Work {
            file: pack.file,
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
        let pack = kit.pack.as_ref().ok_or_else(nothing_packs)?;
        let work = self.work(side, pack, caps)?;
        let [tiles_m, tiles_n] = work.tiles;
        let entries = if self.powers.is_some() { self.sharing } else { self.entries };
        let workgroups = entries * tiles_m * tiles_n;
        let allowed = u64::from(caps.max_workgroups).pow(2);
        if workgroups > allowed {
            return Err(Error::DeviceLimit(format!(
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
        if self.powers.is_none() && self.decodes_to_f32() {
            builder.part(pack.floats, Some(side.name), Vec::new());
        }
        builder.axes(side.name, side.along_k);
        builder.slabs(pack, side.name, Some(self));
        builder.bases(setup.problem.grouping);
        if let Some(rows) = setup.scheduling.schedule.wanted.filter(|_| self.wanted.is_some()) {
            builder.part(rows, None, Vec::new());
        }
        if self.wanted.is_some() || self.in_ranges {
            builder.groups(whole, None);
        }
        if let Some((file, constants)) = work.powers {
            for file in setup.scheduling.schedule.powers {
                builder.part(file, None, Vec::new());
            }
            builder.part(file, Some(side.name), constants);
        }
        builder.part(work.file, Some(side.name), work.constants);
        builder.packed(Role::Packed, true, self.from, [self.start, self.elements_bytes()], 16);
        if let Some(place) = self.powers_place() {
            builder.packed(side.role.powers(), true, self.from, place, POWER_BYTES);
        }
        Ok(builder.finish(Some(self.roles(side.role, side.operand.format)), workgroups, caps))
    }
}
