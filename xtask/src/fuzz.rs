//! `cargo xtask fuzz`: runs the fuzz targets of the readers of model files, one after the other.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{Result, cargo, run};

/// Flags with which LLVM counts edges, on a stable toolchain.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";
/// Longest input in bytes: headers are small, and short ones run fast.
const LONGEST: usize = 2048;
/// Most inputs to keep for each target. With fewer, not all types of GGUF are reached.
const MOST: usize = 120;
const TARGETS: [&str; 4] = ["safetensors", "gguf", "config", "layouts"];

/// Arguments of the command.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// One of safetensors, gguf, config, layouts; without it all.
    #[arg(value_parser = TARGETS)]
    target: Option<String>,
    /// Runs of each target.
    #[arg(long, default_value_t = 1_000_000)]
    runs: u64,
    /// Then replace fuzz/corpus by the few inputs that reach the most.
    #[arg(long)]
    minimise: bool,
}

/// The command: keeps new inputs and failures in target/fuzz.
pub(crate) fn main(options: &Options) -> Result {
    let host = host()?;
    // With --target, build scripts and macros are compiled without the flags.
    let mut build =
        cargo(["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", &host]);
    run(build.args(["--target-dir", "target/fuzz/build"]).env("RUSTFLAGS", FLAGS))?;
    for target in TARGETS
        .iter()
        .filter(|target| options.target.as_deref().is_none_or(|only| only == **target))
    {
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

/// Replaces the seeds by the inputs that together reach the most places.
fn minimise(program: &str, found: &str, seeds: &str) -> Result {
    let (control, merged) = (format!("{found}-control"), format!("{found}-merged"));
    // Both may be left from an earlier run.
    let _ = fs::remove_file(&control);
    let _ = fs::remove_dir_all(&merged);
    let failed = |error: std::io::Error| format!("cannot replace {seeds}: {error}");
    fs::create_dir_all(&merged).map_err(failed)?;
    let listed = format!("-merge_control_file={control}");
    run(Command::new(program).args(["-merge=1", &listed, &merged, found, seeds]))?;
    let chosen = choose(&fs::read_to_string(&control).map_err(failed)?);
    let inputs =
        chosen.iter().map(fs::read).collect::<std::io::Result<Vec<_>>>().map_err(failed)?;
    fs::remove_dir_all(seeds).map_err(failed)?;
    fs::create_dir_all(seeds).map_err(failed)?;
    for (i, input) in inputs.iter().enumerate() {
        fs::write(Path::new(seeds).join(format!("{i:02}")), input).map_err(failed)?;
    }
    println!("{} inputs in {seeds}", inputs.len());
    Ok(())
}

/// Chooses the files of libFuzzer's list that reach the most, each more than those before it.
///
/// The list begins with the number of all files, the number of old files, and the names of all.
/// After that, `FT 3 80 81` says that file 3 reaches the features 80 and 81. Eight features are one
/// place: they differ by how often it was passed.
fn choose(control: &str) -> Vec<PathBuf> {
    let mut lines = control.lines();
    let count = lines.next().and_then(|line| line.parse().ok()).unwrap_or(0);
    let names: Vec<&str> = lines.by_ref().skip(1).take(count).collect();
    let mut reached: Vec<(usize, BTreeSet<u32>)> = Vec::new();
    for line in lines {
        let mut words = line.strip_prefix("FT ").into_iter().flat_map(str::split_whitespace);
        if let Some(file) = words.next().and_then(|word| word.parse().ok()) {
            reached.push((
                file,
                words
                    .filter_map(|word| word.parse::<u32>().ok())
                    .map(|feature| feature / 8)
                    .collect(),
            ));
        }
    }
    let (mut chosen, mut all) = (Vec::new(), BTreeSet::new());
    while chosen.len() < MOST {
        let gain = |(_, places): &&(usize, BTreeSet<u32>)| places.difference(&all).count();
        // If several files gain equally, the first of them is the smallest.
        let Some((file, places)) =
            reached.iter().rev().max_by_key(gain).filter(|best| gain(best) > 0)
        else {
            break;
        };
        chosen.extend(names.get(*file).map(PathBuf::from));
        all.extend(places);
    }
    chosen
}

/// The triple of this machine.
fn host() -> Result<String> {
    let text = crate::process::capture(Command::new("rustc").arg("-vV"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).ok_or_else(|| format!("rustc names no host: {text}"))
}

#[cfg(test)]
mod tests {
    use super::choose;
    use std::path::Path;

    #[test]
    fn inputs_that_reach_the_most_are_chosen() {
        let control = "3\n\
                       0\n\
                       a\n\
                       b\n\
                       c\n\
                       STARTED 0 4\n\
                       FT 0 8 9\n\
                       COV 0 1\n\
                       STARTED 1 4\n\
                       FT 1 8 16\n\
                       STARTED 2 9\n\
                       FT 2 24 25\n";
        assert_eq!(choose(control), [Path::new("b"), Path::new("c")]);
        assert!(choose("").is_empty());
    }
}
