//! Sorting by keys.

use super::scan::scan;
use crate::ops::host::{self, Loop, Row};
use crate::ops::layout::{Sizes, vector};
use crate::ops::op::{Op, Output, sealed::Lower};
use crate::ops::rows::{counted, group_size, in_groups};
use crate::ops::texts::{Function, SORT_COUNT, SORT_MOVE, Step, Steps, apart};
use crate::tensor::Tensor;
use tilewise_core::{DType, Error, Result};

/// Keys of a workgroup.
const BLOCK: u32 = 2048;

/// Bits of a key by which one pass sorts.
const DIGIT: u32 = 8;

/// The operation of [`sort`] and [`sort_by_key`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Sort {
    keys: Tensor,
    /// The payload; without one, indices.
    payload: Option<Tensor>,
    bits: u32,
    /// Larger keys count as this one.
    most: u32,
}

/// Sorts `keys`, \[n\] of u32, from the smallest up. The second output has the index at which each
/// key stood, as u32, as `torch.sort` gives them. Equal keys keep their order.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let experts = Tensor::upload(&ctx, &[2u32, 0, 2, 1], &[4])?;
/// let [sorted, order] = ops::sort(&experts).bits(8).run()?;
/// assert_eq!(sorted.read_blocking::<u32>()?, [0, 1, 2, 2]);
/// assert_eq!(order.read_blocking::<u32>()?, [1, 3, 0, 2]);
/// # Ok(())
/// # }
/// ```
pub fn sort(keys: &Tensor) -> Op<Sort, 2> {
    Op::new(Sort { keys: keys.clone(), payload: None, bits: u32::BITS, most: u32::MAX })
}

/// Sorts `keys`, \[n\] of u32, from the smallest up, and brings `payload`, \[n\] of u32, into the
/// same order. Equal keys keep their order.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let keys = Tensor::upload(&ctx, &[7u32, 3, 7], &[3])?;
/// let tokens = Tensor::upload(&ctx, &[10u32, 20, 30], &[3])?;
/// let [_, tokens] = ops::sort_by_key(&keys, &tokens).run()?;
/// assert_eq!(tokens.read_blocking::<u32>()?, [20, 10, 30]);
/// # Ok(())
/// # }
/// ```
pub fn sort_by_key(keys: &Tensor, payload: &Tensor) -> Op<Sort, 2> {
    Op::new(Sort { payload: Some(payload.clone()), ..sort(keys).kind })
}

impl Op<Sort, 2> {
    /// Sets how many bits of a key count, from the lowest up: 1 to 32; 32 by default. Each eight
    /// bits take another pass.
    pub fn bits(mut self, bits: u32) -> Self {
        self.kind.bits = bits;
        self
    }

    /// Counts larger keys as `most`.
    pub(in crate::ops) fn no_larger_than(mut self, most: u32) -> Self {
        self.kind.most = most;
        self.bits((u32::BITS - most.leading_zeros()).max(1))
    }
}

impl Sort {
    fn on_host(&self, outs: [&Tensor; 2]) -> Result<()> {
        let Sort { keys, payload, bits, most } = self;
        let (keys, payload) = (host::words(keys)?, payload.as_ref().map(host::words).transpose()?);
        let mask = u32::MAX >> (u32::BITS - bits);
        let order = |(i, key): (usize, &u32)| u64::from(key.min(most) & mask) << 32 | i as u64;
        let mut order: Vec<u64> = keys.iter().enumerate().map(order).collect();
        order.sort_unstable();
        Loop::new([], outs).run(|Row { outs: [sorted, second], .. }| {
            for ((sorted, second), &at) in sorted.iter_mut().zip(second).zip(&order) {
                let at = at as u32;
                *sorted = f32::from_bits(keys[at as usize]);
                let own = payload.as_ref().map_or(at, |payload| payload[at as usize]);
                *second = f32::from_bits(own);
            }
        })
    }
}

impl Lower<2> for Sort {
    fn name(&self) -> &'static str {
        if self.payload.is_some() { "sort_by_key" } else { "sort" }
    }

    fn first(&self) -> &Tensor {
        &self.keys
    }

    fn outputs(&self) -> Result<[Output; 2]> {
        let (name, Sort { keys, payload, bits, .. }) = (self.name(), self);
        vector(name, "keys", keys, None)?;
        if let Some(payload) = payload {
            vector(name, "payload", payload, Some(keys.elem_count()))?;
            keys.context().same(payload.context(), "payload")?;
        }
        if !(1..=u32::BITS).contains(bits) {
            return Err(Error::Misuse(format!("{name}: {bits} bits, wanted 1 to 32")));
        }
        let shape = Sizes::from(keys.shape());
        let second = if payload.is_some() { "the payload" } else { "the indices" };
        Ok([("the sorted keys", shape.clone(), DType::U32), (second, shape, DType::U32)])
    }

    fn host(&self, outs: [&Tensor; 2]) -> Option<Result<()>> {
        Some(self.on_host(outs))
    }

    /// Passes from the lowest digit up. Each pass counts the keys of each digit in every block,
    /// finds the place of the first of them, and moves keys and payload in their order. Keys and
    /// payload move in separate kernels, because each may bind only four buffers.
    fn steps(&self, outs: [&Tensor; 2]) -> Result<Steps> {
        let (name, context) = (self.name(), self.keys.context());
        for out in outs {
            apart(name, "keys", &self.keys, out, false)?;
            if let Some(payload) = &self.payload {
                apart(name, "payload", payload, out, false)?;
            }
        }
        let count = counted(name, self.keys.elem_count())?;
        let blocks = count.div_ceil(BLOCK);
        let zeros = |length: usize| Tensor::zeros(context, DType::U32, &[length]);
        let cells = blocks as usize * (1 << DIGIT);
        let (counts, places) = (zeros(cells)?, zeros(cells)?);
        let passes = self.bits.div_ceil(DIGIT);
        // Memory to move to and fro: one pass moves into it, the next back.
        let room = |wanted: bool| {
            let length = if wanted { count as usize } else { 0 };
            Ok::<_, Error>([zeros(length)?, zeros(length)?])
        };
        let rooms = [room(passes > 1)?, room(passes > 2)?];

        let mut steps = Steps::new();
        let (mut keys, mut payload) = (&self.keys, self.payload.as_ref());
        for pass in 0..passes {
            let to = match pass + 1 == passes {
                true => outs,
                false => rooms[pass as usize % 2].each_ref(),
            };
            let shift = DIGIT * pass;
            let mask = (1u32 << DIGIT.min(self.bits - shift)) - 1;
            let called = |mut step: Step| {
                step.call = in_groups(step.call, blocks, &context.0.caps)
                    .constant("TURNS", BLOCK / group_size(&context.0.caps))
                    .value("count", count)
                    .value("blocks", blocks)
                    .value("shift", shift)
                    .value("mask", mask)
                    .value("most", self.most);
                step
            };
            steps.push(called(SORT_COUNT.step(name, Function::NONE, &[Some(keys)], &[&counts])?));
            steps.extend(scan(name, &counts, &places, false)?);
            let second = if payload.is_some() { "payload" } else { "index" };
            for (moved, payload, to) in [("key", None, to[0]), (second, payload, to[1])] {
                let inputs = [Some(keys), Some(&places), payload];
                steps.push(called(SORT_MOVE.step(
                    name,
                    Function::new("moved", moved),
                    &inputs,
                    &[to],
                )?));
            }
            (keys, payload) = (to[0], Some(to[1]));
        }
        Ok(steps)
    }
}
