//! `cargo xtask tune`: times every kernel for named shapes on a device, and keeps the fastest where later runs find it.

use clap::Parser;
use std::process::ExitCode;
use tilewise::tilewise_core::{Format, Operand, Problem};
use tilewise::{Context, ContextOptions};
use tilewise_benches::shapes::{self, Shape};

/// Times every kernel that serves a shape, and keeps the fastest for its problem class in the cache folder.
#[derive(Parser)]
#[command(name = "tune")]
struct Args {
    /// Groups (floor, square, half, skinny, deep) and shapes (MxNxK[:layout][:dtype]), separated by commas
    #[arg(value_delimiter = ',', default_value = "floor")]
    shapes: Vec<String>,
    /// Part of an adapter's name, or a backend
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
    let shapes = shapes::parse(&args.shapes)?;
    let options = match &args.adapter {
        Some(name) => ContextOptions::adapter(name.as_str()),
        None => ContextOptions::default(),
    };
    let ctx = Context::with_options(&options).map_err(|error| error.to_string())?;
    if ctx.is_cpu() {
        return Err("there is no GPU here, and the CPU executor has nothing to choose from".into());
    }
    println!("{} ({}, {})", ctx.adapter_name(), ctx.backend_name(), ctx.driver());
    for shape in &shapes {
        let tuned = ctx.tune(&problem(shape)).map_err(|error| format!("{}: {error}", shape.name))?;
        print!("\n{}\n{tuned}", shape.name);
    }
    Ok(())
}

/// The product that the shape names, of packed matrices.
fn problem(shape: &Shape) -> Problem {
    let [m, n, k] = shape.mnk.map(|size| size as u64);
    let format = Format::Dense(shape.dtype);
    let mut problem = Problem::dense(shape.dtype, m, n, k);
    if shape.layout.starts_with('T') {
        problem.a = Operand::packed(format, 1, k, m).t();
    }
    if shape.layout.ends_with('T') {
        problem.b = Operand::packed(format, 1, n, k).t();
    }
    problem
}
