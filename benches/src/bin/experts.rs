//! `cargo run --release -p tilewise-benches --bin experts`: how long whole layers of experts take,
//! and the steps around their products.

use clap::Parser;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tilewise::moe::{Router, Routing};
use tilewise::wgpu::ComputePass;
use tilewise::{
    Context, ContextOptions, DType, Gemm, MoeLayer, QuantFormat, Quantized, QuantizedTensor,
    Result, Tensor, ops, timing,
};

/// Times layers like Mixtral's (8 experts of 4096×14336, 2 to a token) and Qwen's (64 of 2048×1408,
/// 8 to a token), and prints medians: of the whole layer, of the products alone, and of routing,
/// gather and combine together.
#[derive(Parser)]
#[command(name = "experts")]
struct Args {
    /// Tokens, separated by commas
    #[arg(long, value_delimiter = ',', default_values_t = [1, 32, 4096])]
    tokens: Vec<usize>,
    /// Format of the weights
    #[arg(long, default_value = "affine-4bit-g64-f16")]
    format: String,
    /// Only layers whose name contains this
    #[arg(long, default_value = "")]
    layer: String,
    /// Passes of which the median is taken
    #[arg(long, default_value_t = 20)]
    samples: usize,
    /// Part of an adapter's name, a backend, or both, as vulkan:llvmpipe
    #[arg(long)]
    adapter: Option<String>,
}

/// Name, experts, how many a token has, H and F.
const LAYERS: [(&str, usize, usize, usize, usize); 3] =
    [("mixtral", 8, 2, 4096, 14_336), ("qwen", 64, 8, 2048, 1408), ("tiny", 4, 2, 128, 256)];

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("experts: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let mut options = ContextOptions::from_env()?;
    options.adapter = args.adapter.clone().or(options.adapter);
    let ctx = Context::request_blocking(&options)?;
    let format: QuantFormat = args.format.parse()?;
    let mut random = 0x9e37_79b9u32;
    let mut word = move || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        random ^ random >> 15
    };
    println!("{} ({}, {})", ctx.adapter_name(), ctx.backend_name(), ctx.driver());
    println!("{format}, median of {} passes, µs", args.samples);
    println!("| layer | tokens | whole | products | around them | GB/s |");
    println!("|---|---:|---:|---:|---:|---:|");
    for (name, experts, k, h, f) in LAYERS {
        if !name.contains(&args.layer) || (args.layer.is_empty() && name == "tiny") {
            continue;
        }
        let mut stack = |rows: usize, columns: usize| {
            let one = Quantized::sample(format, rows, columns, &mut word)?;
            QuantizedTensor::upload_groups(&ctx, &vec![one; experts])
        };
        let weights = [stack(f, h)?, stack(f, h)?, stack(h, f)?];
        for &tokens in &args.tokens {
            let mut numbers = |count: usize| -> Vec<f32> {
                (0..count).map(|_| (word() >> 8) as f32 / (1 << 23) as f32 - 1.0).collect()
            };
            let x = Tensor::upload(&ctx, &numbers(tokens * h), &[tokens, h])?.cast(DType::F16)?;
            let logits = Tensor::upload(&ctx, &numbers(tokens * experts), &[tokens, experts])?;
            let layer = Layer::new(&x, &logits, &weights, k)?;
            let timed = |work: &dyn Fn(&mut ComputePass<'_>) -> Result<()>| {
                median(&ctx, args.samples, work)
            };
            // The steps around the products leave these their rows.
            let around = timed(&|pass| layer.around(pass))?;
            let products = timed(&|pass| layer.products(pass))?;
            let whole = timed(&|pass| layer.whole(pass))?;
            let met = met(&layer.routing, experts)?;
            let bytes = 3.0 * (met * h * f) as f64 * format.bits_per_weight();
            println!(
                "| {name} | {tokens} | {:.1} | {:.1} | {:.1} | {:.0} |",
                whole * 1e6,
                products * 1e6,
                around * 1e6,
                bytes / 8.0 / whole / 1e9
            );
        }
    }
    Ok(())
}

/// How many experts have tokens.
fn met(routing: &Routing, experts: usize) -> Result<usize> {
    let mut chosen = routing.experts.read_blocking::<u32>()?;
    chosen.sort_unstable();
    chosen.dedup();
    Ok(chosen.len().min(experts))
}

/// Seconds of one of the passes.
fn median(
    ctx: &Context,
    samples: usize,
    record: impl Fn(&mut ComputePass<'_>) -> Result<()>,
) -> Result<f64> {
    let mut work = |pass: Option<&mut ComputePass<'_>>| match pass {
        Some(pass) => (0..REPEATED).try_for_each(|_| record(pass)),
        None => Ok(()),
    };
    // The first ones compile, and wake the device: its clock falls while numbers are made.
    let started = Instant::now();
    while started.elapsed() < WARM_UP {
        pollster::block_on(timing::series(ctx, samples, &mut work))?;
    }
    let times = pollster::block_on(timing::series(ctx, samples, &mut work))?;
    let mut seconds: Vec<f64> =
        times.into_iter().map(|timing| timing.seconds / REPEATED as f64).collect();
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[seconds.len() / 2])
}

/// How long the device is kept busy before it is timed.
const WARM_UP: Duration = Duration::from_secs(1);

/// Calls of a pass.
const REPEATED: usize = 4;

/// A layer, and its steps by themselves.
struct Layer<'a> {
    layer: MoeLayer,
    weights: &'a [QuantizedTensor; 3],
    router: Router,
    routing: Routing,
    x: &'a Tensor,
    logits: &'a Tensor,
    rows: Tensor,
    /// What comes out for them: an input that a product replaced would grow without end.
    out: Tensor,
    hidden: [Tensor; 2],
    y: Tensor,
}

impl<'a> Layer<'a> {
    fn new(
        x: &'a Tensor,
        logits: &'a Tensor,
        weights: &'a [QuantizedTensor; 3],
        k: usize,
    ) -> Result<Self> {
        let [gate, up, down] = weights;
        let (ctx, tokens, router) = (x.context(), x.shape()[0], Router::new(k));
        let zeros = |rows: usize, columns: usize| Tensor::zeros(ctx, DType::F16, &[rows, columns]);
        let [_, f, h] = gate.shape()[..] else { unreachable!("a stack") };
        Ok(Layer {
            layer: MoeLayer::new(gate, up, down, k),
            routing: router.run(logits)?,
            router,
            weights,
            x,
            logits,
            rows: zeros(tokens * k, h)?,
            out: zeros(tokens * k, h)?,
            hidden: [zeros(tokens * k, f)?, zeros(tokens * k, f)?],
            y: zeros(tokens, h)?,
        })
    }

    fn whole(&self, pass: &mut ComputePass<'_>) -> Result<()> {
        self.layer.record(pass, self.x, self.logits, &self.y)
    }

    fn products(&self, pass: &mut ComputePass<'_>) -> Result<()> {
        let ([gate, up, down], [first, second]) = (self.weights, &self.hidden);
        let ends = &self.routing.offsets;
        Gemm::grouped(&self.rows, gate, ends).record(pass, first)?;
        Gemm::grouped(&self.rows, up, ends).record(pass, second)?;
        Gemm::grouped(first, down, ends).record(pass, &self.out)
    }

    fn around(&self, pass: &mut ComputePass<'_>) -> Result<()> {
        let Routing { tokens, places, weights, .. } = &self.routing;
        self.router.record(pass, self.logits, &self.routing)?;
        ops::gather(self.x, tokens).record(pass, &self.rows)?;
        ops::combine(&self.rows, places, weights).record(pass, &self.y)
    }
}
