//! One suite over every kernel, variant, dtype and adapter. Each file under `tests/` is a theme;
//! this library has what they share.
//!
//! - [`mod@adapters`]: every adapter of this machine as an open context, and what `TILEWISE_ONLY`
//!   and `TILEWISE_REQUIRE` demand of them.
//! - [`mod@kernels`]: all kernels and formats, from the library's own tables. The suite has a new
//!   one by itself.
//! - [`mod@bert`]: a tiny model of sentences, in a folder and in f64.
//! - [`case`](mod@case): a product as a test names it. [`place`]: where its operands lie.
//!   [`generators`]: what they hold.
//! - [`mod@browser`]: the suite for browsers.
//! - [`mod@cases`]: the cases that run on CPUs, for the kernels of either language.
//! - [`mod@compilers`]: what the compilers of platforms say of the library's texts.
//! - [`mod@counted`]: cases for quantized weights as bytes.
//! - [`mod@estimate`]: what the kernels in MSL ask of a GPU, counted from their table lines.
//! - [`mod@few_texts`]: as many of those cases as few shaders serve, because compiling takes time.
//! - [`harness`](mod@harness): runs kernels in MSL on the CPU.
//! - [`language`](mod@language): tiny language models, as files.
//! - [`lines`](mod@lines): operands with their lines in another order.
//! - [`minima`](mod@minima): the least that an API promises of a device.
//! - [`mod@models`]: real models that have been fetched.
//! - [`moe`](mod@moe): layers of experts.
//! - [`ops`](mod@ops): ready operations.
//! - [`pieces`](mod@pieces): whether a plan keeps to limits and computes every element once.
//! - [`program`](mod@program): a program of the workspace, run from outside.
//! - [`runner`]: runs a case between guard bands and compares the whole output with the oracle's.
//! - [`random`](mod@random): cases drawn at random.
//! - [`mutants`](mod@mutants): plants mistakes in the library's kernels and looks whether the suite
//!   notices.
//! - [`texts`](mod@texts): every text of the library, as devices get it.
//! - [`turns`](mod@turns): work that takes too long for every run.
//! - [`sanitized`](mod@sanitized): runs a case's shaders in the sanitizer, with the logical ranges
//!   of all operands declared.

pub mod browser;
pub mod case;
pub mod conversions;
pub mod generators;
pub mod kernels;
pub mod moe;
pub mod ops;
pub mod place;
pub mod runner;
pub mod themes;
pub mod turns;

// These modules are not for browsers: a browser lacks threads, files and other programs.
#[cfg(not(target_family = "wasm"))]
pub mod adapters;
#[cfg(not(target_family = "wasm"))]
pub mod arithmetic;
#[cfg(not(target_family = "wasm"))]
pub mod bert;
#[cfg(not(target_family = "wasm"))]
pub mod cases;
#[cfg(not(target_family = "wasm"))]
pub mod compilers;
#[cfg(not(target_family = "wasm"))]
pub mod counted;
#[cfg(not(target_family = "wasm"))]
pub mod estimate;
#[cfg(not(target_family = "wasm"))]
pub mod few_texts;
#[cfg(not(target_family = "wasm"))]
pub mod harness;
#[cfg(not(target_family = "wasm"))]
pub mod language;
#[cfg(not(target_family = "wasm"))]
pub mod lines;
#[cfg(not(target_family = "wasm"))]
pub mod minima;
#[cfg(not(target_family = "wasm"))]
pub mod models;
#[cfg(not(target_family = "wasm"))]
pub mod msl;
#[cfg(not(target_family = "wasm"))]
pub mod mutants;
#[cfg(not(target_family = "wasm"))]
pub mod pieces;
#[cfg(not(target_family = "wasm"))]
pub mod program;
#[cfg(not(target_family = "wasm"))]
pub mod random;
#[cfg(not(target_family = "wasm"))]
pub mod sanitized;
#[cfg(not(target_family = "wasm"))]
pub mod scaled;
#[cfg(not(target_family = "wasm"))]
pub mod texts;
#[cfg(not(target_family = "wasm"))]
pub mod translated;

pub use case::Case;
pub use generators::{Data, Rng};
pub use kernels::{
    Kernel, all_kernels, floor, kernels, one_of_each, quant_families, quant_formats,
};
pub use place::{Count, Entries, Place};
pub use runner::{Filled, Outcome};
#[cfg(not(target_family = "wasm"))]
pub use {
    adapters::{Adapter, adapters, by_threads, contexts},
    models::fetched,
    program::Program,
    runner::suite::{Suite, run},
};

/// The examples of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// Whether it failed with an error whose text begins with `start`.
pub fn fails_with<T>(result: &tilewise::Result<T>, start: &str) -> bool {
    result.as_ref().is_err_and(|error| error.to_string().starts_with(start))
}
