//! `cargo xtask mutate`: plants one mistake at a time in the library's WGSL and MSL, and fails when
//! the suite notices any of them too little.
//!
//! The work is done by the program `mutants` of tests/.

use crate::clang;
use crate::process::{Result, run};

/// Builds the program and runs it with `args`.
pub(crate) fn main(args: &[String]) -> Result {
    run(clang::program("mutants")?.args(args))
}
