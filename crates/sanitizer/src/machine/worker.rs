//! Running one workgroup at a time: its registers, its memory, and the walk through its control
//! flow.
//!
//! All invocations go through the blocks together; each block runs with the set of invocations that
//! are in it. The shadows, not the order of execution, tell what one invocation must not see of
//! another before a barrier.

use super::events::Event;
use super::findings::{Findings, Key};
use super::mask::Mask;
use super::memory::{Bits, Memory};
use super::pages::Pages;
use super::shadow::Cell;
use super::tally::{Count, Tally};
use super::{Resources, coordinates};
use crate::Options;
use crate::program::{BuiltIn, CONSTANT, Case, Len, Node, Program, Reg, SiteId, Space};
use crate::report::{Access, Finding, Label};
use std::sync::atomic::Ordering::Relaxed;

/// A read of poisoned storage that the workgroup had not written: key, location, workgroup,
/// finding. It stands unless another workgroup wrote there.
pub(super) type Unwritten = (Key, u32, u32, Finding);

/// Results of running one workgroup.
pub(super) struct Outcome {
    pub(super) tally: Tally,
    pub(super) findings: Findings,
    /// Per global variable.
    pub(super) pages: Vec<Pages>,
    pub(super) unwritten: Vec<Unwritten>,
    pub(super) trace: Vec<Access>,
}

/// A part of the control flow that some invocations have entered, with the invocations in each of
/// its branches.
struct Enclosing {
    site: SiteId,
    entered: Mask,
    is_loop: bool,
}

/// A machine for workgroups, one after the other.
pub(super) struct Worker<'p> {
    pub(super) program: &'p Program,
    pub(super) resources: &'p Resources,
    pub(super) options: &'p Options,
    pub(super) lanes: usize,
    pub(super) full: Mask,
    pub(super) active: Mask,
    pub(super) regs: Vec<Vec<u32>>,
    constants: Vec<Vec<u32>>,
    /// Planes of local variables; `undefined` are the invocations for which a plane has no value.
    pub(super) vars: Vec<Vec<u32>>,
    pub(super) undefined: Vec<Mask>,
    /// Memory of workgroup variables; empty for other variables.
    pub(super) shared: Vec<Memory>,
    pub(super) shared_written: Vec<Bits>,
    pub(super) shared_cells: Vec<Vec<Cell>>,
    /// Barriers passed that order workgroup memory; `storage_epoch` counts those that order storage
    /// memory.
    pub(super) epoch: u32,
    pub(super) storage_epoch: u32,
    pub(super) sub_epochs: Vec<u32>,
    /// The value of each of `epoch` and `storage_epoch` when a barrier of the other kind was last
    /// passed.
    crossed: (u32, u32),
    pub(super) pages: Vec<Pages>,
    pub(super) tally: Tally,
    pub(super) workgroup_id: [u32; 3],
    pub(super) workgroup_index: u32,
    pub(super) findings: Findings,
    pub(super) events: Vec<(u32, Event)>,
    pub(super) trace: Vec<Access>,
    pub(super) unwritten: Vec<Unwritten>,
    pub(super) scratch: Vec<(u32, u32)>,
    breaks: Vec<Mask>,
    continues: Vec<Mask>,
    returns: Vec<Mask>,
    /// The place where each invocation returned from the entry point.
    left: Vec<Option<SiteId>>,
    enclosing: Vec<Enclosing>,
    /// Set when a loop did not end, here or in an earlier workgroup, and when one finding is enough
    /// and there is one: nothing more is run then.
    pub(super) stopped: bool,
    /// Set when not all invocations of the workgroup reached a barrier. Races and uninitialised
    /// reads are not reported then, because the barrier might have prevented them.
    pub(super) disordered: bool,
    /// Whether the operation at hand moves a cooperative matrix.
    pub(super) cooperative: bool,
}

