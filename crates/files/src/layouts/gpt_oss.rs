//! GPT-OSS as published: mxfp4 in stacks, one matrix for each expert. Codes are `X_blocks`, U8 `[E,
//! N, K / 32, 16]`, and scales `X_scales`, U8 `[E, N, K / 32]`.
//!
//! In `gate_up_proj` the rows of gate and up alternate. They stay where they are.

use super::planes::Planes;
use super::{Asked, Layout, Read};
use crate::tensor::matrix;
use tilewise_core::{QuantFormat, Result};

pub(super) const LAYOUT: Layout = Layout {
    name: "gpt-oss",
    needs: &["_blocks", "_scales"],
    may: &[],
    notes: &[],
    modes: &[],
    bits: &[],
    is: |parts| {
        let is_bytes = |leaf| parts.get(leaf).is_some_and(|part| part.kind() == "U8");
        let last = parts.get("_blocks").and_then(|blocks| blocks.shape().last().copied());
        is_bytes("_blocks") && is_bytes("_scales") && last == Some(16)
    },
    read,
};

fn read(asked: &Asked<'_>) -> Result<Read> {
    let (parts, format) = (&asked.parts, QuantFormat::MXFP4);
    let (blocks, scales) = (parts.need("_blocks")?, parts.need("_scales")?);
    let shape = match blocks.shape() {
        [rows @ .., count, 16]
            if !rows.is_empty() && scales.shape() == [rows, &[*count]].concat() =>
        {
            count.checked_mul(32).map(|k| [rows, &[k]].concat())
        }
        _ => None,
    };
    let shape = shape.ok_or_else(|| {
        parts.refuse("blocks [.., N, K / 32, 16] and scales [.., N, K / 32] are expected")
    })?;
    let (n, k) = matrix(&shape)?;
    asked.format(4, &[format], k, 32)?;
    Ok(Read { format, shape, factor: None, decoder: Box::new(Planes { n }) })
}
