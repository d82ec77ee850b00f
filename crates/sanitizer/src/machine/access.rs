//! Loads, stores and atomics on memory that invocations share, with their checks and counts.

use super::cost;
use super::events::Event;
use super::mask::Mask;
use super::pages::Toucher;
use super::shadow::{Stamp, Touch};
use super::tally::Count;
use super::worker::Worker;
use crate::program::{AtomicFunction, OUTSIDE, Op, Pointer, Reg, SiteId, Space, Ty};
use crate::report::Access;
use std::mem::take;

impl Worker<'_> {
    pub(super) fn memory_operation(&mut self, op: &Op, site: SiteId) {
        match op {
            Op::Load { dst, pointer, ty, count } => {
                self.load(*dst, pointer, *ty, *count, Touch::Read, site)
            }
            Op::AtomicLoad { dst, pointer, ty } => {
                self.load(*dst, pointer, *ty, 1, Touch::AtomicRead, site)
            }
            Op::Store { src, pointer, ty } => self.store(src, pointer, *ty, Touch::Write, site),
            Op::AtomicStore { src, pointer, ty } => {
                let src = [*src, *src + 1];
                self.store(&src[..ty.planes() as usize], pointer, *ty, Touch::AtomicWrite, site);
            }
            Op::Atomic { f, ty, dst, pointer, value, compare, exchanged } => {
                self.atomic(*f, *ty, *dst, pointer, *value, compare.zip(*exchanged), site);
            }
            other => self.subgroup_operation(other, site),
        }
    }

    /// The byte that an invocation's pointer points to, unless one of its indices is out of bounds.
    fn address(&mut self, pointer: &Pointer, lane: usize, touch: Touch) -> Option<u32> {
        let dynamic = pointer.dynamic.map_or(0, |reg| self.plane(reg)[lane]);
        if dynamic == OUTSIDE {
            self.events.push((lane as u32, Event::Outside { checks: pointer.checks, touch }));
            return None;
        }
        Some(pointer.offset + dynamic)
    }

    fn load(
        &mut self,
        dst: Reg,
        pointer: &Pointer,
        ty: Ty,
        count: u32,
        touch: Touch,
        site: SiteId,
    ) {
        let global = &self.program.globals[pointer.global as usize];
        let active = self.active;
        let (size, planes) = (ty.bytes(), count * ty.planes());
        let part = size.min(4);
        self.count(pointer.global, &active, count * size, touch);
        if global.space == Space::Uniform && pointer.dynamic.is_none() {
            for plane in 0..planes {
                let value = self.extended(pointer.global, pointer.offset + plane * part, part, ty);
                self.regs[(dst + plane) as usize].fill(value);
            }
            if self.options.checks
                && let Some(lane) = active.lanes().next()
            {
                self.check(pointer.global, pointer.offset, count * size, touch, lane as u32, site);
            }
            return;
        }
        let mut out: [Vec<u32>; 8] = Default::default();
        for (out, reg) in out.iter_mut().zip(dst..dst + planes) {
            *out = take(&mut self.regs[reg as usize]);
        }
        self.scratch.clear();
        for lane in active.lanes() {
            let address = self.address(pointer, lane, touch);
            if let Some(address) = address {
                self.note(pointer.global, address, count * size, touch, lane as u32, site);
            }
            for (plane, out) in (0..planes).zip(&mut out) {
                out[lane] = match address {
                    Some(address) => {
                        self.extended(pointer.global, address + plane * part, part, ty)
                    }
                    None => 0,
                };
            }
        }
        for (out, reg) in out.iter_mut().zip(dst..dst + planes) {
            self.regs[reg as usize] = take(out);
        }
        self.cost(pointer.global, count * size, false);
    }

    /// A word, or a part of a word, as a register holds it.
    pub(super) fn extended(&self, global: u32, at: u32, bytes: u32, ty: Ty) -> u32 {
        let bits = self.memory(global).load(at, bytes);
        if ty == Ty::I16 { i32::from(bits as u16 as i16) as u32 } else { bits }
    }

    fn store(&mut self, src: &[Reg], pointer: &Pointer, ty: Ty, touch: Touch, site: SiteId) {
        let active = self.active;
        let part = ty.bytes().min(4);
        let bytes = part * src.len() as u32;
        self.count(pointer.global, &active, bytes, touch);
        self.scratch.clear();
        for lane in active.lanes() {
            let Some(address) = self.address(pointer, lane, touch) else { continue };
            self.note(pointer.global, address, bytes, touch, lane as u32, site);
            for (plane, &reg) in (0..).zip(src) {
                let value = self.plane(reg)[lane];
                self.memory(pointer.global).store(address + plane * part, part, value);
            }
        }
        self.cost(pointer.global, bytes, true);
    }

    #[allow(clippy::too_many_arguments)]
    fn atomic(
        &mut self,
        f: AtomicFunction,
        ty: Ty,
        dst: Option<Reg>,
        pointer: &Pointer,
        value: Reg,
        comparison: Option<(Reg, Reg)>,
        site: SiteId,
    ) {
        let active = self.active;
        // One read and one write, but one atomic operation.
        self.count(pointer.global, &active, ty.bytes(), Touch::Read);
        self.count(pointer.global, &active, ty.bytes(), Touch::AtomicWrite);
        self.scratch.clear();
        for lane in active.lanes() {
            let address = self.address(pointer, lane, Touch::AtomicWrite);
            let read = |worker: &Self, reg: Reg| {
                let high = if ty.is_wide() { worker.plane(reg + 1)[lane] } else { 0 };
                u64::from(worker.plane(reg)[lane]) | u64::from(high) << 32
            };
            let operand = read(self, value);
            let expected = comparison.map(|(reg, _)| read(self, reg));
            let old = match address {
                Some(address) => {
                    self.uninitialised(pointer.global, address, ty.bytes(), lane as u32);
                    let new = |old: u64| match (f, expected) {
                        (AtomicFunction::Combine(f), _) => {
                            super::arith::scalar(f, ty, old, operand)
                        }
                        (AtomicFunction::CompareExchange, Some(expected)) if old != expected => old,
                        _ => operand,
                    };
                    let old = self.replace(pointer.global, address, ty, new);
                    // A comparison that fails writes nothing.
                    let failed = f == AtomicFunction::CompareExchange && Some(old) != expected;
                    let touch = if failed { Touch::AtomicRead } else { Touch::AtomicWrite };
                    self.note(pointer.global, address, ty.bytes(), touch, lane as u32, site);
                    old
                }
                None => 0,
            };
            if let Some(dst) = dst {
                self.regs[dst as usize][lane] = old as u32;
                if ty.is_wide() {
                    self.regs[dst as usize + 1][lane] = (old >> 32) as u32;
                }
            }
            if let Some((_, exchanged)) = comparison {
                self.regs[exchanged as usize][lane] =
                    u32::from(Some(old) == expected && address.is_some());
            }
        }
        self.cost(pointer.global, ty.bytes(), false);
        // In storage memory the old value travels back, too; in workgroup memory it is one
        // instruction.
        if self.program.globals[pointer.global as usize].space == Space::Storage {
            self.cost(pointer.global, ty.bytes(), true);
        }
    }

    fn replace(&self, global: u32, at: u32, ty: Ty, new: impl Fn(u64) -> u64) -> u64 {
        let memory = self.memory(global);
        if !ty.is_wide() {
            return u64::from(memory.update(at, |old| new(u64::from(old)) as u32));
        }
        // Memory has no 64-bit words, so only one such atomic runs at a time, in all workgroups.
        let _guard = self.resources.wide_atomics.lock();
        let old = u64::from(memory.load(at, 4)) | u64::from(memory.load(at + 4, 4)) << 32;
        let new = new(old);
        memory.store(at, 4, new as u32);
        memory.store(at + 4, 4, (new >> 32) as u32);
        old
    }

    fn count(&mut self, global: u32, mask: &Mask, bytes: u32, touch: Touch) {
        let (accesses, sizes) = match (self.program.globals[global as usize].space, touch.writes())
        {
            (Space::Uniform, _) => (Count::UniformReads, None),
            (Space::Storage, false) => (Count::GlobalReads, Some(Count::GlobalReadBytes)),
            (Space::Storage, true) => (Count::GlobalWrites, Some(Count::GlobalWriteBytes)),
            (Space::Workgroup, false) => (Count::SharedReads, Some(Count::SharedReadBytes)),
            (Space::Workgroup, true) => (Count::SharedWrites, Some(Count::SharedWriteBytes)),
        };
        self.tally.add(accesses, mask, 1);
        if let Some(sizes) = sizes {
            self.tally.add(sizes, mask, u64::from(bytes));
        }
        if touch.is_atomic() {
            self.tally.add(Count::Atomics, mask, 1);
        }
    }

    /// Counts transactions or bank conflicts of the collected addresses.
    fn cost(&mut self, global: u32, bytes: u32, write: bool) {
        let Some(model) = self.options.costs else { return };
        let size = self.options.subgroup_size;
        match self.program.globals[global as usize].space {
            Space::Workgroup => {
                self.tally.bank_conflicts +=
                    cost::bank_conflicts(&self.scratch, bytes, size, model.banks)
            }
            Space::Storage => {
                let count = cost::transactions(&self.scratch, bytes, size, model.segment_bytes);
                let counter = if write {
                    &mut self.tally.write_transactions
                } else {
                    &mut self.tally.read_transactions
                };
                *counter += count;
            }
            Space::Uniform => {}
        }
    }

    /// Records one access and checks it.
    pub(super) fn note(
        &mut self,
        global: u32,
        at: u32,
        bytes: u32,
        touch: Touch,
        lane: u32,
        site: SiteId,
    ) {
        if self.options.costs.is_some() {
            self.scratch.push((lane, at));
        }
        if self.options.trace {
            self.keep_trace(global, at, bytes, touch, lane);
        }
        if self.options.checks {
            self.check(global, at, bytes, touch, lane, site);
        }
    }

    fn keep_trace(&mut self, global: u32, at: u32, bytes: u32, touch: Touch, lane: u32) {
        let variable = &self.program.globals[global as usize];
        if variable.space == Space::Uniform {
            return;
        }
        let access = |write| Access {
            variable: variable.name.clone(),
            workgroup_memory: variable.space == Space::Workgroup,
            offset: at,
            bytes,
            write,
            place: self.place(lane),
        };
        let (read, write) = (touch != Touch::Write, touch.writes());
        let accesses = [read.then(|| access(false)), write.then(|| access(true))];
        self.trace.extend(accesses.into_iter().flatten());
    }

    /// Checks for accesses outside what the caller declared, memory without a value, and races.
    fn check(&mut self, global: u32, at: u32, bytes: u32, touch: Touch, lane: u32, site: SiteId) {
        let variable = &self.program.globals[global as usize];
        let granule = variable.granule;
        if let Some(logical) = &self.resources.logical[global as usize]
            && let Some(wrong) =
                (at >> granule..=(at + bytes - 1) >> granule).find(|&at| !logical.contains(at))
        {
            self.events.push((lane, Event::OutsideRange { global, at: wrong << granule, touch }));
        }
        if !touch.writes() {
            self.uninitialised(global, at, bytes, lane);
        }
        let subgroup = self.options.subgroup_size;
        let stamp = |epoch: u32, worker: &Self| Stamp {
            epoch,
            sub_epoch: worker.sub_epochs[(lane / subgroup) as usize],
            lane,
            site,
            writes: touch.writes(),
            cooperative: worker.cooperative,
        };
        match variable.space {
            Space::Workgroup => {
                let now = stamp(self.epoch, self);
                for location in at >> granule..=(at + bytes - 1) >> granule {
                    let cell = &mut self.shared_cells[global as usize][location as usize];
                    if let Some(before) = cell.touch(touch, now, subgroup) {
                        let at = location << granule;
                        self.events.push((lane, Event::Race { global, at, touch, before }));
                    }
                    if touch.writes() {
                        self.shared_written[global as usize].insert(location);
                    }
                }
            }
            Space::Storage if variable.writable => {
                let now = stamp(self.storage_epoch, self);
                let workgroup = self.workgroup_index;
                for location in at >> granule..=(at + bytes - 1) >> granule {
                    let (cell, summary) = self.pages[global as usize].cell(location);
                    summary[touch as usize].get_or_insert(Toucher { workgroup, lane, site });
                    if let Some(before) = cell.touch(touch, now, subgroup) {
                        let at = location << granule;
                        self.events.push((lane, Event::Race { global, at, touch, before }));
                    }
                }
            }
            _ => {}
        }
    }

    /// Checks for reads of memory that nobody has written.
    fn uninitialised(&mut self, global: u32, at: u32, bytes: u32, lane: u32) {
        if !self.options.checks {
            return;
        }
        let variable = &self.program.globals[global as usize];
        let mut locations = at >> variable.granule..=(at + bytes - 1) >> variable.granule;
        let wrong = match variable.space {
            Space::Workgroup if !self.options.zero_init.workgroup => {
                locations.find(|&location| !self.shared_written[global as usize].contains(location))
            }
            Space::Storage if self.resources.poisoned[global as usize] => {
                locations.find(|&location| !self.pages[global as usize].written(location))
            }
            _ => None,
        };
        if let Some(location) = wrong {
            self.events
                .push((lane, Event::Uninitialised { global, at: location << variable.granule }));
        }
    }
}
