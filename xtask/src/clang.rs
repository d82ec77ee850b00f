//! clang with its sanitizers, with which the harness of MSL kernels compiles: found, or installed
//! if that is possible.

use std::process::{Command, Stdio};

use crate::debian::Apt;
use crate::process::{Result, build_program};

/// Whether MSL kernels can be run on this machine's CPU, with sanitizers too. This was tried on
/// Linux only; elsewhere it needs a compiler that `TILEWISE_CLANG` names.
pub(crate) fn prepare() -> bool {
    if named().is_none() && !cfg!(target_os = "linux") {
        return false;
    }
    if works() {
        return true;
    }
    if let Some(clang) = named() {
        eprintln!("TILEWISE_CLANG names {clang:?}, which does not link programs with sanitizers");
        return false;
    }
    match Apt::open().and_then(|apt| install(&apt)) {
        Ok(()) => works(),
        Err(why) => {
            eprintln!("no clang with sanitizers, and it is not installed: {why}");
            false
        }
    }
}

/// Builds a program that runs MSL kernels. If there is a clang, the program must fail when it
/// cannot run them. Without a clang the program says what it leaves out, and fails if
/// `TILEWISE_REQUIRE` has `msl`.
pub(crate) fn program(name: &str) -> Result<Command> {
    // This comes before the build, because the harness in the program is built with clang.
    let required = prepare();
    let mut command = Command::new(build_program(name)?);
    if required {
        command.env("TILEWISE_REQUIRE", "msl");
    }
    Ok(command)
}

fn named() -> Option<String> {
    std::env::var("TILEWISE_CLANG").ok().filter(|name| !name.is_empty())
}

/// Installs clang, and what Debian keeps in packages of their own: the sanitizers' runtimes, by
/// clang's version, and the program that names lines in their reports.
fn install(apt: &Apt) -> Result {
    eprintln!("clang, which compiles the MSL kernels for the CPU, is missing");
    apt.install(&["clang", "llvm"], None)?;
    let version =
        Command::new("clang++").arg("-dumpversion").output().map_err(|error| error.to_string())?;
    let version = String::from_utf8_lossy(&version.stdout);
    let major = version.split('.').next().unwrap_or_default().trim();
    apt.install(&[&format!("libclang-rt-{major}-dev")], None)
}

/// Whether clang links a program with each sanitizer.
fn works() -> bool {
    let links = |sanitizer: &str| {
        let mut command = Command::new(named().unwrap_or_else(|| "clang++".into()));
        command.args(["-x", "c++", "-", "-o", "/dev/null", sanitizer]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        std::io::Write::write_all(&mut child.stdin.take()?, b"int main() {}").ok()?;
        Some(child.wait().ok()?.success())
    };
    ["-fsanitize=thread", "-fsanitize=address,undefined"]
        .into_iter()
        .all(|sanitizer| links(sanitizer) == Some(true))
}
