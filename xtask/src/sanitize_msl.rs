//! `cargo xtask sanitize-msl`: runs the MSL kernels on the CPU under sanitizers.
//!
//! The program `sanitize_msl` of tests/ does the work.

use crate::clang;
use crate::process::{Result, run};

/// Builds the program and runs it with `args`.
pub(crate) fn main(args: &[String]) -> Result {
    run(clang::program("sanitize_msl")?.args(args))
}