impl<'p> Worker<'p> {
    pub(super) fn new(
        program: &'p Program,
        resources: &'p Resources,
        options: &'p Options,
    ) -> Self {
        let lanes = program.workgroup_size.iter().product::<u32>() as usize;
        let is_shared = |global: &&crate::program::Global| global.space == Space::Workgroup;
        let locations = |global: &crate::program::Global| {
            if is_shared(&global) { global.bytes.div_ceil(1 << global.granule) } else { 0 }
        };
        Worker {
            program,
            resources,
            options,
            lanes,
            full: Mask::first(lanes),
            active: Mask::NONE,
            regs: (0..program.registers).map(|_| vec![0; lanes]).collect(),
            constants: program.constants.iter().map(|&bits| vec![bits; lanes]).collect(),
            vars: (0..program.planes).map(|_| vec![0; lanes]).collect(),
            undefined: vec![Mask::NONE; program.planes as usize],
            shared: program
                .globals
                .iter()
                .map(|global| {
                    Memory::new(&vec![
                        0;
                        if is_shared(&global) { global.bytes as usize } else { 0 }
                    ])
                })
                .collect(),
            shared_written: program
                .globals
                .iter()
                .map(|global| Bits::none(locations(global)))
                .collect(),
            shared_cells: program
                .globals
                .iter()
                .map(|global| {
                    vec![
                        Cell::default();
                        if options.checks { locations(global) as usize } else { 0 }
                    ]
                })
                .collect(),
            epoch: 0,
            storage_epoch: 0,
            sub_epochs: vec![0; lanes.div_ceil(options.subgroup_size as usize)],
            crossed: (0, 0),
            pages: Vec::new(),
            tally: Tally::new(lanes),
            workgroup_id: [0; 3],
            workgroup_index: 0,
            findings: Findings::default(),
            events: Vec::new(),
            trace: Vec::new(),
            unwritten: Vec::new(),
            scratch: Vec::new(),
            breaks: Vec::new(),
            continues: Vec::new(),
            returns: Vec::new(),
            left: vec![None; lanes],
            enclosing: Vec::new(),
            stopped: false,
            disordered: false,
            cooperative: false,
        }
    }

    pub(super) fn run(&mut self, workgroup_index: u32) -> Outcome {
        self.workgroup_index = workgroup_index;
        self.workgroup_id = coordinates(workgroup_index, self.resources.grid);
        self.epoch += 1;
        self.storage_epoch += 1;
        self.pages = self.program.globals.iter().map(|_| Pages::default()).collect();
        self.tally = Tally::new(self.lanes);
        self.left.fill(None);
        self.stopped = false;
        self.disordered = false;
        for memory in &self.shared {
            memory.fill(if self.options.zero_init.workgroup { 0 } else { u32::MAX });
        }
        self.shared_written.iter_mut().for_each(Bits::clear);
        self.set_built_ins();

        let program = self.program;
        self.returns.push(Mask::NONE);
        self.nodes(&program.body, self.full);
        self.returns.clear();
        self.breaks.clear();
        self.continues.clear();
        self.enclosing.clear();
        Outcome {
            tally: std::mem::replace(&mut self.tally, Tally::new(0)),
            findings: std::mem::take(&mut self.findings),
            pages: std::mem::take(&mut self.pages),
            trace: std::mem::take(&mut self.trace),
            unwritten: std::mem::take(&mut self.unwritten),
        }
    }

    fn set_built_ins(&mut self) {
        let size = self.program.workgroup_size;
        let subgroup = self.options.subgroup_size;
        let local = |lane: u32| coordinates(lane, size);
        for &(reg, built_in) in &self.program.built_ins {
            let (id, grid) = (self.workgroup_id, self.resources.grid);
            let subgroups = self.sub_epochs.len() as u32;
            for (lane, value) in (0..).zip(&mut self.regs[reg as usize]) {
                *value = match built_in {
                    BuiltIn::LocalInvocationIndex => lane,
                    BuiltIn::LocalInvocationId(axis) => local(lane)[axis as usize],
                    BuiltIn::GlobalInvocationId(axis) => {
                        let axis = axis as usize;
                        id[axis].wrapping_mul(size[axis]).wrapping_add(local(lane)[axis])
                    }
                    BuiltIn::WorkgroupId(axis) => id[axis as usize],
                    BuiltIn::NumWorkgroups(axis) => grid[axis as usize],
                    BuiltIn::NumSubgroups => subgroups,
                    BuiltIn::SubgroupId => lane / subgroup,
                    BuiltIn::SubgroupSize => subgroup,
                    BuiltIn::SubgroupInvocationId => lane % subgroup,
                };
            }
        }
    }

    pub(super) fn plane(&self, reg: Reg) -> &[u32] {
        if reg & CONSTANT != 0 {
            &self.constants[(reg & !CONSTANT) as usize]
        } else {
            &self.regs[reg as usize]
        }
    }

