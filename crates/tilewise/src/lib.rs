//! Matrix multiplication on any GPU.
//!
//! It computes C = epilogue(alpha · op(A) · op(B) + beta · C), dense, with quantized weights (MLX's
//! and GGUF's formats), or grouped (mixture of experts). One set of WGSL kernels runs through wgpu
//! on Vulkan, Metal, DX12, OpenGL and in browsers; Apple's GPUs also have kernels in MSL (feature
//! `msl`). Without a GPU the same calls run on the CPU.
//!
//! - [`Context`] holds an adapter and its device, and everything worth keeping between calls.
//! - [`Tensor`] is a typed, strided view of a buffer; [`QuantizedTensor`] is a weight matrix in few
//!   bits. [`Prepared`] is a constant operand, packed or decoded once.
//! - [`Gemm`] is one product: build it, then [`run`](Gemm::run) it, or [`record`](Gemm::record) it
//!   into your compute pass or command encoder. It can [`explain`](Gemm::explain) which kernel it
//!   chose.
//! - [`Recorder`] takes the operations of a model one after the other, on a GPU or on the CPU.
//! - [`Take`] copies rows and columns of a table by index, and decodes quantized weights.
//!   [`Quantize`] makes quantized weights on the device.
//! - [`ops`] has ready kernels between products: softmax, norms, elementwise functions.
//! - [`moe::MoeLayer`] is a mixture of experts, from a router's logits to the output.
//! - [`Gemm::tune`] times the kernels that take a product and might be fast, and keeps the fastest
//!   for later calls and runs.
//! - [`Kernel`] is your own kernel: you write its body in WGSL. [`Call`] is one use of it. It runs
//!   where products run, and under a sanitizer: [`Kernel::check`].
//!
//! Longer examples, each a program, lie in the crate's folder `examples`: a product on your device
//! and in your pass, training, attention, routed experts and their slopes.
//!
//! # Features
//!
//! Defaults:
//!
//! - `vulkan`, `metal`, `dx12`, `gles`, `webgpu`: wgpu's backends.
//! - `msl`: kernels in MSL for Apple's GPUs.
//! - `custom-kernels`: [`Kernel`], [`Call`], [`ops`], [`moe`] and the sanitizer. Without it the
//!   library has products alone, and needs fewer crates.
//!
//! Not a default:
//!
//! - `files`: loads the weights of model files, `.safetensors`, GGUF, GPTQ, AWQ, FP8, bitsandbytes,
//!   HQQ, GPT-OSS and compressed-tensors (`Weights`).
//! - `ndarray`: tensors from arrays of the crate [ndarray](https://docs.rs/ndarray) 0.17, and back
//!   (`Tensor::from_ndarray`, `to_ndarray`).
//! - `planner`: the module `planner`, which inspects plans and plans without a device.
//!
//! # Blocking and async
//!
//! A call that must wait for the device comes in two forms: a future under its plain name, and a
//! blocking call with `_blocking` in its name, which browsers lack ([`Tensor::read`],
//! [`Tensor::read_blocking`]). All other calls submit work, or record it, and wait for nothing.
//! [`Context::new`] and [`Context::gpu`] are short for [`Context::request_blocking`].
//!
//! # Stability
//!
//! Within 0.1 only additions. The feature `planner` is exempt. Texts (of errors, plans and reports)
//! and speed are no part of the promise.
//!
//! # Example
//!
//! ```
//! use tilewise::{Activation, Context, Gemm, Tensor};
//!
//! # fn main() -> tilewise::Result<()> {
//! let ctx = Context::new()?; // the best GPU, or the CPU when there is none
//! let a = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
//! let b = Tensor::upload(&ctx, &[1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0], &[3, 2])?;
//! let c = ctx.matmul(&a, &b)?;
//! assert_eq!(c.read_blocking::<f32>()?, [4.0, 5.0, 10.0, 11.0]);
//!
//! let bias = Tensor::upload(&ctx, &[-5.0f32, 0.5], &[2])?;
//! let y = Gemm::new(&a, &b).bias(&bias).activation(Activation::Relu).run()?;
//! assert_eq!(y.read_blocking::<f32>()?, [0.0, 5.5, 5.0, 11.5]);
//! # Ok(())
//! # }
//! ```

// rustdoc asks whether types are `Send`, all the way down into wgpu.
#![recursion_limit = "256"]

mod adapter;
mod context;
mod execute;
mod gemm;
mod gpu;
mod host;
#[cfg(feature = "custom-kernels")]
mod kernel;
#[cfg(feature = "custom-kernels")]
pub mod moe;
#[cfg(feature = "custom-kernels")]
pub mod ops;
#[cfg(feature = "planner")]
pub mod planner;
mod prepared;
mod quantized;
mod recorder;
mod right;
mod take;
mod tensor;
pub mod timing;
mod tuner;
#[cfg(feature = "files")]
mod weights;

pub use adapter::options::{ContextOptions, Switch};
pub use adapter::{AdapterDescription, adapters, device_descriptor};
pub use context::Context;
pub use gemm::Gemm;
pub use gemm::ends::GroupEnds;
pub use gemm::product_list::{ProductList, ProductShape};
#[cfg(feature = "custom-kernels")]
pub use kernel::{Call, Check, Constant, Edge, Kernel};
pub use prepared::Prepared;
pub use quantized::QuantizedTensor;
pub use quantized::planes::PlaneSource;
pub use quantized::quantize::Quantize;
pub use recorder::{AsRecorder, Recorder, Recording};
pub use right::{RightOperand, Shards};
pub use take::Take;
pub use tensor::{Element, Tensor};
pub use tilewise_core::quant::Quantized;
pub use tilewise_core::{Activation, Axis, Cause, DType, Error, Precision, QuantFormat, Result};
pub use tuner::{Trial, Tuned};
#[cfg(feature = "files")]
pub use weights::{Weight, Weights};
pub use wgpu;

/// Model files, without a device. [`Weights`] loads tensors from them.
#[cfg(feature = "files")]
pub mod model {
    pub use tilewise_files::{Chunk, Expected, Files, Model, Output, Sink, TensorKind, TensorView};
    pub use tilewise_files::{Value, ValueArray, tensor_name, write};
}

/// The sanitizer's options and reports, for [`Kernel::check`].
#[cfg(feature = "custom-kernels")]
pub mod sanitizer {
    pub use tilewise_sanitizer::{
        Access, Finding, Kind, Label, Options, Place, Report, Shader, ZeroInit,
    };
}

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
