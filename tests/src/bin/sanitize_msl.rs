//! Runs the MSL kernels on the CPU under sanitizers; `cargo xtask sanitize-msl` runs it.

use clap::Parser;
use std::collections::HashSet;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use tilewise_msl::assemble;
use tilewise_tests::cases::{MSL, WGSL};
use tilewise_tests::few_texts::{all, translated, watched};
use tilewise_tests::harness::{Lanes, Mode, available};
use tilewise_tests::msl::{Options, PLAIN, device, early_device, run_all};
use tilewise_tests::sanitized::planned;
use tilewise_tests::{Case, turns};

/// Runs every MSL kernel, and naga's MSL of every WGSL kernel, with ThreadSanitizer (races in
/// threadgroup and device memory, between the lanes of a simdgroup too), then with AddressSanitizer
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
    /// Run nothing, and write every text of the suite into this folder, for Apple's compiler
    /// (`cargo xtask compile-msl`). Those with bf16 have names that end in `-bf16.metal`.
    #[arg(long, value_name = "FOLDER")]
    texts: Option<std::path::PathBuf>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let of = |name: &Option<String>| name.as_ref().is_some_and(|name| name.contains(&args.kernel));
    let ours = if args.texts.is_some() { all(MSL) } else { watched(MSL) };
    let nagas = if args.texts.is_some() { Vec::new() } else { translated(WGSL) };
    let all = [ours, nagas].concat();
    let device = device();
    let cases = all.into_iter().filter(|case| of(&case.kernel) && case.is_for(&device));
    let cases: Vec<_> = turns::of(cases, 3).collect();
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
            let tally = run_all(&device, &cases, Options { mode, lanes, seed, ..PLAIN }, false);
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
    let devices = [device(), early_device()];
    for (case, caps) in cases.iter().flat_map(|case| devices.iter().map(move |caps| (case, caps))) {
        let plan = planned(case, caps).map_err(|failure| failure.to_string())?;
        for pass in &plan.passes {
            let text = assemble(pass);
            let bf16 = if has_bf16(&text) { "-bf16" } else { "" };
            let kernel = pass.label.replace(|it: char| !it.is_ascii_alphanumeric(), "-");
            let name = format!("{:04}-{kernel}{bf16}.metal", known.len());
            if known.insert(text.clone()) {
                std::fs::write(folder.join(name), text)?;
            }
        }
    }
    Ok(known.len())
}

/// Whether a text uses bf16, apart from its question for the version of the language.
fn has_bf16(text: &str) -> bool {
    let mut asked = false;
    text.lines().any(|line| {
        asked = !line.starts_with("#endif") && (asked || line.starts_with("#if __METAL_VERSION__"));
        !asked && line.contains("bfloat") || line.ends_with("constant unsigned int STAGED = 2;")
    })
}
