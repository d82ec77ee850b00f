//! Products in parts: one part for each shard, or for each large group. It computes the rows, or
//! the entries, of its groups.

use super::Gemm;
use super::groups::Groups;
use crate::context::Backend;
use crate::offsets::GroupOffsets;
use crate::right::{RightOperand, Shards};
use crate::tensor::Tensor;
use std::borrow::Cow;
use std::ops::Range;
use tilewise_core::problem::Grouping;
use tilewise_core::{Axis, Error, Result};

/// The product of one shard, or of one large group.
pub(super) struct Part {
    pub(super) groups: Range<usize>,
    /// The rows of a group that is a dense product.
    pub(super) rows: Option<Range<usize>>,
    pub(super) gemm: Gemm,
}

impl Part {
    /// The part of an output that this part writes: in a masked product the entries of its groups,
    /// for a large group its rows; otherwise the whole output.
    pub(super) fn output<'c>(&self, c: &'c Tensor) -> Result<Cow<'c, Tensor>> {
        if let (Some(rows), Some(axis)) = (&self.rows, c.shape().len().checked_sub(2)) {
            return c.narrow(axis, rows.start, rows.len()).map(Cow::Owned);
        }
        match (&self.gemm.groups, c.shape().len().checked_sub(self.gemm.rank_of_entry() + 1)) {
            (Some(Groups::Masked { .. }), Some(axis)) => {
                c.narrow(axis, self.groups.start, self.groups.len()).map(Cow::Owned)
            }
            _ => Ok(Cow::Borrowed(c)),
        }
    }
}

impl Gemm {
    /// The products of all shards of B, or of few large groups, once the whole is found to fit.
    /// `None` if the product is not in parts.
    pub(super) fn parts(&self) -> Result<Option<Vec<Part>>> {
        let shards = match &self.b {
            RightOperand::Shards(shards) => shards,
            RightOperand::Dense(b) => return self.by_groups(b),
            RightOperand::Quantized(_) => return Ok(None),
        };
        match &self.groups {
            Some(Groups::Rows { ends, along, .. }) => self.parts_by_rows(shards, ends, *along),
            Some(Groups::Masked { counts, expected }) => {
                self.parts_by_entries(shards, counts, *expected)
            }
            _ => Err(shards.refused("B")),
        }
        .map(Some)
    }

    /// The parts of a grouped product: each computes some rows of the whole output.
    fn parts_by_rows(
        &self,
        shards: &Shards,
        ends: &GroupOffsets,
        along: Axis,
    ) -> Result<Vec<Part>> {
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
            Ok(Part { groups, rows: None, gemm })
        };
        ranges(shards).map(part).collect()
    }

    /// The parts of a masked product: each computes some entries of the output.
    fn parts_by_entries(
        &self,
        shards: &Shards,
        counts: &Tensor,
        expected: Option<u64>,
    ) -> Result<Vec<Part>> {
        let ((batch, _), [all, ..]) = (self.sizes()?, shards.shape());
        if batch.sizes() != [1, all] {
            let entries = if all == 1 { "entry" } else { "entries" };
            return Err(Error::Shape(format!(
                "B in shards has {all} {entries}, the product a batch of {batch}"
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
            Ok(Part { groups, rows: None, gemm })
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
    fn rank_of_entry(&self) -> usize {
        2 - usize::from(self.vectors[0])
    }

    /// Computes all parts into `c` by `run`, after each is planned, and on a GPU compiled: if one
    /// part is impossible, none runs.
    pub(super) fn by_parts(
        &self,
        parts: &[Part],
        c: &Tensor,
        mut run: impl FnMut(&Gemm, &Tensor) -> Result<()>,
    ) -> Result<()> {
        self.is_whole(c)?;
        let outputs = parts.iter().map(|part| part.output(c)).collect::<Result<Vec<_>>>()?;
        for (Part { gemm, .. }, c) in parts.iter().zip(&outputs) {
            let matrix = gemm.as_matrix(c);
            let (problem, context) = (gemm.bundle(Some(&matrix))?.problem, gemm.context());
            match &context.0.backend {
                Backend::Gpu(gpu) => context.compile(gpu, &problem, gemm.kernel.as_ref()).map(drop),
                Backend::Cpu => context.plan(&problem, gemm.kernel.as_deref()).map(drop),
            }?;
        }
        parts.iter().zip(&outputs).try_for_each(|(part, c)| run(&part.gemm, c))
    }

    /// Checks that `c` has all entries of a masked product, or all rows of large groups, and lies
    /// apart from the operands of all parts. A part checks its own operands alone.
    fn is_whole(&self, c: &Tensor) -> Result<()> {
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
