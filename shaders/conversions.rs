//! Shaders that convert, take and quantize elements; one row for each family of formats that
//! weights are quantized to.

use crate::tables::KIT;
use tilewise_core::QuantFormat;
use tilewise_core::kernel::{Constant, Conversions, EncoderDef};
use tilewise_core::quant::Stored;

/// The files of conversions.
pub const CONVERSIONS: Conversions = Conversions {
    kit: &KIT,
    exact: "operand/exact.wgsl",
    decoded: "operand/decoded.wgsl",
    index: "operand/index.wgsl",
    put: "convert/put.wgsl",
    take: "mainloop/take.wgsl",
    take_rows: "mainloop/take_rows.wgsl",
    quantize: "mainloop/quantize.wgsl",
    encoders: ENCODERS,
};

/// The type of an affine format's scales and biases.
fn affine_constants(format: QuantFormat) -> Vec<Constant> {
    let number = match format.planes()[1].of {
        Stored::Numbers(dtype) => dtype.number(),
        Stored::Bytes | Stored::Words => 0,
    };
    vec![("NUMBER", number)]
}

/// The type of a microscaling format's scales.
fn mx_constants(format: QuantFormat) -> Vec<Constant> {
    let value = |name| {
        format
            .def()
            .constants
            .iter()
            .find(|(known, _)| *known == name)
            .map_or(0, |(_, value)| *value)
    };
    vec![("E4M3_SCALE", value("X_E4M3_SCALE"))]
}

const ENCODERS: &[EncoderDef] = &[
    EncoderDef {
        file: "convert/affine.wgsl",
        serves: |format| format.def().family == "affine",
        numbers: &[1, 2],
        codes: 0,
        constants: affine_constants,
    },
    EncoderDef {
        file: "convert/mx.wgsl",
        serves: |format| format.def().family == "mx",
        numbers: &[1],
        codes: 0,
        constants: mx_constants,
    },
    EncoderDef {
        file: "convert/q8_0.wgsl",
        serves: |format| format == QuantFormat::Q8_0,
        numbers: &[0],
        codes: 1,
        constants: |_| Vec::new(),
    },
];
