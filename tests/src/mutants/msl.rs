//! Runs mutants of the MSL against the cases. Most mutants share a text; a few need their own.

mod blame;

use super::sites::{Rendered, in_order, render};
use super::{Bench, Fate, Key, Language, Mutant, files, msl_cases};
use crate::harness::{self, Kernel, Kind, Mode, Source};
use crate::msl::{Failure, Options, PLAIN, as_planned, step, together};
use crate::sanitized::{Job, Written};
use crate::texts::parts;
use blame::blamed;
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tilewise_core::plan::Pass;
use tilewise_msl::{assemble, assemble_with};

/// The cases, chosen once for all mutants.
pub struct Msl {
    cases: Vec<Case>,
    texts: usize,
    ids: HashMap<Key, u32>,
    /// Mutants whose text is never valid.
    invalid: HashSet<u32>,
    /// Mutants that need texts of their own.
    alone: HashSet<u32>,
}

struct Case {
    job: Job,
    steps: Vec<Step>,
    /// The memory before each pass, and after the last.
    written: Vec<Written>,
    /// An estimate of the case's time: threads that run, times steps along K.
    work: u64,
}

/// A pass in the text that has all the mutants.
struct Step {
    text: Arc<Text>,
    reached: HashSet<u32>,
}

struct Text {
    text: String,
    kernel: Kernel,
    races: OnceLock<Result<Kernel, String>>,
}

impl Text {
    fn kernel(&self, mode: Mode) -> Result<&Kernel, Failure> {
        match mode {
            Mode::Races => {
                let compiled = self.races.get_or_init(|| Kernel::compile_quickly(&self.text, mode));
                compiled.as_ref().map_err(|why| Failure::Invalid(why.clone()))
            }
            _ => Ok(&self.kernel),
        }
    }
}

/// Memory is watched, because a change may lead anywhere. A loop that does not end in time counts
/// as endless.
const WATCHED: Options = Options { mode: Mode::Memory, timeout: Duration::from_secs(1), ..PLAIN };

/// The time of a second try, because a busy machine may delay the first one.
const PATIENCE: Duration = Duration::from_secs(4);

/// Options for mutants that show only in the order of accesses.
const RACES: Options = Options { mode: Mode::Races, ..WATCHED };

impl Msl {
    /// Prepares the cases that these mutants concern. Without clang there are none, which is
    /// printed.
    ///
    /// # Errors
    /// One of the cases fails without any change.
    ///
    /// # Panics
    /// When there is no clang and `TILEWISE_REQUIRE` wants `msl`.
    pub fn new(mutants: &[Mutant]) -> Result<Option<Self>, String> {
        if !harness::available(WATCHED.mode) || !harness::available(RACES.mode) {
            return Ok(None);
        }
        let changed: HashSet<_> = mutants.iter().map(|mutant| mutant.file).collect();
        let concerns = |pass: &Pass| parts(pass).iter().any(|part| changed.contains(part.file));
        let prepare = |(case, caps): &(crate::Case, tilewise_core::Caps)| {
            Job::new(case, caps).map_err(|failure| format!("{failure}: {case:?}"))
        };
        let mut jobs = msl_cases::all().par_iter().map(prepare).collect::<Result<Vec<_>, _>>()?;
        jobs.retain(|job| job.plan.passes.iter().any(concerns));
        let of_file = |(path, text): &(&str, &str)| {
            in_order(text, mutants.iter().filter(|mutant| mutant.file == *path))
        };
        let ordered: Vec<&Mutant> = files(Language::Msl).iter().flat_map(of_file).collect();
        let numbered: Vec<(u32, &Mutant)> = (1..).zip(ordered).collect();
        let ids = numbered.iter().map(|(id, mutant)| (mutant.key(), *id)).collect();
        let mut bench = Msl {
            cases: Vec::new(),
            texts: 0,
            ids,
            invalid: HashSet::new(),
            alone: HashSet::new(),
        };
        let texts = bench.compile(&numbered, &jobs)?;
        bench.texts = texts.len();
        let run = |job: Job| Case::new(job, &texts);
        bench.cases = jobs.into_par_iter().map(run).collect::<Result<_, _>>()?;
        bench.cases.sort_by_key(|case| case.work);
        bench.compile_raced();
        Ok(Some(bench))
    }

