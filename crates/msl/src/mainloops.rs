//! The table of mainloops: variants with their costs, and where each is of use; and the library of
//! both languages.

use crate::tables::KIT;
use tilewise_core::cost::{AppleShares, BY_HAND, Model, staged};
use tilewise_core::kernel::{
    Access, Constant, KernelDef, Library, Reject, Role, Streamed, Variant,
};
use tilewise_core::{Caps, Format, Problem};

/// Threads of a simdgroup.
const SIMD: u32 = 32;

/// Seconds of compiling: none, as no software device compiles MSL.
const COMPILING: [f64; 2] = [0.0; 2];

/// Every kernel in MSL and in WGSL, for devices that take both.
pub const LIBRARY: Library = Library { kernels: &BOTH };

static BOTH: [KernelDef; KERNELS.len() + tilewise_shaders::LIBRARY.kernels.len()] = {
    let mut both = [KERNELS[0]; KERNELS.len() + tilewise_shaders::LIBRARY.kernels.len()];
    let mut at = 0;
    while at < both.len() {
        both[at] = if at < KERNELS.len() {
            KERNELS[at]
        } else {
            tilewise_shaders::LIBRARY.kernels[at - KERNELS.len()]
        };
        at += 1;
    }
    both
};

/// Every kernel in MSL.
pub const KERNELS: &[KernelDef] = &[
    KernelDef {
        name: "msl-gemm",
        file: "mainloop/gemm.metal",
        kit: &KIT,
        operand: None,
        variants: GEMM,
        constants: gemm_constants,
        workgroup_bytes: gemm_bytes,
        splits: true,
        compiling: COMPILING,
        admit: |_, _, _| Ok(()),
    },
    KernelDef {
        name: "msl-direct",
        file: "mainloop/direct.metal",
        kit: &KIT,
        operand: None,
        variants: DIRECT,
        constants: direct_constants,
        workgroup_bytes: direct_bytes,
        splits: true,
        compiling: COMPILING,
        admit: direct_admit,
    },
    KernelDef {
        name: "msl-gemv",
        file: "mainloop/gemv.metal",
        kit: &KIT,
        operand: None,
        variants: GEMV,
        constants: gemv_constants,
        workgroup_bytes: |variant, _, _| variant.workgroup_bytes,
        splits: true,
        compiling: COMPILING,
        admit: few_admit,
    },
    KernelDef {
        name: "msl-gevm",
        file: "mainloop/gevm.metal",
        kit: &KIT,
        operand: None,
        variants: GEVM,
        constants: gevm_constants,
        workgroup_bytes: |variant, _, _| variant.workgroup_bytes,
        splits: true,
        compiling: COMPILING,
        admit: few_admit,
    },
];

// Name, [BM, BN, BK], simdgroups along M and N; and shares of the peak: on small early chips with
// f32, with 16-bit elements and with operands along K, on large early chips, on late ones.
const GEMM: &[Variant] = &[
    gemm("64x64x16", [64, 64, 16], [2, 2], [0.76, 0.74, 0.70, 0.76, 0.72]),
    gemm("64x64x16-1x2", [64, 64, 16], [1, 2], [0.69, 0.76, 0.70, 0.72, 0.70]),
    gemm("64x32x32", [64, 32, 32], [2, 2], [0.74, 0.72, 0.76, 0.72, 0.71]),
    gemm("32x32x16", [32, 32, 16], [2, 2], [0.66, 0.66, 0.66, 0.66, 0.66]),
];

const fn gemm(
    name: &'static str,
    [bm, bn, bk]: [u32; 3],
    [sm, sn]: [u32; 2],
    [f32, half, along_k, large, late]: [f64; 5],
) -> Variant {
    let shares = AppleShares { f32, half, along_k, large, late };
    Variant {
        name,
        bm,
        bn,
        bk,
        threads: sm * sn * SIMD,
        workgroup_bytes: 0,
        sums: [bm / sm, bn / sn],
        access: Access::Elements,
        model: Model::AppleTiles { shares, late_passed: 0.6, partial: 1.0 },
    }
}

fn gemm_constants(variant: &Variant, problem: &Problem, caps: &Caps) -> Vec<Constant> {
    let Variant { bm, bn, bk, sums: [rows, cols], .. } = *variant;
    let [m, n] = [bm / rows, bn / cols];
    let staged = staged(problem, caps).number();
    vec![
        ("BM", bm),
        ("BN", bn),
        ("BK", bk),
        ("SIMDGROUPS_M", m),
        ("SIMDGROUPS_N", n),
        ("STAGED", staged),
    ]
}

const DIRECT: &[Variant] = &[Variant {
    name: "32x32x8",
    bm: 32,
    bn: 32,
    bk: 8,
    threads: SIMD,
    workgroup_bytes: 0,
    sums: [32, 32],
    access: Access::Elements,
    model: Model::AppleTiles {
        shares: AppleShares { f32: 0.52, half: 0.54, along_k: 0.52, large: 0.52, late: 0.76 },
        // A core of the late generation finds in its own cache what its only simdgroup reads again.
        late_passed: 0.2,
        // A partial step goes element by element through threadgroup memory, with two barriers. An
        // assumption.
        partial: 5.0,
    },
}];

fn direct_constants(variant: &Variant, problem: &Problem, caps: &Caps) -> Vec<Constant> {
    vec![("BM", variant.bm), ("BN", variant.bn), ("STAGED", staged(problem, caps).number())]
}

