//! Runs mutants of the WGSL against the cases.

use super::{Bench, Fate, Language, Mutant, Step};
use crate::arithmetic;
use crate::cases::{self, WGSL};
use crate::conversions;
use crate::ops;
use crate::sanitized::{Conversion, Failure, Job, Ran, Record, Shaders, options, planned};
use crate::texts::parts;
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};
use tilewise_core::plan::Pass;
use tilewise_sanitizer::Options;

/// The cases, chosen once for all mutants.
pub struct Wgsl {
    jobs: Vec<Case>,
    shaders: Shaders<'static>,
}

struct Case {
    work: Work,
    files: HashSet<&'static str>,
    /// Operations of the sanitizer in the run without a change.
    operations: u64,
}

/// The work of a case, with the results of the run without a change.
enum Work {
    Product(Box<Job>, Record),
    Conversion(Conversion, Ran),
    /// A ready operation.
    Op(Box<ops::Case>, ops::Ran),
    /// Pairs of numbers.
    Arithmetic(Vec<[u32; 2]>),
}

impl Work {
    fn run_changed(
        &self,
        mutant: &Mutant,
        shaders: &Shaders<'_>,
        text: &str,
    ) -> Result<bool, Failure> {
        let options = quick();
        match self {
            Work::Product(job, record) => job.run_changed(record, shaders, &options),
            Work::Conversion(conversion, ran) => conversion.run_changed(ran, shaders, &options),
            Work::Op(case, ran) => {
                let own = |(path, own)| if path == mutant.file { text } else { own }.to_owned();
                case.check(&options, own).map(|changed| changed.bits == ran.bits)
            }
            Work::Arithmetic(pairs) if mutant.file == arithmetic::FILE => {
                let compute = |pairs: &[_]| crate::sanitized::arithmetic(text, pairs, &options);
                // A few pairs notice most mistakes, so they run first.
                let few: Vec<_> = pairs.iter().copied().step_by(61).collect();
                compute(&few).and_then(|()| compute(pairs)).map(|()| true)
            }
            Work::Arithmetic(_) => Ok(true),
        }
    }

    fn name(&self) -> String {
        match self {
            Work::Product(job, _) => format!("{:?}", job.filled.case),
            Work::Conversion(conversion, _) => conversion.name.clone(),
            Work::Op(case, _) => case.name.clone(),
            Work::Arithmetic(pairs) => format!("{} pairs of numbers", pairs.len()),
        }
    }
}

impl Wgsl {
    /// Prepares the cases.
    ///
    /// # Errors
    /// One of the cases fails without any change.
    pub fn new() -> Result<Self, String> {
        let shaders = Shaders::default();
        let options = quick();
        let [with_f16, without] = cases::devices();
        let (five, many) = cases::many_workgroups(WGSL);
        let (little, pieces) = cases::pieces(WGSL);
        let (three, by_threes) = cases::three_buffers(WGSL);
        let (software, sparse) = cases::sparse(WGSL);
        let (few, mut bound) = cases::few_buffers(WGSL);
        // Only the kernel that shares nothing runs these cases; the others would run them alike.
        bound.retain(|case| case.kernel == Some(WGSL.floor()));
        let mut chosen = Vec::new();
        for (list, caps, rounded) in [
            (cases::for_mutants(WGSL), &with_f16, false),
            (cases::rounding(WGSL), &with_f16, true),
            (many, &five, false),
            (pieces, &little, false),
            (bound, &few, false),
            (sparse, &software, false),
            (by_threes, &three, false),
        ] {
            for case in list.into_iter().filter(|case| case.is_for(caps)) {
                let plan =
                    planned(&case, caps).map_err(|failure| format!("{failure}: {case:?}"))?;
                // Without the extension there are other loaders and stores. One kernel shows them.
                let other = planned(&case, &without)
                    .is_ok_and(|other| other.passes != plan.passes && plan.passes.len() < 2);
                let naive = case.kernel.as_ref().is_some_and(|name| name.starts_with("naive"));
                if !plan.passes.is_empty() && !plan.copies_rows {
                    chosen.push((case.clone(), caps.clone(), rounded));
                }
                if other && naive {
                    chosen.push((case, without.clone(), rounded));
                }
            }
        }
        let run = |(case, caps, rounded): &(crate::Case, tilewise_core::Caps, bool)| {
            let mut job = Job::new(case, caps).map_err(|failure| format!("{failure}: {case:?}"))?;
            job.rounded = *rounded;
            as_written(&mut job.plan.passes);
            let record = job
                .run_recorded(&shaders, &options)
                .map_err(|failure| format!("{failure}: {case:?}"))?;
            let (files, operations) = (files(&job.plan.passes), record.operations);
            Ok(Case { work: Work::Product(Box::new(job), record), files, operations })
        };
        let mut jobs = chosen.par_iter().map(run).collect::<Result<Vec<_>, String>>()?;
        let convert = |mut conversion: Conversion| {
            as_written(&mut conversion.passes);
            let ran = conversion
                .run(&shaders, &options)
                .map_err(|failure| format!("{failure}: {}", conversion.name))?;
            let (files, operations) = (files(&conversion.passes), ran.operations);
            Ok(Case { work: Work::Conversion(conversion, ran), files, operations })
        };
        let conversions = conversions::planned(&with_f16).map_err(|error| error.to_string())?;
        jobs.extend(conversions.into_par_iter().map(convert).collect::<Result<Vec<_>, String>>()?);
        let operate = |case: ops::Case| {
            let ran = case
                .check(&options, |(_, text)| text.to_owned())
                .map_err(|failure| format!("{failure}: {}", case.name))?;
            let (files, operations) = (ran.files.clone(), ran.operations);
            Ok(Case { work: Work::Op(Box::new(case), ran), files, operations })
        };
        let small = ops::small(MOST).into_iter().filter(|case| !case.is_empty());
        let small: Vec<_> = small.chain(ops::in_parts()).collect();
        jobs.extend(small.into_par_iter().map(operate).collect::<Result<Vec<_>, String>>()?);
        let pairs = arithmetic::pairs(PAIRS);
        crate::sanitized::arithmetic(arithmetic::text(), &pairs, &options)
            .map_err(|failure| failure.to_string())?;
        let files = [arithmetic::FILE].into();
        jobs.push(Case { work: Work::Arithmetic(pairs), files, operations: 0 });
        take_turns(&mut jobs);
        Ok(Wgsl { jobs, shaders })
    }

