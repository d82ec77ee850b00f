//! Counting how often each key occurs.

use crate::kernel::Constant;
use crate::ops::elementwise::copy::FILL;
use crate::ops::elementwise::each;
use crate::ops::host::{self, Loop, Row};
use crate::ops::layout::{Axes, rank, words};
use crate::ops::op::{Op, Output, only, sealed::Lower};
use crate::ops::rows::{counted, group_size, in_groups};
use crate::ops::texts::{Function, HISTOGRAM, Steps};
use crate::tensor::Tensor;
use smallvec::smallvec;
use tilewise_core::{DType, Result};

/// Keys of an invocation.
const SHARE: u32 = 16;

/// The most bins for which each workgroup first counts by itself.
const FEW: usize = 2048;

/// The operation of [`histogram`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Histogram {
    keys: Tensor,
    bins: usize,
}

/// Counts how often each number below `bins` occurs among `keys`, u32 of any shape: u32 \[bins\].
/// Keys of `bins` or more are not counted. A given output is overwritten, not added to.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let experts = Tensor::upload(&ctx, &[2u32, 0, 2, 9], &[2, 2])?;
/// let counts = ops::histogram(&experts, 4).run()?;
/// assert_eq!(counts.read_blocking::<u32>()?, [1, 0, 2, 0]);
/// # Ok(())
/// # }
/// ```
pub fn histogram(keys: &Tensor, bins: usize) -> Op<Histogram> {
    Op::new(Histogram { keys: keys.clone(), bins })
}

impl Histogram {
    fn on_host(&self, out: &Tensor) -> Result<()> {
        let keys = host::words(&self.keys)?;
        Loop::new([], [out]).run(|Row { outs: [y], .. }| {
            let counts: &mut [u32] = bytemuck::cast_slice_mut(y);
            counts.fill(0);
            for &key in &keys {
                if let Some(count) = counts.get_mut(key as usize) {
                    *count += 1;
                }
            }
        })
    }
}

impl Lower for Histogram {
    fn name(&self) -> &'static str {
        "histogram"
    }

    fn first(&self) -> &Tensor {
        &self.keys
    }

    fn outputs(&self) -> Result<[Output; 1]> {
        words("histogram", "keys", &self.keys)?;
        rank("histogram", "keys", &self.keys)?;
        only(smallvec![self.bins], DType::U32)
    }

    fn takes(&self, dtype: DType, own: DType) -> bool {
        dtype == own
    }

    fn host(&self, [out]: [&Tensor; 1]) -> Option<Result<()>> {
        Some(self.on_host(out))
    }

    fn steps(&self, [out]: [&Tensor; 1]) -> Result<Steps> {
        let keys = &self.keys;
        let strides = [keys.strides().into()];
        let mut axes = Axes { shape: keys.shape().into(), strides }.collapsed();
        // Each key is a row.
        axes.push(1, [0]);
        let view = keys.laid_out(&axes.shape, &axes.strides[0]);
        let mut counting = HISTOGRAM.step("histogram", Function::NONE, &[Some(&view)], &[out])?;
        let mut steps = each("histogram", FILL, &[], out, Constant::U32(0))?;
        let caps = &keys.context().0.caps;
        let count = counted("histogram", keys.elem_count())?;
        let groups = count.div_ceil(SHARE * group_size(caps));
        counting.call = in_groups(counting.call, groups, caps)
            .constant("SHARE", SHARE)
            .constant("BINS", FEW as u32)
            .constant("FEW", self.bins <= FEW)
            .value("count", count);
        if count > 0 {
            steps.push(counting);
        }
        Ok(steps)
    }
}
