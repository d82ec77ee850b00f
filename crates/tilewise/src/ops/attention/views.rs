//! The operands of attention as its kernels walk through them.

use super::{Attention, Numbers};
use crate::ops::layout::{Axes, Sizes, broadcast};
use crate::ops::position::Position;
use crate::tensor::Tensor;
use smallvec::smallvec;
use tilewise_core::Result;

/// The tensors as the kernel walks through them. A unit is a head of keys; its rows are the queries
/// that share it, those of one token side by side.
pub(super) struct Views {
    pub(super) q: Tensor,
    pub(super) k: Tensor,
    pub(super) v: Tensor,
    pub(super) mask: Option<Tensor>,
    pub(super) sinks: Option<Tensor>,
    pub(super) position: Option<Tensor>,
    pub(super) out: Tensor,
    pub(super) units: usize,
    /// Rows of a unit.
    pub(super) rows: usize,
}

impl Attention {
    pub(super) fn views(
        &self,
        sizes: &Numbers,
        position: &Position,
        out: &Tensor,
    ) -> Result<Views> {
        let Attention { q, k, v, mask, sinks, .. } = self;
        let rank = q.shape().len();
        let lead = rank.saturating_sub(3);
        let mut scores = Sizes::from(q.shape());
        scores[rank - 1] = sizes.keys;
        let mut one_each = scores.clone();
        one_each[rank - 1] = 1;
        let spread = |other: &Option<Tensor>, shape: &[usize]| {
            let strides = other.as_ref().and_then(|other| broadcast(other, shape));
            strides.unwrap_or_else(|| smallvec![0; rank])
        };
        let of_rows = [
            q.strides().into(),
            spread(mask, &scores),
            spread(sinks, &one_each),
            out.strides().into(),
        ];
        let of_units = [k.strides().into(), v.strides().into(), position.strides("attention", k)?];
        let of_head = |strides: &Sizes| if rank > 2 { strides[lead] } else { 0 };

        let mut units: Sizes = q.shape()[..lead].into();
        units.push(if rank > 2 { k.shape()[lead] } else { 1 });
        let mut rows = Axes {
            shape: units.clone(),
            strides: of_rows.each_ref().map(|strides| {
                let mut own: Sizes = strides[..lead].into();
                own.extend([sizes.heads * of_head(strides), strides[rank - 2], of_head(strides)]);
                own
            }),
        };
        rows.shape.extend([sizes.queries, sizes.heads]);
        let heads = Axes {
            shape: units,
            strides: of_units.each_ref().map(|strides| {
                let mut own: Sizes = strides[..lead].into();
                own.push(of_head(strides));
                own
            }),
        };
        let units = heads.shape.iter().product();
        let (rows, heads) = (rows.collapsed(), heads.collapsed());
        let row = |tensor: &Tensor, of: usize, length: usize| {
            with(tensor, &rows.shape, &rows.strides[of], &[(length, of_rows[of][rank - 1])])
        };
        let unit = |tensor: &Tensor, of: usize, length: usize| {
            let strides = &of_units[of];
            let axes = [(sizes.keys, strides[rank - 2]), (length, strides[rank - 1])];
            with(tensor, &heads.shape, &heads.strides[of], &axes)
        };
        Ok(Views {
            q: row(q, 0, sizes.width),
            mask: mask.as_ref().map(|mask| row(mask, 1, sizes.keys)),
            sinks: sinks.as_ref().map(|sinks| row(sinks, 2, 1)),
            out: row(out, 3, sizes.v_width),
            k: unit(k, 0, sizes.width),
            v: unit(v, 1, sizes.v_width),
            position: position
                .tensor()
                .map(|tensor| with(tensor, &heads.shape, &heads.strides[2], &[(1, 1)])),
            units,
            rows: sizes.queries * sizes.heads,
        })
    }
}

/// A tensor with these axes, and more behind them: their sizes and strides.
fn with(tensor: &Tensor, shape: &[usize], strides: &[usize], more: &[(usize, usize)]) -> Tensor {
    let (mut shape, mut strides) = (Sizes::from(shape), Sizes::from(strides));
    shape.extend(more.iter().map(|axis| axis.0));
    strides.extend(more.iter().map(|axis| axis.1));
    tensor.laid_out(&shape, &strides)
}