    /// The memory of a global variable.
    pub(super) fn memory(&self, global: u32) -> &Memory {
        match self.program.globals[global as usize].space {
            Space::Workgroup => &self.shared[global as usize],
            _ => &self.resources.memories[global as usize],
        }
    }

    pub(super) fn length(&self, len: Len) -> u32 {
        match len {
            Len::Fixed(len) => len,
            Len::Runtime { global, offset, stride } => {
                self.memory(global).bytes.saturating_sub(offset) / stride
            }
        }
    }

    /// Runs blocks with the invocations of `mask` and returns those that reach the end.
    fn nodes(&mut self, nodes: &'p [Node], mut mask: Mask) -> Mask {
        for node in nodes {
            if mask.is_empty() || self.stopped {
                return Mask::NONE;
            }
            mask = self.node(node, mask);
        }
        mask
    }

    fn node(&mut self, node: &'p Node, mask: Mask) -> Mask {
        match node {
            Node::Code { insts, arithmetic } => {
                self.active = mask;
                self.tally.operations += insts.len() as u64 * u64::from(mask.count());
                if *arithmetic > 0 {
                    self.tally.add(Count::Arithmetic, &mask, u64::from(*arithmetic));
                }
                for inst in insts {
                    self.operation(inst);
                }
                mask
            }
            Node::If { condition, accept, reject, site } => {
                let holds = Mask::where_true(self.plane(*condition)).and(&mask);
                let fails = mask.without(&holds);
                self.enclosing.push(Enclosing { site: *site, entered: mask, is_loop: false });
                let accepted = if holds.is_empty() { holds } else { self.nodes(accept, holds) };
                let rejected = if fails.is_empty() { fails } else { self.nodes(reject, fails) };
                self.enclosing.pop();
                accepted.or(&rejected)
            }
            Node::Loop { body, continuing, break_if, site } => {
                self.repeat(body, continuing, *break_if, *site, mask)
            }
            Node::Switch { selector, cases, site } => self.switch(*selector, cases, *site, mask),
            Node::Break => {
                if let Some(breaks) = self.breaks.last_mut() {
                    *breaks = breaks.or(&mask);
                }
                Mask::NONE
            }
            Node::Continue => {
                if let Some(continues) = self.continues.last_mut() {
                    *continues = continues.or(&mask);
                }
                Mask::NONE
            }
            Node::Return { site } => {
                // Returns that naga added at the end of a function have no place in the source.
                if self.returns.len() == 1 && self.program.sites[*site as usize].span.is_some() {
                    mask.lanes().for_each(|lane| self.left[lane] = Some(*site));
                }
                if let Some(returns) = self.returns.last_mut() {
                    *returns = returns.or(&mask);
                }
                Mask::NONE
            }
            Node::Call { body } => {
                self.returns.push(Mask::NONE);
                let through = self.nodes(body, mask);
                let returned = self.returns.pop().unwrap_or(Mask::NONE);
                through.or(&returned)
            }
        }
    }

    fn repeat(
        &mut self,
        body: &'p [Node],
        continuing: &'p [Node],
        break_if: Option<Reg>,
        site: SiteId,
        mask: Mask,
    ) -> Mask {
        self.breaks.push(Mask::NONE);
        self.enclosing.push(Enclosing { site, entered: mask, is_loop: true });
        let mut live = mask;
        let mut iterations = 0;
        while !live.is_empty() && !self.stopped {
            // The last entry, which only finds that nothing is left to do, is no iteration.
            if iterations > self.options.max_iterations {
                let first = live.lanes().next().unwrap_or(0) as u32;
                self.endless(site, first, live.count());
                self.resources.endless.fetch_min(self.workgroup_index, Relaxed);
            }
            if self.resources.endless.load(Relaxed) <= self.workgroup_index {
                self.stopped = true;
                break;
            }
            iterations += 1;
            self.continues.push(Mask::NONE);
            let through = self.nodes(body, live);
            let continued = self.continues.pop().unwrap_or(Mask::NONE);
            live = self.nodes(continuing, through.or(&continued));
            if let Some(condition) = break_if {
                let done = Mask::where_true(self.plane(condition)).and(&live);
                live = live.without(&done);
                if let Some(breaks) = self.breaks.last_mut() {
                    *breaks = breaks.or(&done);
                }
            }
        }
        self.enclosing.pop();
        self.breaks.pop().unwrap_or(Mask::NONE)
    }

