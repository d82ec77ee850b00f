//! The table of mainloops: variants with their costs, and where each is of use.

use crate::tables::KIT;
use tilewise_core::cost::{AppleShares, BY_HAND, Model};
use tilewise_core::kernel::{Access, KernelDef, Reject, Role, Streamed, Variant};
use tilewise_core::{DType, Format, Problem};

/// Threads of a simdgroup.
pub(crate) const SIMD: u32 = 32;

/// Every mainloop.
pub(crate) const KERNELS: &[KernelDef] = &[
    KernelDef {
        name: "msl-gemm",
        file: "mainloop/gemm.metal",
        kit: &KIT,
        operand_files: &[],
        operand_constants: |_, _| Vec::new(),
        variants: GEMM,
        workgroup_bytes: gemm_bytes,
        splits: true,
        admit: |_, _| Ok(()),
    },
    KernelDef {
        name: "msl-direct",
        file: "mainloop/direct.metal",
        kit: &KIT,
        operand_files: &[],
        operand_constants: |_, _| Vec::new(),
        variants: DIRECT,
        workgroup_bytes: direct_bytes,
        splits: true,
        admit: direct_admit,
    },
    KernelDef {
        name: "msl-gemv",
        file: "mainloop/gemv.metal",
        kit: &KIT,
        operand_files: &[],
        operand_constants: |_, _| Vec::new(),
        variants: GEMV,
        workgroup_bytes: |variant, _| variant.workgroup_bytes,
        splits: true,
        admit: few_admit,
    },
    KernelDef {
        name: "msl-gevm",
        file: "mainloop/gevm.metal",
        kit: &KIT,
        operand_files: &[],
        operand_constants: |_, _| Vec::new(),
        variants: GEVM,
        workgroup_bytes: |variant, _| variant.workgroup_bytes,
        splits: true,
        admit: few_admit,
    },
];

/// A tile of BM×BN×BK with SM×SN simdgroups.
macro_rules! tile {
    ($name:literal, $bm:literal, $bn:literal, $bk:literal, $sm:literal, $sn:literal, [$($share:literal),*]) => {
        Variant {
            name: $name,
            bm: $bm,
            bn: $bn,
            bk: $bk,
            threads: $sm * $sn * SIMD,
            workgroup_bytes: 0,
            constants: &[("BM", $bm), ("BN", $bn), ("BK", $bk), ("SIMDGROUPS_M", $sm), ("SIMDGROUPS_N", $sn)],
            access: Access::Elements,
            sums: [$bm / $sm, $bn / $sn],
            model: Model::AppleTiles { shares: shares([$($share),*]), late_passed: 0.6 },
        }
    };
}

/// Shares of the peak in the order of the table's columns.
const fn shares([f32, half, large, late]: [f64; 4]) -> AppleShares {
    AppleShares { f32, half, large, late }
}

#[rustfmt::skip]
const GEMM: &[Variant] = &[
    tile!("64x64x16", 64, 64, 16, 2, 2, [0.87, 0.88, 0.88, 0.84]),
    tile!("64x64x16-1x2", 64, 64, 16, 1, 2, [0.80, 0.91, 0.84, 0.82]),
    tile!("64x32x32", 64, 32, 32, 2, 2, [0.86, 0.86, 0.84, 0.83]),
    tile!("32x32x16", 32, 32, 16, 2, 2, [0.76, 0.78, 0.76, 0.76]),
];

const DIRECT: &[Variant] = &[Variant {
    name: "32x32x8",
    bm: 32,
    bn: 32,
    bk: 8,
    threads: SIMD,
    workgroup_bytes: 0,
    constants: &[("BM", 32), ("BN", 32)],
    access: Access::Elements,
    sums: [32, 32],
    // A late generation's core finds in its own cache what its only simdgroup reads again.
    model: Model::AppleTiles { shares: shares([0.60, 0.62, 0.60, 0.91]), late_passed: 0.2 },
}];

/// Few rows or columns against an operand along K: `lines` of it per simdgroup.
macro_rules! gemv {
    ($name:literal, $many_rows:literal, $bm:literal, $bn:literal, $few:literal, $lines:literal, $simdgroups:literal) => {
        Variant {
            name: $name,
            bm: $bm,
            bn: $bn,
            bk: SIMD * 8,
            threads: $simdgroups * SIMD,
            workgroup_bytes: 0,
            constants: &[("BM", $bm), ("BN", $bn), ("MANY_ROWS", $many_rows), ("FEW", $few), ("LINES", $lines)],
            access: Access::Eights { streamed: Some(streamed($many_rows == 1, true)) },
            sums: if $many_rows == 1 { [$lines, $few] } else { [$few, $lines] },
            model: Model::Few { time: BY_HAND },
        }
    };
}

