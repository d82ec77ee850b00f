//! Counts the cases that a page reports.

use std::fmt;

use crate::process::Result;

/// The cases so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    adapter: String,
    case: String,
    ran: usize,
    failed: Vec<String>,
    /// Passed cases, summed from what the sections report.
    passed: usize,
    has_ended: bool,
}

impl Tally {
    /// Takes note of an event in the words of `tests/src/browser.rs`. Returns a line to show, if
    /// the event has one.
    ///
    /// # Errors
    /// The page has died, or says something unknown.
    pub(super) fn hear(&mut self, event: &str) -> Result<Option<String>> {
        let (word, text) = event.split_once(' ').unwrap_or((event, ""));
        match word {
            "adapter" => self.adapter = text.to_owned(),
            "case" => {
                self.ran += 1;
                self.case = text.to_owned();
                return Ok(None);
            }
            "failed" => self.failed.push(text.to_owned()),
            "section" => {
                let words = text.split_once(": ").and_then(|(_, counts)| counts.split(' ').next());
                let passed: Option<usize> = words.and_then(|count| count.parse().ok());
                self.passed += passed.ok_or(format!("the page says: {event}"))?;
            }
            "end" => self.has_ended = true,
            "died" => return Err(format!("the page died: {text}; {}", self.last())),
            _ => return Err(format!("the page says: {event}")),
        }
        Ok((word != "end").then(|| event.to_owned()))
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The case that was begun last.
    pub(super) fn last(&self) -> String {
        match self.case.as_str() {
            "" => "no case was begun".to_owned(),
            case => format!("the last case was {case}"),
        }
    }

    /// An error unless at least one case ran and all passed.
    pub(super) fn all_passed(&self) -> Result {
        match (self.ran, self.failed.len()) {
            (0, _) => Err("no case was run".to_owned()),
            (ran, 0) if self.passed == ran => Ok(()),
            (_, 0) => Err(format!("{self}, and none is said to have failed")),
            _ => Err(format!("{self}; these failed:\n{}", self.failed.join("\n"))),
        }
    }

    /// An error unless at least one case ran and all failed.
    pub(super) fn all_failed(&self) -> Result {
        match self.ran {
            0 => Err("no case was run".to_owned()),
            ran if self.failed.len() == ran && self.passed == 0 => Ok(()),
            _ => Err(format!("{self}, though the GPU did nothing: the suite sees no zeros")),
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} cases passed on {}", self.passed, self.ran, self.adapter)
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    fn tally(events: &[&str]) -> Tally {
        let mut tally = Tally::default();
        for event in events {
            tally.hear(event).unwrap();
        }
        tally
    }

    #[test]
    fn a_case_that_fails_is_named() {
        let failed = ["case a: 1", "failed a: 1\n0 for 2", "section a: 0 of 1 passed, 1 in all"];
        let tally = tally(&failed);
        let why = tally.all_passed().unwrap_err();
        assert!(why.contains("a: 1\n0 for 2"), "{why}");
        assert_eq!(tally.all_failed(), Ok(()));
    }

    #[test]
    fn a_case_that_is_never_judged() {
        let tally = tally(&["case a: 1", "case a: 2", "section a: 1 of 2 passed, 2 in all"]);
        assert!(tally.all_passed().is_err());
        assert!(tally.all_failed().is_err());
    }

    #[test]
    fn no_case_at_all() {
        let tally = tally(&["adapter x", "section a: 0 of 0 passed, 0 in all", "end"]);
        assert!(tally.has_ended());
        assert!(tally.all_passed().is_err());
        assert!(tally.all_failed().is_err());
    }

    #[test]
    fn cases_that_pass() {
        let tally = tally(&["case a: 1", "section a: 1 of 1 passed, 4 in all", "end"]);
        assert_eq!(tally.all_passed(), Ok(()));
        assert!(tally.all_failed().is_err());
    }

    #[test]
    fn a_page_that_dies() {
        let mut tally = tally(&["case a: 7"]);
        let why = tally.hear("died of an exception").unwrap_err();
        assert!(why.contains("exception") && why.contains("a: 7"), "{why}");
        assert!(tally.hear("what").is_err());
    }
}
