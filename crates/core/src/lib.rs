//! Vocabulary and planner of tilewise: what a product is ([`Problem`]), what an adapter can do
//! ([`Caps`]), what a kernel is ([`KernelDef`]), and [`plan()`], the pure function that brings the
//! three together.
//!
//! Nothing here touches a device or a file. Executors (in the crate `tilewise`) run a [`Plan`] and
//! decide nothing.

mod activation;
pub mod caps;
pub mod convert;
pub mod cost;
mod dtype;
pub mod error;
mod grouping;
pub mod kernel;
#[doc(hidden)]
pub mod lanes;
mod language;
mod list_sizes;
mod listed;
mod model;
mod nested;
mod params;
pub mod plan;
mod precision;
pub mod problem;
pub mod quant;
mod role;

pub use caps::{Caps, CoopMatrix, DeviceClass, PackedProducts};
pub use error::{Cause, Error, Result};
pub use kernel::{Access, KernelDef, Reject, Variant};
pub use params::Params;
pub use plan::{Choice, Cut, Pass, Plan, explain, plan};
pub use problem::{
    Activation, Axis, Bias, DType, Dimension, Epilogue, Format, Gathered, Grouping, Operand,
    Precision, Problem, Segment,
};
pub use quant::QuantFormat;
