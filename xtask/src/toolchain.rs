//! A Rust that compiles for other platforms.

use std::process::Command;

use crate::debian::{self, Apt};
use crate::process::{Result, cargo, find_program};

/// The least version that compiles the workspace.
const RUST_VERSION: &str = env!("CARGO_PKG_RUST_VERSION");

/// Debian's rustc, cargo, and the source of the standard library, to build it for any target.
const DEBIAN_PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];

/// A compiler for several targets.
#[derive(Clone, Copy)]
pub(crate) enum Toolchain {
    /// The toolchain that runs this program; rustup has given it the targets' standard libraries.
    Rustup,
    /// Debian's, which builds the standard library from source.
    Debian,
}

impl Toolchain {
    /// Finds a toolchain, or installs it. The inner error says why there is none; the outer error
    /// says why installing it failed.
    pub(crate) fn find(triples: &[&str]) -> Result<std::result::Result<Self, String>> {
        if rustup_has(triples) {
            return Ok(Ok(Self::Rustup));
        }
        if debian_has_all() {
            return Ok(Ok(Self::Debian));
        }
        let triples = triples.join(" ");
        let mend = format!("`rustup target add {triples}` would give the toolchain what it lacks");
        let apt = match Apt::open() {
            Ok(apt) => apt,
            Err(why) => return Ok(Err(format!("{why}; {mend}"))),
        };
        for package in DEBIAN_PACKAGES {
            if !apt.offers(package, RUST_VERSION)? {
                return Ok(Err(format!(
                    "apt does not offer {package} {RUST_VERSION} or later; {mend}"
                )));
            }
        }
        println!(
            "other platforms are compiled for with Debian's Rust, which can build their standard \
             libraries"
        );
        apt.install(&DEBIAN_PACKAGES, None)?;
        Ok(Ok(Self::Debian))
    }

    /// A command of cargo; `std` is what `-Zbuild-std` builds if no compiled standard library is at
    /// hand.
    pub(crate) fn cargo(self, subcommand: &str, std: &str) -> Command {
        if let Self::Rustup = self {
            return cargo([subcommand]);
        }
        let mut command = Command::new("/usr/bin/cargo");
        // cargo and rustup have set variables about their own toolchain; the other one must not see
        // them.
        for name in ["CARGO", "RUSTUP_TOOLCHAIN", "RUSTDOC", "LD_LIBRARY_PATH"] {
            command.env_remove(name);
        }
        // -Z needs a nightly compiler, or a stable one told to act as one. Nothing built here is
        // shipped.
        command.env("RUSTC_BOOTSTRAP", "1").env("RUSTC", "/usr/bin/rustc");
        command.args([subcommand, &format!("-Zbuild-std={std}"), "-Zbuild-std-features="]);
        command
    }
}

fn rustup_has(triples: &[&str]) -> bool {
    if find_program("rustup").is_none() {
        return false;
    }
    let output = Command::new("rustup").args(["target", "list", "--installed"]).output();
    let installed = output
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    triples.iter().all(|triple| installed.lines().any(|line| line.trim() == *triple))
}

fn debian_has_all() -> bool {
    let suffices = |version: String| debian::is_at_least(&version, RUST_VERSION);
    DEBIAN_PACKAGES.iter().all(|package| debian::installed_version(package).is_some_and(suffices))
}
