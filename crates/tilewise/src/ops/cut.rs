//! Cutting: an operation on tensors that no binding of the device holds is computed in parts, one
//! after the other.
//!
//! A part is the operation for a range along an axis of the output. A tensor spans its strides
//! times its extents, so each cut halves the axis that makes the largest tensor shortest: rows of a
//! row-major tensor, columns of a transposed one.

use super::texts::Steps;
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::ops::Range;
use tilewise_core::{Error, Result};

/// The kernels of an operation for these outputs. `plan` gives the kernels of a part, without cuts.
/// `part` gives the operation for a range along an axis of the outputs, or none if it has no parts
/// along that axis. Cuts along an axis lie at multiples of its `granule`. One more axis may belong
/// to operands alone; `entries` gives its length.
///
/// # Errors
/// The errors of `plan` and `part`; [`DeviceLimit`](crate::Error) for a tensor that no cut makes
/// shorter.
pub(super) fn steps<K, const N: usize>(
    kind: &K,
    outs: [&Tensor; N],
    plan: &impl Fn(&K, [&Tensor; N]) -> Result<Steps>,
    part: &impl Fn(&K, usize, Range<usize>) -> Result<Option<K>>,
    granule: &impl Fn(&K, usize) -> usize,
    entries: &impl Fn(&K) -> usize,
) -> Result<Steps> {
    // The whole is planned, too, because of its checks: parts do not know of each other.
    let whole = plan(kind, outs)?;
    let limit = outs[0].context().0.caps.max_binding_bytes;
    let bound = bound(&whole)?;
    // If several are largest, the first counts.
    let largest = bound.iter().enumerate().rev().max_by_key(|(_, (_, bytes))| *bytes);
    let Some((at, &(operand, bytes))) = largest.filter(|(_, (_, bytes))| *bytes > limit) else {
        return Ok(whole);
    };
    let part_of = |axis: usize, range: Range<usize>| {
        let Some(kind) = part(kind, axis, range.clone())? else { return Ok(None) };
        let mut parts = outs.map(Tensor::clone);
        for out in parts.iter_mut().filter(|out| axis < out.shape().len()) {
            *out = out.narrow(axis, range.start, range.len())?;
        }
        Ok::<_, Error>(Some((kind, parts)))
    };
    let mut best = None;
    let axes = outs[0].shape().iter().copied().chain([entries(kind)]);
    for (axis, size) in axes.enumerate() {
        let middle = middle(size).next_multiple_of(granule(kind, axis));
        if middle >= size {
            continue;
        }
        let Some((kind, outs)) = part_of(axis, 0..middle)? else { continue };
        let left = self::bound(&plan(&kind, outs.each_ref())?)?[at].1;
        if best.as_ref().is_none_or(|(_, _, least)| left < *least) {
            best = Some((axis, [0..middle, middle..size], left));
        }
    }
    // Parts that lie among each other span nearly as much as the whole.
    let Some((axis, ranges, _)) = best.filter(|(_, _, left)| *left <= bytes - bytes / 8) else {
        let which = "max_storage_buffer_binding_size";
        return Err(Error::too_large(operand, bytes, limit, which));
    };
    let mut all = Steps::new();
    for range in ranges {
        if let Some((kind, outs)) = part_of(axis, range)? {
            all.extend(steps(&kind, outs.each_ref(), plan, part, granule, entries)?);
        }
    }
    Ok(all)
}

/// The bindings of the steps: names and bytes.
fn bound(steps: &Steps) -> Result<SmallVec<[(&'static str, u64); 8]>> {
    steps.iter().flat_map(|step| step.bound()).map(|(name, bytes)| Ok((name, bytes?))).collect()
}

/// The place at which to cut an axis: the middle, or a multiple of 128 (or of 4) near it, at which
/// a binding can begin.
fn middle(size: usize) -> usize {
    let granule = [128, 4].into_iter().find(|granule| size >= 4 * granule).unwrap_or(1);
    size.div_ceil(2).next_multiple_of(granule)
}
