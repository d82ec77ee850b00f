//! `cargo run --release -p tilewise-benches --bin attention`: measures `ops::attention` beside a
//! copy and a product on the same device.

use clap::Parser;
use std::process::ExitCode;
use tilewise::{Context, ContextOptions, DType, Gemm, Recorder, Result, Tensor, ops, timing};
use tilewise_benches::random::Random;

/// Times causal attention of the last T queries over S keys. Prints medians, the bytes of keys and
/// values per second as a share of a copy's, and the operations per second as a share of a
/// product's (4096³). A causal call counts half of the scores of its queries.
#[derive(Parser)]
#[command(name = "attention")]
struct Args {
    /// Queries and keys
    #[arg(long, num_args = 2, value_names = ["T", "S"])]
    shape: Vec<usize>,
    /// Heads of queries, and of keys and values
    #[arg(long, num_args = 2, value_names = ["HEADS", "OF KEYS"], default_values_t = [8, 8])]
    heads: Vec<usize>,
    /// Elements of a head
    #[arg(long, default_value_t = 128)]
    width: usize,
    /// Type of all tensors
    #[arg(long, default_value = "f16")]
    dtype: String,
    /// Passes of which the median is taken
    #[arg(long, default_value_t = 30)]
    samples: usize,
    /// Part of an adapter's name, a backend, or both, as vulkan:llvmpipe
    #[arg(long)]
    adapter: Option<String>,
}

/// The least bytes that the tensors of a rotation have together.
const ROTATED: usize = 256 << 20;

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("attention: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let mut options = ContextOptions::from_env()?;
    options.adapter = args.adapter.clone().or(options.adapter);
    let ctx = Context::request_blocking(&options)?;
    let dtype = DType::FLOATS.into_iter().find(|dtype| dtype.name() == args.dtype);
    let dtype = dtype.unwrap_or(DType::F16);
    let ([queries, keys], width) = ([args.shape[0], args.shape[1]], args.width);
    let mut random = Random::new(1);
    let mut tensor = |shape: &[usize]| {
        Tensor::upload(&ctx, &random.numbers(shape.iter().product()), shape)?.cast(dtype)
    };
    // Medians of passes that each run the work on every set.
    let measure = |sets: usize, work: &dyn Fn(&mut Recorder<'_>, usize) -> Result<()>| {
        let mut all = |to: &mut Recorder<'_>| (0..sets).try_for_each(|set| work(to, set));
        // The first passes compile, and wake the device.
        pollster::block_on(timing::series(&ctx, args.samples, &mut all))?;
        let times = pollster::block_on(timing::series(&ctx, args.samples, &mut all))?;
        let mut seconds: Vec<f64> =
            times.into_iter().map(|timing| timing.seconds / sets as f64).collect();
        seconds.sort_by(f64::total_cmp);
        Result::Ok(seconds[seconds.len() / 2])
    };

    let square = tensor(&[4096, 4096])?;
    let out = Tensor::zeros(&ctx, dtype, &[4096, 4096])?;
    let product = Gemm::new(&square, &square);
    let of_product = 2.0 * 4096f64.powi(3) / measure(4, &|to, _| product.record(to, &out))?;
    let large = tensor(&[8192, 8192])?;
    let copies = Tensor::zeros(&ctx, dtype, &[8192, 8192])?;
    let bytes = 2 * large.elem_count() * dtype.bytes() as usize;
    let of_copy = bytes as f64 / measure(4, &|to, _| ops::copy(&large).record(to, &copies))?;

    let moved = 2 * args.heads[1] * keys * width * dtype.bytes() as usize;
    let sets = (0..ROTATED.div_ceil(moved).clamp(2, 64)).map(|_| {
        let [q, k, v] = [(args.heads[0], queries), (args.heads[1], keys), (args.heads[1], keys)]
            .map(|(heads, rows)| tensor(&[heads, rows, width]));
        let (q, k, v) = (q?, k?, v?);
        let out = Tensor::zeros(&ctx, dtype, q.shape())?;
        Ok((ops::attention(&q, &k, &v).causal(keys - queries), out))
    });
    let sets = sets.collect::<Result<Vec<_>>>()?;
    let seconds = measure(sets.len(), &|to, set| sets[set].0.record(to, &sets[set].1))?;
    let scores = queries * (2 * keys - queries + 1) / 2 * args.heads[0];
    let (rate, bytes) = (4.0 * (scores * width) as f64 / seconds, moved as f64 / seconds);
    println!("{} ({}, {})", ctx.adapter_name(), ctx.backend_name(), ctx.driver());
    println!(
        "{dtype}, {} heads of {} × {width}, {queries} queries, {keys} keys: {:.1} µs, {:.0} GB/s \
         ({:.2} of a copy), {:.2} TFLOP/s ({:.3} of a product)",
        args.heads[0],
        args.heads[1],
        seconds * 1e6,
        bytes / 1e9,
        bytes / of_copy,
        rate / 1e12,
        rate / of_product
    );
    Ok(())
}
