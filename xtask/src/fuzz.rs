//! `cargo xtask fuzz`: runs the fuzz targets of the readers of model files, one after the other.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::process::{Result, cargo, run};

/// What LLVM needs to count edges, on a stable toolchain.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";
/// Longest input in bytes: headers are small, and short ones run fast.
const LONGEST: usize = 2048;
const TARGETS: [&str; 3] = ["safetensors", "gguf", "config"];

/// Arguments of the command.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// One of safetensors, gguf, config; without it all.
    #[arg(value_parser = TARGETS)]
    target: Option<String>,
    /// Runs of each target.
    #[arg(long, default_value_t = 1_000_000)]
    runs: u64,
    /// Then replace fuzz/corpus by the fewest inputs that reach as much.
    #[arg(long)]
    minimise: bool,
}

/// The command: what is found is kept in target/fuzz, a failure too.
pub(crate) fn main(options: &Options) -> Result {
    let host = host()?;
    // With --target, build scripts and macros are compiled without the flags.
    let mut build = cargo(["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", &host]);
    run(build.args(["--target-dir", "target/fuzz/build"]).env("RUSTFLAGS", FLAGS))?;
    for target in TARGETS.iter().filter(|target| options.target.as_deref().is_none_or(|only| only == **target)) {
        fuzz(target, &host, options)?;
    }
    Ok(())
}

fn fuzz(target: &str, host: &str, options: &Options) -> Result {
    let program = format!("target/fuzz/build/{host}/release/{target}");
    let (found, seeds) = (format!("target/fuzz/{target}"), format!("fuzz/corpus/{target}"));
    for folder in [&found, &seeds] {
        fs::create_dir_all(folder).map_err(|error| format!("cannot make {folder}: {error}"))?;
    }
    let longest = format!("-max_len={LONGEST}");
    let mut fuzzer = Command::new(&program);
    fuzzer.arg(format!("-artifact_prefix={found}-"));
    fuzzer.args([&*longest, "-timeout=10", "-rss_limit_mb=1024", "-print_final_stats=1"]);
    run(fuzzer.arg(format!("-runs={}", options.runs)).args([&found, &seeds]))?;
    if options.minimise {
        minimise(&program, &found, &seeds)?;
    }
    Ok(())
}

fn minimise(program: &str, found: &str, seeds: &str) -> Result {
    let fewest = format!("{found}-fewest");
    // It may be left from a run before.
    let _ = fs::remove_dir_all(&fewest);
    fs::create_dir_all(&fewest).map_err(|error| format!("cannot make {fewest}: {error}"))?;
    run(Command::new(program).args(["-set_cover_merge=1", &fewest, found, seeds]))?;
    let failed = |error: std::io::Error| format!("cannot replace {seeds}: {error}");
    fs::remove_dir_all(seeds).map_err(failed)?;
    fs::create_dir_all(seeds).map_err(failed)?;
    for entry in fs::read_dir(&fewest).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if let Some(name) = path.file_name() {
            fs::copy(&path, Path::new(seeds).join(name)).map_err(failed)?;
        }
    }
    Ok(())
}

/// The triple of this machine.
fn host() -> Result<String> {
    let text = crate::process::capture(Command::new("rustc").arg("-vV"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).ok_or_else(|| format!("rustc names no host: {text}"))
}