    /// The texts of all passes, with all mutants that clang takes there; it notes the others.
    fn compile(
        &mut self,
        mutants: &[(u32, &Mutant)],
        jobs: &[Job],
    ) -> Result<HashMap<String, Arc<Text>>, String> {
        let mut texts = HashMap::new();
        let passes = jobs.iter().flat_map(|job| &job.plan.passes);
        let wanted: BTreeMap<String, &Pass> = passes.map(|pass| (assemble(pass), pass)).collect();
        let mut wanted: Vec<_> = wanted.into_iter().collect();
        // The first few texts are far apart: clang's complaints about them cover most mutants.
        let mut count = FIRST;
        let apart = wanted.len().div_ceil(count).max(1);
        wanted = (0..apart)
            .flat_map(|start| wanted.iter().skip(start).step_by(apart))
            .cloned()
            .collect();
        while !wanted.is_empty() {
            let files: HashMap<&str, Rendered> = self.rendered(mutants);
            let replaced = |path: &str| files.get(path).map(|file| file.text.as_str());
            let text = |pass: &Pass| assemble_with(pass, replaced).expect("the library's parts");
            let tried: Vec<_> = wanted.drain(..count.min(wanted.len())).collect();
            let texts_of: Vec<_> = tried.iter().map(|(_, pass)| text(pass)).collect();
            // The first texts are there to be refused, each for its own reasons, so each is
            // compiled alone.
            let chunk = if count == FIRST { 1 } else { together(tried.len()) };
            let kernels: Vec<_> = compile_all(&texts_of, chunk, WATCHED.mode);
            let kernels = kernels.into_iter().zip(texts_of);
            let compiled =
                tried.into_iter().zip(kernels).map(|((original, pass), (kernel, text))| {
                    (
                        original,
                        pass,
                        kernel.map(|kernel| Text { text, kernel, races: OnceLock::new() }),
                    )
                });
            let noted = self.invalid.len() + self.alone.len();
            let mut refused = None;
            for (original, pass, result) in compiled {
                match result {
                    Ok(text) => {
                        texts.insert(original, Arc::new(text));
                    }
                    Err(complaints) => {
                        let blamed = blamed(&complaints, &files);
                        self.invalid.extend(blamed.invalid);
                        self.alone.extend(blamed.alone);
                        wanted.push((original, pass));
                        refused = Some(complaints);
                    }
                }
            }
            match refused {
                Some(complaints) if noted == self.invalid.len() + self.alone.len() => {
                    return Err(format!("no mutant is to blame:\n{complaints}"));
                }
                Some(_) => {}
                None => count = usize::MAX,
            }
        }
        Ok(texts)
    }

    /// Compiles the texts of cases with races again, under ThreadSanitizer.
    fn compile_raced(&self) {
        let raced = self.raced();
        let steps = raced.iter().flat_map(|case| &case.steps);
        let texts: BTreeMap<&str, &Text> =
            steps.map(|step| (step.text.text.as_str(), &*step.text)).collect();
        let bare: Vec<_> = texts.keys().collect();
        let kernels = compile_all(&bare, together(bare.len()), RACES.mode);
        for (text, kernel) in texts.values().zip(kernels) {
            let _ = text.races.set(kernel);
        }
    }

