//! Common parts of all products: the adapter, the run, the check, the report.

use crate::args::{DTypeArg, Execution};
use crate::array::{Array, Sink, Source, counted, shape_text};
use crate::failure::{Failure, Result, warn};
use crate::oracle::{self, Checked};
use std::io::Write;
use tilewise::timing::{Method, Timing, time_planned};
use tilewise::{Context, ContextOptions, Gemm, Recorder, Tensor};
use tilewise_core::convert::{decode, decode_f64, encode};
use tilewise_core::kernel::{KernelDef, Language};
use tilewise_core::plan::{Plan, UNUSED};
use tilewise_core::problem::{DType, Format, Grouping, Operand, Precision, Problem};
use tilewise_core::quant::Quantized;
use tilewise_oracle::{Inputs, any_error};

/// The library with which the CPU executor multiplies, whatever kernel is asked for.
pub(crate) const CPU_KERNEL: &str = "matrixmultiply";

/// Opens the adapter that `--adapter` names, else the one that the environment names, else the best
/// GPU, else the CPU executor.
pub(crate) fn open(adapter: Option<&str>) -> Result<Context> {
    let mut options = ContextOptions::from_env()?;
    options.adapter = adapter.map(str::to_owned).or(options.adapter);
    Ok(Context::request_blocking(&options)?)
}

/// How far the weights that a kernel of the context uses may be off. Kernels on matrix units may
/// round weights to a 16-bit type of the activations; kernels for few rows may multiply scales with
/// sums.
pub(crate) fn weight_error(context: &Context, weights: &Quantized, activations: DType) -> Vec<f64> {
    let is_msl = |kernel: &KernelDef| kernel.kit.language == Language::Msl;
    let msl = activations.bytes() == 2 && context.library().kernels.iter().any(is_msl);
    let units = activations.bytes() == 2
        && context.caps().coop.iter().any(|unit| unit.operands == DType::F16);
    let types = [msl.then_some(activations), units.then_some(DType::F16)];
    let types = types.into_iter().flatten().filter(|_| !context.is_cpu());
    any_error(weights, &types.collect::<Vec<_>>())
}

/// Adapter, backend and driver, for people.
pub(crate) fn adapter_text(context: &Context) -> String {
    if context.is_cpu() {
        return context.adapter_name().into();
    }
    format!("{} ({}, {})", context.adapter_name(), context.backend_name(), context.driver())
}

/// Refuses an output that cannot be written, or that is one of the inputs, before any work is done.
pub(crate) fn check_output<'a>(
    output: &Sink,
    asked: Option<DTypeArg>,
    inputs: impl IntoIterator<Item = &'a Source>,
) -> Result<()> {
    if let Some(asked) = asked {
        output.admit(asked.into()).map_err(Failure::Usage)?;
    }
    output.probe(inputs)
}

/// Element type of a result: what was asked for, else the type that the operands share, else f32.
pub(crate) fn out_dtype(
    asked: Option<DTypeArg>,
    operands: &[DType],
    output: &Sink,
) -> Result<DType> {
    let shared = operands.iter().all(|dtype| *dtype == operands[0]);
    let dtype = asked.map_or(if shared { operands[0] } else { DType::F32 }, DType::from);
    output.admit(dtype).map_err(Failure::Other)?;
    Ok(dtype)
}

/// Uploads an array.
pub(crate) fn upload(context: &Context, array: &Array) -> Result<Tensor> {
    Ok(Tensor::from_bytes(context, array.dtype, &array.bytes, &array.shape)?)
}

/// The elements as f64, for the oracle.
pub(crate) fn wide(array: &Array) -> Result<Vec<f64>> {
    Ok(decode_f64(array.dtype, &array.bytes)?)
}

/// Rounds an array to another type. If this loses digits, warns on stderr, calling the array
/// `name`.
pub(crate) fn converted(array: &Array, dtype: DType, name: &str) -> Result<Array> {
    if array.dtype == dtype {
        return Ok(array.clone());
    }
    // Every 16-bit number is an f32; no other type holds all numbers of another.
    if dtype != DType::F32 {
        warn(&format!("{name}: {} rounded to {dtype}, the type of C", array.dtype));
    }
    Ok(Array {
        dtype,
        shape: array.shape.clone(),
        bytes: encode(dtype, &decode(array.dtype, &array.bytes)?),
    })
}

