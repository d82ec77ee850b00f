//! Many cases on several devices.

use super::{Job, Shaders, planned};
use crate::{Case, Filled};
use std::time::Instant;
use tilewise_core::Caps;
use tilewise_core::plan::Plan;
use tilewise_sanitizer::Options;

/// Every case with its plan on each device, but each plan only once.
///
/// # Panics
/// When a case has no plan.
pub fn plans<'a>(
    devices: &'a [Caps],
    cases: &'a [Case],
) -> impl Iterator<Item = (&'a Case, &'a Caps, Plan)> {
    cases.iter().flat_map(move |case| {
        let mut known: Vec<Plan> = Vec::new();
        devices.iter().filter(|caps| case.is_for(caps)).filter_map(move |caps| {
            let plan =
                planned(case, caps).unwrap_or_else(|failure| panic!("{failure}\n    {case:?}"));
            // A plan that copies rows first is a product like any other after the copy.
            let new = !known.contains(&plan) && !plan.copies_rows;
            known.push(plan.clone());
            new.then_some((case, caps, plan))
        })
    })
}

/// Runs cases on devices and fails with what went wrong in the first few of them.
///
/// # Panics
/// When any case failed.
pub fn check(devices: &[Caps], cases: &[Case], options: &Options, rounded: bool) {
    let start = Instant::now();
    let shaders = Shaders::of_library();
    let (mut ran, mut worst, mut failures) = (0, 0f64, Vec::new());
    for (case, caps, plan) in plans(devices, cases) {
        let filled = Filled::new(case, caps).unwrap_or_else(|why| panic!("{why}\n    {case:?}"));
        let outcome = Job { filled, plan, rounded }.run(shaders, options);
        ran += 1;
        match outcome {
            Ok(outcome) => worst = worst.max(outcome.worst),
            Err(failure) => failures.push(format!("{failure}\n    {case:?} {}", caps.name)),
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{ran} runs of {} cases in {seconds:.1} s, worst error {worst:.2} of its bound",
        cases.len()
    );
    let shown = failures.iter().take(4).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} of {ran} failed:\n{shown}", failures.len());
}
