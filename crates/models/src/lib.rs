//! Language models on [`tilewise`]: Gemma 3, Llama 3, Qwen 2 and Qwen 3, from GGUF or safetensors
//! in any format that the library reads, on any GPU and on the CPU.
//!
//! ```no_run
//! use tilewise_models::{Model, Sampling};
//!
//! # fn main() -> tilewise::Result<()> {
//! let ctx = tilewise::Context::new()?;
//! let model = Model::open(&ctx, "gemma-3-270m.gguf")?;
//! let prompt = model.tokenizer().encode("The capital of France is")?;
//! let mut answer = model.generate_blocking(&prompt, 20, Sampling::default())?;
//! while let Some(text) = answer.next_blocking()? {
//!     print!("{text}");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`Model`] is a [`Decoder`] with its [`Tokenizer`]. A decoder alone turns tokens into logits:
//! [`Decoder::session`] makes room for a text, [`Session::feed`] adds tokens to it, and
//! [`Session::next`] continues it. An [`Encoder`] makes vectors of sentences. All is written on the
//! public items of `tilewise`.

mod config;
mod decoder;
mod encoder;
mod fault;
mod model;
mod pass;
mod sampling;
mod session;
mod source;
mod tokenizer;
mod vocabulary;
mod weights;

pub use decoder::Decoder;
pub use encoder::Encoder;
pub use model::{Generation, Model};
pub use sampling::Sampling;
pub use session::{Profile, Session, Timed};
pub use tokenizer::Tokenizer;
