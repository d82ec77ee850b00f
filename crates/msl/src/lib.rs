//! The MSL kernels of tilewise as files, for Apple's GPUs, the tables that compose them, and
//! [`assemble`], which puts the part files of a pass together.
//!
//! They take the same problems as the WGSL kernels of `tilewise-shaders` and are planned by the
//! same planner: [`LIBRARY`] has both. A pass in MSL binds what its plan says, in the slots of
//! Metal's buffer table that wgpu gives to the entries of the pipeline's layout: the parameters,
//! then `Pass::bindings` in their order. Nothing here needs a Mac; what the kernels compute is
//! proven on CPUs (tests/src/harness).

mod assemble;
mod files;
mod mainloops;
mod tables;

pub use assemble::{ENTRY, assemble, assemble_with};
pub use files::FILES;
pub use mainloops::{KERNELS, LIBRARY};
pub use tables::{KIT, SOURCES};
