//! Progress of long work, on stderr when that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::path::Path;
use std::time::Duration;

/// Below this size a file is read faster than a bar is drawn.
const LONG_READ: u64 = 64 << 20;

/// Constructors of progress bars; each draws nothing when stderr is not a terminal.
pub(crate) struct Progress;

impl Progress {
    /// For reading a file of `len` bytes.
    pub(crate) fn of_reading(len: u64, path: &Path) -> ProgressBar {
        if len < LONG_READ {
            return ProgressBar::hidden();
        }
        let style = "reading {msg} {wide_bar} {bytes}/{total_bytes} {eta}";
        ProgressBar::new(len).with_message(path.display().to_string()).with_style(styled(style))
    }

    /// For `total` steps of work.
    pub(crate) fn of_steps(total: u64, message: &'static str) -> ProgressBar {
        ProgressBar::new(total).with_message(message).with_style(styled("{msg} {wide_bar} {percent}% {eta}"))
    }

    /// For work that cannot tell how far it is.
    pub(crate) fn of_waiting(message: &'static str) -> ProgressBar {
        let spinner = ProgressBar::new_spinner().with_message(message).with_style(styled("{spinner} {msg} {elapsed}"));
        spinner.enable_steady_tick(Duration::from_millis(200));
        spinner
    }
}

/// The style of a template; the default style should the template be malformed, which a test rules out.
fn styled(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
