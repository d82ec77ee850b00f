//! Outcomes of groups of tests.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{Read, Seek};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::process::Result;

/// Lines to show of a group that failed without saying why.
const SHOWN: usize = 60;

/// The outcome of one group.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) passed: usize,
    pub(super) failed: usize,
    /// Lines that say what the tests left out, and why, each once.
    pub(super) skipped: BTreeSet<String>,
    pub(super) time: Duration,
    /// How the process ended, unless it ended well.
    pub(super) trouble: Option<String>,
}

impl Outcome {
    /// Runs a group for at most `limit`. Also returns what the group printed.
    pub(super) fn of(command: &mut Command, limit: Duration) -> Result<(Outcome, String)> {
        let program = command.get_program().to_string_lossy().into_owned();
        let failed = |error: std::io::Error| format!("cannot run {program}: {error}");
        // The output goes to a file, which takes any amount although nobody reads it meanwhile.
        let mut file = tempfile::tempfile().map_err(failed)?;
        let (stdout, stderr) =
            (file.try_clone().map_err(failed)?, file.try_clone().map_err(failed)?);
        let start = Instant::now();
        let mut child =
            command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).spawn().map_err(failed)?;
        let status = loop {
            match child.try_wait().map_err(failed)? {
                Some(status) => break Some(status),
                None if start.elapsed() > limit => {
                    // The process may have ended by itself just now.
                    let _ = child.kill();
                    let _ = child.wait();
                    break None;
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        let time = start.elapsed();
        let mut bytes = Vec::new();
        file.rewind().and_then(|()| file.read_to_end(&mut bytes)).map_err(failed)?;
        let output = String::from_utf8_lossy(&bytes).into_owned();
        let trouble = match status {
            None => Some(format!("stopped after {} s", limit.as_secs())),
            Some(status) if status.success() => None,
            Some(status) => Some(status.to_string()),
        };
        Ok((Outcome { time, trouble, ..Outcome::read(&output) }, output))
    }

    /// The counts in a group's output.
    pub(super) fn read(output: &str) -> Outcome {
        let ending = |end: &str| {
            output.lines().filter(|line| line.starts_with("test ") && line.ends_with(end)).count()
        };
        let skipped = output.lines().map(str::trim).filter(|line| line.starts_with("skipped: "));
        Outcome {
            passed: ending("... ok"),
            failed: ending("... FAILED"),
            skipped: skipped.map(str::to_owned).collect(),
            ..Outcome::default()
        }
    }

    pub(super) fn is_ok(&self) -> bool {
        self.trouble.is_none()
    }

    /// The part of the output that tells what went wrong.
    pub(super) fn shown<'a>(&self, output: &'a str) -> &'a str {
        let tail =
            || output.trim_end().rmatch_indices('\n').nth(SHOWN - 1).map_or(0, |(at, _)| at + 1);
        &output[output.find("\nfailures:\n").unwrap_or_else(tail)..]
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { passed, failed, skipped, time, trouble } = self;
        write!(
            f,
            "{passed:>4} passed {failed:>4} failed {:>4} skipped {:>8.1} s",
            skipped.len(),
            time.as_secs_f64()
        )?;
        trouble.as_ref().map_or(Ok(()), |trouble| write!(f, "  {trouble}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_an_output() {
        let output = "running 3 tests\n\
                      test a ... ok\n\
                      skipped: x\n\
                      test b::c ... FAILED\n\
                      test d ... ok\n\
                      skipped: x\n\n\
                      failures:\n\n\
                      ---- b";
        let outcome = Outcome::read(output);
        assert_eq!((outcome.passed, outcome.failed, outcome.skipped.len()), (2, 1, 1));
        assert_eq!(outcome.shown(output), "\nfailures:\n\n---- b");
        let long: String = (0..100).map(|line| format!("{line}\n")).collect();
        assert_eq!(outcome.shown(&long).lines().count(), SHOWN);
        assert_eq!(outcome.shown("short"), "short");
    }

    #[cfg(unix)]
    #[test]
    fn ends_of_a_process() {
        let sh = |script: &str, limit| {
            Outcome::of(Command::new("sh").args(["-c", script]), limit).unwrap()
        };
        let second = Duration::from_secs(1);
        let (outcome, output) = sh("echo test a ... ok; echo skipped: b >&2", 60 * second);
        assert!(
            outcome.is_ok() && outcome.passed == 1 && outcome.skipped.len() == 1,
            "{outcome} {output}"
        );
        assert!(sh("exit 3", 60 * second).0.trouble.unwrap().contains('3'));
        let (outcome, output) = sh("echo begun; exec sleep 60", second);
        assert!(outcome.time < 30 * second && output == "begun\n", "{outcome} {output}");
        assert_eq!(outcome.trouble.unwrap(), "stopped after 1 s");
    }
}
