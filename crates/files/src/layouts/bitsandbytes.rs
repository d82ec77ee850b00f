//! bitsandbytes: nf4 and fp4 in blocks, and int8 by row.
//!
//! - 4 bits: `weight` has all codes of W, one row after the other, the high nibble of a byte first,
//!   in blocks of 64 or more. `weight.absmax` has a scale for each block, `weight.quant_map` the
//!   numbers that codes stand for, and `weight.quant_state.bitsandbytes__nf4` (or `fp4`) the shape
//!   and more in JSON. If scales are quantized, too, a scale is number · nested scale + offset.
//! - 8 bits: `weight` I8 `[N, K]`; `SCB` `[N]` is the largest weight of each row, which code 127
//!   stands for.

use super::affine::{Affine, Numbers};
use super::rows::in_chunks;
use super::{Asked, Decoder, Layout, Part, Parts, Read};
use crate::json::kind;
use crate::raw::elements;
use crate::stream::Sink;
use crate::tensor::matrix;
use serde_json::{Map, Value};
use std::ops::Range;
use tilewise_core::quant::{Quantized, dequantize};
use tilewise_core::{DType, QuantFormat, Result};

const NF4_STATE: &str = "weight.quant_state.bitsandbytes__nf4";
const FP4_STATE: &str = "weight.quant_state.bitsandbytes__fp4";

pub(super) const NF4: Layout = Layout {
    name: "bitsandbytes",
    needs: &["weight", "weight.absmax", "weight.quant_map", NF4_STATE],
    may: &[&["weight.nested_absmax"], &["weight.nested_quant_map"]],
    notes: &[],
    modes: &[],
    bits: &[],
    is: |_| true,
    read: |asked| read(asked, "nf4", NF4_STATE),
};

pub(super) const FP4: Layout = Layout {
    needs: &["weight", "weight.absmax", "weight.quant_map", FP4_STATE],
    read: |asked| read(asked, "fp4", FP4_STATE),
    ..NF4
};

pub(super) const INT8: Layout = Layout {
    needs: &["weight", "SCB"],
    may: &[],
    notes: &["weight_format"],
    is: |parts| parts.get("weight").is_some_and(|codes| codes.kind() == "I8"),
    read: int8,
    ..NF4
};

/// The scales of blocks.
#[derive(Debug)]
struct Scales {
    /// Elements of a block.
    block: usize,
    /// Scales of a nested block, and the offset, if scales are quantized.
    nested: Option<(usize, f32)>,
}

#[derive(Debug)]
struct Blocks {
    format: QuantFormat,
    k: usize,
    scales: Scales,
}

fn read(asked: &Asked<'_>, number: &str, state: &'static str) -> Result<Read> {
    let parts = &asked.parts;
    let state = State::of(parts, state)?;
    if state.map.get("quant_type").and_then(Value::as_str) != Some(number) {
        return Err(state.refuse("quant_type", number));
    }
    let shape = state.shape()?;
    let block = state.count("blocksize")?;
    // The package has these sizes.
    if !block.is_power_of_two() || !(32..=4096).contains(&block) {
        return Err(state.refuse("blocksize", "a power of two from 32 to 4096"));
    }
    let format: QuantFormat = format!("{number}-g64").parse()?;
    table(asked, format)?;
    let ((_, k), count) = (matrix(&shape)?, elements(&shape).unwrap_or(usize::MAX));
    let codes = parts.need("weight")?.bytes.len();
    if codes != count.div_ceil(2) {
        let text = format!("{codes} bytes of codes for the {count} weights of {shape:?}");
        return Err(parts.refuse(text));
    }
    let scales = Scales::of(parts, &state, block, count.div_ceil(block))?;
    asked.format(4, &[format], k, block)?;
    Ok(Read { format, shape, factor: None, decoder: Box::new(Blocks { format, k, scales }) })
}

/// Checks that codes stand for the numbers of the format.
fn table(asked: &Asked<'_>, format: QuantFormat) -> Result<()> {
    let map = asked.parts.need("weight.quant_map")?;
    if map.kind() != "F32" || map.shape() != [16] {
        return Err(asked.parts.refuse("weight.quant_map of F32 [16] is expected"));
    }
    let codes = (0..32).map(|i| (2 * i % 16) | ((2 * i + 1) % 16) << 4).collect();
    let one = Quantized::from_planes(format, 1, 64, vec![codes, 1f32.to_le_bytes().to_vec()])?;
    for (code, own) in dequantize(&one).iter().take(16).enumerate() {
        let number = map.number(code);
        if number != *own {
            let text = format!("weight.quant_map has {number} for code {code}, {format} has {own}");
            return Err(asked.parts.unread(text));
        }
    }
    Ok(())
}

/// The package's entries in JSON.
struct State<'a> {
    parts: &'a Parts<'a>,
    name: &'static str,
    map: Map<String, Value>,
}

impl<'a> State<'a> {
    fn of(parts: &'a Parts<'a>, name: &'static str) -> Result<Self> {
        let part = parts.need(name)?;
        match serde_json::from_slice(part.bytes) {
            Ok(Value::Object(map)) if part.kind() == "U8" => Ok(State { parts, name, map }),
            Ok(other) => {
                let text = format!("{name} in {} is {}", part.kind(), kind(&other));
                Err(parts.refuse(format!("{text}; an object in U8 is expected")))
            }
            Err(why) => Err(parts.refuse(format!("{name} is not JSON: {why}"))),
        }
    }

    fn refuse(&self, key: &str, expected: &str) -> tilewise_core::Error {
        let value = self.map.get(key).unwrap_or(&Value::Null);
        self.parts.refuse(format!("{} says {key} {value}; {expected} is expected", self.name))
    }

