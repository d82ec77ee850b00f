//! `cargo xtask check-targets`: type-checks the library and the program for platforms other than
//! this one. All features are on, MSL's among them. Only for iOS, which has no program, custom
//! kernels are off.

use std::env;
use std::process::Command;

use crate::process::{Beside, Result, capture, cargo, is_required, run};
use crate::toolchain::Toolchain;

/// A platform, and the backend of wgpu without which checking it would prove nothing.
struct Target {
    triple: &'static str,
    features: &'static [&'static str],
    backend: Backend,
    /// The crates that `-Zbuild-std` builds if no compiled standard library is at hand.
    std: &'static str,
    /// Packages that are checked beside the libraries. Browsers and phones have no command line;
    /// benches ask Apple's compiler on Macs, by code that no other platform compiles.
    programs: &'static [&'static str],
    /// Whether another target compiles nearly the same: then only a whole test checks this one.
    like_another: bool,
}

/// A cargo feature of one of wgpu's crates.
struct Backend {
    package: &'static str,
    feature: &'static str,
}

const ALL: &[&str] = &["--all-features"];

const TARGETS: [Target; 4] = [
    Target {
        triple: "aarch64-apple-darwin",
        features: ALL,
        backend: Backend { package: "wgpu-hal", feature: "metal" },
        std: "std,panic_unwind",
        programs: &[PROGRAM, "tilewise-benches"],
        like_another: false,
    },
    Target {
        triple: "aarch64-apple-ios",
        // Every other step has custom kernels on.
        features: &[
            "--no-default-features",
            "--features",
            "tilewise/metal,tilewise/msl,tilewise/files",
        ],
        backend: Backend { package: "wgpu-hal", feature: "metal" },
        std: "std,panic_unwind",
        programs: &[],
        // macOS.
        like_another: true,
    },
    Target {
        triple: "x86_64-pc-windows-msvc",
        features: ALL,
        backend: Backend { package: "wgpu-hal", feature: "dx12" },
        std: "std,panic_unwind",
        programs: &[PROGRAM],
        like_another: false,
    },
    Target {
        triple: "wasm32-unknown-unknown",
        features: ALL,
        // wgpu speaks WebGPU by itself, without wgpu-hal.
        backend: Backend { package: "wgpu", feature: "webgpu" },
        std: "std,panic_abort",
        programs: &[],
        like_another: false,
    },
];

const LIBRARIES: [&str; 4] = ["tilewise-core", "tilewise-shaders", "tilewise-msl", "tilewise"];
const PROGRAM: &str = "tilewise-cli";

/// Which targets to check.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Skip a target if another one compiles nearly the same code.
    #[arg(long)]
    some: bool,
}

/// The command. A skip is printed; it is an error if CI or `TILEWISE_REQUIRE=targets` asks for the
/// check.
pub(crate) fn main(options: &Options) -> Result {
    match find_toolchain()? {
        Ok(toolchain) => check(toolchain, options),
        Err(why) => {
            println!("skipped: {why}");
            Ok(())
        }
    }
}

/// Finds a toolchain, and starts the check of all targets, or of some, beside other steps. The
/// inner error says why there is no toolchain.
pub(crate) fn start(all: bool) -> Result<std::result::Result<Beside, String>> {
    if let Err(why) = find_toolchain()? {
        return Ok(Err(why));
    }
    let args: &[_] = if all { &["check-targets"] } else { &["check-targets", "--some"] };
    Beside::start(args).map(Ok)
}

/// The toolchain, or why there is none; that is an error if the check is required.
fn find_toolchain() -> Result<std::result::Result<Toolchain, String>> {
    match Toolchain::find(&TARGETS.map(|target| target.triple))? {
        Err(why) if env::var_os("CI").is_some() || is_required("targets") => {
            Err(format!("the targets must be checked here, but {why}"))
        }
        found => Ok(found),
    }
}

fn check(toolchain: Toolchain, options: &Options) -> Result {
    for target in TARGETS.iter().filter(|target| !(options.some && target.like_another)) {
        println!("-- {}", target.triple);
        confirm_backend(target)?;
        run(&mut command(toolchain, target))?;
    }
    Ok(())
}

/// Fails if a change of features has lost the backend that the target is checked for.
fn confirm_backend(target: &Target) -> Result {
    let Backend { package, feature } = target.backend;
    let mut tree = cargo(["tree", "--prefix", "none", "--format", "{p}|{f}", "--edges", "no-dev"]);
    let listing = capture(tree.args(target.features).args([
        "--package",
        "tilewise",
        "--target",
        target.triple,
    ]))?;
    if has_feature(&listing, package, feature) {
        Ok(())
    } else {
        Err(format!(
            "on {} {package} is built without `{feature}`, so nothing of that backend would be \
             checked; see [features] of crates/tilewise/Cargo.toml",
            target.triple
        ))
    }
}

/// Reads the lines `package vX.Y.Z|feature,feature` of cargo tree.
fn has_feature(listing: &str, package: &str, feature: &str) -> bool {
    listing.lines().filter_map(|line| line.split_once('|')).any(|(name, features)| {
        let features = features.split([',', ' ']);
        name.split(' ').next() == Some(package)
            && features.into_iter().any(|found| found == feature)
    })
}

/// The command that checks one target. Its target folder is its own: two toolchains that share one
/// would keep invalidating it.
fn command(toolchain: Toolchain, target: &Target) -> Command {
    let mut command = toolchain.cargo("check", target.std);
    if let Toolchain::Debian = toolchain {
        command.arg("-Zwarnings").env("CARGO_BUILD_WARNINGS", "deny");
        // The standard library, too, is built only as far as checking needs it.
        command.env("RUSTFLAGS", "-Zno-codegen");
    }
    command
        .args(["--target", target.triple, "--target-dir", "target/check-targets"])
        .args(target.features);
    // The standard library is compiled, not only checked. That needs no optimisation and no debug
    // information.
    command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
    for package in LIBRARIES.iter().chain(target.programs) {
        command.args(["--package", package]);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::has_feature;

    #[test]
    fn features_are_read_from_the_tree() {
        let listing =
            "wgpu v30.0.1|metal,std\nwgpu-hal v30.0.1|gles,metal2\nwgpu-hal v30.0.1|metal (*)\n";
        assert!(has_feature(listing, "wgpu", "metal"));
        assert!(has_feature(listing, "wgpu-hal", "gles"));
        assert!(has_feature(listing, "wgpu-hal", "metal"));
        assert!(!has_feature(listing, "wgpu-hal", "std"));
        assert!(!has_feature("wgpu-hal v30.0.1|metal2", "wgpu-hal", "metal"));
    }
}
