//! Where the rows of each group end, for grouped products.

use crate::context::Context;
use crate::tensor::Tensor;
use std::sync::Arc;
use tilewise_core::{DType, Error, Result};

/// Checks that a shader can read a tensor as numbers of groups: a vector of u32 without gaps.
///
/// # Errors
/// [`Unsupported`](crate::Error), `Shape`.
pub(crate) fn vector_of_u32(name: &str, tensor: &Tensor) -> Result<()> {
    tensor.must_be_u32(name)?;
    let [_] = tensor.shape() else {
        let shape = tensor.shape();
        return Err(Error::Shape(format!("{name} of shape {shape:?}, wanted a vector")));
    };
    if !tensor.is_contiguous() {
        let strides = tensor.strides();
        let text = format!("strides: {name} with {strides:?}: one must follow the other");
        return Err(Error::Shape(text));
    }
    Ok(())
}

/// Cumulative ends of the groups of a grouped product, u32, on the device: rows `ends[g-1] ..
/// ends[g]` belong to group g, and rows `0 .. ends[0]` to group 0.
///
/// There is one end for each entry of B. There may be one number more: then the first is the start
/// of the first group, as in the row pointers of CSR. It must be 0; on the device it counts as 0.
#[derive(Clone, Debug)]
pub struct GroupEnds {
    pub(crate) tensor: Tensor,
    /// The numbers, if they came from the host.
    pub(crate) ends: Option<Arc<[u32]>>,
    /// The expected number of rows of a group that has rows.
    pub(crate) expected: Option<u64>,
}