    /// A number from 1 on.
    fn count(&self, key: &str) -> Result<usize> {
        let count = self.map.get(key).and_then(Value::as_u64).filter(|count| *count > 0);
        let count = count.and_then(|count| usize::try_from(count).ok());
        count.ok_or_else(|| self.refuse(key, "a whole number from 1 on"))
    }

    fn shape(&self) -> Result<Vec<usize>> {
        let extent = |value: &Value| usize::try_from(value.as_u64()?).ok();
        let shape = self.map.get("shape").and_then(Value::as_array);
        let shape = shape.and_then(|shape| shape.iter().map(extent).collect::<Option<Vec<_>>>());
        let is_matrix = |shape: &Vec<usize>| shape.len() > 1 && elements(shape).is_some();
        shape.filter(is_matrix).ok_or_else(|| self.refuse("shape", "[N, K]"))
    }
}

impl Scales {
    /// Checks the scales of this number of blocks.
    fn of(parts: &Parts<'_>, state: &State<'_>, block: usize, blocks: usize) -> Result<Self> {
        let holds = |leaf: &str, kind: &str, count: usize| {
            let part = parts.need(leaf)?;
            if part.kind() == kind && elements(part.shape()) == Some(count) {
                return Ok(());
            }
            Err(parts.refuse(format!("{leaf} of {kind} [{count}] is expected")))
        };
        let is_nested = state.map.contains_key("nested_blocksize");
        if is_nested != parts.get("weight.nested_absmax").is_some() {
            let says = if is_nested { "there are" } else { "there are no" };
            return Err(parts.refuse(format!("{} says that {says} nested scales", state.name)));
        }
        if !is_nested {
            holds("weight.absmax", "F32", blocks)?;
            return Ok(Scales { block, nested: None });
        }
        let nested = state.count("nested_blocksize")?;
        let offset = state.map.get("nested_offset").and_then(Value::as_f64);
        let offset = offset.ok_or_else(|| state.refuse("nested_offset", "a number"))?;
        holds("weight.absmax", "U8", blocks)?;
        holds("weight.nested_quant_map", "F32", 256)?;
        holds("weight.nested_absmax", "F32", blocks.div_ceil(nested))?;
        Ok(Scales { block, nested: Some((nested, offset as f32)) })
    }

    /// The scale of the block of an element.
    fn reader<'a>(&'a self, parts: &Parts<'a>) -> Result<impl Fn(usize) -> f32 + 'a> {
        let absmax = parts.need("weight.absmax")?;
        let nested = match self.nested {
            Some((block, offset)) => {
                let map = parts.need("weight.nested_quant_map")?;
                Some((map, parts.need("weight.nested_absmax")?, block, offset))
            }
            None => None,
        };
        Ok(move |element: usize| {
            let at = element / self.block;
            match nested {
                Some((map, scales, block, offset)) => {
                    map.number(usize::from(absmax.bytes[at])) * scales.number(at / block) + offset
                }
                None => absmax.number(at),
            }
        })
    }
}

impl Decoder for Blocks {
    fn stream(&self, parts: &Parts<'_>, rows: Range<usize>, sink: &mut Sink<'_>) -> Result<()> {
        let (k, block) = (self.k, self.format.block() as usize);
        let codes = parts.need("weight")?.bytes;
        let scale = self.scales.reader(parts)?;
        in_chunks(self.format, k, rows, sink, |rows, planes| {
            let [to_codes, to_scales] = planes else { return };
            for (to, code) in to_codes.iter_mut().zip(&codes[rows.start * k / 2..]) {
                *to = code.rotate_left(4);
            }
            // Blocks of the file begin where blocks of 64 do.
            for (i, to) in to_scales.chunks_exact_mut(4).enumerate() {
                to.copy_from_slice(&scale(rows.start * k + i * block).to_le_bytes());
            }
        })
    }
}

#[derive(Debug)]
struct Int8(Affine);

fn int8(asked: &Asked<'_>) -> Result<Read> {
    let parts = &asked.parts;
    let (codes, scales) = (parts.need("weight")?, parts.need("SCB")?);
    let is_of_rows = |part: Part<'_>| part.kind() == "I8" && part.shape().len() > 1;
    let (n, k) = matrix(codes.shape())?;
    if !is_of_rows(codes) || scales.kind() != "F32" || elements(scales.shape()) != Some(n) {
        return Err(parts.refuse("weight of I8 [N, K] and SCB of F32 [N] are expected"));
    }
    // Others are tiled for matrix units.
    if let Some(format) = parts.get("weight_format").filter(|format| format.bytes != [0]) {
        let text = format!("weight_format is {:?}, and only 0, by row, is read", format.bytes);
        return Err(parts.unread(text));
    }
    let numbers = Numbers { scales: DType::F32, has_zeros: false };
    let affine = Affine::new(asked, 8, k, k, numbers)?;
    let (format, shape) = (affine.format, codes.shape().to_vec());
    Ok(Read { format, shape, factor: None, decoder: Box::new(Int8(affine)) })
}

impl Decoder for Int8 {
    fn stream(&self, parts: &Parts<'_>, rows: Range<usize>, sink: &mut Sink<'_>) -> Result<()> {
        let (codes, scales, k) = (parts.need("weight")?.bytes, parts.need("SCB")?, self.0.k);
        let unsigned = |rows: Range<usize>, out: &mut [u8]| {
            for (to, code) in out.iter_mut().zip(&codes[rows.start * k..]) {
                *to = code ^ 0x80;
            }
        };
        self.0.stream(rows, sink, unsigned, |row, _| (scales.number(row) / 127.0, 128))
    }
}
