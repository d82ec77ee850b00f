//! Text to tokens, and back.

use crate::fault::{fault, of_tokenizer};
use crate::source::{beside, json_beside};
use crate::vocabulary;
use serde_json::Value;
use std::collections::BTreeSet;
use tilewise::{Result, Weights};

/// Turns text into tokens, and tokens into text: of `tokenizer.json`, or of GGUF's metadata.
///
/// ```no_run
/// # fn main() -> tilewise::Result<()> {
/// # let ctx = tilewise::Context::new()?;
/// let model = tilewise_models::Model::open(&ctx, "model.gguf")?;
/// let tokens = model.tokenizer().encode("Hello")?;
/// println!("{}", model.tokenizer().decode(&tokens)?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    stops: BTreeSet<u32>,
    chat: Option<&'static Chat>,
}

/// How a family of instruction models marks turns.
#[derive(Debug)]
struct Chat {
    before: &'static str,
    after: &'static str,
    /// Ends a turn. A vocabulary that has it is of this family.
    end: &'static str,
}

const CHATS: [Chat; 3] = [
    // Gemma.
    Chat {
        before: "<start_of_turn>user\n",
        after: "<end_of_turn>\n<start_of_turn>model\n",
        end: "<end_of_turn>",
    },
    // Llama 3.
    Chat {
        before: "<|start_header_id|>user<|end_header_id|>\n\n",
        after: "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
        end: "<|eot_id|>",
    },
    // ChatML, Qwen's.
    Chat {
        before: "<|im_start|>user\n",
        after: "<|im_end|>\n<|im_start|>assistant\n",
        end: "<|im_end|>",
    },
];

impl Tokenizer {
    /// The tokenizer of files that are open.
    ///
    /// # Errors
    /// [`File`](tilewise::Error) when it is missing or malformed,
    /// [`Unsupported`](tilewise::Error) for another kind.
    pub fn new(weights: &Weights) -> Result<Self> {
        let files = weights.model();
        let (inner, mut stops, instructed): (_, BTreeSet<u32>, _) =
            if files.gguf_version().is_some() {
                let id = |key: &str| files.gguf_value(key).and_then(|value| value.as_u64());
                let stops =
                    ["eos", "eot"].map(|name| id(&format!("tokenizer.ggml.{name}_token_id")));
                let stops = stops.into_iter().flatten().map(|id| id as u32).collect();
                let instructed = files.gguf_value("tokenizer.chat_template").is_some();
                (vocabulary::of_gguf(files)?, stops, instructed)
            } else {
                let file = beside(weights, "tokenizer.json");
                let mut inner = tokenizers::Tokenizer::from_file(&file)
                    .map_err(|error| fault(format!("{}: {error}", file.display())))?;
                // Files of encoders fill texts up to a length, and cut them.
                inner.with_padding(None).with_truncation(None).map_err(of_tokenizer)?;
                // A file that is not there says nothing.
                let json = |name| json_beside(weights, name).unwrap_or_default();
                let ends = ["generation_config.json", "config.json"].map(json);
                let stops = ends.iter().flat_map(|json| numbers(&json["eos_token_id"])).collect();
                let instructed = beside(weights, "chat_template.jinja").exists()
                    || json("tokenizer_config.json").get("chat_template").is_some();
                (inner, stops, instructed)
            };
        let known = CHATS.iter().find_map(|chat| Some((chat, inner.token_to_id(chat.end)?)));
        stops.extend(known.map(|(_, end)| end));
        let chat = known.map(|(chat, _)| chat).filter(|_| instructed);
        Ok(Tokenizer { inner, stops, chat })
    }

    /// The tokens of a text, behind the token that begins texts if the model wants it.
    /// Names of special tokens, such as `<end_of_turn>`, become these tokens.
    ///
    /// # Errors
    /// [`File`](tilewise::Error) when the tokenizer has no token for a part of the text.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let encoded = self.inner.encode_fast(text, true).map_err(of_tokenizer)?;
        Ok(encoded.get_ids().to_vec())
    }

    /// The tokens of a message to an instruction model, up to where the answer begins. The
    /// template is a plain one of the family: Gemma's `<start_of_turn>`, Llama 3's headers, or
    /// ChatML. A model without a template, which continues texts, gets the message alone.
    ///
    /// # Errors
    /// The errors of [`encode`](Self::encode).
    pub fn chat(&self, message: &str) -> Result<Vec<u32>> {
        let Some(Chat { before, after, .. }) = self.chat else { return self.encode(message) };
        self.encode(&format!("{before}{message}{after}"))
    }

    /// Whether [`chat`](Self::chat) has marks for a message.
    pub fn has_chat(&self) -> bool {
        self.chat.is_some()
    }

    /// The text of tokens, without special ones. Bytes that are no UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// [`File`](tilewise::Error) when the tokenizer fails.
    pub fn decode(&self, tokens: &[u32]) -> Result<String> {
        self.inner.decode(tokens, true).map_err(of_tokenizer)
    }

    /// Whether a token ends an answer.
    pub fn stops(&self, token: u32) -> bool {
        self.stops.contains(&token)
    }

    /// Decodes tokens one by one: a function that gives the new text, once its characters are
    /// complete.
    ///
    /// ```no_run
    /// # fn main() -> tilewise::Result<()> {
    /// # let ctx = tilewise::Context::new()?;
    /// let model = tilewise_models::Model::open(&ctx, "model.gguf")?;
    /// let mut decode = model.tokenizer().stream();
    /// print!("{}", decode(818)?.unwrap_or_default());
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream(&self) -> impl FnMut(u32) -> Result<Option<String>> + '_ {
        // Tokens whose text was told last, because the next one's may depend on it, and newer ones.
        let (mut tokens, mut told) = (Vec::new(), 0);
        move |token| {
            tokens.push(token);
            let (before, text) = (self.decode(&tokens[..told])?, self.decode(&tokens)?);
            if text.ends_with(char::REPLACEMENT_CHARACTER) {
                return Ok(None);
            }
            // Bytes that are no UTF-8 may replace characters that were told already.
            let new: String = text.chars().skip(before.chars().count()).collect();
            tokens.drain(..told);
            told = tokens.len();
            Ok(Some(new))
        }
    }
}

/// A number, or several.
fn numbers(json: &Value) -> Vec<u32> {
    let all = json.as_array().map_or(std::slice::from_ref(json), Vec::as_slice);
    all.iter().filter_map(Value::as_u64).map(|number| number as u32).collect()
}
