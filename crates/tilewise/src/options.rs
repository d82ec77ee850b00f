//! The options that open a context, and the environment that gives their defaults.
//!
//! The library reads no other environment variables than these, and wgpu's own flags for the device
//! that a context opens (`WGPU_DEBUG`, `WGPU_VALIDATION`). [`ContextOptions::default`] reads
//! them, once per context. Each has a field there, so that a program needs no environment. One that
//! is set but empty counts as not set, except for `TILEWISE_CACHE_DIR`.
//!
//! - `TILEWISE_ADAPTER`: part of an adapter's name, a backend (`vulkan`, `metal`, `dx12`, `gl`),
//!   both (`vulkan:llvmpipe`), or `cpu`.
//! - `TILEWISE_CACHE_DIR`: folder of compiled pipelines and of the tuner's winners, by default in
//!   the user's cache folder. Empty: no folder.
//! - `TILEWISE_NO_TUNED`: anything but `0`: the tuner's file is neither read nor written.
//! - `TILEWISE_KERNEL`: the kernel of every product that does not name its own: `simt`,
//!   `simt/64x64x16`, `simt/64x64x16+k4` (K in 4 parts), `coop/64x64x32+pad16` (16 elements between
//!   lines in workgroup memory), `msl-gemm/64x64x16`.
//! - `TILEWISE_NO_COOP`: anything but `0`: matrix units stay unused by kernels in WGSL. `0`: they
//!   are used on every GPU that has them, but on Metal. Not set: where the suite has passed.
//! - `TILEWISE_NO_MSL`: anything but `0`: kernels in MSL stay unused. `0`: they are tried on every
//!   GPU. Not set: they are used on Metal with simdgroup matrices.
//! - `TILEWISE_METAL_CAPTURE`: file `NAME.gputrace` for a capture by Metal, with
//!   MTL_CAPTURE_ENABLED=1.
//!
//! Only kernels for matrix units (`coop`) have padding that can be forced: a multiple of 16 bytes
//! that fits workgroup memory. Parts of K may follow it: `coop/64x64x32+pad16+k4`.
//!
//! A product that the kernel of `TILEWISE_KERNEL` cannot compute on the device is an error that
//! names the variable, so that an experiment never runs another kernel silently. The CPU executor
//! has no kernels: it only checks that the name exists.

use std::path::PathBuf;

/// Which device to take, and how to treat it.
#[derive(Clone, Debug)]
pub struct ContextOptions {
    /// Part of an adapter's name (any case), the name of a backend (`vulkan`, `metal`, `dx12`,
    /// `gl`), both (`vulkan:llvmpipe`), or `cpu` for the CPU executor. Absent: the best hardware
    /// GPU, and the CPU executor when there is none. `TILEWISE_ADAPTER`.
    pub adapter: Option<String>,
    /// Folder in which compiled pipelines are kept between runs, where the backend can (Vulkan);
    /// absent: nowhere. `TILEWISE_CACHE_DIR`, by default the user's cache folder; empty: nowhere.
    pub pipeline_cache: Option<PathBuf>,
    /// Folder with the file of this adapter's tuned kernels, which is read when the context opens
    /// and written by [`Context::tune`](crate::Context::tune); absent: they are kept for the life
    /// of the context only. As `pipeline_cache`, and absent with `TILEWISE_NO_TUNED=1`.
    pub tuned: Option<PathBuf>,
    /// The kernel of every product that does not name its own, as
    /// [`Gemm::kernel`](crate::Gemm::kernel) takes it; a product that it cannot compute is an
    /// error. `TILEWISE_KERNEL`.
    pub kernel: Option<String>,
    /// Whether kernels in WGSL may use the matrix units. Absent: through Vulkan with the drivers on
    /// which the suite has passed, NVIDIA's so far. `TILEWISE_NO_COOP=1`: no; `TILEWISE_NO_COOP=0`:
    /// wherever there are some. Never on Metal: there kernels in MSL use them, whatever this says.
    pub matrix_units: Option<bool>,
    /// Whether kernels in MSL may be used beside those in WGSL. Absent: on Metal, where the GPU has
    /// simdgroup matrices. `TILEWISE_NO_MSL=1`: no; `TILEWISE_NO_MSL=0`: on every GPU, where what
    /// does not compile is computed in WGSL after all, with a warning in the log. Without the
    /// feature `msl` there are none.
    pub msl: Option<bool>,
    /// File `NAME.gputrace` into which Metal captures what the context submits, for Xcode: from its
    /// opening to its end, and only for a process that has MTL_CAPTURE_ENABLED=1 in its
    /// environment. Metal writes over no file, and captures for one context at a time; where it
    /// does not, the log says why. `TILEWISE_METAL_CAPTURE`.
    pub metal_capture: Option<PathBuf>,
    /// The most bytes that a product may have for partial sums, and again for packed operands: it
    /// is planned with kernels and in pieces that need no more. Absent: whatever is fastest.
    /// [`Context::release_scratch`](crate::Context::release_scratch) frees them.
    pub max_scratch_bytes: Option<u64>,
}

impl ContextOptions {
    /// The defaults, with the adapter named here. See [`ContextOptions::adapter`].
    pub fn adapter(name: impl Into<String>) -> Self {
        ContextOptions { adapter: Some(name.into()), ..ContextOptions::default() }
    }

    /// The defaults, without files.
    pub(crate) fn without_files() -> Self {
        ContextOptions {
            pipeline_cache: None,
            tuned: None,
            metal_capture: None,
            ..ContextOptions::default()
        }
    }
}

impl Default for ContextOptions {
    /// What the environment says: `TILEWISE_ADAPTER`, `TILEWISE_CACHE_DIR`, `TILEWISE_NO_TUNED`,
    /// `TILEWISE_KERNEL`, `TILEWISE_NO_COOP`, `TILEWISE_NO_MSL` and `TILEWISE_METAL_CAPTURE`, each
    /// described at the field that it sets. Without them: the best hardware GPU, pipelines and
    /// tuned kernels kept in the user's cache folder, and kernels as the planner chooses.
    fn default() -> Self {
        let folder = default_folder();
        ContextOptions {
            adapter: variable("TILEWISE_ADAPTER"),
            tuned: if flag("TILEWISE_NO_TUNED") { None } else { folder.clone() },
            pipeline_cache: folder,
            kernel: variable("TILEWISE_KERNEL"),
            matrix_units: variable("TILEWISE_NO_COOP").map(|value| value == "0"),
            msl: variable("TILEWISE_NO_MSL").map(|value| value == "0"),
            metal_capture: variable("TILEWISE_METAL_CAPTURE").map(PathBuf::from),
            max_scratch_bytes: None,
        }
    }
}

fn variable(name: &str) -> Option<String> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
    Some(value.to_string_lossy().into_owned())
}

fn flag(name: &str) -> bool {
    variable(name).is_some_and(|value| value != "0")
}

/// Who forces a kernel on all products of a context.
pub(crate) const KERNEL_SOURCE: &str = "ContextOptions::kernel, TILEWISE_KERNEL";

/// `TILEWISE_CACHE_DIR`, or `tilewise` in the user's cache folder; none when the variable is set
/// and empty, or nothing is known.
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
