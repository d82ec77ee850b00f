//! One suite over every kernel, variant, dtype and adapter. A theme per file under `tests/`; what
//! they share is here.
//!
//! - [`mod@adapters`]: every adapter of this machine as an open context, and what `TILEWISE_ONLY`
//!   and `TILEWISE_REQUIRE` demand of them.
//! - [`mod@kernels`]: the kernels and formats there are, from the library's own tables: a new one
//!   is in the suite by itself.
//! - [`case`](mod@case): a product as a test names it. [`place`]: where its operands lie.
//!   [`generators`]: what they hold.
//! - [`mod@cases`]: the cases that run on CPUs, for the kernels of either language.
//! - [`mod@counted`]: cases for quantized weights as bytes.
//! - [`mod@estimate`]: what the kernels in MSL ask of a GPU, counted from their table lines.
//! - [`mod@few_texts`]: of those as many as share few shaders, where compiling is what takes time.
//! - [`harness`](mod@harness): runs kernels in MSL on the CPU.
//! - [`lines`](mod@lines): operands with their lines in another order.
//! - [`minima`](mod@minima): the least that an API promises of a device.
//! - [`ops`](mod@ops): ready operations.
//! - [`pieces`](mod@pieces): whether a plan keeps to limits and computes every element once.
//! - [`program`](mod@program): a program of the workspace, run from outside.
//! - [`runner`]: runs a case between guard bands and holds the whole of the output against the
//!   oracle.
//! - [`random`](mod@random): cases drawn at random.
//! - [`mutants`](mod@mutants): plants mistakes in the library's kernels and looks whether the suite
//!   notices.
//! - [`turns`](mod@turns): work that takes too long for every run.
//! - [`sanitized`](mod@sanitized): runs a case's shaders in the sanitizer, with the logical ranges
//!   of all operands declared.

pub mod adapters;
pub mod arithmetic;
pub mod case;
pub mod cases;
pub mod conversions;
pub mod counted;
pub mod estimate;
pub mod few_texts;
pub mod generators;
pub mod harness;
pub mod kernels;
pub mod lines;
pub mod minima;
pub mod msl;
pub mod mutants;
pub mod ops;
pub mod pieces;
pub mod place;
pub mod program;
pub mod random;
pub mod runner;
pub mod sanitized;
pub mod scaled;
pub mod themes;
pub mod translated;
pub mod turns;

pub use adapters::{Adapter, adapters, contexts};
pub use case::Case;
pub use generators::{Data, Rng};
pub use kernels::{
    Kernel, all_kernels, floor, kernels, one_of_each, quant_families, quant_formats,
};
pub use place::{Count, Entries, Place};
pub use program::Program;
pub use runner::{Filled, Outcome, Suite, run};

/// The examples of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
