//! The tuner: times the kernels that serve a problem on this very device, and keeps the fastest for later calls and later runs.
//!
//! Nothing is ever timed but in [`Context::tune`] and [`Context::tune_async`].

mod class;
mod measure;
mod winners;

pub(crate) use winners::Winners;

use crate::context::Context;
use std::path::PathBuf;
use tilewise_core::plan::Forced;
use tilewise_core::{Problem, Result};

/// The time of one way to compute a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// A kernel, as [`Gemm::kernel`](crate::Gemm::kernel) takes it, or `planner: ` and the kernels of the plan that is made when none is forced.
    pub name: String,
    /// Seconds of one product on the GPU: the median of the samples.
    pub seconds: f64,
    /// How often it was timed: once when that was hopeless.
    pub samples: usize,
}

/// What tuning a problem found. Its `Display` is a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// The problem's class, to all of which the result applies.
    pub class: String,
    /// The kernel that is faster than what the planner chooses; none when there is none.
    pub winner: Option<Forced>,
    /// The times, the shortest first. Empty on the CPU executor and for a product without elements.
    pub times: Vec<Trial>,
    /// Kernels that were not tried, because their estimates are more than 20 times the best.
    pub untried: usize,
    /// The file in which the winner is kept.
    pub file: Option<PathBuf>,
    /// Why [`Context::tune`] has kept it in none; absent where it has, and where there is nothing to keep.
    pub not_kept: Option<String>,
}

impl std::fmt::Display for Tuned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "class   {}", self.class)?;
        match &self.winner {
            _ if self.times.is_empty() => writeln!(f, "winner  none: there is nothing to choose from")?,
            Some(winner) => writeln!(f, "winner  {winner}")?,
            None => writeln!(f, "winner  the planner's choice")?,
        }
        let best = self.times.first().map_or(0.0, |best| best.seconds);
        for Trial { name, seconds, samples } in &self.times {
            let dropped = if *samples == 1 { "  (timed once)" } else { "" };
            writeln!(f, "  {:>12.6} ms  {:>6.2}x  {name}{dropped}", seconds * 1e3, seconds / best)?;
        }
        if self.untried > 0 {
            let limit = measure::HOPELESS_ESTIMATE;
            writeln!(f, "{} not tried: estimated at more than {limit} times the best", self.untried)?;
        }
        if let Some(file) = &self.file {
            writeln!(f, "kept in {}", file.display())?;
        }
        match &self.not_kept {
            Some(why) => writeln!(f, "not kept: {why}"),
            None => Ok(()),
        }
    }
}

impl Context {
    /// Times every kernel that serves the problem and might be fast, on operands of its own, and keeps the fastest: for later products of the same
    /// class in this context, and in the file of [`ContextOptions::tuned`](crate::ContextOptions::tuned) for contexts that are opened later. Takes
    /// seconds, and as much memory as the operands or some hundred megabytes. Blocks. Where a winner cannot be used for a product of its class, the
    /// planner chooses as if nothing had been tuned.
    ///
    /// A class holds the problems for which about the same is fast: same formats, layout, alignment and kind of grouping, and sizes that differ by
    /// less than a quarter. The epilogue plays no part. [`Gemm::problem`](crate::Gemm::problem) gives a product's problem.
    ///
    /// The CPU executor has one kernel: nothing is timed or kept there, and [`Tuned::times`] is empty. A file that cannot be written is a warning in
    /// the log, and [`Tuned::not_kept`] says why.
    ///
    /// # Errors
    /// Those of [`plan`](tilewise_core::plan()) for a problem that cannot be computed here; `Device` when the device has no memory for the operands;
    /// `DeviceLost`.
    #[cfg(not(target_family = "wasm"))]
    pub fn tune(&self, problem: &Problem) -> Result<Tuned> {
        let mut tuned = pollster::block_on(self.tune_async(problem))?;
        if !tuned.times.is_empty() {
            match self.0.preferences.winners.save(&tuned.class, tuned.winner.clone()) {
                Ok(file) => tuned.file = Some(file),
                Err(why) => tuned.not_kept = Some(why),
            }
        }
        Ok(tuned)
    }

    /// As `tune`, without blocking. The winner is kept in this context and not in the file, whose lock would have to be waited for.
    ///
    /// # Errors
    /// As `tune`; `Unsupported` in a browser without timestamps.
    pub async fn tune_async(&self, problem: &Problem) -> Result<Tuned> {
        let class = class::class(problem, self.caps())?;
        let mut tuned = Tuned { class, winner: None, times: Vec::new(), untried: 0, file: None, not_kept: None };
        if self.is_cpu() {
            return Ok(tuned);
        }
        let measured = measure::measure(self, problem).await?;
        (tuned.winner, tuned.times, tuned.untried) = (measured.winner, measured.trials, measured.untried);
        if !tuned.times.is_empty() {
            self.0.preferences.winners.add(&tuned.class, tuned.winner.clone());
            self.preferences_changed();
            log::info!("tuned on {}: {tuned}", self.adapter_name());
        }
        Ok(tuned)
    }
}
