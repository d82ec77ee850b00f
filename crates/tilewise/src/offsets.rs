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
    /// `GroupOffsets` when an end is smaller than the one before; those of an upload otherwise.
    /// That no end exceeds M is checked by the product that uses them.
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

    /// Ends that some shader of the caller's writes: `groups` u32 from `byte_offset` of `buffer`
    /// on. Nothing is read back: an end below the one before counts as equal to it, one beyond M as
    /// M.
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
