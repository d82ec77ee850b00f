//! Grouping slots by their keys.

use super::histogram::histogram;
use super::scan::exclusive_scan;
use super::sort::sort;
use crate::host::memory;
use crate::kernel::Constant;
use crate::ops::elementwise::copy::{FILL, copy};
use crate::ops::elementwise::each;
use crate::ops::host::{self, Loop, Row};
use crate::ops::layout::words;
use crate::ops::op::{Op, Output, sealed::Lower};
use crate::ops::rows::{counted, in_groups, one_each};
use crate::ops::texts::{Function, GROUP_SLOTS, SLOTS, Steps, apart};
use crate::tensor::Tensor;
use smallvec::smallvec;
use tilewise_core::{DType, Error, Result};

/// The most slots that one workgroup groups alone, a multiple of 16.
const FEW: u32 = 512;

/// The most comparisons for which one workgroup groups alone: with more, sorting is faster. The
/// bound also keeps groups times FEW below 2^32, as ranks must be.
const COMPARISONS: u64 = 1 << 19;

/// The operation of [`group`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Group {
    keys: Tensor,
    groups: usize,
}

/// Sorts slots by key, as grouped products take them. Each element of `keys`, \[t, k\] of u32, is
/// the key of a slot; slots are numbered row-major. Give a vector as `keys.unsqueeze(1)`. The
/// outputs are two tensors of u32:
///
/// - starts, \[groups + 1\]: where each group begins among the sorted slots, and where the last one
///   ends, as [`GroupEnds`](crate::GroupEnds) takes them;
/// - slots, \[3, t·k\]: first the slots in the order of their keys, where equal keys keep their
///   order; then, for each of these, the row of `keys` that it comes from; then the place of each
///   slot among the sorted slots.
///
/// Slots with keys from `groups` on belong to no group and come last, in their order. Their place
/// is `u32::MAX`, which [`combine`](crate::ops::combine) leaves out.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let experts = Tensor::upload(&ctx, &[2u32, 0, 0, 1], &[2, 2])?; // of two tokens
/// let [starts, slots] = ops::group(&experts, 3).run()?;
/// assert_eq!(starts.read_blocking::<u32>()?, [0, 2, 3, 4]);
/// let slots = slots.read_blocking::<u32>()?;
/// assert_eq!(slots[..4], [1, 2, 3, 0]);
/// assert_eq!(slots[4..8], [0, 1, 1, 0]); // the tokens
/// assert_eq!(slots[8..], [3, 0, 1, 2]); // the places
/// # Ok(())
/// # }
/// ```
pub fn group(keys: &Tensor, groups: usize) -> Op<Group, 2> {
    Op::new(Group { keys: keys.clone(), groups })
}

impl Group {
    fn on_host(&self, [starts, slots]: [&Tensor; 2]) -> Result<()> {
        let Group { ref keys, groups } = *self;
        let (keys, k) = (host::words(keys)?, keys.shape()[1]);
        // Slots without a group count as a last one.
        let group = |key: u32| (key as usize).min(groups);
        let mut begins = memory::filled(groups + 2, 0u32)?;
        keys.iter().for_each(|&key| begins[group(key) + 1] += 1);
        for at in 1..begins.len() {
            begins[at] += begins[at - 1];
        }
        Loop::new([], [starts]).run(|Row { outs: [y], .. }| {
            y.copy_from_slice(bytemuck::cast_slice(&begins[..groups + 1]));
        })?;
        if keys.is_empty() {
            return Ok(());
        }
        let (mut order, mut places) =
            (memory::filled(keys.len(), 0u32)?, memory::filled(keys.len(), u32::MAX)?);
        for (slot, &key) in keys.iter().enumerate() {
            let place = begins[group(key)];
            begins[group(key)] += 1;
            order[place as usize] = slot as u32;
            if group(key) < groups {
                places[slot] = place;
            }
        }
        let rows: Vec<u32> = order.iter().map(|slot| slot / k as u32).collect();
        let all = [&order, &rows, &places];
        Loop::new([], [slots]).run(|Row { number, outs: [y], .. }| {
            y.copy_from_slice(bytemuck::cast_slice(all[number]));
        })
    }
}

impl Lower<2> for Group {
    fn name(&self) -> &'static str {
        "group"
    }

    fn first(&self) -> &Tensor {
        &self.keys
    }

    fn outputs(&self) -> Result<[Output; 2]> {
        let Group { ref keys, groups } = *self;
        words("group", "keys", keys)?;
        let &[_, _] = keys.shape() else {
            return Err(Error::Shape(format!(
                "group: keys have shape {:?}, wanted two dimensions; unsqueeze(1) gives a vector \
                 one more",
                keys.shape()
            )));
        };
        let starts = groups.checked_add(1).filter(|&starts| u32::try_from(starts).is_ok());
        let starts = starts
            .ok_or_else(|| Error::Shape(format!("overflow: group: starts of {groups} groups")))?;
        let slots = smallvec![3, counted("group", keys.elem_count())? as usize];
        Ok([("starts", smallvec![starts], DType::U32), ("slots", slots, DType::U32)])
    }

    fn host(&self, outs: [&Tensor; 2]) -> Option<Result<()>> {
        Some(self.on_host(outs))
    }

    fn steps(&self, [starts, slots]: [&Tensor; 2]) -> Result<Steps> {
        let Group { ref keys, groups } = *self;
        let (count, caps) = (counted("group", keys.elem_count())?, &keys.context().0.caps);
        if count == 0 {
            return each("group", FILL, &[], starts, Constant::U32(0));
        }
        let k = counted("group", keys.shape()[1])?;
        let comparisons = (u64::from(count) + groups as u64).saturating_mul(count.into());
        if count <= FEW && comparisons <= COMPARISONS {
            let mut alone =
                GROUP_SLOTS.step("group", Function::NONE, &[Some(keys)], &[starts, slots])?;
            alone.call = in_groups(alone.call, 1, caps)
                .constant("MOST", FEW)
                .value("count", count)
                .value("groups", groups as u32)
                .value("k", k);
            return Ok(smallvec![alone]);
        }
        for out in [starts, slots] {
            apart("group", "keys", keys, out, false)?;
        }
        let zeros = |length: usize| Tensor::zeros(keys.context(), DType::U32, &[length]);
        let count = count as usize;
        let (mut steps, mut keys) = (Steps::new(), keys.clone());
        if keys.reshape(&[count]).is_err() {
            let packed = zeros(count)?.reshape(keys.shape())?;
            steps.extend(copy(&keys).kind.steps([&packed])?);
            keys = packed;
        }
        let keys = keys.reshape(&[count])?;
        let (sorted, order, counts) = (zeros(count)?, zeros(count)?, zeros(groups)?);
        let sort = sort(&keys).no_larger_than(groups as u32);
        steps.extend(sort.kind.steps([&sorted, &order])?);
        let inputs = [Some(&sorted), Some(&order)];
        let mut last = SLOTS.step("group", Function::NONE, &inputs, &[slots])?;
        last.call =
            one_each("group", last.call, count, caps)?.value("groups", groups as u32).value("k", k);
        steps.push(last);
        if groups > 0 {
            steps.extend(histogram(&keys, groups).kind.steps([&counts])?);
        }
        steps.extend(exclusive_scan(&counts).with_total().kind.steps([starts])?);
        Ok(steps)
    }
}