#[rustfmt::skip]
const GEMV: &[Variant] = &[
    gemv!("1x32", 0, 1, 32, 1, 4, 8),
    gemv!("2x32", 0, 2, 32, 2, 4, 8),
    gemv!("4x32", 0, 4, 32, 4, 4, 8),
    gemv!("8x32", 0, 8, 32, 8, 4, 8),
    gemv!("16x16", 0, 16, 16, 16, 2, 8),
    gemv!("32x1", 1, 32, 1, 1, 4, 8),
    gemv!("32x4", 1, 32, 4, 4, 4, 8),
    gemv!("16x16t", 1, 16, 16, 16, 2, 8),
];

/// The operand of many lines: A where those are rows.
const fn streamed(many_rows: bool, along_k: bool) -> Streamed {
    Streamed { role: if many_rows { Role::A } else { Role::B }, along_k }
}

/// Few rows or columns against an operand across K, whose 64 lines lie beside each other.
macro_rules! gevm {
    ($name:literal, $many_rows:literal, $bm:literal, $bn:literal, $few:literal, $simdgroups:literal) => {
        Variant {
            name: $name,
            bm: $bm,
            bn: $bn,
            // Each simdgroup has four stripes of K, and four steps of each at a time.
            bk: 16 * $simdgroups,
            threads: $simdgroups * SIMD,
            workgroup_bytes: $simdgroups * $few * 64 * 4,
            constants: &[
                ("BM", $bm),
                ("BN", $bn),
                ("MANY_ROWS", $many_rows),
                ("FEW", $few),
                ("SIMDGROUPS", $simdgroups),
            ],
            access: Access::Eights { streamed: Some(streamed($many_rows == 1, false)) },
            sums: if $many_rows == 1 { [8, $few] } else { [$few, 8] },
            model: Model::Few { time: BY_HAND },
        }
    };
}

#[rustfmt::skip]
const GEVM: &[Variant] = &[
    gevm!("1x64", 0, 1, 64, 1, 8),
    gevm!("4x64", 0, 4, 64, 4, 8),
    gevm!("8x64", 0, 8, 64, 8, 4),
    gevm!("64x1", 1, 64, 1, 1, 8),
    gevm!("64x4", 1, 64, 4, 4, 8),
];

/// Bytes of an element of the matrices: of the operands' own type where they agree, else f32.
pub(crate) fn staged_bytes(problem: &Problem) -> u32 {
    match (problem.a.format, problem.b.format) {
        (Format::Dense(a), Format::Dense(b)) if a == b && problem.k > 0 => a.bytes() as u32,
        _ => DType::F32.bytes() as u32,
    }
}

/// A slice of each operand; eight rows of sums per simdgroup come later to the same place, and need less.
fn gemm_bytes(variant: &Variant, problem: &Problem) -> u32 {
    let Variant { bm, bn, bk, .. } = *variant;
    let staged = staged_bytes(problem);
    let panel = |tile, along_k| {
        let (lines, length) = if along_k { (tile, bk) } else { (bk, tile) };
        lines * (length * staged + 16)
    };
    panel(bm, !problem.a.transposed) + panel(bn, problem.b.transposed)
}

/// A matrix, and eight rows of sums.
fn direct_bytes(variant: &Variant, problem: &Problem) -> u32 {
    64 * staged_bytes(problem) + 8 * variant.bn * 4
}

fn direct_admit(problem: &Problem, _: &Variant) -> Result<(), Reject> {
    if problem.a.format == problem.b.format && matches!(problem.b.format, Format::Dense(_)) {
        return Ok(());
    }
    Err(Reject("its matrices come straight from memory, and these operands have to be converted".into()))
}

/// Whether there are few rows, or columns, for the tile, and the other operand is stored as the mainloop wants it.
fn few_admit(problem: &Problem, variant: &Variant) -> Result<(), Reject> {
    let Access::Eights { streamed: Some(Streamed { role, along_k }) } = variant.access else { return Ok(()) };
    let (few, tile, lines, streamed, stored_along_k) = match role {
        Role::A => (problem.n, variant.bn, "columns", "A", !problem.a.transposed),
        _ => (problem.m, variant.bm, "rows", "B", problem.b.transposed),
    };
    if few > 2 * u64::from(tile) {
        return Err(Reject(format!("{few} {lines} are not few for its tile")));
    }
    if stored_along_k != along_k {
        return Err(Reject(format!("{streamed} is stored {} K", if along_k { "across" } else { "along" })));
    }
    Ok(())
}
