//! Tokenizers of GGUF's metadata.

use crate::fault::{fault, of_tokenizer};
use std::cmp::Reverse;
use std::collections::HashMap;
use tilewise::model::{Model as Files, Value};
use tilewise::{Error, Result};
use tokenizers::decoders::{
    DecoderWrapper, byte_fallback::ByteFallback, fuse::Fuse, sequence::Sequence as Decoders,
    strip::Strip,
};
use tokenizers::models::bpe::{BPE, BpeBuilder, Vocab};
use tokenizers::normalizers::{
    NormalizerWrapper, Prepend, Replace, unicode::NFC, utils::Sequence as Normalizers,
};
use tokenizers::pre_tokenizers::{
    PreTokenizerWrapper,
    byte_level::ByteLevel,
    sequence::Sequence as PreTokenizers,
    split::{Split, SplitPattern},
};
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, SplitDelimiterBehavior, Tokenizer};

/// The space in the pieces of SentencePiece.
const SPACE: &str = "▁";

/// GGUF's numbers of kinds of tokens.
const UNKNOWN: u64 = 2;
const CONTROL: u64 = 3;
const USER_DEFINED: u64 = 4;

/// GGUF's metadata on tokens.
struct Vocabulary<'a> {
    files: &'a Files,
    tokens: Vec<String>,
    kinds: Vec<u64>,
}

/// The tokenizer of a GGUF file.
///
/// # Errors
/// `File` for metadata that is missing or malformed, `Unsupported` for a kind that is not known.
pub(crate) fn of_gguf(files: &Files) -> Result<Tokenizer> {
    let tokens = array(files, "tokens", |value| value.as_str().map(str::to_owned))?;
    let kinds = array(files, "token_type", |value| value.as_u64())?;
    if tokens.len() != kinds.len() {
        return Err(fault(format!("{} tokens with {} types", tokens.len(), kinds.len())));
    }
    let vocabulary = Vocabulary { files, tokens, kinds };
    let model = vocabulary.text("model");
    match model.as_deref() {
        Some("gpt2") => vocabulary.byte_level(),
        Some("llama") => vocabulary.sentence_pieces(),
        _ => Err(Error::Unsupported(format!("a tokenizer of the kind {model:?} in GGUF"))),
    }
    .and_then(|tokenizer| vocabulary.finish(tokenizer))
}

