//! Operations: arithmetic on planes, and the invocations' own variables.

use super::arith;
use super::events::Event;
use super::mask::Mask;
use super::shadow::Touch;
use super::worker::Worker;
use crate::program::{Binary, Inst, Len, OUTSIDE, Op, Packing, Reg, Slot, Ty, Unary};
use std::mem::take;

/// The planes of an operand.
fn planes<'a>(worker: &'a Worker<'_>, reg: Reg, ty: Ty) -> [&'a [u32]; 2] {
    [worker.plane(reg), if ty.is_wide() { worker.plane(reg + 1) } else { &[] }]
}

impl Worker<'_> {
    pub(super) fn operation(&mut self, inst: &Inst) {
        match &inst.op {
            Op::Unary { f, ty, dst, a } => {
                self.compute(*dst, of_unary(*f, *ty), |worker, out| {
                    arith::unary(*f, *ty, out, planes(worker, *a, *ty))
                });
                if self.options.f16_overflow && *f == Unary::QuantizeToF16 {
                    self.overflow(Ty::F32, *dst, &[*a]);
                } else {
                    self.half_overflow(*ty, *dst, &[*a]);
                }
            }
            Op::Binary { f, ty, dst, a, b } => {
                self.faults(*f, *ty, *b);
                // A shift's amount is always u32, and ldexp's exponent i32, whatever the type of
                // the other operand.
                let narrow = matches!(f, Binary::ShiftLeft | Binary::ShiftRight | Binary::Ldexp);
                let b_ty = if narrow { Ty::U32 } else { *ty };
                self.compute(*dst, if f.compares() { Ty::Bool } else { *ty }, |worker, out| {
                    arith::binary(*f, *ty, out, planes(worker, *a, *ty), planes(worker, *b, b_ty));
                });
                if !f.compares() {
                    self.half_overflow(*ty, *dst, &[*a, *b]);
                }
            }
            Op::Ternary { f, ty, dst, a, b, c } => {
                use crate::program::Ternary::{ExtractBits, Select};
                let b_ty = if *f == ExtractBits { Ty::U32 } else { *ty };
                let c_ty = if matches!(f, ExtractBits | Select) { Ty::U32 } else { *ty };
                self.compute(*dst, *ty, |worker, out| {
                    let operands = [
                        planes(worker, *a, *ty),
                        planes(worker, *b, b_ty),
                        planes(worker, *c, c_ty),
                    ];
                    arith::ternary(*f, *ty, out, operands[0], operands[1], operands[2]);
                });
                self.half_overflow(*ty, *dst, &[*a, *b, *c]);
            }
            Op::InsertBits { ty, dst, x, new, offset, count } => {
                self.compute(*dst, *ty, |worker, out| {
                    let [offset, count] = [offset, count].map(|reg| planes(worker, *reg, Ty::U32));
                    arith::insert_bits(
                        *ty,
                        out,
                        planes(worker, *x, *ty),
                        planes(worker, *new, *ty),
                        offset,
                        count,
                    );
                });
            }
            Op::Convert { from, to, dst, a } => {
                self.compute(*dst, *to, |worker, out| {
                    arith::convert(*from, *to, out, planes(worker, *a, *from))
                });
                if self.options.f16_overflow && *to == Ty::F16 && *from != Ty::F16 {
                    self.conversion_overflow(*from, *dst, *a);
                }
            }
            Op::Pack { f, dst, src } => self.pack(*f, dst, src),
            Op::Copy { dst, src } => {
                let mut out = take(&mut self.regs[*dst as usize]);
                out.copy_from_slice(self.plane(*src));
                self.regs[*dst as usize] = out;
            }
            Op::Index { dst, base, index, signed, len, stride } => {
                self.index(*dst, *base, *index, *signed, *len, *stride);
            }
            Op::Gather { dst, sources, at, checks } => self.gather(*dst, sources, *at, *checks),
            Op::LoadLocal { dst, slot, planes } => self.load_local(*dst, slot, *planes),
            Op::StoreLocal { src, slot } => self.store_local(src, slot),
            Op::Declare { local } => {
                let local = &self.program.locals[*local as usize];
                let active = self.active;
                for plane in (local.plane..local.plane + local.planes).map(|plane| plane as usize) {
                    let undefined = self.undefined[plane];
                    self.undefined[plane] = if local.tracked {
                        undefined.or(&active)
                    } else {
                        undefined.without(&active)
                    };
                    // Not zeros, which might hide that nobody wrote the variable.
                    let value = if local.tracked { u32::MAX } else { 0 };
                    active.lanes().for_each(|lane| self.vars[plane][lane] = value);
                }
            }
            Op::ArrayLength { dst, len } => {
                let len = self.length(*len);
                self.regs[*dst as usize].fill(len);
            }
            Op::Barrier { flags, uniform_load } => self.barrier(*flags, *uniform_load),
            Op::Uniform { reg } => {
                let values = self.plane(*reg);
                let mut lanes = self.active.lanes();
                if let Some(first) = lanes.next()
                    && let Some(other) = lanes.find(|&lane| values[lane] != values[first])
                {
                    self.events
                        .push((first as u32, Event::UnequalPointers { other: other as u32 }));
                }
            }
            other => self.memory_operation(other, inst.site),
        }
        self.settle(inst.site);
    }

    /// Takes the result's planes out, fills them, and puts them back.
    fn compute(&mut self, dst: Reg, ty: Ty, fill: impl FnOnce(&Self, [&mut [u32]; 2])) {
        let mut low = take(&mut self.regs[dst as usize]);
        let mut high =
            if ty.is_wide() { take(&mut self.regs[dst as usize + 1]) } else { Vec::new() };
        fill(self, [&mut low, &mut high]);
        self.regs[dst as usize] = low;
        if ty.is_wide() {
            self.regs[dst as usize + 1] = high;
        }
    }

    /// Finds divisions by zero and shifts that are too large.
    fn faults(&mut self, f: Binary, ty: Ty, b: Reg) {
        let remainder = f == Binary::Modulo;
        let event = match f {
            Binary::Divide | Binary::Modulo if !ty.is_float() => {
                Event::DivisionByZero { remainder }
            }
            Binary::ShiftLeft | Binary::ShiftRight => {
                Event::ShiftTooLarge { amount: 0, bits: ty.bits() }
            }
            _ => return,
        };
        let active = self.active;
        let low = self.plane(b);
        let mut found = Vec::new();
        match event {
            Event::ShiftTooLarge { bits, .. } => {
                if low.iter().any(|&amount| amount >= bits) {
                    let wrong = active.lanes().filter(|&lane| low[lane] >= bits);
                    found.extend(wrong.map(|lane| {
                        (lane as u32, Event::ShiftTooLarge { amount: low[lane], bits })
                    }));
                }
            }
            _ => {
                if low.contains(&0) {
                    let zero = |lane: &usize| {
                        low[*lane] == 0 && (!ty.is_wide() || self.plane(b + 1)[*lane] == 0)
                    };
                    found.extend(active.lanes().filter(zero).map(|lane| (lane as u32, event)));
                }
            }
        }
        self.events.append(&mut found);
    }

    /// Finds infinite f16 results of finite operands.
    fn half_overflow(&mut self, ty: Ty, dst: Reg, operands: &[Reg]) {
        if self.options.f16_overflow && ty == Ty::F16 {
            self.overflow(ty, dst, operands);
        }
    }

    fn overflow(&mut self, ty: Ty, dst: Reg, operands: &[Reg]) {
        let (sign, infinity) =
            if ty == Ty::F16 { (1 << 15, 0x7C00) } else { (1 << 31, 0x7F80_0000) };
        let finite = |bits: u32| bits & infinity != infinity;
        let mut found = Vec::new();
        for lane in self.active.lanes() {
            if self.plane(dst)[lane] & !sign == infinity
                && operands.iter().all(|&reg| finite(self.plane(reg)[lane]))
            {
                found.push((lane as u32, Event::F16Overflow { value: None }));
            }
        }
        self.events.append(&mut found);
    }

    fn conversion_overflow(&mut self, from: Ty, dst: Reg, a: Reg) {
        let mut found = Vec::new();
        for lane in self.active.lanes() {
            let low = self.plane(a)[lane];
            let value = match from {
                Ty::F32 => f32::from_bits(low),
                Ty::F64 => {
                    f64::from_bits(u64::from(low) | u64::from(self.plane(a + 1)[lane]) << 32) as f32
                }
                Ty::I32 => low as i32 as f32,
                _ => low as f32,
            };
            let finite = !(from.is_float() && (value.is_nan() || value.is_infinite()));
            if finite && f16_infinite(self.plane(dst)[lane]) {
                found.push((lane as u32, Event::F16Overflow { value: Some(value) }));
            }
        }
        self.events.append(&mut found);
    }

    fn pack(&mut self, f: Packing, dst: &[Reg], src: &[Reg]) {
        let mut outs: Vec<Vec<u32>> =
            dst.iter().map(|&reg| take(&mut self.regs[reg as usize])).collect();
        {
            let sources: Vec<&[u32]> = src.iter().map(|&reg| self.plane(reg)).collect();
            let mut out: Vec<&mut [u32]> = outs.iter_mut().map(Vec::as_mut_slice).collect();
            arith::pack(f, &mut out, &sources);
        }
        for (&reg, out) in dst.iter().zip(outs) {
            self.regs[reg as usize] = out;
        }
        if self.options.f16_overflow && f == Packing::Pack2x16float {
            let mut found = Vec::new();
            for lane in self.active.lanes() {
                let packed = self.plane(dst[0])[lane];
                for (half, &reg) in [packed & 0xFFFF, packed >> 16].into_iter().zip(src) {
                    let value = f32::from_bits(self.plane(reg)[lane]);
                    if f16_infinite(half) && value.is_finite() {
                        found.push((lane as u32, Event::F16Overflow { value: Some(value) }));
                    }
                }
            }
            self.events.append(&mut found);
        }
    }

    fn index(
        &mut self,
        dst: Reg,
        base: Option<Reg>,
        index: Reg,
        signed: bool,
        len: Len,
        stride: u32,
    ) {
        let len = self.length(len);
        let limit = if signed { len.min(1 << 31) } else { len };
        let mut out = take(&mut self.regs[dst as usize]);
        // Negative numbers are large ones when read as unsigned, so one comparison does for both.
        for (out, &index) in out.iter_mut().zip(self.plane(index)) {
            *out = if index < limit { index.wrapping_mul(stride) } else { OUTSIDE };
        }
        if let Some(base) = base {
            for (out, &base) in out.iter_mut().zip(self.plane(base)) {
                *out = if *out == OUTSIDE || base == OUTSIDE {
                    OUTSIDE
                } else {
                    out.wrapping_add(base)
                };
            }
        }
        self.regs[dst as usize] = out;
    }

    /// The value that all of `values` have, if they agree.
    fn uniform(values: &[u32]) -> Option<u32> {
        let first = *values.first()?;
        values.iter().all(|&value| value == first).then_some(first)
    }

    fn gather(&mut self, dst: Reg, sources: &[Reg], at: Reg, checks: (u32, u32)) {
        let mut out = take(&mut self.regs[dst as usize]);
        let at = self.plane(at);
        match Self::uniform(at) {
            Some(index) if index != OUTSIDE => {
                out.copy_from_slice(self.plane(sources[index as usize]))
            }
            _ => {
                let mut found = Vec::new();
                for lane in 0..self.lanes {
                    out[lane] = match at[lane] {
                        OUTSIDE => {
                            if self.active.contains(lane) {
                                found.push((
                                    lane as u32,
                                    Event::Outside { checks, touch: Touch::Read },
                                ));
                            }
                            0
                        }
                        index => self.plane(sources[index as usize])[lane],
                    };
                }
                self.events.append(&mut found);
            }
        }
        self.regs[dst as usize] = out;
    }

    fn load_local(&mut self, dst: Reg, slot: &Slot, planes: u32) {
        let offset = slot.dynamic.map(|reg| (reg, Self::uniform(self.plane(reg))));
        for part in 0..planes {
            let mut out = take(&mut self.regs[(dst + part) as usize]);
            let first = slot.plane + part;
            match offset {
                None => {
                    out.copy_from_slice(&self.vars[first as usize]);
                    self.defined(slot, first, self.active);
                }
                Some((_, Some(offset))) if offset != OUTSIDE => {
                    out.copy_from_slice(&self.vars[(first + offset) as usize]);
                    self.defined(slot, first + offset, self.active);
                }
                Some((reg, _)) => {
                    for lane in self.active.lanes() {
                        let offset = self.plane(reg)[lane];
                        if offset == OUTSIDE {
                            out[lane] = 0;
                            if part == 0 {
                                let event =
                                    Event::Outside { checks: slot.checks, touch: Touch::Read };
                                self.events.push((lane as u32, event));
                            }
                        } else {
                            out[lane] = self.vars[(first + offset) as usize][lane];
                            let mut one = Mask::NONE;
                            one.insert(lane);
                            self.defined(slot, first + offset, one);
                        }
                    }
                }
            }
            self.regs[(dst + part) as usize] = out;
        }
    }

    /// Finds reads of a plane that some invocations have not written.
    fn defined(&mut self, slot: &Slot, plane: u32, lanes: Mask) {
        let local = &self.program.locals[slot.local as usize];
        if local.tracked {
            let wrong = self.undefined[plane as usize].and(&lanes);
            let event = Event::UninitialisedLocal { local: slot.local, plane: plane - local.plane };
            self.events.extend(wrong.lanes().map(|lane| (lane as u32, event)));
        }
    }

    fn store_local(&mut self, src: &[Reg], slot: &Slot) {
        let offset = slot.dynamic.map(|reg| (reg, Self::uniform(self.plane(reg))));
        let tracked = self.program.locals[slot.local as usize].tracked;
        for (part, &src) in (0..).zip(src) {
            let first = slot.plane + part;
            let plane = match offset {
                None => first,
                Some((_, Some(offset))) if offset != OUTSIDE => first + offset,
                Some((reg, _)) => {
                    for lane in self.active.lanes() {
                        let offset = self.plane(reg)[lane];
                        if offset == OUTSIDE {
                            if part == 0 {
                                let event =
                                    Event::Outside { checks: slot.checks, touch: Touch::Write };
                                self.events.push((lane as u32, event));
                            }
                        } else {
                            let plane = (first + offset) as usize;
                            self.vars[plane][lane] = self.plane(src)[lane];
                            self.undefined[plane].remove(lane);
                        }
                    }
                    continue;
                }
            };
            let mut out = take(&mut self.vars[plane as usize]);
            let values = self.plane(src);
            if self.active == self.full {
                out.copy_from_slice(values);
            } else {
                self.active.lanes().for_each(|lane| out[lane] = values[lane]);
            }
            self.vars[plane as usize] = out;
            if tracked {
                self.undefined[plane as usize] =
                    self.undefined[plane as usize].without(&self.active);
            }
        }
    }
}

/// The type of a function's result.
fn of_unary(f: Unary, ty: Ty) -> Ty {
    match f {
        Unary::IsNan | Unary::IsInf => Ty::Bool,
        Unary::FrexpExponent => Ty::I32,
        _ => ty,
    }
}

fn f16_infinite(bits: u32) -> bool {
    bits & 0x7FFF == 0x7C00
}
