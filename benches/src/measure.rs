//! Timing one shape, and checking that what was timed is right.

use crate::inputs::{Inputs, Operands, is_wrong};
use crate::shapes::Shape;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use tilewise::{Context, Error, Recorder, Result, timing};
use tilewise_core::DeviceClass;
use tilewise_core::kernel::Language;
use tilewise_core::plan::Plan;

/// Seconds of GPU time before the first sample, and after pauses. An idle chip lowers its clock,
/// and some chips take long to raise it. An H200 was seen to run at half speed when the pauses
/// between measurements were longer than the measurements.
pub(crate) const WARM_UP: f64 = 0.5;
/// A pause after which the clock may have fallen.
const PAUSE: Duration = Duration::from_millis(500);
/// Seconds of GPU time before the samples of a shape, if the device has paused for compiling and
/// checking only.
const SETTLING: f64 = 0.15;
/// Seconds of one sample: if a product is shorter, a sample has many.
const SAMPLE: f64 = 5e-3;
/// Seconds of GPU time after which a shape of long products has enough samples, if it has at least
/// [`FEWEST`].
const LONGEST: f64 = 1.0;
const FEWEST: usize = 3;

/// The time of a kernel that the planner might have chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// Its name, as `--kernel` takes it.
    pub kernel: String,
    /// Median time of one product in milliseconds; of one sample only, if that took twice the best.
    pub ms: f64,
    /// The planner's estimate, in milliseconds.
    pub estimate_ms: f64,
}

/// The times of one shape.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The kernel that ran.
    pub kernel: String,
    /// That kernel's language; none on the CPU executor.
    pub language: Option<Language>,
    /// Kernels of the edges, if separate products compute the edges.
    pub edges: Vec<String>,
    /// Whether rows by index are copied before the product.
    pub copies_rows: bool,
    /// Seconds of one product: median, least, greatest.
    pub seconds: [f64; 3],
    /// How the times were measured.
    pub method: timing::Method,
    /// All other kernels within reach, if they were asked for.
    pub choices: Vec<Choice>,
}

/// The middle of the samples.
pub(crate) fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Whether a context computes on a CPU. A CPU has no clock to wake, and no caches are avoided.
pub fn is_software(ctx: &Context) -> bool {
    ctx.caps().class == DeviceClass::Cpu
}

/// Records the product of a set.
type Record<'a> = dyn Fn(usize, &mut Recorder<'_>) -> Result<()> + 'a;

/// Measures shape after shape on one device.
#[derive(Debug)]
pub struct Bench {
    ctx: Context,
    inputs: Inputs,
    /// The last time that the device was known to be working.
    busy: Option<Instant>,
    /// Whether the device has paused since it was last kept busy for long.
    paused: bool,
}

impl Bench {
    /// A bench that has measured nothing: the device counts as cold.
    pub fn new(ctx: &Context) -> Self {
        Bench { ctx: ctx.clone(), inputs: Inputs::default(), busy: None, paused: false }
    }

    /// Times a shape by the kernel of this name, or by the planner's choice: a check against f64
    /// sums, warm-up, then `samples` compute passes of as many products as fill about five
    /// milliseconds. Long products are content with fewer samples, three at least.
    ///
    /// # Errors
    /// The errors of the product; `Data` when a checked element is wrong; `Unsupported` when the
    /// product is too short for the host's clock.
    pub fn measure(
        &mut self,
        shape: &Shape,
        kernel: Option<&str>,
        samples: usize,
    ) -> Result<Measured> {
        let operands = self.inputs.operands(&self.ctx, shape, is_software(&self.ctx))?;
        self.measured(&operands, kernel, samples)
    }

