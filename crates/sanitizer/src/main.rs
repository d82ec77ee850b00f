//! The program `tilewise-sanitizer`: runs a WGSL compute shader on the CPU and reports what is
//! wrong with it.

mod cli;

use clap::Parser;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// The exit status for wrong usage, input that cannot be read, and shaders that cannot be run.
const UNUSABLE: u8 = 2;

fn main() -> ExitCode {
    match cli::run(&cli::Args::parse())
        .and_then(|outcome| print(&outcome.text).map(|()| outcome.found))
    {
        Ok(found) => ExitCode::from(u8::from(found)),
        Err(message) => {
            // With stderr closed there is nobody left to tell.
            let _ = writeln!(std::io::stderr(), "{}", message.trim_end());
            ExitCode::from(UNUSABLE)
        }
    }
}

/// Writes to standard output. A reader that has closed it (as `head` does) has read enough: that is
/// no failure.
fn print(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(cli::message(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}
