//! Errors that name the file.

use std::fmt::Display;
use std::path::Path;
use tilewise_core::Error;

/// The file is malformed.
pub(crate) fn bad(file: &str, why: impl Display) -> Error {
    Error::Data(format!("{file}: {why}"))
}

/// The system refuses.
pub(crate) fn refused(path: &Path, why: impl Display) -> Error {
    Error::File(format!("{}: {why}", path.display()))
}
