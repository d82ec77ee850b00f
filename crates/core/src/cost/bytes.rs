//! The cost of few rows against quantized weights by products of bytes.

use super::{operand_bytes, tiles};
use crate::caps::Caps;
use crate::kernel::Variant;
use crate::problem::Problem;

/// Operations in f32 that take as long as a product of four bytes by four: where it is an instruction,
/// and where it is a dozen of them.
const PRODUCT: f64 = 8.0;
const EMULATED: f64 = 24.0;

/// Products of four bytes for a weight and a row of A.
const PRODUCTS: f64 = 0.75;

/// Operations in f32 that take as long as the rest of a weight's way: its code, and a share of its
/// scale and bias.
const WEIGHT: f64 = 2.0;

/// Operations in f32 that take as long as bringing an element of A to workgroup memory.
const STAGED: f64 = 60.0;

/// Share of the speed of a copy that loads of weights alone reach.
const READING: f64 = 1.0;

/// Seconds in which a workgroup has brought its rows to workgroup memory, and in which it adds its
/// stripes.
const START: f64 = 2.0e-6;
const END: f64 = 0.5e-6;

/// Invocations of a core that its registers are enough for.
const RESIDENT: f64 = 1024.0;

/// Reading and arithmetic overlap. What a workgroup does before and after its weights does not, but
/// where others of the core read theirs.
pub(super) fn seconds(problem: &Problem, caps: &Caps, variant: &Variant) -> f64 {
    let rates = caps.rates();
    let [a, b] = operand_bytes(problem);
    let tiles = tiles(problem, variant);
    let k = problem.k as f64;
    let [rows, columns] = [variant.bm, variant.bn].map(f64::from);
    let product = if caps.packed_products { PRODUCT } else { EMULATED };
    let weights = tiles * columns * k;
    let operations = weights * (WEIGHT + rows * PRODUCTS * product) + tiles * rows * k * STAGED;
    let turns = (tiles / rates.cores).ceil();
    let together = (RESIDENT / f64::from(variant.threads)).max(1.0);
    // A core that has no workgroup, or a last one by itself, leaves its share unused.
    let balance = turns / (tiles / rates.cores);
    let arithmetic = operations / (rates.cores * rates.core_flops / 2.0) * balance;
    let rereads = (tiles * columns / problem.n as f64 - 1.0).max(0.0);
    let reading = (a + b * (1.0 + 0.5 * rereads)) / (READING * rates.bandwidth);
    arithmetic.max(reading) + (START + END) * (turns / together).max(1.0).sqrt() + rates.dispatch
}
