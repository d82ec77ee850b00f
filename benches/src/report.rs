//! What was measured, as JSON for records and comparisons, and as a table for people.

use crate::ceiling::Ceiling;
use crate::measure::Measured;
use crate::shapes::Shape;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// One run of the bench program on one device, or of a peer's script.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// What ran: `tilewise`, or the peer's name and version.
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
    /// Ceiling of f32 arithmetic, 10^12 operations per second; 0 when not measured.
    pub peak_tflops: f64,
    /// Ceiling of bandwidth, 10^9 bytes per second, read and written; 0 when not measured.
    pub peak_gbs: f64,
    /// The shapes.
    pub rows: Vec<Row>,
}

/// One shape.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Name of the shape.
    pub shape: String,
    /// Rows of C.
    pub m: usize,
    /// Columns of C.
    pub n: usize,
    /// Summed dimension.
    pub k: usize,
    /// `NN`, `NT`, `TN` or `TT`.
    pub layout: String,
    /// Type of all three matrices.
    pub dtype: String,
    /// The kernel that ran.
    pub kernel: String,
    /// Median time of one product in milliseconds.
    pub ms: f64,
    /// (greatest − least) / median.
    pub spread: f64,
    /// 10^12 operations per second.
    pub tflops: f64,
    /// 10^9 bytes per second, A, B and C counted once.
    pub gbs: f64,
    /// Fraction of what the ceilings allow, the larger of the two times; 0 when they were not measured. Above 1 where matrix units beat
    /// the f32 ceiling.
    pub roofline: f64,
    /// How the time was measured.
    pub method: String,
}

impl Row {
    /// The row of a measured shape.
    pub fn new(shape: &Shape, measured: &Measured, ceiling: Option<Ceiling>) -> Self {
        let [median, least, greatest] = measured.seconds;
        let [m, n, k] = shape.mnk;
        Row {
            shape: shape.name.clone(),
            m,
            n,
            k,
            layout: shape.layout.to_owned(),
            dtype: shape.dtype.name().to_owned(),
            kernel: measured.kernel.clone(),
            ms: median * 1e3,
            spread: (greatest - least) / median,
            tflops: shape.flops() / median * 1e-12,
            gbs: shape.bytes() / median * 1e-9,
            roofline: ceiling.map_or(0.0, |ceiling| ceiling.seconds(shape.flops(), shape.bytes()) / median),
            method: format!("{:?}", measured.method).to_lowercase(),
        }
    }
}

impl Report {
    /// The report as a table in Markdown.
    pub fn table(&self) -> String {
        let mut out = String::new();
        let Report { library, adapter, backend, driver, commit, date, peak_tflops, peak_gbs, .. } = self;
        let _ = writeln!(out, "{library} on {adapter} ({backend}, {driver}), commit {commit}, {date}");
        let _ = writeln!(out, "measured ceilings: {peak_tflops:.1} TFLOP/s f32, {peak_gbs:.0} GB/s copied\n");
        let _ = writeln!(out, "| shape | kernel | ms | spread | TFLOP/s | GB/s | of roofline |");
        let _ = writeln!(out, "|---|---|---:|---:|---:|---:|---:|");
        for row in &self.rows {
            let Row { shape, kernel, ms, spread, tflops, gbs, roofline, .. } = row;
            let (spread, roofline) = (100.0 * spread, 100.0 * roofline);
            let _ = writeln!(
                out,
                "| {shape} | {kernel} | {ms:.4} | {spread:.1}% | {tflops:.2} | {gbs:.0} | {roofline:.0}% |"
            );
        }
        out
    }
}
