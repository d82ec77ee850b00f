//! The program `tilewise-puzzles`: fourteen GPU puzzles, from map to matrix multiplication.
//!
//! An answer is the body of a kernel. It runs on the CPU under the sanitizer: no GPU is needed, and
//! neither a race nor an access past the end of an array goes unnoticed.

mod check;
mod commands;
mod numbers;
mod picture;
mod puzzle;
mod run;
mod score;
mod specification;
mod table;

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = commands::Arguments::parse();
    match commands::run(&arguments) {
        Ok(done) => {
            // A reader that closes the pipe early has read enough.
            let _ = std::io::stdout().write_all(done.text.as_bytes());
            ExitCode::from(u8::from(!done.is_solved))
        }
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "tilewise-puzzles: {message}");
            ExitCode::from(2)
        }
    }
}
