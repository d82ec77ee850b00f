//! Times the shapes of `cargo xtask bench` with burn on wgpu (Vulkan, SPIR-V) and writes the same
//! JSON.

mod measure;
mod shape;

use burn::tensor::Device;
use burn::tensor::wgpu::WgpuBackend;
use clap::Parser;
use serde_json::json;
use shape::Shape;
use std::path::PathBuf;
use std::process::ExitCode;

/// Times matrix products with burn on Vulkan: autotune, warm-up, then the median of several runs,
/// each shape checked against f64 sums first.
#[derive(Parser)]
#[command(name = "burn-bench")]
struct Args {
    /// Shapes MxNxK[:layout][:dtype][:xBATCH], separated by commas, or @FILE (# begins a comment)
    #[arg(long, default_value = "4096x4096x4096,4096x4096x4096:f16,1x8192x8192:NT")]
    shapes: String,
    /// Timed runs of each shape
    #[arg(long, default_value_t = 9)]
    samples: usize,
    /// Writes the report as JSON, after every shape
    #[arg(long)]
    json: Option<PathBuf>,
    /// The commit to name in the report
    #[arg(long, default_value = "unknown")]
    commit: String,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failed) => {
            eprintln!("burn-bench: {failed} shapes have no row");
            ExitCode::FAILURE
        }
        Err(message) => {
            eprintln!("burn-bench: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Times the shapes, writes the report, and returns how many shapes failed.
fn run(args: &Args) -> Result<usize, String> {
    let shapes = shapes(&args.shapes)?;
    let vulkan = Device::wgpu_options().graphics_api(WgpuBackend::Vulkan);
    let (device, setup) = vulkan.init_with_setup().map_err(|error| error.to_string())?;
    let info = setup.adapter.get_info();
    println!("burn on {} ({} {})", info.name, info.driver, info.driver_info);
    let mut report = json!({
        "library": format!("burn {}", burn_version()), "adapter": info.name, "backend": "vulkan",
        "driver": format!("{} {}", info.driver, info.driver_info), "commit": args.commit,
        "date": time::OffsetDateTime::now_utc().date().to_string(),
        "peak_tflops": 0.0, "peak_gbs": 0.0,
    });
    let (mut rows, mut failed) = (Vec::new(), 0);
    for shape in &shapes {
        match measure::measure(&device, shape, args.samples) {
            Ok(row) => {
                let [ms, wall, first] = ["ms", "wall_ms", "first_s"]
                    .map(|field| row[field].as_f64().unwrap_or_default());
                println!(
                    "{:28} {ms:9.4} ms, by the wall clock {wall:9.4} ms, first {first:.2} s",
                    shape.name
                );
                rows.push(row);
            }
            Err(message) => {
                eprintln!("{}: {message}", shape.name);
                failed += 1;
            }
        }
        if let Some(path) = &args.json {
            report["rows"] = rows.clone().into();
            std::fs::write(path, format!("{report:#}\n"))
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(failed)
}

/// The version of burn that this program was built with.
fn burn_version() -> &'static str {
    let after = include_str!("../Cargo.lock")
        .split("name = \"burn\"\nversion = \"")
        .nth(1)
        .unwrap_or_default();
    after.split('"').next().unwrap_or_default()
}

/// The shapes of a list, or of the file that @ precedes.
fn shapes(list: &str) -> Result<Vec<Shape>, String> {
    let text = match list.strip_prefix('@') {
        Some(path) => std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?,
        None => list.to_owned(),
    };
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let names = lines.flat_map(|line| line.split(|c: char| c == ',' || c.is_whitespace()));
    names.filter(|name| !name.is_empty()).map(str::parse).collect()
}
