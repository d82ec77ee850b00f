//! What MSL mainloops are composed with: operand loaders, output stores, schedules, one line each; and the library of both languages.

use crate::mainloops;
use tilewise_core::kernel::{Constant, KernelDef, Kit, Language, Library, OperandDef, ScheduleDef, StoreDef};
use tilewise_core::quant::QuantFormat;
use tilewise_core::{Caps, DType, Format, Grouping, Problem};

/// Every kernel in MSL.
pub const KERNELS: &[KernelDef] = mainloops::KERNELS;

/// Every kernel in MSL and in WGSL, for devices that take both.
pub const LIBRARY: Library = Library { kernels: &BOTH };

static BOTH: [KernelDef; KERNELS.len() + tilewise_shaders::LIBRARY.kernels.len()] = {
    let mut both = [KERNELS[0]; KERNELS.len() + tilewise_shaders::LIBRARY.kernels.len()];
    let mut at = 0;
    while at < both.len() {
        both[at] = if at < KERNELS.len() { KERNELS[at] } else { tilewise_shaders::LIBRARY.kernels[at - KERNELS.len()] };
        at += 1;
    }
    both
};

/// Every part of the other three axes.
pub static KIT: Kit = Kit {
    language: Language::Msl,
    operands: OPERANDS,
    stores: STORES,
    schedules: SCHEDULES,
    common: &["header.metal", "schedule/tile.metal", "operand/dense.metal"],
    single: None,
    axes: "operand/axes.metal",
    lines: "operand/lines.metal",
    block: None,
    pair: None,
    absent: "operand/absent.metal",
    direct: "epilogue/direct.metal",
    linear: "epilogue/linear.metal",
    activation: "epilogue/activation.metal",
    partial: "epilogue/partial.metal",
    parts: "epilogue/parts.metal",
    finish: "mainloop/finish.metal",
    finish_tile: [8, 32],
    finish_words: None,
    finish_threads: 0,
    pack: None,
    pack_tile: [0; 2],
};

fn is_f32(format: Format, _: &Caps) -> bool {
    format == Format::Dense(DType::F32)
}

fn is_f16(format: Format, _: &Caps) -> bool {
    format == Format::Dense(DType::F16)
}

fn is_bf16(format: Format, _: &Caps) -> bool {
    format == Format::Dense(DType::BF16)
}

fn is_affine4(format: Format, _: &Caps) -> bool {
    matches!(format, Format::Quantized(QuantFormat::AFFINE4_G64, _))
}

fn wide(format: Format) -> Vec<Constant> {
    vec![("X_WIDTH", 16 / format.dtype().bytes() as u32)]
}

fn narrow(_: Format) -> Vec<Constant> {
    vec![("X_WIDTH", 1)]
}

fn affine_constants(format: Format) -> Vec<Constant> {
    let number = match format.dtype() {
        DType::F16 => 1,
        DType::BF16 => 2,
        _ => 0,
    };
    vec![("X_SCALE_TYPE", number)]
}

#[rustfmt::skip]
const OPERANDS: &[OperandDef] = &[
    OperandDef { file: "operand/f32.metal", accepts: is_f32, vector: 4, elements: true, words: false, eights: true, constants: wide, element_bytes: 4, f16: false },
    OperandDef { file: "operand/f32.metal", accepts: is_f32, vector: 1, elements: true, words: false, eights: true, constants: narrow, element_bytes: 4, f16: false },
    OperandDef { file: "operand/f16.metal", accepts: is_f16, vector: 8, elements: true, words: false, eights: true, constants: wide, element_bytes: 2, f16: false },
    OperandDef { file: "operand/f16.metal", accepts: is_f16, vector: 1, elements: true, words: false, eights: true, constants: narrow, element_bytes: 2, f16: false },
    OperandDef { file: "operand/bf16.metal", accepts: is_bf16, vector: 8, elements: true, words: false, eights: true, constants: wide, element_bytes: 2, f16: false },
    OperandDef { file: "operand/bf16.metal", accepts: is_bf16, vector: 1, elements: true, words: false, eights: true, constants: narrow, element_bytes: 2, f16: false },
    OperandDef { file: "operand/affine4.metal", accepts: is_affine4, vector: 64, elements: true, words: false, eights: true, constants: affine_constants, element_bytes: 4, f16: false },
];

fn no_store_constants(_: DType) -> Vec<Constant> {
    Vec::new()
}

#[rustfmt::skip]
const STORES: &[StoreDef] = &[
    StoreDef { file: "epilogue/store_f32.metal", accepts: |dtype, _| matches!(dtype, DType::F32), vector: 1, whole: false, words: true, constants: no_store_constants, element_bytes: 4, f16: false },
    StoreDef { file: "epilogue/store_f16.metal", accepts: |dtype, _| matches!(dtype, DType::F16), vector: 1, whole: false, words: true, constants: no_store_constants, element_bytes: 2, f16: false },
    StoreDef { file: "epilogue/store_bf16.metal", accepts: |dtype, _| matches!(dtype, DType::BF16), vector: 1, whole: false, words: true, constants: no_store_constants, element_bytes: 2, f16: false },
];

const SCHEDULES: &[ScheduleDef] = &[
    ScheduleDef {
        file: "schedule/batched.metal",
        accepts: |problem| matches!(problem.grouping, Grouping::Batched),
        tiles_m: |problem, bm| problem.m.div_ceil(bm),
        aligned_rows: true,
        offsets: false,
    },
    ScheduleDef {
        file: "schedule/ragged.metal",
        accepts: |problem| matches!(problem.grouping, Grouping::RaggedM { .. }),
        // Each group may end in a tile that is not full.
        tiles_m: |problem: &Problem, bm| problem.m.div_ceil(bm) + problem.entries(),
        aligned_rows: false,
        offsets: true,
    },
];
