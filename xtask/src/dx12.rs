//! `cargo xtask dx12`: builds the device tests as a program for Windows, in a folder from which
//! `cargo xtask suite` runs them under Wine, on DX12. docs/dx12.md says where the DLLs come from.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bench::commit;
use crate::debian::Apt;
use crate::process::{Result, capture, executable, find_program, run};
use crate::toolchain::Toolchain;

/// The target that Debian's MinGW links.
const TRIPLE: &str = "x86_64-pc-windows-gnu";

/// D3D12 on Vulkan (vkd3d-proton), and Microsoft's compiler.
const DLLS: [&str; 4] = ["d3d12.dll", "d3d12core.dll", "dxcompiler.dll", "dxil.dll"];

/// Programs and Debian's packages of them: a linker, Wine, and a display, without which Wine has no
/// DXGI.
const PROGRAMS: [(&str, &str); 3] = [
    ("x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64"),
    ("/usr/lib/wine/wine64", "wine64"),
    ("Xvfb", "xvfb"),
];

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Where d3d12.dll, d3d12core.dll, dxcompiler.dll and dxil.dll lie.
    dlls: PathBuf,
    /// Where the tests go.
    #[arg(default_value = "target/dx12")]
    folder: PathBuf,
}

/// The command.
pub(crate) fn main(options: &Options) -> Result {
    let missing: Vec<_> = PROGRAMS
        .iter()
        .filter(|(program, _)| find_program(program).is_none() && !Path::new(program).exists())
        .collect();
    if !missing.is_empty() {
        let packages: Vec<_> = missing.iter().map(|(_, package)| *package).collect();
        Apt::open()?.install(&packages, None)?;
    }
    let mut build = Toolchain::find(&[TRIPLE])??.cargo("test", "std,panic_unwind,test");
    build.args(["--no-run", "--locked", "--target", TRIPLE, "--package", "tilewise-tests"]);
    build.args(["--all-features", "--test", "device"]);
    let messages = capture(build.args(["--message-format", "json-render-diagnostics"]))?;
    let place = |kind, name: &str| {
        executable(&messages, kind, name).ok_or(format!("cargo names no program {name}"))
    };
    let folder = &options.folder;
    let failed = |error| format!("cannot write to {}: {error}", folder.display());
    let copy = |from: &Path, name: &str| fs::copy(from, folder.join(name)).map_err(failed);
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).map_err(failed);

    fs::create_dir_all(folder.join("tests")).map_err(failed)?;
    for name in DLLS {
        copy(&options.dlls.join(name), name)?;
    }
    copy(Path::new(&place("test", "device")?), "device.exe")?;
    // Tests start this program by its name without an ending.
    copy(Path::new(&place("bin", "product")?), "product")?;
    write("bcryptprimitives.c", include_str!("dx12/bcryptprimitives.c"))?;
    let mut gcc = Command::new("x86_64-w64-mingw32-gcc");
    gcc.args(["-shared", "-o", "bcryptprimitives.dll", "bcryptprimitives.c", "-ladvapi32"]);
    run(gcc.current_dir(folder))?;
    copy(Path::new("xtask/src/dx12/device.sh"), "tests/device")?;
    write("commit", &commit())?;
    println!(
        "the suite on DX12: Xvfb :77 & DISPLAY=:77 cargo xtask suite --from {} --software",
        folder.display()
    );
    Ok(())
}