    /// The files with all mutants that were not refused yet.
    fn rendered(&mut self, mutants: &[(u32, &Mutant)]) -> HashMap<&'static str, Rendered> {
        let mut rendered = HashMap::new();
        for (path, text) in files(Language::Msl) {
            let known = |id: &u32| self.invalid.contains(id) || self.alone.contains(id);
            let own: Vec<_> = mutants
                .iter()
                .filter(|(id, mutant)| mutant.file == path && !known(id))
                .copied()
                .collect();
            let file = render(path, text, &own);
            let placed: HashSet<u32> = file.mutants().collect();
            self.alone.extend(own.iter().map(|(id, _)| *id).filter(|id| !placed.contains(id)));
            rendered.insert(path, file);
        }
        rendered
    }

    /// Tries cases in this order, and moves the case that notices to the front: it is the likeliest
    /// to notice the next mistake nearby.
    fn try_in(&self, order: &mut [&Case], mutant: &Mutant, step: usize) -> (Fate, String) {
        let Some(&id) = self.ids.get(&mutant.key()) else {
            return (Fate::Invalid, "it was not prepared".into());
        };
        if self.invalid.contains(&id) {
            return (Fate::Invalid, String::new());
        }
        let alone = self.alone.contains(&id).then(|| Alone::new(mutant));
        let once = |case: &Case, options| match &alone {
            Some(alone) => case.run_alone(alone, options),
            None => case.run(id, options),
        };
        let run = |case: &Case, options| match once(case, options) {
            Err(Failure::Found(Kind::Timeout, _)) => {
                once(case, Options { timeout: PATIENCE, ..options })
            }
            result => result,
        };
        // Each race runs in a new process, because each thread has its own. A process that ran
        // something before may miss races.
        let race = |case: &Case| {
            std::thread::scope(|scope| {
                scope
                    .spawn(|| run(case, RACES))
                    .join()
                    .expect("a thread that panics panics here too")
            })
        };
        let races = || try_each(&mut self.raced(), usize::MAX, step, race);
        let results = |order: &mut [&Case]| match alone {
            Some(_) => try_each(&mut self.one_of_each_text(mutant.file), TEXTS, step, |case| {
                run(case, WATCHED)
            }),
            None => try_each(order, usize::MAX, step, |case| run(case, WATCHED)),
        };
        let survived = |fate: &(Fate, String)| matches!(fate.0, Fate::Survived { .. });
        if mutant.operator == "barrier" {
            let raced = races();
            if survived(&raced) { results(order) } else { raced }
        } else {
            let tried = results(order);
            if !survived(&tried) {
                return tried;
            }
            let raced = races();
            if survived(&raced) { tried } else { raced }
        }
    }

    fn raced(&self) -> Vec<&Case> {
        self.cases.iter().filter(|case| msl_cases::is_raced(&case.job.filled.case)).collect()
    }

    /// For each text that has a file, the longest case; the first ones are far apart.
    fn one_of_each_text(&self, file: &str) -> Vec<&Case> {
        let mut longest: BTreeMap<&str, &Case> = BTreeMap::new();
        for case in &self.cases {
            for (step, pass) in case.steps.iter().zip(&case.job.plan.passes) {
                if parts(pass).iter().any(|part| part.file == file) {
                    longest.insert(&step.text.text, case);
                }
            }
        }
        let all: Vec<_> = longest.into_values().collect();
        let apart = all.len().div_ceil(TEXTS).max(1);
        (0..apart).flat_map(|start| all.iter().skip(start).step_by(apart)).copied().collect()
    }
}

/// Compiles changed texts, `together` at a time.
fn compile_all<T: AsRef<str> + Sync>(
    texts: &[T],
    together: usize,
    mode: Mode,
) -> Vec<Result<Kernel, String>> {
    let compile = |texts: &[T]| {
        let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
        Kernel::compile_all(&texts, mode, Source::Changed)
    };
    texts.par_chunks(together).flat_map_iter(compile).collect()
}

/// The number of texts to compile at first.
const FIRST: usize = 8;

/// The most texts to try for a mutant that needs its own.
const TEXTS: usize = 16;

/// Tries up to `most` of the cases that `run` concerns, one of every `step`. The fate says whether
/// all outputs kept their bits. `run` gives none if there is nothing to run.
fn try_each(
    order: &mut [&Case],
    most: usize,
    step: usize,
    run: impl Fn(&Case) -> Result<Option<bool>, Failure>,
) -> (Fate, String) {
    let (mut same_bits, mut tried) = (true, 0);
    for at in (0..order.len()).step_by(step) {
        match run(order[at]) {
            Ok(None) => {}
            Ok(Some(same)) => {
                same_bits &= same;
                tried += 1;
                if tried == most {
                    break;
                }
            }
            Err(failure) => {
                let fate = match &failure {
                    Failure::Invalid(_) => Fate::Invalid,
                    Failure::Refused(_) => Fate::Refused,
                    Failure::Wrong(_) => Fate::Wrong,
                    Failure::Found(kind, _) => Fate::Found(name(*kind)),
                };
                let why = format!("{failure}\n    {:?}", order[at].job.filled.case);
                order[..=at].rotate_right(1);
                return (fate, why);
            }
        }
    }
    (Fate::Survived { same_bits }, String::new())
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Race => "race",
        Kind::Memory => "out-of-bounds",
        Kind::Undefined => "undefined",
        Kind::Divergence => "divergent-barrier",
        Kind::Crash => "crash",
        Kind::Timeout => "endless-loop",
    }
}

/// A mutant in code that the compiler evaluates.
struct Alone {
    file: &'static str,
    text: String,
}

impl Alone {
    fn new(mutant: &Mutant) -> Self {
        let original = files(Language::Msl)
            .iter()
            .find(|(path, _)| *path == mutant.file)
            .map_or("", |(_, text)| text);
        Alone { file: mutant.file, text: mutant.apply(original) }
    }
}

