//! Parts of WGSL mainloops: operand loaders, output stores, schedules, one row each. Mainloops are
//! in `mainloops.rs`.

use crate::files::FILES;
use crate::link::Sources;
use tilewise_core::kernel::{
    ByWords, Constant, Kit, Lanes, Language, Load, OperandDef, Pack, ResidualPass, ScheduleDef,
    StoreDef,
};
use tilewise_core::{Caps, DType, Format, Grouping};

/// The part files of the other three axes that have alternatives or constants.
pub static KIT: Kit = Kit {
    language: Language::Wgsl,
    lanes: Some(Lanes {
        shared: "schedule/lanes.wgsl",
        shared_bytes: 140,
        subgroups: "schedule/lanes_subgroup.wgsl",
    }),
    operands: OPERANDS,
    stores: STORES,
    schedules: SCHEDULES,
    table: Some("mainloop/group_table.wgsl"),
    axes: "operand/axes.wgsl",
    gathered: Some("operand/gathered.wgsl"),
    absent: "operand/absent.wgsl",
    linear: "epilogue/linear.wgsl",
    added: "epilogue/added.wgsl",
    gated: "epilogue/gated.wgsl",
    paired: Some("epilogue/paired.wgsl"),
    activation: "epilogue/activation.wgsl",
    partial: "epilogue/partial.wgsl",
    k_splits: "epilogue/k_splits.wgsl",
    finish: "mainloop/finish.wgsl",
    finish_tile: [8, 32],
    by_words: Some(ByWords { finish: "mainloop/finish_words.wgsl", threads: 64 }),
    residual_pass: Some(ResidualPass { keep: "epilogue/keep.wgsl", kept: "epilogue/kept.wgsl" }),
    pack: Some(Pack {
        file: "mainloop/pack.wgsl",
        tile: [8, 32],
        floats: "operand/to_floats.wgsl",
        slabs: "operand/slabs.wgsl",
        scale: "mainloop/scale.wgsl",
        split: "mainloop/split.wgsl",
        powers: "mainloop/powers.wgsl",
        strip: 32,
        threads: [256, 512],
        divisors: "operand/divisors.wgsl",
        divided: "epilogue/divided.wgsl",
    }),
};

/// The files, as the linker takes them.
pub static SOURCES: Sources = Sources { files: FILES, first: None };

fn is_f32(format: Format, _: &Caps) -> bool {
    format == Format::Dense(DType::F32)
}

fn is_native_f16(format: Format, caps: &Caps) -> bool {
    caps.f16 && format == Format::Dense(DType::F16)
}

fn is_half(format: Format, _: &Caps) -> bool {
    matches!(format, Format::Dense(DType::F16 | DType::BF16))
}

fn half_constants(format: Format) -> Vec<Constant> {
    vec![("X_BF16", u32::from(format == Format::Dense(DType::BF16)))]
}

