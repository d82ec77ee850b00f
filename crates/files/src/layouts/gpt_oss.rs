//! GPT-OSS as published: mxfp4 in stacks, one matrix for each expert. Codes are `X_blocks`, U8 `[E,
//! N, K / 32, 16]`, and scales `X_scales`, U8 `[E, N, K / 32]`. In OpenAI's own files they are
//! `X.blocks` and `X.scales`.
//!
//! In `gate_up_proj`, `mlp1_weight` there, the rows of gate and up alternate. They stay where they
//! are.

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
        let is_bytes = parts.iter().all(|(_, part)| part.kind() == "U8");
        is_bytes && parts.iter().next().is_some_and(|(_, blocks)| blocks.shape().ends_with(&[16]))
    },
    read,
};

pub(super) const ORIGINAL: Layout = Layout { needs: &["blocks", "scales"], ..LAYOUT };

fn read(asked: &Asked<'_>) -> Result<Read> {
    let (parts, format) = (&asked.parts, QuantFormat::MXFP4);
    let mut shapes = parts.iter().map(|(_, part)| part.raw.shape.as_slice());
    let shape = match shapes.next().unwrap_or_default() {
        [rows @ .., count, 16]
            if !rows.is_empty() && shapes.next() == Some(&[rows, &[*count]].concat()) =>
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
