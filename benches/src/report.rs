//! Reports of measurements: as JSON for records and comparisons, and as rows of a table.

use crate::ceiling::Ceiling;
use crate::measure::{Choice, Measured};
use crate::shapes::{self, Key, Shape};
use serde::{Deserialize, Serialize};
use std::path::Path;
use tilewise_core::kernel::Language;

/// The group of shapes that belong to none.
const OTHER: &str = "other";

/// One run of the bench program on one device, or of a peer's script. Peers may leave out what has
/// a default.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// The library that ran: `tilewise`, or the peer's name and version.
    pub library: String,
    /// Name of the device.
    pub adapter: String,
    /// Interface to it: `vulkan`, `metal`, `cuda`, ...
    pub backend: String,
    /// Driver and its version.
    pub driver: String,
    /// Commit of the source, with `+changes` when the tree had any.
    pub commit: String,
    /// Day of the run, UTC.
    pub date: String,
    /// The ceilings of the device; 0 in the report of a peer that measured none.
    #[serde(flatten)]
    pub ceiling: Ceiling,
    /// The share of shapes on which the planner's choice takes at most 10% longer than the best
    /// kernel, among the shapes whose other kernels were timed too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near_best: Option<f64>,
    /// The shapes.
    pub rows: Vec<Row>,
    /// Shapes that were asked for and not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
}

/// A shape without a time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Skipped {
    /// Its name.
    pub shape: String,
    /// Why it was not measured.
    pub reason: String,
}

/// One shape.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Row {
    /// Name of the shape.
    pub shape: String,
    /// Name of its group.
    #[serde(default)]
    pub group: String,
    /// Rows of C.
    pub m: usize,
    /// Columns of C.
    pub n: usize,
    /// Summed dimension.
    pub k: usize,
    /// Products of these sizes, one beside the other.
    #[serde(default = "one")]
    pub batch: usize,
    /// `NN`, `NT`, `TN` or `TT`.
    pub layout: String,
    /// Type of all three matrices; of A and C if B is quantized.
    pub dtype: String,
    /// Format of B if B is quantized; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub weights: String,
    /// How the product is shared among groups, by the name of [`Experts`](crate::shapes::Experts);
    /// else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub experts: String,
    /// Which operands are prepared, as in [`PREPARED`](crate::shapes::PREPARED); else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prepared: String,
    /// Whether the product takes rows by index, and whether it has a gate: [`Shape::extras`]; else
    /// empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub extras: String,
    /// The precision that the row was permitted, by its name or for the whole run; empty for f32.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub precision: String,
    /// The kernel that ran.
    pub kernel: String,
    /// The kernel's language, `WGSL` or `MSL`; empty if it is unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub language: String,
    /// Kernels of the edges, if separate products compute the edges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<String>,
    /// Whether rows by index are copied before the product, because the kernel cannot take them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copies_rows: bool,
    /// Median time of one product in milliseconds.
    pub ms: f64,
    /// (greatest − least) / median.
    pub spread: f64,
    /// 10^12 operations per second.
    pub tflops: f64,
    /// 10^9 bytes per second, A, B and C counted once.
    pub gbs: f64,
    /// Fraction of the speed that the ceilings allow, by the larger of the two times; 0 when they
    /// are unknown. It is above 1 if matrix units beat the f32 ceiling.
    pub roofline: f64,
    /// How the time was measured.
    pub method: String,
    /// How much longer the planner's choice takes than the best kernel: time / best time − 1.
    /// Absent if no other kernel was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regret: Option<f64>,
    /// The other kernels and their times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
}

/// A language's name.
pub fn language_name(language: Language) -> &'static str {
    match language {
        Language::Wgsl => "WGSL",
        Language::Msl => "MSL",
    }
}

fn one() -> usize {
    1
}

