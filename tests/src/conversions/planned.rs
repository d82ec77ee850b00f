//! Cases with their plans, for the sanitizer.

use super::{Data, Quantizing, Source, Taking, quantizing, taking};
use crate::sanitized::Conversion;
use tilewise_core::{Caps, DType, Format, QuantFormat};

/// Cases with their plans for a device, with one format of each kind. Cases that a device with
/// small bindings cuts are among them.
///
/// # Errors
/// The planner's errors.
pub fn planned(caps: &Caps) -> tilewise_core::Result<Vec<Conversion>> {
    let taking = taking().into_iter().map(|case| Conversion::taking(&case, caps));
    let kinds = QuantFormat::kinds();
    // The formats with the longest blocks are wanted, too.
    let is_wanted =
        |format: &QuantFormat| kinds.contains(format) || format.planes()[0].bytes >= 128;
    let quantizing = quantizing().into_iter().filter(|case| is_wanted(&case.format));
    let quantizing = quantizing.map(|case| Conversion::quantizing(&case, caps));
    taking.chain(quantizing).chain(pieces()).collect()
}

/// Cases that a device with small bindings cuts.
pub fn pieces() -> Vec<tilewise_core::Result<Conversion>> {
    let caps = Caps { max_binding_bytes: 4096, storage_alignment: 32, ..Caps::webgpu_default() };
    let affine = Format::Quantized(QuantFormat::affine(8, 32, DType::F16).expect("it exists"));
    let f16 = Format::Dense(DType::F16);
    let rows: Vec<u32> = (0..61).map(|i| i * 29 % 67).collect();
    let taking = [
        Taking::new(Source::new(affine, [3, 66, 96], Data::Weights), DType::BF16).lead(5),
        Taking::new(Source::new(affine, [1, 66, 96], Data::Weights), DType::F32).rows(&rows),
        Taking::new(Source::new(f16, [3, 65, 67], Data::Bits), DType::F16).rows(&rows).lead(1),
        // The rows are whole blocks of 16 bytes.
        Taking::new(Source::new(f16, [3, 65, 72], Data::Bits), DType::F16).rows(&rows).lead(8),
        Taking::new(Source::new(f16, [1, 65, 67], Data::Bits), DType::F16)
            .rows(&rows)
            .columns(&rows),
    ];
    let quantizing = [
        Quantizing {
            weights: Source::new(f16, [2, 256, 32], Data::Weights),
            format: QuantFormat::MXFP4,
        },
        Quantizing {
            weights: Source::new(f16, [1, 600, 32], Data::Weights),
            format: QuantFormat::MXFP4,
        },
    ];
    let quantizing_caps = Caps { max_binding_bytes: 16 << 10, ..caps.clone() };
    let taking = taking.iter().map(|case| Conversion::taking(case, &caps));
    taking
        .chain(quantizing.iter().map(|case| Conversion::quantizing(case, &quantizing_caps)))
        .collect()
}
