//! `cargo xtask bench`: the benchmark program in release mode, with the given arguments.

use crate::process::{Result, capture, cargo, run};
use std::process::Command;

/// Runs the `bench` program of benches/ with `args`, and tells it the commit for its record.
pub(crate) fn main(args: &[String]) -> Result {
    let mut command = cargo(["run", "--release", "--package", "tilewise-benches", "--bin", "bench", "--"]);
    command.args(args);
    if !args.iter().any(|arg| arg.starts_with("--commit")) {
        command.args(["--commit", &commit()]);
    }
    run(&mut command)
}

/// The commit of the tree, with `+changes` when files differ from it; `unknown` outside a checkout.
pub(crate) fn commit() -> String {
    let git = |args: &[&str]| capture(Command::new("git").args(args));
    let Ok(commit) = git(&["rev-parse", "--short", "HEAD"]) else { return "unknown".into() };
    let changed = git(&["status", "--porcelain"]).is_ok_and(|changes| !changes.trim().is_empty());
    format!("{}{}", commit.trim(), if changed { "+changes" } else { "" })
}
