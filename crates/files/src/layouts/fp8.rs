//! Weights of 8-bit floats: e4m3 or e5m2, `weight` `[N, K]`, times scales. The scales of all
//! programs multiply, whatever they are called: `weight_scale_inv` is DeepSeek's, `weight_scale` is
//! that of compressed-tensors, ModelOpt and FBGEMM, `scale_weight` is ComfyUI's, `qscale_weight`
//! Mistral's. Weights without any are read under a scale of 1, if no config says that they are
//! quantized.
//!
//! Scales of e8m0 by 32 columns make mxfp8.

use super::grid::Grid;
use super::rows::in_chunks;
use super::{Asked, COMFY, Decoder, Layout, Part, Parts, Read, is_plain, is_scale};
use crate::stream::{Sink, plain};
use std::ops::Range;
use tilewise_core::{QuantFormat, Result};

/// `weight`, and what may scale it.
pub(super) const LAYOUT: Layout = Layout {
    name: "fp8",
    needs: &["weight"],
    may: &[&["weight_scale_inv", "weight_scale", "scale", "scale_weight", "qscale_weight"]],
    notes: COMFY,
    modes: &[],
    bits: &[],
    is,
    read,
};

/// Experts, whose tensors have special names: `experts.down_proj`.
pub(super) const EXPERTS: Layout =
    Layout { needs: &[""], may: &[&["_scale_inv", "_scale"]], ..LAYOUT };

#[derive(Debug)]
struct Fp8 {
    format: QuantFormat,
    k: usize,
    codes: &'static str,
    scales: Option<(&'static str, Grid)>,
}

fn is(parts: &Parts<'_>) -> bool {
    let Some((_, codes)) = parts.iter().next() else { return false };
    let is_block = codes.shape().last().is_some_and(|k| k.is_multiple_of(32));
    let leaf = codes.raw.name.rsplit('.').next().unwrap_or_default();
    let is_matrix = codes.shape().len() > 1 && !is_scale(leaf);
    is_matrix && number(codes.kind()).is_some() && (is_block || parts.iter().len() > 1)
}

/// The name of the numbers in formats of ours.
fn number(kind: &str) -> Option<&'static str> {
    match kind {
        "F8_E4M3" => Some("e4m3"),
        "F8_E5M2" => Some("e5m2"),
        _ => None,
    }
}

fn read(asked: &Asked<'_>) -> Result<Read> {
    let parts = &asked.parts;
    is_plain(parts)?;
    let mut tensors = parts.iter().filter(|(leaf, _)| *leaf != COMFY[0]);
    let (Some((leaf, codes)), scales, None) = (tensors.next(), tensors.next(), tensors.next())
    else {
        return Err(parts.refuse("these are several scales of one matrix"));
    };
    let shape = codes.shape().to_vec();
    let k = shape.last().copied().unwrap_or(0);
    let number = number(codes.kind()).unwrap_or_default();
    let grid = scales.map(|(leaf, scales)| {
        if !scales.is_scale() {
            return Err(parts.unread(format!("scales in {} are not read", scales.kind())));
        }
        Ok((leaf, asked.grid(&shape, &scales)?, scales))
    });
    let grid = grid.transpose()?;
    if let (None, Some(said)) = (&grid, asked.said) {
        let others = parts.opened.others();
        return Err(parts.contradiction(format!("{said}, but no scales are there{others}")));
    }
    let group = grid.as_ref().map_or(k, |(_, grid, _)| grid.columns);
    asked.agrees(8, group, k, false)?;
    let mut formats = Vec::new();
    let blocks = [&shape[..shape.len() - 1], &[k / 32]].concat();
    if let Some((.., scales)) = &grid
        && number == "e4m3"
        && !scales.is_float()
        && scales.shape() == blocks
    {
        formats.push(QuantFormat::MXFP8);
    }
    let of = |block| format!("fp8-{number}-g{block}").parse::<QuantFormat>();
    formats.extend([128, 32].into_iter().flat_map(of));
    let format = asked.format(8, &formats, k, group)?;
    let scales = grid.map(|(leaf, grid, _)| (leaf, grid));
    let decoder = Box::new(Fp8 { format, k, codes: leaf, scales });
    Ok(Read { format, shape, factor: None, decoder })
}

impl Decoder for Fp8 {
    fn stream(&self, parts: &Parts<'_>, rows: Range<usize>, sink: &mut Sink<'_>) -> Result<()> {
        let (k, block) = (self.k, self.format.block() as usize);
        let codes = parts.need(self.codes)?.bytes;
        let scales = match &self.scales {
            Some((leaf, grid)) => Some((parts.need(leaf)?, grid)),
            None => None,
        };
        if let Some((scales, _)) = scales.filter(|_| self.format == QuantFormat::MXFP8) {
            plain(0, &codes[rows.start * k..rows.end * k], sink)?;
            let row = k / block;
            return plain(1, &scales.bytes[rows.start * row..rows.end * row], sink);
        }
        let scale = |(row, column)| {
            scales
                .map_or(1.0, |(scales, grid): (Part<'_>, &Grid)| scales.scale(grid.at(row, column)))
        };
        in_chunks(self.format, k, rows, sink, |rows, planes| {
            let [to_codes, to_scales] = planes else { return };
            to_codes.copy_from_slice(&codes[rows.start * k..rows.end * k]);
            let blocks = rows.flat_map(|row| (0..k / block).map(move |j| (row, j * block)));
            for (to, at) in to_scales.chunks_exact_mut(4).zip(blocks) {
                to.copy_from_slice(&scale(at).to_le_bytes());
            }
        })
    }
}