    /// Like [`measure`](Self::measure), with the planner's choice among the kernels of one
    /// language.
    ///
    /// # Errors
    /// The errors of [`measure`](Self::measure), and `DeviceLimit` if no kernel of this language
    /// serves the shape and compiles on the device.
    pub fn measure_in(
        &mut self,
        language: Language,
        shape: &Shape,
        samples: usize,
    ) -> Result<Measured> {
        let operands = self.inputs.operands(&self.ctx, shape, is_software(&self.ctx))?;
        let planned = operands.product(0, None);
        if written_in(&operands.plan(None)?, language) {
            operands.check(None)?;
            // By now a kernel that does not compile has been replaced.
            if written_in(&operands.plan(None)?, language) {
                return self.measured(&operands, None, samples);
            }
        }
        let kernels =
            self.ctx.library().kernels.iter().filter(|kernel| kernel.kit.language == language);
        let names: Vec<&str> = kernels.map(|kernel| kernel.name).collect();
        let mut refused = None;
        for choice in planned.choices()?.iter().filter(|choice| names.contains(&choice.kernel)) {
            let kernel =
                if choice.splits == 1 { format!("{choice}+k1") } else { choice.to_string() };
            match self.measured(&operands, Some(&kernel), samples) {
                Err(Error::DeviceLimit(why)) => refused = refused.or(Some(why)),
                measured => return measured,
            }
        }
        Err(Error::DeviceLimit(
            refused.unwrap_or_else(|| "none in this language serves it here".into()),
        ))
    }

    /// Measures the planner's choice, as [`measure`](Self::measure) does. Then it measures every
    /// kernel whose estimate is within `factor` of the choice's: three samples each, or one if the
    /// first takes twice the best so far. All are compiled and checked before the first is timed,
    /// so the device does not pause between their samples.
    ///
    /// # Errors
    /// The errors of [`measure`](Self::measure).
    pub fn measure_choices(
        &mut self,
        shape: &Shape,
        samples: usize,
        factor: f64,
        mut progress: impl FnMut(&str),
    ) -> Result<Measured> {
        let operands = self.inputs.operands(&self.ctx, shape, is_software(&self.ctx))?;
        operands.check(None)?;
        let planned = operands.product(0, None);
        let (choices, plan) = (planned.choices()?, operands.plan(None)?);
        let cheapest = choices.first().map_or(0.0, |choice| choice.cost);
        let mut contenders = Vec::new();
        for choice in choices.iter().filter(|choice| choice.cost <= factor * cheapest) {
            let kernel =
                if choice.splits == 1 { format!("{choice}+k1") } else { choice.to_string() };
            // Without "+k1" the planner would split K. If edges are peeled off, the planner's own
            // product differs from the kernel alone, so it is timed too.
            let planned = plan.choice.as_ref().map(ToString::to_string);
            if planned.as_ref() == Some(&choice.to_string()) && plan.edges.is_empty() {
                continue;
            }
            progress(&kernel);
            match operands.check(Some(&kernel)) {
                Ok(()) => contenders.push((kernel, choice.cost)),
                Err(error @ Error::DeviceLost(_)) => return Err(error),
                Err(error) if is_wrong(&error) => return Err(error),
                Err(error) => log::warn!("{} by {kernel}: {error}", shape.name),
            }
        }
        let mut measured = self.measured(&operands, None, samples)?;
        let mut best = measured.seconds[0];
        for (kernel, estimate) in contenders {
            progress(&kernel);
            let seconds = self.contender(&recorded(&operands, Some(&kernel)), best)?;
            best = best.min(seconds);
            let (ms, estimate_ms) = (seconds * 1e3, estimate * 1e3);
            measured.choices.push(Choice { kernel, ms, estimate_ms });
        }
        Ok(measured)
    }

    /// Median seconds of another kernel, right after the planner's.
    fn contender(&mut self, record: &Record<'_>, best: f64) -> Result<f64> {
        let repetitions = repetitions(self.series(record, 1, 1)?[0].seconds);
        // The first of these passes meets caches of the kernel before.
        let once = self.series(record, repetitions, 2)?[1].seconds / repetitions as f64;
        if once > 2.0 * best {
            return measurable(once);
        }
        let more = self.series(record, repetitions, FEWEST - 1)?;
        let mut seconds: Vec<f64> =
            more.iter().map(|timing| timing.seconds / repetitions as f64).collect();
        seconds.push(once);
        measurable(median(&mut seconds))
    }

