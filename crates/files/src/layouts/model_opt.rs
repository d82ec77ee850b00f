//! NVIDIA's ModelOpt: nvfp4, whose planes and factor have other names.

use super::{Asked, Decoder, Layout, Part, Parts, Read};
use crate::claims::admit;
use crate::stream::{Sink, plain};
use crate::tensor::matrix;
use std::ops::Range;
use tilewise_core::{QuantFormat, Result};

pub(super) const LAYOUT: Layout = Layout {
    name: "modelopt",
    needs: &["weight", "weight_scale", "weight_scale_2"],
    may: &[],
    modes: &[],
    bits: &[],
    is: |parts| {
        let is = |leaf, kind| parts.get(leaf).is_some_and(|part| part.kind() == kind);
        is("weight", "U8") && is("weight_scale", "F8_E4M3")
    },
    read,
};

#[derive(Debug)]
struct Planes {
    n: usize,
}

fn read(asked: &Asked<'_>) -> Result<Read> {
    let format = QuantFormat::NVFP4;
    admit(asked.expected, format)?;
    let parts = &asked.parts;
    let (codes, scales) = (parts.need("weight")?, parts.need("weight_scale")?);
    let shape = |part: &Part<'_>, per: usize| {
        let (&last, rows) = part.shape().split_last()?;
        let k = last.checked_mul(per)?;
        (!rows.is_empty()).then(|| [rows, &[k]].concat())
    };
    let of_scales = shape(&scales, format.block() as usize);
    let shape = shape(&codes, 2).filter(|shape| of_scales.as_ref() == Some(shape));
    let shape =
        shape.ok_or_else(|| parts.refuse(format!("these are not {format} of one shape")))?;
    let (n, _) = matrix(&shape)?;
    let factor = Some(parts.need("weight_scale_2")?.factor()?);
    Ok(Read { format, shape, factor, decoder: Box::new(Planes { n }) })
}

impl Decoder for Planes {
    fn stream(&self, parts: &Parts<'_>, rows: Range<usize>, sink: &mut Sink<'_>) -> Result<()> {
        for (plane, leaf) in ["weight", "weight_scale"].into_iter().enumerate() {
            let bytes = parts.need(leaf)?.bytes;
            let row = bytes.len() / self.n.max(1);
            plain(plane, &bytes[rows.start * row..rows.end * row], sink)?;
        }
        Ok(())
    }
}
