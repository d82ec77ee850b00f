//! What each mainloop is expected to cost: seconds that order the candidates, from the device's rates and a few shares of them that were measured
//! (benches/record/NOTES.md).

use crate::mainloops::constant;
use tilewise_core::kernel::Variant;
use tilewise_core::{Caps, DType, DeviceClass, Format, Problem};

pub(crate) fn naive_cost(problem: &Problem, caps: &Caps, variant: &Variant, splits: u64) -> f64 {
    tiled(
        problem,
        caps,
        variant,
        splits,
        Shares { arithmetic: 0.04, invocations: 512.0, latency: 0.5, bandwidth: 1.0, start: 100.0, passed: 4.0 },
    )
}

/// An invocation reads TM + TN numbers of workgroup memory for TM·TN multiply-adds. Chips that share the host's memory have half the registers of the
/// others, so that large register tiles spill.
pub(crate) fn simt_cost(problem: &Problem, caps: &Caps, variant: &Variant, splits: u64) -> f64 {
    let [tm, tn] = ["TM", "TN"].map(|name| f64::from(constant(variant, name)));
    let large = tm * tn > 64.0;
    let spills = caps.class != DeviceClass::Discrete && large;
    let reads = (tm + tn) / (tm * tn);
    let arithmetic = 1.0 / (1.0 + 2.2 * reads * reads) / if spills { 2.0 } else { 1.0 };
    // A core holds two workgroups with large tiles in its registers, and wants three of the others.
    let invocations = f64::from(variant.threads) * if large { 2.0 } else { 3.0 };
    let shares = Shares { arithmetic, invocations, latency: 1.0, bandwidth: 0.6, start: 0.0, passed: 2.0 };
    tiled(problem, caps, variant, splits, shares)
}

/// As other tiles, with the arithmetic of matrix units; of that, small tiles reach less. Sums in f16 leave registers for larger parts and more loads.
pub(crate) fn coop_cost(problem: &Problem, caps: &Caps, variant: &Variant, splits: u64) -> f64 {
    let half_sums = variant.unit.is_some_and(|unit| unit.matrix.sums == DType::F16);
    let small = variant.unit.is_some_and(|unit| unit.matrix.size == 8);
    let (arithmetic, invocations) = match (variant.bm * variant.bn, constant(variant, "BK")) {
        // Apple's GPUs have no units apart for small matrices, but keep those that compute in f32 busier with them: 72% of an M2's f32 peak is the most that
        // others have published for WGSL.
        _ if small => (0.72, 256.0),
        (32_768.., _) if half_sums => (7.2, 256.0),
        (16_384.., _) if half_sums => (6.8, 256.0),
        (4_096.., 64..) if half_sums => (4.7, 270.0),
        (16_384.., 64..) => (4.7, 280.0),
        (16_384.., _) => (5.9, 256.0),
        (8_192.., _) => (4.7, 280.0),
        (4_096.., 64..) => (4.5, 270.0),
        (4_096.., _) => (2.75, 240.0),
        (2_048.., _) => (3.15, 240.0),
        _ => (1.65, 480.0),
    };
    let shares = Shares { arithmetic, invocations, latency: 1.0, bandwidth: 0.95, start: 30.0, passed: 0.6 };
    tiled(problem, caps, variant, splits, shares)
}

/// What a mainloop makes of a device.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    /// Of a core's f32 operations, in a tile that is whole; above 1 on matrix units.
    pub arithmetic: f64,
    /// Invocations that hide a core's latencies.
    pub invocations: f64,
    /// How much is left with fewer workgroups: their share of those, to this power.
    pub latency: f64,
    /// Of the memory's bandwidth.
    pub bandwidth: f64,
    /// Starting and storing a tile takes as long as about so many steps along K.
    pub start: f64,
    /// Bytes of an element on its way through caches and workgroup memory.
    pub passed: f64,
}

/// Seconds for tiles of C: as many as the core that has most.
pub fn tiled(problem: &Problem, caps: &Caps, variant: &Variant, splits: u64, shares: Shares) -> f64 {
    let rates = caps.rates();
    let tile = 2.0 * f64::from(variant.bm) * f64::from(variant.bn) * (problem.k as f64 / splits as f64 + shares.start);
    let per_core = tiles(problem, variant) * splits as f64 / rates.cores;
    // Workgroups that hide a core's latencies take turns; what is left over at the end has fewer to do so, and takes longer.
    let together = (shares.invocations / f64::from(variant.threads)).round().max(1.0);
    let rest = per_core.ceil() % together;
    let last = if rest > 0.0 { rest / (rest / together).powf(shares.latency) } else { 0.0 };
    let turns = per_core.ceil() - rest + last;
    // Cores that have the chip's power to themselves run faster.
    let clock = if per_core < 1.0 { 1.15 } else { 1.0 };
    let arithmetic = turns * tile / (rates.core_flops * shares.arithmetic * clock);
    // Larger tiles pass fewer elements through caches and workgroup memory. Some of that hides behind the arithmetic.
    let edge = shares.passed * f64::from(variant.bm + variant.bn);
    let reads = tiles(problem, variant) * edge * problem.k as f64 / (CACHE_SPEED * rates.bandwidth);
    let arithmetic = arithmetic + SEEN * reads;
    arithmetic.max(traffic(problem) / (rates.bandwidth * shares.bandwidth)) + rates.dispatch
}

