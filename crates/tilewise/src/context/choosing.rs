//! Which plan a product gets: the planner's, or one with a kernel that somebody has named.
//!
//! The first of these decides: [`Gemm::kernel`](crate::Gemm::kernel); the context's kernel; the
//! tuner's winner for the problem's class, if it fits the problem; the planner.

use crate::adapter::msl;
use crate::adapter::options::{ContextOptions, KERNEL_SOURCE};
use crate::context::{Backend, Context, Preferences};
use crate::gpu::{Asked, Compiled, Gpu};
use std::sync::Arc;
use tilewise_core::kernel::Library;
use tilewise_core::plan::{Choice, Forced, admits};
use tilewise_core::{Error, Plan, Problem, Result};

/// A plan, and what it was chosen from.
struct Planned {
    plan: Plan,
    library: &'static Library,
    /// Why the library has no MSL, if the device has some but refused it.
    refused: Option<Arc<str>>,
}

impl Context {
    /// Plans the problems, with the kernel of that name, and compiles their pipelines; on the CPU
    /// executor it checks them.
    pub(crate) fn prepare(&self, problems: &[Problem], kernel: Option<&Arc<str>>) -> Result<()> {
        if let Backend::Gpu(gpu) = &self.0.backend {
            gpu.device.still_alive()?;
        }
        problems.iter().try_for_each(|problem| match &self.0.backend {
            Backend::Gpu(gpu) => self.compile(gpu, problem, kernel).map(drop),
            Backend::Cpu(_) => self.plan(problem, kernel.map(AsRef::as_ref)).map(drop),
        })
    }

    /// Which kernel a problem gets, and why not another.
    pub(crate) fn explained(&self, problem: &Problem, kernel: Option<&str>) -> Result<String> {
        let forced = self.forced(kernel, problem)?;
        let asked = forced.as_ref().map(|(forced, _)| forced);
        let Planned { plan, library, refused } = self.planned(problem, asked)?;
        let Ok(gpu) = self.gpu_backend() else {
            let described = tilewise_core::plan::describe(&plan.problem, &self.0.caps);
            return Ok(described + "chosen  matrixmultiply, its only kernel\n");
        };
        let mut text = tilewise_core::explain(problem, &self.0.caps, library, asked)?;
        if let Some(why) = refused {
            text += &format!("without MSL: {why}\n");
        }
        if let Some((_, who)) = forced {
            text += &format!("forced by {who}\n");
        }
        for (pass, number) in plan.passes.iter().zip(1..) {
            text += &format!("pipeline of pass {number}  {}\n", gpu.pipelines.state(pass));
        }
        Ok(text)
    }

    /// The plan of a problem, with the kernel of that name; on the CPU executor one without passes.
    pub(crate) fn plan(&self, problem: &Problem, kernel: Option<&str>) -> Result<Plan> {
        let forced = self.forced(kernel, problem)?.map(|(forced, _)| forced);
        self.plan_with(problem, forced.as_ref())
    }

    /// The plan of a problem. If the device is known to refuse a kernel in MSL of this plan, it is
    /// a plan of WGSL kernels alone, or an error if the kernel is forced.
    fn planned(&self, problem: &Problem, forced: Option<&Forced>) -> Result<Planned> {
        let library = self.0.library;
        let Ok(gpu) = self.gpu_backend() else {
            forced.map_or(Ok(()), |forced| forced.known(library))?;
            let plan = Plan::without_passes(tilewise_core::plan::check(problem)?);
            return Ok(Planned { plan, library, refused: None });
        };
        forced.map_or(Ok(()), |forced| msl::on(forced, library))?;
        let plan = |library| tilewise_core::plan(problem, &self.0.caps, library, forced);
        let with_all = plan(library)?;
        match gpu.pipelines.refusal(&with_all.passes) {
            None => Ok(Planned { plan: with_all, library, refused: None }),
            Some(why) if forced.is_some() => Err(Error::DeviceLimit(why.to_string())),
            Some(why) => {
                Ok(Planned { plan: plan(msl::WGSL)?, library: msl::WGSL, refused: Some(why) })
            }
        }
    }

    /// The plan with this kernel, or the planner's, whatever the context prefers.
    ///
    /// # Errors
    /// [`DeviceLimit`](crate::Error) when the kernel does not take the problem, or the device is
    /// known to refuse it.
    pub(crate) fn plan_with(&self, problem: &Problem, forced: Option<&Forced>) -> Result<Plan> {
        Ok(self.planned(problem, forced)?.plan)
    }

