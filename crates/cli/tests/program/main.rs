//! Runs the program `tilewise` on files, on the CPU executor and, if there is an adapter, on
//! Vulkan.

mod bad_input;
mod bench;
mod convert;
mod embed;
mod generate;
mod grouped;
mod inspect;
mod matmul;
mod models;
mod moe;
mod quantized;
mod shown;
mod vectors;
