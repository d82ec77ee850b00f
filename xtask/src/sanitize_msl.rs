//! `cargo xtask sanitize-msl`: the MSL kernels on CPUs with sanitizers looking on.
//!
//! The work is done by the program `sanitize_msl` of tests/.

use crate::clang;
use crate::process::{Result, run};

/// Builds the program and runs it with `args`.
pub(crate) fn main(args: &[String]) -> Result {
    run(clang::program("sanitize_msl")?.args(args))
}
