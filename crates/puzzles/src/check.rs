//! Checks an answer in every case of its puzzle: numbers, findings, score.

use crate::numbers::{self, SETS};
use crate::picture::Picture;
use crate::puzzle::{Array, Case, Puzzle};
use crate::run::{self, Run};
use crate::score::{self, COUNTED, Column, Score};
use std::collections::BTreeSet;
use std::fmt::{self, Display, Write};
use tilewise_sanitizer::Kind;

/// Placeholder of the answer in a skeleton.
pub(crate) const GAP: &str = "FILL ME IN";

/// How many wrong numbers are listed one by one.
const MOST_TOLD: usize = 4;

/// Result of the check of an answer.
#[derive(Default)]
pub(crate) struct Checked {
    /// The text for people, without the picture.
    pub(crate) text: String,
    /// Reasons why the puzzle is not solved; empty if it is.
    pub(crate) complaints: BTreeSet<Complaint>,
    /// The picture of each case; none when the answer does not compile.
    pub(crate) pictures: Vec<Picture>,
    /// The first case with a complaint of its own.
    pub(crate) first_at_fault: Option<usize>,
}

/// One reason why an answer is no solution, the gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Complaint {
    /// The answer does not compile, or cannot run for another reason.
    CannotRun,
    /// `out` is not what was specified.
    WrongNumbers,
    /// The sanitizer found something.
    Finding(Kind),
    /// One of [`COUNTED`] is over target.
    OverTarget(usize),
    /// One of [`COUNTED`] is less than the puzzle asks for.
    UnderLeast(usize),
}

impl Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Complaint::CannotRun => f.write_str("the kernel cannot be run"),
            Complaint::WrongNumbers => f.write_str("wrong numbers"),
            Complaint::Finding(kind) => write!(f, "a finding ({kind})"),
            Complaint::OverTarget(counter) => write!(f, "over target ({})", COUNTED[*counter]),
            Complaint::UnderLeast(counter) => write!(f, "under the least ({})", COUNTED[*counter]),
        }
    }
}

/// An answer on one set of inputs.
struct Attempt {
    inputs: Vec<Array>,
    expected: Vec<f32>,
    run: Run,
}

/// Checks `body` as the answer to a puzzle; `color` is for the findings.
pub(crate) fn check(puzzle: &Puzzle, body: &str, color: bool) -> Checked {
    let mut checked = Checked::default();
    let mut scores = Vec::new();
    for (index, case) in puzzle.cases.iter().enumerate() {
        let attempts = match attempts(puzzle, case, body, color) {
            Ok(attempts) => attempts,
            // An answer that is not WGSL fails in every case.
            Err(error) => {
                let _ = writeln!(checked.text, "{}", error.to_string().trim_end());
                checked.complaints.insert(Complaint::CannotRun);
                break;
            }
        };
        let _ = writeln!(checked.text, "{case}");
        let reached = attempts.iter().map(|attempt| Score::of(&attempt.run.report.counters));
        let reached = reached.fold(Score::default(), Score::worse);

        // The numbers and scores of a run that was cut off mean nothing.
        let is_endless = attempts.iter().any(|attempt| attempt.run.found(Kind::EndlessLoop));
        let mut complaints = BTreeSet::new();
        if is_endless {
            let _ = writeln!(checked.text, "  out is not looked at: a loop does not end");
        } else {
            complaints.extend(numbers(&mut checked.text, puzzle, case, &attempts));
            complaints.extend(reached.over(case.target).map(Complaint::OverTarget));
            complaints.extend(reached.under(case.least).map(Complaint::UnderLeast));
            let (target, least) = (case.target, case.least);
            scores.push(Column { name: case.to_string(), reached, target, least });
        }
        complaints.extend(findings(&mut checked.text, &checked.complaints, &attempts));
        if !complaints.is_empty() {
            checked.first_at_fault.get_or_insert(index);
        }
        checked.complaints.extend(complaints);
        let Run { report, shader, .. } = &attempts[0].run;
        checked.pictures.push(Picture::new(puzzle, case, shader, report));
    }
    if scores.is_empty() {
        checked.text.truncate(checked.text.trim_end().len());
        checked.text.push('\n');
    } else {
        checked.text.push_str(&score::table(&scores));
    }
    if !checked.complaints.is_empty() && body.contains(GAP) {
        let _ = writeln!(
            checked.text,
            "\nThe gap marked {GAP} is still there: write your kernel in its place."
        );
    }
    checked
}