    /// Like [`measure`](Self::measure), with operands that exist already.
    ///
    /// # Errors
    /// The errors of [`measure`](Self::measure).
    fn measured(
        &mut self,
        operands: &Operands,
        kernel: Option<&str>,
        samples: usize,
    ) -> Result<Measured> {
        operands.check(kernel)?;
        // The plan is made only now, after kernels that do not compile have been replaced.
        let plan = operands.plan(kernel)?;
        let choice =
            plan.choice.as_ref().map_or_else(|| "matrixmultiply".to_owned(), ToString::to_string);
        let edges = plan.edges.iter().map(ToString::to_string).collect();
        let language = plan.passes.first().map(|pass| pass.language);
        let (seconds, method) = self.timed(&recorded(operands, kernel), samples)?;
        let (copies_rows, choices) = (plan.copies_rows, Vec::new());
        Ok(Measured { kernel: choice, language, edges, copies_rows, seconds, method, choices })
    }

    /// Seconds of one product, median, least and greatest, after warm-up; nothing is checked.
    ///
    /// # Errors
    /// The errors of `record`; `Unsupported` when the product is too short for the host's clock.
    fn timed(&mut self, record: &Record<'_>, samples: usize) -> Result<([f64; 3], timing::Method)> {
        let once = self.series(record, 1, 1)?[0];
        let repetitions = repetitions(once.seconds);
        let most = (LONGEST / (once.seconds * repetitions as f64)) as usize;
        let mut seconds = self.samples(record, repetitions, samples.min(most.max(FEWEST)))?;
        let middle = measurable(median(&mut seconds))?;
        Ok(([middle, seconds[0], seconds[seconds.len() - 1]], once.method))
    }

    /// Seconds of a product in each of `count` samples. Before them the device is kept busy for as
    /// long as its clock takes to rise.
    fn samples(
        &mut self,
        record: &Record<'_>,
        repetitions: usize,
        count: usize,
    ) -> Result<Vec<f64>> {
        let mut warm = 0;
        if !is_software(&self.ctx) {
            let once = self.series(record, repetitions, 1)?[0].seconds;
            let paused = std::mem::take(&mut self.paused);
            // While the clock is low, `once` is too long: there are fewer passes, and each takes
            // longer.
            warm = ((if paused { WARM_UP } else { SETTLING }) / once.max(1e-4)) as usize;
        }
        let timings = self.series(record, repetitions, warm + count)?;
        Ok(timings[warm..].iter().map(|timing| timing.seconds / repetitions as f64).collect())
    }

    /// Times of `count` compute passes with `repetitions` products each. The sets take turns, and
    /// there are no pauses between the passes.
    fn series(
        &mut self,
        record: &Record<'_>,
        repetitions: usize,
        count: usize,
    ) -> Result<Vec<timing::Timing>> {
        let started = Instant::now();
        let timings = pollster::block_on(timing::series(&self.ctx, count, |to| {
            (0..repetitions).try_for_each(|set| record(set, to))
        }))?;
        self.paused |= self.busy.is_none_or(|busy| started - busy > PAUSE);
        self.busy = Some(Instant::now());
        Ok(timings)
    }
}

/// A function that records the product of a set, by the kernel of this name or by the planner's
/// choice.
fn recorded<'a>(
    operands: &'a Operands,
    kernel: Option<&'a str>,
) -> impl Fn(usize, &mut Recorder<'_>) -> Result<()> + 'a {
    move |set, to| operands.product(set, kernel).record(to, operands.output())
}

/// Whether all passes of a plan are in this language.
fn written_in(plan: &Plan, language: Language) -> bool {
    !plan.passes.is_empty() && plan.passes.iter().all(|pass| pass.language == language)
}

/// `Unsupported` if a time is too short for the clock.
fn measurable(seconds: f64) -> Result<f64> {
    if seconds > 0.0 {
        return Ok(seconds);
    }
    Err(Error::Unsupported(
        "too short for the host's clock, and the device has no timestamps".into(),
    ))
}

/// The number of products that fill a sample.
fn repetitions(once: f64) -> usize {
    ((SAMPLE / once.max(1e-7)) as usize).clamp(1, 200)
}
