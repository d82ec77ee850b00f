//! The library's examples, which check their own results. Here they are modules, so any test runner
//! builds and runs them. Each is also a program.

// They share a file of helpers, and their `main` is not called.
#![allow(clippy::duplicate_mod, dead_code)]

use tilewise::Context;
use tilewise_tests::{adapters, contexts};

#[path = "../../../crates/tilewise/examples/attention.rs"]
mod attention;
#[path = "../../../crates/tilewise/examples/moe_backward.rs"]
mod moe_backward;
#[path = "../../../crates/tilewise/examples/own_device.rs"]
mod own_device;
#[path = "../../../crates/tilewise/examples/routed_experts.rs"]
mod routed_experts;
#[path = "../../../crates/tilewise/examples/training.rs"]
mod training;

/// Runs an example on every adapter and on the CPU.
fn everywhere(example: fn(&Context) -> tilewise::Result<()>) {
    for context in contexts() {
        example(&context).unwrap_or_else(|error| panic!("{context:?}: {error}"));
    }
}

#[test]
fn attention_in_heads() {
    everywhere(attention::run);
}

#[test]
fn experts_by_routes() {
    everywhere(routed_experts::run);
}

#[test]
fn slopes_of_experts() {
    everywhere(moe_backward::run);
}

#[test]
fn training_in_place() {
    everywhere(|context| training::train(context, training::STEPS, |_| ()));
}

#[test]
fn a_product_on_ones_own_device() {
    for adapter in adapters() {
        own_device::run(&adapter.found())
            .unwrap_or_else(|error| panic!("{}: {error}", adapter.name()));
    }
}
