//! The planner, and the vocabulary that it shares with kernels: **unstable**. This module changes
//! with the kernels, in any release, and so do texts of plans and names of kernels.
//!
//! It is for inspecting plans ([`Gemm::plans`](crate::Gemm::plans),
//! [`Gemm::choices`](crate::Gemm::choices)), for planning without a device ([`plan::plan`],
//! [`RECORDED`](caps::RECORDED)), and for tools around kernels.
//! [`Context::caps`](crate::Context::caps), [`Context::library`](crate::Context::library),
//! [`Gemm::problems`](crate::Gemm::problems) and [`Context::warm_up`](crate::Context::warm_up) use
//! its types.

pub use tilewise_core::caps::{self, Caps, CoopMatrix, DeviceClass, PackedProducts};
pub use tilewise_core::kernel::{self, KernelDef, Language, Library, Variant};
pub use tilewise_core::plan::{self, Choice, Forced, Pass, Plan};
pub use tilewise_core::problem::{self, Bias, Epilogue, Format, Grouping, Operand, Problem};
