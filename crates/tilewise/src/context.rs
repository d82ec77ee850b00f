//! A device to compute on, with everything worth keeping between calls. Other files add methods to
//! [`Context`]: context/, gemm.rs, tuner.rs, planner.rs.

pub(crate) mod choosing;
pub(crate) mod opening;
pub(crate) mod parts;
pub(crate) mod scratch;
pub(crate) mod winners;

use crate::adapter;
use crate::adapter::capture::Capture;
use crate::context::winners::Winners;
use crate::gpu::Gpu;
use crate::host::threads::Threads;
use std::sync::Arc;
use tilewise_core::kernel::Library;
use tilewise_core::{Caps, Error, Result};

pub(crate) enum Backend {
    Cpu(Threads),
    Gpu(Box<Gpu>),
}

pub(crate) struct Inner {
    pub(crate) backend: Backend,
    pub(crate) caps: Caps,
    pub(crate) preferences: Preferences,
    pub(crate) library: &'static Library,
    /// The features of the device's adapter, if that was at hand.
    #[cfg(feature = "custom-kernels")]
    pub(crate) offered: Option<wgpu::Features>,
    pub(crate) _capture: Option<Capture>,
}

/// Kernels that a context prefers to the planner's.
pub(crate) struct Preferences {
    /// The kernel of every product that does not name its own.
    pub(crate) kernel: Option<String>,
    /// The tuner's results.
    pub(crate) winners: Winners,
}

/// A device, its queue, and what is kept between calls: plans, compiled pipelines, bind groups,
/// uniform and scratch buffers.
///
/// ```
/// use tilewise::{Context, DType, Tensor};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::zeros(&ctx, DType::F32, &[2, 3])?;
/// assert_eq!(x.context().adapter_name(), ctx.adapter_name());
/// # Ok(())
/// # }
/// ```
///
/// [`new`](Self::new) takes the best GPU, or else the CPU; [`gpu`](Self::gpu) only a GPU;
/// [`cpu`](Self::cpu) only the CPU. [`request`](Self::request) takes options and does not block,
/// also in browsers. [`from_wgpu`](Self::from_wgpu) takes your own device;
/// [`from_device`](Self::from_device) needs no adapter, but leaves matrix units unused.
///
/// Cheap to clone; clones are the same context. Threads can share it, except in a browser.
#[derive(Clone)]
pub struct Context(pub(crate) Arc<Inner>);

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Context").field(&self.adapter_name()).field(&self.backend_name()).finish()
    }
}

impl Context {
    /// Name of the adapter, or `CPU executor`.
    pub fn adapter_name(&self) -> &str {
        &self.0.caps.name
    }

    /// `vulkan`, `metal`, `dx12`, `gl`, `browser-webgpu` or `cpu`.
    pub fn backend_name(&self) -> &'static str {
        self.gpu_backend()
            .map_or("cpu", |gpu| adapter::backend_name(gpu.device.adapter_info().backend))
    }

    /// Driver and its version, if the backend tells them; empty for the CPU executor.
    pub fn driver(&self) -> String {
        self.gpu_backend()
            .map_or_else(|_| String::new(), |gpu| adapter::driver(&gpu.device.adapter_info()))
    }

    /// Why the device lacks a feature, in words.
    #[cfg(feature = "custom-kernels")]
    pub(crate) fn lacks(&self, feature: wgpu::Features, name: &str) -> String {
        let adapter = self.adapter_name();
        if self.backend_name() == "browser-webgpu"
            && !wgpu::Features::all_webgpu_mask().contains(feature)
        {
            return format!(
                "wgpu offers no {name} in browsers, whatever the adapter {adapter} has"
            );
        }
        match self.0.offered.map(|all| all.contains(feature)) {
            Some(false) => format!("the adapter {adapter} has no {name}"),
            Some(true) => format!(
                "the device was made without {name}, which its adapter {adapter} has: \
                 device_descriptor() asks for it"
            ),
            None => format!(
                "the device was made without {name}: device_descriptor() asks for it if the \
                 adapter {adapter} has it"
            ),
        }
    }

    /// Whether products run on the CPU executor.
    pub fn is_cpu(&self) -> bool {
        matches!(self.0.backend, Backend::Cpu(_))
    }

    /// The wgpu device; none for the CPU executor.
    pub fn device(&self) -> Option<&wgpu::Device> {
        self.gpu_backend().ok().map(|gpu| &*gpu.device)
    }

    /// The wgpu queue; none for the CPU executor.
    pub fn queue(&self) -> Option<&wgpu::Queue> {
        self.gpu_backend().ok().map(|gpu| &gpu.device.queue)
    }

    /// Waits until everything submitted so far is done. Never blocks. On the CPU executor calls are
    /// done when they return.
    ///
    /// # Errors
    /// [`DeviceLost`](crate::Error). In a browser errors come after the calls that caused them:
    /// this call gives the first error that no read and no other call has given.
    pub async fn wait(&self) -> Result<()> {
        match &self.0.backend {
            Backend::Cpu(_) => Ok(()),
            Backend::Gpu(gpu) => gpu.device.done().await,
        }
    }

    /// Like [`wait`](Self::wait), blocking.
    ///
    /// # Errors
    /// [`DeviceLost`](crate::Error).
    #[cfg(not(target_family = "wasm"))]
    pub fn wait_blocking(&self) -> Result<()> {
        match &self.0.backend {
            Backend::Cpu(_) => Ok(()),
            Backend::Gpu(gpu) => {
                gpu.device.wait()?;
                gpu.device.probe()
            }
        }
    }

    /// The threads of the CPU executor.
    pub(crate) fn threads(&self) -> Result<&Threads> {
        match &self.0.backend {
            Backend::Cpu(threads) => Ok(threads),
            Backend::Gpu(_) => Err(Error::Misuse(
                "wrong context: this needs the CPU executor, and the context is a GPU".into(),
            )),
        }
    }

    pub(crate) fn gpu_backend(&self) -> Result<&Gpu> {
        match &self.0.backend {
            Backend::Gpu(gpu) => Ok(gpu),
            Backend::Cpu(_) => Err(Error::Misuse(
                "wrong context: this needs a GPU, and the context is the CPU executor".into(),
            )),
        }
    }

    /// `Misuse` unless `other` is this context.
    pub(crate) fn same(&self, other: &Context, operand: &str) -> Result<()> {
        if Arc::ptr_eq(&self.0, &other.0) {
            return Ok(());
        }
        let [here, there] =
            [self, other].map(|own| format!("{} ({})", own.adapter_name(), own.backend_name()));
        let both = if here == there {
            format!("both on {here}")
        } else {
            format!("on {there} and on {here}")
        };
        Err(Error::Misuse(format!(
            "wrong context: {operand} and the rest of the call are of different contexts, {both}: \
             make all with one Context"
        )))
    }
}
