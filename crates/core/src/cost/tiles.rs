//! The cost of tiles of C.

use super::{AppleShares, Shares, operand_bytes, tiles};
use crate::caps::{Caps, DeviceClass, Generation};
use crate::kernel::Variant;
use crate::problem::{DType, Format, Problem, Traits};

impl Shares {
    /// Sums in registers, `[TM, TN]` per invocation: it reads TM + TN numbers of workgroup memory
    /// for TM·TN multiply-adds.
    pub const fn registers([tm, tn]: [u32; 2], threads: u32) -> Shares {
        let large = tm * tn > LARGE_REGISTER_TILE;
        let reads = (tm + tn) as f64 / (tm * tn) as f64;
        // A core holds two workgroups with large tiles in its registers, and wants three of the
        // others.
        let workgroups = if large { 2.0 } else { 3.0 };
        Shares {
            arithmetic: 1.0 / (1.0 + READS * reads * reads),
            spills: large,
            resident: threads as f64 * workgroups,
            latency: 1.0,
            bandwidth: 0.6,
            start: 0.0,
            passed: 2.0,
            least: 1.0,
            decoded: 0.0,
        }
    }

    /// Sums in matrices, with what was measured of the variant: its share of the arithmetic and its
    /// resident invocations.
    pub const fn matrices(arithmetic: f64, resident: f64) -> Shares {
        Shares {
            arithmetic,
            spills: false,
            resident,
            latency: 1.0,
            bandwidth: 0.95,
            start: 30.0,
            passed: 0.6,
            least: 1.0,
            decoded: 0.0,
        }
    }

    /// The shares on a device.
    pub(super) fn on(self, caps: &Caps) -> Shares {
        let spilled = self.spills && caps.class != DeviceClass::Discrete;
        Shares { arithmetic: self.arithmetic / if spilled { SPILLED } else { 1.0 }, ..self }
    }
}

/// Sums per invocation beyond which a register tile is large.
const LARGE_REGISTER_TILE: u32 = 64;

/// Time that reads of workgroup memory add to the multiply-adds at one read for each; it grows with
/// the square of the reads.
const READS: f64 = 2.2;

/// How many times as long a large register tile takes on chips that share the host's memory: they
/// have half the registers of the others, and it spills. An assumption.
const SPILLED: f64 = 2.0;

impl AppleShares {
    /// The shares on a device, for the types of a problem.
    pub(super) fn on(
        self,
        problem: &Problem,
        caps: &Caps,
        variant: &Variant,
        late_passed: f64,
    ) -> Shares {
        let quantized = matches!(problem.b.format, Format::Quantized(_));
        let short = if quantized && variant.bk < 32 { SHORT } else { 1.0 };
        let shares = |arithmetic: f64| Shares::matrices(arithmetic * short, APPLE_RESIDENT);
        match Generation::of(caps) {
            Generation::Late | Generation::Neural => {
                Shares { passed: late_passed, ..shares(self.late) }
            }
            Generation::Early if caps.rates().cores > SMALL_CHIP => shares(self.large),
            Generation::Early if !problem.a.transposed && problem.b.transposed => {
                shares(self.along_k)
            }
            Generation::Early if staged(problem, caps) == DType::F32 => shares(self.f32),
            Generation::Early => shares(self.half),
        }
    }
}

/// Share of the speed that is left in a slice of fewer than 32 steps: it reads quantized weights in
/// pieces of less than 16 bytes. An assumption.
const SHORT: f64 = 0.9;

/// The type of an element of Apple's simdgroup matrices for a problem: the operands' own if they
/// agree, that of the activations if weights are quantized, else f32. GPUs before the M3 have no
/// arithmetic in bf16, and would convert for each product.
pub fn staged(problem: &Problem, caps: &Caps) -> DType {
    let own = |format| if let Format::Dense(own) = format { Some(own) } else { None };
    let common = match (own(problem.a.format), own(problem.b.format)) {
        _ if problem.k == 0 => DType::F32,
        (Some(a), Some(b)) if a != b => DType::F32,
        (a, b) => a.or(b).unwrap_or(DType::F32),
    };
    if common == DType::BF16 && Generation::of(caps) == Generation::Early {
        DType::F32
    } else {
        common
    }
}

