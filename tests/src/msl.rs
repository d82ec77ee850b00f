//! Runs a case's MSL on CPUs and not on a Mac's GPU. The plan and the assembled text are unchanged.
//! clang compiles the text, and lanes run it that meet at barriers and in simdgroup operations
//! ([`harness`]). For a kernel in WGSL it is the text that naga writes for Metal.
//!
//! Buffers end with the last byte of their operand's logical range: AddressSanitizer sees accesses
//! beyond it. Before, behind and between an operand's rows lies NaN. What must not be written is
//! compared afterwards. Threadgroup memory begins as NaN.

use crate::Outcome;
use crate::harness::{self, Argument, Kernel, Kind, Lanes, Launch, Mode, Source, Space};
use crate::sanitized::{self, Conversion, Job, Written};
use crate::translated::translate;
use crate::{Case, Filled, turns};
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tilewise_core::kernel::{Language, Role};
use tilewise_core::plan::{Binding, Pass};
use tilewise_core::{Caps, Params, Plan};
use tilewise_msl::assemble_with;

/// Why a case failed.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The planner has no plan, or the text is not what it planned with.
    Refused(String),
    /// The text is no valid MSL.
    Invalid(String),
    /// The run found something.
    Found(Kind, String),
    /// The output is not the oracle's.
    Wrong(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Refused(text) => write!(f, "refused: {text}"),
            Failure::Invalid(text) => write!(f, "invalid: {text}"),
            Failure::Found(kind, text) => write!(f, "found: {kind:?}\n{text}"),
            Failure::Wrong(text) => write!(f, "wrong: {text}"),
        }
    }
}

impl From<sanitized::Failure> for Failure {
    fn from(failure: sanitized::Failure) -> Self {
        match failure {
            sanitized::Failure::Refused(text) => Failure::Refused(text),
            sanitized::Failure::Invalid(text) => Failure::Invalid(text),
            sanitized::Failure::Found(_, text) | sanitized::Failure::Wrong(text) => {
                Failure::Wrong(text)
            }
        }
    }
}

/// The device for which tests plan MSL kernels: an M4 Max, by Apple's documents. Its matrices have
/// every type.
pub fn device() -> Caps {
    recorded("apple-m4-max")
}

/// An M1, by Apple's documents. Kernels widen bf16 for its matrices.
pub fn early_device() -> Caps {
    recorded("apple-m1")
}

fn recorded(wanted: &str) -> Caps {
    let (_, caps) = tilewise_core::caps::RECORDED
        .iter()
        .find(|(name, _)| *name == wanted)
        .expect("it is recorded");
    caps()
}

/// Settings of a run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The sanitizer that watches.
    pub mode: Mode,
    /// How lanes run.
    pub lanes: Lanes,
    /// The seed that decides every free order.
    pub seed: u64,
    /// The change to make, of those that the text asks about; 0 for none.
    pub mutant: u32,
    /// How long a pass may take.
    pub timeout: Duration,
}

/// No sanitizer watches, and all lanes are fibers on one thread: fast.
pub const PLAIN: Options = Options {
    mode: Mode::Plain,
    lanes: Lanes::Fibers,
    seed: 1,
    mutant: 0,
    timeout: Duration::from_secs(60),
};

/// A text in MSL, and the language of its source.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Text(Language, String);

/// Kernels by their text, each compiled once. Texts have the library's files, or one file is
/// replaced.
#[derive(Default)]
pub struct Kernels {
    replaced: Option<(&'static str, &'static str)>,
    compiled: Mutex<HashMap<(Mode, Text), Result<Kernel, String>>>,
}

static LIBRARY: LazyLock<Kernels> = LazyLock::new(Kernels::default);

/// The most texts for one process of clang. With more, little of the start's time would be saved.
pub(crate) const TOGETHER: usize = 16;

/// How many of `count` texts to compile together, so that no thread is idle for long.
pub(crate) fn together(count: usize) -> usize {
    count.div_ceil(4 * rayon::current_num_threads()).clamp(1, TOGETHER)
}