    fn switch(&mut self, selector: Reg, cases: &'p [Case], site: SiteId, mask: Mask) -> Mask {
        let values = self.plane(selector).to_vec();
        let chosen = |case: &Case| {
            let mut lanes = Mask::NONE;
            mask.lanes()
                .filter(|&lane| case.values.contains(&values[lane]))
                .for_each(|lane| lanes.insert(lane));
            lanes
        };
        let matched = cases.iter().fold(Mask::NONE, |matched, case| matched.or(&chosen(case)));
        self.breaks.push(Mask::NONE);
        self.enclosing.push(Enclosing { site, entered: mask, is_loop: false });
        let mut done = Mask::NONE;
        let mut falling = Mask::NONE;
        for case in cases {
            let lanes =
                if case.default { mask.without(&matched) } else { chosen(case) }.or(&falling);
            let through = self.nodes(&case.body, lanes);
            if case.fall_through {
                falling = through;
            } else {
                falling = Mask::NONE;
                done = done.or(&through);
            }
        }
        self.enclosing.pop();
        done.or(&falling).or(&self.breaks.pop().unwrap_or(Mask::NONE))
    }

    /// Passes a barrier: accesses before it are ordered before accesses after it.
    pub(super) fn barrier(&mut self, flags: naga::Barrier, uniform_load: bool) {
        if flags == naga::Barrier::SUB_GROUP {
            self.whole_subgroups();
            let size = self.options.subgroup_size as usize;
            for (subgroup, epoch) in self.sub_epochs.iter_mut().enumerate() {
                let mut lanes = subgroup * size..((subgroup + 1) * size).min(self.lanes);
                *epoch += u32::from(lanes.any(|lane| self.active.contains(lane)));
            }
        } else {
            if self.active != self.full {
                let first = self.active.lanes().next().unwrap_or(0) as u32;
                self.events.push((first, Event::DivergentBarrier { uniform_load }));
                self.disordered = true;
            }
            if flags.contains(naga::Barrier::WORK_GROUP) {
                self.epoch += 1;
                self.crossed.1 = self.storage_epoch;
            }
            if flags.contains(naga::Barrier::STORAGE) {
                self.storage_epoch += 1;
                self.crossed.0 = self.epoch;
            }
        }
        self.tally.add(Count::Barriers, &self.active, 1);
    }

    /// Makes an event for every subgroup of which only a part is active.
    pub(super) fn whole_subgroups(&mut self) {
        if self.active == self.full {
            return;
        }
        let size = self.options.subgroup_size as usize;
        for start in (0..self.lanes).step_by(size) {
            let lanes = start..(start + size).min(self.lanes);
            let here = lanes.clone().filter(|&lane| self.active.contains(lane)).count();
            if here != 0 && here != lanes.len() {
                let first = lanes.clone().find(|&lane| self.active.contains(lane)).unwrap_or(start);
                self.events.push((first as u32, Event::DivergentSubgroup));
            }
        }
    }

    pub(super) fn other_barrier_since(&self, space: Space) -> bool {
        match space {
            Space::Workgroup => self.crossed.0 == self.epoch,
            _ => self.crossed.1 == self.storage_epoch,
        }
    }

    /// An invocation of the workgroup that is not active.
    pub(super) fn absent(&self) -> Option<u32> {
        self.full.without(&self.active).lanes().next().map(|lane| lane as u32)
    }

    /// An invocation of the same subgroup that is not active.
    pub(super) fn absent_of_subgroup(&self, lane: u32) -> Option<u32> {
        let size = self.options.subgroup_size;
        let missing = self.full.without(&self.active);
        missing.lanes().map(|missing| missing as u32).find(|missing| missing / size == lane / size)
    }

    /// Says where an absent invocation went.
    pub(super) fn whereabouts(&self, lane: Option<u32>) -> Vec<Label> {
        let Some(lane) = lane else { return Vec::new() };
        let who = Some(self.place(lane));
        if let Some(site) = self.left[lane as usize] {
            return self.program.labels(site, "returned here".to_owned(), who);
        }
        // It left the others in the innermost part of the control flow that it entered.
        let Some(enclosing) =
            self.enclosing.iter().rfind(|part| part.entered.contains(lane as usize))
        else {
            return Vec::new();
        };
        let text = if enclosing.is_loop { "left this loop" } else { "went another way here" };
        self.program.labels(enclosing.site, text.to_owned(), who)
    }
}
