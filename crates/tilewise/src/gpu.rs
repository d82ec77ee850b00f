//! The wgpu device behind a context: buffers, and running the passes of a plan. It decides nothing.

use crate::pipeline::Pipelines;
use crate::storage::{Bound, Storage};
use std::collections::HashMap;
use std::num::NonZeroU64;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use tilewise_core::kernel::Role;
use tilewise_core::{Caps, Error, Plan, Result};

/// Uniform buffers kept before the oldest uses are forgotten all at once: 4,096 · 256 bytes is a megabyte.
const MAX_UNIFORMS: usize = 4096;

pub(crate) struct Gpu {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) pipelines: Pipelines,
    /// By contents: a uniform buffer is never written again, so it may be in use by any number of submissions.
    uniforms: Mutex<HashMap<Vec<u8>, wgpu::Buffer>>,
    /// Shared by all products: dispatches in one queue run one after the other as far as a buffer that both write is concerned.
    scratch: Mutex<Option<wgpu::Buffer>>,
    /// Packed operands, likewise.
    packed: Mutex<Option<wgpu::Buffer>>,
    lost: Arc<OnceLock<String>>,
}

/// What each role of a plan is bound to.
pub(crate) type Buffers = Vec<(Role, Bound)>;

impl Gpu {
    pub(crate) fn new(device: wgpu::Device, queue: wgpu::Queue, cache: Option<&Path>) -> Self {
        let pipelines = Pipelines::new(&device, cache);
        let (uniforms, scratch, packed, lost) = Default::default();
        Gpu { device, queue, pipelines, uniforms, scratch, packed, lost }
    }

    /// Takes over the device's error handlers: a lost device makes every later call an error, and no error of the driver's is a panic.
    pub(crate) fn watch(&self) {
        let lost = self.lost.clone();
        self.device.set_device_lost_callback(move |reason, message| {
            let _ = lost.set(format!("{reason:?}: {message}"));
        });
        self.device.on_uncaptured_error(Arc::new(|error| log::error!("wgpu: {error}")));
    }

    pub(crate) fn alive(&self) -> Result<()> {
        match self.lost.get() {
            Some(reason) => Err(Error::DeviceLost(reason.clone())),
            None => Ok(()),
        }
    }

    /// As [`alive`](Self::alive), after asking the device for news: wgpu reports a loss only when polled, and until then hands out objects
    /// that do nothing, without any error.
    fn still_alive(&self) -> Result<()> {
        #[cfg(not(target_family = "wasm"))]
        if let Err(error) = self.device.poll(wgpu::PollType::Poll) {
            log::debug!("poll: {error}");
        }
        self.alive()
    }

    /// Runs `make`, and gives the driver's error instead if there was one. In a browser errors come later, to the device's handler.
    pub(crate) fn catch<T>(&self, make: impl FnOnce() -> T) -> Result<T> {
        self.alive()?;
        let scopes = [wgpu::ErrorFilter::Validation, wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Internal]
            .map(|filter| self.device.push_error_scope(filter));
        let made = make();
        let mut found = None;
        for scope in scopes.into_iter().rev() {
            let error = pin!(scope.pop()).as_mut().poll(&mut std::task::Context::from_waker(Waker::noop()));
            if let Poll::Ready(Some(error)) = error {
                found = Some(error);
            }
        }
        self.alive()?;
        match found {
            // wgpu's texts run over several lines.
            Some(error) => Err(Error::Device(error.to_string().split_whitespace().collect::<Vec<_>>().join(" "))),
            None => Ok(made),
        }
    }

    /// A buffer for at least `bytes`, rounded up so that vector loads find whole vectors; zeros.
    pub(crate) fn buffer(&self, caps: &Caps, bytes: u64) -> Result<wgpu::Buffer> {
        self.create(caps, bytes, false)
    }

    pub(crate) fn buffer_with(&self, caps: &Caps, bytes: &[u8]) -> Result<wgpu::Buffer> {
        let buffer = self.create(caps, bytes.len() as u64, true)?;
        if !bytes.is_empty() {
            let mut view = buffer.get_mapped_range_mut(..).map_err(|error| Error::Device(error.to_string()))?;
            view.slice(..bytes.len()).copy_from_slice(bytes);
        }
        buffer.unmap();
        Ok(buffer)
    }

    fn create(&self, caps: &Caps, bytes: u64, mapped: bool) -> Result<wgpu::Buffer> {
        if bytes > caps.max_buffer_bytes {
            let (operand, limit, which) = ("the tensor", caps.max_buffer_bytes, "max_buffer_size");
            return Err(Error::TooLarge { operand, bytes, limit, which });
        }
        self.still_alive()?;
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let size = bytes.next_multiple_of(16).clamp(16, caps.max_buffer_bytes.max(16));
        self.catch(|| {
            let label = Some("tilewise tensor");
            self.device.create_buffer(&wgpu::BufferDescriptor { label, size, usage, mapped_at_creation: mapped })
        })
    }

