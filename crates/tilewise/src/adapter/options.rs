//! The options that open a context, and the environment that may set them.
//!
//! [`ContextOptions::from_env`] reads the variables below. Each has a field there, so a program
//! needs no environment. A variable that is set but empty counts as not set, except
//! `TILEWISE_CACHE_DIR`. Apart from these, the library reads only the user's cache folder
//! (`XDG_CACHE_HOME`, `HOME`, `LOCALAPPDATA`), and wgpu's own variables for the device that a
//! context opens, such as `WGPU_DEBUG`, `WGPU_VALIDATION` and `WGPU_DX12_COMPILER`.
//!
//! - `TILEWISE_ADAPTER`: part of an adapter's name, a backend (`vulkan`, `metal`, `dx12`, `gl`,
//!   `browser-webgpu`), both (`vulkan:llvmpipe`), or `cpu`.
//! - `TILEWISE_CACHE_DIR`: folder of compiled pipelines and of the tuner's winners, by default in
//!   the user's cache folder. Empty: no folder.
//! - `TILEWISE_TUNED`: `off`: the tuner's file is neither read nor written. `on`, `auto`: it is
//!   read and written, if there is a folder.
//! - `TILEWISE_KERNEL`: the kernel of every product that does not name its own: `simt`,
//!   `simt/64x64x16`, `simt/64x64x16+k4` (4 splits of K), `coop/64x64x32+pad16` (16 elements
//!   between lines in workgroup memory), `msl-gemm/64x64x16`.
//! - `TILEWISE_MATRIX_UNITS`: `off`: kernels in WGSL do not use matrix units. `on`: they use them
//!   on every GPU that has some, except on Metal. `auto`: they use them with drivers on which the
//!   suite has passed.
//! - `TILEWISE_MSL`: `off`: kernels in MSL stay unused. `on`: they are tried on every GPU. `auto`:
//!   they are used on Metal with simdgroup matrices.
//! - `TILEWISE_METAL_CAPTURE`: file `NAME.gputrace` for a capture by Metal, with
//!   MTL_CAPTURE_ENABLED=1.
//!
//! Only kernels for matrix units (`coop`) have padding that can be forced: a multiple of 16 bytes
//! that fits workgroup memory. Splits of K may follow it: `coop/64x64x32+pad16+k4`.
//!
//! If the kernel of `TILEWISE_KERNEL` cannot compute a product on the device, the product is an
//! error that names the variable: an experiment never runs another kernel silently. The CPU
//! executor has no kernels: it only checks that the name exists.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;
use tilewise_core::{Error, Result};

/// Whether the library uses something. The enum is closed: a switch has these three positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Switch {
    /// The library decides.
    #[default]
    Auto,
    /// It is used wherever it is there.
    On,
    /// It is never used.
    Off,
}

impl Switch {
    /// On or off; `auto` is what the library would decide.
    pub(crate) fn or(self, auto: bool) -> bool {
        match self {
            Switch::Auto => auto,
            Switch::On => true,
            Switch::Off => false,
        }
    }
}

impl std::str::FromStr for Switch {
    type Err = Error;

    /// `on`, `off` or `auto`.
    fn from_str(word: &str) -> Result<Self> {
        match word {
            "auto" => Ok(Switch::Auto),
            "on" => Ok(Switch::On),
            "off" => Ok(Switch::Off),
            _ => Err(Error::Misuse(format!("{word:?} is none of on, off and auto"))),
        }
    }
}

