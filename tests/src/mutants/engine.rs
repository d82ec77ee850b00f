//! Runs mutants against the cases.

use super::Mutant;
use crate::cases::{self, WGSL};
use crate::sanitized::{Failure, Job, Record, Shaders, options, planned};
use rayon::prelude::*;
use std::collections::HashSet;
use tilewise_sanitizer::{Kind, Options};
use tilewise_shaders::FILES;

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// It is no valid WGSL.
    Invalid,
    /// A case failed by a finding of this kind.
    Found(Kind),
    /// A case gave wrong results.
    Wrong,
    /// It does not fit the plan: the size of its workgroups, their memory, or its bindings.
    Refused,
    /// Nothing noticed.
    Survived {
        /// Whether every output had the bits that it has without the change.
        same_bits: bool,
    },
}

/// The cases, prepared once for all mutants.
pub struct Bench {
    jobs: Vec<Case>,
    shaders: Shaders<'static>,
}

struct Case {
    job: Job,
    files: HashSet<&'static str>,
    /// The run without any change.
    record: Record,
}

impl Bench {
    /// Prepares the cases.
    ///
    /// # Errors
    /// When one of them fails without any change.
    pub fn new() -> Result<Self, String> {
        let shaders = Shaders::default();
        let options = quick();
        let [with_f16, without] = cases::devices();
        let (five, many) = cases::many_workgroups(WGSL);
        let (little, pieces) = cases::pieces(WGSL);
        let mut prepared = Vec::new();
        for (list, caps, rounded) in [
            (cases::for_mutants(WGSL), &with_f16, false),
            (cases::rounding(WGSL), &with_f16, true),
            (many, &five, false),
            (pieces, &little, false),
        ] {
            for case in list.into_iter().filter(|case| case.is_for(caps)) {
                let plan = planned(&case, caps).map_err(|failure| format!("{failure}: {case:?}"))?;
                // Without the extension there are other loaders and stores; one kernel shows them.
                let other =
                    planned(&case, &without).is_ok_and(|other| other.passes != plan.passes && plan.passes.len() < 2);
                let naive = case.kernel.as_ref().is_some_and(|name| name.starts_with("naive"));
                if !plan.passes.is_empty() {
                    prepared.push((case.clone(), caps.clone(), rounded));
                }
                if other && naive {
                    prepared.push((case, without.clone(), rounded));
                }
            }
        }
        let run = |(case, caps, rounded): &(crate::Case, tilewise_core::Caps, bool)| {
            let mut job = Job::new(case, caps).map_err(|failure| format!("{failure}: {case:?}"))?;
            job.rounded = *rounded;
            let record = job.run_recorded(&shaders, &options).map_err(|failure| format!("{failure}: {case:?}"))?;
            let files = job.plan.passes.iter().flat_map(|pass| pass.parts.iter().map(|part| part.file)).collect();
            Ok(Case { job, files, record })
        };
        let mut jobs = prepared.par_iter().map(run).collect::<Result<Vec<_>, String>>()?;
        jobs.sort_by_key(|case| case.record.operations);
        Ok(Bench { jobs, shaders })
    }

    /// Number of cases, and the operations of all of them.
    pub fn size(&self) -> (usize, u64) {
        (self.jobs.len(), self.jobs.iter().map(|case| case.record.operations).sum())
    }

    /// The fates of mutants, in their order.
    pub fn run(&self, mutants: &[Mutant]) -> Vec<Fate> {
        let fates = |neighbours: &[Mutant]| {
            let mut order: Vec<&Case> = self.jobs.iter().collect();
            neighbours.iter().map(|mutant| self.try_in(&mut order, mutant).0).collect::<Vec<_>>()
        };
        mutants.par_chunks(NEIGHBOURS).flat_map_iter(fates).collect()
    }

    /// The fate of one mutant, and the case and the report that decided it.
    pub fn fate(&self, mutant: &Mutant) -> (Fate, String) {
        self.try_in(&mut self.jobs.iter().collect::<Vec<_>>(), mutant)
    }

    /// Tries cases in this order, and moves to its front the one that notices: it is the likeliest to notice the next mistake nearby.
    fn try_in(&self, order: &mut [&Case], mutant: &Mutant) -> (Fate, String) {
        let original = FILES.iter().find(|(path, _)| *path == mutant.file).map_or("", |(_, text)| text);
        let text = mutant.apply(original);
        let shaders = Shaders::with(mutant.file, &text, &self.shaders);
        let options = quick();
        let mut same_bits = true;
        for (at, case) in order.iter().enumerate().filter(|(_, case)| case.files.contains(mutant.file)) {
            let failure = match case.job.run_changed(&case.record, &shaders, &options) {
                Ok(same) => {
                    same_bits &= same;
                    continue;
                }
                Err(failure) => failure,
            };
            let fate = match failure {
                Failure::Invalid(_) => Fate::Invalid,
                Failure::Refused(_) => Fate::Refused,
                Failure::Wrong(_) => Fate::Wrong,
                Failure::Found(kind, _) => Fate::Found(kind),
            };
            let why = format!("{failure}\n    {:?}", case.job.prepared.case);
            order[..=at].rotate_right(1);
            return (fate, why);
        }
        (Fate::Survived { same_bits }, String::new())
    }
}

/// Mutants that are tried one after the other, in the order of the text.
const NEIGHBOURS: usize = 16;

/// One thread per run, since mutants run side by side; no loop of these cases is as long as the bound.
fn quick() -> Options {
    Options { parallel: false, max_iterations: 5000, max_findings: 1, ..options() }
}