    /// Records the passes of a plan.
    pub(crate) fn record(&self, pass: &mut wgpu::ComputePass<'_>, plan: &Plan, buffers: &Buffers) -> Result<()> {
        self.alive()?;
        let scratch = self.at_least(&self.scratch, "tilewise scratch", plan.scratch_bytes)?;
        let packed = self.at_least(&self.packed, "tilewise packed", plan.packed_bytes)?;
        for step in &plan.passes {
            let pipeline = self.pipelines.get(self, step)?;
            let uniform = self.uniform(bytemuck::bytes_of(&step.params))?;
            let mut entries =
                vec![wgpu::BindGroupEntry { binding: Role::Params.binding(), resource: uniform.as_entire_binding() }];
            for binding in &step.bindings {
                let (buffer, offset) = match binding.from {
                    Role::Scratch => (scratch.as_ref(), 0),
                    Role::Packed => (packed.as_ref(), 0),
                    role => {
                        buffers.iter().find(|(r, _)| *r == role).map_or((None, 0), |(_, bound)| match &bound.storage {
                            Storage::Gpu { buffer, .. } => (Some(buffer), bound.start),
                            Storage::Host { .. } => (None, 0),
                        })
                    }
                };
                let buffer = buffer
                    .ok_or_else(|| Error::WrongContext(format!("{} is not in GPU memory", binding.role.name())))?;
                let offset = offset + binding.start;
                if offset + binding.bytes > buffer.size() {
                    let len = (buffer.size() - offset.min(buffer.size())) / binding.element_bytes;
                    let needed = binding.bytes / binding.element_bytes;
                    return Err(Error::BufferTooSmall { operand: binding.role.name(), needed, len });
                }
                let resource = wgpu::BufferBinding { buffer, offset, size: NonZeroU64::new(binding.bytes) };
                let resource = wgpu::BindingResource::Buffer(resource);
                entries.push(wgpu::BindGroupEntry { binding: binding.role.binding(), resource });
            }
            let group = self.catch(|| {
                let descriptor =
                    wgpu::BindGroupDescriptor { label: Some(&step.label), layout: &pipeline.layout, entries: &entries };
                self.device.create_bind_group(&descriptor)
            })?;
            pass.set_pipeline(&pipeline.pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(step.grid[0], step.grid[1], 1);
        }
        Ok(())
    }

    /// A uniform buffer with these contents.
    pub(crate) fn uniform(&self, contents: &[u8]) -> Result<wgpu::Buffer> {
        let mut uniforms = lock(&self.uniforms);
        if let Some(buffer) = uniforms.get(contents) {
            return Ok(buffer.clone());
        }
        if uniforms.len() >= MAX_UNIFORMS {
            uniforms.clear();
        }
        let buffer = self.catch(|| {
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("tilewise params"),
                size: contents.len() as u64,
                usage: wgpu::BufferUsages::UNIFORM,
                mapped_at_creation: true,
            })
        })?;
        let mut view = buffer.get_mapped_range_mut(..).map_err(|error| Error::Device(error.to_string()))?;
        view.slice(..).copy_from_slice(contents);
        drop(view);
        buffer.unmap();
        uniforms.insert(contents.to_vec(), buffer.clone());
        Ok(buffer)
    }

    /// The buffer that is kept there, replaced by a larger one where it has fewer bytes; none for none.
    fn at_least(&self, kept: &Mutex<Option<wgpu::Buffer>>, label: &str, bytes: u64) -> Result<Option<wgpu::Buffer>> {
        let mut kept = lock(kept);
        if bytes == 0 || kept.as_ref().is_some_and(|buffer| buffer.size() >= bytes) {
            return Ok(kept.clone());
        }
        let usage = wgpu::BufferUsages::STORAGE;
        let descriptor = wgpu::BufferDescriptor { label: Some(label), size: bytes, usage, mapped_at_creation: false };
        let buffer = self.catch(|| self.device.create_buffer(&descriptor))?;
        *kept = Some(buffer.clone());
        Ok(Some(buffer))
    }

    pub(crate) fn encoder(&self) -> wgpu::CommandEncoder {
        self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("tilewise") })
    }

    pub(crate) fn submit(&self, encoder: wgpu::CommandEncoder) -> Result<()> {
        self.catch(|| {
            self.queue.submit([encoder.finish()]);
        })?;
        self.still_alive()
    }

    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn wait(&self) -> Result<()> {
        self.alive()?;
        let polled = self.device.poll(wgpu::PollType::wait_indefinitely());
        self.alive()?;
        polled.map(|_| ()).map_err(|error| Error::Device(error.to_string()))
    }
}

/// A lock poisoned by a panic elsewhere still guards a whole map.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
