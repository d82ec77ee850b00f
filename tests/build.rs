//! Builds the engine of the harness for MSL (src/harness) in its three flavours with clang, or
//! notes why it cannot.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const SOURCES: [&str; 7] = ["main", "run", "meeting", "fibers", "threads", "stack", "math"];

fn main() {
    for what in ["build.rs", "src/harness/engine", "src/harness/shim", "src/harness/compile.rs"] {
        println!("cargo::rerun-if-changed={what}");
    }
    println!("cargo::rerun-if-env-changed=TILEWISE_CLANG");
    let named = env::var("TILEWISE_CLANG").ok().filter(|name| !name.is_empty());
    let tried = named.is_some() || env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux");
    let clang = named.unwrap_or_else(|| "clang++".into());
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    // Kernels compiled with the old files are removed; they are compiled again when they are
    // needed.
    let _ = fs::remove_dir_all(out.join("kernels"));
    set("CLANG", &clang);
    set("OUT", &out.display().to_string());
    let version = Command::new(&clang).arg("--version").output();
    set("VERSION", &version.as_ref().map_or(String::new(), |it| first_line(&it.stdout)));
    let built = |races| match &version {
        Ok(_) if !tried => {
            Err("this has been tried on Linux only; TILEWISE_CLANG names a compiler to try it with"
                .into())
        }
        Ok(_) => compile(&clang, &out, races),
        Err(error) => Err(format!("{clang}: {error}")),
    };
    let (plain, races) = (built(false), built(true));
    let mut missing = false;
    for (flavour, objects, sanitizer) in [
        ("PLAIN", &plain, None),
        ("RACES", &races, Some("-fsanitize=thread")),
        ("MEMORY", &plain, Some("-fsanitize=address,undefined")),
    ] {
        let linked = objects.as_ref().map_err(Clone::clone);
        let linked =
            linked.and_then(|it| link(&clang, &out.join(flavour.to_lowercase()), it, sanitizer));
        // An empty value says that the flavour is there.
        set(flavour, linked.as_ref().err().map_or("", |it| it.as_str()));
        missing |= linked.is_err();
    }
    if missing {
        watch(&clang);
    }
}

fn set(name: &str, value: &str) {
    println!("cargo::rustc-env=TILEWISE_MSL_{name}={value}");
}

/// Makes cargo look again when something is installed where clang or its libraries would be, or
/// when the search path changes.
fn watch(clang: &str) {
    println!("cargo::rerun-if-env-changed=PATH");
    let libraries = Command::new(clang)
        .arg("-print-resource-dir")
        .output()
        .map(|it| first_line(&it.stdout).into());
    let folders = libraries.map_or_else(
        |_| env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect(),
        |it| vec![it],
    );
    for folder in folders.iter().filter(|it: &&PathBuf| it.is_dir()) {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
}

fn first_line(text: &[u8]) -> String {
    String::from_utf8_lossy(text).lines().next().unwrap_or_default().into()
}

/// The engine itself is never instrumented. A sanitizer is linked to it for the kernels that it
/// opens.
fn compile(clang: &str, out: &Path, races: bool) -> Result<Vec<PathBuf>, String> {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .compiler(clang)
        .std("c++20")
        .opt_level(2)
        .cargo_metadata(false)
        .cpp_link_stdlib(None);
    build.out_dir(out.join(if races { "annotated" } else { "bare" }));
    // No builtins: the sanitizers would see a call of memcpy that clang made of a loop.
    build.flag("-fno-builtin").flag("-fno-exceptions").flag("-fPIE").extra_warnings(true);
    if races {
        build.define("TILEWISE_RACES", None);
    }
    let sources = SOURCES.map(|it| format!("src/harness/engine/{it}.cpp"));
    build.files(&sources);
    // cc's error is a command line without the compiler's words, so the compiler is run again for
    // them.
    let said = |why: cc::Error| {
        let again =
            Command::new(clang).args(["-std=c++20", "-fsyntax-only"]).args(&sources).output();
        let said =
            again.map_or_else(|error| error.to_string(), |output| first_line(&output.stderr));
        let why = if said.is_empty() {
            why.to_string().lines().collect::<Vec<_>>().join(" ")
        } else {
            said
        };
        format!("{clang} does not compile the engine: {why}")
    };
    build.try_compile_intermediates().map_err(said)
}

fn link(
    clang: &str,
    out: &Path,
    objects: &[PathBuf],
    sanitizer: Option<&str>,
) -> Result<(), String> {
    fs::create_dir_all(out).map_err(|it| format!("{}: {it}", out.display()))?;
    let mut link = Command::new(clang);
    link.args(sanitizer).arg("-rdynamic").args(objects).arg("-o").arg(out.join("worker"));
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        link.args(["-ldl", "-lpthread", "-lm"]);
    }
    let output = link.output().map_err(|it| it.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{clang} {}: {}", sanitizer.unwrap_or_default(), first_line(&output.stderr)))
}
