//! How long a kernel is expected to take. A [`Model`] stands in the table line of each variant,
//! [`seconds`] evaluates it with the rates of a device ([`Caps::rates`]).
//!
//! Estimates order the candidates and promise nothing. The numbers here and in the tables were
//! fitted to measurements on an H200 (benches/record/NOTES.md), unless they say otherwise.

mod bytes;
mod few;
mod tiles;

pub use crate::model::{AppleShares, Model, Shares, Work};
pub use few::BY_HAND;
pub use tiles::staged;

use crate::caps::{Caps, DeviceClass};
use crate::kernel::{Access, KernelDef, Variant, Words};
use crate::problem::Problem;

/// Estimated seconds of one pass over K, cut into `splits`, dispatch included. Decoding a weight
/// takes as long as `decode` operations in f32.
pub fn seconds(problem: &Problem, caps: &Caps, variant: &Variant, splits: u64, decode: f64) -> f64 {
    let (m, k) = (problem.grouping.expected_m(problem.m), problem.grouping.expected_k(problem.k));
    let problem = &Problem { m, k, ..*problem };
    let multiplied = match variant.model {
        Model::Tiles(shares) => tiles::seconds(problem, caps, variant, splits, shares.on(caps)),
        Model::AppleTiles { shares, late_passed, partial } => {
            let shares = shares.on(problem, caps, variant, late_passed);
            let arithmetic = shares.arithmetic / tiles::partial_steps(problem, partial);
            tiles::seconds(problem, caps, variant, splits, Shares { arithmetic, ..shares })
        }
        Model::Bytes { .. } => return bytes::seconds(problem, caps, variant, decode),
        Model::Few { time } => time * few::seconds(problem, caps, variant, splits),
    };
    multiplied + decoding(problem, caps, variant, decode)
}

/// Seconds of the workgroups that are expected to find no tile.
pub(crate) fn idle(problem: &Problem, caps: &Caps, variant: &Variant) -> f64 {
    let tile = [variant.bm, variant.bn].map(u64::from);
    let Problem { m, n, batch, grouping, .. } = *problem;
    grouping.idle_tiles([m, n], batch, tile) as f64 * caps.rates().idle
}

/// Seconds of a pass that makes a table of groups. Unless workgroups stride over their tiles, wgpu
/// starts one more dispatch, which checks the number of workgroups that it reads from memory.
pub(crate) fn counting(caps: &Caps, strides: bool) -> f64 {
    (if strides { 1.0 } else { 2.5 }) * caps.rates().dispatch
}

/// Runs over which the compiling of a product's texts is spread on a software device. Its driver
/// compiles on the CPU, as slowly as it runs: a text of `gemv` takes as long as 10,000 small
/// products. With this share a product that runs once takes little more than it must, and a loop of
/// products loses at most as much again as its compiling would have taken.
const RUNS: f64 = 20.0;

/// Seconds in which a software device's driver compiles a pass that packs or finishes, if the
/// kernel's own text takes no less.
const OTHER_PASS: f64 = 0.15;

/// Estimated seconds that a product should count for compiling its texts: its mainloop's, and those
/// of `others` passes. 0 except on software devices.
pub fn compiling(caps: &Caps, kernel: &KernelDef, variant: &Variant, others: u64) -> f64 {
    if caps.class != DeviceClass::Cpu {
        return 0.0;
    }
    let [least, sum] = kernel.compiling;
    let sums = variant.sums.map(f64::from);
    (least + sum * sums[0] * sums[1] + OTHER_PASS.min(least) * others as f64) / RUNS
}

/// Estimated seconds of copying the rows of A by index: they are read and written once.
pub(crate) fn copying_rows(problem: &Problem, caps: &Caps) -> f64 {
    let [bytes, _] = operand_bytes(problem);
    let rates = caps.rates();
    let compiling = if caps.class == DeviceClass::Cpu { OTHER_PASS / RUNS } else { 0.0 };
    2.0 * bytes / rates.bandwidth + rates.dispatch + compiling
}

/// Estimated seconds of decoding weights that do not hide behind the product. Each row of tiles
/// decodes all weights.
pub(crate) fn decoding(problem: &Problem, caps: &Caps, variant: &Variant, decode: f64) -> f64 {
    let rates = caps.rates();
    let weights = tiles(problem, variant) * f64::from(variant.bn) * problem.k as f64;
    let hidden = match variant.model {
        _ if decode == 0.0 => 0.0,
        // Nothing hides here, and waiting costs half as many operations as hide elsewhere.
        Model::Tiles(shares) if is_waited_for(problem, variant) => -shares.decoded / 2.0,
        Model::Tiles(shares) => shares.decoded,
        _ => 0.0,
    };
    weights * (decode - hidden).max(0.0) / (rates.cores * rates.core_flops)
}

/// Whether tiles wait for codes, so that decoding them does not hide. A short slice reads a part of
/// a line, and a core's first cache keeps the rest for the next slices. It seems to have few places
/// for lines that lie a multiple of 2 KiB apart: products with such rows were 10 to 20% slower.
fn is_waited_for(problem: &Problem, variant: &Variant) -> bool {
    let Access::Words(Words { depth: ..64, .. }) = variant.access else { return false };
    let format = problem.b.format;
    let codes = format.planes().iter().map(|plane| plane.bytes).max().unwrap_or(0);
    (problem.b.ld / format.block() * codes).is_multiple_of(2048)
}

/// The tiles of C that are expected.
fn tiles(problem: &Problem, variant: &Variant) -> f64 {
    let Problem { m, n, batch, grouping, .. } = *problem;
    grouping.expected_tiles([m, n], batch, [variant.bm, variant.bn].map(u64::from))
}

/// Bytes of A and of the entries of B that have rows, each once.
fn operand_bytes(problem: &Problem) -> [f64; 2] {
    let [m, n, k] = [problem.m, problem.n, problem.k].map(|size| size as f64);
    let a = m * k * problem.batch as f64 * problem.a.format.element_bytes();
    let entries = problem.grouping.expected_entries(problem.m, problem.batch);
    [a, k * n * entries * problem.b.format.element_bytes()]
}
