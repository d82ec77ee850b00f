//! Runs the program `tilewise` on files, on the CPU executor and on Vulkan where there is an
//! adapter.

mod bad_input;
mod bench;
mod convert;
mod grouped;
mod inspect;
mod matmul;
mod models;
mod moe;
mod quantized;
mod shown;
mod vectors;
