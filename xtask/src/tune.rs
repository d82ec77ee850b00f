//! `cargo xtask tune`: runs the tuning program in release mode, with the given arguments.

use crate::process::{Result, cargo, run};

/// Runs the `tune` program of benches/ with `args`.
pub(crate) fn main(args: &[String]) -> Result {
    run(cargo(["run", "--release", "--package", "tilewise-benches", "--bin", "tune", "--"])
        .args(args))
}
