//! Runs the mutation check; `cargo xtask mutate` runs it.

use clap::Parser;
use std::process::ExitCode;
use std::time::Instant;
use tilewise_tests::mutants::explained::Change;
use tilewise_tests::mutants::{self, Bench, Language, Msl, Mutant, Summary, Wgsl, explained};
use tilewise_tests::turns;

/// Plants one mistake at a time in the library's WGSL and MSL, and looks whether the suite notices.
#[derive(Parser)]
#[command(name = "cargo xtask mutate", bin_name = "cargo xtask mutate")]
struct Options {
    /// Only the kernels in this language.
    #[arg(long, value_parser = ["wgsl", "msl"])]
    language: Option<String>,
    /// Only files whose path contains this.
    #[arg(long, default_value = "")]
    file: String,
    /// Only changes whose id contains this, such as `:barrier`; each with the case and the report
    /// that decided its fate.
    #[arg(long)]
    show: Option<String>,
    /// Only every so many-th mutant, from the one whose turn it is by `TILEWISE_TURN`.
    #[arg(long, default_value_t = 1)]
    every: usize,
    /// Try every mutant on every case, and write tables and figures to this file.
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
    let mut report =
        "# The mutation check\n\nWritten by `cargo xtask mutate --record`.\n".to_owned();
    let mut failures = Vec::new();
    let chosen = |language: Language, name: &str| -> Vec<Mutant> {
        if options.language.as_ref().is_some_and(|wanted| wanted != name) {
            return Vec::new();
        }
        let wanted = |id: &str| options.show.as_ref().is_none_or(|show| id.contains(show));
        let all =
            mutants::all(language, &options.file).into_iter().filter(|mutant| wanted(&mutant.id()));
        turns::of(all, options.every.max(1)).collect()
    };
    let (wgsl, msl) = (chosen(Language::Wgsl, "wgsl"), chosen(Language::Msl, "msl"));
    if wgsl.is_empty() && msl.is_empty() {
        return Err("no file and no change has such a name".into());
    }
    std::thread::scope(|scope| -> Result<(), String> {
        // clang compiles one language while the other's mutants run, because its rounds leave cores
        // idle. It has its own threads, because the threads of the mutants accept no other work.
        let compiled = scope.spawn(|| {
            let pool = rayon::ThreadPoolBuilder::new().build().map_err(|why| why.to_string())?;
            pool.install(|| prepared(Language::Msl, &msl))
        });
        let bench = prepared(Language::Wgsl, &wgsl)?;
        let explained = "tests/mutants/explained.txt";
        report += &check(Language::Wgsl, &wgsl, bench, explained, options, &mut failures)?;
        let bench = compiled.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let explained = "tests/mutants/explained-msl.txt";
        report += &check(Language::Msl, &msl, bench, explained, options, &mut failures)?;
        Ok(())
    })?;
    if let Some(path) = &options.record {
        std::fs::write(path, report).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// The cases for mutants of one language. None if there are no mutants or no compiler.
fn prepared(
    language: Language,
    mutants: &[Mutant],
) -> Result<Option<Box<dyn Bench + Send>>, String> {
    if mutants.is_empty() {
        return Ok(None);
    }
    let start = Instant::now();
    let bench: Box<dyn Bench + Send> = match language {
        Language::Wgsl => Box::new(Wgsl::new()?),
        Language::Msl => match Msl::new(mutants)? {
            Some(bench) => Box::new(bench),
            None => return Ok(None),
        },
    };
    println!("{language:?}: {}, prepared in {:.1} s", bench.size(), seconds(start));
    Ok(Some(bench))
}

/// Runs the mutants of one language, and returns its section of the report.
fn check(
    language: Language,
    mutants: &[Mutant],
    bench: Option<Box<dyn Bench + Send>>,
    path: &str,
    options: &Options,
    failures: &mut Vec<String>,
) -> Result<String, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let explained = explained::parse(&text).map_err(|why| format!("{path}: {why}"))?;
    let Some(bench) = bench else { return Ok(String::new()) };
    let size = bench.size();
    if options.show.is_some() {
        for mutant in mutants {
            let (fate, why) = bench.fate(mutant);
            println!("{}\n- {}\n+ {}\n{fate:?} {why}\n", mutant.id(), mutant.before, mutant.after);
        }
        return Ok(String::new());
    }
    let start = Instant::now();
    // A survivor meets all cases, which takes half of the time. If its reason is known, a few cases
    // show whether the reason still holds. A record is made with all cases.
    let thorough = options.record.is_some() || !options.file.is_empty();
    let step = |mutant: &Mutant| {
        if !thorough && explained.contains(&Change::of(mutant)) { FEW } else { 1 }
    };
    let fates = bench.run(mutants, &step);
    let summary = Summary::new(mutants, &fates, &explained);
    let (table, line) = (summary.table(), summary.line());
    println!("{table}\n{line}, in {:.0} s", seconds(start));
    let open = summary.unexplained();
    for survivor in &open {
        println!("{survivor}");
    }
    println!("explanations are in {path}");
    let whole = options.file.is_empty() && options.every <= 1;
    let stale = if whole { summary.stale() } else { Vec::new() };
    for change in &stale {
        println!("stale: {}\n- {}\n+ {}\n", change.file, change.before, change.after);
    }
    if !(open.is_empty() && stale.is_empty()) {
        failures.push(format!(
            "{} mutants survive unexplained and {} explanations are stale: add a case that \
             notices, or mend {path}",
            open.len(),
            stale.len()
        ));
    }
    Ok(format!("\n## {}\n\n{size}; {line}.\n\n{table}", format!("{language:?}").to_uppercase()))
}

/// An explained survivor is tried on one case of this many.
const FEW: usize = 64;

fn seconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64()
}
