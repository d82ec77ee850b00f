//! Builds the page: the suite as a module of WebAssembly, with the scripts around it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use wasm_bindgen_cli_support::Bindgen;

use super::FOLDER;
use crate::process::{Result, capture, run};
use crate::toolchain::Toolchain;

const TARGET: &str = "wasm32-unknown-unknown";

/// The folder that is served.
pub(super) const PAGE: &str = "page";

/// The scripts around the module, and the example's page.
const SCRIPTS: &str = "tests/src/browser/page";
const EXAMPLE: &str = "crates/tilewise/examples/web/index.html";

pub(super) struct Builder {
    toolchain: Toolchain,
    linker: Option<PathBuf>,
}

impl Builder {
    /// Finds a toolchain and a linker. The inner error says why nothing can be built here.
    pub(super) fn find() -> Result<std::result::Result<Self, String>> {
        let toolchain = match Toolchain::find(&[TARGET])? {
            Ok(toolchain) => toolchain,
            Err(why) => return Ok(Err(why)),
        };
        if let Toolchain::Rustup = toolchain {
            return Ok(Ok(Builder { toolchain, linker: None }));
        }
        // Debian's Rust has no linker for wasm.
        let libraries = capture(Command::new("rustc").args(["--print", "target-libdir"]))?;
        let linker = Path::new(libraries.trim()).with_file_name("bin").join("rust-lld");
        Ok(match linker.is_file() {
            true => Ok(Builder { toolchain, linker: Some(linker) }),
            false => Err(format!("there is no linker at {}", linker.display())),
        })
    }

    /// Compiles, and writes the page's folder.
    pub(super) fn build(&self) -> Result {
        let mut build = self.toolchain.cargo("build", "std,panic_abort");
        build.args(["--target", TARGET, "--target-dir", FOLDER]);
        build.args(["--package", "tilewise-tests", "--bin", "browser"]);
        build.args(["--package", "tilewise", "--example", "web"]);
        // Debug builds optimise naga and the sanitizer because other tests run every kernel through
        // them. Here they have little to do.
        for package in ["naga", "tilewise-sanitizer"] {
            build.args(["--config", &format!("profile.dev.package.{package}.opt-level=1")]);
            build.args(["--config", &format!("profile.dev.package.{package}.codegen-units=16")]);
        }
        build.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
        // Every browser that has WebGPU has these vectors.
        build.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", "-Ctarget-feature=+simd128");
        if let Some(linker) = &self.linker {
            build.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
        run(&mut build)?;
        let built = Path::new(FOLDER).join(TARGET).join("debug");
        let page = Path::new(FOLDER).join(PAGE);
        bind(&built.join("browser.wasm"), &page)?;
        bind(&built.join("examples/web.wasm"), &page.join("example"))?;
        copy(Path::new(EXAMPLE), &page.join("example"))?;
        let scripts = fs::read_dir(SCRIPTS).map_err(|error| format!("{SCRIPTS}: {error}"))?;
        scripts.flatten().try_for_each(|script| copy(&script.path(), &page))
    }
}

/// Writes the module in the form that browsers take, and the script that loads it.
fn bind(module: &Path, folder: &Path) -> Result {
    let mut bindgen = Bindgen::new();
    bindgen.input_path(module).typescript(false).omit_default_module_path(false);
    let bound = bindgen.web(true).and_then(|bindgen| bindgen.generate(folder));
    bound.map_err(|error| format!("{}: {error:#}", module.display()))
}

fn copy(file: &Path, folder: &Path) -> Result {
    let to = folder.join(file.file_name().unwrap_or_default());
    fs::copy(file, to).map(drop).map_err(|error| format!("{}: {error}", file.display()))
}
