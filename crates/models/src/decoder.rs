//! A decoder: its weights, and sessions of it.

use crate::sampling::Sampling;
use crate::session::Session;
use crate::weights::Weighed;
use std::path::Path;
use std::sync::Arc;
use tilewise::{Context, Result, Weights};

/// A decoder-only model: tokens in, logits out.
///
/// ```no_run
/// # fn main() -> tilewise::Result<()> {
/// # let ctx = tilewise::Context::new()?;
/// let decoder = tilewise_models::Decoder::open(&ctx, "model.gguf")?;
/// let mut session = decoder.session(64, Default::default())?; // room for 64 tokens
/// session.feed(&[2, 818, 5279])?;
/// println!("{}, {}", session.next_blocking()?, session.next_blocking()?);
/// # Ok(())
/// # }
/// ```
///
/// It is cheap to clone; clones share the weights.
#[derive(Clone)]
pub struct Decoder(Arc<Weighed>);

impl Decoder {
    /// Opens a model as [`Weights::open`] does. A folder of safetensors must hold `config.json`.
    ///
    /// # Errors
    /// The errors of [`Weights::open`] and [`new`](Self::new).
    pub fn open(context: &Context, path: impl AsRef<Path>) -> Result<Self> {
        Self::new(&Weights::open(context, path)?)
    }

    /// Loads the weights of files that are open, to their context.
    ///
    /// # Errors
    /// The errors of [`Weights::get`]; [`File`](tilewise::Error) when a tensor or a number is
    /// missing, `Unsupported` for a model of another family.
    pub fn new(weights: &Weights) -> Result<Self> {
        Ok(Decoder(Arc::new(Weighed::load(weights)?)))
    }

    /// The number of tokens that it knows.
    pub fn vocabulary(&self) -> usize {
        self.0.vocabulary()
    }

    /// The context that has its weights.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// A text whose next tokens are drawn as `sampling` says. It has room for the keys and values
    /// of `room` tokens in f32: 8 · `room` · layers · heads of keys · elements of a head bytes.
    ///
    /// # Errors
    /// [`Misuse`](tilewise::Error) without room, and for more than the model takes; `OutOfMemory`
    /// and `DeviceLimit`.
    pub fn session(&self, room: usize, sampling: Sampling) -> Result<Session> {
        Session::new(&self.0, room, sampling)
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("layers", &self.0.config.layers).finish_non_exhaustive()
    }
}
