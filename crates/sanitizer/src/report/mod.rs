//! Report of a run: data here, rendering in `human.rs` and `json.rs`.

mod human;
mod json;

use crate::{Counters, Shader};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// Kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Two unordered accesses of one location, at least one of them a write, and at least one not
    /// atomic.
    Race,
    /// An index past the end of a buffer, an array or a vector, or outside the range that was
    /// declared.
    OutOfBounds,
    /// A read of workgroup, private, function or poisoned storage memory before anything was
    /// written there.
    Uninitialised,
    /// A barrier or a subgroup operation that not all invocations reach together.
    DivergentBarrier,
    /// A loop that passed the bound on iterations.
    EndlessLoop,
    /// Division or remainder of integers by zero.
    DivisionByZero,
    /// A shift by the width of the type or more.
    ShiftTooLarge,
    /// Finite numbers that became infinite in f16.
    F16Overflow,
    /// A part of an output that nobody wrote.
    NeverWritten,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 9] = [
        Kind::Race,
        Kind::OutOfBounds,
        Kind::Uninitialised,
        Kind::DivergentBarrier,
        Kind::EndlessLoop,
        Kind::DivisionByZero,
        Kind::ShiftTooLarge,
        Kind::F16Overflow,
        Kind::NeverWritten,
    ];

    /// The kind's name in JSON and in reports, such as `out-of-bounds`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Race => "race",
            Kind::OutOfBounds => "out-of-bounds",
            Kind::Uninitialised => "uninitialised",
            Kind::DivergentBarrier => "divergent-barrier",
            Kind::EndlessLoop => "endless-loop",
            Kind::DivisionByZero => "division-by-zero",
            Kind::ShiftTooLarge => "shift-too-large",
            Kind::F16Overflow => "f16-overflow",
            Kind::NeverWritten => "never-written",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An invocation of the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// `workgroup_id`.
    pub workgroup: [u32; 3],
    /// `local_invocation_id`.
    pub local: [u32; 3],
}

/// A part of the source, and what happened there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Label {
    /// Bytes of the source; `None` if naga kept no span.
    pub span: Option<Range<usize>>,
    /// The event, in one line.
    pub text: String,
    /// The invocation that did it.
    pub place: Option<Place>,
}

/// One finding: the first occurrence, and how often it occurred.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Kind of the finding.
    pub kind: Kind,
    /// The fault, in one line.
    pub message: String,
    /// Places: the access at fault first, then the other side of a conflict.
    pub labels: Vec<Label>,
    /// Further facts, one line each; how to mend the fault comes last.
    pub notes: Vec<String>,
    /// The variable concerned.
    pub variable: Option<String>,
    /// The number of occurrences at these places of the source.
    pub occurrences: u64,
}

/// One access of storage or workgroup memory, kept when [`Options::trace`](crate::Options::trace)
/// is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The variable.
    pub variable: String,
    /// Whether the variable lies in workgroup memory.
    pub workgroup_memory: bool,
    /// Byte offset in the variable.
    pub offset: u32,
    /// Bytes of the access.
    pub bytes: u32,
    /// Whether this is a write. An atomic operation that reads and writes is two accesses.
    pub write: bool,
    /// The invocation that did it.
    pub place: Place,
}

/// Report of a run: findings, costs, and the buffers as the run left them.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// The findings in the order of the source; empty for a clean run.
    pub findings: Vec<Finding>,
    /// The number of distinct findings beyond
    /// [`Options::max_findings`](crate::Options::max_findings).
    pub dropped: u64,
    /// Costs of the run.
    pub counters: Counters,
    /// The buffers as the shader left them, by group and binding.
    pub buffers: BTreeMap<(u32, u32), Vec<u8>>,
    /// All accesses, if the options ask for them, by workgroup and in the order of execution.
    pub trace: Vec<Access>,
}

impl Label {
    /// A label without a place in the source.
    pub fn new(text: impl Into<String>) -> Self {
        Label { span: None, text: text.into(), place: None }
    }
}

impl Finding {
    /// A finding with one occurrence and without notes.
    pub fn new(kind: Kind, message: impl Into<String>, labels: Vec<Label>) -> Self {
        let message = message.into();
        Finding { kind, message, labels, notes: Vec::new(), variable: None, occurrences: 1 }
    }
}

impl Report {
    /// A report of these findings, and nothing else.
    pub fn of(findings: Vec<Finding>) -> Self {
        Report { findings, ..Report::default() }
    }

    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.dropped == 0
    }

    /// The findings for people, in the manner of rustc's diagnostics; `color` adds ANSI colours.
    /// Empty if nothing was found.
    pub fn render(&self, shader: &Shader, color: bool) -> String {
        human::render(self, shader, color)
    }

    /// The report for programs: one JSON object with `findings` and `counters`.
    pub fn to_json(&self, shader: &Shader) -> String {
        json::to_json(self, shader)
    }
}