impl Kernels {
    /// The library's kernels, which all tests of a process share.
    pub fn of_library() -> &'static Self {
        &LIBRARY
    }

    /// Kernels with another text for the file `path`.
    pub fn with(path: &'static str, text: &'static str) -> Self {
        Kernels { replaced: Some((path, text)), compiled: Mutex::default() }
    }

    fn text(&self, pass: &Pass) -> Result<Text, Failure> {
        let other = |path: &str| {
            self.replaced.filter(|(replaced, _)| *replaced == path).map(|(_, text)| text)
        };
        let text = match pass.language {
            Language::Msl => assemble_with(pass, other),
            Language::Wgsl => translate(pass),
        };
        text.map(|text| Text(pass.language, text)).map_err(Failure::Invalid)
    }

    /// Compiles the texts of passes together, which takes half the time. A text that does not
    /// compile is reported when it runs.
    pub fn prepare<'a>(&self, passes: impl IntoIterator<Item = &'a Pass>, mode: Mode) {
        let texts: Vec<Text> = passes.into_iter().filter_map(|pass| self.text(pass).ok()).collect();
        self.compile(&texts, mode);
    }

    /// Compiles the texts that are not known yet, several at a time.
    fn compile<'a>(&self, texts: impl IntoIterator<Item = &'a Text>, mode: Mode) {
        let known = || self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unknown: HashSet<&Text> = texts.into_iter().collect();
        let keyed = |text: &Text| (mode, text.clone());
        unknown.retain(|text| !known().contains_key(&keyed(text)));
        let (sound, lacking): (Vec<_>, Vec<_>) = unknown
            .into_iter()
            .map(|text| (text, lacking(text)))
            .partition(|(_, lacking)| lacking.is_empty());
        known().extend(
            lacking.into_iter().map(|(text, lacking)| (keyed(text), Err(lacking.join("\n")))),
        );
        for (language, source) in [(Language::Msl, Source::Own), (Language::Wgsl, Source::Foreign)]
        {
            let texts: Vec<&Text> =
                sound.iter().map(|(text, _)| *text).filter(|text| text.0 == language).collect();
            texts.par_chunks(together(texts.len())).for_each(|texts| {
                let bare: Vec<&str> = texts.iter().map(|text| text.1.as_str()).collect();
                let compiled = Kernel::compile_all(&bare, mode, source);
                known().extend(texts.iter().map(|text| keyed(text)).zip(compiled));
            });
        }
    }

    /// The kernel of a text, compiled alone if it was not compiled before.
    fn get(&self, text: &Text, mode: Mode) -> Result<Kernel, Failure> {
        let key = (mode, text.clone());
        let known =
            || self.compiled.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let compiled = known().or_else(|| {
            self.compile([text], mode);
            known()
        });
        compiled.expect("it is known now").map_err(Failure::Invalid)
    }
}

/// Complaints of `lint` about a text of our own in MSL.
fn lacking(text: &Text) -> Vec<String> {
    if text.0 == Language::Msl { harness::lint(&text.1) } else { Vec::new() }
}

/// Runs the passes of a job in order, each on the memory that earlier passes left.
///
/// # Errors
/// The first of these: the text is not valid, or not as planned; a finding; an output that is not
/// the oracle's.
pub fn run(job: &Job, kernels: &Kernels, options: Options) -> Result<Outcome, Failure> {
    let texts = texts(&job.plan.passes, kernels)?;
    run_texts(job, &texts, kernels, options)
}

fn texts(passes: &[Pass], kernels: &Kernels) -> Result<Vec<Text>, Failure> {
    passes.iter().map(|pass| kernels.text(pass)).collect()
}

fn run_texts(
    job: &Job,
    texts: &[Text],
    kernels: &Kernels,
    options: Options,
) -> Result<Outcome, Failure> {
    let mut written = job.unwritten();
    for (pass, text) in job.plan.passes.iter().zip(texts) {
        let kernel = kernels.get(text, options.mode)?;
        as_planned(&kernel, pass)?;
        step(job, pass, &kernel, options, &mut written)?;
    }
    Ok(job.judge(written.c)?)
}

/// Runs one pass on the memory that earlier passes left. Returns the changes that its text asked
/// about.
///
/// # Errors
/// A finding, or a size of threadgroup memory that is not the planned one.
pub(crate) fn step(
    job: &Job,
    pass: &Pass,
    kernel: &Kernel,
    options: Options,
    written: &mut Written,
) -> Result<Vec<u32>, Failure> {
    let memory = pass.bindings.iter().map(|binding| job.memory(binding, written)).collect();
    let (reached, outputs) = launch(pass, kernel, memory, options)?;
    for (binding, bytes) in outputs.into_iter().filter(|(binding, _)| binding.writable) {
        written.take(binding, &bytes);
    }
    Ok(reached)
}

/// The contents of bindings after a pass.
type Outputs<'a> = Vec<(&'a Binding, Vec<u8>)>;