/// How many times faster than device memory the caches between it and the cores are.
const CACHE_SPEED: f64 = 2.0;

/// Share of that passage that does not hide behind arithmetic.
const SEEN: f64 = 0.8;

/// Tiles of C; a ragged product may end each group in a tile that is not full, and does so by half on average.
fn tiles(problem: &Problem, variant: &Variant) -> f64 {
    let columns = problem.n.div_ceil(u64::from(variant.bn)) as f64;
    problem.grouping.expected_tiles_m(problem.m, problem.batch, variant.bm.into()) * columns
}

/// Bytes that must move at least once: A, B and C.
fn traffic(problem: &Problem) -> f64 {
    let a = (problem.m * problem.k * problem.batch) as f64 * bytes(problem.a.format);
    let b = (problem.k * problem.n * problem.entries()) as f64 * bytes(problem.b.format);
    let c = (problem.m * problem.n * problem.batch) as f64 * bytes(problem.c.format);
    a + b + c
}

/// Bytes per element.
fn bytes(format: Format) -> f64 {
    format.element_bytes()
}

pub(crate) fn gemv_cost(problem: &Problem, caps: &Caps, variant: &Variant, splits: u64) -> f64 {
    few(problem, caps, variant, splits, ["ROWS", "COLS"].map(|name| f64::from(constant(variant, name))))
}

/// Reading bound: every tile of rows streams B, every tile of columns A, at the speed that the loads in flight allow. Few invocations hide little of
/// their arithmetic behind that, so that the two add up as the sides of a right angle do. Each invocation sums rows × cols of C.
pub fn few(problem: &Problem, caps: &Caps, variant: &Variant, splits: u64, [rows, cols]: [f64; 2]) -> f64 {
    let rates = caps.rates();
    let (m, n, k) = (problem.m as f64, problem.n as f64, problem.k as f64);
    let (a_element, b_element) = (bytes(problem.a.format), bytes(problem.b.format));
    let read = |once: f64, times: f64, along_k: bool, tile: u32, element: f64| {
        // What other workgroups have just read comes from a cache: dearer where the operand does not fit one, cheapest where it fits a core's.
        let again = match once {
            ..CORE_CACHE => 0.01,
            ..4e6 => 0.08,
            _ => 0.67,
        };
        // Across K, a row of a narrow tile is less than what memory gives at once. Along K, many rows at a time were measured slower than few.
        let waste = match (along_k, tile) {
            (false, _) => (64.0 / (f64::from(tile) * element)).max(1.0),
            (true, ..=8) => 1.0,
            (true, ..=32) => 1.05,
            (true, _) => 1.2,
        };
        once * waste * (1.0 + again * (times - 1.0).max(0.0))
    };
    let (a, b) = (m * k * problem.batch as f64 * a_element, k * n * problem.entries() as f64 * b_element);
    let read_a = read(a, (n / f64::from(variant.bn)).ceil(), !problem.a.transposed, variant.bm, a_element);
    let read_b = read(b, (m / f64::from(variant.bm)).ceil(), problem.b.transposed, variant.bn, b_element);
    let workgroups = tiles(problem, variant) * splits as f64;
    // What an invocation loads of the larger operand in a step, and how many invocations have registers for that and for their sums.
    let along_k = problem.b.transposed || a > b;
    let step = 8.0 * if a > b { rows * a_element } else { cols * b_element };
    let resident = f64::from(variant.threads) * workgroups / rates.cores;
    let in_flight = step * resident.min(65_536.0 / (24.0 + rows * cols + step / 4.0));
    // Loads along K come back to lines that they have touched; with too many in flight those are gone from the core's cache by then.
    let kept = if along_k { (CORE_CACHE / in_flight).min(1.0).powf(0.25) } else { 1.0 };
    let asked = in_flight * rates.cores / if along_k { ALONG_K } else { ACROSS_K };
    let reading = (read_a + read_b) / (kept * asked.min(READS * rates.bandwidth));
    let work = 2.0 * tiles(problem, variant) * f64::from(variant.bm * variant.bn) * k;
    let arithmetic = work / (rates.cores * rates.core_flops * 0.5 / (1.0 + (rows + cols) / (rows * cols)));
    let compiling = if caps.class == DeviceClass::Cpu && rows * cols > 16.0 { UNROLLED } else { 0.0 };
    reading.hypot(arithmetic) + workgroups * WORKGROUP / rates.cores + rates.dispatch + compiling
}

/// Seconds, at least, that software adapters take to compile a step of many sums: a minute was seen.
const UNROLLED: f64 = 1.0;

/// Seconds from a load to its value when memory is busy, along K and across.
const ALONG_K: f64 = 0.9e-6;
const ACROSS_K: f64 = 1.5e-6;

/// Bytes in flight that a core's cache keeps.
const CORE_CACHE: f64 = 96e3;

/// How many times faster reading alone is than copying.
const READS: f64 = 1.1;

/// Seconds that a workgroup of few rows takes to start and to add its stripes.
const WORKGROUP: f64 = 0.05e-6;
