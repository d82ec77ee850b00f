//! The cost of few rows or columns of C: reading the larger operand, at the speed that the loads in
//! flight allow.

use super::{operand_bytes, tiles};
use crate::caps::{Caps, DeviceClass};
use crate::kernel::Variant;
use crate::problem::{Format, Problem, Traits};

/// Factor on the modelled time of kernels in MSL. An assumption: `simd_sum` is a little faster than
/// a tree through workgroup memory.
pub const BY_HAND: f64 = 0.93;

/// Elements of K that an invocation loads at a time.
const STEP: f64 = 8.0;

/// Bytes that a core's cache keeps.
const CORE_CACHE: f64 = 96e3;

/// Bytes that the cache of all cores keeps.
const SHARED_CACHE: f64 = 4e6;

/// Cost of reading an operand again after another workgroup has, relative to the first time: from a
/// core's cache, from the cache of all cores, and from memory.
const AGAIN: [f64; 3] = [0.01, 0.08, 0.67];

/// Bytes that memory delivers at once. Across K, shorter rows of a tile waste the rest of them.
const LINE: f64 = 64.0;

/// Along K, reading many lines at a time was measured slower: the factors for more than 8 lines and
/// for more than 32.
const MANY_LINES: [f64; 2] = [1.05, 1.2];

/// Registers of a core, and those of an invocation that hold neither sums nor loaded bytes.
const REGISTERS: f64 = 65_536.0;
const OTHER_REGISTERS: f64 = 24.0;

/// Bytes of a register.
const REGISTER: f64 = 4.0;

/// Seconds from a load to its value when memory is busy, along K and across.
const ALONG_K: f64 = 0.9e-6;
const ACROSS_K: f64 = 1.5e-6;

/// The speed of loads along K falls with the excess of bytes in flight over a core's cache, to this
/// power.
const EVICTED: f64 = 0.25;

/// How many times faster reading alone is than copying.
const READING: f64 = 1.1;

/// Share of the speed of reading that is left with groups, whose weights lie apart.
const GROUPS: f64 = 0.75;

/// Share of a core's f32 operations that multiply-adds reach beside the loads and conversions.
const ARITHMETIC: f64 = 0.5;

/// Seconds that a workgroup takes to start and to add its stripes.
const WORKGROUP: f64 = 0.05e-6;

/// Sums per invocation beyond which software adapters take longer to compile, and the seconds more
/// that lavapipe takes for the largest tile.
const COMPILED_SUMS: f64 = 16.0;
const COMPILING: f64 = 1.0;

/// Estimated seconds. Reading and arithmetic overlap only partly: their times add as the sides of a
/// right triangle.
pub(super) fn seconds(problem: &Problem, caps: &Caps, variant: &Variant, splits: u64) -> f64 {
    let rates = caps.rates();
    let [rows, cols] = variant.sums.map(f64::from);
    let [a, b] = operand_bytes(problem);
    let [a_element, b_element] = [problem.a.format, problem.b.format].map(Format::element_bytes);
    // Each column of tiles reads A, each row of tiles reads its entry of B.
    let along_n = problem.n.div_ceil(variant.bn.into()) as f64;
    let tiles = tiles(problem, variant);
    let entries = problem.grouping.expected_entries(problem.m, problem.batch);
    let along_m = tiles / along_n / entries.max(1.0);
    let read = read(a, a_element, !problem.a.transposed, variant.bm, along_n)
        + read(b, b_element, problem.b.transposed, variant.bn, along_m);
    let workgroups = tiles * splits as f64;
    let along_k = problem.b.transposed || a > b;
    // Elements of the larger operand that an invocation loads in a step, and the invocations that
    // have registers for these and for their sums.
    let step = STEP * if a > b { rows * a_element } else { cols * b_element };
    let launched = f64::from(variant.threads) * workgroups / rates.cores;
    let registers = OTHER_REGISTERS + rows * cols + step / REGISTER;
    let in_flight = step * launched.min(REGISTERS / registers);
    // Loads along K return to lines that they have touched. With too many in flight, those have
    // left the core's cache by then.
    let kept = if along_k { (CORE_CACHE / in_flight).min(1.0).powf(EVICTED) } else { 1.0 };
    let asked = in_flight * rates.cores / if along_k { ALONG_K } else { ACROSS_K };
    let share = match problem.grouping.traits() {
        Traits { shares_rows: true, indexed: false, .. } => GROUPS,
        _ => 1.0,
    };
    let reading = read / (kept * asked.min(READING * share * rates.bandwidth));
    let work = 2.0 * tiles * f64::from(variant.bm * variant.bn) * problem.k as f64;
    let loads = (rows + cols) / (rows * cols);
    let arithmetic = work / (rates.cores * rates.core_flops * ARITHMETIC / (1.0 + loads));
    let slow = caps.class == DeviceClass::Cpu && rows * cols > COMPILED_SUMS;
    let compiling = if slow { COMPILING } else { 0.0 };
    reading.hypot(arithmetic) + workgroups * WORKGROUP / rates.cores + rates.dispatch + compiling
}

/// Bytes of an operand that is read `times` times, with later reads at their share of the cost.
/// `once` has its bytes; `tile` of its lines pass through a workgroup.
fn read(once: f64, element: f64, along_k: bool, tile: u32, times: f64) -> f64 {
    let again = match once {
        ..CORE_CACHE => AGAIN[0],
        ..SHARED_CACHE => AGAIN[1],
        _ => AGAIN[2],
    };
    let waste = match (along_k, tile) {
        (false, _) => (LINE / (f64::from(tile) * element)).max(1.0),
        (true, ..=8) => 1.0,
        (true, ..=32) => MANY_LINES[0],
        (true, _) => MANY_LINES[1],
    };
    once * waste * (1.0 + again * (times - 1.0).max(0.0))
}
