//! The table of mainloops: variants with their costs, and where each is of use.

mod coop;

use crate::tables::KIT;
use coop::{COOP, coop_admit, coop_constants, coop_workgroup_bytes};
use tilewise_core::cost::{Model, Shares, Work};
use tilewise_core::kernel::{Access, Constant, KernelDef, Library, OperandFile, Reject, Variant};
use tilewise_core::{Caps, Problem};

/// Every kernel in WGSL.
pub const LIBRARY: Library = Library { kernels: KERNELS };

/// Every mainloop.
static KERNELS: &[KernelDef] = &[
    KernelDef {
        name: "naive",
        file: "mainloop/naive.wgsl",
        kit: &KIT,
        operand: None,
        variants: NAIVE,
        constants: naive_constants,
        workgroup_bytes: |variant, _, _| variant.workgroup_bytes,
        splits: false,
        compiling: [0.15, 0.0],
        admit: |_, _, _| Ok(()),
    },
    KernelDef {
        name: "dot",
        file: "mainloop/dot.wgsl",
        kit: &KIT,
        operand: None,
        variants: DOT,
        constants: dot_constants,
        workgroup_bytes: dot_workgroup_bytes,
        splits: false,
        compiling: [1.0, 0.1],
        admit: dot_admit,
    },
    KernelDef {
        name: "rows",
        file: "mainloop/rows.wgsl",
        kit: &KIT,
        operand: None,
        variants: ROWS,
        constants: rows_constants,
        workgroup_bytes: |variant, _, _| variant.workgroup_bytes,
        splits: false,
        compiling: [0.4, 0.075],
        admit: rows_admit,
    },
    KernelDef {
        name: "gemv",
        file: "mainloop/gemv.wgsl",
        kit: &KIT,
        operand: Some(OperandFile {
            file: "mainloop/strip.wgsl",
            constants: |along_k, _| vec![("X_ALONG_K", u32::from(along_k))],
        }),
        variants: GEMV,
        constants: gemv_constants,
        workgroup_bytes: |variant, _, _| variant.workgroup_bytes,
        splits: true,
        compiling: [0.7, 0.09],
        admit: gemv_admit,
    },
    KernelDef {
        name: "coop",
        file: "mainloop/coop.wgsl",
        kit: &KIT,
        operand: Some(OperandFile {
            file: "mainloop/panel.wgsl",
            constants: |along_k, transposed| {
                vec![("X_ALONG_K", u32::from(along_k)), ("X_ROW_MAJOR", u32::from(!transposed))]
            },
        }),
        variants: COOP,
        constants: coop_constants,
        workgroup_bytes: coop_workgroup_bytes,
        splits: true,
        compiling: [0.9, 0.01],
        admit: coop_admit,
    },
    KernelDef {
        name: "simt",
        file: "mainloop/simt.wgsl",
        kit: &KIT,
        operand: None,
        variants: SIMT,
        constants: simt_constants,
        workgroup_bytes: |variant, _, _| variant.workgroup_bytes,
        splits: true,
        compiling: [0.9, 0.01],
        admit: |_, _, _| Ok(()),
    },
];

const NAIVE: &[Variant] = &[Variant {
    name: "8x32",
    bm: 8,
    bn: 32,
    bk: 1,
    threads: 64,
    workgroup_bytes: 0,
    sums: [1, 4],
    access: Access::Elements,
    model: Model::Tiles(Shares {
        arithmetic: 0.04,
        spills: false,
        resident: 512.0,
        latency: 0.5,
        bandwidth: 1.0,
        start: 100.0,
        passed: 4.0,
        least: 1.0,
        decoded: 0.0,
    }),
}];

fn naive_constants(variant: &Variant, _: &Problem, _: &Caps) -> Vec<Constant> {
    vec![("BM", variant.bm), ("BN", variant.bn)]
}

