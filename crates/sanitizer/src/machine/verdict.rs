//! Findings that show only when workgroups are seen together: races between workgroups, and
//! elements that no workgroup wrote.

use super::findings::Findings;
use super::pages::{Merged, Summary, Toucher};
use super::shadow::Touch;
use super::worker::{Outcome, Unwritten};
use super::{Resources, coordinates};
use crate::program::{Program, SiteId, Space};
use crate::report::{Access, Finding, Kind, Label, Place, Report};
use crate::{Counters, Options};
use std::sync::atomic::Ordering::Relaxed;

const TOUCHES: [Touch; 4] = [Touch::Read, Touch::Write, Touch::AtomicRead, Touch::AtomicWrite];

pub(super) struct Verdict<'p> {
    program: &'p Program,
    resources: &'p Resources,
    options: &'p Options,
    findings: Findings,
    counters: Counters,
    trace: Vec<Access>,
    unwritten: Vec<Unwritten>,
    /// For each global variable and location: which workgroup and invocation touched it first.
    touched: Vec<Merged>,
}

impl<'p> Verdict<'p> {
    pub(super) fn new(
        program: &'p Program,
        resources: &'p Resources,
        options: &'p Options,
    ) -> Self {
        Verdict {
            program,
            resources,
            options,
            findings: Findings::default(),
            counters: Counters::default(),
            trace: Vec::new(),
            unwritten: Vec::new(),
            touched: program.globals.iter().map(|_| Merged::default()).collect(),
        }
    }

    /// Whether there is a finding, and the options want no other.
    pub(super) fn is_known(&self) -> bool {
        self.options.stop_at_first && !self.findings.is_empty()
    }

    /// Takes in the outcome of a workgroup. Workgroups come in the order of their numbers.
    pub(super) fn take(&mut self, outcome: Outcome) {
        outcome.tally.add_to(&mut self.counters);
        self.findings.append(outcome.findings, self.options.max_findings);
        self.trace.extend(outcome.trace);
        self.unwritten.extend(outcome.unwritten);
        for (global, pages) in (0..).zip(&outcome.pages) {
            for (first, summaries) in pages.summaries() {
                for (location, summary) in (first..).zip(summaries) {
                    if summary.iter().any(Option::is_some) {
                        self.merge(global, location, summary);
                    }
                }
            }
        }
    }

    fn merge(&mut self, global: u32, location: u32, new: &Summary) {
        let known = self.touched[global as usize].entry(location);
        let mut race = None;
        for touch in TOUCHES {
            let Some(now) = new[touch as usize] else { continue };
            for earlier in TOUCHES {
                let conflict = (touch.writes() || earlier.writes())
                    && !(touch.is_atomic() && earlier.is_atomic());
                if let (true, Some(before), None) = (conflict, known[earlier as usize], &race) {
                    race = Some((touch, now, earlier, before));
                }
            }
        }
        for (known, new) in known.iter_mut().zip(new) {
            *known = known.or(*new);
        }
        if let Some((touch, now, earlier, before)) = race {
            self.race_between(global, location, (touch, now), (earlier, before));
        }
    }

    fn place(&self, who: Toucher) -> Place {
        Place {
            workgroup: coordinates(who.workgroup, self.resources.grid),
            local: coordinates(who.lane, self.program.workgroup_size),
        }
    }

    fn race_between(
        &mut self,
        global: u32,
        location: u32,
        now: (Touch, Toucher),
        before: (Touch, Toucher),
    ) {
        // Bit 31 keeps races between workgroups apart from those within one.
        let key = (Kind::Race, now.1.site, before.1.site, global | 1 << 31);
        if self.findings.again(&key) {
            return;
        }
        let variable = &self.program.globals[global as usize];
        let what = self.program.name_of(global, location << variable.granule);
        let label = |(touch, who): (Touch, Toucher), text: String| {
            self.program.labels(
                who.site,
                format!("`{what}` is {} {text}", touch.verb()),
                Some(self.place(who)),
            )
        };
        let mut labels = label(now, "here".to_owned());
        let calls = labels.split_off(1);
        labels.extend(label(before, "here, too".to_owned()));
        labels.extend(calls);
        self.findings.add(
            key,
            Finding {
                kind: Kind::Race,
                message: format!("two workgroups touch `{what}` and nothing orders them"),
                labels,
                notes: vec![
                    "the workgroups of one dispatch are not ordered: barriers reach one workgroup, \
                     atomics order only themselves"
                        .to_owned(),
                    "give every location one writer, use atomics, or split the work into two \
                     dispatches"
                        .to_owned(),
                ],
                variable: Some(variable.name.clone()),
                occurrences: 1,
            },
            self.options.max_findings,
        );
    }

