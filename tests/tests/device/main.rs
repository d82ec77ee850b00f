//! Tests that need a device: each runs on every adapter of the machine. They are one program,
//! because most of a test program's build is linking the library. `cargo xtask suite` runs them a
//! module at a time.

mod accumulation;
mod adapters;
mod api;
mod arena;
mod arithmetic;
mod bad_input;
mod bindings;
mod concat;
mod convert;
mod errors;
mod every_kernel;
mod exact;
mod examples;
mod face;
mod factors;
mod gathered;
mod grouped;
mod kernel;
mod kernel_check;
mod kernel_errors;
mod kernel_pointers;
mod large;
mod layers;
mod limits;
mod metamorphic;
mod moe;
mod ndarray;
mod ops;
mod property;
mod quantized;
mod random;
mod recordings;
mod sanitized_bits;
mod scales;
mod semantics;
mod shards;
mod split;
mod strides;
mod submissions;
mod tuner;
mod views;
#[cfg(target_os = "linux")]
mod weights;
