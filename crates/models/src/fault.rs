//! Errors of this crate.

use std::fmt::Display;
use tilewise::Error;

/// A fault of the files.
pub(crate) fn fault(text: impl Into<String>) -> Error {
    Error::File { text: text.into(), source: None }
}

/// An argument that is wrong.
pub(crate) fn misuse(text: impl Into<String>) -> Error {
    Error::Misuse(text.into())
}

/// An error of the crate `tokenizers`.
pub(crate) fn of_tokenizer(error: impl Display) -> Error {
    fault(format!("the tokenizer: {error}"))
}
