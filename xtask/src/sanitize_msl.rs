//! `cargo xtask sanitize-msl`: the MSL kernels on CPUs with sanitizers looking on.
//!
//! The work is done by the program `sanitize_msl` of tests/.

use crate::clang;
use crate::process::{Result, build_program, run};
use std::process::Command;

/// Builds the program and runs it with `args`.
pub(crate) fn main(args: &[String]) -> Result {
    // Before the program: the harness in it is built with clang.
    let required = clang::prepare();
    let mut command = Command::new(build_program("sanitize_msl")?);
    if required {
        command.env("TILEWISE_REQUIRE", "msl");
    }
    run(command.args(args))
}
