//! Signed bytes, `weight` `[N, K]`, times `weight_scale`: compressed-tensors (`int-quantized`,
//! `naive-quantized`) and others. `weight_zero_point` is subtracted from codes.

use super::affine::{Affine, Numbers};
use super::compressed::{self, Words, Zeros};
use super::grid::Grid;
use super::{Asked, COMFY, Decoder, Layout, Parts, Read, is_plain};
use crate::stream::Sink;
use std::ops::Range;
use tilewise_core::Result;

pub(super) const LAYOUT: Layout = Layout {
    name: "int8",
    needs: &["weight", "weight_scale"],
    may: &[&["weight_zero_point"]],
    notes: COMFY,
    modes: &[],
    bits: &[],
    is: |parts| {
        let codes = parts.get("weight").filter(|codes| codes.kind() == "I8");
        codes.is_some_and(|codes| codes.shape().len() > 1)
    },
    read,
};

#[derive(Debug)]
struct Int8 {
    affine: Affine,
    grid: Grid,
    zeros: Option<Zeros>,
}

fn read(asked: &Asked<'_>) -> Result<Read> {
    is_plain(&asked.parts)?;
    let shape = asked.parts.need("weight")?.shape().to_vec();
    let (grid, scales) = compressed::scales(asked, &shape)?;
    let zeros = Zeros::of(asked, &shape, &grid, Words { bits: 8, is_whole: false })?;
    let k = shape.last().copied().unwrap_or(0);
    let numbers = Numbers { scales, has_zeros: zeros.is_some() };
    asked.agrees(8, grid.columns, k, zeros.is_some())?;
    let affine = Affine::new(asked, 8, k, grid.columns, numbers)?;
    let format = affine.format;
    Ok(Read { format, shape, factor: None, decoder: Box::new(Int8 { affine, grid, zeros }) })
}

impl Decoder for Int8 {
    fn stream(&self, parts: &Parts<'_>, rows: Range<usize>, sink: &mut Sink<'_>) -> Result<()> {
        let (codes, k) = (parts.need("weight")?.bytes, self.affine.k);
        let unsigned = |rows: Range<usize>, out: &mut [u8]| {
            for (to, code) in out.iter_mut().zip(&codes[rows.start * k..rows.end * k]) {
                *to = code ^ 0x80;
            }
        };
        let number = compressed::number(parts, &self.affine, &self.grid, self.zeros.as_ref())?;
        self.affine.stream(rows, sink, unsigned, number)
    }
}
