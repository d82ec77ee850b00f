//! `cargo xtask bench --first-hour`: asks seven questions about the kernels in MSL that only a Mac
//! can answer, in some ten minutes, and writes the answers to one file.

pub mod compiler;
mod mlx;
mod odd;
mod questions;
pub mod runner;
mod system;
pub mod texts;

pub use questions::QUESTIONS;

use crate::ceiling::Ceiling;
use crate::measure::{Bench, Measured, is_software};
use crate::report::language_name;
use crate::shapes::Shape;
use compiler::Complaint;
use indicatif::ProgressBar;
use questions::{By, Case, Change, Kind};
use runner::Runner;
use serde::{Deserialize, Serialize};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;
use tilewise::{Context, DType, Error, Recorder, Result};
use tilewise_core::kernel::Language;

/// The file of a first hour.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hour {
    /// A line for readers: what the file is.
    pub file: String,
    /// Name of the device.
    pub adapter: String,
    /// Interface to it.
    pub backend: String,
    /// Driver and its version.
    pub driver: String,
    /// Operating system and its version.
    pub system: String,
    /// On macOS: model, memory, chip, cores of the GPU, and whether it saves power.
    pub hardware: Vec<String>,
    /// Version of Metal's language that wgpu compiles for; `none` where it is not known.
    pub metal_language: String,
    /// Commit of the source, with `+changes` when the tree had any.
    pub commit: String,
    /// Day of the run, UTC.
    pub date: String,
    /// Which sizes were measured.
    pub sizes: String,
    /// How long it took so far.
    pub seconds: f64,
    /// The questions, in the order of their numbers.
    pub questions: Vec<Question>,
}

/// A question and its answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Question {
    /// Its number, from 1 on.
    pub number: usize,
    /// The question in words.
    pub question: String,
    /// An answer for each case, in the order of the cases.
    pub answers: Vec<Answer>,
}

/// The outcome of a case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// The case's name.
    pub case: String,
    /// The answer.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// An answer, or the reason why there is none.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The time of a product that was found right.
    Measured(Figures),
    /// The compiler's words on many texts.
    Compiled(Compiled),
    /// How many threads the pipelines may have.
    Pipelines(Pipelines),
    /// The rates with which the others are compared.
    Peaks(Ceiling),
    /// All elements are right.
    Right(String),
    /// Why there is no answer. It begins with `refused: ` if a compiler or the planner does not
    /// take the kernel, and with `wrong: ` if a product was wrong.
    Reason(String),
}

/// Times and rates of a product.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Median time of one product in milliseconds.
    pub ms: f64,
    /// (greatest − least) / median.
    pub spread: f64,
    /// 10^12 operations per second.
    pub tflops: f64,
    /// 10^9 bytes per second, A, B and C counted once; absent for groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gbs: Option<f64>,
    /// The kernel that ran, or the name of another library.
    pub kernel: String,
    /// The kernel's language.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub language: String,
    /// The kernels of edges that are computed apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<String>,
    /// How the time was measured.
    pub method: String,
}

/// The compiler's words on many texts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Compiled {
    /// How many texts there are.
    pub texts: usize,
    /// How many texts the compiler was given: fewer if it is slow.
    pub asked: usize,
    /// How many texts it refuses.
    pub refused: usize,
    /// The first refusals, with the compiler's words.
    pub errors: Vec<Complaint>,
    /// How many texts it takes with a warning.
    pub warned: usize,
    /// The first warnings, with the compiler's words.
    pub warnings: Vec<Complaint>,
}

/// The threads of the pipelines of many texts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pipelines {
    /// How many texts there are.
    pub texts: usize,
    /// The threads of each text for which there was time.
    pub threads: Vec<Threads>,
}

/// The most threads of a threadgroup of one pipeline.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Threads {
    /// Label of the text.
    pub text: String,
    /// How many threads are launched.
    pub launched: u32,
    /// The most threads with the thread limit; absent if the compiler refuses the text.
    pub with_limit: Option<u64>,
    /// The most threads without the limit.
    pub without_limit: Option<u64>,
    /// The compiler's words if it refuses a text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

/// Most complaints of each sort to keep in the file.
const TOLD: usize = 20;

