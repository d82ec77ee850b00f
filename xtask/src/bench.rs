//! `cargo xtask bench`: the benchmark program in release mode, with the given arguments and reports in `target/bench/`.

use crate::process::{Result, capture, cargo, run};
use std::process::Command;

/// Runs the `bench` program of benches/ with `args`, tells it the commit for its record, and has it write its reports.
pub(crate) fn main(args: &[String]) -> Result {
    let mut command = cargo(["run", "--release", "--package", "tilewise-benches", "--bin", "bench", "--"]);
    command.args(args);
    let named = |option: &str| args.iter().any(|arg| arg.split('=').next() == Some(option));
    // A report that is only shown has its commit and its file already.
    if !named("--from") {
        for (option, value) in [("--commit", &commit()[..]), ("--json", "target/bench/report.json")] {
            if !named(option) {
                command.args([option, value]);
            }
        }
    }
    if !named("--html") {
        command.args(["--html", "target/bench/report.html"]);
    }
    run(&mut command)
}

/// The commit of the tree, with `+changes` when files differ from it; `unknown` outside a checkout.
fn commit() -> String {
    let git = |args: &[&str]| capture(Command::new("git").args(args));
    let Ok(commit) = git(&["rev-parse", "--short", "HEAD"]) else { return "unknown".into() };
    let changed = git(&["status", "--porcelain"]).is_ok_and(|changes| !changes.trim().is_empty());
    format!("{}{}", commit.trim(), if changed { "+changes" } else { "" })
}