impl GroupEnds {
    /// Uploads ends that must not decrease. Empty groups are legal.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) when an end is smaller than the end before it. The product that uses
    /// them checks that no end exceeds M.
    pub fn upload(context: &Context, ends: &[u32]) -> Result<Self> {
        if let Some(at) = ends.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(Error::Shape(format!(
                "group offsets: they are cumulative ends, but number {} is {} after {}",
                at + 1,
                ends[at + 1],
                ends[at]
            )));
        }
        let tensor = Tensor::upload(context, ends, &[ends.len()])?;
        Ok(GroupEnds { tensor, ends: Some(ends.into()), expected: even(ends) })
    }

    /// Takes ends from a tensor, a vector of u32 that a kernel may write. The view may have any
    /// offset; the CPU executor takes it, too. Nothing is read back or copied. An end below the end
    /// before it counts as equal to it; an end beyond M counts as M.
    ///
    /// ```
    /// use tilewise::{Context, Gemm, GroupEnds, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let starts = Tensor::upload(&ctx, &[0u32, 1, 3], &[3])?;
    /// let ends = GroupEnds::from_tensor(&starts)?; // or of starts.narrow(0, 1, 2)?
    /// let x = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0], &[3, 1])?;
    /// let w = Tensor::upload(&ctx, &[1.0f32, 10.0], &[2, 1, 1])?; // [groups, K, N]
    /// let y = Gemm::grouped(&x, &w, &ends).run()?;
    /// assert_eq!(y.read_blocking::<f32>()?, [1.0, 20.0, 30.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Unsupported`](crate::Error) for another type than u32, `Shape` for another shape than a
    /// vector, or elements that do not follow each other.
    pub fn from_tensor(ends: &Tensor) -> Result<Self> {
        vector_of_u32("group offsets", ends)?;
        Ok(GroupEnds { tensor: ends.clone(), ends: None, expected: None })
    }

    /// Takes ends that a shader may write: `groups` numbers of type u32, from byte `byte_offset` of
    /// `buffer` on. Nothing is read back. An end below the end before it counts as equal to it; an
    /// end beyond M counts as M.
    ///
    /// ```
    /// use tilewise::{Context, Gemm, GroupEnds, Tensor, wgpu};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// // The CPU executor has neither.
    /// if let (Some(device), Some(queue)) = (ctx.device(), ctx.queue()) {
    ///     let buffer = device.create_buffer(&wgpu::BufferDescriptor {
    ///         label: None,
    ///         size: 8,
    ///         usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST,
    ///         mapped_at_creation: false,
    ///     });
    ///     // In place of a shader: row 0 in the first group, rows 1 and 2 in the second.
    ///     queue.write_buffer(&buffer, 0, &[1u32, 3].map(u32::to_le_bytes).concat());
    ///     let ends = GroupEnds::from_buffer(&ctx, buffer, 0, 2)?;
    ///     let x = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0], &[3, 1])?;
    ///     let w = Tensor::upload(&ctx, &[1.0f32, 10.0], &[2, 1, 1])?; // [groups, K, N]
    ///     let y = Gemm::grouped(&x, &w, &ends).run()?;
    ///     assert_eq!(y.read_blocking::<f32>()?, [1.0, 20.0, 30.0]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`Tensor::from_buffer`].
    pub fn from_buffer(
        context: &Context,
        buffer: wgpu::Buffer,
        byte_offset: u64,
        groups: u64,
    ) -> Result<Self> {
        let too_many = |_| Error::Shape(format!("overflow: {groups} group offsets"));
        let count = usize::try_from(groups).map_err(too_many)?;
        let tensor = Tensor::from_buffer(context, buffer, byte_offset, DType::U32, &[count])?;
        Ok(GroupEnds { tensor, ends: None, expected: None })
    }

    /// The context that they belong to.
    pub fn context(&self) -> &Context {
        self.tensor.context()
    }

    /// How many there are: one for each group, or one more.
    pub fn count(&self) -> usize {
        self.tensor.elem_count()
    }

    /// Drops the start of the first group from offsets that begin with it, such as those of
    /// [`ops::group`](crate::ops::group) and of a router. [`Gemm::ragged_k`](crate::Gemm::ragged_k)
    /// needs this: it tells the number of groups by the number of ends.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) if there are no offsets, or the start is known and not 0.
    pub fn without_start(&self) -> Result<Self> {
        let groups = self.count().checked_sub(1).ok_or_else(|| {
            Error::Shape("0 group offsets, wanted 1 or more, of which the first is a start".into())
        })?;
        self.before("B", groups)?;
        let ends = self.ends.as_ref().map(|ends| ends[1..].into());
        Ok(GroupEnds { tensor: self.tensor.narrow(0, 1, groups)?, ends, expected: self.expected })
    }

    /// The ends of the first `groups` groups, for a shard whose groups are the last of these.
    /// `before` numbers come before the ends. A group is expected to have `rows` rows.
    pub(crate) fn of_shard(&self, before: u64, groups: usize, rows: u64) -> Result<Self> {
        let tensor = self.tensor.narrow(0, before as usize, groups)?;
        Ok(GroupEnds { tensor, ends: None, expected: Some(rows) })
    }

    /// How many numbers lie before the ends of `groups` groups: 1 if the start of the first is
    /// there, else 0. `stack` names the operand with an entry for each group, for errors.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) for another number of groups, or a start that is not 0.
    pub(crate) fn before(&self, stack: &str, groups: usize) -> Result<u64> {
        match self.count() {
            count if count == groups => Ok(0),
            count if count == groups + 1 => {
                if let Some(&start) = self.ends.as_deref().and_then(<[u32]>::first)
                    && start != 0
                {
                    let plural = if groups == 1 { "" } else { "s" };
                    return Err(Error::Shape(format!(
                        "group offsets: {count} offsets for {groups} group{plural} must begin with \
                         0; these begin with {start}"
                    )));
                }
                Ok(1)
            }
            count => {
                let offsets = if count == 1 { "offset" } else { "offsets" };
                let entries = if groups == 1 { "entry" } else { "entries" };
                Err(Error::Shape(format!(
                    "{count} group {offsets} for {groups} {entries} of {stack}; there is one for \
                     each, and one more if a 0 comes first"
                )))
            }
        }
    }
}

/// The largest number of rows of a group, rounded up to 1, 2, 3, 4, 6, 8, 12 and so on; none unless
/// each group with rows has more than half of that. Rounding keeps changing ends from making many
/// plans.
fn even(ends: &[u32]) -> Option<u64> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let rows = ends.iter().zip(starts).map(|(end, start)| end - start).filter(|rows| *rows > 0);
    let most = u64::from(rows.clone().max()?);
    let power = most.next_power_of_two();
    let most = if most <= power / 4 * 3 { power / 4 * 3 } else { power };
    let least = u64::from(rows.min()?);
    (2 * least > most).then_some(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_even_where_none_has_twice_the_rows() {
        for (ends, rows) in [
            (&[32, 64, 64, 96][..], Some(32)),
            (&[0, 5, 12], Some(8)),
            (&[4, 12], None),
            (&[1, 2, 3], Some(1)),
            (&[3, 6], Some(3)),
            (&[24, 44], Some(24)),
            (&[25, 44], Some(32)),
            (&[12, 36], None),
            (&[0, 0], None),
            (&[], None),
        ] {
            assert_eq!(even(ends), rows, "{ends:?}");
        }
    }
}
