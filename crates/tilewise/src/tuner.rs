//! The tuner: times the kernels that serve a problem on this very device, and keeps the fastest for
//! later calls and later runs.
//!
//! Only calls named `tune` and `tune_blocking` ever time kernels to choose one.

mod measure;
mod report;

pub use report::{Trial, Tuned};

use crate::context::Context;
use crate::context::winners::class;
use crate::gemm::Gemm;
use tilewise_core::plan::Forced;
use tilewise_core::{Error, Problem, Result};

impl Gemm {
    /// Times every kernel that serves the product and might be fast, on operands of its own, and
    /// keeps the fastest: for later products of the same class in this context, and in the file of
    /// [`ContextOptions::tuned`](crate::ContextOptions::tuned) for contexts that are opened later.
    /// This blocks, and takes seconds. It takes memory for the operands, and up to some hundred
    /// megabytes even if they are small. If a winner cannot be used for a product of its class, the
    /// planner chooses as if nothing had been tuned.
    ///
    /// There is one result for each part of the product that is planned by itself, mostly one: each
    /// of the [shards](crate::Shards) of B, and each of a few large [groups](Self::grouped).
    ///
    /// A class holds products for which the same kernels should be fast: their formats, layout,
    /// alignment and kind of grouping are equal, their sizes differ by less than a quarter, and
    /// they may have any epilogue.
    ///
    /// The CPU executor has one kernel: nothing is timed or kept there, and [`Tuned::times`] is
    /// empty. If the file cannot be written, the log has a warning, and [`Tuned::not_kept`] says
    /// why.
    ///
    /// ```
    /// use tilewise::{Context, Gemm, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::cpu(); // in place of a GPU, on which this takes seconds
    /// let a = Tensor::upload(&ctx, &[1.0f32; 64 * 32], &[64, 32])?;
    /// for tuned in Gemm::new(&a, &a.t()).tune_blocking()? {
    ///     println!("{tuned}"); // the kernels, the fastest first
    ///     assert!(tuned.winner.is_none());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`run`](Self::run); `Unsupported` for a [list](Self::list) of products.
    #[cfg(not(target_family = "wasm"))]
    pub fn tune_blocking(&self) -> Result<Vec<Tuned>> {
        let problems = self.parts()?.problems();
        problems.iter().map(|problem| self.context().tuned_blocking(problem)).collect()
    }

    /// Like `tune_blocking`, without blocking. The winner is kept in this context only: writing the
    /// file would wait for its lock. [`Context::tuned_text`] gives the winner as text, to be kept
    /// elsewhere.
    ///
    /// ```no_run
    /// # use tilewise::{Gemm, Tensor};
    /// async fn tuned(x: &Tensor, w: &Tensor) -> tilewise::Result<Tensor> {
    ///     let gemm = Gemm::new(x, w);
    ///     gemm.tune().await?;
    ///     gemm.run() // with the fastest kernel
    /// }
    /// ```
    ///
    /// # Errors
    /// The errors of `tune_blocking`.
    pub async fn tune(&self) -> Result<Vec<Tuned>> {
        let mut all = Vec::new();
        for problem in self.parts()?.problems() {
            all.push(self.context().tuned(&problem).await?.0);
        }
        Ok(all)
    }
}

impl Context {
    /// Times the kernels, and keeps the winner in this context.
    pub(crate) async fn tuned(&self, problem: &Problem) -> Result<(Tuned, Option<Forced>)> {
        let class = class(problem, &self.0.caps)?;
        if problem.grouping.traits().listed {
            let text = "tuning for a list of products, whose sizes the device alone knows";
            return Err(Error::Unsupported(text.into()));
        }
        let mut tuned = Tuned { class, ..Tuned::default() };
        if self.is_cpu() {
            return Ok((tuned, None));
        }
        let measured = measure::measure(self, problem).await?;
        let winner = measured.winner;
        tuned.winner = winner.as_ref().map(Forced::to_string);
        (tuned.times, tuned.untried) = (measured.trials, measured.untried);
        if !tuned.times.is_empty() {
            self.0.preferences.winners.add(&tuned.class, winner.clone());
            self.preferences_changed();
            log::info!("tuned on {}: {tuned}", self.adapter_name());
        }
        Ok((tuned, winner))
    }

    /// Like [`tuned`](Self::tuned), blocking, and writes the winner to the file.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn tuned_blocking(&self, problem: &Problem) -> Result<Tuned> {
        let (mut tuned, winner) = pollster::block_on(self.tuned(problem))?;
        if !tuned.times.is_empty() {
            match self.0.preferences.winners.save(&tuned.class, winner) {
                Ok(file) => tuned.file = Some(file),
                Err(why) => tuned.not_kept = Some(why),
            }
        }
        Ok(tuned)
    }

    /// The tuned kernels of this context, as text for [`add_tuned`](Self::add_tuned), in the form
    /// of the file of [`ContextOptions::tuned`](crate::ContextOptions::tuned). A web page can keep
    /// it in `localStorage` for the next visit.
    ///
    /// ```
    /// use tilewise::{Context, ContextOptions};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::request_blocking(&ContextOptions::default())?;
    /// let text = ctx.tuned_text(); // after some calls of `Gemm::tune`
    /// let later = Context::request_blocking(&ContextOptions::default())?;
    /// later.add_tuned(&text)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn tuned_text(&self) -> String {
        self.0.preferences.winners.text()
    }

    /// Adds tuned kernels that another context, with the same adapter, driver and version of this
    /// library, has given as text. They replace the winners of the same classes, and are not
    /// written to a file. Adapters to which browsers give no names all count as one here.
    ///
    /// # Errors
    /// [`Misuse`](crate::Error) for a text that is damaged, or that comes from another adapter,
    /// driver or version. The context is then as before, and has to be tuned anew.
    pub fn add_tuned(&self, text: &str) -> Result<()> {
        let refused = |why| Error::Misuse(format!("tuned kernels: {why}"));
        self.0.preferences.winners.add_text(text).map_err(refused)?;
        self.preferences_changed();
        Ok(())
    }
}
