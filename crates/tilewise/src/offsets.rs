//! Where the rows of each group end, for grouped products.

use crate::context::{Backend, Context};
use crate::storage::Storage;
use std::sync::Arc;
use tilewise_core::{Error, Result};

/// Cumulative ends of the groups of a grouped product, u32, on the device: rows `ends[g-1] ..
/// ends[g]` belong to group g.
#[derive(Clone, Debug)]
pub struct GroupOffsets {
    pub(crate) context: Context,
    pub(crate) storage: Storage,
    pub(crate) groups: u64,
    /// Known when they came from the host.
    pub(crate) ends: Option<Arc<[u32]>>,
}

impl GroupOffsets {
    /// Uploads ends that must not decrease. Empty groups are legal.
    ///
    /// # Errors
    /// `GroupOffsets` when an end is smaller than the end before it; `TooLarge`, `OutOfMemory`,
    /// `Device`, `DeviceLost`. The product that uses them checks that no end exceeds M.
    pub fn upload(context: &Context, ends: &[u32]) -> Result<Self> {
        if let Some(at) = ends.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(Error::GroupOffsets(format!(
                "they are cumulative ends, but number {} is {} after {}",
                at + 1,
                ends[at + 1],
                ends[at]
            )));
        }
        let storage = Storage::with_bytes(context, bytemuck::cast_slice(ends))?;
        Ok(GroupOffsets {
            context: context.clone(),
            storage,
            groups: ends.len() as u64,
            ends: Some(ends.into()),
        })
    }

    /// Ends that a shader of the caller's writes: `groups` numbers of type u32, from byte
    /// `byte_offset` of `buffer` on. Nothing is read back. An end below the end before it counts as
    /// equal to that one; an end beyond M counts as M.
    ///
    /// ```
    /// use tilewise::{Context, Gemm, GroupOffsets, Tensor, wgpu};
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
    ///     let ends = GroupOffsets::from_buffer(&ctx, buffer, 0, 2)?;
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
    /// `Misaligned` when the offset is not a multiple of the device's storage alignment,
    /// `BufferTooSmall`, `Misuse` when the buffer lacks `BufferUsages::STORAGE`,
    /// `WrongContext` on the CPU executor.
    pub fn from_buffer(
        context: &Context,
        buffer: wgpu::Buffer,
        byte_offset: u64,
        groups: u64,
    ) -> Result<Self> {
        if let Backend::Cpu = context.0.backend {
            context.gpu_backend()?;
        }
        let alignment = u64::from(context.caps().storage_alignment);
        if !byte_offset.is_multiple_of(alignment) {
            return Err(Error::Misaligned(format!(
                "group offsets at byte {byte_offset}, the device wants multiples of {alignment}"
            )));
        }
        let len = buffer.size().saturating_sub(byte_offset) / 4;
        if groups > len {
            return Err(Error::BufferTooSmall { operand: "group offsets", needed: groups, len });
        }
        let storage = Storage::of_buffer(context, buffer, byte_offset)?;
        Ok(GroupOffsets { context: context.clone(), storage, groups, ends: None })
    }

    /// Number of groups.
    pub fn groups(&self) -> usize {
        self.groups as usize
    }
}
