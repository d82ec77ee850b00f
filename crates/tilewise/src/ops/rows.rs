//! Sharing rows out among invocations.

pub(super) mod append;
pub(super) mod norm;
pub(super) mod reduce;
pub(super) mod rope;
pub(super) mod softmax;

use super::layout::{Axes, Sizes};
use crate::kernel::Call;
use crate::tensor::Tensor;
use tilewise_core::{Caps, Error, Result};

/// Tensors laid out as rows along their last axis.
pub(super) struct Rows<const N: usize> {
    pub(super) axes: Axes<N>,
    /// How many rows there are.
    pub(super) count: u32,
}

impl<const N: usize> Rows<N> {
    /// The rows along `axis` of tensors with these axes.
    pub(super) fn new(operation: &str, mut axes: Axes<N>, axis: usize) -> Result<Self> {
        let (length, strides) = axes.remove(axis);
        let rows = axes
            .shape
            .iter()
            .try_fold(1u32, |rows, &size| rows.checked_mul(u32::try_from(size).ok()?));
        let empty = axes.shape.contains(&0);
        let count = rows.or(empty.then_some(0)).ok_or_else(|| {
            Error::Shape(format!(
                "overflow: {operation}: rows of shape {:?}: kernels count to {}",
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

    /// Like [`view`](Self::view), with rows of another length.
    pub(super) fn view_of(&self, tensor: &Tensor, of: usize, length: usize) -> Tensor {
        let mut shape = self.axes.shape.clone();
        shape.pop();
        shape.push(length);
        tensor.laid_out(&shape, &self.axes.strides[of])
    }

    /// Elements of a row.
    pub(super) fn length(&self) -> usize {
        self.axes.shape.last().copied().unwrap_or(1)
    }

    /// Adds to a call its grid, its workgroup, and the numbers that every text of rows has: SIZE,
    /// ACROSS, `lanes` and `rows`. The constants LANES and ROWS are beside them.
    pub(super) fn dispatch(&self, call: Call, caps: &Caps) -> Call {
        self.dispatch_of(call, self.length(), caps)
    }

    /// Like [`dispatch`](Self::dispatch), with an invocation for each element of short rows, and
    /// with four invocations for a row at least.
    pub(super) fn dispatch_each(&self, call: Call, caps: &Caps) -> Call {
        self.dispatch_of(call, self.length().max(4) * SHARE, caps)
    }

    /// Like [`dispatch`](Self::dispatch), for rows of this length.
    fn dispatch_of(&self, call: Call, length: usize, caps: &Caps) -> Call {
        let shares = Shares::new(length, caps);
        let call = call.constant("LANES", shares.invocations).constant("ROWS", shares.rows);
        self.shared(call, shares, false, self.count, caps)
    }

    /// Adds to a call its grid, its workgroup, and SIZE, ACROSS, `lanes` and `rows`. Invocations
    /// share `units` rows or segments of rows.
    fn shared(&self, call: Call, shares: Shares, across: bool, units: u32, caps: &Caps) -> Call {
        let Shares { invocations, rows } = shares;
        let call = call
            .constant("ACROSS", across)
            .constant("SIZE", invocations * rows)
            .value("lanes", invocations)
            .value("rows", self.count);
        dispatch(call, units.div_ceil(rows), invocations * rows, caps)
    }

    /// Like [`dispatch`](Self::dispatch), for invocations that keep their elements if these are
    /// few. Adds KEPT, whether they do, and TURNS, the number of blocks at once, in place of LANES
    /// and ROWS: one text serves all rows of up to 2048 elements.
    pub(super) fn dispatch_kept(&self, call: Call, caps: &Caps) -> Call {
        let shares = Shares::new(self.length(), caps);
        let turns = self.turns(shares.invocations as usize);
        let kept = turns <= MAX_KEPT;
        let turns = if kept { turns } else { UNKEPT } as u32;
        let call = call.constant("KEPT", kept).constant("TURNS", turns);
        self.shared(call, shares, false, self.count, caps)
    }

    /// Blocks of a row for each of `lanes` invocations, rounded up to a power of two: at least as
    /// many as an invocation has of [`SHARE`] elements, which saves texts.
    fn turns(&self, lanes: usize) -> usize {
        self.length().div_ceil(BLOCK * lanes).max(SHARE / BLOCK).next_power_of_two()
    }

    /// Whether neighbouring invocations should have neighbouring rows, because the first tensor is
    /// read faster then.
    fn across(&self) -> bool {
        let strides = &self.axes.strides[0];
        let last = strides.len() - 1;
        strides[last] != 1 && last > 0 && strides[last - 1] == 1
    }

    /// How rows are shared out. If there are few rows, they are cut into segments, at most `limit`,
    /// to give work to [`ENOUGH`] workgroups, none of which is large.
    pub(super) fn in_segments(&self, limit: usize, caps: &Caps) -> Shared {
        let shares = Shares::new(self.length().min(LONG - 1), caps);
        let across = self.across();
        let shares = if across { shares.across() } else { shares };
        let Shares { invocations, rows } = shares;
        let most = self.length() / (invocations as usize * 4 * BLOCK);
        let wanted = ENOUGH / self.count.div_ceil(rows).max(1) as usize;
        let span = |segments: usize| {
            self.length().div_ceil(segments.max(1)).next_multiple_of(BLOCK).max(1)
        };
        let segments = self.length().div_ceil(span(wanted.min(most).min(limit))).max(1);
        let turns = self.turns(invocations as usize).min(UNKEPT) as u32;
        Shared { shares, across, turns, span: span(segments), segments }
    }

    /// Like [`dispatch_kept`](Self::dispatch_kept), for rows in segments. Adds TURNS, `span` and
    /// `units`. `Shape` for more segments than kernels count.
    pub(super) fn dispatch_segments(
        &self,
        operation: &str,
        call: Call,
        shared: &Shared,
        caps: &Caps,
    ) -> Result<Call> {
        let Shared { shares, across, turns, span, .. } = *shared;
        let segments = self.length().div_ceil(span).max(1);
        let units = u32::try_from(segments).ok().and_then(|all| self.count.checked_mul(all));
        let units = units.ok_or_else(|| {
            Error::Shape(format!(
                "overflow: {operation}: {} rows of {segments} segments: kernels count to {}",
                self.count,
                u32::MAX
            ))
        })?;
        let call = call.value("units", units).constant("TURNS", turns).value("span", span as u32);
        Ok(self.shared(call, shares, across, units, caps))
    }
}

impl Rows<1> {
    /// The rows of one tensor, or the first `length` elements of each.
    pub(super) fn of(operation: &str, tensor: &Tensor, length: usize) -> Result<Self> {
        let last = tensor.shape().len() - 1;
        let mut shape = Sizes::from(tensor.shape());
        shape[last] = length;
        Rows::new(operation, Axes { shape, strides: [tensor.strides().into()] }, last)
    }
}

/// How rows in segments are shared out.
#[derive(Clone, Copy)]
pub(super) struct Shared {
    shares: Shares,
    /// Whether neighbouring invocations have neighbouring rows.
    across: bool,
    /// Blocks that an invocation reads at once.
    turns: u32,
    /// Elements of a segment.
    pub(super) span: usize,
    /// Segments of a row.
    pub(super) segments: usize,
}

/// Adds `groups` workgroups of this size to a call, in several rows of workgroups if one is not
/// enough.
pub(super) fn dispatch(call: Call, groups: u32, size: u32, caps: &Caps) -> Call {
    let x = groups.min(caps.max_workgroups);
    let y = if x == 0 { 0 } else { groups.div_ceil(x) };
    // If the product does not fit, the call is refused for its number of workgroups.
    call.workgroup([size, 1, 1]).grid([x.saturating_mul(size), y, 1])
}

/// Adds to a call its grid, its workgroup, and SIZE and `blocks`, for texts in which an invocation
/// has a block of four elements of a row.
pub(super) fn in_blocks(
    operation: &str,
    call: Call,
    rows: u32,
    length: usize,
    caps: &Caps,
) -> Result<Call> {
    let per_row = u32::try_from(length.div_ceil(BLOCK)).ok();
    let blocks = per_row.and_then(|per_row| rows.checked_mul(per_row)).ok_or_else(|| {
        Error::Shape(format!(
            "overflow: {operation}: {rows} rows of {length} elements in blocks of {BLOCK}: kernels \
             count to {}",
            u32::MAX
        ))
    })?;
    Ok(in_groups(call.value("blocks", blocks), blocks.div_ceil(group_size(caps)), caps))
}

/// Adds to a call its grid, its workgroup, and SIZE and `count`, for texts in which an invocation
/// has one of `count` elements.
pub(super) fn one_each(operation: &str, call: Call, count: usize, caps: &Caps) -> Result<Call> {
    let call = call.value("count", counted(operation, count)?);
    Ok(in_groups(call, count.div_ceil(group_size(caps) as usize) as u32, caps))
}

/// The tensor with an axis of size 1 at the end: texts then take its elements one by one, not four
/// at a time.
pub(super) fn singly(tensor: &Tensor) -> Tensor {
    let axis = |sizes: &[usize]| Sizes::from_iter(sizes.iter().copied().chain([1]));
    tensor.laid_out(&axis(tensor.shape()), &axis(tensor.strides()))
}

/// Adds `groups` workgroups to a call, and SIZE, their invocations.
pub(super) fn in_groups(call: Call, groups: u32, caps: &Caps) -> Call {
    let size = group_size(caps);
    dispatch(call.constant("SIZE", size), groups, size, caps)
}

/// Invocations of a workgroup, unless rows are long.
pub(super) fn group_size(caps: &Caps) -> u32 {
    SIZE.min(most(caps))
}

/// A number of elements as 32 bits. It stays so far below 2³² that a loop may step past it by a
/// workgroup's share.
pub(super) fn counted(operation: &str, count: usize) -> Result<u32> {
    let most = u32::MAX - (1 << 16);
    u32::try_from(count).ok().filter(|&count| count <= most).ok_or_else(|| {
        Error::Shape(format!("overflow: {operation}: {count} elements: kernels count to {most}"))
    })
}

/// Elements that an invocation reads at once.
const BLOCK: usize = 4;

/// Workgroups that keep a large device busy.
const ENOUGH: usize = 1024;

/// The most blocks that an invocation keeps.
const MAX_KEPT: usize = 8;

/// Blocks that an invocation reads at once if a row has more than it keeps.
const UNKEPT: usize = 4;

/// Elements that an invocation should have before another one helps.
const SHARE: usize = 8;

/// Invocations of a workgroup.
const SIZE: u32 = 256;

/// The length from which a row has a workgroup of the largest size.
const LONG: usize = 16 << 10;

/// The least rows of a workgroup whose neighbouring invocations have neighbouring rows.
const NEIGHBOURS: u32 = 32;

/// The largest power of two that is no more than the invocations a workgroup may have.
fn most(caps: &Caps) -> u32 {
    1 << caps.max_threads().max(1).ilog2()
}

/// How the invocations of a workgroup share rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shares {
    /// Invocations that share a row: a power of two.
    invocations: u32,
    /// Rows of a workgroup.
    rows: u32,
}

impl Shares {
    /// The shares for rows of this length.
    fn new(length: usize, caps: &Caps) -> Self {
        let most = if length < LONG { most(caps).min(SIZE) } else { most(caps) };
        let helpful = length.div_ceil(SHARE).max(1).next_power_of_two();
        let invocations = u32::try_from(helpful).unwrap_or(most).min(most);
        Shares { invocations, rows: most / invocations }
    }

    /// The shares with at least [`NEIGHBOURS`] rows, if there are enough invocations.
    fn across(self) -> Self {
        let rows = self.rows.max(NEIGHBOURS.min(self.invocations));
        Shares { invocations: self.invocations * self.rows / rows, rows }
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
        let across = |length| Shares::new(length, &caps).across();
        assert_eq!(across(4096), Shares { invocations: 8, rows: 32 });
        assert_eq!(across(3), Shares { invocations: 1, rows: 256 });
        let few = Caps { max_invocations: 100, ..caps };
        assert_eq!(Shares::new(4096, &few), Shares { invocations: 64, rows: 1 });
    }
}
