//! The wgpu device behind a context: buffers, and running the passes of a plan. It decides nothing.

mod bind;
mod prepared;

pub(crate) use bind::SharedBuffer;
pub(crate) use prepared::{Asked, Prepared};

use crate::cache::Cache;
use crate::pipeline::Pipelines;
use bind::BindGroups;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use tilewise_core::{Caps, Error, Result};

/// Uniform buffers kept before all are forgotten at once: 4,096 · 256 bytes is a megabyte.
const MAX_UNIFORMS: usize = 4096;

/// Plans kept before all are forgotten at once: several kilobytes each.
const MAX_PLANS: usize = 1024;

/// A buffer that grows with what is asked of it.
type Kept = Mutex<Option<Arc<SharedBuffer>>>;

pub(crate) struct Gpu {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) pipelines: Pipelines,
    /// By contents: a uniform buffer is never written again, so it may be in use by any number of submissions.
    uniforms: Cache<Vec<u8>, wgpu::Buffer>,
    /// To be cleared when another kernel is to be preferred from now on.
    pub(crate) plans: Cache<Asked, Arc<Prepared>>,
    groups: Arc<BindGroups>,
    /// Shared by all products: dispatches in one queue run one after the other as far as a buffer that both write is concerned.
    scratch: Kept,
    /// Packed operands, likewise.
    packed: Kept,
    lost: Arc<OnceLock<String>>,
}

impl Gpu {
    pub(crate) fn new(device: wgpu::Device, queue: wgpu::Queue, cache: Option<&Path>) -> Self {
        let pipelines = Pipelines::new(&device, cache);
        let (uniforms, plans, groups) = (Cache::new(MAX_UNIFORMS), Cache::new(MAX_PLANS), Arc::default());
        let (scratch, packed, lost) = Default::default();
        Gpu { device, queue, pipelines, uniforms, plans, groups, scratch, packed, lost }
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
    pub(crate) fn still_alive(&self) -> Result<()> {
        #[cfg(not(target_family = "wasm"))]
        if let Err(error) = self.device.poll(wgpu::PollType::Poll) {
            log::debug!("poll: {error}");
        }
        self.alive()
    }

    /// Runs `make`, and gives the driver's error instead if there was one. In a browser errors come later, to the device's handler.
    pub(crate) fn catch<T>(&self, make: impl FnOnce() -> T) -> Result<T> {
        self.attempt(make)?.map_err(Error::Device)
    }

    /// As [`catch`](Self::catch), for what the driver may well refuse: its words are the inner error. The outer one is that of a device that is lost or has no
    /// memory.
    pub(crate) fn attempt<T>(&self, make: impl FnOnce() -> T) -> Result<std::result::Result<T, String>> {
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
        let Some(error) = found else { return Ok(Ok(made)) };
        // wgpu's texts run over several lines.
        let words = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        if matches!(error, wgpu::Error::OutOfMemory { .. }) { Err(Error::Device(words)) } else { Ok(Err(words)) }
    }

    /// A buffer for at least `bytes`, rounded up so that vector loads find whole vectors; zeros.
    pub(crate) fn buffer(&self, caps: &Caps, bytes: u64) -> Result<Arc<SharedBuffer>> {
        Ok(self.share(self.create(caps, bytes, false)?))
    }

    pub(crate) fn buffer_with(&self, caps: &Caps, bytes: &[u8]) -> Result<Arc<SharedBuffer>> {
        let buffer = self.create(caps, bytes.len() as u64, true)?;
        if !bytes.is_empty() {
            let mut view = buffer.get_mapped_range_mut(..).map_err(|error| Error::Device(error.to_string()))?;
            view.slice(..bytes.len()).copy_from_slice(bytes);
        }
        buffer.unmap();
        Ok(self.share(buffer))
    }

    /// The buffer as storage holds it. One that is shared twice counts as two, each with bind groups of its own.
    pub(crate) fn share(&self, buffer: wgpu::Buffer) -> Arc<SharedBuffer> {
        self.groups.share(buffer)
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

    /// A uniform buffer with these contents.
    pub(crate) fn uniform(&self, contents: &[u8]) -> Result<wgpu::Buffer> {
        self.uniforms.get_or_make(contents, || {
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
            Ok(buffer)
        })
    }

    /// The buffer that is kept there, replaced by a larger one where it has fewer bytes; none for none.
    fn at_least(&self, kept: &Kept, label: &str, bytes: u64) -> Result<Option<Arc<SharedBuffer>>> {
        if bytes == 0 {
            return Ok(None);
        }
        let mut kept = lock(kept);
        if let Some(buffer) = kept.as_ref().filter(|buffer| buffer.size() >= bytes) {
            return Ok(Some(buffer.clone()));
        }
        let usage = wgpu::BufferUsages::STORAGE;
        let descriptor = wgpu::BufferDescriptor { label: Some(label), size: bytes, usage, mapped_at_creation: false };
        let buffer = self.share(self.catch(|| self.device.create_buffer(&descriptor))?);
        Ok(Some(kept.insert(buffer).clone()))
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