const OPERANDS: &[OperandDef] = &[
    OperandDef {
        file: "operand/f32x4.wgsl",
        accepts: is_f32,
        vector: 4,
        loads: &[Load::Fours, Load::Words],
        element_bytes: 16,
        ..OperandDef::DEFAULT
    },
    OperandDef {
        file: "operand/f32.wgsl",
        accepts: is_f32,
        vector: 1,
        loads: &[Load::Elements, Load::Packing],
        element_bytes: 4,
        ..OperandDef::DEFAULT
    },
    OperandDef {
        file: "operand/halfx8.wgsl",
        accepts: is_half,
        vector: 8,
        loads: &[Load::Eights],
        element_bytes: 16,
        constants: half_constants,
        ..OperandDef::DEFAULT
    },
    OperandDef {
        file: "operand/halfx4.wgsl",
        accepts: is_half,
        vector: 4,
        loads: &[Load::Fours],
        element_bytes: 8,
        constants: half_constants,
        ..OperandDef::DEFAULT
    },
    OperandDef {
        file: "operand/f16.wgsl",
        accepts: is_native_f16,
        vector: 1,
        loads: &[Load::Elements],
        element_bytes: 2,
        f16: true,
        ..OperandDef::DEFAULT
    },
    OperandDef {
        file: "operand/f16x8.wgsl",
        accepts: is_native_f16,
        vector: 8,
        loads: &[Load::Words],
        element_bytes: 16,
        ..OperandDef::DEFAULT
    },
    OperandDef {
        file: "operand/half.wgsl",
        accepts: is_half,
        vector: 1,
        loads: &[Load::Elements, Load::Packing],
        element_bytes: 4,
        constants: half_constants,
        ..OperandDef::DEFAULT
    },
    affine(38.0, |f, _| is(f, "affine", &[("X_BITS", 3)])),
    affine(50.0, |f, _| is(f, "affine", &[("X_BITS", 5)])),
    affine(50.0, |f, _| is(f, "affine", &[("X_BITS", 6)])),
    affine(DECODE, |format, _| format.is_of("affine")),
    fours("operand/mx.wgsl", [50.0, 45.0], |format, _| format.is_of("mx")),
    fours("operand/gguf.wgsl", [40.0, 30.0], |format, _| format.is_of("gguf")),
    fours("operand/k45.wgsl", [40.0, 95.0], |format, _| format.is_of("k45")),
    fours("operand/q2_k.wgsl", [40.0, 50.0], |format, _| format.is_of("q2_k")),
    fours("operand/q3_k.wgsl", [50.0, 50.0], |format, _| format.is_of("q3_k")),
    fours("operand/q6_k.wgsl", [55.0, 50.0], |format, _| format.is_of("q6_k")),
    fours("operand/iq4_xs.wgsl", [60.0, 50.0], |format, _| format.is_of("iq4_xs")),
    fours("operand/scaled.wgsl", [55.0, 45.0], |format, _| format.is_of("scaled")),
    bytes("operand/affine_bytes.wgsl", [18.0, 10.0], |f, _| is(f, "affine", &[("X_BITS", 4)])),
    bytes("operand/affine_bytes.wgsl", [26.0, 16.5], |f, _| is(f, "affine", &[("X_BITS", 8)])),
    words(4, bytes("operand/affine_bits_bytes.wgsl", [26.0, 16.0], |f, _| f.is_of("affine"))),
    bytes("operand/gguf_bytes.wgsl", [18.0, 10.0], |f, _| {
        is(f, "gguf", &[("X_BITS", 4), ("X_TABLE", 0)])
    }),
    bytes("operand/gguf_bytes.wgsl", [44.0, 17.0], |f, _| is(f, "gguf", &[("X_TABLE", 3)])),
    bytes("operand/gguf_bytes.wgsl", [26.0, 16.5], |f, _| is(f, "gguf", &[("X_BITS", 8)])),
    words(
        4,
        bytes("operand/gguf5_bytes.wgsl", [34.0, 20.0], |f, _| is(f, "gguf", &[("X_BITS", 5)])),
    ),
    table("operand/iq4_nl_codes.wgsl", [31.0, 32.0], |f, _| is(f, "gguf", &[("X_TABLE", 2)])),
    words(8, table("operand/iq4_xs_codes.wgsl", [36.0, 32.0], |f, _| f.is_of("iq4_xs"))),
    bytes("operand/k45_bytes.wgsl", [32.0, 38.0], |f, _| is(f, "k45", &[("X_HIGH", 0)])),
    bytes("operand/k45_bytes.wgsl", [44.0, 47.0], |f, _| is(f, "k45", &[("X_HIGH", 1)])),
    words(4, bytes("operand/q2_k_bytes.wgsl", [44.0, 26.0], |f, _| f.is_of("q2_k"))),
    words(4, bytes("operand/q3_k_bytes.wgsl", [39.0, 26.0], |f, _| f.is_of("q3_k"))),
    bytes("operand/q6_k_bytes.wgsl", [39.0, 26.0], |f, _| f.is_of("q6_k")),
    bytes("operand/mx_bytes.wgsl", [38.0, 21.0], |f, _| {
        is(f, "mx", &[("X_BITS", 4), ("X_BLOCK", 32)])
    }),
    bytes("operand/mx_bytes.wgsl", [36.0, 24.0], |f, _| {
        is(f, "mx", &[("X_BITS", 4), ("X_BLOCK", 16)])
    }),
    codes("operand/mxfp8_codes.wgsl", [24.0, 32.0], |f, _| is(f, "mx", &[("X_BITS", 8)])),
    bytes("operand/int8_bytes.wgsl", [26.0, 16.5], |f, _| is(f, "scaled", &[("X_NUMBER", 0)])),
    codes("operand/fp8_codes.wgsl", [24.0, 32.0], |f, _| is(f, "scaled", &[("X_NUMBER", 1)])),
    codes("operand/fp8_codes.wgsl", [18.0, 14.0], |f, _| is(f, "scaled", &[("X_NUMBER", 2)])),
    table("operand/nf4_codes.wgsl", [40.0, 32.0], |f, _| is(f, "scaled", &[("X_BITS", 4)])),
];

