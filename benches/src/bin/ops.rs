//! `cargo run --release -p tilewise-benches --bin ops`: measures how fast the ready kernels of
//! `tilewise::ops` are, beside a copy of as many bytes. `benches/peers/torch_ops.py` times the same
//! operations with PyTorch.

use clap::Parser;
use std::process::ExitCode;
use tilewise::{Context, ContextOptions, DType, Recorder, Result, Take, Tensor, ops, timing};
use tilewise_benches::random::Random;

/// Times each operation on tensors that together exceed the caches, and prints the median of many
/// passes, the bytes that it has to read and write, and these per second.
#[derive(Parser)]
#[command(name = "ops")]
struct Args {
    /// Rows and columns of the tensors
    #[arg(long, num_args = 2, value_names = ["ROWS", "COLUMNS"], default_values_t = [4096, 4096])]
    shape: Vec<usize>,
    /// Type of their elements
    #[arg(long, default_value = "f16")]
    dtype: String,
    /// Passes of which the median is taken; each runs the operation twice on each of the tensors
    #[arg(long, default_value_t = 50)]
    samples: usize,
    /// Part of an adapter's name, a backend, or both, as vulkan:llvmpipe
    #[arg(long)]
    adapter: Option<String>,
}

/// The least bytes that all tensors of an operation's rotation have together.
const ROTATED: usize = 256 << 20;

/// Operands and outputs of one pass; the passes rotate among several.
struct Set {
    x: Tensor,
    y: Tensor,
    out: Tensor,
    row_sums: Tensor,
    column_sums: Tensor,
}

/// Tensors that all sets share.
struct Shared {
    weight: Tensor,
    bias: Tensor,
    cos: Tensor,
    sin: Tensor,
    rows: Tensor,
    keys: Tensor,
    payload: Tensor,
    sorted: [Tensor; 2],
}

/// The number of keys that are sorted, of 8 bits each, with a payload.
const KEYS: usize = 1 << 17;

type Record = fn(&mut Recorder<'_>, &Set, &Shared) -> Result<()>;

/// The name, how many tensors of the full shape are read and written, and the operation. Sorting
/// has its own shape.
const OPERATIONS: [(&str, usize, Record); 12] = [
    ("copy", 2, |to, set, _| ops::copy(&set.x).record(to, &set.out)),
    ("softmax", 2, |to, set, _| ops::softmax(&set.x).record(to, &set.out)),
    ("causal softmax", 2, |to, set, _| {
        ops::softmax(&set.x).scale(0.125).causal(0).record(to, &set.out)
    }),
    ("layer_norm", 2, |to, set, shared| {
        ops::layer_norm(&set.x, &shared.weight, &shared.bias, 1e-5).record(to, &set.out)
    }),
    ("rms_norm", 2, |to, set, shared| {
        ops::rms_norm(&set.x, &shared.weight, 1e-5).record(to, &set.out)
    }),
    ("gelu_erf", 2, |to, set, _| ops::gelu_erf(&set.x).record(to, &set.out)),
    ("add", 3, |to, set, _| ops::add(&set.x, &set.y).record(to, &set.out)),
    ("rope", 2, |to, set, shared| ops::rope(&set.x, &shared.cos, &shared.sin).record(to, &set.out)),
    ("sum of rows", 1, |to, set, _| ops::sum(&set.x, 1).record(to, &set.row_sums)),
    ("sum of columns", 1, |to, set, _| ops::sum(&set.x, 0).record(to, &set.column_sums)),
    ("gather", 2, |to, set, shared| Take::new(&set.x).rows(&shared.rows).record(to, &set.out)),
    ("sort", 0, |to, _, shared| {
        let [keys, payload] = shared.sorted.each_ref();
        ops::sort_by_key(&shared.keys, &shared.payload).bits(8).record(to, [keys, payload])
    }),
];

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ops: {error}");
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
    let [rows, columns] = [args.shape[0], args.shape[1]];
    let bytes = rows * columns * dtype.bytes() as usize;
    let mut random = Random::new(1);
    let mut tensor = |dtype: DType, shape: &[usize]| {
        Tensor::upload(&ctx, &random.numbers(shape.iter().product()), shape)?.cast(dtype)
    };
    let count = ROTATED.div_ceil(2 * bytes).max(2);
    let sets = (0..count).map(|_| {
        Ok(Set {
            x: tensor(dtype, &[rows, columns])?,
            y: tensor(dtype, &[rows, columns])?,
            out: Tensor::zeros(&ctx, dtype, &[rows, columns])?,
            row_sums: Tensor::zeros(&ctx, dtype, &[rows])?,
            column_sums: Tensor::zeros(&ctx, dtype, &[columns])?,
        })
    });
    let sets = sets.collect::<Result<Vec<_>>>()?;
    let order: Vec<u32> = (0..rows as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    let order: Vec<u32> = order.into_iter().map(|i| i % rows as u32).collect();
    let keys: Vec<u32> = (0..KEYS as u32).map(|i| i.wrapping_mul(2_654_435_761) >> 24).collect();
    let shared = Shared {
        weight: tensor(dtype, &[columns])?,
        bias: tensor(dtype, &[columns])?,
        cos: tensor(DType::F32, &[rows, columns / 2])?,
        sin: tensor(DType::F32, &[rows, columns / 2])?,
        rows: Tensor::upload(&ctx, &order, &[rows])?,
        keys: Tensor::upload(&ctx, &keys, &[KEYS])?,
        payload: Tensor::upload(&ctx, &keys, &[KEYS])?,
        sorted: [Tensor::upload(&ctx, &keys, &[KEYS])?, Tensor::upload(&ctx, &keys, &[KEYS])?],
    };
    println!("{} ({}, {})", ctx.adapter_name(), ctx.backend_name(), ctx.driver());
    println!("{dtype} {rows}x{columns}, {count} sets, median of {} passes", args.samples);
    println!("| operation | µs | bytes | GB/s | of copy |");
    println!("|---|---:|---:|---:|---:|");
    let mut copy = None;
    for (name, tensors, record) in OPERATIONS {
        let mut work = |to: &mut Recorder<'_>| {
            (0..2 * count).try_for_each(|i| record(to, &sets[i % count], &shared))
        };
        // The first passes compile, and wake the device.
        pollster::block_on(timing::series(&ctx, args.samples, &mut work))?;
        let times = pollster::block_on(timing::series(&ctx, args.samples, &mut work))?;
        let mut seconds: Vec<f64> =
            times.into_iter().map(|timing| timing.seconds / (2 * count) as f64).collect();
        seconds.sort_by(f64::total_cmp);
        let median = seconds[seconds.len() / 2];
        let moved = if tensors == 0 { 4 * 4 * KEYS } else { tensors * bytes };
        let rate = moved as f64 / median;
        let of_copy = rate / *copy.get_or_insert(rate);
        println!("| {name} | {:.1} | {moved} | {:.0} | {of_copy:.2} |", median * 1e6, rate / 1e9);
    }
    Ok(())
}
