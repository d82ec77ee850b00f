//! The program `tilewise`: matrix products of arrays and of quantized models on any GPU.

mod args;
mod array;
mod commands;
mod failure;
mod matrix;
mod oracle;
mod product;
mod progress;
mod role;
mod stack;
mod table;
mod target;

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    // A failure takes one line on stderr, so the log of the libraries is off unless RUST_LOG asks
    // for it (RUST_LOG=info).
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("off")).init();
    let cli = args::Cli::parse();
    let mut out = std::io::stdout().lock();
    let done = commands::run(cli.command, &mut out).and_then(|()| Ok(out.flush()?));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(line) = failure.line() {
                // With stderr closed there is nobody left to tell.
                let _ = writeln!(std::io::stderr(), "{line}");
            }
            ExitCode::from(failure.status())
        }
    }
}