/// How many times as long all steps along K take, if a step whose matrices do not lie whole in
/// memory takes `partial` times as long. That is the last step of a K that is no multiple of eight,
/// and of a range of K. It is every step if there are fewer than eight rows or columns.
pub(super) fn partial_steps(problem: &Problem, partial: f64) -> f64 {
    let steps = problem.k.div_ceil(8).max(1) as f64;
    let share = match problem {
        Problem { m: ..8, .. } | Problem { n: ..8, .. } => 1.0,
        Problem { k, grouping, .. } if k.is_multiple_of(8) && grouping.traits().whole_k => 0.0,
        _ => 1.0 / steps,
    };
    1.0 + share * (partial - 1.0)
}

/// Cores up to which one of Apple's chips is small: the plain chips and Pro.
const SMALL_CHIP: f64 = 20.0;

/// Resident invocations of kernels on simdgroup matrices: an assumption, as for WGSL's on 8×8
/// matrices.
const APPLE_RESIDENT: f64 = 256.0;

/// How many times faster than device memory the caches between it and the cores are.
const CACHE_SPEED: f64 = 2.0;

/// Share of the passage through these caches ([`CACHE_SPEED`]) that arithmetic does not hide.
const SEEN: f64 = 0.8;

/// How many times faster cores run when others idle and leave the chip's power to them.
const BOOST: f64 = 1.15;

/// Estimated seconds: those of the core that has most tiles, or of the memory.
pub(super) fn seconds(
    problem: &Problem,
    caps: &Caps,
    variant: &Variant,
    splits: u64,
    shares: Shares,
) -> f64 {
    let rates = caps.rates();
    let [bm, bn] = [variant.bm, variant.bn].map(f64::from);
    let k = problem.k as f64;
    let tiles = tiles(problem, variant);
    // A range of K ends anywhere in its last step.
    let whole = problem.grouping.traits().whole_k;
    let last = if whole { 0.0 } else { f64::from(variant.bk - 1) / 2.0 };
    let tile = 2.0 * bm * bn * (k / splits as f64 + last + shares.start);
    let per_core = tiles * splits as f64 / rates.cores;
    // Workgroups that hide a core's latencies take turns. The last turn has fewer, which hide less.
    let together = (shares.resident / f64::from(variant.threads)).round().max(1.0);
    let rest = per_core.ceil() % together;
    let last = if rest > 0.0 { rest / (rest / together).powf(shares.latency) } else { 0.0 };
    let turns = per_core.ceil() - rest + last;
    let clock = if per_core < 1.0 { BOOST } else { 1.0 };
    let part = part(problem, variant, tiles, shares.least);
    let arithmetic = turns * tile * part / (rates.core_flops * shares.arithmetic * clock);
    // Larger tiles pass fewer elements through caches and workgroup memory.
    let edge = shares.passed * (bm + bn);
    let reads = tiles * edge * k / (CACHE_SPEED * rates.bandwidth);
    let arithmetic = arithmetic + SEEN * reads;
    let memory = traffic(problem) / (rates.bandwidth * shares.bandwidth);
    // The weights of a group are read by few tiles, so that reading and arithmetic overlap less.
    let both = match problem.grouping.traits().few_rows {
        false => arithmetic.max(memory),
        true => (arithmetic.powi(4) + memory.powi(4)).powf(0.25),
    };
    both + rates.dispatch
}

/// Share of a tile by which the mean tile of groups of unknown sizes counts as fuller than it is.
/// An eighth is half of the last quarter; the rest was fitted to times with shares by Zipf's law.
const UNLIKE: f64 = 0.2;

