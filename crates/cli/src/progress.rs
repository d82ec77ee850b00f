//! Progress of long work, on stderr when that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::path::Path;

/// Files below this size are read faster than a bar is drawn.
const LONG_READ: u64 = 64 << 20;

const READING: &str = "reading {msg} {wide_bar} {bytes}/{total_bytes} {eta}";
const BYTES: &str = "{msg} {wide_bar} {bytes}/{total_bytes} {eta}";
const STEPS: &str = "{msg} {wide_bar} {percent}% {eta}";

/// A bar for reading a file of `len` bytes.
pub(crate) fn of_reading(len: u64, path: &Path) -> ProgressBar {
    if len < LONG_READ {
        return ProgressBar::hidden();
    }
    ProgressBar::new(len).with_message(path.display().to_string()).with_style(styled(READING))
}

/// A bar for a number of bytes that is set later.
pub(crate) fn of_bytes(message: &'static str) -> ProgressBar {
    ProgressBar::new(0).with_message(message).with_style(styled(BYTES))
}

/// A bar for `total` steps of work.
pub(crate) fn of_steps(total: u64, message: &'static str) -> ProgressBar {
    ProgressBar::new(total).with_message(message).with_style(styled(STEPS))
}

fn styled(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_well_formed() {
        for template in [READING, BYTES, STEPS] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