/// A product that has been run.
pub(crate) struct Measured {
    /// The product.
    pub(crate) problem: Problem,
    /// The result, packed.
    pub(crate) array: Array,
    /// Kernel and variant.
    pub(crate) kernel: String,
    /// Whether it is the product with precision f32.
    pub(crate) exact: bool,
    /// Its floating-point operations.
    pub(crate) flops: f64,
    /// Time of the product, without transfers and compilation.
    pub(crate) timing: Timing,
}

impl Measured {
    /// Runs `gemm`, and takes its time.
    pub(crate) fn run(context: &Context, gemm: &Gemm) -> Result<Self> {
        let (c, timing) = gemm.run_timed_blocking()?;
        // Plan after the run: only then is it known which kernels run.
        let (plans, exact) = (gemm.plans()?, gemm.clone().precision(Precision::F32).plans()?);
        let exact = plans.iter().zip(&exact).all(|(plan, exact)| plan.passes == exact.passes);
        let array =
            Array { dtype: c.dtype(), shape: c.shape().to_vec(), bytes: c.read_bytes_blocking()? };
        let kernel = kernel_text(context, &plans);
        let problem = match &*plans {
            [plan] => plan.problem,
            // With a kernel, large groups are one product.
            _ => whole(&gemm.clone().kernel("naive").problems()?)?,
        };
        Ok(Measured { problem, array, kernel, exact, flops: problem.flops(), timing })
    }

    /// Compares the result with the oracle; a failure if an element lies outside its bound.
    pub(crate) fn check(&self, inputs: &Inputs<'_>) -> Result<Checked> {
        let Problem { n, k, b, .. } = self.problem;
        // The oracle's weights have no gaps between rows, which they have on a device.
        let b = match b.format {
            Format::Dense(_) => b,
            Format::Quantized(_) if b.batch_stride == 0 => Operand { ld: k, ..b },
            Format::Quantized(_) => Operand { ld: k, batch_stride: n * k, ..b },
        };
        oracle::check(&Problem { b, ..self.problem }, inputs, &wide(&self.array)?)
    }

    /// The time, in milliseconds.
    pub(crate) fn time_text(&self) -> String {
        milliseconds(&self.timing)
    }

    /// The rate as text: see [`rate`].
    pub(crate) fn rate_text(&self) -> String {
        rate(&self.timing, self.flops)
    }
}

fn milliseconds(timing: &Timing) -> String {
    format!("{:.3} ms", timing.seconds * 1e3)
}

/// Floating-point operations per second, in TFLOP/s; a dash if there are none, or the clock did not
/// move.
fn rate(timing: &Timing, flops: f64) -> String {
    match timing.seconds {
        seconds if seconds <= 0.0 || flops <= 0.0 => "-".into(),
        seconds => format!("{:.3}", flops / seconds / 1e12),
    }
}

/// The line with the time, its clock, and the rate.
fn time_line(timing: &Timing, flops: f64) -> String {
    let clock = match timing.method {
        Method::Timestamps => "on the GPU",
        Method::Difference => "on the GPU, by the host's clock",
        // `WallClock`.
        _ => "on the CPU",
    };
    format!("{} {clock}, {} TFLOP/s", milliseconds(timing), rate(timing, flops))
}

/// The kernels of some products, one after the other.
fn kernel_text(context: &Context, plans: &[Plan]) -> String {
    let kernel = |plan: &Plan| match &plan.choice {
        _ if context.is_cpu() => CPU_KERNEL.into(),
        Some(choice) => choice.to_string(),
        None => "none: C has no elements".into(),
    };
    let mut kernels: Vec<String> = plans.iter().map(kernel).collect();
    kernels.dedup();
    kernels.join(", ")
}

