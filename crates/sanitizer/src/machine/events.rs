//! Faults in one operation, and their texts.

use super::coordinates;
use super::shadow::{Stamp, Touch};
use super::worker::Worker;
use crate::program::{Len, SiteId, Space};
use crate::report::{Finding, Kind, Label, Place};

/// A fault of one invocation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Race {
        global: u32,
        at: u32,
        touch: Touch,
        before: (Touch, Stamp),
    },
    /// An index is out of bounds; the checks of the pointer tell which.
    Outside {
        checks: (u32, u32),
        touch: Touch,
    },
    /// An access within the buffer, but outside the declared operand.
    OutsideRange {
        global: u32,
        at: u32,
        touch: Touch,
    },
    /// A cooperative matrix beyond the end of its variable.
    OutsideMatrix {
        global: u32,
        at: u64,
    },
    Uninitialised {
        global: u32,
        at: u32,
    },
    UninitialisedLocal {
        local: u32,
        plane: u32,
    },
    DivisionByZero {
        remainder: bool,
    },
    ShiftTooLarge {
        amount: u32,
        bits: u32,
    },
    F16Overflow {
        value: Option<f32>,
    },
    DivergentSubgroup,
    DivergentBarrier {
        uniform_load: bool,
    },
    /// `workgroupUniformLoad` of different places.
    UnequalPointers {
        other: u32,
    },
    EndlessLoop {
        running: u32,
    },
}

/// The most reads of unwritten storage that are kept per workgroup until it is known what the other
/// workgroups wrote.
const UNWRITTEN: usize = 64;

impl Event {
    fn kind(&self) -> Kind {
        match self {
            Event::Race { .. } => Kind::Race,
            Event::Outside { .. } | Event::OutsideRange { .. } | Event::OutsideMatrix { .. } => {
                Kind::OutOfBounds
            }
            Event::Uninitialised { .. } | Event::UninitialisedLocal { .. } => Kind::Uninitialised,
            Event::DivisionByZero { .. } => Kind::DivisionByZero,
            Event::ShiftTooLarge { .. } => Kind::ShiftTooLarge,
            Event::F16Overflow { .. } => Kind::F16Overflow,
            Event::DivergentSubgroup
            | Event::DivergentBarrier { .. }
            | Event::UnequalPointers { .. } => Kind::DivergentBarrier,
            Event::EndlessLoop { .. } => Kind::EndlessLoop,
        }
    }

    /// The other place in the source, and the variable. They tell findings of one kind at one place
    /// apart.
    fn parts(&self) -> (SiteId, u32) {
        match *self {
            Event::Race { global, before, .. } => (before.1.site, global),
            Event::OutsideRange { global, .. }
            | Event::OutsideMatrix { global, .. }
            | Event::Uninitialised { global, .. } => (SiteId::MAX, global),
            Event::UninitialisedLocal { local, .. } => (SiteId::MAX, local),
            _ => (SiteId::MAX, u32::MAX),
        }
    }
}

