//! The mainloop on cooperative matrices.

use crate::tables::KIT;
use tilewise_core::cost::{Model, Shares};
use tilewise_core::kernel::{Access, Constant, Reject, SUBGROUP, Unit, Variant, Weights, Words};
use tilewise_core::{Caps, CoopMatrix, DType, Precision, Problem};

/// f16 matrices of 16×16, on Vulkan.
static F16_16: Unit = Unit { file: "unit/f16_16.wgsl", matrix: matrix(16, DType::F16, DType::F32) };
/// Like [`F16_16`], with sums in f16.
static F16_16_F16: Unit =
    Unit { file: "unit/f16_16_f16.wgsl", matrix: matrix(16, DType::F16, DType::F16) };
/// f16 matrices of 8×8. No adapter has any of 8×8 for WGSL now: on Metal, naga's text of them does
/// not compile (ARCHITECTURE.md, "Matrix units").
static F16_8: Unit = Unit { file: "unit/f16_8.wgsl", matrix: matrix(8, DType::F16, DType::F32) };
/// Like [`F16_8`], with sums in f16.
static F16_8_F16: Unit =
    Unit { file: "unit/f16_8_f16.wgsl", matrix: matrix(8, DType::F16, DType::F16) };
/// f32 matrices of 8×8.
static F32_8: Unit = Unit { file: "unit/f32_8.wgsl", matrix: matrix(8, DType::F32, DType::F32) };

const fn matrix(size: u32, operands: DType, sums: DType) -> CoopMatrix {
    CoopMatrix { size, operands, sums }
}

// Name, unit, [BM, BN, BK], subgroups along M, N and K, AHEAD; and as measured, the share of the
// arithmetic and the resident invocations.
pub(super) const COOP: &[Variant] = &[
    decoding(
        10.0,
        sparing(0.3, coop("128x128x32", &F16_16, [128, 128, 32], [2, 2, 1], 1, [5.9, 256.0])),
    ),
    coop("128x128x64", &F16_16, [128, 128, 64], [2, 2, 2], 1, [4.7, 280.0]),
    coop("128x64x32", &F16_16, [128, 64, 32], [2, 2, 1], 2, [4.7, 280.0]),
    decoding(5.0, coop("64x64x64", &F16_16, [64, 64, 64], [2, 1, 2], 2, [4.5, 270.0])),
    coop("64x64x32", &F16_16, [64, 64, 32], [2, 2, 1], 2, [2.75, 240.0]),
    coop("32x64x64", &F16_16, [32, 64, 64], [1, 2, 2], 4, [3.15, 240.0]),
    // Few subgroups show few sums, and a core's workgroup memory has place for three workgroups.
    only(Weights::Dense, coop("32x128x32", &F16_16, [32, 128, 32], [1, 2, 1], 2, [3.66, 192.0])),
    only(Weights::Dense, coop("32x128x32-4", &F16_16, [32, 128, 32], [1, 2, 2], 2, [3.75, 384.0])),
    // Three workgroups fit a core.
    decoding(
        13.5,
        codes(places(2, coop("32x64x64-k", &F16_16, [32, 64, 64], [1, 1, 4], 2, [3.4, 384.0]))),
    ),
    // For 33 to 48 rows: fewer tiles decode weights.
    codes(coop("48x64x64", &F16_16, [48, 64, 64], [1, 1, 4], 2, [3.5, 256.0])),
    // A second set of sums keeps chains short, for f32 in two terms. It is spilled: the caches hold
    // it.
    chained(coop("chains-128x128x32", &F16_16, [128, 128, 32], [2, 2, 1], 1, [4.65, 256.0])),
    codes(coop("16x64x64", &F16_16, [16, 64, 64], [1, 1, 4], 2, [1.95, 384.0])),
    // For a K of more whole steps: it reads twice as much of a row at a time.
    codes(coop("16x64x64-deep", &F16_16, [16, 64, 64], [1, 1, 4], 4, [2.1, 384.0])),
    coop("16x32x128", &F16_16, [16, 32, 128], [1, 1, 8], 2, [1.25, 480.0]),
    // Sums in f16 leave registers for larger subtiles and for more loads.
    coop("f16sums-128x256x16", &F16_16_F16, [128, 256, 16], [1, 4, 1], 1, [7.2, 256.0]),
    coop("f16sums-128x128x32", &F16_16_F16, [128, 128, 32], [2, 2, 1], 2, [6.8, 256.0]),
    coop("f16sums-64x64x64", &F16_16_F16, [64, 64, 64], [2, 1, 2], 1, [4.7, 270.0]),
    // Not measured: Apple's GPUs have no separate units for small matrices, but these kernels keep
    // the f32 units busier. 72% of an M2's f32 peak is the most that others have published for
    // WGSL.
    coop("half-64x64x32", &F16_8, [64, 64, 32], [2, 2, 1], 1, [0.72, 256.0]),
    coop("half-f16sums-64x64x32", &F16_8_F16, [64, 64, 32], [2, 2, 1], 1, [0.72, 256.0]),
    coop("single-64x64x16", &F32_8, [64, 64, 16], [2, 2, 1], 1, [0.72, 256.0]),
];

