//! The numbers of calls, in uniform buffers. The host writes each slot of a buffer once.

use super::bind::SharedBuffer;
use super::{Gpu, Outcome};
use crate::host::cache::{Cache, lock};
use std::sync::{Arc, Mutex};
use tilewise_core::Result;

/// The most contents that are kept. 4,096 · 256 bytes is a megabyte. Contents that stay keep the
/// buffer in which they lie.
const MAX_UNIFORMS: usize = 4096;

/// The most buffers that are kept for the device to write.
const MAX_WRITTEN: usize = 1024;

/// Bytes of a buffer that calls share by slots.
const BUFFER_BYTES: u64 = 1 << 16;

/// A uniform buffer, and the byte from which the numbers of a pass lie there.
pub(crate) type Slot = (Arc<SharedBuffer>, u32);

/// Uniform buffers that are kept between calls.
pub(super) struct Uniforms {
    /// Slots by their contents.
    slots: Cache<Vec<u8>, Slot>,
    /// The buffer that has slots left, and the byte of the first.
    open: Mutex<Option<(Arc<SharedBuffer>, u64)>>,
    /// Buffers by the contents that the host gave them, and by whether the device writes alpha and
    /// beta there.
    written: Cache<(Vec<u8>, [bool; 2]), Arc<SharedBuffer>>,
}

impl Default for Uniforms {
    fn default() -> Self {
        let (slots, written) = (Cache::new(MAX_UNIFORMS), Cache::new(MAX_WRITTEN));
        Uniforms { slots, open: Mutex::default(), written }
    }
}

impl Gpu {
    /// A slot with these contents, which other calls may use, too. It is written once, by the
    /// queue, before everything that is submitted from now on.
    pub(crate) fn uniform(&self, contents: &[u8]) -> Result<Slot> {
        self.uniforms.slots.get_or_make(contents, || {
            let (buffer, start) = self.slot(contents.len() as u64)?;
            self.device
                .catch_invalid(|| self.device.queue.write_buffer(&buffer, start, contents))?;
            Ok((buffer, start as u32))
        })
    }

    /// The next slot for `len` bytes.
    fn slot(&self, len: u64) -> Result<(Arc<SharedBuffer>, u64)> {
        let alignment = u64::from(self.device.limits().min_uniform_buffer_offset_alignment);
        let after = |start: u64| (start + len).next_multiple_of(alignment);
        let mut open = lock(&self.uniforms.open);
        if let Some((buffer, next)) = open.as_mut().filter(|(b, next)| *next + len <= b.size()) {
            let start = *next;
            *next = after(start);
            return Ok((buffer.clone(), start));
        }
        drop(open);
        let usage = wgpu::BufferUsages::COPY_DST;
        let buffer = self.uniform_buffer(&[], len.max(BUFFER_BYTES), usage)?;
        let full = lock(&self.uniforms.open).replace((buffer.clone(), after(0)));
        // Dropped without the lock, because a driver may do anything when its objects go.
        drop(full);
        Ok((buffer, 0))
    }

    /// A buffer with these contents, into which the device writes alpha or beta before each call.
    /// Calls share it if they are alike in `contents` and `factors`; the device must run them one
    /// after the other.
    pub(super) fn written(
        &self,
        contents: Vec<u8>,
        factors: [bool; 2],
    ) -> Result<Arc<SharedBuffer>> {
        let key = (contents, factors);
        self.uniforms.written.get_or_make(&key, || self.own_written(&key.0))
    }

    /// Like [`written`](Self::written), for one call alone.
    pub(super) fn own_written(&self, contents: &[u8]) -> Result<Arc<SharedBuffer>> {
        let usage = wgpu::BufferUsages::STORAGE;
        self.uniform_buffer(contents, contents.len() as u64, usage)
    }

    /// A new uniform buffer of `size` bytes that begins with `contents`. `writes` is the usage by
    /// which the rest is written.
    fn uniform_buffer(
        &self,
        contents: &[u8],
        size: u64,
        writes: wgpu::BufferUsages,
    ) -> Result<Arc<SharedBuffer>> {
        // A buffer that is mapped when it is made counts as written. Otherwise wgpu would clear the
        // range of a bind group at its first submission, together with slots that another thread
        // has written meanwhile.
        let descriptor = wgpu::BufferDescriptor {
            label: Some("tilewise uniforms"),
            size,
            usage: wgpu::BufferUsages::UNIFORM | writes,
            mapped_at_creation: true,
        };
        let buffer = self.device.catch(|| self.device.create_buffer(&descriptor))?;
        let mut view =
            buffer.get_mapped_range_mut(..).map_err(|error| self.device.failed(error))?;
        view.slice(..contents.len()).copy_from_slice(contents);
        drop(view);
        buffer.unmap();
        Ok(self.groups.share(buffer, Outcome::default()))
    }
}
