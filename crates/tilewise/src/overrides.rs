//! What overrides the planner's choice: the caller, the environment, the tuner's winners.
//!
//! These are all the environment variables that the library reads. [`ContextOptions::default`] reads them, once per context, and each has a field
//! there, so that a program needs no environment; one that is set but empty counts as not set, except for `TILEWISE_CACHE_DIR`.
//!
//! | variable | meaning | field of [`ContextOptions`] |
//! |---|---|---|
//! | `TILEWISE_ADAPTER` | part of an adapter's name, a backend (`vulkan`, `metal`, `dx12`, `gl`), both (`vulkan:llvmpipe`), or `cpu` | `adapter` |
//! | `TILEWISE_CACHE_DIR` | folder of compiled pipelines and of the tuner's winners, by default the user's cache folder; empty: nowhere | `pipeline_cache`,
//! `tuned` |
//! | `TILEWISE_NO_TUNED` | anything but `0`: the tuner's file is neither read nor written | `tuned` |
//! | `TILEWISE_KERNEL` | the kernel of every product that does not name its own: `simt`, `simt/64x64x16`, `simt/64x64x16+k4` (K in 4 parts),
//! `coop/64x64x32+pad16` (16 elements between lines in workgroup memory), `msl-gemm/64x64x16` | `kernel` |
//! | `TILEWISE_NO_COOP` | anything but `0`: matrix units stay unused; `0`: they are used wherever there are some; without it, where the suite has passed |
//! `matrix_units` |
//! | `TILEWISE_NO_MSL` | anything but `0`: kernels in MSL stay unused; `0`: they are tried on every GPU; without it, on Metal with simdgroup matrices | `msl` |
//! | `TILEWISE_METAL_CAPTURE` | file `NAME.gputrace` for a capture by Metal, with MTL_CAPTURE_ENABLED=1 | `metal_capture` |
//!
//! Padding can be forced where the kernel has some, which are those for matrix units (`coop`), as a multiple of 16 bytes for which there is workgroup
//! memory; with parts of K, as in `coop/64x64x32+pad16+k4`, too.
//!
//! A product that the kernel of `TILEWISE_KERNEL` cannot compute on the device is an error that names the variable, so that an experiment is never
//! silently about another kernel. The CPU executor has no kernels: it only checks that the name exists.
//!
//! What decides, in this order: [`Gemm::kernel`](crate::Gemm::kernel); the context's kernel; the tuner's winner for the problem's class, where it
//! fits the problem; the planner.

use crate::context::{Context, ContextOptions};
use crate::msl::{ALL, has_msl};
use crate::pipeline::default_folder;
use crate::tuner::Winners;
use std::path::PathBuf;
use tilewise_core::plan::{Forced, admits};
use tilewise_core::{Error, Problem, Result};

impl Default for ContextOptions {
    /// What the environment says: `TILEWISE_ADAPTER`, `TILEWISE_CACHE_DIR`, `TILEWISE_NO_TUNED`, `TILEWISE_KERNEL`, `TILEWISE_NO_COOP`,
    /// `TILEWISE_NO_MSL` and `TILEWISE_METAL_CAPTURE`, each described at the field that it sets. Without them: the best hardware GPU, pipelines and tuned
    /// kernels kept in the user's cache folder, and kernels as the planner chooses.
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

/// Which kernels a context prefers to the planner's.
pub(crate) struct Preferences {
    /// The kernel of every product that does not name its own.
    kernel: Option<String>,
    /// What the tuner found.
    pub(crate) winners: Winners,
}

impl Preferences {
    pub(crate) fn new(options: &ContextOptions, winners: Winners) -> Self {
        if let Some(kernel) = &options.kernel {
            log::info!("every product uses kernel {kernel} ({SOURCE})");
        }
        if options.matrix_units == Some(false) {
            log::info!("matrix units stay unused (ContextOptions::matrix_units, TILEWISE_NO_COOP)");
        }
        match options.msl {
            Some(false) => log::info!("kernels in MSL stay unused (ContextOptions::msl, TILEWISE_NO_MSL)"),
            Some(true) if !has_msl(ALL) => log::info!("there are no kernels in MSL: built without the feature msl"),
            _ => {}
        }
        Preferences { kernel: options.kernel.clone(), winners }
    }
}

/// Who forces a kernel on all products of a context.
const SOURCE: &str = "ContextOptions::kernel, TILEWISE_KERNEL";

impl Context {
    /// The kernel that a product must use, and who says so; none when the planner is free to choose. `call` is what the caller of the product named.
    ///
    /// # Errors
    /// `Value` and `UnknownKernel` for a name that is none, `NoKernel` when the context's kernel does not take the problem.
    pub(crate) fn forced(&self, call: Option<&str>, problem: &Problem) -> Result<Option<(Forced, &'static str)>> {
        if let Some(name) = call {
            return Ok(Some((name.parse()?, "the call")));
        }
        let Preferences { kernel, winners, .. } = &self.0.preferences;
        if let Some(name) = kernel {
            return match name.parse().and_then(|forced| self.usable(forced, problem)) {
                Ok(forced) => Ok(Some((forced, SOURCE))),
                Err(Error::NoKernel(why)) => Err(Error::NoKernel(format!("{name:?} is forced ({SOURCE}): {why}"))),
                Err(Error::Value(why)) => Err(Error::Value(format!("{SOURCE}: {why}"))),
                Err(why @ Error::UnknownKernel { .. }) => Err(Error::Value(format!("{SOURCE}: {why}"))),
                Err(other) => Err(other),
            };
        }
        let winner = winners.of(problem, self.caps());
        let winner = winner.filter(|winner| {
            admits(problem, self.caps(), self.library(), winner) && self.plan_with(problem, Some(winner)).is_ok()
        });
        Ok(winner.map(|winner| (winner, "the tuner")))
    }

    /// The kernel, if it can compute the problem here.
    fn usable(&self, forced: Forced, problem: &Problem) -> Result<Forced> {
        self.plan_with(problem, Some(&forced))?;
        Ok(forced)
    }

    /// To be called when [`forced`](Self::forced) may answer otherwise than before.
    pub(crate) fn preferences_changed(&self) {
        if let Ok(gpu) = self.gpu() {
            gpu.plans.clear();
        }
    }
}
