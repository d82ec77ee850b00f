//! The MSL kernels on CPUs with sanitizers looking on; `cargo xtask sanitize-msl` runs it.

use clap::Parser;
use std::collections::HashSet;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use tilewise_msl::assemble;
use tilewise_msl_harness::{Lanes, Mode, available};
use tilewise_tests::Case;
use tilewise_tests::cases::MSL;
use tilewise_tests::few_texts::watched;
use tilewise_tests::msl::{Options, PLAIN, device, run_all};
use tilewise_tests::sanitized::planned;

/// Runs every MSL kernel with ThreadSanitizer (races in threadgroup and device memory, between the lanes of a simdgroup too), then with AddressSanitizer
/// and UndefinedBehaviorSanitizer (indices beyond any buffer or array).
#[derive(Parser)]
#[command(name = "cargo xtask sanitize-msl", bin_name = "cargo xtask sanitize-msl")]
struct Args {
    /// Only kernels whose name contains this, as msl-gemm/64x64x16.
    #[arg(long, default_value = "")]
    kernel: String,
    /// Orders of lanes and threadgroups to try.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// A thread of the machine's for every lane, in place of lanes that take turns.
    #[arg(long)]
    threads: bool,
    /// Run nothing, and write every text into this folder, for Apple's compiler: `xcrun metal -std=metal3.1 -c FILE`.
    #[arg(long, value_name = "FOLDER")]
    texts: Option<std::path::PathBuf>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let of = |name: &Option<String>| name.as_ref().is_some_and(|name| name.contains(&args.kernel));
    let cases: Vec<_> = watched(MSL).into_iter().filter(|case| of(&case.kernel)).collect();
    if cases.is_empty() {
        eprintln!("error: no kernel's name contains {:?}", args.kernel);
        return ExitCode::FAILURE;
    }
    if let Some(folder) = &args.texts {
        return match write_texts(&cases, folder) {
            Ok(count) => {
                println!("{count} texts in {}", folder.display());
                ExitCode::SUCCESS
            }
            Err(why) => {
                eprintln!("error: {}: {why}", folder.display());
                ExitCode::FAILURE
            }
        };
    }
    let lanes = if args.threads { Lanes::Threads } else { Lanes::Fibers };
    let mut failed = false;
    for (mode, name) in [(Mode::Races, "races"), (Mode::Memory, "memory")] {
        if !available(mode) {
            continue;
        }
        for seed in 1..=args.seeds {
            let tally = run_all(&device(), &cases, Options { mode, lanes, seed, ..PLAIN }, false);
            println!("{name}, order {seed}: {tally}");
            failed |= !tally.failures.is_empty();
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Writes each text of the cases once, and counts them.
fn write_texts(cases: &[Case], folder: &Path) -> Result<usize, Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    let mut known = HashSet::new();
    for case in cases {
        let plan = planned(case, &device()).map_err(|failure| failure.to_string())?;
        for text in plan.passes.iter().map(assemble) {
            let number = known.len();
            if known.insert(text.clone()) {
                std::fs::write(folder.join(format!("{number:03}.metal")), text)?;
            }
        }
    }
    Ok(known.len())
}
