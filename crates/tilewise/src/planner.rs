//! The planner, and the vocabulary that it shares with kernels, behind the feature `planner`:
//! **unstable**. This module changes with the kernels, in any release, and so does every item that
//! names its types: `plans`, `problems` and `choices` of products, `caps` and `library`,
//! [`Context::explain`], [`Context::tune`], [`Context::warm_up_problems`] and
//! [`time_planned`](crate::timing::time_planned).
//!
//! It is for inspecting plans ([`Gemm::plans`](crate::Gemm::plans),
//! [`Gemm::choices`](crate::Gemm::choices)), for planning without a device ([`plan::plan`],
//! [`RECORDED`](caps::RECORDED)), and for tools around kernels.

use crate::adapter::AdapterDescription;
use crate::adapter::msl;
use crate::adapter::options::ContextOptions;
use crate::context::Context;
use crate::tuner::Tuned;
use tilewise_core::Result;
pub use tilewise_core::caps::{self, Caps, CoopMatrix, DeviceClass, PackedProducts};
pub use tilewise_core::kernel::{self, KernelDef, Language, Library, Variant};
pub use tilewise_core::plan::{self, Choice, Forced, Pass, Plan};
pub use tilewise_core::problem::{self, Bias, Epilogue, Format, Grouping, Operand, Problem};

impl AdapterDescription {
    /// Its features and limits.
    pub fn caps(&self) -> &Caps {
        &self.caps
    }

    /// The kernels of a context on this adapter with these options.
    pub fn library(&self, options: &ContextOptions) -> &'static Library {
        msl::library(options.msl, self.msl)
    }
}

impl Context {
    /// The device's features and limits.
    pub fn caps(&self) -> &Caps {
        &self.0.caps
    }

    /// The kernels that the planner chooses from. They include kernels in MSL if the context may
    /// use them, even kernels that the device has refused; [`explain`](Self::explain) says which.
    pub fn library(&self) -> &'static Library {
        self.0.library
    }

    /// Plans these problems and compiles the pipelines that they need, like
    /// [`warm_up`](Self::warm_up) without operands. On the CPU executor the problems are only
    /// checked.
    ///
    /// ```
    /// use tilewise::planner::Problem;
    /// use tilewise::{Activation, Context, DType, Gemm, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// ctx.warm_up_problems(&[1, 128].map(|rows| Problem::dense(DType::F32, rows, 64, 32)))?;
    ///
    /// // A problem with strides, an epilogue or groups is had from a product.
    /// let x = Tensor::zeros(&ctx, DType::F32, &[8, 32])?;
    /// let w = Tensor::zeros(&ctx, DType::F32, &[64, 32])?;
    /// ctx.warm_up_problems(&Gemm::new(&x, &w.t()).activation(Activation::Relu).problems()?)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::Error), `Unsupported`, `DeviceLimit` for the first problem that cannot be
    /// run on this device; `Misuse` for a context's kernel that is not one of its
    /// [library](Self::library).
    pub fn warm_up_problems(&self, problems: &[Problem]) -> Result<()> {
        self.prepare(problems, None)
    }

    /// Which kernel a product uses here and why not another, as text. `kernel` is one that the call
    /// names ([`Gemm::kernel`](crate::Gemm::kernel)). As in a product, it counts before the kernels
    /// of the environment and the tuner. The text ends with the state of each pass's pipeline:
    /// whether it is compiled, and how long that took.
    ///
    /// # Errors
    /// The errors of [`warm_up_problems`](Self::warm_up_problems); [`Misuse`](crate::Error) for
    /// text that names no kernel, `DeviceLimit` when the kernel does not take the problem.
    pub fn explain(&self, problem: &Problem, kernel: Option<&str>) -> Result<String> {
        self.explained(problem, kernel)
    }

    /// Like [`Gemm::tune_blocking`](crate::Gemm::tune_blocking), for a problem.
    /// [`Gemm::problems`](crate::Gemm::problems) gives those of a product.
    ///
    /// # Errors
    /// The errors of [`plan`](plan::plan) for a problem that cannot be computed here;
    /// [`DeviceLimit`](crate::Error), `OutOfMemory` for the operands.
    #[cfg(not(target_family = "wasm"))]
    pub fn tune_blocking(&self, problem: &Problem) -> Result<Tuned> {
        self.tuned_blocking(problem)
    }

    /// Like [`Gemm::tune`](crate::Gemm::tune), for a problem.
    ///
    /// # Errors
    /// The errors of `tune_blocking`.
    pub async fn tune(&self, problem: &Problem) -> Result<Tuned> {
        Ok(self.tuned(problem).await?.0)
    }
}
