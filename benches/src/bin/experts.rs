//! `cargo run --release -p tilewise-benches --bin experts`: measures how long whole layers of
//! experts take, and the steps around their products.

use clap::Parser;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tilewise::moe::{MoeLayer, Router, Routing};
use tilewise::planner::Grouping;
use tilewise::{
    Activation, Context, ContextOptions, DType, Error, Gemm, QuantFormat, Quantized,
    QuantizedTensor, Recorder, Result, Tensor, ops, timing,
};
use tilewise_benches::inputs::wrong;
use tilewise_benches::random::Random;

/// Times layers like Mixtral's (8 experts of 4096×14336, 2 to a token) and Qwen's (64 of 2048×1408,
/// 8 to a token), and prints medians: of the whole layer; of its three products, as the layer
/// records them; of the steps around these: routing (scores, the largest, and the sort by expert,
/// if rows are sorted), the copy of rows if a kernel of a product cannot take them by index, and
/// the weighted sum. All are measured, products and other steps both by themselves and one after
/// the other.
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

/// Name, experts, experts of a token, H and F.
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
    if ctx.is_cpu() {
        let text = "the CPU executor has no compute passes; --adapter names a software adapter";
        return Err(Error::Misuse(text.into()));
    }
    let format: QuantFormat = args.format.parse()?;
    let mut random = Random::new(1);
    println!("{} ({}, {})", ctx.adapter_name(), ctx.backend_name(), ctx.driver());
    println!("{format}, median of {} passes, µs; GB/s of weights over the whole", args.samples);
    let steps = ALL.map(|(name, _)| name).join(" | ");
    println!("| layer | tokens | {steps} | around / products | GB/s |");
    println!("|---|{}", "---:|".repeat(ALL.len() + 3));
    for (name, experts, k, h, f) in LAYERS {
        if !name.contains(&args.layer) || (args.layer.is_empty() && name == "tiny") {
            continue;
        }
        let mut stack = |rows: usize, columns: usize| {
            let one = Quantized::sample(format, rows, columns, || random.bits() as u32)?;
            QuantizedTensor::upload_groups(&ctx, &vec![one; experts])
        };
        let weights = [stack(f, h)?, stack(f, h)?, stack(h, f)?];
        for &tokens in &args.tokens {
            let mut numbers = |shape: &[usize]| {
                Tensor::upload(&ctx, &random.numbers(shape.iter().product()), shape)
            };
            let x = numbers(&[tokens, h])?.cast(DType::F16)?;
            let logits = numbers(&[tokens, experts])?;
            let layer = Layer::new(&x, &logits, &weights, k)?;
            layer.check()?;
            let times = ALL.map(|(_, steps)| layer.time(steps, args.samples));
            let times: Vec<Option<f64>> = times.into_iter().collect::<Result<_>>()?;
            let [whole, products, around] = [0, 1, AROUND].map(|at| times[at].unwrap_or_default());
            let shown = times.iter().map(|time| match time {
                Some(seconds) => format!("{:.1}", seconds * 1e6),
                None => "-".into(),
            });
            let met = met(&layer.routing, experts)?;
            let bytes = 3.0 * (met * h * f) as f64 * format.bits_per_weight() / 8.0;
            println!(
                "| {name} | {tokens} | {} | {:.0}% | {:.0} |",
                shown.collect::<Vec<_>>().join(" | "),
                100.0 * around / products,
                bytes / whole / 1e9
            );
        }
    }
    Ok(())
}

/// The number of experts that have tokens.
fn met(routing: &Routing, experts: usize) -> Result<usize> {
    let mut chosen = routing.experts.read_blocking::<u32>()?;
    chosen.sort_unstable();
    chosen.dedup();
    Ok(chosen.len().min(experts))
}