    pub(super) fn finish(mut self) -> Report {
        // A stopped run had no chance to write everything.
        let stopped = self.is_known() || self.resources.endless.load(Relaxed) != u32::MAX;
        let unwritten =
            if self.is_known() { Vec::new() } else { std::mem::take(&mut self.unwritten) };
        for (key, location, workgroup, finding) in unwritten {
            // If another workgroup wrote the location, the two race, and that is reported already.
            if self.writer(key.3, location).is_none_or(|writer| writer.workgroup == workgroup) {
                self.findings.add(key, finding, self.options.max_findings);
            }
        }
        if self.options.checks && !stopped {
            self.never_written();
        }
        let dropped = self.findings.dropped;
        Report {
            findings: self.findings.into_sorted(),
            dropped,
            counters: self.counters,
            trace: self.trace,
            ..Report::default()
        }
    }

    fn never_written(&mut self) {
        for global in 0..self.program.globals.len() as u32 {
            let variable = &self.program.globals[global as usize];
            if variable.space != Space::Storage || !self.resources.must_write[global as usize] {
                continue;
            }
            let locations = self.resources.memories[global as usize].bytes >> variable.granule;
            let inside = |location: &u32| {
                let logical = self.resources.logical[global as usize].as_ref();
                logical.is_none_or(|logical| logical.contains(*location))
                    && !self.program.is_padding(global, location << variable.granule)
            };
            let unwritten = |location: &u32| self.writer(global, *location).is_none();
            let missing: Vec<u32> = (0..locations).filter(inside).filter(unwritten).collect();
            let Some(&first) = missing.first() else { continue };
            let all = (0..locations).filter(inside).count();
            let run = missing
                .iter()
                .zip(first..)
                .take_while(|(location, expected)| **location == *expected)
                .count();
            let last = first + run as u32 - 1;
            let name = |location: u32| self.program.name_of(global, location << variable.granule);
            let text = if run == 1 {
                format!("nobody writes `{}`", name(first))
            } else {
                format!("nobody writes `{}` to `{}`", name(first), name(last))
            };
            let (handle_span, count) = (self.span_of(&variable.name), missing.len());
            let finding = Finding {
                kind: Kind::NeverWritten,
                message: format!(
                    "{count} of {all} locations of the output `{}` are never written",
                    variable.name
                ),
                labels: vec![Label { span: handle_span, text, place: None }],
                notes: Vec::new(),
                variable: Some(variable.name.clone()),
                occurrences: 1,
            };
            let key = (Kind::NeverWritten, SiteId::MAX, SiteId::MAX, global);
            self.findings.add(key, finding, self.options.max_findings);
        }
    }

    /// Who wrote a location first.
    fn writer(&self, global: u32, location: u32) -> Option<Toucher> {
        let summary = self.touched[global as usize].get(location)?;
        summary[Touch::Write as usize].or(summary[Touch::AtomicWrite as usize])
    }

    /// The place where a global variable is declared.
    fn span_of(&self, name: &str) -> Option<std::ops::Range<usize>> {
        let variables = &self.program.module.global_variables;
        variables
            .iter()
            .find(|(_, variable)| variable.name.as_deref() == Some(name))
            .and_then(|(handle, _)| variables.get_span(handle).to_range())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Buffer, Kind, Launch, Options, Shader};

    const SHADER: &str = "
        @group(0) @binding(0) var<storage, read_write> out: array<u32>;
        @compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3u) {
            if id.x == 1u { out[id.x + 4u] = 1u; }
            out[id.x] = 1u / select(1u, 0u, id.x == 2u);
        }";

    #[test]
    fn the_first_finding_may_end_a_run() {
        let shader = Shader::parse("first.wgsl", SHADER).unwrap();
        for parallel in [false, true] {
            let run = |stop_at_first| {
                let options = Options { stop_at_first, parallel, ..Options::default() };
                let launch = Launch::new(&shader).grid([4, 1, 1]).options(options);
                launch.bind(0, 0, Buffer::output(16)).run().unwrap().findings
            };
            let (whole, part) = (run(false), run(true));
            assert_eq!(
                whole.iter().map(|it| it.kind).collect::<Vec<_>>(),
                [Kind::OutOfBounds, Kind::DivisionByZero]
            );
            assert_eq!(part, whole[..1]);
        }
    }
}