/// Which device to take, and how to treat it.
///
/// The [default](Self::default) is the same on every machine: the best hardware GPU, kernels as the
/// planner chooses, and no files. [`from_env`](Self::from_env) takes the environment and the user's
/// cache folder into account, as [`Context::new`](crate::Context::new) does.
///
/// ```
/// use tilewise::{Context, ContextOptions, Switch};
///
/// # fn main() -> tilewise::Result<()> {
/// let options = ContextOptions::default().adapter("cpu").matrix_units(Switch::Off);
/// let ctx = Context::request_blocking(&options)?;
/// assert!(ctx.is_cpu());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
#[must_use = "options do nothing until a context is opened with them"]
pub struct ContextOptions {
    /// Part of an adapter's name (any case), the name of a backend (`vulkan`, `metal`, `dx12`,
    /// `gl`, `browser-webgpu`), both (`vulkan:llvmpipe`), or `cpu` for the CPU executor. Absent:
    /// the best hardware GPU, or the CPU executor if there is none. A named adapter may be
    /// software: `browser-webgpu` takes whatever the browser gives. `TILEWISE_ADAPTER`.
    pub adapter: Option<String>,
    /// Which of several GPUs is the best. `HighPerformance` and `None`: a GPU with memory of its
    /// own. `LowPower`: a GPU that shares the host's memory. A browser gets the preference itself,
    /// and may give the same GPU for each.
    pub power_preference: wgpu::PowerPreference,
    /// Whether a software adapter, which WebGPU calls a fallback adapter, is taken in place of the
    /// CPU executor if there is no hardware GPU. Products are often slower on it. wgpu 30 never
    /// asks a browser for a software adapter, but takes one if the browser gives no other.
    pub fallback_adapter: bool,
    /// Whether opening is an error without a GPU, in place of the CPU executor.
    pub require_gpu: bool,
    /// Folder in which compiled pipelines are kept between runs, if the backend can keep them
    /// (Vulkan); absent: nowhere. A browser has no files, and keeps pipelines by itself.
    /// `TILEWISE_CACHE_DIR`.
    pub pipeline_cache: Option<PathBuf>,
    /// Folder with the file of this adapter's tuned kernels. The file is read when the context
    /// opens, and written by [`Gemm::tune_blocking`](crate::Gemm::tune_blocking). Absent:
    /// tuned kernels are kept for the life of the context only. In a browser, which has no files,
    /// [`Context::tuned_text`](crate::Context::tuned_text) gives them as text.
    /// `TILEWISE_CACHE_DIR`, and absent with `TILEWISE_TUNED=off`.
    pub tuned: Option<PathBuf>,
    /// The kernel of every product that does not name its own, as
    /// [`Gemm::kernel`](crate::Gemm::kernel) takes it. Opening a context fails when no kernel has
    /// this name; a product that the kernel cannot compute is an error. `TILEWISE_KERNEL`.
    pub kernel: Option<String>,
    /// Whether kernels in WGSL may use the matrix units. `Auto`: through Vulkan with the drivers on
    /// which the suite has passed, NVIDIA's so far. `On`: on every GPU that has some. On Metal,
    /// whatever this says, kernels in WGSL never use them, and kernels in MSL do.
    /// `TILEWISE_MATRIX_UNITS`.
    pub matrix_units: Switch,
    /// Whether kernels in MSL may be used beside those in WGSL. `Auto`: on Metal, if the GPU has
    /// simdgroup matrices. `On`: on every GPU; if a kernel does not compile, a kernel in WGSL takes
    /// its place, with a warning in the log. Without the feature `msl` there are no kernels in MSL.
    /// `TILEWISE_MSL`.
    pub msl: Switch,
    /// File `NAME.gputrace` into which Metal captures the work of the context, for Xcode, from its
    /// opening to its end. The process needs MTL_CAPTURE_ENABLED=1 in its environment. Metal does
    /// not overwrite files, and captures for one context at a time. If there is no capture, the log
    /// says why. `TILEWISE_METAL_CAPTURE`.
    pub metal_capture: Option<PathBuf>,
    /// The most bytes that a product may use for partial sums, and as many again for packed
    /// operands. The planner takes kernels and pieces that need no more. Tables of groups, with 8
    /// bytes for each group, are not counted. Absent: no bound.
    /// [`Context::release_scratch`](crate::Context::release_scratch) frees this memory.
    pub max_scratch_bytes: Option<u64>,
    /// How long a submission to the device may take, by the planner's estimate. Drivers end work
    /// that takes too long, and the device is lost with it: Windows after two seconds, macOS after
    /// five. A product that would take longer is cut into pieces, with the same bits. `run` and the
    /// like submit whenever the products that they have recorded reach this time. Absent: half a
    /// second, and no bound on software devices outside browsers. `Duration::MAX`: no bound.
    /// Fractions of a millisecond count as more: a submission has at least the time of a hundred
    /// starts of a dispatch.
    ///
    /// The bound does not hold for products of a [list](crate::Gemm::list), which are not cut in
    /// time; for operations, conversions and custom kernels, whose time nobody estimates; and in a
    /// given encoder or pass, which the caller submits.
    pub max_submission_time: Option<Duration>,
    /// Threads on which the CPU executor computes. Absent: rayon's pool, with a thread for each
    /// processor or as many as `RAYON_NUM_THREADS` says. Every number gives the same bits. On wasm
    /// the calling thread computes alone. More than 1024 are an error, `Misuse`.
    pub threads: Option<NonZeroUsize>,
}

