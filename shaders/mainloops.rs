//! The table of mainloops: variants with their costs, and where each is of use.

use crate::tables::KIT;
use tilewise_core::cost::{Model, Shares};
use tilewise_core::kernel::{Access, KernelDef, Reject, SUBGROUP, Unit, Variant};
use tilewise_core::{CoopMatrix, DType, Problem};

/// Every mainloop.
pub(crate) static KERNELS: &[KernelDef] = &[
    KernelDef {
        name: "naive",
        file: "mainloop/naive.wgsl",
        kit: &KIT,
        operand_files: &[],
        operand_constants: |_, _| Vec::new(),
        variants: NAIVE,
        workgroup_bytes: |variant, _| variant.workgroup_bytes,
        splits: false,
        admit: |_, _| Ok(()),
    },
    KernelDef {
        name: "gemv",
        file: "mainloop/gemv.wgsl",
        kit: &KIT,
        operand_files: &["mainloop/strip.wgsl"],
        operand_constants: |along_k, _| vec![("X_ALONG_K", u32::from(along_k))],
        variants: GEMV,
        workgroup_bytes: |variant, _| variant.workgroup_bytes,
        splits: true,
        admit: gemv_admit,
    },
    KernelDef {
        name: "coop",
        file: "mainloop/coop.wgsl",
        kit: &KIT,
        operand_files: &["mainloop/panel.wgsl"],
        operand_constants: |along_k, transposed| {
            vec![("X_ALONG_K", u32::from(along_k)), ("X_ROW_MAJOR", u32::from(!transposed))]
        },
        variants: COOP,
        workgroup_bytes: coop_workgroup_bytes,
        splits: true,
        admit: |_, _| Ok(()),
    },
    KernelDef {
        name: "simt",
        file: "mainloop/simt.wgsl",
        kit: &KIT,
        operand_files: &["mainloop/slice.wgsl"],
        operand_constants: |_, _| Vec::new(),
        variants: SIMT,
        workgroup_bytes: |variant, _| variant.workgroup_bytes,
        splits: true,
        admit: |_, _| Ok(()),
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
    access: Access::Elements,
    sums: [1, 4],
    model: Model::Tiles(Shares {
        arithmetic: 0.04,
        spills: false,
        resident: 512.0,
        latency: 0.5,
        bandwidth: 1.0,
        start: 100.0,
        passed: 4.0,
    }),
}];

/// A gemv variant: BM×BN of C, of which each of `lanes` invocations has all rows and `cols` columns, with K in `stripes`.
macro_rules! gemv {
    ($name:literal, $rows:literal, $cols:literal, $lanes:literal, $stripes:literal) => {
        Variant {
            name: $name,
            bm: $rows,
            bn: $cols * $lanes,
            bk: 8 * $stripes,
            threads: $lanes * $stripes,
            workgroup_bytes: $lanes * $stripes * round($rows * $cols / 4, $lanes * $stripes) * 16,
            constants: &[
                ("ROWS", $rows),
                ("COLS", $cols),
                ("LANES", $lanes),
                ("STRIPES", $stripes),
                ("ROUND", round($rows * $cols / 4, $lanes * $stripes)),
            ],
            access: Access::Eights { streamed: None },
            sums: [$rows, $cols],
            model: Model::Few { time: 1.0 },
        }
    };
}

/// How many of an invocation's vectors of sums meet at a time: what 16 KiB hold of the workgroup's.
const fn round(sums: u32, threads: u32) -> u32 {
    let most = 1024 / threads;
    if sums < most { sums } else { most }
}

#[rustfmt::skip]
const GEMV: &[Variant] = &[
    gemv!("1x4", 1, 4, 1, 32),
    gemv!("1x8", 1, 8, 1, 128),
    gemv!("1x32", 1, 8, 4, 64),
    gemv!("4x4", 4, 4, 1, 32),
    gemv!("4x32", 4, 8, 4, 64),
    gemv!("8x4", 8, 4, 1, 32),
    gemv!("8x32", 8, 8, 4, 32),
    gemv!("16x32", 16, 8, 4, 32),
];

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
            access: Access::Elements,
            sums: [$tm, $tn],
            model: Model::Tiles(Shares::registers([$tm, $tn], ($bm / $tm) * ($bn / $tn))),
        }
    };
}

const SIMT: &[Variant] = &[
    simt!("128x128x16", 128, 128, 16, 16, 8),
    simt!("64x64x16", 64, 64, 16, 8, 4),
    simt!("32x128x16", 32, 128, 16, 4, 8),
    simt!("32x32x32", 32, 32, 32, 4, 4),
];

/// f16 matrices of 16×16, on Vulkan.
static F16_16: Unit = Unit { file: "unit/f16_16.wgsl", matrix: matrix(16, DType::F16, DType::F32) };
/// The same with sums in f16.
static F16_16_F16: Unit = Unit { file: "unit/f16_16_f16.wgsl", matrix: matrix(16, DType::F16, DType::F16) };
/// f16 matrices of 8×8, on Metal.
static F16_8: Unit = Unit { file: "unit/f16_8.wgsl", matrix: matrix(8, DType::F16, DType::F32) };
/// The same with sums in f16.
static F16_8_F16: Unit = Unit { file: "unit/f16_8_f16.wgsl", matrix: matrix(8, DType::F16, DType::F16) };
/// f32 matrices of 8×8, on Metal.
static F32_8: Unit = Unit { file: "unit/f32_8.wgsl", matrix: matrix(8, DType::F32, DType::F32) };

