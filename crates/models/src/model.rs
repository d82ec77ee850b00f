//! A decoder with its tokenizer.

use crate::decoder::Decoder;
use crate::fault::misuse;
use crate::sampling::Sampling;
use crate::session::Session;
use crate::tokenizer::Tokenizer;
use std::path::Path;
use tilewise::{Context, Result, Weights};

/// A decoder with its tokenizer: text in, text out.
///
/// ```no_run
/// # fn main() -> tilewise::Result<()> {
/// # let ctx = tilewise::Context::new()?;
/// let model = tilewise_models::Model::open(&ctx, "llama-3.2-1b-instruct.gguf")?;
/// let prompt = model.tokenizer().chat("What is the capital of France?")?;
/// let mut answer = model.generate_blocking(&prompt, 100, Default::default())?;
/// while let Some(text) = answer.next_blocking()? {
///     print!("{text}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Model {
    decoder: Decoder,
    tokenizer: Tokenizer,
}

/// An answer on its way, from [`Model::generate`].
pub struct Generation<'m> {
    session: Session,
    tokenizer: &'m Tokenizer,
    decode: Box<dyn FnMut(u32) -> Result<Option<String>> + 'm>,
    left: usize,
    tokens: Vec<u32>,
}

impl Model {
    /// Opens a GGUF file, or a folder of safetensors with `config.json` and `tokenizer.json`, as
    /// [`Weights::open`] does.
    ///
    /// # Errors
    /// The errors of [`Weights::open`], [`Decoder::new`] and [`Tokenizer::new`].
    pub fn open(context: &Context, path: impl AsRef<Path>) -> Result<Self> {
        Self::new(&Weights::open(context, path)?)
    }

    /// Loads the weights of files that are open, to their context.
    ///
    /// # Errors
    /// The errors of [`Decoder::new`] and [`Tokenizer::new`].
    pub fn new(weights: &Weights) -> Result<Self> {
        Ok(Model { tokenizer: Tokenizer::new(weights)?, decoder: Decoder::new(weights)? })
    }

    /// The decoder.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Continues a prompt by up to `tokens` tokens, drawn as `sampling` says. Returns when the
    /// prompt is computed.
    ///
    /// # Errors
    /// [`Misuse`](tilewise::Error) when prompt or `tokens` is nothing; the errors of the device.
    pub async fn generate(
        &self,
        prompt: &[u32],
        tokens: usize,
        sampling: Sampling,
    ) -> Result<Generation<'_>> {
        if tokens == 0 {
            return Err(misuse("an answer of 0 tokens"));
        }
        // The last token is only told, so it needs no room.
        let mut session =
            self.decoder.session(prompt.len().saturating_add(tokens - 1), sampling)?;
        session.feed(prompt)?;
        self.decoder.context().wait().await?;
        let tokenizer = &self.tokenizer;
        let decode = Box::new(tokenizer.stream());
        Ok(Generation { session, tokenizer, decode, left: tokens, tokens: Vec::new() })
    }

    /// [`generate`](Self::generate), and waits for the prompt.
    ///
    /// # Errors
    /// The errors of [`generate`](Self::generate).
    #[cfg(not(target_family = "wasm"))]
    pub fn generate_blocking(
        &self,
        prompt: &[u32],
        tokens: usize,
        sampling: Sampling,
    ) -> Result<Generation<'_>> {
        pollster::block_on(self.generate(prompt, tokens, sampling))
    }
}

impl Generation<'_> {
    /// The next piece of text; none at the end of the answer. A piece has whole characters: a
    /// token that ends inside of one gives an empty piece.
    ///
    /// # Errors
    /// The errors of [`Session::next`] and [`Tokenizer::decode`].
    pub async fn next(&mut self) -> Result<Option<String>> {
        if self.left == 0 {
            return Ok(None);
        }
        let token = self.session.next().await?;
        self.left -= 1;
        self.tokens.push(token);
        if self.tokenizer.stops(token) {
            self.left = 0;
            return Ok(None);
        }
        (self.decode)(token).map(|text| Some(text.unwrap_or_default()))
    }

    /// [`next`](Self::next), and waits for it.
    ///
    /// # Errors
    /// The errors of [`next`](Self::next).
    #[cfg(not(target_family = "wasm"))]
    pub fn next_blocking(&mut self) -> Result<Option<String>> {
        pollster::block_on(self.next())
    }

    /// The tokens so far, with the one that ended the answer.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// The session, to be [profiled](Session::profile) or fed.
    pub fn into_session(self) -> Session {
        self.session
    }
}

impl std::fmt::Debug for Generation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Generation").field("tokens", &self.tokens).finish_non_exhaustive()
    }
}