/// Runs one pass on the memory of its bindings. Returns the changes that its text asked about, and
/// the contents of the bindings.
fn launch<'a>(
    pass: &'a Pass,
    kernel: &Kernel,
    memory: Vec<Vec<u8>>,
    options: Options,
) -> Result<(Vec<u32>, Outputs<'a>), Failure> {
    let lengths: Vec<_> = memory.iter().map(Vec::len).collect();
    // WGSL takes 16-bit types by words, so its bindings are whole words.
    let word = if pass.language == Language::Wgsl { 4 } else { 1 };
    let whole = |mut bytes: Vec<u8>| {
        bytes.resize(bytes.len().next_multiple_of(word), 0xff);
        bytes
    };
    let memory = memory.into_iter().map(whole);
    let params = bytemuck::bytes_of(&pass.params).to_vec();
    let Options { lanes, seed, mutant, timeout, .. } = options;
    let mut buffers: Vec<(u32, Vec<u8>)> =
        (0..).zip(std::iter::once(params).chain(memory)).collect();
    if kernel.signature().arguments.len() > buffers.len() {
        let sizes: Vec<u32> = buffers[1..].iter().map(|(_, bytes)| bytes.len() as u32).collect();
        buffers.push((buffers.len() as u32, bytemuck::cast_slice(&sizes).to_vec()));
    }
    let launch = Launch {
        grid: [pass.grid[0], pass.grid[1], 1],
        threads: pass.threads,
        buffers,
        lanes,
        seed,
        mutant,
        timeout,
    };
    let output =
        kernel.run(&launch).map_err(|failure| Failure::Found(failure.kind, failure.report))?;
    let planned = pass.workgroup_bytes;
    // A finishing pass by words calls `owner` only, and naga leaves out the memory that `schedule`
    // declares.
    let unused = pass.label == "finish" && output.threadgroup_bytes == 0;
    if output.threadgroup_bytes != planned && !unused {
        let used = output.threadgroup_bytes;
        return Err(Failure::Refused(format!(
            "{used} bytes of threadgroup memory, planned {planned}"
        )));
    }
    let mut outputs = Vec::new();
    for (slot, mut bytes) in output.buffers {
        let Some(index) = (slot as usize).checked_sub(1).filter(|index| *index < lengths.len())
        else {
            continue;
        };
        bytes.truncate(lengths[index]);
        outputs.push((&pass.bindings[index], bytes));
    }
    Ok((output.reached, outputs))
}

/// Runs a conversion through naga's MSL.
///
/// # Errors
/// The first of these: the text is not valid, or not as planned; a finding; an output of other
/// bits.
pub fn convert(
    conversion: &Conversion,
    kernels: &Kernels,
    options: Options,
) -> Result<(), Failure> {
    let mut written = conversion.unwritten();
    for pass in &conversion.passes {
        let kernel = kernels.get(&kernels.text(pass)?, options.mode)?;
        as_planned(&kernel, pass)?;
        let memory = pass.bindings.iter().map(|binding| written.bound(binding)).collect();
        let (_, outputs) = launch(pass, &kernel, memory, options)?;
        outputs.into_iter().for_each(|(binding, bytes)| written.take(binding, &bytes));
    }
    Ok(conversion.judge(&written)?)
}

/// Checks a kernel against the plan. Its limit of threads permits the launch, and in a text of ours
/// it is never a single simdgroup. Its arguments are the parameters in slot 0 and then the bindings
/// in order, each as wide and as writable as planned. naga adds the sizes of the bindings.
///
/// # Errors
/// `Refused`.
pub(crate) fn as_planned(kernel: &Kernel, pass: &Pass) -> Result<(), Failure> {
    let ours = pass.language == Language::Msl;
    let limit = kernel.signature().limit;
    if limit.is_none_or(|limit| limit < if ours { pass.threads.max(64) } else { pass.threads }) {
        return Err(Failure::Refused(format!(
            "{}: a limit of {limit:?} threads for {}",
            pass.label, pass.threads
        )));
    }
    let mut arguments: Vec<_> = kernel.signature().arguments.iter().collect();
    arguments.sort_by_key(|argument| argument.slot);
    let wrong = |what: &str, argument: &dyn fmt::Debug| {
        Err(Failure::Refused(format!("{}: {what}: {argument:?}", pass.label)))
    };
    let in_constant = |argument: &Argument, bytes| {
        let found = u64::from(kernel.argument_bytes(argument.slot));
        argument.space == Space::Constant && !argument.writable && found == bytes
    };
    let sizes = if ours {
        None
    } else {
        arguments.pop_if(|argument| argument.slot as usize > pass.bindings.len())
    };
    if let Some(sizes) = sizes.filter(|sizes| !in_constant(sizes, 4 * pass.bindings.len() as u64)) {
        return wrong("no sizes of all bindings", sizes);
    }
    if arguments.len() != pass.bindings.len() + 1 {
        return wrong("it takes other buffers than are bound", &arguments);
    }
    for (slot, argument) in (0..).zip(arguments) {
        let bytes = u64::from(kernel.argument_bytes(slot));
        if argument.slot != slot {
            return wrong("a slot is left out, or taken twice", argument);
        }
        let Some(binding) = (slot as usize).checked_sub(1).map(|index| &pass.bindings[index])
        else {
            if !in_constant(argument, size_of::<Params>() as u64) {
                return wrong("no Params", argument);
            }
            continue;
        };
        // Scratch memory is planned in vectors of four, which MSL takes as single numbers.
        let elements = if ours && binding.role == Role::Scratch { 4 } else { 1 };
        if argument.space != Space::Device
            || argument.writable != binding.writable
            || bytes * elements != binding.element_bytes
        {
            return wrong(&format!("{binding:?}"), argument);
        }
    }
    Ok(())
}

