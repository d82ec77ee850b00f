//! The mutation check: plants one mistake at a time in the library's WGSL and MSL, and looks
//! whether the suite notices.
//!
//! A deleted barrier, a weakened guard, a shifted index, an operand in another's place: each is a
//! *mutant*. The cases whose kernels it changes run until one fails, which kills the mutant. WGSL
//! runs in the sanitizer, MSL on CPUs under clang's sanitizers. The first cases are those that
//! killed the mutant's neighbours in the text, then the cheapest. In WGSL, mainloops take turns.
//!
//! A mutant that survives all cases shows a hole in the suite, or makes no difference. Mutants that
//! make no difference are listed with the reason in `tests/mutants/explained*.txt` ([`explained`]).
//! Any other survivor fails the check.

pub mod explained;
mod grammar;
mod msl;
mod msl_cases;
mod names;
mod operators;
mod place;
mod report;
mod sites;
mod wgsl;

pub use msl::Msl;
pub use report::Summary;
pub use tilewise_core::kernel::Language;
pub use wgsl::Wgsl;

use std::ops::Range;

/// The fate of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// The text is not valid.
    Invalid,
    /// A case failed by a finding of this kind, a word of [`FINDINGS`].
    Found(&'static str),
    /// A case gave wrong results.
    Wrong,
    /// The mutant does not fit the plan: the size of its workgroups, their memory, or its bindings.
    Refused,
    /// No case noticed.
    Survived {
        /// Whether every output has the bits that it has without the change.
        same_bits: bool,
    },
}

/// The kinds of findings of the sanitizer, and of clang's sanitizers.
pub const FINDINGS: [&str; 11] = [
    "race",
    "out-of-bounds",
    "uninitialised",
    "divergent-barrier",
    "endless-loop",
    "division-by-zero",
    "shift-too-large",
    "f16-overflow",
    "never-written",
    "undefined",
    "crash",
];

/// Prepared cases, on which mutants are tried.
pub trait Bench {
    /// Describes the cases.
    fn size(&self) -> String;

    /// The fates of mutants, in their order. `step` says on which share of the cases each is tried.
    fn run(&self, mutants: &[Mutant], step: &Step<'_>) -> Vec<Fate>;

    /// The fate of one mutant, and the case and the report that decided it.
    fn fate(&self, mutant: &Mutant) -> (Fate, String);
}

/// For each mutant, the number of cases of which it meets one.
pub type Step<'a> = dyn Fn(&Mutant) -> usize + Sync + 'a;

/// File, bytes and replacement: they tell a mutant from all others.
type Key = (&'static str, Range<usize>, String);

/// One change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// Path below `shaders/`, `crates/tilewise/src/` or `crates/msl/kernels/`.
    pub file: &'static str,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// Kind of the change: `barrier`, `condition`, `compare`, `logic`, `guard`, `select`, `index`,
    /// `term`, `bound`, `swap`, `name`, `arithmetic`, `constant`.
    pub operator: &'static str,
    /// Bytes that are replaced.
    range: Range<usize>,
    replacement: String,
    /// The lines that change, without blanks at their ends.
    pub before: String,
    /// The lines after the change.
    pub after: String,
}

impl Mutant {
    fn new(
        file: &'static str,
        text: &str,
        operator: &'static str,
        range: Range<usize>,
        replacement: String,
    ) -> Self {
        let line_start = text[..range.start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end =
            text[range.end..].find('\n').map_or(text.len(), |newline| range.end + newline);
        let one_line = |text: String| {
            text.lines().map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned()
        };
        let after =
            [&text[line_start..range.start], &replacement, &text[range.end..line_end]].concat();
        Mutant {
            file,
            line: text[..range.start].matches('\n').count() + 1,
            column: text[line_start..range.start].chars().count() + 1,
            operator,
            before: one_line(text[line_start..line_end].to_owned()),
            after: one_line(after),
            range,
            replacement,
        }
    }

    /// The file's text with the change.
    pub fn apply(&self, text: &str) -> String {
        [&text[..self.range.start], &self.replacement, &text[self.range.end..]].concat()
    }

    fn key(&self) -> Key {
        (self.file, self.range.clone(), self.replacement.clone())
    }

    /// `file:line:column:operator`.
    pub fn id(&self) -> String {
        format!("{}:{}:{}:{}", self.file, self.line, self.column, self.operator)
    }
}

/// Path and text of every file of a language.
pub fn files(language: Language) -> Vec<(&'static str, &'static str)> {
    match language {
        Language::Wgsl => {
            tilewise_shaders::FILES.iter().copied().chain(tilewise::ops::texts()).collect()
        }
        Language::Msl => tilewise_msl::FILES.to_vec(),
    }
}

/// Every mutant of a language's files whose path contains `file`.
pub fn all(language: Language, file: &str) -> Vec<Mutant> {
    let files = files(language).into_iter().filter(|(path, _)| path.contains(file));
    files.flat_map(|(path, text)| operators::mutants(language, path, text)).collect()
}