// Name, [ROWS, COLS], LANES, STRIPES.
const GEMV: &[Variant] = &[
    gemv("1x4", [1, 4], 1, 32),
    gemv("1x8", [1, 8], 1, 128),
    gemv("1x32", [1, 8], 4, 64),
    gemv("4x4", [4, 4], 1, 32),
    gemv("4x32", [4, 8], 4, 64),
    gemv("8x4", [8, 4], 1, 32),
    gemv("8x32", [8, 8], 4, 32),
    gemv("16x32", [16, 8], 4, 32),
];

/// A variant with `lanes` invocations side by side and `stripes` along K. Each has all rows and
/// `cols` columns of the tile.
const fn gemv(name: &'static str, [rows, cols]: [u32; 2], lanes: u32, stripes: u32) -> Variant {
    let threads = lanes * stripes;
    Variant {
        name,
        bm: rows,
        bn: cols * lanes,
        bk: 8 * stripes,
        threads,
        workgroup_bytes: threads * round([rows, cols], threads) * 16,
        sums: [rows, cols],
        access: Access::Eights { streamed: None },
        model: Model::Few { time: 1.0 },
    }
}

/// Vectors of sums that each invocation adds up at a time, bounded by 16 KiB of workgroup memory.
const fn round([rows, cols]: [u32; 2], threads: u32) -> u32 {
    let (vectors, most) = (rows * cols / 4, 1024 / threads);
    if vectors < most { vectors } else { most }
}

fn gemv_constants(variant: &Variant, _: &Problem, _: &Caps) -> Vec<Constant> {
    let Variant { bn, threads, sums, .. } = *variant;
    let [rows, cols] = sums;
    let lanes = bn / cols;
    vec![
        ("ROWS", rows),
        ("COLS", cols),
        ("LANES", lanes),
        ("STRIPES", threads / lanes),
        ("ROUND", round(sums, threads)),
    ]
}

fn gemv_admit(problem: &Problem, variant: &Variant, _: &Caps) -> Result<(), Reject> {
    let (m, n) = (problem.rows_of_entry(), problem.n);
    let few = |size: u64, tile: u32| size <= 4 * u64::from(tile);
    // For few columns, only tiles of four columns are of use.
    if few(m, variant.bm) || (variant.bn == 4 && few(n, variant.bn)) {
        return Ok(());
    }
    Err(Reject(format!("M = {m} and N = {n}: not few rows or columns for its tile")))
}

// Name, ROWS, LANES, STRIPES, TURNS; and as fitted to measurements, the share of the bandwidth, the
// microseconds that a workgroup takes before and after its weights, the steps whose loads are under
// way together, and the microseconds of one step.
const DOT: &[Variant] = &[
    dot("1x32x16", 1, 8, 16, 1, [0.92, 1.15, 4.0, 0.78]),
    // For many workgroups of a short K: half as many convert a row of A.
    dot("1x64x8", 1, 16, 8, 1, [0.97, 0.0, 8.0, 0.78]),
    dot("1x32x32", 1, 8, 32, 1, [0.67, 0.0, 4.6, 0.95]),
    dot("1x64x32", 1, 8, 32, 2, [1.0, 2.25, 11.5, 0.78]),
    dot("1x32x64", 1, 8, 64, 1, [0.67, 0.35, 4.4, 0.98]),
    dot("2x64x32", 2, 16, 32, 1, [0.87, 3.0, 4.0, 1.15]),
    // For activations of one byte: with three, `rows` and matrix units were faster.
    dot("4x64x32", 4, 16, 32, 1, [0.90, 3.0, 4.0, 1.5]),
];

/// A variant with `lanes` groups of `stripes` invocations side by side. Each group has four columns
/// at a time, `turns` times.
const fn dot(
    name: &'static str,
    rows: u32,
    lanes: u32,
    stripes: u32,
    turns: u32,
    [bandwidth, start, together, step]: [f64; 4],
) -> Variant {
    Variant {
        name,
        bm: rows,
        bn: turns * lanes * COLUMNS,
        bk: GROUP,
        threads: lanes * stripes,
        workgroup_bytes: staged_bytes(rows, lanes * stripes, turns, MOST_BYTES, SHORTEST),
        sums: [rows, COLUMNS],
        access: Access::Codes { stripes, groups: if rows > 2 { 2 } else { 4 }, as_bytes: true },
        model: Model::Bytes {
            bandwidth,
            start: start * 1e-6,
            step: step * 1e-6,
            together,
            early: 0.87,
            work: Work { products: 0.25, row: 2.5, decoded: 0.4 },
        },
    }
}

