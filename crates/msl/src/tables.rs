//! What MSL mainloops are composed with: operand loaders, output stores, schedules, one row each;
//! and the library of both languages.

use crate::mainloops;
use tilewise_core::kernel::{Constant, KernelDef, Kit, Language, Library, Load, OperandDef, ScheduleDef, StoreDef};
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

const OPERANDS: &[OperandDef] = &[
    vectors("operand/f32.metal", is_f32, 4),
    elements("operand/f32.metal", is_f32, 4),
    vectors("operand/f16.metal", is_f16, 2),
    elements("operand/f16.metal", is_f16, 2),
    vectors("operand/bf16.metal", is_bf16, 2),
    elements("operand/bf16.metal", is_bf16, 2),
    OperandDef {
        file: "operand/affine4.metal",
        accepts: is_affine4,
        vector: 64,
        loads: &[Load::Elements, Load::Eights],
        element_bytes: 4,
        constants: affine_constants,
        ..OperandDef::DEFAULT
    },
];

/// A loader of 16 bytes at a time.
const fn vectors(file: &'static str, accepts: fn(Format, &Caps) -> bool, bytes: u64) -> OperandDef {
    OperandDef { vector: 16 / bytes, constants: wide, ..elements(file, accepts, bytes) }
}

/// A loader of elements one by one.
const fn elements(file: &'static str, accepts: fn(Format, &Caps) -> bool, bytes: u64) -> OperandDef {
    OperandDef {
        file,
        accepts,
        loads: &[Load::Elements, Load::Eights],
        element_bytes: bytes,
        constants: narrow,
        ..OperandDef::DEFAULT
    }
}

const STORES: &[StoreDef] = &[
    store("epilogue/store_f32.metal", |dtype, _| matches!(dtype, DType::F32), 4),
    store("epilogue/store_f16.metal", |dtype, _| matches!(dtype, DType::F16), 2),
    store("epilogue/store_bf16.metal", |dtype, _| matches!(dtype, DType::BF16), 2),
];

/// A store of elements one by one.
const fn store(file: &'static str, accepts: fn(DType, &Caps) -> bool, bytes: u64) -> StoreDef {
    StoreDef { file, accepts, words: true, element_bytes: bytes, ..StoreDef::DEFAULT }
}

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
