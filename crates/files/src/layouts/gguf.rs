//! Types of GGUF that have no own format, and the scales that NVFP4 has beside it.
//!
//! `X.scale` multiplies the weights `X.weight`. It has a number for the matrix, or one for each of
//! a stack. `X.input_scale` changes no weights: it is for activations that are quantized.

use super::rows::in_chunks;
use super::{Asked, Decoder, Foreign, Layout, Part, Parts, Read};
use crate::claims::admit;
use crate::gguf::Recoding;
use crate::raw::{Element, Raw, elements};
use crate::stream::Sink;
use crate::tensor::matrix;
use std::ops::Range;
use tilewise_core::{DType, Error, QuantFormat, Result};

/// GGUF's: no other files are searched for it.
static LAYOUT: Layout = Layout {
    name: "gguf",
    needs: &["weight"],
    may: &[&["scale", "weight.scale"]],
    notes: &[],
    modes: &[],
    bits: &[],
    is: |_| true,
    read,
};

/// The matrix that a tensor holds, if its blocks become another format. `find` gives a tensor by
/// its name.
pub(crate) fn find(
    raw: &Raw,
    number: usize,
    find: impl Fn(&str) -> Option<usize>,
) -> Option<Foreign> {
    let Element::Recoded(recoding) = raw.element else { return None };
    let prefix = raw.name.strip_suffix(".weight").unwrap_or(&raw.name);
    let mut tensors = vec![("weight", number)];
    // Some programs add to the whole name.
    let scales = [("scale", prefix), ("weight.scale", &raw.name)].into_iter();
    let scales = scales.filter_map(|(leaf, own)| Some((leaf, find(&format!("{own}.scale"))?)));
    tensors.extend(scales.filter(|_| recoding.is_scaled()));
    // A bare name has one scale.
    tensors.dedup_by_key(|(_, number)| *number);
    Some(Foreign { layout: &LAYOUT, prefix: prefix.to_owned(), tensors, strange: None })
}

/// Blocks in the rows of a stack of matrices.
#[derive(Debug)]
struct Blocks {
    recoding: Recoding,
    format: QuantFormat,
    n: usize,
    k: usize,
    /// The factors of the matrices, if they differ.
    factors: Vec<f32>,
}

fn recoding(part: &Part<'_>) -> Option<Recoding> {
    match part.raw.element {
        Element::Recoded(recoding) => Some(recoding),
        _ => None,
    }
}

fn read(asked: &Asked<'_>) -> Result<Read> {
    let weight = asked.parts.need("weight")?;
    let recoding = recoding(&weight).ok_or_else(|| asked.parts.unread("blocks of another type"))?;
    let shape = weight.shape().to_vec();
    let (n, k) = matrix(&shape)?;
    let stack = shape.len().checked_sub(2).and_then(|dimensions| elements(&shape[..dimensions]));
    let mut factors = match (asked.parts.get("scale"), asked.parts.get("weight.scale")) {
        (Some(_), Some(_)) => return Err(asked.parts.refuse("these are two scales of one matrix")),
        (Some(scale), None) | (None, Some(scale)) => factors(&scale, stack.unwrap_or(1))?,
        (None, None) => Vec::new(),
    };
    let mut format = recoding.format;
    let factor = factors.first().copied();
    if factors.iter().all(|other| Some(*other) == factor) {
        factors.clear();
    } else {
        format = "int8-g16".parse()?;
    }
    admit(asked.expected, format)?;
    let factor = factor.filter(|_| factors.is_empty());
    let decoder = Box::new(Blocks { recoding, format, n, k, factors });
    Ok(Read { format, shape, factor, decoder })
}

/// The factors of a stack of matrices: one for all, or one for each.
fn factors(scale: &Part<'_>, stack: usize) -> Result<Vec<f32>> {
    let count = elements(scale.shape());
    if scale.raw.element != Element::Dense(DType::F32) || count != Some(1) && count != Some(stack) {
        let each = if stack == 1 { String::new() } else { format!(", or {stack} of them") };
        return Err(Error::file(format!("{}; one F32 is expected{each}", scale.raw)));
    }
    let factors: Vec<f32> = (0..scale.bytes.len() / 4).map(|i| scale.number(i)).collect();
    match factors.iter().position(|factor| !factor.is_finite()) {
        Some(i) => Err(scale.bad(4 * i, format!("{} is no factor", factors[i]))),
        None => Ok(factors),
    }
}

impl Decoder for Blocks {
    fn stream(&self, parts: &Parts<'_>, rows: Range<usize>, sink: &mut Sink<'_>) -> Result<()> {
        let bytes = parts.need("weight")?.bytes;
        let row = bytes.len() / self.n.max(1);
        in_chunks(self.format, self.k, rows, sink, |rows, planes| {
            let factors = |block: usize| {
                let row = rows.start + block * self.recoding.elements / self.k;
                self.factors.get(row * self.factors.len() / self.n).copied().unwrap_or(1.0)
            };
            let blocks = &bytes[rows.start * row..rows.end * row];
            self.recoding.decode(self.format, factors, blocks, planes);
        })
    }
}
