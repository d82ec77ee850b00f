//! Compiles Metal compute kernels, unchanged, with clang against a strict shim of MSL, and runs
//! them on the CPU.
//!
//! ```no_run
//! use tilewise_tests::harness::{Kernel, Launch, Mode, available};
//!
//! let text = "#include <metal_stdlib>
//! kernel void twice(device float *x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
//!     x[i] *= 2;
//! }";
//! if available(Mode::Races) {
//!     let kernel = Kernel::compile(text, Mode::Races).unwrap();
//!     let launch = Launch { buffers: vec![(0, vec![0; 128])], ..Launch::default() };
//!     let output = kernel.run(&launch).unwrap();
//!     assert_eq!(output.buffers[0].1.len(), 128);
//! }
//! ```
//!
//! Compiling refuses pointers in another address space than is asked for, implicit conversions to
//! 16-bit types, functions that MSL lacks, and reliance on which lane holds which elements of a
//! simdgroup matrix. [`lint`] refuses other code that clang takes and MSL does not.
//!
//! Running finds races, also within a simdgroup and between threadgroups ([`Mode::Races`]). It
//! finds accesses outside a buffer or a threadgroup array, misaligned vectors, and undefined
//! arithmetic ([`Mode::Memory`]). In every mode it finds endless loops, and lanes that do not meet
//! where all must. Simdgroups have 32 lanes.
//!
//! Runs differ from MSL:
//!
//! - A barrier orders all memory or none. If a kernel has `SHARED` arrays, its barriers must name
//!   `mem_threadgroup` to order anything, and they then order device memory too. If it has none,
//!   they must name `mem_device`.
//! - Lanes of one index in threadgroups a multiple of 1024 lanes apart count as one thread. A race
//!   between these lanes alone is missed.
//! - A statement that only names an element, such as `x[i];`, does not load it.
//! - A shift by too much is masked, as MSL says.
//! - Mathematical functions are exact to an ulp, and are not Metal's fast ones.
//! - Some rules are stricter: a `constant` struct cannot be copied whole, 16-bit types come from
//!   others only by name, and there are no literals of type `half`.

mod compile;
mod lint;
mod signature;
mod worker;

use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

pub use lint::lint;
pub use signature::{Argument, Signature, Space};

/// The sanitizer that watches a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Nothing beyond the engine.
    Plain,
    /// ThreadSanitizer, each lane a thread of its own.
    Races,
    /// AddressSanitizer, each buffer and threadgroup array a heap block of its own, and
    /// UndefinedBehaviorSanitizer.
    Memory,
}

/// The kind of texts that are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Texts for [`Kernel::compile`].
    Own,
    /// Texts for [`Kernel::compile_foreign`].
    Foreign,
    /// Texts for [`Kernel::compile_quickly`].
    Changed,
}

/// How lanes run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lanes {
    /// All lanes on one thread, which switches between them where they meet. The seed decides the
    /// order.
    #[default]
    Fibers,
    /// Each lane is a thread of the system.
    Threads,
}

/// Whether kernels can be compiled and run in `mode`. If not, says why on standard error, once for
/// each mode.
///
/// # Panics
///
/// When they cannot, and the words of `TILEWISE_REQUIRE`, separated by commas, include `msl`.
pub fn available(mode: Mode) -> bool {
    static SAID: Mutex<Vec<Mode>> = Mutex::new(Vec::new());
    let Some(reason) = compile::missing(mode) else { return true };
    let required = std::env::var("TILEWISE_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|it| it.trim() == "msl"),
        "TILEWISE_REQUIRE={required}, and MSL kernels cannot be run in {mode:?}: {reason}"
    );
    let mut said = SAID.lock().unwrap_or_else(|it| it.into_inner());
    if !said.contains(&mode) {
        said.push(mode);
        // `eprintln!` is not used, because tests that pass hide its output.
        let _ = writeln!(std::io::stderr(), "skipped: MSL kernels in {mode:?}: {reason}");
    }
    false
}

/// A compiled kernel. Clones share it.
#[derive(Clone, Debug)]
pub struct Kernel {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    mode: Mode,
    quick: bool,
    library: std::path::PathBuf,
    signature: Signature,
    bytes: OnceLock<[u32; 32]>,
}

/// One dispatch.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The number of threadgroups along each axis.
    pub grid: [u32; 3],
    /// Threads in a threadgroup: a multiple of 32, at most 1024.
    pub threads: u32,
    /// For each argument, its slot and the contents of its buffer. The buffer has exactly these
    /// bytes.
    pub buffers: Vec<(u32, Vec<u8>)>,
    /// How lanes run.
    pub lanes: Lanes,
    /// Decides the order of lanes and threadgroups, which lane holds which elements of matrices,
    /// and the order in which `simd_sum` adds.
    pub seed: u64,
    /// The mutant that is wanted; 0 for none. `MUTANT(id)` is true if `id` is this one, and
    /// `MUTANTS(first, last)` if it is one of those.
    pub mutant: u32,
    /// After this time, the kernel counts as one that never ends.
    pub timeout: Duration,
}

impl Default for Launch {
    /// One threadgroup of 32 threads.
    fn default() -> Launch {
        let (lanes, timeout) = (Lanes::Fibers, Duration::from_secs(60));
        Launch {
            grid: [1; 3],
            threads: 32,
            buffers: Vec::new(),
            lanes,
            seed: 0,
            mutant: 0,
            timeout,
        }
    }
}