impl Worker<'_> {
    /// Turns the faults of an operation into findings.
    pub(super) fn settle(&mut self, site: SiteId) {
        if self.events.is_empty() {
            return;
        }
        let events = std::mem::take(&mut self.events);
        if self.options.checks {
            for &(lane, event) in &events {
                if self.disordered
                    && matches!(event, Event::Race { .. } | Event::Uninitialised { .. })
                {
                    continue;
                }
                let (other, variable) = event.parts();
                let key = (event.kind(), site, other, variable);
                if let Event::Uninitialised { global, at } = event
                    && self.program.globals[global as usize].space == Space::Storage
                {
                    let location = at >> self.program.globals[global as usize].granule;
                    if self.unwritten.len() < UNWRITTEN
                        && !self
                            .unwritten
                            .iter()
                            .any(|(known, at, ..)| *known == key && *at == location)
                    {
                        let finding = self.tell(site, lane, event);
                        self.unwritten.push((key, location, self.workgroup_index, finding));
                    }
                    continue;
                }
                if !self.findings.again(&key) {
                    let finding = self.tell(site, lane, event);
                    self.findings.insert(key, finding);
                    self.stopped |= self.options.stop_at_first;
                }
            }
        }
        self.events = events;
        self.events.clear();
    }

    /// A finding of an endless loop, which counts even when nothing is checked.
    pub(super) fn endless(&mut self, site: SiteId, lane: u32, running: u32) {
        let event = Event::EndlessLoop { running };
        let finding = self.tell(site, lane, event);
        self.findings.insert((Kind::EndlessLoop, site, SiteId::MAX, u32::MAX), finding);
    }

    pub(super) fn place(&self, lane: u32) -> Place {
        Place {
            workgroup: self.workgroup_id,
            local: coordinates(lane, self.program.workgroup_size),
        }
    }

    fn tell(&self, site: SiteId, lane: u32, event: Event) -> Finding {
        let program = self.program;
        let who = Some(self.place(lane));
        let name = |global: u32, at: u32| program.name_of(global, at);
        let mut notes = Vec::new();
        let mut variable = None;
        let mut others: Vec<Label> = Vec::new();
        let (message, text) = match event {
            Event::Race { global, at, touch, before: (earlier, stamp) } => {
                variable = Some(program.globals[global as usize].name.clone());
                let what = name(global, at);
                others = program.labels(
                    stamp.site,
                    format!("`{what}` was {} here before", earlier.verb()),
                    Some(self.place(stamp.lane)),
                );
                notes.extend(self.why_unordered(global, stamp, site));
                (
                    format!("two invocations touch `{what}` and nothing orders them"),
                    format!("`{what}` is {} here", touch.verb()),
                )
            }
            Event::Outside { checks, touch } => {
                let (message, text) = self.failed_index(checks, lane, touch);
                let root =
                    |what: &str| what.split(['.', '[']).next().unwrap_or_default().to_owned();
                variable = self.failed_check(checks, lane).map(|(check, _, _)| root(&check.what));
                (message, text)
            }
            Event::OutsideRange { global, at, touch } => {
                variable = Some(program.globals[global as usize].name.clone());
                let what = name(global, at);
                notes.push(
                    "the bytes exist, but the caller declared them to be no part of this operand"
                        .to_owned(),
                );
                (
                    format!(
                        "`{what}` lies outside the declared range of `{}`",
                        program.globals[global as usize].name
                    ),
                    format!("`{what}` is {} here", touch.verb()),
                )
            }
            Event::OutsideMatrix { global, at } => {
                let variable_of = &program.globals[global as usize];
                variable = Some(variable_of.name.clone());
                let len = self.memory(global).bytes;
                (
                    format!("a cooperative matrix reaches beyond `{}`", variable_of.name),
                    format!("an element lies at byte {at}, `{}` has {len}", variable_of.name),
                )
            }
            Event::Uninitialised { global, at } => {
                let variable_of = &program.globals[global as usize];
                variable = Some(variable_of.name.clone());
                let what = name(global, at);
                notes.push(match variable_of.space {
                    Space::Workgroup => {
                        "workgroup memory starts undefined here: nobody in this workgroup has \
                         written it"
                            .to_owned()
                    }
                    _ => "the buffer was bound as poisoned: this workgroup has not written it"
                        .to_owned(),
                });
                (
                    format!("`{what}` is read before anybody wrote it"),
                    format!("`{what}` is read here"),
                )
            }
            Event::UninitialisedLocal { local, plane } => {
                let local = &program.locals[local as usize];
                variable = Some(local.name.clone());
                others = program.labels(
                    local.declared,
                    "declared here without a value".to_owned(),
                    None,
                );
                others.truncate(1);
                if local.planes > 1 {
                    notes.push(format!("scalar {plane} of {}'s {}", local.name, local.planes));
                }
                (
                    format!("`{}` is read before it was written", local.name),
                    format!("`{}` is read here", local.name),
                )
            }
            Event::DivisionByZero { remainder } => {
                let what = if remainder { "remainder" } else { "division" };
                (format!("{what} of an integer by zero"), "the divisor is 0".to_owned())
            }
            Event::ShiftTooLarge { amount, bits } => (
                format!("a shift by {amount} of a number of {bits} bits"),
                format!("the amount is {amount}; at most {} is defined", bits - 1),
            ),
            Event::F16Overflow { value } => (
                "finite numbers became infinite in f16".to_owned(),
                match value {
                    Some(value) => {
                        format!("{value} does not fit f16, whose largest number is 65504")
                    }
                    None => "the result exceeds 65504, the largest number of f16".to_owned(),
                },
            ),
            Event::DivergentSubgroup => {
                let missing = self.absent_of_subgroup(lane);
                others.extend(self.whereabouts(missing));
                (
                    "a subgroup operation that not all invocations of the subgroup reach"
                        .to_owned(),
                    "only a part of the subgroup is here".to_owned(),
                )
            }
            Event::DivergentBarrier { uniform_load } => {
                let missing = self.absent();
                others.extend(self.whereabouts(missing));
                notes.push(
                    "what this workgroup does after it is not searched for races: nothing is \
                     ordered any more"
                        .to_owned(),
                );
                let active = self.active.count();
                let what = if uniform_load { "workgroupUniformLoad" } else { "a barrier" };
                notes.push(format!("{active} of {} invocations are here", self.full.count()));
                (
                    format!("{what} that not all invocations of the workgroup reach"),
                    "waits for invocations that never come".to_owned(),
                )
            }
            Event::UnequalPointers { other } => {
                others.push(Label {
                    span: program.labels(site, String::new(), None)[0].span.clone(),
                    text: "another place is loaded".to_owned(),
                    place: Some(self.place(other)),
                });
                (
                    "workgroupUniformLoad of a place that is not the same for all invocations"
                        .to_owned(),
                    "one place is loaded".to_owned(),
                )
            }
            Event::EndlessLoop { running } => {
                notes.push(format!(
                    "{running} of {} invocations were still in it",
                    self.full.count()
                ));
                (
                    format!(
                        "a loop was still running after {} iterations",
                        self.options.max_iterations
                    ),
                    "this loop does not end, or not soon".to_owned(),
                )
            }
        };
        let mut labels = program.labels(site, text, who);
        // The other side comes before the calls that led to the first.
        let calls = labels.split_off(1);
        labels.extend(others);
        labels.extend(calls);
        Finding { kind: event.kind(), message, labels, notes, variable, occurrences: 1 }
    }

    fn why_unordered(&self, global: u32, before: Stamp, site: SiteId) -> Vec<String> {
        let space = self.program.globals[global as usize].space;
        let (needed, other) = match space {
            Space::Workgroup => ("workgroupBarrier", "storageBarrier"),
            _ => ("storageBarrier", "workgroupBarrier"),
        };
        if before.site == site {
            return vec![
                "give every location one writer, or use atomics: no barrier orders a statement \
                 with itself"
                    .to_owned(),
            ];
        }
        let mut notes = Vec::new();
        if self.other_barrier_since(space) {
            notes.push(format!(
                "{other}() was passed since the last {needed}(), but does not order this memory"
            ));
        }
        notes.push(format!("a {needed}() between them, reached by all, would order them"));
        notes
    }

    /// The check that failed for an invocation, its index and the length.
    fn failed_check(
        &self,
        checks: (u32, u32),
        lane: u32,
    ) -> Option<(&crate::program::Check, i64, u32)> {
        self.program.checks[checks.0 as usize..checks.1 as usize].iter().find_map(|check| {
            let raw = self.plane(check.index)[lane as usize];
            let len = self.length(check.len);
            let index = if check.signed { i64::from(raw as i32) } else { i64::from(raw) };
            (index < 0 || index >= i64::from(len)).then_some((check, index, len))
        })
    }

    fn failed_index(&self, checks: (u32, u32), lane: u32, touch: Touch) -> (String, String) {
        match self.failed_check(checks, lane) {
            Some((check, index, len)) => {
                let elements = if len == 1 { "element" } else { "elements" };
                let source = match check.len {
                    Len::Runtime { .. } => " as it is bound",
                    Len::Fixed(_) => "",
                };
                (
                    format!("index {index} is out of bounds of `{}`", check.what),
                    format!(
                        "`{}` has {len} {elements}{source}; element {index} is {} here",
                        check.what,
                        touch.verb()
                    ),
                )
            }
            None => ("an index is out of bounds".to_owned(), format!("{} here", touch.verb())),
        }
    }
}