/// Whether a format is of a family and has these constants.
fn is(format: Format, family: &str, constants: &[(&str, u32)]) -> bool {
    format.is_of(family)
        && constants.iter().all(|(name, value)| format.constant(name) == Some(*value))
}

/// Operations of decoding a weight, as measured on an H200: 0.3 ps for 4 bits. Those into panels
/// were measured from 128 to 1,024 rows for loaders of bytes, with 16 rows alone for loaders of
/// fours.
const DECODE: f64 = 18.0;

/// A loader of 32 codes at a time, as bytes, and its operations of decoding, in f32 and into
/// panels.
const fn bytes(
    file: &'static str,
    decode: [f64; 2],
    accepts: fn(Format, &Caps) -> bool,
) -> OperandDef {
    OperandDef { loads: &[Load::Codes, Load::Bytes], ..codes(file, decode, accepts) }
}

/// A loader of 32 codes at a time, and its operations of decoding, in f32 and into panels.
const fn codes(
    file: &'static str,
    [decode, decode_to_panel]: [f64; 2],
    accepts: fn(Format, &Caps) -> bool,
) -> OperandDef {
    OperandDef {
        file,
        accepts,
        vector: 32,
        loads: &[Load::Codes],
        along_k: true,
        element_bytes: 16,
        decode,
        decode_to_panel,
        ..OperandDef::DEFAULT
    }
}

/// A loader of 32 codes at a time whose numbers are in a table in workgroup memory.
const fn table(
    file: &'static str,
    decode: [f64; 2],
    accepts: fn(Format, &Caps) -> bool,
) -> OperandDef {
    OperandDef { workgroup_bytes: 16 * 32 * 4, ..codes(file, decode, accepts) }
}

/// Sets the bytes of an element of the array of codes.
const fn words(element_bytes: u64, loader: OperandDef) -> OperandDef {
    OperandDef { element_bytes, ..loader }
}

/// The loader of affine codes, eight at a time or four, and its operations of decoding into panels.
const fn affine(decode_to_panel: f64, accepts: fn(Format, &Caps) -> bool) -> OperandDef {
    OperandDef {
        loads: &[Load::Fours, Load::Eights],
        ..fours("operand/affine.wgsl", [DECODE, decode_to_panel], accepts)
    }
}

/// A loader of four codes at a time, from blocks of eights, and its operations of decoding, in f32
/// and into panels.
const fn fours(
    file: &'static str,
    [decode, decode_to_panel]: [f64; 2],
    accepts: fn(Format, &Caps) -> bool,
) -> OperandDef {
    OperandDef {
        file,
        accepts,
        vector: 8,
        loads: &[Load::Fours],
        element_bytes: 4,
        decode,
        decode_to_panel,
        ..OperandDef::DEFAULT
    }
}

fn stores_f32(dtype: DType, _: &Caps) -> bool {
    dtype == DType::F32
}

fn stores_native_f16(dtype: DType, caps: &Caps) -> bool {
    caps.f16 && dtype == DType::F16
}

fn stores_bf16(dtype: DType, _: &Caps) -> bool {
    dtype == DType::BF16
}

fn stores_half(dtype: DType, _: &Caps) -> bool {
    dtype != DType::F32
}

fn half_store_constants(dtype: DType) -> Vec<Constant> {
    vec![("C_BF16", u32::from(dtype == DType::BF16))]
}

const STORES: &[StoreDef] = &[
    StoreDef {
        file: "epilogue/store_f32x4.wgsl",
        accepts: stores_f32,
        vector: 4,
        whole: true,
        element_bytes: 16,
        ..StoreDef::DEFAULT
    },
    StoreDef {
        file: "epilogue/store_f32.wgsl",
        accepts: stores_f32,
        element_bytes: 4,
        ..StoreDef::DEFAULT
    },
    StoreDef {
        file: "epilogue/store_f16x4.wgsl",
        accepts: stores_native_f16,
        vector: 4,
        whole: true,
        element_bytes: 8,
        f16: true,
        ..StoreDef::DEFAULT
    },
    StoreDef {
        file: "epilogue/store_f16.wgsl",
        accepts: stores_native_f16,
        element_bytes: 2,
        f16: true,
        ..StoreDef::DEFAULT
    },
    StoreDef {
        file: "epilogue/store_bf16x4.wgsl",
        accepts: stores_bf16,
        vector: 4,
        whole: true,
        element_bytes: 8,
        ..StoreDef::DEFAULT
    },
    StoreDef {
        file: "epilogue/store_half.wgsl",
        accepts: stores_half,
        vector: 2,
        words: true,
        element_bytes: 4,
        constants: half_store_constants,
        ..StoreDef::DEFAULT
    },
];

