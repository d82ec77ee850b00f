//! Custom kernels on the device: pipelines, bind groups, and the numbers of their calls.

use super::bind::{CustomKey, Identity};
use super::device::Device;
use super::outcome::Outcome;
use super::pipeline::Pipeline;
use super::{Gpu, SharedBuffer};
use crate::cache::{Cache, lock};
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};
use tilewise_core::Result;

/// The most contents of uniform buffers that are kept; then all are forgotten at once. 4,096 · 256
/// bytes is a megabyte.
const MAX_UNIFORMS: usize = 4096;

/// Bytes of a uniform buffer. Calls share it by slots.
const UNIFORM_BYTES: u64 = 1 << 16;

/// Pipelines and uniform buffers that custom kernels keep between calls.
pub(crate) struct Customs {
    compiled: Cache<String, Arc<Custom>>,
    numbered: Cache<u64, Arc<Custom>>,
    uniforms: Cache<Vec<u8>, (Arc<SharedBuffer>, u32)>,
    /// The uniform buffer that has slots left, and the byte of the first.
    slots: Mutex<Option<(Arc<SharedBuffer>, u64)>>,
}

impl Default for Customs {
    fn default() -> Self {
        Customs {
            compiled: Cache::new(usize::MAX),
            numbered: Cache::new(usize::MAX),
            uniforms: Cache::new(MAX_UNIFORMS),
            slots: Mutex::default(),
        }
    }
}

/// A compiled kernel.
pub(crate) struct Custom {
    pub(crate) pipeline: Pipeline,
    identity: Identity,
}

impl Custom {
    /// The number by which [`Gpu::custom`] finds the kernel.
    pub(crate) fn number(&self) -> u64 {
        self.identity.number()
    }
}

/// A range of a buffer: its first byte, and its number of bytes.
pub(crate) type Place<'a> = (&'a SharedBuffer, u64, u64);

impl Gpu {
    /// A kernel that was compiled here.
    pub(crate) fn custom(&self, number: u64) -> Option<Arc<Custom>> {
        self.customs.numbered.get(&number)
    }

    /// The kernel of a text, compiled when it is met for the first time.
    pub(crate) fn custom_of(
        &self,
        text: &str,
        compile: impl FnOnce() -> Result<Pipeline>,
    ) -> Result<Arc<Custom>> {
        let custom = self.customs.compiled.get_or_make(text, || {
            Ok(Arc::new(Custom { pipeline: compile()?, identity: self.groups.identity() }))
        })?;
        self.customs.numbered.get_or_make(&custom.number(), || Ok(custom.clone()))
    }

    /// A uniform buffer with these contents, and the byte where they begin. Other calls may use the
    /// same buffer. A slot is written once, by the queue, before everything that is submitted from
    /// now on.
    pub(crate) fn uniform(&self, contents: &[u8]) -> Result<(Arc<SharedBuffer>, u32)> {
        self.customs.uniforms.get_or_make(contents, || {
            let len = contents.len() as u64;
            let (buffer, start) = self.slot(len)?;
            self.device
                .catch_invalid(|| self.device.queue.write_buffer(&buffer, start, contents))?;
            Ok((buffer, start as u32))
        })
    }

    /// The next slot for `len` bytes.
    fn slot(&self, len: u64) -> Result<(Arc<SharedBuffer>, u64)> {
        let alignment = u64::from(self.device.limits().min_uniform_buffer_offset_alignment);
        let after = |start: u64| (start + len).next_multiple_of(alignment);
        let mut slots = lock(&self.customs.slots);
        if let Some((buffer, next)) = slots.as_mut().filter(|(b, next)| *next + len <= b.size()) {
            let start = *next;
            *next = after(start);
            return Ok((buffer.clone(), start));
        }
        drop(slots);
        let buffer = uniform_buffer(&self.device, len.max(UNIFORM_BYTES))?;
        let buffer = self.groups.share(buffer, Outcome::default());
        let full = lock(&self.customs.slots).replace((buffer.clone(), after(0)));
        // Dropped without the lock, because a driver may do anything when its objects go.
        drop(full);
        Ok((buffer, 0))
    }

    /// The bind group of a kernel: its uniform buffer with the number of bytes to bind, and its
    /// tensors, from binding 1 on. The uniform's offset is given when the group is set.
    pub(crate) fn bind_custom(
        &self,
        custom: &Custom,
        label: &str,
        uniform: Option<(&SharedBuffer, u64)>,
        tensors: &[Place<'_>],
    ) -> Result<wgpu::BindGroup> {
        let uniform = uniform.map(|(buffer, bytes)| (buffer, 0, bytes));
        let key = CustomKey::new(&custom.identity, uniform.iter().chain(tensors));
        if let Some(group) = self.groups.get_custom(&key) {
            return Ok(group);
        }
        let bound = uniform.iter().map(|uniform| (0, uniform)).chain((1..).zip(tensors));
        let entries = bound.map(|(binding, &(buffer, offset, bytes))| {
            let range = wgpu::BufferBinding { buffer, offset, size: NonZeroU64::new(bytes) };
            wgpu::BindGroupEntry { binding, resource: wgpu::BindingResource::Buffer(range) }
        });
        let entries: Vec<_> = entries.collect();
        let group = self.device.catch_invalid(|| {
            self.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: Some(label),
                layout: &custom.pipeline.layout,
                entries: &entries,
            })
        })?;
        self.groups.insert_custom(key, group.clone());
        Ok(group)
    }
}

fn uniform_buffer(device: &Device, size: u64) -> Result<wgpu::Buffer> {
    let usage = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST;
    let label = Some("tilewise calls");
    // A buffer that is mapped when it is made counts as written. Otherwise wgpu would clear the
    // range of a bind group at its first submission, together with slots that another thread has
    // written meanwhile.
    let descriptor = wgpu::BufferDescriptor { label, size, usage, mapped_at_creation: true };
    device.catch(|| {
        let buffer = device.create_buffer(&descriptor);
        buffer.unmap();
        buffer
    })
}
