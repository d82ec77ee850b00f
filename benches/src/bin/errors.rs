//! `cargo run --release -p tilewise-benches --bin errors`: how far products of f32 are from sums in
//! f64, by f32 arithmetic and in two f16 terms, in units of u·Σ|ab| with u = 2⁻²⁴.

use clap::Parser;
use std::process::ExitCode;
use tilewise::{Context, ContextOptions, Gemm, Precision, Result, Tensor};
use tilewise_benches::random::Random;

/// Computes squares of f32 with each precision, and prints the largest and the mean error of many
/// elements: of normal data, and of normal data times a power of two from 2^-20 to 2^20 each.
#[derive(Parser)]
#[command(name = "errors")]
struct Args {
    /// Sides, separated by commas
    #[arg(value_delimiter = ',', default_value = "1024,4096,8192")]
    sides: Vec<usize>,
    /// Part of an adapter's name, a backend, or both, as vulkan:llvmpipe
    #[arg(long)]
    adapter: Option<String>,
    /// A kernel for split-f32; without it the planner chooses
    #[arg(long)]
    kernel: Option<String>,
}

/// Rows and columns whose elements are compared.
const COMPARED: [usize; 2] = [64, 256];

const PRECISIONS: [Precision; 3] = [Precision::F32, Precision::SplitF32, Precision::SplitF32Fast];

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("errors: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let mut options = ContextOptions::from_env()?;
    options.adapter = args.adapter.clone().or(options.adapter);
    let ctx = Context::request_blocking(&options)?;
    println!("{} ({}, {})", ctx.adapter_name(), ctx.backend_name(), ctx.driver());
    println!("| side | data | precision | kernel | largest, u·Σ\\|ab\\| | root of mean square |");
    println!("|---:|---|---|---|---:|---:|");
    for &side in &args.sides {
        for (data, spread) in [("normal", 0), ("over 2^±20", 20)] {
            let mut random = Random::new(1);
            let [a, b] = [0, 1].map(|_| {
                (0..side * side).map(|_| number(&mut random, spread)).collect::<Vec<f32>>()
            });
            let [left, right] = [&a, &b].map(|data| Tensor::upload(&ctx, data, &[side, side]));
            let (left, right) = (left?, right?);
            let exact = Exact::new(&a, &b, side);
            for precision in PRECISIONS {
                let gemm = Gemm::new(&left, &right).precision(precision);
                let gemm = match &args.kernel {
                    Some(name) if precision == Precision::SplitF32 => gemm.kernel(name.as_str()),
                    _ => gemm,
                };
                let kernel = gemm
                    .plans()?
                    .remove(0)
                    .choice
                    .map_or_else(|| "none".to_owned(), |choice| choice.to_string());
                let [largest, mean] = exact.errors(&gemm.run()?.read_f32_blocking()?);
                println!(
                    "| {side} | {data} | {} | {kernel} | {largest:.2} | {mean:.3} |",
                    precision.name()
                );
            }
        }
    }
    Ok(())
}

/// A number between 0 and 1, without both ends.
fn uniform(random: &mut Random) -> f64 {
    ((random.bits() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
}

/// A normally distributed number, times a power of two from 2^-spread to 2^spread.
fn number(random: &mut Random, spread: i32) -> f32 {
    let normal =
        (-2.0 * uniform(random).ln()).sqrt() * (std::f64::consts::TAU * uniform(random)).cos();
    let power = (uniform(random) * f64::from(2 * spread + 1)) as i32 - spread;
    (normal * f64::from(power).exp2()) as f32
}

/// Elements of a product: their places, sums in f64, and u times the sums of absolute values.
struct Exact(Vec<(usize, f64, f64)>);

impl Exact {
    fn new(a: &[f32], b: &[f32], side: usize) -> Self {
        let [rows, cols] = COMPARED.map(|compared| compared.min(side));
        let mut elements = Vec::new();
        for col in (0..cols).map(|j| j * side / cols) {
            let column: Vec<f64> =
                b.iter().skip(col).step_by(side).map(|&b| f64::from(b)).collect();
            for row in (0..rows).map(|i| i * side / rows) {
                let terms =
                    a[row * side..][..side].iter().zip(&column).map(|(&a, b)| f64::from(a) * b);
                let (sum, size) =
                    terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
                elements.push((row * side + col, sum, size * f64::from(f32::EPSILON) / 2.0));
            }
        }
        Exact(elements)
    }

    /// The largest error, and the root of the mean square of all errors.
    fn errors(&self, c: &[f32]) -> [f64; 2] {
        let errors = || self.0.iter().map(|&(at, sum, size)| (f64::from(c[at]) - sum).abs() / size);
        let squares: f64 = errors().map(|error| error * error).sum();
        [errors().fold(0.0, f64::max), (squares / self.0.len() as f64).sqrt()]
    }
}