/// Bytes of each of three workgroups that fit a core, as measured: it has some 51 KiB, of which
/// each workgroup takes one more than it asks for.
const THIRD: u32 = 16 << 10;

/// Operations of decoding a weight beyond which four slices of codes on their way were slower than
/// two: 52 µs beside 43 with 16 rows of 14336×4096 in Q4_K, 61 beside 50 in Q5_K.
const HEAVY: f64 = 35.0;

/// A variant on `unit`. `depth` is BK, the steps along K of one slice; `ahead` slices are on their
/// way at a time. Lines are padded by 16 bytes.
const fn coop(
    name: &'static str,
    unit: &'static Unit,
    [bm, bn, depth]: [u32; 3],
    [sm, sn, sk]: [u32; 3],
    ahead: u32,
    [arithmetic, resident]: [f64; 2],
) -> Variant {
    let subgroups = sm * sn * sk;
    let pad = 16 / unit.matrix.operands.bytes() as u32;
    let slices = longest(bm, depth, pad, unit) + longest(bn, depth, pad, unit);
    Variant {
        name,
        bm,
        bn,
        bk: depth * ahead,
        threads: subgroups * SUBGROUP,
        workgroup_bytes: slices + shown(subgroups, unit),
        sums: [bm / sm, bn / sn],
        access: Access::Words(Words {
            unit,
            depth,
            pad,
            chain: 0,
            places: sk,
            weights: Weights::Any,
        }),
        model: Model::Tiles(Shares::matrices(arithmetic, resident)),
    }
}

/// Sets the [least](Shares::least) share of the time of a tile with few rows.
const fn sparing(least: f64, variant: Variant) -> Variant {
    let Model::Tiles(shares) = variant.model else { return variant };
    Variant { model: Model::Tiles(Shares { least, ..shares }), ..variant }
}

/// Sets chains as short as [`Precision::SplitF32`] wants them.
const fn chained(variant: Variant) -> Variant {
    let chain = Precision::CHAIN as u32;
    Variant { access: Access::Words(Words { chain, ..words(&variant) }), ..variant }
}

/// Restricts a variant to some weights. Few subgroups leave 32 codes or more to each invocation;
/// wide slices of codes would be decoded by few.
const fn only(weights: Weights, variant: Variant) -> Variant {
    Variant { access: Access::Words(Words { weights, ..words(&variant) }), ..variant }
}

/// Sets how many operations of decoding a weight hide behind others.
const fn decoding(decoded: f64, variant: Variant) -> Variant {
    let Model::Tiles(shares) = variant.model else { return variant };
    Variant { model: Model::Tiles(Shares { decoded, ..shares }), ..variant }
}

/// Restricts a variant to quantized weights, with costs as measured with four bits: with several
/// slices on their way a workgroup hides part of its latencies without others, and decodes besides.
const fn codes(variant: Variant) -> Variant {
    let Model::Tiles(shares) = variant.model else { return variant };
    let shares = Shares { latency: 0.5, start: 250.0, decoded: 15.5, ..shares };
    Variant { model: Model::Tiles(shares), ..only(Weights::Codes, variant) }
}

/// Sets the places for the sums of the subgroups that share the depth of a slice. Fewer places take
/// less workgroup memory, and some barriers more at the end of a tile.
const fn places(places: u32, variant: Variant) -> Variant {
    let own = words(&variant);
    assert!(own.places.is_multiple_of(places), "each turn fills all places");
    let spared = shown(subtiles(&variant) * (own.places - places), own.unit);
    Variant {
        workgroup_bytes: variant.workgroup_bytes - spared,
        access: Access::Words(Words { places, ..own }),
        ..variant
    }
}

/// Bytes of a slice of an operand. Its lines lie as in storage: along K or across.
const fn slice(tile: u32, along_k: bool, depth: u32, pad: u32, unit: &Unit) -> u32 {
    let lines = if along_k { tile } else { depth };
    (tile * depth + lines * pad) * unit.matrix.operands.bytes() as u32
}

