//! Failures of the program, and their exit statuses.

use crate::array::Source;
use std::io::{self, Write};
use tilewise_files::Expected;

/// A reason to stop. Its text goes to stderr as one line.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line asks for something that can never work. Exit status 2.
    Usage(String),
    /// Anything else. Exit status 1.
    Other(String),
    /// The reader of standard output has closed it (as `head` does): stop without a word.
    Closed,
}

/// Result of every fallible function of the program.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure that is not the fault of the command line.
    pub(crate) fn other(text: impl Into<String>) -> Self {
        Failure::Other(text.into())
    }

    /// Exit status of the program.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Other(_) => 1,
            Failure::Closed => 0,
        }
    }

    /// The line for stderr. Texts of drivers and planners may span several lines; they are joined.
    pub(crate) fn line(&self) -> Option<String> {
        let (Failure::Usage(text) | Failure::Other(text)) = self else { return None };
        let parts: Vec<&str> =
            text.lines().map(str::trim).filter(|part| !part.is_empty()).collect();
        Some(format!("tilewise: {}", parts.join("; ")))
    }
}

impl From<tilewise::Error> for Failure {
    fn from(error: tilewise::Error) -> Self {
        Failure::Other(error.to_string())
    }
}

/// The failure of options about quantized weights when the weights are dense.
pub(crate) fn dense(source: &Source, said: &Expected) -> Failure {
    Failure::Other(format!("{source}: the weights are dense; the arguments say {said}"))
}

/// Only writes to standard output use `?` on an `io::Error`. Errors of files get their path where
/// they occur.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Closed,
            _ => Failure::Other(format!("standard output: {error}")),
        }
    }
}

/// Writes a warning to stderr. If stderr is closed, there is nobody left to tell.
pub(crate) fn warn(text: &str) {
    let _ = writeln!(io::stderr(), "tilewise: warning: {text}");
}
