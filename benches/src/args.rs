//! The command line of the bench program.

use clap::{ArgAction, Parser};
use std::path::PathBuf;
use tilewise::{ContextOptions, Precision};
use tilewise_benches::ceiling::Given;
use tilewise_benches::shapes::{self, DEFAULT, GRAMMAR, GROUPS, Shape};
use tilewise_core::kernel::Language;

/// Times matrix products on a device and prints a table; each shape is checked against f64 sums
/// first.
///
/// The roofline of Apple's chips is their published one, with the most cores of the name, so an
/// upper bound; elsewhere it is measured. The exit status is 1 if anything is wrong, nothing is
/// measured, or a shape is slower than in an earlier run. A shape that does not fit the device is
/// skipped, with a line that says why.
#[derive(Parser)]
#[command(name = "bench")]
pub(crate) struct Args {
    /// Groups and shapes, separated by commas
    #[arg(long, value_delimiter = ',', help = shapes_help())]
    pub(crate) shapes: Vec<String>,
    /// A few of the default shapes of every group
    #[arg(long, conflicts_with = "shapes")]
    quick: bool,
    /// Prints the names of the shapes that would be measured on a GPU, one to a line, and does
    /// nothing else
    #[arg(long, conflicts_with_all = ["from", "first_hour"])]
    pub(crate) list_shapes: bool,
    /// Part of an adapter's name, a backend, or cpu
    #[arg(long)]
    pub(crate) adapter: Option<String>,
    /// The best adapter of this backend, of those that --adapter names
    #[arg(long, value_parser = ["metal", "vulkan", "dx12", "gl"])]
    pub(crate) backend: Option<String>,
    /// Kernels to force, separated by commas; without it the planner chooses
    #[arg(long, value_delimiter = ',')]
    pub(crate) kernel: Vec<String>,
    /// Measures each shape by the best kernel in each of these languages: wgsl, msl. If nothing
    /// says what to measure, both on Metal
    #[arg(
        long,
        value_delimiter = ',',
        value_parser = language,
        conflicts_with_all = ["kernel", "choices"]
    )]
    languages: Vec<Language>,
    /// Asks Apple's compiler about every kernel in MSL, then measures a few shapes, in some ten
    /// minutes on a Mac. Both are written to --json, target/bench/first-hour.json without it.
    /// CONTRIBUTING.md says where to send that file
    #[arg(long, conflicts_with_all = NOT_ASKED)]
    pub(crate) first_hour: bool,
    /// Times every kernel that the planner estimates within this factor of its choice, and reports
    /// the regret of that choice
    #[arg(
        long,
        conflicts_with = "kernel",
        value_name = "FACTOR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "8"
    )]
    pub(crate) choices: Option<f64>,
    /// An adapter that is not there is said, and no failure
    #[arg(long)]
    pub(crate) skip_missing: bool,
    /// How exact products must be: f32; split-f32 or split-f32-fast, which permit f32 in two f16
    /// parts; f16-sums, which permits sums of f16 products in f16; int16-activations or
    /// int8-activations, which permit few rows as whole numbers beside quantized weights. A shape
    /// may name its own, f32 as f32-sums
    #[arg(long, default_value = "f32")]
    pub(crate) precision: Precision,
    /// Timed runs of each shape; fewer, but three, if they take longer than a second
    #[arg(long, default_value = "9")]
    pub(crate) samples: std::num::NonZeroUsize,
    #[command(flatten)]
    pub(crate) ceilings: Given,
    /// Puts another report beside this one; may be given again. A file whose `library` has the same
    /// name, tilewise, is an earlier run, against which --regression holds, and with which it must
    /// share a shape; any other is a peer
    #[arg(long, value_name = "FILE.json", action = ArgAction::Append)]
    pub(crate) compare: Vec<PathBuf>,
    /// The exit status is 1 if a shape takes this many percent longer than in an earlier run given
    /// with --compare
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0, value_parser = percent)]
    pub(crate) regression: f64,
    /// Shows a recorded report instead of measuring
    #[arg(long, value_name = "FILE.json", conflicts_with_all = MEASURING)]
    pub(crate) from: Option<PathBuf>,
    /// Writes the report as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Writes the report as one HTML page with its plots
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Writes the plots as NAME-light.svg and NAME-dark.svg
    #[arg(long, value_name = "FOLDER")]
    pub(crate) svg: Option<PathBuf>,
    /// Neither table nor progress
    #[arg(long)]
    pub(crate) quiet: bool,
    /// The commit to name in the report
    #[arg(long, default_value = "unknown")]
    pub(crate) commit: String,
}

/// Options that the first hour sets itself, and options whose output it does not write.
const NOT_ASKED: [&str; 14] = [
    "shapes",
    "quick",
    "kernel",
    "languages",
    "choices",
    "from",
    "compare",
    "html",
    "svg",
    "precision",
    "regression",
    "peak_tflops",
    "peak_tflops_f16",
    "peak_gbs",
];

/// Options of a measurement; with `--from` there is none.
const MEASURING: [&str; 9] = [
    "shapes",
    "quick",
    "adapter",
    "backend",
    "kernel",
    "languages",
    "skip_missing",
    "choices",
    "commit",
];

impl Args {
    /// The languages to measure each shape in; none if the planner, or `--kernel`, chooses.
    pub(crate) fn languages(&self, metal: bool) -> Vec<Language> {
        let chosen =
            !self.languages.is_empty() || !self.kernel.is_empty() || self.choices.is_some();
        if metal && !chosen { vec![Language::Wgsl, Language::Msl] } else { self.languages.clone() }
    }

    /// The device that is asked for.
    pub(crate) fn options(&self) -> Result<ContextOptions, String> {
        let options = ContextOptions::from_env().map_err(|error| error.to_string())?;
        Ok(match (&self.backend, &self.adapter) {
            (Some(backend), Some(name)) => options.adapter(format!("{backend}:{name}")),
            (None, Some(name)) | (Some(name), None) => options.adapter(name),
            (None, None) => options,
        })
    }

    /// The shapes to measure if none is named.
    pub(crate) fn default_shapes(&self, software: bool) -> Result<Vec<Shape>, String> {
        match (software, self.quick) {
            (true, _) => shapes::parse(&["tiny"]),
            (false, true) => shapes::parse(&shapes::DEFAULT).map(shapes::quick),
            (false, false) => shapes::parse(&shapes::DEFAULT),
        }
    }
}

/// The help of `--shapes`, with all groups.
fn shapes_help() -> String {
    let names = |groups: &[&str]| groups.join(", ");
    let others: Vec<_> =
        GROUPS.iter().map(|group| group.name).filter(|name| !DEFAULT.contains(name)).collect();
    format!(
        "Groups ({}; {}) and shapes \
         ({GRAMMAR}, with the format of quantized weights), separated by commas. By default the \
         first {} groups; tiny on a software adapter",
        names(&DEFAULT),
        names(&others),
        DEFAULT.len()
    )
}

fn language(text: &str) -> Result<Language, String> {
    match text {
        "wgsl" => Ok(Language::Wgsl),
        "msl" => Ok(Language::Msl),
        _ => Err(format!("{text:?} is neither wgsl nor msl")),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("{text:?} is no percentage from 0 up"))
}
