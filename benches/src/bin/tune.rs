//! `cargo xtask tune`: times every kernel for named shapes on a device, and keeps the fastest for
//! later runs.

use clap::Parser;
use std::process::ExitCode;
use tilewise::{Context, ContextOptions};
use tilewise_benches::measure::is_software;
use tilewise_benches::shapes;

/// Times every kernel that serves a shape, and keeps the fastest for its problem class in the cache
/// folder.
#[derive(Parser)]
#[command(name = "tune")]
struct Args {
    /// Groups and shapes (MxNxK[:layout][:dtype][:format][:xBATCH]), separated by commas, as `cargo
    /// xtask bench --shapes` takes them [default: floor; tiny on a software adapter]
    #[arg(value_delimiter = ',')]
    shapes: Vec<String>,
    /// Part of an adapter's name, a backend, or both, as vulkan:llvmpipe
    #[arg(long)]
    adapter: Option<String>,
}

fn main() -> ExitCode {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("tune: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), String> {
    // Errors in the shapes are reported before a device is opened.
    let mut shapes = shapes::parse(&args.shapes)?;
    let mut options = ContextOptions::from_env().map_err(|error| error.to_string())?;
    options.adapter = args.adapter.clone().or(options.adapter);
    let ctx = Context::request_blocking(&options).map_err(|error| error.to_string())?;
    if ctx.is_cpu() {
        return Err(
            "there is no GPU here, and the CPU executor has nothing to choose from; --adapter \
             names a software adapter"
                .into(),
        );
    }
    if shapes.is_empty() {
        shapes = shapes::parse(&[if is_software(&ctx) { "tiny" } else { "floor" }])?;
    }
    println!("{} ({}, {})", ctx.adapter_name(), ctx.backend_name(), ctx.driver());
    for shape in &shapes {
        let tuned = ctx
            .tune_blocking(&shape.problem())
            .map_err(|error| format!("{}: {error}", shape.name))?;
        print!("\n{}\n{tuned}", shape.name);
    }
    Ok(())
}
