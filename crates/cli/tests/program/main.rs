//! Runs the program `tilewise` on files, on the CPU executor and on Vulkan where there is an adapter.

mod bad_input;
mod bench;
mod grouped;
mod matmul;
mod quantized;
mod shown;
mod vectors;
