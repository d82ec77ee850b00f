//! Model files: `.safetensors` in MLX's naming, GGUF, and the layouts of GPTQ, AWQ, FP8,
//! bitsandbytes, HQQ, GPT-OSS and compressed-tensors, which become formats of this library when
//! they are loaded. No GPU.
//!
//! [`Model::open`] reads the files of a model and lists its tensors; [`Model::map`] maps them. A
//! quantized matrix is one [`TensorView`], however many tensors of the file hold its planes.
//! [`TensorView::stream`] gives the bytes of its planes in chunks of a few MiB: a mapped file needs
//! little memory, whatever its size. [`write()`] makes a `.safetensors` file of such streams.
//!
//! Files are untrusted. Every count, size and offset is checked before it is used. An error names
//! the file, the tensor, the numbers, and the offset in bytes if there is one.

mod claims;
mod config;
mod error;
mod gguf;
mod group;
mod header;
mod identify;
mod json;
mod layouts;
mod model;
mod names;
mod npy;
mod opening;
mod raw;
mod replace;
mod shard;
mod signature;
mod source;
mod split;
mod stream;
mod tensor;
mod write;

pub use claims::Expected;
pub use gguf::{Value, ValueArray};
pub use identify::tensor_name;
pub use model::Model;
pub use npy::{Npy, Scalar};
pub use replace::replace;
pub use source::Files;
pub use stream::{CHUNK, Chunk, Sink};
pub use tensor::{TensorKind, TensorView};
pub use tilewise_core::{Error, Result};
pub use write::{Output, write, write_to};
