//! Tests that run on the CPU alone: the planner's goldens, the CPU executor, and kernels in the
//! sanitizer or, as MSL, by clang.

mod cpu;
mod few_buffers;
mod lacking;
mod msl;
mod plans;
mod sanitized;
mod scratch;
mod small_devices;
mod submissions;
mod translated;
mod valid;
mod views;
