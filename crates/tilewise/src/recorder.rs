//! Where operations go.

pub(crate) mod planned;
mod recording;

pub use recording::Recording;

use crate::context::{Backend, Context, Inner};
use crate::gpu::{Gpu, Passes, Target};
use planned::Planned;
use std::cell::RefCell;
use std::sync::Arc;
use tilewise_core::{Error, Result};

/// Takes operations one after the other. An app writes its model once, as a function that records,
/// and a recorder says where the operations go: into a compute pass or a command encoder of the
/// app's ([`AsRecorder`]), or to a context ([`Context::submit`]), which may be the CPU executor.
///
/// ```
/// use tilewise::{Activation, Context, Gemm, Recorder, Result, Tensor, ops};
///
/// /// y = softmax(relu(x·w)·wᵀ)
/// fn model(to: &mut Recorder<'_>, [x, w, h, y]: [&Tensor; 4]) -> Result<()> {
///     Gemm::new(x, w).activation(Activation::Relu).record(to, h)?;
///     Gemm::new(h, &w.t()).record(to, y)?;
///     ops::softmax(y).record(to, y)
/// }
///
/// # fn main() -> Result<()> {
/// for ctx in [Context::new()?, Context::cpu()] {
///     let tensor = |elements: [f32; 2], shape| Tensor::upload(&ctx, &elements, shape);
///     let (x, w) = (tensor([1.0, 2.0], &[1, 2])?, tensor([3.0, 3.0], &[2, 1])?);
///     let (h, y) = (Tensor::upload(&ctx, &[0.0f32], &[1, 1])?, tensor([0.0; 2], &[1, 2])?);
///     ctx.submit(|to| model(to, [&x, &w, &h, &y]))?;
///     assert_eq!(h.read_blocking::<f32>()?, [9.0]);
///     assert_eq!(y.read_blocking::<f32>()?, [0.5, 0.5]);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Recorder<'a>(To<'a>);

#[expect(clippy::large_enum_variant, reason = "recording into an encoder allocates nothing")]
enum To<'a> {
    /// Dispatches are recorded, of operations of this context if it is known.
    Device(&'a mut (dyn Target + 'a), Option<&'a Context>),
    /// They are recorded into one pass of an encoder.
    Encoder(Passes<'static, &'a mut wgpu::CommandEncoder>),
    /// The CPU executor computes each operation at once.
    Host(&'a Context),
    /// Nothing is computed, and operations of this context are kept.
    Planned(&'a mut Planned, &'a Context),
}

/// The way that a recorder goes with an operation.
pub(crate) enum Way<'s> {
    Record(&'s Gpu, &'s mut (dyn Target + 's)),
    Run,
    Plan(&'s mut Planned),
}

/// A target of operations: each `record` takes a `&mut wgpu::ComputePass`, a
/// `&mut wgpu::CommandEncoder` or a `&mut Recorder`.
///
/// An encoder gets a compute pass for each recorder that is made of it; nothing is submitted.
/// Recording sets pipelines and bind group 0. After an error, pass and encoder stay usable.
///
/// wgpu does not tell to which device a pass or an encoder belongs. It panics when an encoder with
/// work of another device is finished, and at once for an encoder of another instance, or with an
/// open pass.
pub trait AsRecorder {
    /// A recorder into this target.
    fn as_recorder(&mut self) -> Recorder<'_>;
}

impl AsRecorder for wgpu::ComputePass<'_> {
    fn as_recorder(&mut self) -> Recorder<'_> {
        Recorder(To::Device(self, None))
    }
}

impl AsRecorder for wgpu::CommandEncoder {
    fn as_recorder(&mut self) -> Recorder<'_> {
        Recorder(To::Encoder(Passes::new(LABEL, self)))
    }
}

impl AsRecorder for Recorder<'_> {
    fn as_recorder(&mut self) -> Recorder<'_> {
        Recorder(match &mut self.0 {
            To::Device(target, context) => To::Device(*target, *context),
            To::Encoder(passes) => To::Device(passes, None),
            To::Host(context) => To::Host(context),
            To::Planned(planned, context) => To::Planned(planned, context),
        })
    }
}

/// The label of the library's passes.
const LABEL: &str = "tilewise";

impl std::fmt::Debug for Recorder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

impl<'a> Recorder<'a> {
    /// A recorder that computes nothing and keeps the operations of a context.
    pub(crate) fn planning(planned: &'a mut Planned, context: &'a Context) -> Self {
        Recorder(To::Planned(planned, context))
    }

