//! `cargo xtask mutate`: plants one mistake at a time in the library's WGSL and MSL, and fails when
//! the suite notices any of them too little.
//!
//! The work is done by the program `mutants` of tests/.

use crate::clang;
use crate::process::{Result, run};
use crate::test::TURN;

/// A third of the mutants, by turns; all without a number.
pub(crate) fn some(turn: Option<u32>) -> Result {
    match turn {
        Some(turn) => {
            let mut program = clang::program("mutants")?;
            run(program.args(["--every", "3"]).env(TURN, turn.to_string()))
        }
        None => main(&[]),
    }
}

/// Builds the program and runs it with `args`.
pub(crate) fn main(args: &[String]) -> Result {
    run(clang::program("mutants")?.args(args))
}
