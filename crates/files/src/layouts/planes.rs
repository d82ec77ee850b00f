//! Planes of a format of ours under other names: codes of 4 bits, and scales.

use super::{Asked, Decoder, Parts, Read};
use crate::stream::{Sink, plain};
use crate::tensor::matrix;
use std::ops::Range;
use tilewise_core::{QuantFormat, Result};

/// The first two tensors of a layout are the planes.
#[derive(Debug)]
pub(super) struct Planes {
    pub(super) n: usize,
}

/// Checks the shapes.
pub(super) fn read(asked: &Asked<'_>, format: QuantFormat, factor: Option<f32>) -> Result<Read> {
    let block = format.block() as usize;
    let shapes = asked.parts.iter().zip([2, block]).map(|((_, part), per)| {
        let (&last, rows) = part.shape().split_last()?;
        let k = last.checked_mul(per)?;
        (!rows.is_empty()).then(|| [rows, &[k]].concat())
    });
    let shapes = shapes.collect::<Option<Vec<_>>>().filter(|shapes| shapes[0] == shapes[1]);
    let Some(shape) = shapes.and_then(|shapes| shapes.into_iter().next()) else {
        return Err(asked.parts.refuse(format!("these are not {format} of one shape")));
    };
    let k = shape.last().copied().unwrap_or(0);
    asked.agrees(4, block, k, false)?;
    asked.format(4, &[format], k, block)?;
    let (n, _) = matrix(&shape)?;
    Ok(Read { format, shape, factor, decoder: Box::new(Planes { n }) })
}

impl Decoder for Planes {
    fn stream(&self, parts: &Parts<'_>, rows: Range<usize>, sink: &mut Sink<'_>) -> Result<()> {
        for (plane, (_, part)) in parts.iter().take(2).enumerate() {
            let row = part.bytes.len() / self.n.max(1);
            plain(plane, &part.bytes[rows.start * row..rows.end * row], sink)?;
        }
        Ok(())
    }
}