impl Hour {
    /// The file before any question is answered.
    pub fn new(context: &Context, commit: &str, date: String) -> Self {
        let software = is_software(context);
        let version = context.caps().msl_version;
        let sizes = if software {
            "tiny: a software adapter computes, so the times mean nothing"
        } else {
            "full"
        };
        Hour {
            file: "tilewise: the first hour on a Mac; please send it back as CONTRIBUTING.md says"
                .into(),
            adapter: context.adapter_name().into(),
            backend: context.backend_name().into(),
            driver: context.driver(),
            system: system::name(),
            hardware: system::hardware(),
            metal_language: version.map_or_else(|| "none".into(), language_version),
            commit: commit.into(),
            date,
            sizes: sizes.into(),
            seconds: 0.0,
            questions: Vec::new(),
        }
    }

    /// Asks all questions. If the device is lost, `open` opens it again; `save` is called after
    /// each question.
    ///
    /// # Errors
    /// The errors of `save`. If a case fails, its answer is the reason.
    pub fn ask(
        &mut self,
        context: &Context,
        open: impl Fn() -> Result<Context>,
        samples: usize,
        bar: &ProgressBar,
        mut save: impl FnMut(&Hour) -> Result<(), String>,
    ) -> Result<(), String> {
        let start = Instant::now();
        // A path that cannot be written is reported before minutes are spent.
        save(self)?;
        let software = is_software(context);
        let samples = if software { 1 } else { samples };
        let sizes = if software { &questions::TINY } else { &questions::FULL };
        let asked: Vec<_> =
            QUESTIONS.iter().map(|question| (question.asks, (question.cases)(sizes))).collect();
        bar.set_length(asked.iter().map(|(_, cases)| cases.len() as u64).sum());
        let mut bench = Bench::new(context);
        for (number, (question, cases)) in (1..).zip(asked) {
            let mut answers = Vec::new();
            for case in cases {
                bar.set_message(format!("{number}: {}", case.label));
                let answered =
                    catch_unwind(AssertUnwindSafe(|| answer(&mut bench, &case, samples)));
                let outcome = answered
                    .unwrap_or_else(|_| Outcome::Reason("the program panicked: see above".into()));
                answers.push(Answer { case: case.label, outcome });
                if bench.context().wait_blocking().is_err()
                    && let Ok(again) = open()
                {
                    bench = Bench::new(&again);
                }
                bar.inc(1);
            }
            self.questions.push(Question { number, question: question.into(), answers });
            self.seconds = start.elapsed().as_secs_f64();
            save(self)?;
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// Counts the answers that are reasons and begin with this word.
    pub fn reasons(&self, word: &str) -> usize {
        let answers = self.questions.iter().flat_map(|question| &question.answers);
        answers
            .filter(
                |answer| matches!(&answer.outcome, Outcome::Reason(why) if why.starts_with(word)),
            )
            .count()
    }
}

/// Writes 310 as `3.1`.
fn language_version(version: u32) -> String {
    format!("{}.{}", version / 100, version / 10 % 10)
}

/// The answer of one case.
fn answer(bench: &mut Bench, case: &Case, samples: usize) -> Outcome {
    let context = bench.context().clone();
    let found = match &case.kind {
        Kind::Compile(version) => compiled(&context, *version),
        Kind::Pipelines => pipelines(&context),
        Kind::Peaks => Ceiling::measured(&context).map(Outcome::Peaks).map_err(reason),
        Kind::Timed { by: By::Kernel(_) | By::Language(Language::Msl), .. }
        | Kind::Changed { .. }
        | Kind::Odd { .. }
            if !has_msl(&context) =>
        {
            Err("no kernels in MSL on this adapter".into())
        }
        Kind::Timed { shape, ends, by } => timed(bench, shape, ends, *by, samples).map_err(reason),
        Kind::Changed { shape, kernel, change } => {
            changed(bench, shape, kernel, *change, samples).map_err(reason)
        }
        Kind::Odd { kernel, layout } => {
            odd::answer(&context, kernel, layout).map(Outcome::Right).map_err(reason)
        }
        Kind::Mlx { rows, width } => mlx::answer(*rows, *width).map(Outcome::Measured),
    };
    found.unwrap_or_else(Outcome::Reason)
}

fn has_msl(context: &Context) -> bool {
    context.library().kernels.iter().any(|kernel| kernel.kit.language == Language::Msl)
}

fn reason(error: Error) -> String {
    match error {
        Error::NoKernel(why) => format!("refused: {why}"),
        Error::Malformed(why) => format!("wrong: {why}"),
        other => format!("not measured: {other}"),
    }
}

fn compiled(context: &Context, version: u32) -> Result<Outcome, String> {
    compiler::is_there(Some(version))?;
    let all = texts::all(Some(version));
    let texts: Vec<&str> = all.iter().map(|text| text.text.as_str()).collect();
    let verdicts = compiler::verdicts(context, version, &texts)?;
    let asked = verdicts.len();
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    for (text, verdict) in all.iter().zip(verdicts) {
        let complaint = |words| Complaint { text: text.label.clone(), words };
        match verdict {
            Ok(warning) => warnings.extend(warning.map(complaint)),
            Err(error) => errors.push(complaint(error)),
        }
    }
    let (refused, warned) = (errors.len(), warnings.len());
    errors.truncate(TOLD);
    warnings.truncate(TOLD);
    Ok(Outcome::Compiled(Compiled { texts: all.len(), asked, refused, errors, warned, warnings }))
}

fn pipelines(context: &Context) -> Result<Outcome, String> {
    compiler::is_there(None)?;
    let mut all = texts::all(context.caps().msl_version);
    all.retain(|text| text.typical);
    let texts = all.len();
    let own: Vec<&str> = all.iter().map(|text| text.text.as_str()).collect();
    let with = compiler::threads(context, &own)?;
    let unlimited = |text: &texts::Text| {
        texts::without_limit(text.text.clone()).map_err(|error| error.to_string())
    };
    let unlimited: Vec<String> = all.iter().map(unlimited).collect::<Result<_, _>>()?;
    let without =
        compiler::threads(context, &unlimited.iter().map(String::as_str).collect::<Vec<_>>())?;
    let found = all.into_iter().zip(with).zip(without).map(|((text, with), without)| Threads {
        text: text.label,
        launched: text.threads,
        with_limit: with.clone().ok(),
        without_limit: without.clone().ok(),
        errors: [with, without].into_iter().filter_map(Result::err).collect(),
    });
    Ok(Outcome::Pipelines(Pipelines { texts, threads: found.collect() }))
}

/// Times a product by the library.
fn timed(bench: &mut Bench, shape: &str, ends: &[u32], by: By, samples: usize) -> Result<Outcome> {
    let shape = parsed(shape)?;
    let operands = bench.operands(&shape, ends)?;
    let measured = match by {
        By::Planner => bench.measured(&operands, None, samples),
        By::Kernel(name) => bench.measured(&operands, Some(name), samples),
        By::Language(language) => bench.measured_in(language, &operands, samples),
    }?;
    let Measured { kernel, language, edges, seconds, method, .. } = measured;
    let figures = Figures {
        kernel,
        language: language.map_or("", language_name).into(),
        edges,
        method: format!("{method:?}").to_lowercase(),
        ..figures(&shape, seconds)
    };
    let gbs = figures.gbs.filter(|_| ends.is_empty());
    Ok(Outcome::Measured(Figures { gbs, ..figures }))
}

/// Times a product by texts that the library would not assemble.
fn changed(
    bench: &mut Bench,
    shape: &str,
    kernel: &str,
    change: Change,
    samples: usize,
) -> Result<Outcome> {
    let shape = parsed(shape)?;
    let context = bench.context().clone();
    let operands = bench.operands(&shape, &[])?;
    let caps = match change.staged {
        None => context.caps().clone(),
        Some(DType::F32) => texts::as_on(context.caps(), texts::GENERATIONS[0]),
        Some(_) => texts::as_on(context.caps(), texts::GENERATIONS[1]),
    };
    let rewrite = |text| if change.limit { Ok(text) } else { texts::without_limit(text) };
    let runner = Runner::new(&context, &operands, kernel, &caps, rewrite)?;
    operands.check_after(|| runner.run())?;
    let record = |set, to: &mut Recorder<'_>| to.dispatch(|pass| runner.record(set, pass));
    let (seconds, method) = bench.timed(&record, samples)?;
    let method = format!("{method:?}").to_lowercase();
    let (kernel, language) = (kernel.into(), language_name(Language::Msl).into());
    Ok(Outcome::Measured(Figures { kernel, language, method, ..figures(&shape, seconds) }))
}

fn parsed(shape: &str) -> Result<Shape> {
    shape.parse().map_err(Error::InvalidValue)
}

fn figures(shape: &Shape, [median, least, greatest]: [f64; 3]) -> Figures {
    Figures {
        ms: median * 1e3,
        spread: (greatest - least) / median,
        tflops: shape.flops() / median * 1e-12,
        gbs: Some(shape.bytes() / median * 1e-9),
        ..Figures::default()
    }
}