/// Columns of an invocation in each turn.
const COLUMNS: u32 = 4;

/// Elements of a row of A that share a power of two, and the fewest of a row in workgroup memory at
/// a time.
const GROUP: u32 = 32;
const SHORTEST: u32 = 1024;

/// Signed bytes of an element of A, at most.
const MOST_BYTES: u32 = 3;

/// Bytes of workgroup memory with `chunk` elements of each row: their digits, `bytes` of each, sums
/// and powers. The stripes' sums lie where the digits were.
const fn staged_bytes(rows: u32, threads: u32, turns: u32, bytes: u32, chunk: u32) -> u32 {
    let groups = rows * chunk / GROUP;
    let (digits, sums) = (groups * GROUP * bytes, turns * threads * 16);
    groups * 12 + if digits > sums { digits } else { sums }
}

/// Groups of columns side by side, and the turns of each.
fn lanes_and_turns(variant: &Variant) -> [u32; 2] {
    let Access::Codes { stripes, .. } = variant.access else {
        unreachable!("{}: {:?}", variant.name, variant.access);
    };
    let lanes = variant.threads / stripes;
    [lanes, variant.bn / (variant.sums[1] * lanes)]
}

/// Elements of each row in workgroup memory at a time, and whether that is the whole row: if it is
/// long enough, fits, and has whole steps. Other lengths are powers of two, so that they share
/// texts.
fn chunk(variant: &Variant, problem: &Problem, caps: &Caps) -> (u32, bool) {
    let Access::Codes { stripes, groups, .. } = variant.access else { return (SHORTEST, false) };
    let most = caps.max_workgroup_bytes.saturating_sub(KIT.schedule_bytes(problem.grouping));
    let fits = |chunk: &u32| staged(variant, problem, *chunk) <= most;
    let longest = (SHORTEST..most).step_by((groups * GROUP) as usize).take_while(fits).last();
    let longest = longest.unwrap_or(SHORTEST);
    match u32::try_from(problem.k).unwrap_or(u32::MAX) {
        k if k >= SHORTEST
            && k <= longest
            && k.is_multiple_of(GROUP * stripes * variant.groups(problem)) =>
        {
            (k, true)
        }
        k => (k.min(longest).next_power_of_two().clamp(SHORTEST, longest), false),
    }
}

/// [`staged_bytes`] of a variant for a problem.
fn staged(variant: &Variant, problem: &Problem, chunk: u32) -> u32 {
    let [_, turns] = lanes_and_turns(variant);
    staged_bytes(variant.bm, variant.threads, turns, bytes_of(problem), chunk)
}

fn bytes_of(problem: &Problem) -> u32 {
    problem.activation_bytes().unwrap_or(MOST_BYTES)
}

fn dot_workgroup_bytes(variant: &Variant, problem: &Problem, caps: &Caps) -> u32 {
    staged(variant, problem, chunk(variant, problem, caps).0)
}

fn dot_constants(variant: &Variant, problem: &Problem, caps: &Caps) -> Vec<Constant> {
    let [lanes, turns] = lanes_and_turns(variant);
    let (chunk, whole) = chunk(variant, problem, caps);
    vec![
        ("ROWS", variant.bm),
        ("LANES", lanes),
        ("STRIPES", variant.threads / lanes),
        ("TURNS", turns),
        ("BYTES", bytes_of(problem)),
        ("CHUNK", chunk),
        ("WHOLE", u32::from(whole)),
    ]
}

