//! What WGSL mainloops are composed with: operand loaders, output stores, schedules, one line each. Mainloops have a file of their own.

use crate::mainloops::KERNELS;
use tilewise_core::kernel::{Constant, Kit, Language, Library, OperandDef, ScheduleDef, StoreDef};
use tilewise_core::quant::QuantFormat;
use tilewise_core::{Caps, DType, Format, Grouping, Problem};

/// Every kernel in WGSL.
pub const LIBRARY: Library = Library { kernels: KERNELS };

/// Every part of the other three axes.
pub static KIT: Kit = Kit {
    language: Language::Wgsl,
    operands: OPERANDS,
    stores: STORES,
    schedules: SCHEDULES,
    common: &["params.wgsl", "schedule/tile.wgsl", "operand/widen.wgsl"],
    single: Some("operand/single.wgsl"),
    axes: "operand/axes.wgsl",
    lines: "operand/lines.wgsl",
    block: Some("operand/block.wgsl"),
    pair: Some("operand/pair.wgsl"),
    absent: "operand/absent.wgsl",
    direct: "epilogue/direct.wgsl",
    linear: "epilogue/linear.wgsl",
    activation: "epilogue/activation.wgsl",
    partial: "epilogue/partial.wgsl",
    parts: "epilogue/parts.wgsl",
    finish: "mainloop/finish.wgsl",
    finish_tile: [8, 32],
    finish_words: Some("mainloop/finish_words.wgsl"),
    finish_threads: 64,
    pack: Some("mainloop/pack.wgsl"),
    pack_tile: [8, 32],
};

fn is_f32(format: Format, _: &Caps) -> bool {
    format == Format::Dense(DType::F32)
}

fn is_native_f16(format: Format, caps: &Caps) -> bool {
    caps.f16 && format == Format::Dense(DType::F16)
}

fn is_half(format: Format, _: &Caps) -> bool {
    matches!(format, Format::Dense(DType::F16 | DType::BF16))
}

fn is_affine4(format: Format, _: &Caps) -> bool {
    matches!(format, Format::Quantized(QuantFormat::AFFINE4_G64, _))
}

fn no_constants(_: Format) -> Vec<Constant> {
    Vec::new()
}

fn half_constants(format: Format) -> Vec<Constant> {
    vec![("X_BF16", u32::from(format.dtype() == DType::BF16))]
}

fn affine_constants(format: Format) -> Vec<Constant> {
    let scales = format.dtype();
    vec![("X_SCALE_HALF", u32::from(scales != DType::F32)), ("X_SCALE_BF16", u32::from(scales == DType::BF16))]
}

#[rustfmt::skip]
const OPERANDS: &[OperandDef] = &[
    OperandDef { file: "operand/f32x4.wgsl", accepts: is_f32, vector: 4, elements: true, words: true, eights: false, constants: no_constants, element_bytes: 16, f16: false },
    OperandDef { file: "operand/f32.wgsl", accepts: is_f32, vector: 1, elements: true, words: true, eights: false, constants: no_constants, element_bytes: 4, f16: false },
    OperandDef { file: "operand/halfx8.wgsl", accepts: is_half, vector: 8, elements: false, words: false, eights: true, constants: half_constants, element_bytes: 16, f16: false },
    OperandDef { file: "operand/halfx4.wgsl", accepts: is_half, vector: 4, elements: true, words: false, eights: false, constants: half_constants, element_bytes: 8, f16: false },
    OperandDef { file: "operand/f16.wgsl", accepts: is_native_f16, vector: 1, elements: true, words: false, eights: false, constants: no_constants, element_bytes: 2, f16: true },
    OperandDef { file: "operand/f16x8.wgsl", accepts: is_native_f16, vector: 8, elements: false, words: true, eights: false, constants: no_constants, element_bytes: 16, f16: false },
    OperandDef { file: "operand/half.wgsl", accepts: is_half, vector: 1, elements: true, words: true, eights: false, constants: half_constants, element_bytes: 4, f16: false },
    OperandDef { file: "operand/affine4.wgsl", accepts: is_affine4, vector: 64, elements: true, words: false, eights: true, constants: affine_constants, element_bytes: 4, f16: false },
];

fn stores_f32(dtype: DType, _: &Caps) -> bool {
    dtype == DType::F32
}

fn stores_native_f16(dtype: DType, caps: &Caps) -> bool {
    caps.f16 && dtype == DType::F16
}

fn stores_half(dtype: DType, _: &Caps) -> bool {
    dtype != DType::F32
}

fn no_store_constants(_: DType) -> Vec<Constant> {
    Vec::new()
}

fn half_store_constants(dtype: DType) -> Vec<Constant> {
    vec![("C_BF16", u32::from(dtype == DType::BF16))]
}

#[rustfmt::skip]
const STORES: &[StoreDef] = &[
    StoreDef { file: "epilogue/store_f32x4.wgsl", accepts: stores_f32, vector: 4, whole: true, words: false, constants: no_store_constants, element_bytes: 16, f16: false },
    StoreDef { file: "epilogue/store_f32.wgsl", accepts: stores_f32, vector: 1, whole: false, words: false, constants: no_store_constants, element_bytes: 4, f16: false },
    StoreDef { file: "epilogue/store_f16x4.wgsl", accepts: stores_native_f16, vector: 4, whole: true, words: false, constants: no_store_constants, element_bytes: 8, f16: true },
    StoreDef { file: "epilogue/store_f16.wgsl", accepts: stores_native_f16, vector: 1, whole: false, words: false, constants: no_store_constants, element_bytes: 2, f16: true },
    StoreDef { file: "epilogue/store_half.wgsl", accepts: stores_half, vector: 2, whole: false, words: true, constants: half_store_constants, element_bytes: 4, f16: false },
];

const SCHEDULES: &[ScheduleDef] = &[
    ScheduleDef {
        file: "schedule/batched.wgsl",
        accepts: |problem| problem.grouping == Grouping::Batched,
        tiles_m: |problem, bm| problem.m.div_ceil(bm),
        aligned_rows: true,
        offsets: false,
    },
    ScheduleDef {
        file: "schedule/ragged.wgsl",
        accepts: |problem| matches!(problem.grouping, Grouping::RaggedM { .. }),
        // Each group may end in a tile that is not full.
        tiles_m: |problem: &Problem, bm| problem.m.div_ceil(bm) + problem.entries(),
        aligned_rows: false,
        offsets: true,
    },
];
