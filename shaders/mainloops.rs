//! The table of mainloops: variants, where each is of use, and what it is expected to cost.

use tilewise_core::kernel::{KernelDef, Reject, SUBGROUP, Unit, Variant};
use tilewise_core::{Caps, CoopMatrix, DType, DeviceClass, Format, Grouping, Problem};

/// Every mainloop.
pub(crate) const KERNELS: &[KernelDef] = &[
    KernelDef {
        name: "naive",
        file: "mainloop/naive.wgsl",
        operand_files: &[],
        operand_constants: |_, _| Vec::new(),
        variants: NAIVE,
        workgroup_bytes: |variant, _| variant.workgroup_bytes,
        splits: false,
        admit: |_, _| Ok(()),
        cost: |problem, caps, variant, splits| cost(problem, caps, variant, splits, 0.04),
    },
    KernelDef {
        name: "gemv",
        file: "mainloop/gemv.wgsl",
        operand_files: &[],
        operand_constants: |_, _| Vec::new(),
        variants: GEMV,
        workgroup_bytes: |variant, _| variant.workgroup_bytes,
        splits: true,
        admit: gemv_admit,
        cost: gemv_cost,
    },
    KernelDef {
        name: "coop",
        file: "mainloop/coop.wgsl",
        operand_files: &["mainloop/panel.wgsl"],
        operand_constants: |along_k, transposed| {
            vec![("X_ALONG_K", u32::from(along_k)), ("X_ROW_MAJOR", u32::from(!transposed))]
        },
        variants: COOP,
        workgroup_bytes: coop_workgroup_bytes,
        splits: true,
        admit: |_, _| Ok(()),
        cost: coop_cost,
    },
    KernelDef {
        name: "simt",
        file: "mainloop/simt.wgsl",
        operand_files: &["mainloop/slice.wgsl"],
        operand_constants: |_, _| Vec::new(),
        variants: SIMT,
        workgroup_bytes: |variant, _| variant.workgroup_bytes,
        splits: true,
        admit: |_, _| Ok(()),
        cost: |problem, caps, variant, splits| cost(problem, caps, variant, splits, simt_efficiency(variant, caps)),
    },
];

const NAIVE: &[Variant] = &[Variant {
    name: "8x32",
    bm: 8,
    bn: 32,
    bk: 1,
    threads: 64,
    workgroup_bytes: 0,
    constants: &[("BM", 8), ("BN", 32)],
    unit: None,
}];

/// A gemv variant: BM×BN of C with K in `stripes`, `rows` rows of C per invocation.
macro_rules! gemv {
    ($name:literal, $bm:literal, $bn:literal, $rows:literal, $stripes:literal) => {
        Variant {
            name: $name,
            bm: $bm,
            bn: $bn,
            bk: 4 * $stripes,
            threads: $bn / 4 * ($bm / $rows) * $stripes,
            workgroup_bytes: $bn / 4 * ($bm / $rows) * $stripes * $rows * 16,
            constants: &[("BM", $bm), ("BN", $bn), ("ROWS", $rows), ("STRIPES", $stripes)],
            unit: None,
        }
    };
}

const GEMV: &[Variant] =
    &[gemv!("1x4", 1, 4, 1, 128), gemv!("1x32", 1, 32, 1, 32), gemv!("4x4", 4, 4, 4, 128), gemv!("4x32", 4, 32, 4, 32)];

/// A simt variant: BM×BN×BK with TM×TN per invocation.
macro_rules! simt {
    ($name:literal, $bm:literal, $bn:literal, $bk:literal, $tm:literal, $tn:literal) => {
        Variant {
            name: $name,
            bm: $bm,
            bn: $bn,
            bk: $bk,
            threads: ($bm / $tm) * ($bn / $tn),
            workgroup_bytes: ($bm + $bn) * $bk * 4,
            constants: &[("BM", $bm), ("BN", $bn), ("BK", $bk), ("TM", $tm), ("TN", $tn)],
            unit: None,
        }
    };
}

const SIMT: &[Variant] = &[
    simt!("256x128x16", 256, 128, 16, 16, 8),
    simt!("128x128x16", 128, 128, 16, 16, 8),
    simt!("128x64x16", 128, 64, 16, 16, 8),
    simt!("64x64x16", 64, 64, 16, 4, 4),
    simt!("32x32x32", 32, 32, 32, 4, 4),
];

