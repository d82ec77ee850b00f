//! Errors that name the file.

use std::fmt::Display;
use std::path::Path;
use tilewise_core::Error;

/// The error of a malformed file.
pub(crate) fn bad(file: &str, why: impl Display) -> Error {
    Error::file(format!("{file}: {why}"))
}

/// The error of a system that refuses.
pub(crate) fn refused(path: &Path, why: std::io::Error) -> Error {
    Error::io(format!("{}: {why}", path.display()), why)
}

/// The error of a file that cannot be used.
pub(crate) fn unfit(path: &Path, why: impl Display) -> Error {
    Error::file(format!("{}: {why}", path.display()))
}
