//! The results of tuning a problem.

use std::path::PathBuf;

/// Kernels whose estimate is more than this many times the best are not tried.
pub(super) const HOPELESS_ESTIMATE: f64 = 20.0;

/// The time of one way to compute a problem.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Trial {
    /// A kernel, as [`Gemm::kernel`](crate::Gemm::kernel) takes it, or `planner: ` and the kernels
    /// that the planner chose.
    pub name: String,
    /// Seconds of one product on the GPU: the median of the samples.
    pub seconds: f64,
    /// How often it was timed: once if it was far slower than others.
    pub samples: usize,
}

/// The result of tuning. Its `Display` is a table.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Tuned {
    /// The class. The result applies to all products of this class.
    pub class: String,
    /// The fastest kernel, as [`Gemm::kernel`](crate::Gemm::kernel) takes it; none when the
    /// planner's choice is as fast.
    pub winner: Option<String>,
    /// The times, the shortest first. Empty on the CPU executor and for a product without elements.
    pub times: Vec<Trial>,
    /// Kernels that were not tried, because their estimates are more than 20 times the best.
    pub untried: usize,
    /// The file in which the winner is kept.
    pub file: Option<PathBuf>,
    /// Why [`Gemm::tune_blocking`](crate::Gemm::tune_blocking) could not write the file;
    /// absent if it did, or if there is nothing to keep.
    pub not_kept: Option<String>,
}

impl std::fmt::Display for Tuned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "class   {}", self.class)?;
        match &self.winner {
            _ if self.times.is_empty() => {
                writeln!(f, "winner  none: there is nothing to choose from")?
            }
            Some(winner) => writeln!(f, "winner  {winner}")?,
            None => writeln!(f, "winner  the planner's choice")?,
        }
        let best = self.times.first().map_or(0.0, |best| best.seconds);
        for Trial { name, seconds, samples } in &self.times {
            let dropped = if *samples == 1 { "  (timed once)" } else { "" };
            writeln!(f, "  {:>12.6} ms  {:>6.2}x  {name}{dropped}", seconds * 1e3, seconds / best)?;
        }
        if self.untried > 0 {
            let limit = HOPELESS_ESTIMATE;
            writeln!(
                f,
                "{} not tried: estimated at more than {limit} times the best",
                self.untried
            )?;
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