/// An array of the tokenizer's metadata.
fn array<T>(files: &Files, key: &str, of: impl Fn(&Value<'_>) -> Option<T>) -> Result<Vec<T>> {
    let key = format!("tokenizer.ggml.{key}");
    let wrong = || fault(format!("the array {key} is missing or malformed"));
    let all = files.gguf_value(&key).and_then(|value| value.as_array()).ok_or_else(wrong)?;
    all.iter().map(|value| of(&value)).collect::<Option<_>>().ok_or_else(wrong)
}

impl Vocabulary<'_> {
    fn get(&self, key: &str) -> Option<Value<'_>> {
        self.files.gguf_value(&format!("tokenizer.ggml.{key}"))
    }

    fn text(&self, key: &str) -> Option<String> {
        self.get(key)?.as_str().map(str::to_owned)
    }

    fn flag(&self, key: &str) -> Option<bool> {
        self.get(key).and_then(|value| value.as_bool())
    }

    /// Tokens by their texts. Of two with one text the first counts.
    fn numbers(&self) -> HashMap<&str, u32> {
        let mut numbers = HashMap::with_capacity(self.tokens.len());
        for (number, token) in (0..).zip(&self.tokens) {
            numbers.entry(token.as_str()).or_insert(number);
        }
        numbers
    }

    fn bpe(&self, merges: Vec<(String, String)>) -> BpeBuilder {
        let owned = |(token, number): (&str, u32)| (token.to_owned(), number);
        let numbers: Vocab = self.numbers().into_iter().map(owned).collect();
        BPE::builder().vocab_and_merges(numbers, merges)
    }

    /// Byte pairs with their merges, as in GPT-2. A name says how text is cut before.
    fn byte_level(&self) -> Result<Tokenizer> {
        let merges = array(self.files, "merges", |value| {
            value.as_str()?.split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned()))
        })?;
        let cut = self.text("pre").unwrap_or_default();
        // Words with a sign or space before them, numbers, other signs, line breaks, spaces.
        let pattern = |digits: &str| {
            format!(
                concat!(
                    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{}",
                    r"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
                ),
                digits
            )
        };
        // Whether a word that is a token stays one, whatever the merges say.
        let (pattern, whole) = match cut.as_str() {
            "llama-bpe" | "llama3" | "llama-v3" => (Some(pattern(r"\p{N}{1,3}")), true),
            "qwen2" => (Some(pattern(r"\p{N}")), false),
            "gpt-2" | "default" => (None, false),
            _ => return Err(Error::Unsupported(format!("text that is cut as {cut:?} says"))),
        };
        let bpe = self.bpe(merges).ignore_merges(whole).build().map_err(of_tokenizer)?;
        let bytes = ByteLevel::new(false, true, pattern.is_none());
        let mut tokenizer = Tokenizer::new(bpe);
        let mut cuts = Vec::new();
        if let Some(pattern) = pattern {
            let pattern = SplitPattern::Regex(pattern);
            let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false);
            cuts.push(PreTokenizerWrapper::from(split.map_err(of_tokenizer)?));
        }
        cuts.push(bytes.into());
        if cut == "qwen2" {
            tokenizer.with_normalizer(Some(NFC)).map_err(of_tokenizer)?;
        }
        tokenizer.with_pre_tokenizer(Some(PreTokenizers::new(cuts))).with_decoder(Some(bytes));
        Ok(tokenizer)
    }

    /// SentencePiece's pairs: two neighbours become the piece with the best score, and bytes stand
    /// for what is no piece.
    fn sentence_pieces(&self) -> Result<Tokenizer> {
        let scores = array(self.files, "scores", |value| value.as_f32())?;
        if scores.len() != self.tokens.len() {
            return Err(fault(format!("{} tokens, {} scores", self.tokens.len(), scores.len())));
        }
        let mut bpe = self.bpe(self.merges(&scores)).byte_fallback(true).fuse_unk(true);
        if let Some(unknown) = self.kinds.iter().position(|&kind| kind == UNKNOWN) {
            bpe = bpe.unk_token(self.tokens[unknown].clone());
        }
        let mut tokenizer = Tokenizer::new(bpe.build().map_err(of_tokenizer)?);
        let replace = |from: &str, to: &str| Replace::new(from, to).map_err(of_tokenizer);
        let mut normalizers: Vec<NormalizerWrapper> = Vec::new();
        let mut decoders: Vec<DecoderWrapper> =
            vec![replace(SPACE, " ")?.into(), ByteFallback::new().into(), Fuse::new().into()];
        if self.flag("add_space_prefix").unwrap_or(true) {
            normalizers.push(Prepend::new(SPACE.into()).into());
            decoders.push(Strip::new(' ', 1, 0).into());
        }
        normalizers.push(replace(" ", SPACE)?.into());
        let normalizers = Normalizers::new(normalizers);
        tokenizer.with_normalizer(Some(normalizers)).map_err(of_tokenizer)?;
        tokenizer.with_decoder(Some(Decoders::new(decoders)));
        Ok(tokenizer)
    }

    /// The pairs of pieces that are a piece together, the best first.
    fn merges(&self, scores: &[f32]) -> Vec<(String, String)> {
        let numbers = self.numbers();
        let mut merges = Vec::new();
        for (piece, (&kind, &score)) in self.tokens.iter().zip(self.kinds.iter().zip(scores)) {
            if kind == CONTROL {
                continue;
            }
            for (at, _) in piece.char_indices().skip(1) {
                let (a, b) = piece.split_at(at);
                if let (Some(&first), Some(&second)) = (numbers.get(a), numbers.get(b)) {
                    merges.push((score, first, second));
                }
            }
        }
        // Scores are the numbers of merges, from 0 down, so f32 has each.
        merges.sort_by_key(|&(score, first, second)| (Reverse(ordered(score)), first, second));
        let piece = |number: u32| self.tokens[number as usize].clone();
        merges.into_iter().map(|(_, first, second)| (piece(first), piece(second))).collect()
    }

    /// Adds the tokens that are no pieces of words, and the one that begins texts.
    fn finish(&self, mut tokenizer: Tokenizer) -> Result<Tokenizer> {
        let added = |wanted: u64| {
            let all = self.tokens.iter().zip(&self.kinds);
            let of_kind = all.filter(move |(_, kind)| **kind == wanted);
            of_kind.map(move |(token, _)| AddedToken::from(token, wanted == CONTROL))
        };
        tokenizer.add_special_tokens(added(CONTROL)).map_err(of_tokenizer)?;
        tokenizer.add_tokens(added(USER_DEFINED)).map_err(of_tokenizer)?;
        // Where a file does not say it, SentencePiece's models and Llama 3 have that token.
        let begins = self.flag("add_bos_token").unwrap_or_else(|| {
            self.text("model").as_deref() == Some("llama")
                || self.text("pre").as_deref() == Some("llama-bpe")
        });
        let first = self.get("bos_token_id").and_then(|value| value.as_u64());
        if let Some(number) = first.filter(|_| begins) {
            let token = self.tokens.get(number as usize);
            let token = token.ok_or_else(|| fault(format!("token {number} begins texts")))?;
            let mut template = TemplateProcessing::builder();
            template.try_single(format!("{token} $A")).map_err(of_tokenizer)?;
            template.special_tokens(vec![(token.clone(), number as u32)]);
            tokenizer.with_post_processor(Some(template.build().map_err(of_tokenizer)?));
        }
        Ok(tokenizer)
    }
}

/// Numbers in the order of floats.
fn ordered(number: f32) -> i64 {
    let bits = i64::from(number.to_bits() as i32);
    if bits < 0 { i64::from(i32::MIN) - bits } else { bits }
}