fn dot_admit(problem: &Problem, variant: &Variant, _: &Caps) -> Result<(), Reject> {
    if variant.bm > 1 && problem.grouping.traits().shares_rows {
        return Err(Reject("a group seldom fills its rows".into()));
    }
    let bytes = bytes_of(problem);
    if variant.bm > 2 && bytes > 1 {
        return Err(Reject(format!("with {bytes} bytes of each activation it was slower")));
    }
    match problem.rows_of_entry() {
        m if m > 4 => Err(Reject(format!("M = {m}: each row, or two, would read all weights"))),
        _ => Ok(()),
    }
}

// Name, [ROWS, COLS], LANES, STRIPES; and the microseconds of a step, as fitted to measurements.
const ROWS: &[Variant] = &[
    rows("1x8x128", [1, 8], 1, 128, 2.4),
    rows("1x16x64", [1, 8], 2, 64, 2.4),
    rows("2x8x128", [2, 8], 1, 128, 2.4),
    rows("4x8x64", [4, 8], 1, 64, 3.1),
];

/// A variant with `lanes` groups of `stripes` invocations side by side, which have `cols` columns
/// each.
const fn rows(
    name: &'static str,
    [rows, cols]: [u32; 2],
    lanes: u32,
    stripes: u32,
    step: f64,
) -> Variant {
    let threads = lanes * stripes;
    Variant {
        name,
        bm: rows,
        bn: cols * lanes,
        bk: GROUP,
        threads,
        workgroup_bytes: threads * (rows * cols + 4) * 4,
        sums: [rows, cols],
        access: Access::Codes { stripes, groups: 1, as_bytes: false },
        model: Model::Bytes {
            bandwidth: 0.95,
            start: 0.2e-6,
            step: step * 1e-6,
            together: 2.5,
            early: 1.0,
            work: Work { products: 0.0, row: 5.0, decoded: 0.42 },
        },
    }
}

fn rows_constants(variant: &Variant, _: &Problem, _: &Caps) -> Vec<Constant> {
    let [rows, cols] = variant.sums;
    let lanes = variant.bn / cols;
    vec![("ROWS", rows), ("COLS", cols), ("LANES", lanes), ("STRIPES", variant.threads / lanes)]
}

fn rows_admit(problem: &Problem, variant: &Variant, _: &Caps) -> Result<(), Reject> {
    let grouping = problem.grouping;
    let looks = grouping.traits().few_rows && problem.m > 4 * u64::from(variant.bm);
    if grouping.traits().shares_rows || looks {
        return Err(Reject("its short workgroups were slower with groups of rows".into()));
    }
    match problem.rows_of_entry() {
        m if m > 4 * u64::from(variant.bm) => {
            Err(Reject(format!("M = {m}: not few rows for its tile")))
        }
        _ => Ok(()),
    }
}

// Name, [BM, BN, BK], [TM, TN].
const SIMT: &[Variant] = &[
    simt("128x128x16", [128, 128, 16], [16, 8]),
    simt("64x64x16", [64, 64, 16], [8, 4]),
    simt("32x128x16", [32, 128, 16], [4, 8]),
    simt("32x32x32", [32, 32, 32], [4, 4]),
];

/// A variant with TM×TN of the tile per invocation.
const fn simt(name: &'static str, [bm, bn, bk]: [u32; 3], [tm, tn]: [u32; 2]) -> Variant {
    let threads = (bm / tm) * (bn / tn);
    Variant {
        name,
        bm,
        bn,
        bk,
        threads,
        workgroup_bytes: (bm + bn) * bk * 4,
        sums: [tm, tn],
        access: Access::Elements,
        model: Model::Tiles(Shares::registers([tm, tn], threads)),
    }
}

fn simt_constants(variant: &Variant, _: &Problem, _: &Caps) -> Vec<Constant> {
    let Variant { bm, bn, bk, sums: [tm, tn], .. } = *variant;
    vec![("BM", bm), ("BN", bn), ("BK", bk), ("TM", tm), ("TN", tn)]
}