fn attempts(
    puzzle: &Puzzle,
    case: &Case,
    body: &str,
    color: bool,
) -> tilewise::Result<Vec<Attempt>> {
    let attempt = |set| {
        let inputs = numbers::inputs(case, set);
        let run = run::run(puzzle, case, body, &inputs, color)?;
        Ok(Attempt { expected: (puzzle.specification)(&inputs, case), inputs, run })
    };
    numbers::sets(body).map(attempt).collect()
}

/// Compares the output with the specification.
fn numbers(
    text: &mut String,
    puzzle: &Puzzle,
    case: &Case,
    attempts: &[Attempt],
) -> BTreeSet<Complaint> {
    let wrong =
        attempts.iter().enumerate().find(|(_, attempt)| attempt.run.output != attempt.expected);
    let Some((set, Attempt { inputs, expected, run })) = wrong else {
        let _ = writeln!(
            text,
            "  out is right, in {SETS} sets of numbers and one drawn from the answer's text"
        );
        return BTreeSet::new();
    };
    let is_own = set as u64 == SETS;
    let which = if is_own {
        "the set drawn from the answer's text".to_owned()
    } else {
        format!("set {} of {SETS}", set + 1)
    };
    let _ = writeln!(text, "  out is wrong, in {which}:");
    for (name, input) in puzzle.inputs.iter().zip(inputs) {
        let _ = writeln!(text, "    {name} = {}", literal(input));
    }
    let wrong: Vec<usize> =
        (0..expected.len()).filter(|&index| run.output[index] != expected[index]).collect();
    // One number of the answer's own inputs is a hint; all of them would be the answer.
    let told = if is_own { 1 } else { MOST_TOLD };
    for &index in wrong.iter().take(told) {
        let found = if run.wrote(index) {
            format!("is {}", run.output[index])
        } else {
            "was never written".to_owned()
        };
        let _ = writeln!(
            text,
            "    out[{}] {found}, should be {}",
            position(index, case.output),
            expected[index]
        );
    }
    if wrong.len() > told {
        let _ = writeln!(text, "    and so on: {} of {} numbers", wrong.len(), expected.len());
    }
    [Complaint::WrongNumbers].into()
}

/// Writes what the sanitizer found, if it is new: usually the same bug is found in every case.
fn findings(
    text: &mut String,
    known: &BTreeSet<Complaint>,
    attempts: &[Attempt],
) -> BTreeSet<Complaint> {
    let Some(Attempt { run, .. }) = attempts.iter().find(|attempt| !attempt.run.report.is_clean())
    else {
        text.push_str("  the sanitizer finds nothing\n\n");
        return BTreeSet::new();
    };
    let found: BTreeSet<Complaint> =
        run.report.findings.iter().map(|finding| Complaint::Finding(finding.kind)).collect();
    if found.is_subset(known) {
        text.push_str("  the sanitizer reports the like again\n\n");
    } else {
        let _ = writeln!(text, "  the sanitizer reports:\n\n{}\n", run.findings.trim_end());
    }
    found
}

/// `[1, 2, 3]`, `[[1, 2], [3, 4]]`.
fn literal(array: &Array) -> String {
    let list = |items: Vec<String>| format!("[{}]", items.join(", "));
    let row = |row: &[f32]| list(row.iter().map(f32::to_string).collect());
    match array.shape[..] {
        [_, columns] => list(array.values.chunks(columns).map(row).collect()),
        _ => row(&array.values),
    }
}

/// The position of element `index` in a shape: `5`, or `1, 2`.
fn position(index: usize, shape: &[usize]) -> String {
    match *shape {
        [_, columns] => format!("{}, {}", index / columns, index % columns),
        _ => index.to_string(),
    }
}