/// f16 matrices of 16×16, on Vulkan.
static F16_16: Unit = Unit { file: "unit/f16_16.wgsl", matrix: matrix(16, DType::F16) };
/// f16 matrices of 8×8, on Metal.
static F16_8: Unit = Unit { file: "unit/f16_8.wgsl", matrix: matrix(8, DType::F16) };
/// f32 matrices of 8×8, on Metal.
static F32_8: Unit = Unit { file: "unit/f32_8.wgsl", matrix: matrix(8, DType::F32) };

const fn matrix(size: u32, operands: DType) -> CoopMatrix {
    CoopMatrix { size, operands, sums: DType::F32 }
}

/// A variant for matrix units: BM×BN×BK with SM×SN subgroups and PAD elements between lines.
macro_rules! coop {
    ($name:literal, $unit:ident, $bm:literal, $bn:literal, $bk:literal, $sm:literal, $sn:literal, $pad:literal) => {
        Variant {
            name: $name,
            bm: $bm,
            bn: $bn,
            bk: $bk,
            threads: $sm * $sn * SUBGROUP,
            workgroup_bytes: {
                let panels = [panel($bm, $bk, $pad, &$unit), panel($bn, $bk, $pad, &$unit)];
                panels[0] + panels[1] + shown($sm * $sn, &$unit)
            },
            constants: &[
                ("BM", $bm),
                ("BN", $bn),
                ("BK", $bk),
                ("SUBGROUPS_M", $sm),
                ("SUBGROUPS_N", $sn),
                ("PAD", $pad),
            ],
            unit: Some(&$unit),
        }
    };
}

#[rustfmt::skip]
const COOP: &[Variant] = &[
    coop!("128x128x32", F16_16, 128, 128, 32, 2, 2, 8),
    coop!("64x64x32", F16_16, 64, 64, 32, 2, 2, 8),
    coop!("16x64x64", F16_16, 16, 64, 64, 1, 4, 8),
    coop!("half-64x64x32", F16_8, 64, 64, 32, 2, 2, 8),
    coop!("single-64x64x16", F32_8, 64, 64, 16, 2, 2, 4),
];

/// Bytes of a panel, the larger way round.
const fn panel(tile: u32, bk: u32, pad: u32, unit: &Unit) -> u32 {
    let longer = if tile > bk { tile } else { bk };
    (tile * bk + longer * pad) * unit.matrix.operands.bytes() as u32
}

/// Bytes for a matrix of sums per subgroup.
const fn shown(subgroups: u32, unit: &Unit) -> u32 {
    subgroups * unit.matrix.size * unit.matrix.size * 4
}

/// The lines of a panel lie along K or across, as the storage does.
fn coop_workgroup_bytes(variant: &Variant, problem: &Problem) -> u32 {
    let Some(unit) = variant.unit else { return variant.workgroup_bytes };
    let [bk, pad] = ["BK", "PAD"].map(|name| constant(variant, name));
    let panel = |tile, along_k| {
        let lines = if along_k { tile } else { bk };
        (tile * bk + lines * pad) * unit.matrix.operands.bytes() as u32
    };
    let panels = panel(variant.bm, !problem.a.transposed) + panel(variant.bn, problem.b.transposed);
    panels + shown(variant.threads / SUBGROUP, unit)
}

/// The value of a constant of the variant; 1 where it has none of that name.
fn constant(variant: &Variant, name: &str) -> u32 {
    variant.constants.iter().find(|(n, _)| *n == name).map_or(1, |(_, value)| *value)
}

/// Share of a core's arithmetic left after its reads of workgroup memory: an invocation reads TM + TN numbers for TM·TN multiply-adds. Chips that
/// share the host's memory have half the registers of the others, so that large register tiles spill.
fn simt_efficiency(variant: &Variant, caps: &Caps) -> f64 {
    let [tm, tn] = ["TM", "TN"].map(|name| f64::from(constant(variant, name)));
    let spills = caps.class != DeviceClass::Discrete && tm * tn > 64.0;
    1.0 / (1.0 + 2.0 * (tm + tn) / (tm * tn)) / if spills { 2.0 } else { 1.0 }
}

/// As other tiles, with the arithmetic of matrix units; of that, small tiles reach less.
fn coop_cost(problem: &Problem, caps: &Caps, variant: &Variant, splits: u64) -> f64 {
    let tile = f64::from(variant.bm.min(128) * variant.bn.min(128)) / (128.0 * 128.0);
    cost(problem, caps, variant, splits, 6.0 * tile.sqrt())
}

