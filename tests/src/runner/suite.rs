//! Runs many cases in one test.

use super::{Outcome, outcome};
use crate::{Adapter, Case, adapters};
use std::time::Instant;
use tilewise::Context;

/// Waits for [`outcome`].
///
/// # Errors
/// The errors of `outcome`.
pub fn run(context: &Context, case: &Case) -> Result<Outcome, String> {
    pollster::block_on(outcome(context, case))
}

/// Runs cases and keeps the failures, so that one test reports all of them.
#[derive(Default)]
pub struct Suite {
    failures: Vec<String>,
    ran: usize,
    worst: f64,
}

impl Suite {
    /// Runs on each adapter the cases that `cases` gives for it.
    ///
    /// # Panics
    /// When any failed. The message has the first few failures, and their number.
    pub fn on_every_adapter(cases: impl Fn(&Adapter) -> Vec<Case>) {
        for adapter in adapters() {
            let mut suite = Suite::default();
            suite.run(adapter.name(), &adapter.context, &cases(adapter));
            suite.finish(adapter.name());
        }
    }

    /// Runs cases on a context.
    pub fn run(&mut self, name: &str, context: &Context, cases: &[Case]) {
        let cases: Vec<_> = cases.iter().filter(|case| case.is_for(context.caps())).collect();
        assert!(!cases.is_empty(), "no cases for {name}");
        let start = Instant::now();
        for (index, case) in cases.iter().enumerate() {
            match run(context, case) {
                Ok(outcome) => self.worst = self.worst.max(outcome.worst),
                Err(what) => {
                    self.failures.push(format!("{name}, case {index}: {what}\n    {case:?}"))
                }
            }
        }
        self.ran += cases.len();
        println!(
            "{name}: {} cases in {:.1} s, worst error {:.2} of its bound",
            cases.len(),
            start.elapsed().as_secs_f64(),
            self.worst
        );
    }

    /// Notes the outcome of a check that is not a case.
    pub fn note(&mut self, name: &str, outcome: Result<(), String>) {
        self.ran += 1;
        if let Err(what) = outcome {
            self.failures.push(format!("{name}: {what}"));
        }
    }

    /// Fails if any case or check has failed.
    ///
    /// # Panics
    /// When any case failed.
    pub fn finish(self, name: &str) {
        let Suite { failures, ran, .. } = self;
        let shown = failures.iter().take(8).cloned().collect::<Vec<_>>().join("\n  ");
        assert!(failures.is_empty(), "{name}: {} of {ran} failed:\n  {shown}", failures.len());
    }
}
