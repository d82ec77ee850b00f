//! The device behind a context: buffers, and running the passes of a plan. It decides nothing.

mod bind;
#[cfg(all(target_family = "wasm", feature = "webgpu"))]
mod browser;
mod callers;
mod compiled;
mod device;
#[cfg(all(feature = "gles", not(any(target_vendor = "apple", target_family = "wasm"))))]
mod opengl;
mod outcome;
pub(crate) mod pipeline;
mod readback;
mod record;
mod recorder;
mod uniforms;
#[cfg(not(target_family = "wasm"))]
mod waiting;

#[cfg(feature = "custom-kernels")]
pub(crate) use bind::Place;
pub(crate) use bind::{Places, ROLES, SharedBuffer};
pub(crate) use compiled::{Asked, Compiled, Conversion, Factors};
pub(crate) use device::Device;
#[cfg(feature = "custom-kernels")]
pub(crate) use outcome::Call as Running;
pub(crate) use record::Written;
#[cfg(feature = "custom-kernels")]
pub(crate) use recorder::{Dispatch, Grid};
pub(crate) use recorder::{Keeper, Nowhere, Passes, Target};

use crate::host::cache::{Cache, lock};
use crate::host::memory::repeated;
use bind::BindGroups;
use callers::Callers;
use outcome::Outcome;
use pipeline::Pipelines;
use std::cell::Cell;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tilewise_core::{Caps, Error, Result};
use uniforms::Uniforms;

/// The most plans that are kept, of several kilobytes each.
const MAX_PLANS: usize = 1024;

thread_local! {
    /// The number of buffers that this thread has made for tensors.
    static MADE: Cell<u64> = const { Cell::new(0) };
}

/// A kept buffer, which is replaced when a larger one is needed.
type Kept = Mutex<Option<Arc<SharedBuffer>>>;

pub(crate) struct Gpu {
    pub(crate) device: Device,
    pub(crate) pipelines: Pipelines,
    /// Plans of products. Cleared when the context prefers other kernels than before.
    pub(crate) plans: Cache<Asked, Arc<Compiled>>,
    conversions: Cache<Conversion, Arc<Compiled>>,
    groups: Arc<BindGroups>,
    uniforms: Uniforms,
    /// Memory for partial sums, shared by all products: dispatches in one queue that write the same
    /// buffer run one after the other.
    scratch: Kept,
    /// Memory for packed operands, shared in the same way.
    packed: Kept,
    callers: Callers,
}

impl Gpu {
    /// Takes a device; compiled pipelines are kept between runs in `folder`, if there is one.
    pub(crate) fn new(device: Device, folder: Option<&Path>) -> Self {
        let pipelines = Pipelines::new(&device, folder);
        let (plans, conversions, groups) =
            (Cache::new(MAX_PLANS), Cache::new(MAX_PLANS), Arc::default());
        let (uniforms, scratch, packed, callers) = Default::default();
        Gpu { device, pipelines, plans, conversions, groups, uniforms, scratch, packed, callers }
    }

    /// A buffer of zeros for at least `bytes`, rounded up so that vector loads find whole vectors.
    pub(crate) fn buffer(&self, caps: &Caps, bytes: u64) -> Result<Arc<SharedBuffer>> {
        let (buffer, made) = self.create(caps, bytes, false)?;
        Ok(self.groups.share(buffer, made))
    }

    /// A buffer with `bytes` bytes that repeat `block`.
    pub(crate) fn buffer_with(
        &self,
        caps: &Caps,
        block: &[u8],
        bytes: u64,
    ) -> Result<Arc<SharedBuffer>> {
        let (buffer, made) = self.create(caps, bytes, true)?;
        if bytes > 0 {
            let mut view =
                buffer.get_mapped_range_mut(..).map_err(|error| self.device.failed(error))?;
            for (place, piece) in repeated(block, bytes as usize) {
                view.slice(place).copy_from_slice(piece);
            }
        }
        buffer.unmap();
        Ok(self.groups.share(buffer, made))
    }

