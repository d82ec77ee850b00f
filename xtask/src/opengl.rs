//! `cargo xtask opengl`: runs the device tests through OpenGL, on Mesa's software driver.
//!
//! The tests run one after the other, because wgpu gives OpenGL to one thread at a time. Vulkan's
//! drivers are hidden, as on a machine that has only OpenGL.

use std::path::Path;
use std::process::Command;

use crate::adapters::{LLVMPIPE, MESA_WITH_F16};
use crate::debian::Apt;
use crate::process::{Result, TURN, capture, cargo, is_required, run};

/// The file that names Mesa to EGL.
const VENDOR: &str = "/usr/share/glvnd/egl_vendor.d/50_mesa.json";

/// Packages of EGL, and of Mesa's part of it.
const PACKAGES: [&str; 3] = ["libegl1", "libegl-mesa0", "libgl1-mesa-dri"];

/// A commit runs one test of this many.
const TURNS: usize = 16;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Parts of tests' names, and options of the test program; all tests by default.
    #[arg(last = true)]
    args: Vec<String>,
}

/// The command.
pub(crate) fn main(options: &Options) -> Result {
    test(None, &options.args)?
}

/// Runs all tests, or those whose turn it is. If there is no driver and none can be installed, the
/// inner error says why; if `TILEWISE_REQUIRE` has `gl`, that is an outer error.
pub(crate) fn test(turn: Option<u32>, args: &[String]) -> Result<Result> {
    if let Err(why) = install() {
        return if is_required("gl") { Err(why) } else { Ok(Err(why)) };
    }
    let mut program = device();
    if let Some(turn) = turn {
        let listing = capture(device().args(["--list", "--format", "terse"]))?;
        let tests: Vec<_> =
            listing.lines().filter_map(|line| line.strip_suffix(": test")).collect();
        let some = tests.iter().skip(turn as usize % TURNS).step_by(TURNS);
        program.env(TURN, turn.to_string()).arg("--exact").args(some);
    }
    run(program.args(args)).map(Ok)
}

/// Installs the driver if it is missing.
fn install() -> Result {
    if Path::new(VENDOR).exists() {
        return Ok(());
    }
    let apt = Apt::open().map_err(|why| format!("there is no {VENDOR}, and {why}"))?;
    // No older Mesa was tried. If there is no newer one, the release's own may do.
    let suite = apt.suite_with("libegl-mesa0", MESA_WITH_F16).unwrap_or_default();
    apt.install(&PACKAGES, suite.as_deref())
}

/// The test program, which finds OpenGL's adapter only.
fn device() -> Command {
    let mut command = cargo(["test", "--workspace", "--all-features", "--test", "device"]);
    command.args(["--", "--test-threads", "1"]).envs(LLVMPIPE);
    command.envs([
        ("TILEWISE_ONLY", "gl"),
        ("TILEWISE_REQUIRE", "gl"),
        ("VK_DRIVER_FILES", "/nonexistent"),
        ("VK_ICD_FILENAMES", "/nonexistent"),
        ("__EGL_VENDOR_LIBRARY_FILENAMES", VENDOR),
        ("EGL_PLATFORM", "surfaceless"),
        ("LIBGL_ALWAYS_SOFTWARE", "1"),
    ]);
    command
}