/// Seconds for a kernel that keeps a core busy at `efficiency` of its peak. How many cores there are is a guess, so a last wave that is not full is
/// counted as a quarter; and a core wants some hundreds of invocations to hide its latencies.
fn cost(problem: &Problem, caps: &Caps, variant: &Variant, splits: u64, efficiency: f64) -> f64 {
    let rates = caps.rates();
    let tile = 2.0 * f64::from(variant.bm) * f64::from(variant.bn) * (problem.k as f64 / splits as f64 + TILE_OVERHEAD);
    let per_core = tiles(problem, variant) * splits as f64 / rates.cores;
    let waves = if per_core <= 1.0 { 1.0 } else { per_core + 0.25 };
    let resident = f64::from(variant.threads) * per_core.clamp(1.0, 8.0);
    let arithmetic = waves * tile / (rates.core_flops * efficiency * (resident / 256.0).min(1.0));
    // Larger tiles pass fewer elements, as f32, through caches and workgroup memory. Much of that hides behind the arithmetic.
    let edge = 4.0 * f64::from(variant.bm + variant.bn);
    let reads = tiles(problem, variant) * edge * problem.k as f64 / (CACHE_SPEED * rates.bandwidth);
    let arithmetic = arithmetic + SEEN * reads;
    arithmetic.max(traffic(problem) / rates.bandwidth) + rates.dispatch
}

/// How many times faster than device memory the caches between it and the cores are.
const CACHE_SPEED: f64 = 3.0;

/// Share of that passage that does not hide behind arithmetic.
const SEEN: f64 = 0.6;

/// Starting and storing a tile takes as long as about so many steps along K.
const TILE_OVERHEAD: f64 = 200.0;

/// Tiles of C; a ragged product may end each group in a tile that is not full, and does so by half on average.
fn tiles(problem: &Problem, variant: &Variant) -> f64 {
    let rows = problem.m.div_ceil(u64::from(variant.bm)) as f64;
    let columns = problem.n.div_ceil(u64::from(variant.bn)) as f64;
    match problem.grouping {
        Grouping::Batched => rows * columns * problem.batch as f64,
        Grouping::RaggedM { groups } => (rows + 0.5 * groups as f64) * columns,
    }
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
    match format {
        Format::Dense(dtype) => dtype.bytes() as f64,
        Format::Quantized(format, scales) => {
            format.bits() as f64 / 8.0 + 2.0 * scales.bytes() as f64 / format.group_size() as f64
        }
    }
}

fn gemv_admit(problem: &Problem, variant: &Variant) -> Result<(), Reject> {
    let (m, n) = (problem.m, problem.n);
    if m <= 4 * u64::from(variant.bm) || n <= 4 * u64::from(variant.bn) && variant.bn == 4 {
        return Ok(());
    }
    Err(Reject(format!("M = {m} and N = {n}: not few rows or columns for its tile")))
}

/// Reading bound: every tile of rows streams B, every tile of columns A, at the speed that the invocations in flight can ask for.
fn gemv_cost(problem: &Problem, caps: &Caps, variant: &Variant, splits: u64) -> f64 {
    let rates = caps.rates();
    let (m, n, k) = (problem.m as f64, problem.n as f64, problem.k as f64);
    let a = m * k * problem.batch as f64 * bytes(problem.a.format);
    let b = k * n * problem.entries() as f64 * bytes(problem.b.format);
    let read = |once: f64, times: f64, k_contiguous: bool, tile: u32, element: f64| {
        // What other workgroups have just read comes from a cache: dearer where the operand does not fit one.
        let again = if once > 4e6 { 0.25 } else { 0.03 };
        // Across K, a row of a narrow tile is less than the 32 bytes that memory gives at once. Along K, many rows at a time were measured slower
        // than few.
        let waste = match k_contiguous {
            false => (32.0 / (f64::from(tile) * element)).max(1.0),
            true if tile > 8 => 1.15,
            true => 1.0,
        };
        once * waste * (1.0 + again * (times - 1.0).max(0.0))
    };
    let a = read(a, (n / f64::from(variant.bn)).ceil(), !problem.a.transposed, variant.bm, bytes(problem.a.format));
    let b = read(b, (m / f64::from(variant.bm)).ceil(), problem.b.transposed, variant.bn, bytes(problem.b.format));
    let in_flight = tiles(problem, variant) * splits as f64 * f64::from(variant.threads) / (rates.cores * 1024.0);
    let work = 2.0 * tiles(problem, variant) * f64::from(variant.bm * variant.bn) * k;
    let arithmetic = work / (rates.cores * rates.core_flops * 0.2);
    ((a + b) / (rates.bandwidth * in_flight.min(1.0))).max(arithmetic) + rates.dispatch
}