impl Case {
    fn new(job: Job, texts: &HashMap<String, Arc<Text>>) -> Result<Self, String> {
        let mut written = vec![job.unwritten()];
        let mut steps = Vec::new();
        let unchanged = Options { timeout: Duration::from_secs(60), ..WATCHED };
        let failed = |failure: Failure| format!("{failure}: {:?}", job.filled.case);
        for pass in &job.plan.passes {
            let text = texts[&assemble(pass)].clone();
            as_planned(&text.kernel, pass).map_err(failed)?;
            let mut next = written[written.len() - 1].clone();
            let reached = step(&job, pass, &text.kernel, unchanged, &mut next).map_err(failed)?;
            steps.push(Step { text, reached: reached.into_iter().collect() });
            written.push(next);
        }
        let c = written[steps.len()].c.clone();
        job.judge(c).map_err(|failure| failed(failure.into()))?;
        let threads = |pass: &Pass| u64::from(pass.grid[0] * pass.grid[1] * pass.threads);
        let work = job.plan.passes.iter().map(threads).sum::<u64>() * (8 + job.plan.problem.k);
        Ok(Case { job, steps, written, work })
    }

    /// Whether C has the bits that it has without the change; none if no pass asks about the
    /// change. A pass that does not ask about it, and begins with the recorded memory, leaves what
    /// it left then.
    fn run(&self, id: u32, options: Options) -> Result<Option<bool>, Failure> {
        if !self.steps.iter().any(|step| step.reached.contains(&id)) {
            return Ok(None);
        }
        let options = Options { mutant: id, ..options };
        self.each(|index, pass, same, written| {
            let Step { text, reached } = &self.steps[index];
            if same && !reached.contains(&id) {
                return Ok(false);
            }
            step(&self.job, pass, text.kernel(options.mode)?, options, written).map(|_| true)
        })
    }

    fn run_alone(&self, alone: &Alone, options: Options) -> Result<Option<bool>, Failure> {
        let has = |pass: &Pass| parts(pass).iter().any(|part| part.file == alone.file);
        if !self.job.plan.passes.iter().any(has) {
            return Ok(None);
        }
        self.each(|index, pass, same, written| {
            if same && !has(pass) {
                return Ok(false);
            }
            if !has(pass) {
                return step(
                    &self.job,
                    pass,
                    self.steps[index].text.kernel(options.mode)?,
                    options,
                    written,
                )
                .map(|_| true);
            }
            let replaced = |path: &str| (path == alone.file).then_some(alone.text.as_str());
            let text = assemble_with(pass, replaced).map_err(Failure::Invalid)?;
            let kernel = Kernel::compile_quickly(&text, options.mode).map_err(Failure::Invalid)?;
            as_planned(&kernel, pass)?;
            step(&self.job, pass, &kernel, options, written).map(|_| true)
        })
    }

    /// Runs passes in order. `run` learns whether the memory is still as recorded, and returns
    /// false if it did not run the pass: then the recorded memory is taken.
    fn each(
        &self,
        run: impl Fn(usize, &Pass, bool, &mut Written) -> Result<bool, Failure>,
    ) -> Result<Option<bool>, Failure> {
        let last = &self.written[self.steps.len()];
        let mut written = self.written[0].clone();
        for (index, pass) in self.job.plan.passes.iter().enumerate() {
            let same = written == self.written[index];
            if !run(index, pass, same, &mut written)? {
                written.clone_from(&self.written[index + 1]);
            }
        }
        let same = written.c == last.c;
        if !same {
            self.job.judge(written.c)?;
        }
        Ok(Some(same))
    }
}

impl Bench for Msl {
    fn size(&self) -> String {
        format!(
            "{} cases of {} texts, {} mutants in texts of their own",
            self.cases.len(),
            self.texts,
            self.alone.len()
        )
    }

    fn run(&self, mutants: &[Mutant], step: &super::Step<'_>) -> Vec<Fate> {
        let fates = |neighbours: &[Mutant]| {
            let mut order: Vec<&Case> = self.cases.iter().collect();
            neighbours
                .iter()
                .map(|mutant| self.try_in(&mut order, mutant, step(mutant)).0)
                .collect::<Vec<_>>()
        };
        // There are more threads than processors, because each thread waits for a process.
        let threads = 2 * rayon::current_num_threads();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| mutants.par_chunks(16).flat_map_iter(fates).collect())
    }

    fn fate(&self, mutant: &Mutant) -> (Fate, String) {
        self.try_in(&mut self.cases.iter().collect::<Vec<_>>(), mutant, 1)
    }
}