/// The results of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The launch's buffers, in its order, as the kernel left them.
    pub buffers: Vec<(u32, Vec<u8>)>,
    /// Bytes of threadgroup memory: the sum over the kernel's `SHARED` arrays.
    pub threadgroup_bytes: u32,
    /// Ids below 65536 that `MUTANT` and `MUTANTS` were asked about, ascending.
    pub reached: Vec<u32>,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Two lanes touched the same memory without an order, and at least one of them wrote.
    Race,
    /// An access outside the kernel's memory.
    Memory,
    /// Undefined behaviour: misaligned access, division by zero, overflow of signed integers.
    Undefined,
    /// Lanes that must meet do not.
    Divergence,
    /// The worker ended for another reason.
    Crash,
    /// The kernel did not end within [`Launch::timeout`].
    Timeout,
}

/// A launch that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its kind.
    pub kind: Kind,
    /// The report of the sanitizer or the engine. Lines of the kernel's text are lines of
    /// `kernel.metal`.
    pub report: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.report)
    }
}

impl std::error::Error for Failure {}

impl Kernel {
    /// Compiles a text with one entry point, or finds the library that an earlier run compiled.
    ///
    /// # Errors
    ///
    /// clang's words on the text, or what is wrong with the signature.
    ///
    /// # Panics
    ///
    /// When nothing is [`available`], or files cannot be written.
    pub fn compile(text: &str, mode: Mode) -> Result<Kernel, String> {
        one(Kernel::compile_all(&[text], mode, Source::Own))
    }

    /// Like [`compile`](Self::compile), for a text that another compiler wrote, such as naga.
    /// Warnings refuse nothing. An array of unknown length is declared with one element, so indices
    /// beyond an array's declared length are not found. Accesses beyond the buffer are still found.
    ///
    /// # Errors
    ///
    /// See [`compile`](Self::compile).
    ///
    /// # Panics
    ///
    /// See [`compile`](Self::compile).
    pub fn compile_foreign(text: &str, mode: Mode) -> Result<Kernel, String> {
        one(Kernel::compile_all(&[text], mode, Source::Foreign))
    }

    /// Like [`compile`](Self::compile), for texts that are changed on purpose. It takes a fraction
    /// of the time, and makes slower code. Warnings refuse nothing. Reports name no lines, and so
    /// take a hundredth of the time.
    ///
    /// # Errors
    ///
    /// See [`compile`](Self::compile).
    ///
    /// # Panics
    ///
    /// See [`compile`](Self::compile).
    pub fn compile_quickly(text: &str, mode: Mode) -> Result<Kernel, String> {
        one(Kernel::compile_all(&[text], mode, Source::Changed))
    }

    /// Compiles texts, each a different one. One call takes as little as half the time of single
    /// calls, because a process of clang takes as long to start as to compile one text.
    ///
    /// # Panics
    ///
    /// See [`compile`](Self::compile).
    pub fn compile_all(texts: &[&str], mode: Mode, source: Source) -> Vec<Result<Kernel, String>> {
        let quick = source == Source::Changed;
        let more = match source {
            Source::Own => &[],
            Source::Foreign => compile::FOREIGN,
            Source::Changed => compile::QUICK,
        };
        let kernel = |(library, signature)| Kernel {
            inner: Arc::new(Inner { mode, quick, library, signature, bytes: OnceLock::new() }),
        };
        compile::compile(texts, mode, more)
            .into_iter()
            .map(|compiled| compiled.map(kernel))
            .collect()
    }

    /// The entry point's signature.
    pub fn signature(&self) -> &Signature {
        &self.inner.signature
    }

    /// Bytes of the type that the argument in `slot` points or refers to: an element of an array,
    /// or all of a struct. 0 for a slot without an argument.
    pub fn argument_bytes(&self, slot: u32) -> u32 {
        let inner = &*self.inner;
        let bytes = inner.bytes.get_or_init(|| {
            worker::sizes(inner.mode, inner.quick, &inner.library)
                .unwrap_or_else(|it| panic!("{}: {it}", inner.library.display()))
        });
        bytes.get(slot as usize).copied().unwrap_or(0)
    }

    /// Runs the kernel once.
    ///
    /// # Errors
    ///
    /// The failure of the kernel.
    ///
    /// # Panics
    ///
    /// When the launch does not have one buffer for each argument, or its sizes are invalid.
    pub fn run(&self, launch: &Launch) -> Result<Output, Failure> {
        let mut given: Vec<u32> = launch.buffers.iter().map(|it| it.0).collect();
        given.sort_unstable();
        let mut asked: Vec<u32> = self.signature().arguments.iter().map(|it| it.slot).collect();
        asked.sort_unstable();
        assert_eq!(given, asked, "slots of the launch and of {}", self.signature().name);
        let Launch { grid, threads, .. } = *launch;
        assert!(
            threads > 0 && threads % 32 == 0 && threads <= 1024,
            "{threads} threads in a threadgroup"
        );
        assert!(
            grid.iter().map(|&it| u64::from(it)).product::<u64>() < 1 << 31,
            "a grid of {grid:?}"
        );
        worker::run(self.inner.mode, self.inner.quick, &self.inner.library, launch)
    }
}

fn one(mut compiled: Vec<Result<Kernel, String>>) -> Result<Kernel, String> {
    compiled.pop().expect("one for each text")
}
