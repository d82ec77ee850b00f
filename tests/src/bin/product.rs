//! Computes one product as a user's program does, for tests of what a process finds in its
//! environment. Prints the kernel that computed it.

use clap::Parser;
use std::process::ExitCode;
use tilewise::{Context, ContextOptions, DType, Gemm, Tensor};

/// Multiplies two f32 matrices of zeros.
#[derive(Parser)]
struct Args {
    /// Rows of A.
    m: usize,
    /// Columns of B.
    n: usize,
    /// Columns of A.
    k: usize,
    /// Tune first, and print the result.
    #[arg(long)]
    tune: bool,
    /// Open the context on a device of one's own.
    #[arg(long)]
    own_device: bool,
}

fn main() -> ExitCode {
    env_logger::init();
    match run(&Args::parse()) {
        Ok(kernel) => {
            println!("kernel {kernel}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> tilewise::Result<String> {
    let mut ctx = Context::new()?;
    if let (true, Some(device), Some(queue)) = (args.own_device, ctx.device(), ctx.queue()) {
        ctx = Context::from_device(device.clone(), queue.clone(), &ContextOptions::from_env()?)?;
    }
    let zeros = |shape: [usize; 2]| Tensor::zeros(&ctx, DType::F32, &shape);
    let (a, b) = (zeros([args.m, args.k])?, zeros([args.k, args.n])?);
    let product = Gemm::new(&a, &b);
    if args.tune {
        print!("{}", ctx.tune_blocking(&product.problems()?[0])?);
    }
    product.run()?;
    ctx.wait_blocking()?;
    Ok(product.plans()?[0].choice.as_ref().map_or("none".into(), ToString::to_string))
}