    /// A given buffer as storage holds it. While it is among the last given buffers, this is the
    /// same object each time, with its bind groups.
    pub(crate) fn share(&self, buffer: wgpu::Buffer) -> Arc<SharedBuffer> {
        let share = |buffer| self.groups.share(buffer, Outcome::default());
        let shared = self.callers.share(buffer, share);
        shared.writers.trust();
        shared
    }

    /// Keeps what `work` records, if all of it can be recorded once more: it made no tensor, whose
    /// zeros would be gone then, and no answer of the device is to come.
    pub(crate) fn keep(
        &self,
        caps: &Caps,
        work: impl FnOnce(&mut dyn Target) -> Result<()>,
    ) -> Result<Option<Keeper>> {
        let (mut keeper, made) = (Keeper::new(caps), MADE.get());
        work(&mut keeper)?;
        let kept = keeper.is_whole() && MADE.get() == made && !self.device.answers_later();
        Ok(kept.then_some(keeper))
    }

    /// Records once more what was kept.
    pub(crate) fn replay(&self, kept: &Keeper, to: &mut dyn Target) -> Result<()> {
        self.device.alive()?;
        let _call = self.device.call();
        kept.replay(to)
    }

    /// Lets go of scratch memory and of given buffers. Recorded work keeps what it uses.
    pub(crate) fn release(&self) {
        let kept = [&self.scratch, &self.packed].map(|kept| lock(kept).take());
        // Dropped without the lock, because a driver may do anything when its objects go.
        drop(kept);
        self.callers.clear();
    }

    fn create(&self, caps: &Caps, bytes: u64, mapped: bool) -> Result<(wgpu::Buffer, Outcome)> {
        if bytes > caps.max_buffer_bytes {
            let (operand, limit, which) = ("the tensor", caps.max_buffer_bytes, "max_buffer_size");
            return Err(Error::too_large(operand, bytes, limit, which));
        }
        self.device.still_alive()?;
        MADE.set(MADE.get() + 1);
        let usage = wgpu::BufferUsages::STORAGE
            | wgpu::BufferUsages::COPY_SRC
            | wgpu::BufferUsages::COPY_DST;
        let size = bytes.next_multiple_of(16).clamp(16, caps.max_buffer_bytes.max(16));
        self.device.make(|| {
            let label = Some("tilewise tensor");
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label,
                size,
                usage,
                mapped_at_creation: mapped,
            })
        })
    }

    /// Memory of `bytes` bytes for the passes of one call: they are no 0.
    pub(crate) fn scratch(&self, bytes: u64) -> Result<Arc<SharedBuffer>> {
        self.at_least(&self.scratch, "tilewise scratch", bytes)
    }

    /// Memory of `bytes` bytes for the packed operands of one call: they are no 0.
    fn packed(&self, bytes: u64) -> Result<Arc<SharedBuffer>> {
        self.at_least(&self.packed, "tilewise packed", bytes)
    }

    /// The kept buffer, replaced by a larger one if it has fewer than `bytes` bytes.
    fn at_least(&self, kept: &Kept, label: &str, bytes: u64) -> Result<Arc<SharedBuffer>> {
        let mut kept = lock(kept);
        let fits =
            |buffer: &&Arc<SharedBuffer>| buffer.size() >= bytes && !buffer.writers.has_none();
        if let Some(buffer) = kept.as_ref().filter(fits) {
            return Ok(buffer.clone());
        }
        // Some passes store the number of workgroups of other passes there.
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::INDIRECT;
        let descriptor = wgpu::BufferDescriptor {
            label: Some(label),
            size: bytes,
            usage,
            mapped_at_creation: false,
        };
        let (buffer, made) = self.device.make(|| self.device.create_buffer(&descriptor))?;
        Ok(kept.insert(self.groups.share(buffer, made)).clone())
    }
}