    /// A recorder into a target of the device.
    pub(crate) fn onto(target: &'a mut dyn Target, context: &'a Context) -> Self {
        Recorder(To::Device(target, Some(context)))
    }

    /// Records dispatches of your own into the compute pass that is open.
    ///
    /// # Errors
    /// [`Misuse`](crate::Error) on the CPU executor, which has no pass.
    pub fn dispatch(&mut self, work: impl FnOnce(&mut wgpu::ComputePass<'_>)) -> Result<()> {
        let target: &mut dyn Target = match &mut self.0 {
            To::Device(target, _) => *target,
            To::Encoder(passes) => passes,
            To::Host(context) => return context.gpu_backend().map(|_| ()),
            To::Planned(..) => return Ok(()),
        };
        let mut work = Some(work);
        target.record(&mut |pass| work.take().into_iter().for_each(|work| work(pass)));
        Ok(())
    }

    /// The way of an operation of a context.
    ///
    /// # Errors
    /// [`Misuse`](crate::Error) for an operation of another context than the recorder's.
    pub(crate) fn way<'s>(&'s mut self, context: &'s Context) -> Result<Way<'s>> {
        const NAME: &str = "the recorder";
        Ok(match &mut self.0 {
            To::Device(target, own) => {
                own.map_or(Ok(()), |own| context.same(own, NAME))?;
                Way::Record(context.gpu_backend()?, *target)
            }
            To::Encoder(passes) => Way::Record(context.gpu_backend()?, passes),
            To::Host(own) => {
                context.same(own, NAME)?;
                Way::Run
            }
            To::Planned(planned, own) => {
                context.same(own, NAME)?;
                Way::Plan(planned)
            }
        })
    }
}

impl Context {
    /// Submits what `work` records, and does not wait for it. On the CPU executor each operation is
    /// computed at once. [`Recorder`] has an example.
    ///
    /// **Inside `work`, only record.** Whatever runs at once on this context, or reads from it
    /// (`run`, `run_into`, `fill`, `write`, `copy_from`, `cast`, `read` and the like), is an error
    /// there, because a GPU would do it before all that is recorded. New tensors may be made
    /// (`upload`, `zeros`). Only calls on the thread of `work` are noticed.
    ///
    /// Work that is estimated to take longer than
    /// [`max_submission_time`](crate::ContextOptions::max_submission_time) goes to the device in
    /// several submissions. After an error of `work`, nothing more is submitted.
    ///
    /// # Errors
    /// The errors of `work`; [`Misuse`](crate::Error) inside another `submit` of this context.
    pub fn submit<T>(&self, work: impl FnOnce(&mut Recorder<'_>) -> Result<T>) -> Result<T> {
        self.submit_as(LABEL, work)
    }

    /// Like [`submit`](Self::submit), with a label for the compute passes.
    pub(crate) fn submit_as<T>(
        &self,
        label: &str,
        work: impl FnOnce(&mut Recorder<'_>) -> Result<T>,
    ) -> Result<T> {
        self.recording(|| match &self.0.backend {
            Backend::Gpu(gpu) => {
                gpu.submit(label, &self.0.caps, |target| work(&mut Recorder::onto(target, self)))
            }
            Backend::Cpu(_) => work(&mut Recorder(To::Host(self))),
        })
    }

    /// Calls `work`, in which nothing may run at once on this context.
    pub(crate) fn recording<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.not_recording()?;
        let _scope = Scope::new(self);
        work()
    }

    /// For whatever runs at once.
    ///
    /// # Errors
    /// [`Misuse`](crate::Error) inside the work of [`submit`](Self::submit), or work that is timed.
    pub(crate) fn not_recording(&self) -> Result<()> {
        if !RECORDING.with_borrow(|contexts| contexts.contains(&Arc::as_ptr(&self.0))) {
            return Ok(());
        }
        Err(Error::Misuse(
            "inside submit(), warm_up() or timed work: this call runs at once, before all that is \
             recorded: record it, or make the call before or after that work"
                .into(),
        ))
    }
}

thread_local! {
    /// The contexts for which this thread is recording.
    static RECORDING: RefCell<Vec<*const Inner>> = const { RefCell::new(Vec::new()) };
}

/// The time in which the work of a context records, also if it panics.
struct Scope;

impl Scope {
    fn new(context: &Context) -> Self {
        RECORDING.with_borrow_mut(|contexts| contexts.push(Arc::as_ptr(&context.0)));
        Scope
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        RECORDING.with_borrow_mut(|contexts| contexts.pop());
    }
}
