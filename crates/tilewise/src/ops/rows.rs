//! How rows are shared out among invocations.

use super::layout::Axes;
use crate::kernel::Call;
use crate::tensor::Tensor;
use tilewise_core::{Caps, Error, Result};

/// Tensors as rows along one axis, which is the last.
pub(super) struct Rows<const N: usize> {
    pub(super) axes: Axes<N>,
    /// How many rows there are.
    pub(super) count: u32,
}

impl<const N: usize> Rows<N> {
    /// The rows along `axis` of tensors that have these strides in this shape.
    pub(super) fn new(operation: &str, mut axes: Axes<N>, axis: usize) -> Result<Self> {
        let (length, strides) = axes.remove(axis);
        let rows = axes
            .shape
            .iter()
            .try_fold(1u32, |rows, &size| rows.checked_mul(u32::try_from(size).ok()?));
        let empty = axes.shape.contains(&0);
        let count = rows.or(empty.then_some(0)).ok_or_else(|| {
            Error::Overflow(format!(
                "{operation}: rows of shape {:?}: kernels count to {}",
                axes.shape,
                u32::MAX
            ))
        })?;
        let mut axes = axes.collapsed();
        axes.push(length, strides);
        Ok(Rows { axes, count })
    }

    /// A tensor as rows; `of` is its place among the strides.
    pub(super) fn view(&self, tensor: &Tensor, of: usize) -> Tensor {
        tensor.laid_out(&self.axes.shape, &self.axes.strides[of])
    }

    /// Elements of a row.
    pub(super) fn length(&self) -> usize {
        self.axes.shape.last().copied().unwrap_or(1)
    }

    /// The call with grid, workgroup and the numbers that every text of rows has: LANES, ROWS and
    /// `rows`.
    pub(super) fn dispatch(&self, call: Call, caps: &Caps) -> Call {
        let Shares { invocations, rows } = Shares::new(self.length(), caps);
        let groups = self.count.div_ceil(rows);
        let x = groups.min(caps.max_workgroups);
        let y = if x == 0 { 0 } else { groups.div_ceil(x) };
        let size = invocations * rows;
        call.constant("LANES", invocations)
            .constant("ROWS", rows)
            .value("rows", self.count)
            .workgroup([size, 1, 1])
            .grid([x * size, y, 1])
    }
}

/// Elements that an invocation should have before another one helps.
const SHARE: usize = 8;

/// Invocations of a workgroup.
const SIZE: u32 = 256;

/// The length from which a row has a workgroup of the largest size.
const LONG: usize = 16 << 10;

/// The invocations of a workgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shares {
    /// Invocations that share a row: a power of two.
    pub(super) invocations: u32,
    /// Rows of a workgroup.
    pub(super) rows: u32,
}

impl Shares {
    /// For rows of this length.
    pub(super) fn new(length: usize, caps: &Caps) -> Self {
        let most = caps.max_invocations.min(caps.max_workgroup_size_x).max(1);
        let most = if length < LONG { most.min(SIZE) } else { most };
        let most = 1 << most.ilog2();
        let helpful = length.div_ceil(SHARE).max(1).next_power_of_two();
        let invocations = u32::try_from(helpful).unwrap_or(most).min(most);
        Shares { invocations, rows: most / invocations }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_rows_share_a_workgroup_and_long_ones_have_the_largest() {
        let caps =
            Caps { max_invocations: 1024, max_workgroup_size_x: 1000, ..Caps::webgpu_default() };
        for (length, invocations, rows) in [
            (0, 1, 256),
            (1, 1, 256),
            (8, 1, 256),
            (9, 2, 128),
            (257, 64, 4),
            (4096, 256, 1),
            (16383, 256, 1),
            (16384, 512, 1),
        ] {
            assert_eq!(Shares::new(length, &caps), Shares { invocations, rows }, "{length}");
        }
        let few = Caps { max_invocations: 100, ..caps };
        assert_eq!(Shares::new(4096, &few), Shares { invocations: 64, rows: 1 });
    }
}
