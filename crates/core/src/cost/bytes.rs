//! The cost of few rows against quantized weights that are read as bytes.

use super::{Model, operand_bytes, tiles};
use crate::caps::{Caps, PackedProducts};
use crate::kernel::{Access, Variant};
use crate::problem::Problem;

/// Floating-point operations that take as long as a product of four bytes by four: as one
/// instruction (measured on an H200), and as several (an assumption).
const PRODUCT: f64 = 4.9;
const WRITTEN_OUT: f64 = 21.0;

/// Operations of decoding a weight that products of bytes hide.
const SIMPLE: f64 = 18.0;

/// The least share of the bandwidth that counts for arithmetic.
const BUSY: f64 = 0.8;

/// Weights of a column that an invocation takes in a step.
const GROUP: f64 = 32.0;

/// Invocations that a core holds.
const RESIDENT: f64 = 2048.0;

/// Estimated seconds. Reading and arithmetic overlap if there are enough workgroups. A workgroup's
/// own steps overlap with others' reading only partly: they add as the sides of a right triangle.
/// Bringing A to workgroup memory and adding the stripes overlap with nothing.
pub(super) fn seconds(problem: &Problem, caps: &Caps, variant: &Variant, decode: f64) -> f64 {
    let Model::Bytes { bandwidth, start, step, together, early, work } = variant.model else {
        unreachable!("{}: {:?}", variant.name, variant.model);
    };
    let Access::Codes { stripes, .. } = variant.access else {
        unreachable!("{}: {:?}", variant.name, variant.access);
    };
    let stripes = f64::from(stripes);
    let rates = caps.rates();
    let [a, b] = operand_bytes(problem);
    let tiles = tiles(problem, variant);
    let [rows, columns, threads] = [variant.bm, variant.bn, variant.threads].map(f64::from);
    let product = match caps.packed_products {
        PackedProducts::Instruction => PRODUCT,
        PackedProducts::WrittenOut | PackedProducts::Absent(_) => WRITTEN_OUT,
    };
    let weights = tiles * columns * problem.k as f64;
    let products = work.products * f64::from(problem.activation_bytes().unwrap_or_default());
    let decode = if work.products > 0.0 { (decode - SIMPLE).max(0.0) } else { decode };
    let operations = work.decoded * decode + rows * (work.row + products * product);
    let arithmetic = weights * operations / (rates.cores * rates.core_flops);
    // Each row of tiles reads all weights of its entry.
    let entries = problem.grouping.expected_entries(problem.m, problem.batch);
    let reads = (tiles * columns / problem.n as f64 / entries.max(1.0)).max(1.0);
    // Stripes beyond the end of K idle in the last step.
    let along_k = problem.k.max(1) as f64 / (GROUP * stripes);
    let steps = along_k.ceil();
    let idle = steps / along_k;
    let late = if tiles > rates.cores { (steps / together).max(1.0).sqrt() } else { 1.0 };
    let groups = columns / (threads / stripes * f64::from(variant.sums[1]));
    // The condition of EARLY in mainloop/dot.wgsl. A K too short to be WHOLE meets it here, too.
    let is_whole = groups == 1.0 && idle == 1.0 && variant.groups(problem) == 1;
    let early = if is_whole && steps <= 2.0 { early } else { 1.0 };
    let reading = (a + b * reads) * idle * late / (rates.bandwidth * bandwidth * early);
    // Workgroups that leave the memory idle leave the arithmetic idle, too.
    let busy = reading.max(arithmetic / bandwidth.max(BUSY).powi(2));
    let latency = groups * steps * step;
    let turns = (tiles / (rates.cores * (RESIDENT / threads).max(1.0))).max(1.0);
    busy.hypot(latency) + start * turns + rates.dispatch
}