impl Row {
    /// The row of a measured shape.
    pub fn new(shape: &Shape, measured: &Measured) -> Self {
        let [median, least, greatest] = measured.seconds;
        let [m, n, k] = shape.mnk;
        let ms = median * 1e3;
        let best = measured.choices.iter().map(|choice| choice.ms).fold(ms, f64::min);
        Row {
            shape: shape.name.clone(),
            group: shape.group.to_owned(),
            m,
            n,
            k,
            batch: shape.batch,
            layout: shape.layout.to_owned(),
            dtype: shape.dtype.name().to_owned(),
            weights: shape.weights().to_owned(),
            experts: shape.experts(),
            prepared: shape.prepared.to_owned(),
            extras: shape.extras().to_owned(),
            precision: shape.precision().to_owned(),
            kernel: measured.kernel.clone(),
            language: measured.language.map_or("", language_name).to_owned(),
            edges: measured.edges.clone(),
            copies_rows: measured.copies_rows,
            ms,
            spread: (greatest - least) / median,
            tflops: shape.flops() / median * 1e-12,
            gbs: shape.bytes() / median * 1e-9,
            roofline: 0.0,
            method: format!("{:?}", measured.method).to_lowercase(),
            regret: (!measured.choices.is_empty()).then(|| ms / best - 1.0),
            choices: measured.choices.clone(),
        }
    }

    /// The properties that tell shapes apart.
    pub fn key(&self) -> Key<'_> {
        let [layout, dtype, weights] = [&self.layout, &self.dtype, &self.weights];
        let words = [layout, dtype, weights, &self.prepared, &self.extras, &self.precision];
        ([self.batch, self.m, self.n, self.k], words.map(String::as_str), self.experts.clone())
    }

    /// The key without the precision.
    pub(crate) fn but_precision(&self) -> Key<'_> {
        let (sizes, [layout, dtype, weights, prepared, extras, _], experts) = self.key();
        (sizes, [layout, dtype, weights, prepared, extras, ""], experts)
    }

    /// Operations per byte, A, B and C counted once.
    pub fn intensity(&self) -> f64 {
        1e3 * self.tflops / self.gbs
    }

    /// The kernel that ran, for people. It says if edges are separate products, and if rows were
    /// copied before.
    pub fn ran(&self) -> String {
        let edges = if self.edges.is_empty() { "" } else { " and edges" };
        let copied = if self.copies_rows { " of copied rows" } else { "" };
        format!("{}{edges}{copied}", self.kernel)
    }

    /// The fastest kernel that was timed, with its time.
    pub fn best(&self) -> String {
        let fastest = self.choices.iter().min_by(|a, b| a.ms.total_cmp(&b.ms));
        fastest
            .filter(|choice| choice.ms < self.ms)
            .map_or_else(|| self.ran(), |choice| choice.kernel.clone())
    }
}

impl Report {
    /// A report read from a file, its rows in the groups of this program.
    ///
    /// # Errors
    /// A text with the file's name and what is wrong with it.
    pub fn load(path: &Path) -> Result<Report, String> {
        let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let mut report: Report = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
        for row in &report.rows {
            let rates = [row.ms, row.tflops, row.gbs];
            if !rates.iter().all(|rate| rate.is_finite() && *rate > 0.0) {
                let [ms, tflops, gbs] = rates;
                return Err(wrong(&format!(
                    "{}: {ms} ms, {tflops} TFLOP/s, {gbs} GB/s: all must be above 0",
                    row.shape
                )));
            }
        }
        report.name_groups();
        Ok(report)
    }

    /// Puts rows without a group into the first default group that has their shape.
    pub fn name_groups(&mut self) {
        let known = shapes::parse(&shapes::DEFAULT).unwrap_or_default();
        for row in self.rows.iter_mut().filter(|row| row.group.is_empty()) {
            row.group = known
                .iter()
                .find(|shape| shape.key() == row.key())
                .map_or(OTHER, |shape| shape.group)
                .to_owned();
        }
    }