impl ContextOptions {
    /// The defaults, changed by the environment's variables: a field names its variable, if it has
    /// one. Pipelines and tuned kernels are kept in the user's cache folder, or in
    /// `TILEWISE_CACHE_DIR`.
    ///
    /// # Errors
    /// [`Misuse`](crate::Error) for a switch that is none of `on`, `off` and `auto`.
    pub fn from_env() -> Result<Self> {
        let folder = default_folder();
        Ok(ContextOptions {
            adapter: variable("TILEWISE_ADAPTER"),
            tuned: if switch("TILEWISE_TUNED")?.or(true) { folder.clone() } else { None },
            pipeline_cache: folder,
            kernel: variable("TILEWISE_KERNEL"),
            matrix_units: switch("TILEWISE_MATRIX_UNITS")?,
            msl: switch("TILEWISE_MSL")?,
            metal_capture: variable("TILEWISE_METAL_CAPTURE").map(PathBuf::from),
            ..ContextOptions::default()
        })
    }

    /// Sets [`adapter`](Self#structfield.adapter).
    pub fn adapter(self, name: impl Into<String>) -> Self {
        ContextOptions { adapter: Some(name.into()), ..self }
    }

    /// Sets [`power_preference`](Self#structfield.power_preference).
    pub fn power_preference(self, preference: wgpu::PowerPreference) -> Self {
        ContextOptions { power_preference: preference, ..self }
    }

    /// Sets [`fallback_adapter`](Self#structfield.fallback_adapter).
    pub fn fallback_adapter(self) -> Self {
        ContextOptions { fallback_adapter: true, ..self }
    }

    /// Sets [`require_gpu`](Self#structfield.require_gpu).
    pub fn require_gpu(self) -> Self {
        ContextOptions { require_gpu: true, ..self }
    }

    /// Sets [`pipeline_cache`](Self#structfield.pipeline_cache).
    pub fn pipeline_cache(self, folder: impl Into<PathBuf>) -> Self {
        ContextOptions { pipeline_cache: Some(folder.into()), ..self }
    }

    /// Sets [`tuned`](Self#structfield.tuned).
    pub fn tuned(self, folder: impl Into<PathBuf>) -> Self {
        ContextOptions { tuned: Some(folder.into()), ..self }
    }

    /// Sets [`kernel`](Self#structfield.kernel).
    pub fn kernel(self, name: impl Into<String>) -> Self {
        ContextOptions { kernel: Some(name.into()), ..self }
    }

    /// Sets [`matrix_units`](Self#structfield.matrix_units).
    pub fn matrix_units(self, switch: Switch) -> Self {
        ContextOptions { matrix_units: switch, ..self }
    }

    /// Sets [`msl`](Self#structfield.msl).
    pub fn msl(self, switch: Switch) -> Self {
        ContextOptions { msl: switch, ..self }
    }

    /// Sets [`metal_capture`](Self#structfield.metal_capture).
    pub fn metal_capture(self, file: impl Into<PathBuf>) -> Self {
        ContextOptions { metal_capture: Some(file.into()), ..self }
    }

    /// Sets [`max_scratch_bytes`](Self#structfield.max_scratch_bytes).
    pub fn max_scratch_bytes(self, bytes: u64) -> Self {
        ContextOptions { max_scratch_bytes: Some(bytes), ..self }
    }

    /// Sets [`max_submission_time`](Self#structfield.max_submission_time).
    pub fn max_submission_time(self, time: Duration) -> Self {
        ContextOptions { max_submission_time: Some(time), ..self }
    }

    /// Sets [`threads`](Self#structfield.threads).
    pub fn threads(self, count: NonZeroUsize) -> Self {
        ContextOptions { threads: Some(count), ..self }
    }
}

fn variable(name: &str) -> Option<String> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
    Some(value.to_string_lossy().into_owned())
}

fn switch(name: &str) -> Result<Switch> {
    let Some(word) = variable(name) else { return Ok(Switch::Auto) };
    word.parse().map_err(|_| Error::Misuse(format!("{name} is {word:?}, none of on, off and auto")))
}

/// Who forces a kernel on all products of a context.
pub(crate) const KERNEL_SOURCE: &str = "ContextOptions::kernel, TILEWISE_KERNEL";

/// `TILEWISE_CACHE_DIR`, or `tilewise` in the user's cache folder. None if the variable is set and
/// empty, or the cache folder is not known.
fn default_folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    if let Some(folder) = variable("TILEWISE_CACHE_DIR") {
        return (!folder.as_os_str().is_empty()).then_some(folder);
    }
    let base = if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else if cfg!(target_vendor = "apple") {
        variable("HOME").map(|home| home.join("Library/Caches"))
    } else {
        variable("XDG_CACHE_HOME")
            .filter(|p| p.is_absolute())
            .or_else(|| variable("HOME").map(|home| home.join(".cache")))
    };
    base.map(|base| base.join("tilewise"))
}
