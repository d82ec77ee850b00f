//! Products by shards: one for each, which computes the rows of its groups.

use super::Gemm;
use super::groups::Groups;
use crate::context::Backend;
use crate::right::{RightOperand, Shards};
use crate::tensor::Tensor;
use std::ops::Range;
use tilewise_core::problem::Grouping;
use tilewise_core::{Axis, Result};

/// The product of one shard.
pub(super) struct Part {
    pub(super) groups: Range<usize>,
    pub(super) gemm: Gemm,
}

impl Gemm {
    /// The products of all shards of B, if it has some, once the whole is found to fit.
    pub(super) fn parts(&self) -> Result<Option<Vec<Part>>> {
        let RightOperand::Shards(shards) = &self.b else { return Ok(None) };
        let (Some((ends, _)), Some(Groups::Rows { along, .. })) = (self.rows(), &self.groups)
        else {
            return Err(shards.refused("B"));
        };
        let (batch, [m, n, _]) = self.sizes()?;
        let (groups, before) = self.groups_of((ends, 0))?;
        if let Some((bias, axis)) = &self.bias {
            self.bias_strides(bias, &batch, if *axis == Axis::N { n } else { m })?;
        }
        let whole = Grouping::RaggedM { groups, first: 0, offset: 0, expected: ends.expected };
        let rows = whole.expected_rows(m as u64).ceil() as u64;
        let mut first = 0;
        let part = |(b, count): &(RightOperand, usize)| {
            let groups = first..first + count;
            first = groups.end;
            let ends = ends.of_shard(before, groups.end, rows)?;
            let rows = Groups::Rows { ends, first: groups.start, along: *along };
            let bias =
                self.bias.as_ref().map(|(bias, axis)| Ok((of(bias, &groups, shards)?, *axis)));
            let bias = bias.transpose()?;
            let gemm = Gemm { b: b.clone(), groups: Some(rows), bias, ..self.clone() };
            Ok(Part { groups, gemm })
        };
        shards.parts().iter().map(part).collect::<Result<_>>().map(Some)
    }

    /// Whether all parts can be computed into `c`: each is planned, and on a GPU compiled.
    pub(super) fn all_possible(parts: &[Part], c: &Tensor) -> Result<()> {
        parts.iter().try_for_each(|Part { gemm, .. }| {
            let matrix = gemm.as_matrix(c);
            let (problem, context) = (gemm.bundle(Some(&matrix))?.problem, gemm.context());
            match &context.0.backend {
                Backend::Gpu(gpu) => context.compile(gpu, &problem, gemm.kernel.as_ref()).map(drop),
                Backend::Cpu => context.plan(&problem, gemm.kernel.as_deref()).map(drop),
            }
        })
    }
}

/// A bias of a shard's groups: its rows, where there is one for each of all.
fn of(bias: &Tensor, groups: &Range<usize>, shards: &Shards) -> Result<Tensor> {
    let [all, ..] = shards.shape();
    match bias.shape().len().checked_sub(2) {
        Some(axis) if bias.shape()[axis] == all => bias.narrow(axis, groups.start, groups.len()),
        _ => Ok(bias.clone()),
    }
}