    /// Computes what fraction of the ceilings each row reaches, and how often the planner's choice
    /// is near the best.
    pub fn conclude(&mut self) {
        for row in self.rows.iter_mut().filter(|_| self.ceiling.is_known()) {
            row.roofline =
                (row.tflops / self.ceiling.peak(&row.dtype)).max(row.gbs / self.ceiling.peak_gbs);
        }
        let regrets: Vec<f64> = self.rows.iter().filter_map(|row| row.regret).collect();
        let near = regrets.iter().filter(|regret| **regret <= 0.1).count();
        self.near_best = (!regrets.is_empty()).then(|| near as f64 / regrets.len() as f64);
    }

    /// Splits a report if shapes were measured in two languages. Returns the report without its
    /// rows in WGSL, and those rows as a report to compare it with.
    pub fn side_by_side(&self) -> (Report, Option<Report>) {
        let in_msl = |row: &Row| row.language == language_name(Language::Msl);
        let same = |one: &Row, other: &Row| one.key() == other.key() && one.group == other.group;
        let beside = |row: &&Row| {
            !in_msl(row) && self.rows.iter().any(|other| in_msl(other) && same(row, other))
        };
        let (wgsl, rows): (Vec<&Row>, Vec<&Row>) = self.rows.iter().partition(beside);
        let with =
            |rows: Vec<&Row>| Report { rows: rows.into_iter().cloned().collect(), ..self.clone() };
        let labelled = |report| Report {
            library: "WGSL kernels".into(),
            commit: String::new(),
            skipped: Vec::new(),
            ..report
        };
        let wgsl = if wgsl.is_empty() { None } else { Some(labelled(with(wgsl))) };
        (with(rows), wgsl)
    }

    /// The groups in order of appearance, each with its rows.
    pub fn groups(&self) -> Vec<(&str, Vec<&Row>)> {
        let mut groups: Vec<(&str, Vec<&Row>)> = Vec::new();
        for row in &self.rows {
            match groups.iter_mut().find(|(name, _)| *name == row.group) {
                Some((_, rows)) => rows.push(row),
                None => groups.push((&row.group, vec![row])),
            }
        }
        groups
    }

    /// The library, with its commit if known.
    pub fn label(&self) -> String {
        if self.commit.is_empty() || self.commit == "unknown" {
            self.library.clone()
        } else {
            format!("{} {}", self.library, self.commit)
        }
    }

    /// The library, the device, and the day of the run.
    pub fn title(&self) -> String {
        let Report { adapter, backend, driver, date, .. } = self;
        let interface: Vec<_> = [backend, driver]
            .into_iter()
            .filter(|part| !part.is_empty())
            .map(String::as_str)
            .collect();
        format!("{} on {adapter} ({}), {date}", self.label(), interface.join(", "))
    }

    /// The ceilings and their source, in words.
    pub fn ceilings(&self) -> String {
        let Ceiling { peak_tflops, peak_tflops_f16, peak_gbs, peaks_from } = &self.ceiling;
        if !self.ceiling.is_known() {
            return peaks_from.clone();
        }
        let half = peak_tflops_f16
            .map_or_else(String::new, |peak| format!(", {} TFLOP/s f16", figure(peak, 3)));
        let note = match peak_tflops_f16.is_none() && self.rows.iter().any(|row| row.dtype != "f32")
        {
            true => {
                "; f16 and bf16 are held against the f32 ceiling, and exceed 100% where matrix \
                 units beat it"
            }
            false => "",
        };
        format!(
            "{} TFLOP/s f32{half}, {} GB/s ({peaks_from}){note}",
            figure(*peak_tflops, 3),
            figure(*peak_gbs, 3)
        )
    }
}

/// A number above 0 with `digits` significant digits. All digits before the point are shown.
pub(crate) fn figure(number: f64, digits: i32) -> String {
    let decimals = (digits - 1 - number.log10().floor().max(-9.0) as i32).clamp(0, 9) as usize;
    format!("{number:.decimals$}")
}