const SCHEDULES: &[ScheduleDef] = &[
    ScheduleDef { serves: |grouping| matches!(grouping, Grouping::Batched), ..BATCHED },
    ScheduleDef {
        bases: Some("schedule/nested.wgsl"),
        serves: |grouping| matches!(grouping, Grouping::Nested { .. }),
        ..BATCHED
    },
    ScheduleDef {
        file: "schedule/table.wgsl",
        extents: Some("schedule/rows_apart.wgsl"),
        serves: |grouping| matches!(grouping, Grouping::Masked { .. }),
        table: Some("mainloop/table_of_rows.wgsl"),
        spares_idle: true,
        strides: true,
        wanted: Some(COUNTED_ROWS),
        returns_early: true,
        ..BATCHED
    },
    ScheduleDef {
        extents: Some(COUNTED_ROWS),
        serves: |grouping| matches!(grouping, Grouping::Masked { .. }),
        wanted: Some(COUNTED_ROWS),
        ..BATCHED
    },
    ScheduleDef {
        extents: Some("schedule/ragged_k.wgsl"),
        powers: RANGES_OF_K,
        serves: |grouping| matches!(grouping, Grouping::RaggedK { groups: ..=WALKED, .. }),
        ..BATCHED
    },
    ScheduleDef {
        extents: Some("schedule/ragged_k_table.wgsl"),
        powers: RANGES_OF_K,
        serves: |grouping| matches!(grouping, Grouping::RaggedK { .. }),
        table: Some("mainloop/table_of_rows.wgsl"),
        ..BATCHED
    },
    ScheduleDef {
        file: "schedule/ragged.wgsl",
        serves: |grouping| matches!(grouping, Grouping::RaggedM { groups: ..=SHARED, .. }),
        lanes: true,
        ..BATCHED
    },
    ScheduleDef {
        file: "schedule/table.wgsl",
        extents: Some("schedule/rows_follow.wgsl"),
        serves: |grouping| matches!(grouping, Grouping::RaggedM { .. }),
        table: Some("mainloop/table_of_rows.wgsl"),
        returns_early: true,
        ..BATCHED
    },
    ScheduleDef {
        file: "schedule/indexed.wgsl",
        serves: |grouping| matches!(grouping, Grouping::Indexed { .. }),
        returns_early: true,
        ..BATCHED
    },
    ScheduleDef {
        extents: Some("schedule/list_known.wgsl"),
        serves: |grouping| grouping.list_sizes().is_some(),
        spares_idle: true,
        ..LISTED
    },
    ScheduleDef {
        extents: Some("schedule/list_table.wgsl"),
        table: Some("mainloop/table_of_list.wgsl"),
        spares_idle: true,
        ..LISTED
    },
    LISTED,
];

const LISTED: ScheduleDef = ScheduleDef {
    file: "schedule/list.wgsl",
    extents: Some("schedule/list_even.wgsl"),
    serves: |grouping| matches!(grouping, Grouping::Listed { .. }),
    ..BATCHED
};

const COUNTED_ROWS: &str = "schedule/masked_rows.wgsl";

/// Ranges of K by walking over the ends: no pass reads the table while it writes other packed
/// memory.
const RANGES_OF_K: &[&str] = &["schedule/ragged_k.wgsl", "mainloop/range_of_k.wgsl"];

const BATCHED: ScheduleDef = ScheduleDef {
    file: "schedule/batched.wgsl",
    extents: None,
    bases: None,
    serves: |_| false,
    lanes: false,
    table: None,
    spares_idle: false,
    strides: false,
    powers: &[],
    wanted: None,
    returns_early: false,
};

/// Ranges of K up to which workgroups walk the ends to their own: a table costs a dispatch.
const WALKED: u64 = 16;

/// Groups up to which the lanes of each workgroup look at all ends.
const SHARED: u64 = 256;
