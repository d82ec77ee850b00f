//! Parts of MSL mainloops: operand loaders, output stores, schedules, one row each.

use crate::files::FILES;
use tilewise_core::kernel::{Constant, Kit, Language, Load, OperandDef, ScheduleDef, StoreDef};
use tilewise_core::quant::{Plane, Stored};
use tilewise_core::{Caps, DType, Format, Grouping};
use tilewise_shaders::Sources;

/// The part files of the other three axes that have alternatives or constants.
pub static KIT: Kit = Kit {
    language: Language::Msl,
    lanes: None,
    operands: OPERANDS,
    stores: STORES,
    schedules: SCHEDULES,
    table: None,
    axes: "operand/axes.metal",
    gathered: None,
    absent: "operand/absent.metal",
    linear: "epilogue/linear.metal",
    added: "epilogue/added.metal",
    gated: "epilogue/gated.metal",
    paired: None,
    activation: "epilogue/activation.metal",
    partial: "epilogue/partial.metal",
    k_splits: "epilogue/k_splits.metal",
    finish: "mainloop/finish.metal",
    finish_tile: [8, 32],
    by_words: None,
    residual_pass: None,
    pack: None,
};

/// The files, as the linker takes them.
pub static SOURCES: Sources = Sources { files: FILES, first: Some("header.metal") };

fn is_f32(format: Format, _: &Caps) -> bool {
    format == Format::Dense(DType::F32)
}

fn is_f16(format: Format, _: &Caps) -> bool {
    format == Format::Dense(DType::F16)
}

fn is_bf16(format: Format, caps: &Caps) -> bool {
    format == Format::Dense(DType::BF16) && has_bf16(caps)
}

fn is_affine(format: Format, caps: &Caps) -> bool {
    let in_bf16 = |plane: &Plane| matches!(plane.of, Stored::Numbers(DType::BF16));
    format.is_of("affine") && (has_bf16(caps) || !format.planes().iter().any(in_bf16))
}

/// Whether Metal's language has bf16, as it does from 3.1 on. If the version is not known, it is
/// tried: the compiler will say.
fn has_bf16(caps: &Caps) -> bool {
    caps.msl_version.is_none_or(|version| version >= 310)
}

fn wide(format: Format) -> Vec<Constant> {
    vec![("X_WIDTH", 16 / format.planes()[0].bytes as u32)]
}

fn narrow(_: Format) -> Vec<Constant> {
    vec![("X_WIDTH", 1)]
}

const OPERANDS: &[OperandDef] = &[
    vectors("operand/f32.metal", is_f32, 4),
    elements("operand/f32.metal", is_f32, 4),
    vectors("operand/f16.metal", is_f16, 2),
    elements("operand/f16.metal", is_f16, 2),
    vectors("operand/bf16.metal", is_bf16, 2),
    elements("operand/bf16.metal", is_bf16, 2),
    OperandDef {
        file: "operand/affine.metal",
        accepts: |format, caps| {
            is_affine(format, caps) && matches!(format.constant("X_BITS"), Some(4 | 8))
        },
        vector: 16,
        along_k: true,
        loads: &[Load::Elements, Load::Eights],
        element_bytes: 4,
        ..OperandDef::DEFAULT
    },
    coded("operand/codes.metal", is_affine),
    coded("operand/mx.metal", |format, _| format.is_of("mx")),
    coded("operand/gguf.metal", |format, _| format.is_of("gguf")),
    coded("operand/k45.metal", |format, _| format.is_of("k45")),
    coded("operand/q2_k.metal", |format, _| format.is_of("q2_k")),
    coded("operand/q3_k.metal", |format, _| format.is_of("q3_k")),
    coded("operand/q6_k.metal", |format, _| format.is_of("q6_k")),
];

/// A loader of 16 bytes at a time.
const fn vectors(file: &'static str, accepts: fn(Format, &Caps) -> bool, bytes: u64) -> OperandDef {
    OperandDef { vector: 16 / bytes, constants: wide, ..elements(file, accepts, bytes) }
}

/// A loader of elements one by one.
const fn elements(
    file: &'static str,
    accepts: fn(Format, &Caps) -> bool,
    bytes: u64,
) -> OperandDef {
    OperandDef {
        file,
        accepts,
        loads: &[Load::Elements, Load::Eights],
        element_bytes: bytes,
        constants: narrow,
        ..OperandDef::DEFAULT
    }
}

/// A loader of codes, eight at a time.
const fn coded(file: &'static str, accepts: fn(Format, &Caps) -> bool) -> OperandDef {
    OperandDef {
        file,
        accepts,
        vector: 8,
        loads: &[Load::Elements, Load::Eights],
        ..OperandDef::DEFAULT
    }
}

const STORES: &[StoreDef] = &[
    store("epilogue/store_f32.metal", |dtype, _| matches!(dtype, DType::F32), 4),
    store("epilogue/store_f16.metal", |dtype, _| matches!(dtype, DType::F16), 2),
    store(
        "epilogue/store_bf16.metal",
        |dtype, caps| matches!(dtype, DType::BF16) && has_bf16(caps),
        2,
    ),
];

/// A store of elements one by one.
const fn store(file: &'static str, accepts: fn(DType, &Caps) -> bool, bytes: u64) -> StoreDef {
    StoreDef { file, accepts, words: true, element_bytes: bytes, ..StoreDef::DEFAULT }
}

const SCHEDULES: &[ScheduleDef] = &[
    schedule("schedule/batched.metal", |grouping| matches!(grouping, Grouping::Batched)),
    schedule("schedule/ragged.metal", |grouping| matches!(grouping, Grouping::RaggedM { .. })),
    schedule("schedule/indexed.metal", |grouping| matches!(grouping, Grouping::Indexed { .. })),
    schedule("schedule/ragged_k.metal", |grouping| matches!(grouping, Grouping::RaggedK { .. })),
];

const fn schedule(file: &'static str, serves: fn(Grouping) -> bool) -> ScheduleDef {
    ScheduleDef {
        file,
        extents: None,
        bases: None,
        serves,
        lanes: false,
        table: None,
        spares_idle: false,
        strides: false,
        powers: &[],
        wanted: None,
        returns_early: false,
    }
}
