//! Work that is recorded once and runs many times.

use super::{AsRecorder, Recorder, Way};
use crate::context::{Backend, Context};
use crate::gpu::Keeper;
use tilewise_core::Result;

/// Work that is recorded once and runs many times, such as the step of a model.
///
/// ```
/// use tilewise::{Context, Recording, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::upload(&ctx, &[1.0f32, 2.0], &[2])?;
/// let y = x.clone();
/// let twice = Recording::new(&ctx, move |to| ops::scale(&y, 2.0).record(to, &y))?;
/// for _ in 0..3 {
///     ctx.submit(|to| twice.record(to))?;
/// }
/// assert_eq!(x.read_blocking::<f32>()?, [8.0, 16.0]);
/// # Ok(())
/// # }
/// ```
///
/// Its tensors are the same each time, so whatever changes from run to run lies in them: give
/// positions as tensors ([`Position`](crate::ops::Position)). It keeps them alive, and the kernels
/// that were chosen when it was made.
///
/// On a GPU the host only hands its dispatches to wgpu. On the CPU executor and in browsers the
/// work is called each time, and so is work that makes tensors or has dispatches of your own
/// ([`Recorder::dispatch`]). Results are the same either way.
///
/// The work owns its tensors: give it clones, which share their memory. A
/// [`KvCache`](crate::ops::KvCache) counts its tokens on the host, too, so its `advance` stays
/// outside:
///
/// ```
/// use tilewise::{Context, DType, Recording, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let mut cache = ops::KvCache::new(&ctx, DType::F32, 1, [1, 1, 8, 1])?;
/// let x = Tensor::upload(&ctx, &[3.0f32], &[1, 1, 1, 1])?;
/// let y = Tensor::zeros(&ctx, DType::F32, &[1, 1, 1, 1])?;
/// let (out, own) = (y.clone(), cache.clone());
/// let step = Recording::new(&ctx, move |to| {
///     own.append(to, 0, &x, &x)?;
///     own.attention(0, &x).record(to, &out)
/// })?;
/// for _ in 0..4 {
///     ctx.submit(|to| {
///         step.record(to)?;
///         cache.advance(to, 1)
///     })?;
/// }
/// assert_eq!(y.read_blocking::<f32>()?, [3.0]);
/// # Ok(())
/// # }
/// ```
pub struct Recording {
    context: Context,
    work: Box<Work>,
    kept: Option<Keeper>,
}

#[cfg(not(target_family = "wasm"))]
type Work = dyn Fn(&mut Recorder<'_>) -> Result<()> + Send + Sync;
#[cfg(target_family = "wasm")]
type Work = dyn Fn(&mut Recorder<'_>) -> Result<()>;

impl Recording {
    /// Records `work`, and runs nothing. New kernels are compiled, as by [`Context::warm_up`].
    ///
    /// # Errors
    /// The errors of [`Context::warm_up`]; [`Misuse`](crate::Error) for work that counts on the
    /// host, which is [`KvCache::advance`](crate::ops::KvCache::advance).
    pub fn new(
        context: &Context,
        work: impl Fn(&mut Recorder<'_>) -> Result<()> + wgpu::WasmNotSendSync + 'static,
    ) -> Result<Self> {
        context.warm_up_repeated(&work)?;
        let kept = match &context.0.backend {
            Backend::Gpu(gpu) => context.recording(|| {
                gpu.keep(&context.0.caps, |target| work(&mut Recorder::onto(target, context)))
            })?,
            Backend::Cpu(_) => None,
        };
        Ok(Recording { context: context.clone(), work: Box::new(work), kept })
    }

    /// Adds the work to the given compute pass, command encoder or recorder.
    ///
    /// # Errors
    /// The errors of the work, if it is called again; [`Misuse`](crate::Error) on the CPU executor,
    /// unless the recorder is its own, and for the recorder of another context; `DeviceLost`.
    pub fn record(&self, to: &mut impl AsRecorder) -> Result<()> {
        let to = &mut to.as_recorder();
        match (to.way(&self.context)?, &self.kept) {
            (Way::Record(gpu, target), Some(kept)) if target.runs() => gpu.replay(kept, target),
            _ => (self.work)(to),
        }
    }
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recording").field("is_kept", &self.kept.is_some()).finish_non_exhaustive()
    }
}
