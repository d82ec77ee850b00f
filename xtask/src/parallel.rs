//! `cargo xtask parallel`: runs the example that shares out a model among processes, with one, two
//! and three of them. The tokens must be the same.

use std::process::Command;

use crate::adapters::{self, Adapters};
use crate::debian::Apt;
use crate::process::{Result, capture, cargo, executable, find_program, is_required, run};

/// The example's manifest. It is not of the workspace, so no other step formats or lints it.
const MANIFEST: [&str; 2] = ["--manifest-path", "crates/tilewise/examples/parallel/Cargo.toml"];

/// Programs and Debian's packages of them: MPI, and the libclang that reads its headers.
const PROGRAMS: [(&str, &str); 2] = [("mpicc", "libopenmpi-dev"), ("clang", "clang")];

/// The command.
pub(crate) fn main() -> Result {
    test(&adapters::prepare()?)?
}

/// Checks and runs the example. If there is no MPI and it cannot be installed, the inner error says
/// why; if `TILEWISE_REQUIRE` has `mpi`, that is an outer error.
pub(crate) fn test(adapters: &Adapters) -> Result<Result> {
    if let Err(why) = install() {
        return if is_required("mpi") { Err(why) } else { Ok(Err(why)) };
    }
    run(cargo(["fmt", "--check"]).args(MANIFEST))?;
    let compile = |command| {
        let mut compile = cargo([command, "--locked", "--target-dir", "target"]);
        compile.args(MANIFEST);
        compile
    };
    run(compile("clippy").args(["--", "-D", "warnings"]))?;
    let messages = capture(compile("build").args(["--message-format", "json-render-diagnostics"]))?;
    let program = executable(&messages, "bin", "tilewise-parallel")
        .ok_or("cargo build names no executable for the example")?;

    let mut alone = None;
    for processes in ["1", "2", "3"] {
        let mut command = Command::new("mpirun");
        command.args(["--allow-run-as-root", "--oversubscribe", "--timeout", "300"]);
        adapters.apply(command.args(["-n", processes]).arg(&program));
        if adapters.has_lavapipe() {
            command.env("TILEWISE_ADAPTER", "llvmpipe");
        }
        let tokens = capture(&mut command)?;
        println!("tokens of {processes}: {}", tokens.trim());
        if !tokens.starts_with('[') || tokens != *alone.get_or_insert_with(|| tokens.clone()) {
            return Err(format!("{processes} processes do not generate what one generates"));
        }
    }
    Ok(Ok(()))
}

/// Installs what is missing.
fn install() -> Result {
    let missing = PROGRAMS.iter().filter(|(program, _)| find_program(program).is_none());
    let packages: Vec<_> = missing.map(|(_, package)| *package).collect();
    if packages.is_empty() { Ok(()) } else { Apt::open()?.install(&packages, None) }
}