const fn matrix(size: u32, operands: DType, sums: DType) -> CoopMatrix {
    CoopMatrix { size, operands, sums }
}

/// A variant for matrix units: BM×BN×BK with SM×SN×SK subgroups, AHEAD slices on their way and PAD elements between lines. At the end what was measured: its share
/// of the arithmetic, which is smaller for small tiles, and its resident invocations.
macro_rules! coop {
    ($name:literal, $unit:ident, $bm:literal, $bn:literal, $bk:literal, $sm:literal, $sn:literal, $sk:literal, $ahead:literal, $pad:literal, $arithmetic:literal, $resident:literal) => {
        Variant {
            name: $name,
            bm: $bm,
            bn: $bn,
            bk: $bk * $ahead,
            threads: $sm * $sn * $sk * SUBGROUP,
            workgroup_bytes: {
                let panels = [panel($bm, $bk, $pad, &$unit), panel($bn, $bk, $pad, &$unit)];
                panels[0] + panels[1] + shown($sm * $sn * $sk, &$unit)
            },
            constants: &[
                ("BM", $bm),
                ("BN", $bn),
                ("BK", $bk),
                ("SUBGROUPS_M", $sm),
                ("SUBGROUPS_N", $sn),
                ("SUBGROUPS_K", $sk),
                ("AHEAD", $ahead),
            ],
            access: Access::Words { unit: &$unit, depth: $bk, pad: $pad },
            sums: [$bm / $sm, $bn / $sn],
            model: Model::Tiles(Shares::matrices($arithmetic, $resident)),
        }
    };
}

#[rustfmt::skip]
const COOP: &[Variant] = &[
    coop!("128x128x32", F16_16, 128, 128, 32, 2, 2, 1, 1, 8, 5.9, 256.0),
    coop!("128x128x64", F16_16, 128, 128, 64, 2, 2, 2, 1, 8, 4.7, 280.0),
    coop!("128x64x32", F16_16, 128, 64, 32, 2, 2, 1, 2, 8, 4.7, 280.0),
    coop!("64x64x64", F16_16, 64, 64, 64, 2, 1, 2, 2, 8, 4.5, 270.0),
    coop!("64x64x32", F16_16, 64, 64, 32, 2, 2, 1, 2, 8, 2.75, 240.0),
    coop!("32x64x64", F16_16, 32, 64, 64, 1, 2, 2, 4, 8, 3.15, 240.0),
    coop!("16x32x128", F16_16, 16, 32, 128, 1, 1, 8, 2, 8, 1.65, 480.0),
    coop!("f16sums-128x256x16", F16_16_F16, 128, 256, 16, 1, 4, 1, 1, 8, 7.2, 256.0),
    coop!("f16sums-128x128x32", F16_16_F16, 128, 128, 32, 2, 2, 1, 2, 8, 6.8, 256.0),
    coop!("f16sums-64x64x64", F16_16_F16, 64, 64, 64, 2, 1, 2, 1, 8, 4.7, 270.0),
    // Apple's GPUs have no separate units for small matrices, but these kernels keep those that compute in f32 busier: 72% of an M2's f32 peak is the most that
    // others have published for WGSL.
    coop!("half-64x64x32", F16_8, 64, 64, 32, 2, 2, 1, 1, 8, 0.72, 256.0),
    coop!("half-f16sums-64x64x32", F16_8_F16, 64, 64, 32, 2, 2, 1, 1, 8, 0.72, 256.0),
    coop!("single-64x64x16", F32_8, 64, 64, 16, 2, 2, 1, 1, 4, 0.72, 256.0),
];

/// Bytes of a panel, the larger way round.
const fn panel(tile: u32, bk: u32, pad: u32, unit: &Unit) -> u32 {
    let longer = if tile > bk { tile } else { bk };
    (tile * bk + longer * pad) * unit.matrix.operands.bytes() as u32
}

/// Bytes for a matrix of sums per subgroup.
const fn shown(subgroups: u32, unit: &Unit) -> u32 {
    subgroups * unit.matrix.size * unit.matrix.size * unit.matrix.sums.bytes() as u32
}

/// The lines of a panel lie along K or across, as the storage does.
fn coop_workgroup_bytes(variant: &Variant, problem: &Problem) -> u32 {
    let Access::Words { unit, depth, pad } = variant.access else { return variant.workgroup_bytes };
    let panel = |tile, along_k| {
        let lines = if along_k { tile } else { depth };
        (tile * depth + lines * pad) * unit.matrix.operands.bytes() as u32
    };
    let panels = panel(variant.bm, !problem.a.transposed) + panel(variant.bn, problem.b.transposed);
    panels + shown(variant.threads / SUBGROUP, unit)
}

fn gemv_admit(problem: &Problem, variant: &Variant) -> Result<(), Reject> {
    let (m, n) = (problem.m, problem.n);
    if m <= 4 * u64::from(variant.bm) || n <= 4 * u64::from(variant.bn) && variant.bn == 4 {
        return Ok(());
    }
    Err(Reject(format!("M = {m} and N = {n}: not few rows or columns for its tile")))
}
