//! `cargo xtask bench`: the benchmark program in release mode, with the given arguments.

use crate::process::{Result, cargo, run};

/// Runs the `bench` program of benches/ with `args`.
pub(crate) fn main(args: &[String]) -> Result {
    let mut command = cargo(["run", "--release", "--package", "tilewise-benches", "--bin", "bench", "--"]);
    run(command.args(args))
}