/// Times work, which has been done once already, and gives the lines of its kernels and its time.
pub(crate) fn measured(
    context: &Context,
    plans: &[Plan],
    flops: f64,
    work: impl FnMut(&mut Recorder<'_>) -> tilewise::Result<()>,
) -> Result<[(&'static str, String); 2]> {
    let timing = pollster::block_on(time_planned(context, plans, work))?;
    Ok([("kernel", kernel_text(context, plans)), ("time", time_line(&timing, flops))])
}

/// The problem of all shards together. Matrices of B follow one another, as in the host's stack. In
/// a masked product, so do the matrices of C, and those of A unless all shards have the same A.
fn whole(problems: &[Problem]) -> Result<Problem> {
    let mut shards = problems.iter().copied();
    let mut problem = shards.next().ok_or_else(|| Failure::other("no shards given"))?;
    for shard in shards {
        let Problem { m, n, k, .. } = problem;
        match &mut problem.grouping {
            Grouping::RaggedM { groups, .. } => *groups += shard.entries(),
            Grouping::Masked { entries, .. } => {
                *entries += shard.entries();
                problem.batch = *entries;
                problem.a.batch_stride = if shard.a.offset == 0 { 0 } else { m * k };
                problem.c.batch_stride = m * n;
            }
            _ => continue,
        }
        problem.b.batch_stride = k * n;
    }
    Ok(problem)
}

/// One product of the command line.
pub(crate) struct Job<'a> {
    pub(crate) context: &'a Context,
    pub(crate) gemm: Gemm,
    /// The product's own alpha. The library multiplies it with the factor of quantized weights; the
    /// oracle's weights include that factor.
    pub(crate) alpha: f32,
    /// The ends or the counts of groups of rows.
    pub(crate) numbers: &'a [u32],
    pub(crate) execution: &'a Execution,
    pub(crate) output: &'a Sink,
}

/// Compares a result with the oracle, given the product's inputs.
type Check<'a> = &'a dyn Fn(&Inputs<'_>) -> Result<Checked>;

impl Job<'_> {
    /// Runs the product, checks it if asked to, writes the result, and reports. `inputs` hands the
    /// operands to the check.
    ///
    /// A result that fails the check is not written.
    pub(crate) fn run(
        self,
        out: &mut dyn Write,
        inputs: impl FnOnce(Check<'_>) -> Result<Checked>,
    ) -> Result<()> {
        let gemm = match &self.execution.kernel {
            Some(kernel) => self.gemm.kernel(kernel),
            None => self.gemm,
        };
        let mut measured = Measured::run(self.context, &gemm)?;
        measured.flops = flops(&measured.problem, self.numbers);
        measured.problem.epilogue.alpha = self.alpha;
        let checked = if self.execution.check {
            Some(inputs(&|inputs| measured.check(inputs))?)
        } else {
            None
        };
        self.output.write(&measured.array)?;

        let Problem { a, b, k, precision, .. } = measured.problem;
        let Array { dtype, shape, .. } = &measured.array;
        let (layout, c) = (measured.problem.layout(), shape_text(shape));
        let permitted = match precision {
            Precision::F32 => String::new(),
            less if measured.exact => format!(", precision {less}, {UNUSED}"),
            less => format!(", precision {less}"),
        };
        let formats = format!("{} by {}", a.format, b.format);
        let groups = match measured.problem.grouping.traits().few_rows {
            true => {
                let groups = measured.problem.entries() as usize;
                format!("{}, ", counted(groups, ["group", "groups"]))
            }
            false => String::new(),
        };
        let product = format!("{layout}, {groups}K = {k}, {formats} gives {c} {dtype}{permitted}");
        let lines = [
            ("product", product),
            ("kernel", measured.kernel),
            ("time", time_line(&measured.timing, measured.flops)),
        ];
        report(out, self.context, lines, checked, self.output)
    }
}

/// Reports where it was computed, what was computed, and where the result went.
pub(crate) fn report(
    out: &mut dyn Write,
    context: &Context,
    lines: impl IntoIterator<Item = (&'static str, String)>,
    checked: Option<Checked>,
    output: &Sink,
) -> Result<()> {
    let check = checked.map(|checked| ("check", checked.to_string()));
    let written = ("written", output.path().display().to_string());
    let adapter = ("adapter", adapter_text(context));
    for (name, text) in [adapter].into_iter().chain(lines).chain(check).chain([written]) {
        writeln!(out, "{name:<8} {text}")?;
    }
    Ok(())
}

/// Floating-point operations of the rows that groups have; `numbers` are their ends or counts.
fn flops(problem: &Problem, numbers: &[u32]) -> f64 {
    let Problem { m, n, k, batch, .. } = *problem;
    let segments = problem.grouping.segments([m, k], batch, numbers);
    let rows: f64 = segments.iter().map(|own| (own.rows.end - own.rows.start) as f64).sum();
    2.0 * rows * n as f64 * k as f64
}