/// Bytes of a slice in the direction that takes more.
const fn longest(tile: u32, depth: u32, pad: u32, unit: &Unit) -> u32 {
    slice(tile, tile > depth, depth, pad, unit)
}

/// Bytes of `places` matrices of sums.
const fn shown(places: u32, unit: &Unit) -> u32 {
    places * unit.matrix.size * unit.matrix.size * unit.matrix.sums.bytes() as u32
}

/// The words of a variant that [`coop`] made.
const fn words(variant: &Variant) -> Words {
    match variant.access {
        Access::Words(words) => words,
        _ => panic!("no matrices"),
    }
}

/// Subtiles of a tile, each of one subgroup or of several along K.
const fn subtiles(variant: &Variant) -> u32 {
    let [rows, cols] = variant.sums;
    variant.bm / rows * (variant.bn / cols)
}

pub(super) fn coop_workgroup_bytes(variant: &Variant, problem: &Problem, _: &Caps) -> u32 {
    let Words { unit, depth, pad, places, .. } = words(variant);
    slice(variant.bm, !problem.a.transposed, depth, pad, unit)
        + slice(variant.bn, problem.b.transposed, depth, pad, unit)
        + shown(subtiles(variant) * places, unit)
}

pub(super) fn coop_admit(problem: &Problem, variant: &Variant, caps: &Caps) -> Result<(), Reject> {
    let is_dense = problem.b.format.element().is_some();
    let loaders = KIT.operands.iter().filter(|loader| (loader.accepts)(problem.b.format, caps));
    let decode = loaders.map(|loader| loader.decode_to_panel).reduce(f64::min);
    if variant.bk > 2 * words(variant).depth && !is_dense && decode > Some(HEAVY) {
        return Err(Reject("with weights that take long to decode it was slower".into()));
    }
    if variant.chain() > 0 && !(problem.may_split() && problem.precision == Precision::SplitF32) {
        return Err(Reject("its second set of sums is for f32 that split-f32 permits".into()));
    }
    match (words(variant).weights, coop_workgroup_bytes(variant, problem, caps)) {
        (Weights::Codes, _) if is_dense => {
            Err(Reject("its few subgroups are for quantized weights".into()))
        }
        (Weights::Dense, _) if !is_dense => {
            Err(Reject("its few subgroups are for weights that need no decoding".into()))
        }
        (Weights::Dense, bytes) if bytes > THIRD => Err(Reject(format!(
            "{bytes} bytes of workgroup memory: three workgroups do not fit a core"
        ))),
        _ => Ok(()),
    }
}

pub(super) fn coop_constants(variant: &Variant, problem: &Problem, _: &Caps) -> Vec<Constant> {
    let Variant { bm, bn, bk, threads, sums: [rows, cols], .. } = *variant;
    let Words { unit, depth, pad, places, chain, .. } = words(variant);
    let (along_m, along_n) = (bm / rows, bn / cols);
    let matrices = rows / unit.matrix.size;
    let decoded = problem.b.format.element().is_none();
    // With many rows of tiles, the last one matters little, and more loops cost the others; but
    // bf16 has been slower with one loop.
    let many = problem.rows_of_entry() >= 8 * u64::from(bm)
        && problem.a.format.element() == Some(DType::F16);
    let some = problem.grouping.traits().few_rows && !many;
    let loops = match some {
        true if matrices.is_multiple_of(4) && problem.has_partial_tiles(bm) => 4,
        true if matrices.is_multiple_of(3) => 3,
        true if matrices.is_multiple_of(2) => 2,
        _ => 1,
    };
    let ahead = bk / depth;
    // With codes this was slower, as they take registers for their scales; so it was with larger
    // groups.
    let further = loops == 4 && ahead == 1 && chain == 0 && !decoded;
    vec![
        ("BM", bm),
        ("BN", bn),
        ("BK", depth),
        ("SUBGROUPS_M", along_m),
        ("SUBGROUPS_N", along_n),
        ("SUBGROUPS_K", threads / SUBGROUP / subtiles(variant)),
        ("PLACES", places),
        ("AHEAD", ahead),
        ("PART_AHEAD", if further { 2 } else { ahead }),
        ("PAD", pad),
        ("CHAIN", chain),
        ("RANGES", u32::from(!problem.grouping.traits().whole_k)),
        ("LOOPS", loops),
    ]
}