    /// Every kernel that would do, except those that the device is known to refuse; the cheapest
    /// first.
    pub(crate) fn choices(&self, problem: &Problem) -> Result<Vec<Choice>> {
        let Ok(gpu) = self.gpu_backend() else { return Ok(Vec::new()) };
        let mut choices = tilewise_core::plan::choices(problem, &self.0.caps, self.0.library)?;
        if gpu.pipelines.refusals() > 0 {
            choices.retain(|choice| self.plan_with(problem, Some(&named(choice))).is_ok());
        }
        Ok(choices)
    }

    /// A plan, its pipelines compiled. If the device turns out to refuse a kernel in MSL, `plan` is
    /// asked again.
    pub(crate) fn ready(
        &self,
        gpu: &Gpu,
        plan: impl Fn() -> Result<Plan>,
    ) -> Result<(Plan, Compiled)> {
        loop {
            let refusals = gpu.pipelines.refusals();
            match plan().and_then(|plan| Ok((plan.clone(), gpu.ready(plan)?))) {
                Err(Error::DeviceLimit(_)) if gpu.pipelines.refusals() > refusals => {}
                made => return made,
            }
        }
    }

    /// The pipelines of a problem on the GPU: planned and compiled if nothing like it was met
    /// before.
    pub(crate) fn compile(
        &self,
        gpu: &Gpu,
        problem: &Problem,
        kernel: Option<&Arc<str>>,
    ) -> Result<Arc<Compiled>> {
        let asked = Asked::new(&tilewise_core::plan::check(problem)?, kernel);
        gpu.plans.get_or_make(&asked, || {
            let (plan, compiled) =
                self.ready(gpu, || self.plan(problem, kernel.map(AsRef::as_ref)))?;
            let Problem { m, n, k, .. } = plan.problem;
            log::debug!("planned {m}x{n}x{k} in {} passes", plan.passes.len());
            Ok(Arc::new(compiled))
        })
    }

    /// The kernel that a product must use, and who says so; none when the planner is free to
    /// choose. `call` is the kernel that the call names.
    ///
    /// # Errors
    /// [`Misuse`](crate::Error) for text that names no kernel, and for more splits than K makes;
    /// `DeviceLimit` when the kernel does not take the problem.
    pub(crate) fn forced(
        &self,
        call: Option<&str>,
        problem: &Problem,
    ) -> Result<Option<(Forced, &'static str)>> {
        if let Some(name) = call {
            return Ok(Some((self.usable(name.parse()?, problem)?, "the call")));
        }
        let Preferences { kernel, winners, .. } = &self.0.preferences;
        if let Some(name) = kernel {
            let forced = name.parse().and_then(|forced| self.usable(forced, problem));
            return match forced {
                Ok(forced) => Ok(Some((forced, KERNEL_SOURCE))),
                Err(error) => Err(blaming_options(name, error)),
            };
        }
        let winner = winners.of(problem, &self.0.caps);
        let winner = winner.filter(|winner| {
            admits(problem, &self.0.caps, self.0.library, winner)
                && self.plan_with(problem, Some(winner)).is_ok()
        });
        Ok(winner.map(|winner| (winner, "the tuner")))
    }

    /// The kernel, if it can compute the problem here with all that its name asks for.
    fn usable(&self, forced: Forced, problem: &Problem) -> Result<Forced> {
        forced.met_by(&self.plan_with(problem, Some(&forced))?)?;
        Ok(forced)
    }

    /// Forgets all plans. Call it when [`forced`](Self::forced) may answer otherwise than before.
    pub(crate) fn preferences_changed(&self) {
        if let Ok(gpu) = self.gpu_backend() {
            gpu.plans.clear();
        }
    }
}

/// `Misuse` when the options name a kernel that exists in neither language.
pub(crate) fn known(options: &ContextOptions) -> Result<()> {
    let Some(name) = &options.kernel else { return Ok(()) };
    let known = name.parse().and_then(|forced: Forced| forced.known(msl::ALL));
    known.map_err(|error| blaming_options(name, error))
}

/// The error, whose text says that the options or the environment name the kernel.
fn blaming_options(kernel: &str, error: Error) -> Error {
    match error {
        Error::DeviceLimit(_) => {
            error.map_text(|why| format!("{kernel:?} is forced ({KERNEL_SOURCE}): {why}"))
        }
        Error::Misuse(_) => error.map_text(|why| format!("{KERNEL_SOURCE}: {why}")),
        _ => error,
    }
}

/// The forced kernel that allows just this choice.
pub(crate) fn named(choice: &Choice) -> Forced {
    let Choice { kernel, variant, pad, splits, .. } = *choice;
    Forced {
        kernel: kernel.to_owned(),
        variant: Some(variant.to_owned()),
        pad,
        splits: Some(splits),
    }
}