/// Median seconds of one call of `record`.
fn median(
    ctx: &Context,
    samples: usize,
    record: impl Fn(&mut Recorder<'_>) -> Result<()>,
) -> Result<f64> {
    let mut work = |to: &mut Recorder<'_>| (0..REPEATED).try_for_each(|_| record(to));
    // The first passes compile, and wake the device: its clock falls while numbers are made.
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

/// Calls in a pass.
const REPEATED: usize = 4;

/// A step of a layer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Whole,
    Gate,
    Up,
    Down,
    Routing,
    Gather,
    Combine,
}

/// Steps that are timed one after the other, with a name.
const ALL: [(&str, &[Step]); 9] = [
    ("whole", &[Step::Whole]),
    ("products", &[Step::Gate, Step::Up, Step::Down]),
    ("gate", &[Step::Gate]),
    ("up", &[Step::Up]),
    ("down", &[Step::Down]),
    ("around", &[Step::Routing, Step::Gather, Step::Combine]),
    ("routing", &[Step::Routing]),
    ("gather", &[Step::Gather]),
    ("combine", &[Step::Combine]),
];

/// The index in [`ALL`] of the steps around the products.
const AROUND: usize = 5;

/// A layer, and its steps by themselves.
struct Layer<'a> {
    layer: MoeLayer,
    weights: &'a [QuantizedTensor; 3],
    router: Router,
    routing: Routing,
    /// The token of each row and the row of each slot. They are kept here if rows name their
    /// experts and nothing sorts them.
    unsorted: Option<[Tensor; 2]>,
    x: &'a Tensor,
    logits: &'a Tensor,
    /// Rows of x in the order of the experts, if a product cannot take them by index.
    rows: Option<Tensor>,
    hidden: [Tensor; 2],
    /// The experts' output.
    out: Tensor,
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
        let layer = MoeLayer::new(gate, up, down, k);
        let by_index =
            matches!(layer.plans(x, logits)?[0].problem.grouping, Grouping::Indexed { .. });
        let slots: Vec<u32> = (0..(tokens * k) as u32).collect();
        let own: Vec<u32> = slots.iter().map(|slot| slot / k as u32).collect();
        let unsorted =
            [Tensor::upload(ctx, &own, &[tokens * k])?, Tensor::upload(ctx, &slots, &[tokens, k])?];
        let mut layer = Layer {
            layer,
            unsorted: by_index.then_some(unsorted),
            routing: router.run(logits)?,
            router,
            weights,
            x,
            logits,
            rows: None,
            hidden: [zeros(tokens * k, f)?, zeros(tokens * k, f)?],
            out: zeros(tokens * k, h)?,
            y: zeros(tokens, h)?,
        };
        // A kernel that does not compile is replaced in this run.
        layer.run(&[Step::Gate, Step::Up])?;
        if layer.gate()?.plans()?[0].copies_rows || layer.up()?.plans()?[0].copies_rows {
            layer.rows = Some(zeros(tokens * k, h)?);
        }
        Ok(layer)
    }

    /// The token of each row, and the row of each slot.
    fn slots(&self) -> [&Tensor; 2] {
        let sorted = || [&self.routing.tokens, &self.routing.places];
        self.unsorted.as_ref().map_or_else(sorted, <[_; 2]>::each_ref)
    }

    /// Multiplies rows by the weights of their experts.
    fn product(&self, rows: &Tensor, weights: &QuantizedTensor) -> Result<Gemm> {
        let Routing { experts, offsets, .. } = &self.routing;
        Ok(match self.unsorted {
            Some(_) => Gemm::indexed(rows, weights, &experts.reshape(&[experts.elem_count()])?),
            None => Gemm::grouped(rows, weights, offsets),
        })
    }

    /// Multiplies the rows of each expert's tokens by its weights, as the layer does.
    fn first(&self, weights: &QuantizedTensor) -> Result<Gemm> {
        match &self.rows {
            Some(rows) => self.product(rows, weights),
            None => Ok(self.product(self.x, weights)?.gather_rows(self.slots()[0])),
        }
    }

    fn gate(&self) -> Result<Gemm> {
        self.first(&self.weights[0])
    }

    fn up(&self) -> Result<Gemm> {
        Ok(self.first(&self.weights[1])?.gated_by(&self.hidden[0], Activation::Silu))
    }

    fn record(&self, step: Step, to: &mut Recorder<'_>) -> Result<()> {
        let (Routing { weights, experts, .. }, [first, second]) = (&self.routing, &self.hidden);
        let [tokens, places] = self.slots();
        match step {
            Step::Whole => self.layer.record(to, self.x, self.logits, &self.y),
            Step::Gate => self.gate()?.record(to, first),
            Step::Up => self.up()?.record(to, second),
            Step::Down => self.product(second, &self.weights[2])?.record(to, &self.out),
            Step::Routing if self.unsorted.is_some() => {
                self.router.choose(self.logits).record(to, [weights, experts])
            }
            Step::Routing => self.router.record(to, self.logits, &self.routing),
            Step::Gather => match &self.rows {
                Some(rows) => ops::gather(self.x, tokens).record(to, rows),
                None => Ok(()),
            },
            Step::Combine => ops::combine(&self.out, places, weights).record(to, &self.y),
        }
    }

    fn run(&self, steps: &[Step]) -> Result<()> {
        let work = |to: &mut Recorder<'_>| steps.iter().try_for_each(|step| self.record(*step, to));
        pollster::block_on(timing::time(self.x.context(), work)).map(drop)
    }

    /// An error unless the steps and the whole layer give equal bits.
    fn check(&self) -> Result<()> {
        self.run(&[Step::Whole])?;
        let whole = self.y.read_bytes_blocking()?;
        self.y.fill(0.0)?;
        let [before, products, after] = [
            &[Step::Routing, Step::Gather][..],
            &[Step::Gate, Step::Up, Step::Down],
            &[Step::Combine],
        ];
        self.run(&[before, products, after].concat())?;
        match self.y.read_bytes_blocking()? == whole {
            true => Ok(()),
            false => Err(wrong("the steps give another result than the layer")),
        }
    }

    /// Seconds of these steps; none for the copy of rows if no rows are copied.
    fn time(&self, steps: &[Step], samples: usize) -> Result<Option<f64>> {
        if *steps == [Step::Gather] && self.rows.is_none() {
            return Ok(None);
        }
        let record =
            |to: &mut Recorder<'_>| steps.iter().try_for_each(|step| self.record(*step, to));
        median(self.x.context(), samples, record).map(Some)
    }
}
