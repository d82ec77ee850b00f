//! Products in parts: one part for each shard, or for each large group. It computes the rows, or
//! the entries, of its groups.

use super::Gemm;
use super::groups::Groups;
use super::lower::{Step, Steps};
use crate::context::parts::Title;
use crate::gemm::ends::GroupEnds;
use crate::right::{RightOperand, Shards};
use crate::tensor::Tensor;
use std::ops::Range;
use tilewise_core::problem::Grouping;
use tilewise_core::{Axis, Error, Result};

impl Gemm {
    /// The products of all shards of B.
    pub(super) fn by_shards<'s>(&self, shards: &Shards) -> Result<Steps<'s>> {
        match &self.groups {
            Some(Groups::Rows { ends, along, .. }) => self.parts_by_rows(shards, ends, *along),
            Some(Groups::Masked { counts, expected }) => {
                self.parts_by_entries(shards, counts, *expected)
            }
            _ => Err(shards.refused("B")),
        }
    }

    /// The parts of a grouped product: each computes some rows of the whole output.
    fn parts_by_rows<'s>(
        &self,
        shards: &Shards,
        ends: &GroupEnds,
        along: Axis,
    ) -> Result<Steps<'s>> {
        let (batch, [m, n, _]) = self.sizes()?;
        let (groups, before) = self.groups_of((ends, 0))?;
        if let Some((bias, axis)) = &self.bias {
            self.bias_strides(bias, &batch, if *axis == Axis::N { n } else { m })?;
        }
        let whole = Grouping::RaggedM { groups, first: 0, offset: 0, expected: ends.expected };
        let rows = whole.expected_rows(m as u64).ceil() as u64;
        let part = |(b, groups): (&RightOperand, Range<usize>)| {
            let ends = ends.of_shard(before, groups.end, rows)?;
            let rows = Groups::Rows { ends, first: groups.start, along };
            let gemm = Gemm {
                b: b.clone(),
                groups: Some(rows),
                bias: self.bias_of(&groups, shards)?,
                ..self.clone()
            };
            Ok(Step::made(gemm, Title::Shard(groups)))
        };
        ranges(shards).map(part).collect()
    }

    /// The parts of a masked product: each computes some entries of the output.
    fn parts_by_entries<'s>(
        &self,
        shards: &Shards,
        counts: &Tensor,
        expected: Option<u64>,
    ) -> Result<Steps<'s>> {
        let ((batch, _), [all, ..]) = (self.sizes()?, shards.shape());
        if batch.sizes() != [1, all] {
            let entries = if all == 1 { "entry" } else { "entries" };
            return Err(Error::Shape(format!(
                "B in shards has {all} {entries}, but the product has a batch of {batch}"
            )));
        }
        let part = |(b, groups): (&RightOperand, Range<usize>)| {
            let residual = self.residual.as_ref();
            let gemm = Gemm {
                a: of(&self.a, 2, &groups, all)?,
                b: b.clone(),
                groups: Some(Groups::Masked {
                    counts: counts.narrow(0, groups.start, groups.len())?,
                    expected,
                }),
                bias: self.bias_of(&groups, shards)?,
                residual: residual.map(|own| of(own, 2, &groups, all)).transpose()?,
                ..self.clone()
            };
            Ok(Step::made(gemm, Title::Shard(groups)))
        };
        ranges(shards).map(part).collect()
    }

    /// The bias of a shard's groups: their rows of the bias, if it has one for each group.
    fn bias_of(&self, groups: &Range<usize>, shards: &Shards) -> Result<Option<(Tensor, Axis)>> {
        let Some((bias, axis)) = &self.bias else { return Ok(None) };
        let [all, ..] = shards.shape();
        Ok(Some((of(bias, 1, groups, all)?, *axis)))
    }

    /// The number of dimensions of an entry of the output.
    pub(super) fn rank_of_entry(&self) -> usize {
        2 - usize::from(self.vectors[0])
    }

    /// Checks that `c` has all entries of a masked product, or all rows of large groups, and lies
    /// apart from the operands of all parts. A part checks its own operands alone.
    pub(super) fn is_whole(&self, c: &Tensor) -> Result<()> {
        let shards = match (&self.groups, &self.b) {
            (Some(Groups::Masked { .. }), RightOperand::Shards(shards)) => shards,
            (_, RightOperand::Shards(_)) => return Ok(()),
            _ => {
                let whole = self.bundle(Some(&self.as_matrix(c)))?.problem;
                return tilewise_core::plan::check(&whole).map(|_| ());
            }
        };
        let ([all, ..], rank) = (shards.shape(), self.rank_of_entry());
        let entries = c.shape().len().checked_sub(rank + 1).map(|axis| c.shape()[axis]);
        if entries != Some(all) {
            let shape = c.shape();
            return Err(Error::Shape(format!(
                "C has shape {shape:?}, the product a batch of {all}"
            )));
        }
        let residual = if self.gate.is_some() { "gate" } else { "residual" };
        let own = [
            ("A", Some(&self.a)),
            ("bias", self.bias.as_ref().map(|(bias, _)| bias)),
            (residual, self.residual.as_ref()),
        ];
        let own = own.into_iter().filter_map(|(name, tensor)| Some((name, tensor?)));
        for (name, tensor) in own {
            c.lies_beside(name, tensor.vector([0; 4]).1, Some(tensor))?;
        }
        self.b.lies_beside("B", c)
    }
}

/// Shards with their groups.
fn ranges(shards: &Shards) -> impl Iterator<Item = (&RightOperand, Range<usize>)> {
    shards.parts().iter().scan(0, |end, (b, count)| {
        *end += count;
        Some((b, *end - count..*end))
    })
}

/// The entries of some groups, if the operand has an entry for each of `all` groups; otherwise the
/// whole operand. An entry has `own` dimensions.
pub(super) fn of(
    operand: &Tensor,
    own: usize,
    groups: &Range<usize>,
    all: usize,
) -> Result<Tensor> {
    match operand.shape().len().checked_sub(own + 1) {
        Some(axis) if operand.shape()[axis] == all => {
            operand.narrow(axis, groups.start, groups.len())
        }
        _ => Ok(operand.clone()),
    }
}