/// Share of a whole tile's time that tiles of groups take on average. Groups of two rows of tiles
/// or fewer have a loop for each quarter of a tile.
fn part(problem: &Problem, variant: &Variant, tiles: f64, least: f64) -> f64 {
    if !problem.has_partial_tiles(variant.bm) || problem.b.format.element().is_none() {
        return 1.0;
    }
    let tiles_m = tiles / problem.n.div_ceil(u64::from(variant.bn)) as f64;
    let filled = (problem.m * problem.batch) as f64 / (tiles_m * f64::from(variant.bm));
    let filled = match problem.grouping.traits() {
        Traits { shares_rows: true, expected: None, .. } => (filled + UNLIKE).min(1.0),
        _ => (filled * 4.0).ceil() / 4.0,
    };
    least + (1.0 - least) * filled
}

/// Bytes that must move at least once: A, B and C.
fn traffic(problem: &Problem) -> f64 {
    let [a, b] = operand_bytes(problem);
    let [m, n, batch] = [problem.m, problem.n, problem.batch].map(|size| size as f64);
    a + b + m * n * batch * problem.c.format.element_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Model;
    use crate::kernel::Access;
    use crate::problem::Operand;
    use crate::quant::QuantFormat;

    #[test]
    fn shares_by_chip() {
        let shares = AppleShares { f32: 0.1, half: 0.2, along_k: 0.5, large: 0.3, late: 0.4 };
        let model = Model::AppleTiles { shares, late_passed: 0.2, partial: 1.0 };
        let variant = Variant {
            name: "64x64x32",
            bm: 64,
            bn: 64,
            bk: 32,
            threads: 128,
            workgroup_bytes: 0,
            sums: [32, 32],
            access: Access::Elements,
            model,
        };
        let of = |name: &str, problem: &Problem, bk| {
            let caps = Caps { name: name.into(), ..Caps::webgpu_default() };
            let shares = shares.on(problem, &caps, &Variant { bk, ..variant }, 0.2);
            (shares.arithmetic, shares.passed)
        };
        let dense = |dtype| Problem::dense(dtype, 8, 8, 64);
        assert_eq!(of("Apple M2 Pro", &dense(DType::F32), 16), (0.1, 0.6));
        assert_eq!(of("Apple M1", &dense(DType::F16), 16), (0.2, 0.6));
        assert_eq!(of("Apple M1", &dense(DType::BF16), 16), (0.1, 0.6));
        assert_eq!(of("Apple M1 Max", &dense(DType::F16), 16), (0.3, 0.6));
        assert_eq!(of("Apple M3 Ultra", &dense(DType::F32), 16), (0.4, 0.2));
        assert_eq!(of("Apple M5", &dense(DType::F32), 16), (0.4, 0.2));
        let turned =
            |format| Problem { b: Operand::packed(format, 1, 8, 64).t(), ..dense(DType::F16) };
        assert_eq!(of("Apple M2", &turned(Format::Dense(DType::F16)), 16), (0.5, 0.6));
        let codes = turned(Format::Quantized(QuantFormat::all().next().unwrap()));
        assert_eq!([16, 32].map(|bk| of("Apple M4", &codes, bk).0), [0.4 * SHORT, 0.4]);
    }

    #[test]
    fn steps_that_are_not_whole() {
        let of = |m, n, k| partial_steps(&Problem::dense(DType::F16, m, n, k), 5.0);
        assert_eq!([of(8, 8, 64), of(7, 64, 64), of(64, 3, 64)], [1.0, 5.0, 5.0]);
        assert_eq!(of(8, 8, 57), 1.5);
    }

    #[test]
    fn only_large_register_tiles_spill_and_not_on_discrete_chips() {
        let on = |tile, class| {
            let shares = Shares::registers(tile, 128);
            shares.on(&Caps { class, ..Caps::webgpu_default() }).arithmetic / shares.arithmetic
        };
        assert_eq!(on([16, 8], DeviceClass::Integrated), 0.5);
        assert_eq!(on([16, 8], DeviceClass::Discrete), 1.0);
        assert_eq!(on([8, 8], DeviceClass::Integrated), 1.0);
    }
}
