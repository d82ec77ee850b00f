//! Operations that are recorded and not run: to be explained, or compiled in advance.

use super::Recorder;
use crate::context::parts::Parts;
use crate::context::{Backend, Context};
use crate::gpu::Nowhere;
#[cfg(not(target_family = "wasm"))]
use std::sync::atomic::{AtomicUsize, Ordering};
use tilewise_core::Result;
use tilewise_core::plan::Plan;

/// A product: its parts, and their plans.
pub(crate) type Product = (Parts, Vec<Plan>);

/// Records an operation once more.
#[cfg(not(target_family = "wasm"))]
type Again = Box<dyn Fn(&mut Recorder<'_>) -> Result<()> + Send + Sync>;
#[cfg(target_family = "wasm")]
type Again = Box<dyn Fn(&mut Recorder<'_>) -> Result<()>>;

/// The operations that some work has recorded. The CPU executor has checked them.
#[derive(Default)]
pub(crate) struct Planned {
    pub(crate) products: Vec<Product>,
    /// All operations, products among them.
    pub(crate) operations: Vec<Again>,
    /// Whether the work will run many times: operations that count on the host refuse that.
    #[cfg(feature = "custom-kernels")]
    pub(crate) repeats: bool,
}

impl Context {
    /// Compiles what `work` records, and runs nothing: the first calls of its kind then wait for
    /// nothing. No buffer changes. Give it what [`submit`](Self::submit) will get, such as a step
    /// of a model.
    ///
    /// ```
    /// use tilewise::{Context, Gemm, Tensor, ops};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let x = Tensor::upload(&ctx, &[1.0f32, 2.0], &[1, 2])?;
    /// let w = Tensor::upload(&ctx, &[3.0f32, 0.0, 0.0, 3.0], &[2, 2])?;
    /// let y = Tensor::upload(&ctx, &[0.0f32; 2], &[1, 2])?;
    /// ctx.warm_up(|to| {
    ///     Gemm::new(&x, &w).record(to, &y)?;
    ///     ops::softmax(&y).record(to, &y)
    /// })?;
    /// assert_eq!(y.read_blocking::<f32>()?, [0.0, 0.0]); // nothing ran
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Threads compile at once, except through OpenGL and in browsers. Tensors that `work` makes
    /// take memory, and it must only record, as in [`submit`](Self::submit). Dispatches of your own
    /// ([`Recorder::dispatch`]) are left out. The CPU executor checks what is recorded, and parses
    /// kernels.
    ///
    /// # Errors
    /// The errors of `work`, then of the first operation that cannot run on this device; `Misuse`
    /// inside [`submit`](Self::submit). A browser compiles later, and [`wait`](Self::wait) gives
    /// the errors of its compiler.
    pub fn warm_up<T>(&self, work: impl FnOnce(&mut Recorder<'_>) -> Result<T>) -> Result<T> {
        self.warm_up_of(Planned::default(), work)
    }

    /// [`warm_up`](Self::warm_up), of work that will run many times.
    pub(super) fn warm_up_repeated(
        &self,
        work: impl FnOnce(&mut Recorder<'_>) -> Result<()>,
    ) -> Result<()> {
        self.warm_up_of(
            Planned {
                #[cfg(feature = "custom-kernels")]
                repeats: true,
                ..Default::default()
            },
            work,
        )
    }

    fn warm_up_of<T>(
        &self,
        mut planned: Planned,
        work: impl FnOnce(&mut Recorder<'_>) -> Result<T>,
    ) -> Result<T> {
        let made = self.recording(|| work(&mut Recorder::planning(&mut planned, self)))?;
        self.compile_all(&planned.operations)?;
        Ok(made)
    }

    /// The products that `work` records, in their order. Nothing is computed.
    #[cfg(feature = "custom-kernels")]
    pub(crate) fn products(
        &self,
        work: impl FnOnce(&mut Recorder<'_>) -> Result<()>,
    ) -> Result<Vec<Product>> {
        let mut planned = Planned::default();
        work(&mut Recorder::planning(&mut planned, self))?;
        Ok(planned.products)
    }

    /// Compiles the operations, on as many threads as the machine has. This thread goes through all
    /// of them, and waits for what another compiles: so the error is that of the first.
    fn compile_all(&self, operations: &[Again]) -> Result<()> {
        let Backend::Gpu(gpu) = &self.0.backend else { return Ok(()) };
        gpu.device.still_alive()?;
        let compile = |again: &Again| again(&mut Recorder::onto(&mut Nowhere, self));
        #[cfg(not(target_family = "wasm"))]
        if gpu.device.takes_threads() {
            let next = AtomicUsize::new(0);
            let help = || {
                while let Some(again) = operations.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // Its error comes again to the thread that goes through all.
                    drop(compile(again));
                }
            };
            let threads = std::thread::available_parallelism().map_or(1, Into::into);
            return std::thread::scope(|scope| {
                for _ in 0..threads.min(operations.len()) {
                    // Without a thread, this one compiles.
                    drop(std::thread::Builder::new().spawn_scoped(scope, help));
                }
                let done = operations.iter().try_for_each(compile);
                next.store(operations.len(), Ordering::Relaxed);
                done
            });
        }
        operations.iter().try_for_each(compile)
    }
}
