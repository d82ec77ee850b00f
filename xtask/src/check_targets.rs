//! `cargo xtask check-targets`: type-checks the library and the program for the platforms that this
//! one is not. All features are on, MSL's among them; for iOS, which has no program, custom kernels
//! are off.

use std::env;
use std::process::Command;

use crate::debian::{self, Apt};
use crate::process::{Beside, Result, capture, cargo, find_program, run};

/// A platform, and the backend of wgpu without which checking it would prove nothing.
struct Target {
    triple: &'static str,
    features: &'static [&'static str],
    backend: Backend,
    /// What `-Zbuild-std` builds where no compiled standard library is at hand.
    std: &'static str,
    /// What is checked beside the libraries. Browsers and phones have no command line; benches ask
    /// Apple's compiler on Macs, by code that no other platform compiles.
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

/// The least version that compiles the workspace.
const RUST_VERSION: &str = env!("CARGO_PKG_RUST_VERSION");

/// Debian's rustc, cargo and, for building it for any target, the standard library's source.
const DEBIAN_PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];

/// Which targets to check.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Skip a target if another one compiles nearly the same code.
    #[arg(long)]
    some: bool,
}

/// The command: a skip is printed, and is an error where CI or `TILEWISE_REQUIRE=targets` asks for
/// the check.
pub(crate) fn main(options: &Options) -> Result {
    match find_toolchain()? {
        Ok(toolchain) => check(&toolchain, options),
        Err(why) => {
            println!("skipped: {why}");
            Ok(())
        }
    }
}

/// The same for all targets or some, beside other steps, once there is a toolchain. The inner error
/// says why there is none.
pub(crate) fn start(all: bool) -> Result<std::result::Result<Beside, String>> {
    if let Err(why) = find_toolchain()? {
        return Ok(Err(why));
    }
    let own = env::current_exe()
        .map_err(|error| format!("this program does not know its path: {error}"))?;
    let args: &[_] = if all { &["check-targets"] } else { &["check-targets", "--some"] };
    Beside::start(&own, args).map(Ok)
}

/// The toolchain, or why there is none, which is an error where the check is required.
fn find_toolchain() -> Result<std::result::Result<Toolchain, String>> {
    match Toolchain::find()? {
        Err(why) if is_required() => Err(format!("the targets must be checked here, but {why}")),
        found => Ok(found),
    }
}

fn check(toolchain: &Toolchain, options: &Options) -> Result {
    for target in TARGETS.iter().filter(|target| !(options.some && target.like_another)) {
        println!("-- {}", target.triple);
        confirm_backend(target)?;
        run(&mut toolchain.check(target))?;
    }
    Ok(())
}

fn is_required() -> bool {
    let required = env::var("TILEWISE_REQUIRE").unwrap_or_default();
    env::var_os("CI").is_some() || required.split(',').any(|word| word.trim() == "targets")
}

/// Fails where a change of features has lost the backend that the target is checked for.
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

/// A compiler that can check all targets.
enum Toolchain {
    /// The running one, which has the targets' standard libraries from rustup.
    Rustup,
    /// Debian's, which builds the standard library from source.
    Debian,
}

impl Toolchain {
    /// The inner error says why there is none; the outer one, why installing it failed.
    fn find() -> Result<std::result::Result<Self, String>> {
        if rustup_has_all() {
            return Ok(Ok(Self::Rustup));
        }
        if debian_has_all() {
            return Ok(Ok(Self::Debian));
        }
        let triples = TARGETS.map(|target| target.triple).join(" ");
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
            "the other platforms are checked with Debian's Rust, which can build their standard \
             libraries"
        );
        apt.install(&DEBIAN_PACKAGES, None)?;
        Ok(Ok(Self::Debian))
    }

    /// The check of one target, in a folder of its own: two toolchains sharing one would keep
    /// invalidating it.
    fn check(&self, target: &Target) -> Command {
        let mut command = match self {
            Self::Rustup => cargo(["check"]),
            Self::Debian => {
                let mut command = Command::new("/usr/bin/cargo");
                // What cargo and rustup have told this process about their own toolchain must not
                // reach another's.
                for name in ["CARGO", "RUSTUP_TOOLCHAIN", "RUSTDOC", "LD_LIBRARY_PATH"] {
                    command.env_remove(name);
                }
                // -Z needs a nightly compiler, or a stable one told to act as one; ours builds
                // nothing that is shipped.
                command.env("RUSTC_BOOTSTRAP", "1").env("RUSTC", "/usr/bin/rustc");
                command.args([
                    "check",
                    &format!("-Zbuild-std={}", target.std),
                    "-Zbuild-std-features=",
                    "-Zwarnings",
                ]);
                command.env("CARGO_BUILD_WARNINGS", "deny");
                // Of the standard library too, only what checking needs.
                command.env("RUSTFLAGS", "-Zno-codegen");
                command
            }
        };
        command
            .args(["--target", target.triple, "--target-dir", "target/check-targets"])
            .args(target.features);
        // The standard library is compiled, not only checked: for this, without optimisation or
        // debug information.
        command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
        for package in LIBRARIES.iter().chain(target.programs) {
            command.args(["--package", package]);
        }
        command
    }
}

fn rustup_has_all() -> bool {
    if find_program("rustup").is_none() {
        return false;
    }
    let output = Command::new("rustup").args(["target", "list", "--installed"]).output();
    let installed = output
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    TARGETS.iter().all(|target| installed.lines().any(|line| line.trim() == target.triple))
}

fn debian_has_all() -> bool {
    let suffices = |version: String| debian::is_at_least(&version, RUST_VERSION);
    DEBIAN_PACKAGES.iter().all(|package| debian::installed_version(package).is_some_and(suffices))
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
