//! Operations among the invocations of a subgroup.

use super::arith::{self, to_odd};
use super::events::Event;
use super::shadow::Touch;
use super::worker::Worker;
use crate::program::{Binary, Collective, CoopShape, Lane, OUTSIDE, Op, Pointer, Reg, SiteId, Ty};
use std::ops::Range;

impl Worker<'_> {
    pub(super) fn subgroup_operation(&mut self, op: &Op, site: SiteId) {
        self.whole_subgroups();
        match op {
            Op::Ballot { dst, predicate } => self.ballot(*dst, *predicate),
            Op::Vote { all, dst, src } => {
                for (_, lanes) in self.subgroups() {
                    let mut values = lanes.iter().map(|&lane| self.plane(*src)[lane] != 0);
                    let vote =
                        if *all { values.all(|value| value) } else { values.any(|value| value) };
                    lanes.iter().for_each(|&lane| self.regs[*dst as usize][lane] = u32::from(vote));
                }
            }
            Op::Collective { f, ty, kind, dst, src } => self.collective(*f, *ty, *kind, *dst, *src),
            Op::Shuffle { lane, dst, src } => self.shuffle(*lane, dst, src),
            Op::CoopLoad { dst, shape, pointer, stride, row_major, step } => {
                self.coop(
                    *shape,
                    pointer,
                    (*stride, *row_major, *step),
                    Touch::Read,
                    site,
                    |worker, at, slot, lane| {
                        let value =
                            worker.extended(pointer.global, at, shape.ty.bytes().min(4), shape.ty);
                        let reg = (dst + slot * shape.ty.planes()) as usize;
                        worker.regs[reg][lane] = value;
                        if shape.ty.is_wide() {
                            worker.regs[reg + 1][lane] =
                                worker.extended(pointer.global, at + 4, 4, shape.ty);
                        }
                    },
                );
            }
            Op::CoopStore { src, shape, pointer, stride, row_major, step } => {
                self.coop(
                    *shape,
                    pointer,
                    (*stride, *row_major, *step),
                    Touch::Write,
                    site,
                    |worker, at, slot, lane| {
                        let planes = shape.ty.planes();
                        let part = shape.ty.bytes().min(4);
                        for plane in 0..planes {
                            let value = worker.plane(src[(slot * planes + plane) as usize])[lane];
                            worker.memory(pointer.global).store(at + 4 * plane, part, value);
                        }
                    },
                );
            }
            Op::CoopMultiplyAdd { dst, a, b, c, a_shape, b_shape, c_shape } => {
                self.multiply_add(*dst, [a, b, c], [*a_shape, *b_shape, *c_shape]);
            }
            // Every other operation is taken by `operation` and `memory_operation`.
            _ => {}
        }
    }

    /// All subgroups, each with its first lane and its active lanes.
    fn subgroups(&self) -> Vec<(usize, Vec<usize>)> {
        let size = self.options.subgroup_size as usize;
        let all: Vec<Range<usize>> = (0..self.lanes)
            .step_by(size)
            .map(|start| start..(start + size).min(self.lanes))
            .collect();
        all.into_iter()
            .map(|lanes| {
                (lanes.start, lanes.filter(|&lane| self.active.contains(lane)).collect::<Vec<_>>())
            })
            .filter(|(_, lanes)| !lanes.is_empty())
            .collect()
    }

    fn ballot(&mut self, dst: [Reg; 4], predicate: Option<Reg>) {
        for (start, lanes) in self.subgroups() {
            let mut words = [0u32; 4];
            for &lane in &lanes {
                if predicate.is_none_or(|reg| self.plane(reg)[lane] != 0) {
                    words[(lane - start) / 32] |= 1 << ((lane - start) % 32);
                }
            }
            for (reg, word) in dst.into_iter().zip(words) {
                lanes.iter().for_each(|&lane| self.regs[reg as usize][lane] = word);
            }
        }
    }

    fn wide(&self, reg: Reg, ty: Ty, lane: usize) -> u64 {
        let high = if ty.is_wide() { self.plane(reg + 1)[lane] } else { 0 };
        u64::from(self.plane(reg)[lane]) | u64::from(high) << 32
    }

    fn set_wide(&mut self, reg: Reg, ty: Ty, lane: usize, value: u64) {
        self.regs[reg as usize][lane] = value as u32;
        if ty.is_wide() {
            self.regs[reg as usize + 1][lane] = (value >> 32) as u32;
        }
    }

    /// Combines values in the order of the lanes; devices may add floats in another order.
    fn collective(&mut self, f: Binary, ty: Ty, kind: Collective, dst: Reg, src: Reg) {
        for (_, lanes) in self.subgroups() {
            let mut sum: Option<u64> = None;
            for &lane in &lanes {
                let value = self.wide(src, ty, lane);
                let before = sum;
                let with = before.map_or(value, |before| arith::scalar(f, ty, before, value));
                sum = Some(with);
                match kind {
                    Collective::InclusiveScan => self.set_wide(dst, ty, lane, with),
                    Collective::ExclusiveScan => {
                        self.set_wide(dst, ty, lane, before.unwrap_or(neutral(f, ty)))
                    }
                    Collective::Reduce => {}
                }
            }
            if let (Collective::Reduce, Some(sum)) = (kind, sum) {
                lanes.iter().for_each(|&lane| self.set_wide(dst, ty, lane, sum));
            }
        }
    }

    fn shuffle(&mut self, from: Lane, dst: &[Reg], src: &[Reg]) {
        let size = self.options.subgroup_size;
        for (start, lanes) in self.subgroups() {
            for &lane in &lanes {
                let own = (lane - start) as u32;
                let value = |reg: Reg| self.plane(reg)[lane];
                let source = match from {
                    Lane::First => (lanes[0] - start) as u32,
                    Lane::At(reg) => value(reg),
                    Lane::Down(reg) => own.wrapping_add(value(reg)),
                    Lane::Up(reg) => own.wrapping_sub(value(reg)),
                    Lane::Xor(reg) => own ^ value(reg),
                    Lane::Quad(reg) => own & !3 | value(reg) & 3,
                    Lane::QuadSwap(bits) => own ^ bits,
                };
                // A lane that does not exist or is not active has no defined value; the own value
                // stands for it.
                let source = start + if source < size { source as usize } else { own as usize };
                let source = if lanes.contains(&source) { source } else { lane };
                for (&dst, &src) in dst.iter().zip(src) {
                    self.regs[dst as usize][lane] = self.plane(src)[source];
                }
            }
        }
    }

    /// Visits every element of a matrix in memory with the lane and register that hold it.
    fn coop(
        &mut self,
        shape: CoopShape,
        pointer: &Pointer,
        (stride, row_major, step): (Reg, bool, u32),
        touch: Touch,
        site: SiteId,
        visit: impl Fn(&mut Self, u32, u32, usize),
    ) {
        let size = self.options.subgroup_size;
        let bytes = shape.ty.bytes();
        for (start, lanes) in self.subgroups() {
            let first = lanes[0];
            let dynamic = pointer.dynamic.map_or(0, |reg| self.plane(reg)[first]);
            if dynamic == OUTSIDE {
                self.events.push((first as u32, Event::Outside { checks: pointer.checks, touch }));
                continue;
            }
            let base = u64::from(pointer.offset + dynamic);
            let line = u64::from(self.plane(stride)[first]) * u64::from(step);
            for element in 0..shape.rows * shape.columns {
                let (row, column) = (element / shape.columns, element % shape.columns);
                let (major, minor) = if row_major { (row, column) } else { (column, row) };
                let at = base + u64::from(major) * line + u64::from(minor * bytes);
                let lane = start + (element % size) as usize;
                if lane >= self.lanes {
                    continue;
                }
                if at + u64::from(bytes) > u64::from(self.memory(pointer.global).bytes) {
                    self.events
                        .push((lane as u32, Event::OutsideMatrix { global: pointer.global, at }));
                    continue;
                }
                self.cooperative = true;
                self.note(pointer.global, at as u32, bytes, touch, lane as u32, site);
                self.cooperative = false;
                visit(self, at as u32, element / size, lane);
            }
        }
    }

    /// Computes each element: from c on, the products are added in the order of k, each by an fma
    /// and rounded to the type of the sums. No device rounds more often. Integers are added in f32.
    fn multiply_add(
        &mut self,
        dst: Reg,
        [a, b, c]: [&[Reg]; 3],
        [a_shape, b_shape, c_shape]: [CoopShape; 3],
    ) {
        let size = self.options.subgroup_size;
        for (start, _) in self.subgroups() {
            let numbers = |regs: &[Reg], shape: CoopShape| -> Vec<f64> {
                let element = |element: u32| {
                    let reg = regs[(element / size * shape.ty.planes()) as usize];
                    let lane = start + (element % size) as usize;
                    number(
                        shape.ty,
                        if lane < self.lanes { self.wide(reg, shape.ty, lane) } else { 0 },
                    )
                };
                (0..shape.rows * shape.columns).map(element).collect()
            };
            let (a, b, c) = (numbers(a, a_shape), numbers(b, b_shape), numbers(c, c_shape));
            let mut results = Vec::with_capacity(c.len());
            for (at, &sum) in c.iter().enumerate() {
                let (row, column) = (at / c_shape.columns as usize, at % c_shape.columns as usize);
                let mut sum = sum;
                let row = a[row * a_shape.columns as usize..].iter().take(a_shape.columns as usize);
                let column = b[column..].iter().step_by(b_shape.columns as usize);
                for (&x, &y) in row.zip(column) {
                    sum = match c_shape.ty {
                        Ty::F64 => x.mul_add(y, sum),
                        Ty::F16 => number(Ty::F16, bits(Ty::F16, x.mul_add(y, sum))),
                        _ => f64::from((x as f32).mul_add(y as f32, sum as f32)),
                    };
                }
                results.push(bits(c_shape.ty, sum));
            }
            for (at, value) in (0..).zip(results) {
                let lane = start + (at % size) as usize;
                if lane < self.lanes {
                    self.set_wide(dst + at / size * c_shape.ty.planes(), c_shape.ty, lane, value);
                }
            }
        }
    }
}

fn number(ty: Ty, bits: u64) -> f64 {
    match ty {
        Ty::F16 => f64::from(half::f16::from_bits(bits as u16)),
        Ty::F64 => f64::from_bits(bits),
        Ty::I32 => f64::from(bits as u32 as i32),
        Ty::U32 => f64::from(bits as u32),
        _ => f64::from(f32::from_bits(bits as u32)),
    }
}

fn bits(ty: Ty, value: f64) -> u64 {
    match ty {
        Ty::F16 => u64::from(half::f16::from_f32(to_odd(value)).to_bits()),
        Ty::F64 => value.to_bits(),
        Ty::I32 => u64::from(value as i32 as u32),
        Ty::U32 => u64::from(value as u32),
        _ => u64::from((value as f32).to_bits()),
    }
}

/// The neutral element of a function.
fn neutral(f: Binary, ty: Ty) -> u64 {
    match (f, ty) {
        (Binary::Multiply, Ty::F16) => 0x3C00,
        (Binary::Multiply, Ty::F32) => u64::from(1f32.to_bits()),
        (Binary::Multiply, Ty::F64) => 1f64.to_bits(),
        (Binary::Multiply, _) => 1,
        _ => 0,
    }
}