// Name, [BM, BN], the operand of many lines, LINES of it per simdgroup.
const GEMV: &[Variant] = &[
    gemv("1x32", [1, 32], Role::B, 4),
    gemv("2x32", [2, 32], Role::B, 4),
    gemv("4x32", [4, 32], Role::B, 4),
    gemv("8x32", [8, 32], Role::B, 4),
    gemv("16x16", [16, 16], Role::B, 2),
    gemv("32x1", [32, 1], Role::A, 4),
    gemv("32x4", [32, 4], Role::A, 4),
    gemv("16x16t", [16, 16], Role::A, 2),
];

/// A variant against an operand along K. Each simdgroup has `lines` of its lines.
const fn gemv(name: &'static str, [bm, bn]: [u32; 2], role: Role, lines: u32) -> Variant {
    let streamed = Streamed { role, along_k: true };
    let [few, many] = streamed.few_and_many([bm, bn]);
    Variant {
        name,
        bm,
        bn,
        bk: SIMD * 8,
        threads: many / lines * SIMD,
        workgroup_bytes: 0,
        sums: streamed.few_and_many([few, lines]),
        access: Access::Eights { streamed: Some(streamed) },
        model: Model::Few { time: BY_HAND },
    }
}

fn gemv_constants(variant: &Variant, _: &Problem, _: &Caps) -> Vec<Constant> {
    let [_, lines] = streamed(variant).few_and_many(variant.sums);
    [few_constants(variant), vec![("LINES", lines)]].concat()
}

// Name, [BM, BN], the operand of many lines, SIMDGROUPS.
const GEVM: &[Variant] = &[
    gevm("1x64", [1, 64], Role::B, 8),
    gevm("4x64", [4, 64], Role::B, 8),
    gevm("8x64", [8, 64], Role::B, 4),
    gevm("64x1", [64, 1], Role::A, 8),
    gevm("64x4", [64, 4], Role::A, 8),
];

/// A variant against an operand across K, whose lines lie beside each other: each thread has eight.
const fn gevm(name: &'static str, [bm, bn]: [u32; 2], role: Role, simdgroups: u32) -> Variant {
    let streamed = Streamed { role, along_k: false };
    let [few, many] = streamed.few_and_many([bm, bn]);
    Variant {
        name,
        bm,
        bn,
        // Each simdgroup has four stripes of K, and four steps of each at a time.
        bk: 16 * simdgroups,
        threads: simdgroups * SIMD,
        workgroup_bytes: simdgroups * few * many * 4,
        sums: streamed.few_and_many([few, 8]),
        access: Access::Eights { streamed: Some(streamed) },
        model: Model::Few { time: BY_HAND },
    }
}

fn gevm_constants(variant: &Variant, _: &Problem, _: &Caps) -> Vec<Constant> {
    [few_constants(variant), vec![("SIMDGROUPS", variant.threads / SIMD)]].concat()
}

/// The constants that both kernels for few rows or columns have.
fn few_constants(variant: &Variant) -> Vec<Constant> {
    let Variant { bm, bn, sums, .. } = *variant;
    let streamed = streamed(variant);
    let [few, _] = streamed.few_and_many(sums);
    let many_rows = u32::from(streamed.role == Role::A);
    vec![("BM", bm), ("BN", bn), ("MANY_ROWS", many_rows), ("FEW", few)]
}

/// The operand of many lines, of a variant that [`gemv`] or [`gevm`] made.
fn streamed(variant: &Variant) -> Streamed {
    match variant.access {
        Access::Eights { streamed: Some(streamed) } => streamed,
        access => unreachable!("{}: {access:?}", variant.name),
    }
}

/// Bytes of a slice of each operand. The same memory later holds the sums, which are smaller.
fn gemm_bytes(variant: &Variant, problem: &Problem, caps: &Caps) -> u32 {
    let Variant { bm, bn, bk, .. } = *variant;
    let staged = staged(problem, caps).bytes() as u32;
    let panel = |tile, along_k| {
        let (lines, length) = if along_k { (tile, bk) } else { (bk, tile) };
        lines * (length * staged + 16)
    };
    panel(bm, !problem.a.transposed) + panel(bn, problem.b.transposed)
}

/// Bytes of a matrix, and of eight rows of sums.
fn direct_bytes(variant: &Variant, problem: &Problem, caps: &Caps) -> u32 {
    64 * staged(problem, caps).bytes() as u32 + 8 * variant.bn * 4
}

fn direct_admit(problem: &Problem, _: &Variant, caps: &Caps) -> Result<(), Reject> {
    let staged = Format::Dense(staged(problem, caps));
    if problem.a.format == staged && problem.b.format == staged {
        return Ok(());
    }
    Err(Reject(
        "its matrices come straight from memory, and these operands have to be converted".into(),
    ))
}

/// Whether there are few rows, or columns, for the tile, and the other operand is stored as the
/// mainloop wants it.
fn few_admit(problem: &Problem, variant: &Variant, _: &Caps) -> Result<(), Reject> {
    let streamed = streamed(variant);
    let (few, tile, lines, many, along_k) = match streamed.role {
        Role::A => (problem.n, variant.bn, "columns", "A", !problem.a.transposed),
        _ => (problem.rows_of_entry(), variant.bm, "rows", "B", problem.b.transposed),
    };
    if few > 2 * u64::from(tile) {
        return Err(Reject(format!("{few} {lines} are not few for its tile")));
    }
    if along_k != streamed.along_k {
        let direction = if along_k { "along" } else { "across" };
        return Err(Reject(format!("{many} is stored {direction} K")));
    }
    Ok(())
}
