//! Times the first product of a process beside a later one. The difference is mostly compiling.
//! Each shape runs in its own process, without caches of compiled shaders:
//! `cargo bench -p tilewise-benches --bench first_call -- MxNxK[:layout][:dtype] …`

use std::process::{Command, ExitCode};
use std::time::Instant;
use tilewise::{Context, Result};
use tilewise_benches::inputs::Inputs;
use tilewise_benches::measure::is_software;
use tilewise_benches::shapes::{self, Shape};

/// Marks the process of one shape.
const ONE: &str = "--one";
/// Settings that keep this library, NVIDIA's driver and Mesa from using shaders of earlier
/// processes.
const NO_CACHES: [(&str, &str); 3] = [
    ("TILEWISE_CACHE_DIR", ""),
    ("__GL_SHADER_DISK_CACHE", "0"),
    ("MESA_SHADER_CACHE_DISABLE", "true"),
];
const SHAPES: [&str; 4] =
    ["512x512x512", "512x512x512:f16", "512x512x512:NT:bf16", "1x4096x4096:NT:f16"];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let outcome = match args.split_first() {
        Some((first, shape)) if first == ONE => one(shape),
        _ => all(args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("first_call: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Starts a process for each shape, one after the other.
fn all(mut names: Vec<String>) -> Result<(), String> {
    if names.is_empty() {
        names = SHAPES.map(str::to_owned).to_vec();
    }
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    println!(
        "| shape | kernel | device ms | first ms | later ms | over ms |\n|---|---|--:|--:|--:|--:|"
    );
    for shape in shapes::parse(&names)? {
        let status = Command::new(&own).args([ONE, &shape.name]).envs(NO_CACHES).status();
        if !status.map_err(|error| error.to_string())?.success() {
            return Err(format!("{} failed", shape.name));
        }
    }
    Ok(())
}

fn one(names: &[String]) -> Result<(), String> {
    for shape in shapes::parse(names)? {
        println!("{}", timed(&shape).map_err(|error| error.to_string())?);
    }
    Ok(())
}

/// A line of the table. Times end when the device is done.
fn timed(shape: &Shape) -> Result<String> {
    let start = Instant::now();
    let ctx = Context::new()?;
    let device = start.elapsed();
    let operands = Inputs::default().operands(&ctx, shape, is_software(&ctx))?;
    ctx.wait_blocking()?;
    let product = operands.product(0, None);
    let call = || {
        let start = Instant::now();
        product.run_into(operands.output())?;
        ctx.wait_blocking()?;
        Ok(start.elapsed())
    };
    let first = call()?;
    let mut later = (0..9).map(|_| call()).collect::<Result<Vec<_>>>()?;
    later.sort();
    let kernel = product
        .plans()?
        .remove(0)
        .choice
        .map_or_else(|| "matrixmultiply".to_owned(), |choice| choice.to_string());
    let [device, first, later] = [device, first, later[4]].map(|time| time.as_secs_f64() * 1e3);
    Ok(format!(
        "| {} | {kernel} | {device:.1} | {first:.1} | {later:.2} | {:.1} |",
        shape.name,
        first - later
    ))
}
