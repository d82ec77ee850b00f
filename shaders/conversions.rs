//! What WGSL converts, takes and quantizes elements with; one row for each family of formats that
//! weights are quantized to.

use crate::tables::KIT;
use tilewise_core::QuantFormat;
use tilewise_core::kernel::{Constant, Conversions, EncoderDef};
use tilewise_core::quant::Stored;

/// The files of conversions.
pub const CONVERSIONS: Conversions = Conversions {
    kit: &KIT,
    float: "convert/float.wgsl",
    exact: "operand/exact.wgsl",
    decoded: "operand/decoded.wgsl",
    index: "operand/index.wgsl",
    every: "operand/every.wgsl",
    put: "convert/put.wgsl",
    take: "mainloop/take.wgsl",
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

const ENCODERS: &[EncoderDef] = &[
    EncoderDef {
        file: "convert/affine.wgsl",
        family: "affine",
        numbers: &[1, 2],
        codes: 0,
        constants: affine_constants,
    },
    EncoderDef { file: "convert/mxfp4.wgsl", family: "mxfp4", numbers: &[1], codes: 0, constants: |_| Vec::new() },
];
