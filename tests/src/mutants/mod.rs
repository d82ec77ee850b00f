//! The mutation check: plants one mistake at a time in the library's WGSL, and looks whether the suite notices.
//!
//! A deleted barrier, a weakened guard, a shifted index, an operand in another's place: each is a *mutant*. The cases whose shaders it changes run in the
//! sanitizer until one fails, which kills the mutant: first those that killed its neighbours in the text, then the cheapest. One that survives all of them
//! shows a hole in the suite, or makes no difference; those that make none are listed with the reason in `tests/mutants/explained.txt` ([`explained`]),
//! and a survivor that is not listed there fails the check.

mod engine;
pub mod explained;
mod operators;
mod report;
mod token;

pub use engine::{Bench, Fate};
pub use report::Summary;

use std::ops::Range;
use tilewise_shaders::FILES;

/// One change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// Path below `shaders/`.
    pub file: &'static str,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// Kind of the change: `barrier`, `condition`, `compare`, `logic`, `guard`, `select`, `index`, `bound`, `swap`, `name`, `arithmetic`, `constant`.
    pub operator: &'static str,
    /// Bytes that are replaced.
    range: Range<usize>,
    replacement: String,
    /// The lines that change, blanks at their ends left out.
    pub before: String,
    /// What they become.
    pub after: String,
}

impl Mutant {
    fn new(file: &'static str, text: &str, operator: &'static str, range: Range<usize>, replacement: String) -> Self {
        let line_start = text[..range.start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[range.end..].find('\n').map_or(text.len(), |newline| range.end + newline);
        let one_line = |text: String| text.lines().map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned();
        let after = [&text[line_start..range.start], &replacement, &text[range.end..line_end]].concat();
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

    /// `file:line:column:operator`.
    pub fn id(&self) -> String {
        format!("{}:{}:{}:{}", self.file, self.line, self.column, self.operator)
    }
}

/// Every mutant of the library's files whose path contains `file`.
pub fn all(file: &str) -> Vec<Mutant> {
    let files = FILES.iter().filter(|(path, _)| path.contains(file));
    files.flat_map(|(path, text)| operators::mutants(path, text)).collect()
}
