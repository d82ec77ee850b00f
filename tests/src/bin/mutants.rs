//! The mutation check; `cargo xtask mutate` runs it.

use clap::Parser;
use std::process::ExitCode;
use std::time::Instant;
use tilewise_tests::mutants::{self, Bench, Summary, explained};

/// Where the explanations stand.
const EXPLAINED: &str = "tests/mutants/explained.txt";

/// Plants one mistake at a time in the library's WGSL, and looks whether the suite notices.
#[derive(Parser)]
#[command(name = "cargo xtask mutate", bin_name = "cargo xtask mutate")]
struct Options {
    /// Only files whose path contains this.
    #[arg(long, default_value = "")]
    file: String,
    /// Only changes whose id contains this, such as `:barrier`; each with the case and the report that decided its fate.
    #[arg(long)]
    show: Option<String>,
    /// Only every so many-th mutant.
    #[arg(long, default_value_t = 1)]
    every: usize,
    /// Write table and figures to this file.
    #[arg(long)]
    record: Option<std::path::PathBuf>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let text = std::fs::read_to_string(EXPLAINED).map_err(|error| format!("{EXPLAINED}: {error}"))?;
    let explained = explained::parse(&text).map_err(|why| format!("{EXPLAINED}: {why}"))?;
    let start = Instant::now();
    let bench = Bench::new()?;
    let (cases, operations) = bench.size();
    println!("{cases} cases of {} million operations, prepared in {:.1} s", operations / 1_000_000, seconds(start));
    let wanted = |id: &str| options.show.as_ref().is_none_or(|show| id.contains(show));
    let all = mutants::all(&options.file).into_iter().filter(|mutant| wanted(&mutant.id()));
    let mutants: Vec<_> = all.step_by(options.every.max(1)).collect();
    if options.show.is_some() {
        for mutant in &mutants {
            let (fate, why) = bench.fate(mutant);
            println!("{}\n- {}\n+ {}\n{fate:?} {why}\n", mutant.id(), mutant.before, mutant.after);
        }
        return Ok(());
    }
    let start = Instant::now();
    let fates = bench.run(&mutants);
    let summary = Summary::new(&mutants, &fates, &explained);
    let (table, line) = (summary.table(), summary.line());
    println!("{table}\n{line}, in {:.0} s", seconds(start));
    if let Some(path) = &options.record {
        let text = format!(
            "# The mutation check\n\nWritten by `cargo xtask mutate --record`. {cases} cases in the sanitizer; {line}.\n\n{table}"
        );
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let open = summary.unexplained();
    for survivor in &open {
        println!("{survivor}");
    }
    let whole = options.file.is_empty() && options.every <= 1;
    let stale = if whole { summary.stale() } else { Vec::new() };
    for change in &stale {
        println!("stale: {}\n- {}\n+ {}\n", change.file, change.before, change.after);
    }
    match (open.len(), stale.len()) {
        (0, 0) => Ok(()),
        (open, stale) => Err(format!(
            "{open} mutants survive unexplained and {stale} explanations are stale: add a case that notices, or mend {EXPLAINED}"
        )),
    }
}

fn seconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64()
}