/// The outcome of many cases.
#[derive(Debug, Default)]
pub struct Tally {
    /// Cases that ran.
    pub ran: usize,
    /// Texts that were compiled for them.
    pub texts: usize,
    /// Largest error as a fraction of its bound.
    pub worst: f64,
    /// The failures. The first failure of each format of B comes first.
    pub failures: Vec<String>,
    /// Seconds that the run took.
    pub seconds: f64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { ran, texts, worst, failures, seconds } = self;
        write!(
            f,
            "{ran} cases, {texts} texts in {seconds:.1} s, worst error {worst:.2} of its bound"
        )?;
        match failures.len() {
            0 => Ok(()),
            failed => write!(f, ", {failed} failed:\n{}", failures[..failed.min(8)].join("\n")),
        }
    }
}

/// Runs cases on a device with these caps, several at a time; if `rounded`, each element must be
/// the oracle's value rounded to nearest even.
pub fn run_all(caps: &Caps, cases: &[Case], options: Options, rounded: bool) -> Tally {
    let start = Instant::now();
    let kernels = Kernels::of_library();
    let planned = |case: &Case| -> Result<_, Failure> {
        let plan = sanitized::planned(case, caps)?;
        let texts = texts(&plan.passes, kernels)?;
        Ok((plan, texts))
    };
    let planned: Vec<_> = cases.par_iter().map(planned).collect();
    let distinct: HashSet<&Text> = planned.iter().flatten().flat_map(|(_, texts)| texts).collect();
    kernels.compile(distinct.iter().copied(), options.mode);
    let texts = distinct.len();
    let outcome = |(case, planned): (&Case, Result<(Plan, Vec<Text>), Failure>)| {
        let (plan, texts) = planned?;
        let filled = Filled::new(case, caps).map_err(Failure::Refused)?;
        run_texts(&Job { filled, plan, rounded }, &texts, kernels, options)
    };
    let outcomes: Vec<_> = cases.par_iter().zip(planned).map(outcome).collect();
    let mut before: HashMap<_, usize> = HashMap::new();
    let failed = |(case, outcome): (&Case, &Result<Outcome, Failure>)| {
        let failure = outcome.as_ref().err()?;
        let count = before.entry(case.quantized.map(|format| format.name())).or_default();
        *count += 1;
        Some((*count, format!("{failure}\n    {case:?}")))
    };
    let worst = outcomes.iter().flatten().map(|outcome| outcome.worst).fold(0.0, f64::max);
    let mut failures: Vec<_> = cases.iter().zip(&outcomes).filter_map(failed).collect();
    failures.sort_by_key(|(count, _)| *count);
    let failures = failures.into_iter().map(|(_, what)| what).collect();
    Tally { ran: cases.len(), texts, worst, failures, seconds: start.elapsed().as_secs_f64() }
}

/// Runs cases without a sanitizer. If they are many, a third of them run by turns. Without clang,
/// it prints that it skips them.
///
/// # Panics
/// When any case failed, or there is no clang and `TILEWISE_REQUIRE` wants `msl`.
pub fn check(cases: &[Case]) {
    check_on(&device(), &turns::some(cases), PLAIN, false);
}

/// Like [`check`], on a device with these caps; if `rounded`, each element must be the oracle's
/// value rounded to nearest even.
///
/// # Panics
/// See [`check`].
pub fn check_on(caps: &Caps, cases: &[Case], options: Options, rounded: bool) {
    if harness::available(options.mode) {
        assert!(!cases.is_empty());
        let tally = run_all(caps, cases, options, rounded);
        println!("{tally}");
        assert!(tally.failures.is_empty(), "{tally}");
    }
}