    /// Tries cases in this order, and moves the case that notices to the front: it is the likeliest
    /// to notice the next mistake nearby.
    fn try_in(&self, order: &mut [&Case], mutant: &Mutant, step: usize) -> (Fate, String) {
        let files = super::files(Language::Wgsl);
        let original = files.iter().find(|(path, _)| *path == mutant.file);
        let original = original.map_or("", |(_, text)| text);
        let text = mutant.apply(original);
        let shaders = Shaders::with(mutant.file, &text, &self.shaders);
        let mut same_bits = true;
        let concerned =
            order.iter().enumerate().filter(|(_, case)| case.files.contains(mutant.file));
        for (at, case) in concerned.step_by(step) {
            let failure = match case.work.run_changed(mutant, &shaders, &text) {
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
                Failure::Found(kind, _) => Fate::Found(kind.name()),
            };
            let why = format!("{failure}\n    {}", case.work.name());
            order[..=at].rotate_right(1);
            return (fate, why);
        }
        (Fate::Survived { same_bits }, String::new())
    }
}

impl Bench for Wgsl {
    fn size(&self) -> String {
        let operations: u64 = self.jobs.iter().map(|case| case.operations).sum();
        format!("{} cases of {} million operations", self.jobs.len(), operations / 1_000_000)
    }

    fn run(&self, mutants: &[Mutant], step: &Step<'_>) -> Vec<Fate> {
        let fates = |neighbours: &[Mutant]| {
            let mut order: Vec<&Case> = self.jobs.iter().collect();
            neighbours
                .iter()
                .map(|mutant| self.try_in(&mut order, mutant, step(mutant)).0)
                .collect::<Vec<_>>()
        };
        mutants.par_chunks(NEIGHBOURS).flat_map_iter(fates).collect()
    }

    fn fate(&self, mutant: &Mutant) -> (Fate, String) {
        self.try_in(&mut self.jobs.iter().collect::<Vec<_>>(), mutant, 1)
    }
}

/// Sorts cases by their cost, and lets mainloops take turns: a mistake in a file that all of them
/// share may show in one only.
fn take_turns(cases: &mut [Case]) {
    cases.sort_by_key(|case| case.operations);
    let mut turns = HashMap::new();
    cases.sort_by_cached_key(|case| {
        let mainloop = case.files.iter().filter(|file| file.starts_with("mainloop/")).min();
        let turn: &mut usize = turns.entry(mainloop.copied()).or_default();
        *turn += 1;
        *turn
    });
}

/// Leaves marked loops as software devices get them. GPUs get repeated texts, which are many times
/// as long for naga. The sanitizer finds a mistake in such a loop in either form.
fn as_written(passes: &mut [Pass]) {
    passes.iter_mut().for_each(|pass| pass.unroll = false);
}

/// The files of passes.
fn files(passes: &[Pass]) -> HashSet<&'static str> {
    passes.iter().flat_map(parts).map(|part| part.file).collect()
}

/// Most elements of the operations that mutants meet.
const MOST: usize = 700;

/// The number of random pairs of numbers, besides the pairs of edges.
const PAIRS: usize = 6_000;

/// Mutants that are tried one after the other, in the order of the text.
const NEIGHBOURS: usize = 64;

/// One thread for each run, because mutants run side by side. No loop of these cases is as long as
/// the bound.
fn quick() -> Options {
    let mut options = options();
    (options.parallel, options.stop_at_first) = (false, true);
    (options.max_iterations, options.max_findings) = (1100, 1);
    options
}
