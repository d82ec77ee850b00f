//! Few large groups: a dense product for each, one after the other.

use super::Gemm;
use super::groups::Groups;
use super::lower::{Step, Steps};
use super::shards::of;
use crate::context::parts::Title;
use crate::tensor::Tensor;
use std::ops::Range;
use tilewise_core::plan::by_groups;
use tilewise_core::{Axis, Result};

impl Gemm {
    /// A dense product for each group that has rows, if the host knows these rows and the planner
    /// wants the groups apart ([`by_groups`]). Otherwise one product takes all groups, and this is
    /// `None`.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run), for the operands.
    pub(super) fn by_groups<'s>(&self, b: &Tensor) -> Result<Option<Steps<'s>>> {
        let (None, Some(rows)) = (&self.kernel, self.known_rows(b)) else { return Ok(None) };
        let counts = rows.clone().map(|(_, rows)| rows.len() as u64);
        if !by_groups(&self.bundle(None)?.problem, counts) {
            return Ok(None);
        }
        let parts = rows.map(|(group, rows)| self.of_group(b, group, rows));
        parts.collect::<Result<_>>().map(Some)
    }

    /// Each group that has rows, and its rows. `None` if groups are not of rows of A, or the host
    /// does not know them.
    fn known_rows(
        &self,
        b: &Tensor,
    ) -> Option<impl Iterator<Item = (usize, Range<usize>)> + Clone + use<'_>> {
        let Some(Groups::Rows { ends, along: Axis::M, .. }) = &self.groups else { return None };
        let ends = ends.ends.as_deref()?;
        // There is an end for each group. The start of the first group may come before them.
        let ends = &ends[ends.len().checked_sub(groups_of(b))?..];
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let rows = starts.zip(ends).map(|(start, &end)| start as usize..end as usize);
        Some(rows.enumerate().filter(|(_, rows)| !rows.is_empty()))
    }

    /// The dense product of a group.
    fn of_group<'s>(&self, b: &Tensor, group: usize, rows: Range<usize>) -> Result<Step<'s>> {
        let (groups, all) = (group..group + 1, groups_of(b));
        let own_rows = |tensor: &Tensor, axis| tensor.narrow(axis, rows.start, rows.len());
        let bias = self.bias.as_ref().map(|(bias, axis)| {
            let own = of(bias, 1, &groups, all)?;
            let last = own.shape().len() - 1;
            Ok((if *axis == Axis::M { own_rows(&own, last)? } else { own }, *axis))
        });
        let residual = self.residual.as_ref();
        let gemm = Gemm {
            a: own_rows(&self.a, 0)?,
            b: of(b, 2, &groups, all)?.into(),
            groups: None,
            c: None,
            bias: bias.transpose()?,
            residual: residual.map(|own| own_rows(own, own.shape().len() - 2)).transpose()?,
            out_dtype: Some(self.output_dtype()),
            ..self.clone()
        };
        Ok(Step::made(gemm, Title::Group(group, rows)))
    }
}

/// Groups of a stack B.
fn groups_of(b: &Tensor) -> usize {
    b.batch(2)[1].0
}
