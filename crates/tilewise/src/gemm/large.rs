//! Few large groups: a dense product for each, one after the other.

use super::Gemm;
use super::groups::Groups;
use super::shards::{Part, of};
use crate::tensor::Tensor;
use std::ops::Range;
use tilewise_core::{Axis, DType, Result};

/// So many groups with rows, at most, are a loop of dense products, if C has so many elements of
/// each, or more. The loop took 0.97 to 1.00 of the time of one grouped product, in f16 with A
/// stored along K and B along N. It was slower with other layouts, and with smaller groups, which
/// do not fill the cores by themselves (benches/record/NOTES.md).
const FEW: usize = 4;
const LARGE: usize = 1 << 24;

impl Gemm {
    /// A dense product for each group that has rows, if these groups are few and large and the host
    /// knows their ends. Otherwise one product takes all groups, and this is `None`.
    ///
    /// # Errors
    /// As [`run`](Self::run), for the operands.
    pub(super) fn by_groups(&self, b: &Tensor) -> Result<Option<Vec<Part>>> {
        let Some(large) = self.large_groups(b) else { return Ok(None) };
        self.bundle(None)?;
        let parts = large.into_iter().map(|(group, rows)| self.of_group(b, group, rows));
        parts.collect::<Result<_>>().map(Some)
    }

    /// The groups with rows, and their rows.
    fn large_groups(&self, b: &Tensor) -> Option<Vec<(usize, Range<usize>)>> {
        let Some(Groups::Rows { ends, first: 0, along: Axis::M }) = &self.groups else {
            return None;
        };
        let is_plain = self.rows.is_none() && self.kernel.is_none() && b.own_copy().is_none();
        let in_rows =
            |tensor: &Tensor| tensor.dtype() == DType::F16 && tensor.strides().last() == Some(&1);
        if !is_plain || !in_rows(&self.a) || !in_rows(b) {
            return None;
        }
        // There is an end for each group, and there may be the start of the first.
        let ends = ends.ends.as_deref()?;
        let ends = &ends[ends.len().checked_sub(groups_of(b))?..];
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let rows = starts.zip(ends).map(|(start, &end)| start as usize..end as usize);
        let large: Vec<_> = rows.enumerate().filter(|(_, rows)| !rows.is_empty()).collect();
        let is_few = (1..=FEW).contains(&large.len());
        let columns = b.shape().last()?;
        let is_large = |rows: &Range<usize>| rows.len().saturating_mul(*columns) >= LARGE;
        (is_few && large.iter().all(|(_, rows)| is_large(rows))).then_some(large)
    }

    /// The dense product of a group.
    fn of_group(&self, b: &Tensor, group: usize, rows: Range<usize>) -> Result<Part> {
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
        Ok(Part { groups, rows: Some(rows), gemm })
    }
}

impl Part {
    /// The explanation of a large group's product.
    pub(super) fn explain(&self) -> Result<String> {
        let rows = self.rows.clone().unwrap_or_default();
        Ok(format!(
            "group {}, rows {} to {}: few large groups are dense products, one after the other\n{}",
            self.groups.start,
            rows.start,
            rows.end,
            self.gemm.explain()?
        ))
    }
}

/// Groups of a stack B.
fn groups_of(b: &Tensor) -> usize {
    b.batch(2)[1].0
}
