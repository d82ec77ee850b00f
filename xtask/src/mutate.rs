//! `cargo xtask mutate`: plants one mistake at a time in the library's WGSL, and fails when the suite notices any of them too little.
//!
//! The work is done by the program `mutants` of tests/. It is built as the tests are, with everything, so that nothing is compiled twice.

use crate::process::{Result, capture, cargo, run};
use std::process::Command;

/// Builds the program and runs it with `args`.
pub(crate) fn main(args: &[String]) -> Result {
    let mut build = cargo(["build", "--workspace", "--all-features", "--bin", "mutants"]);
    let messages = capture(build.args(["--message-format", "json-render-diagnostics"]))?;
    let executable = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(str::to_owned)
    };
    let program = messages.lines().find_map(executable).ok_or("cargo build names no executable for `mutants`")?;
    run(Command::new(program).args(args))
}
