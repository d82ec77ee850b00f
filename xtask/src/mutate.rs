//! `cargo xtask mutate`: plants one mistake at a time in the library's WGSL and MSL, and fails if
//! the suite notices one of them too little.
//!
//! The program `mutants` of tests/ does the work.

use crate::clang;
use crate::process::{Result, run};

/// Builds the program and runs it with `args`.
pub(crate) fn main(args: &[String]) -> Result {
    run(clang::program("mutants")?.args(args))
}
