//! Builds the engine in its three flavours with clang, or notes why it cannot.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCES: [&str; 7] = ["main", "run", "meeting", "fibers", "threads", "stack", "math"];

fn main() {
    for what in ["build.rs", "engine", "shim", "src/compile.rs"] {
        println!("cargo::rerun-if-changed={what}");
    }
    println!("cargo::rerun-if-env-changed=TILEWISE_CLANG");
    let clang = env::var("TILEWISE_CLANG").unwrap_or_else(|_| "clang++".into());
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    // Kernels that were compiled with what has changed; they are made anew as they are asked for.
    let _ = std::fs::remove_dir_all(out.join("kernels"));
    set("CLANG", &clang);
    set("OUT", &out.display().to_string());
    let version = Command::new(&clang).arg("--version").output();
    set("VERSION", &version.as_ref().map_or(String::new(), |it| first_line(&it.stdout)));
    for (flavour, flags) in [("PLAIN", ""), ("RACES", "-fsanitize=thread"), ("MEMORY", "-fsanitize=address,undefined")]
    {
        let built = match &version {
            Ok(_) => build(&clang, &out.join(flavour.to_lowercase()), flags, flavour == "RACES"),
            Err(error) => Err(format!("{clang}: {error}")),
        };
        // Empty: it is there.
        set(flavour, built.as_ref().err().map_or("", |it| it.as_str()));
        if built.is_err() {
            // A file that never is: looks again at the next build, when it may have been installed.
            println!("cargo::rerun-if-changed={}", out.join("absent").display());
        }
    }
}

fn set(name: &str, value: &str) {
    println!("cargo::rustc-env=TILEWISE_MSL_{name}={value}");
}

fn first_line(text: &[u8]) -> String {
    String::from_utf8_lossy(text).lines().next().unwrap_or_default().into()
}

/// The engine itself is never instrumented; the sanitizer is linked into it for the kernels that it opens.
fn build(clang: &str, out: &Path, sanitizer: &str, races: bool) -> Result<(), String> {
    let mut build = cc::Build::new();
    build.cpp(true).compiler(clang).std("c++20").opt_level(2).cargo_metadata(false).out_dir(out).cpp_link_stdlib(None);
    // No builtins: a loop made into a call of memcpy would be seen by the sanitizers.
    build.flag("-fno-builtin").flag("-fno-exceptions").flag("-fPIE").extra_warnings(true);
    if races {
        build.define("TILEWISE_RACES", None);
    }
    build.files(SOURCES.map(|it| format!("engine/{it}.cpp")));
    let objects =
        build.try_compile_intermediates().map_err(|it| it.to_string().lines().collect::<Vec<_>>().join(" "))?;
    let mut link = Command::new(clang);
    link.args(Some(sanitizer).filter(|it| !it.is_empty()))
        .arg("-rdynamic")
        .args(objects)
        .arg("-o")
        .arg(out.join("worker"));
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        link.args(["-ldl", "-lpthread", "-lm"]);
    }
    let output = link.output().map_err(|it| it.to_string())?;
    if output.status.success() { Ok(()) } else { Err(format!("{clang} {sanitizer}: {}", first_line(&output.stderr))) }
}
