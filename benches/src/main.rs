//! `cargo xtask bench`: times named shapes on a device and prints a table, and JSON on request.

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use tilewise::{Context, ContextOptions};
use tilewise_benches::{ceiling, measure, report::Report, report::Row, shapes};

/// Times matrix products on a device: warm-up, then the median of several GPU-timed runs, each shape checked against f64 sums first.
#[derive(Parser)]
#[command(name = "bench")]
struct Args {
    /// Groups (floor, square, half, skinny, deep) and shapes (MxNxK[:layout][:dtype]), separated by commas
    #[arg(long, value_delimiter = ',', default_value = "floor")]
    shapes: Vec<String>,
    /// Part of an adapter's name, a backend, or cpu
    #[arg(long)]
    adapter: Option<String>,
    /// Kernels to force, separated by commas; without it the planner chooses
    #[arg(long, value_delimiter = ',')]
    kernel: Vec<String>,
    /// Timed runs of each shape
    #[arg(long, default_value_t = 9)]
    samples: usize,
    /// Writes the report as JSON
    #[arg(long)]
    json: Option<PathBuf>,
    /// The commit to name in the report
    #[arg(long, default_value = "unknown")]
    commit: String,
}

fn main() -> ExitCode {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), String> {
    let shapes = shapes::parse(&args.shapes)?;
    let options = match &args.adapter {
        Some(name) => ContextOptions::adapter(name.as_str()),
        None => ContextOptions::default(),
    };
    let ctx = Context::with_options(&options).map_err(|error| error.to_string())?;
    let ceiling = if ctx.is_cpu() { None } else { Some(ceiling::measure(&ctx).map_err(|error| error.to_string())?) };
    let mut report = Report {
        library: "tilewise".into(),
        adapter: ctx.adapter_name().into(),
        backend: ctx.backend_name().into(),
        driver: ctx.driver(),
        commit: args.commit.clone(),
        date: today(),
        peak_tflops: ceiling.map_or(0.0, |ceiling| ceiling.flops * 1e-12),
        peak_gbs: ceiling.map_or(0.0, |ceiling| ceiling.bandwidth * 1e-9),
        rows: Vec::new(),
    };
    let kernels: Vec<Option<&str>> =
        if args.kernel.is_empty() { vec![None] } else { args.kernel.iter().map(|name| Some(name.as_str())).collect() };
    let bar = indicatif::ProgressBar::new((shapes.len() * kernels.len()) as u64);
    for shape in &shapes {
        for kernel in &kernels {
            bar.set_message(shape.name.clone());
            let measured = measure::measure(&ctx, shape, *kernel, args.samples).map_err(|error| error.to_string())?;
            report.rows.push(Row::new(shape, &measured, ceiling));
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    print!("{}", report.table());
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
        std::fs::write(path, text + "\n").map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// The day in UTC, by the civil calendar: Howard Hinnant's `civil_from_days`.
fn today() -> String {
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |age| age.as_secs());
    let days = seconds / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}
