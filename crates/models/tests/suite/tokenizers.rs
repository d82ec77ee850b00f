//! Tokenizers of GGUF's metadata and of `tokenizer.json`, and what a model says with them.

use serde_json::{Map, json};
use tilewise::{Context, Weights};
use tilewise_models::{Model, Sampling, Tokenizer};
use tilewise_tests::language::{Entry, FAMILIES, Tiny, byte_level, sentence_pieces};

/// The tokenizer of a GGUF file with this metadata.
fn of(metadata: &[(&str, Entry)]) -> tilewise::Result<Tokenizer> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    Tiny::new(FAMILIES[2], 1).write_gguf(&path, metadata);
    Tokenizer::new(&Weights::open(&Context::cpu(), path)?)
}

/// The number of the token with this text.
fn id(metadata: &[(&str, Entry)], text: &str) -> u32 {
    let tokens = metadata.iter().find(|(key, _)| *key == "tokenizer.ggml.tokens");
    let Some((_, Entry::Texts(tokens))) = tokens else { panic!("no tokens") };
    tokens.iter().position(|token| token == text).unwrap() as u32
}

/// The text of tokens that come one by one, in pieces.
fn pieces(tokenizer: &Tokenizer, tokens: &[u32]) -> Vec<Option<String>> {
    let mut stream = tokenizer.stream();
    tokens.iter().map(|&token| stream(token).unwrap()).collect()
}

#[test]
fn pairs_of_sentence_pieces_merge_by_their_scores() {
    let metadata = sentence_pieces();
    let tokenizer = of(&metadata).unwrap();
    let ids = |texts: &[&str]| texts.iter().map(|text| id(&metadata, text)).collect::<Vec<_>>();
    // `he` is better than `th`, and `▁t` than `the`.
    assert_eq!(tokenizer.encode("the").unwrap(), ids(&["<s>", "▁the"]));
    assert_eq!(tokenizer.encode("hethe").unwrap(), ids(&["<s>", "▁", "he", "the"]));
    let bytes = ids(&["<s>", "▁", "c", "a", "<0xC3>", "<0xA9>", "▁the"]);
    assert_eq!(tokenizer.encode("caé the").unwrap(), bytes);
    assert_eq!(tokenizer.decode(&bytes).unwrap(), "caé the");
    let some = |text: &str| Some(text.to_owned());
    let streamed = [some("c"), some("a"), None, some("é"), some(" the")];
    assert_eq!(pieces(&tokenizer, &bytes[2..]), streamed);
    let broken = ids(&["<0x4A>", "<0x80>", "c", "▁the"]);
    let streamed = [some("J"), None, some("\u{FFFD}c"), some(" the")];
    assert_eq!(pieces(&tokenizer, &broken), streamed);
    assert_eq!(tokenizer.encode("the</s>").unwrap(), ids(&["<s>", "▁the", "</s>"]));
    assert!(tokenizer.stops(2) && !tokenizer.stops(1));
    // There is no template.
    assert_eq!(tokenizer.chat("the").unwrap(), tokenizer.encode("the").unwrap());

    let mut bare = metadata.clone();
    bare.push(("tokenizer.ggml.add_space_prefix", Entry::Flag(false)));
    bare.push(("tokenizer.ggml.add_bos_token", Entry::Flag(false)));
    let tokenizer = of(&bare).unwrap();
    assert_eq!(tokenizer.encode("the the").unwrap(), ids(&["the", "▁the"]));
}

#[test]
fn bytes_and_pairs_are_cut_as_the_file_says() {
    let metadata = byte_level("qwen2");
    let ids = |texts: &[&str]| texts.iter().map(|text| id(&metadata, text)).collect::<Vec<_>>();
    let qwen = of(&metadata).unwrap();
    assert_eq!(qwen.encode("the the").unwrap(), ids(&["the", "Ġthe"]));
    assert_eq!(qwen.encode("123 xyz").unwrap(), ids(&["1", "2", "3", "Ġ", "x", "y", "z"]));
    let eyes = qwen.encode("👀!").unwrap();
    assert_eq!(eyes.len(), 5);
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(pieces(&qwen, &eyes), [None, None, None, some("👀"), some("!")]);
    let turn = ids(&["<|im_start|>", "u", "s", "e", "r", "Ċ", "the", "<|im_end|>", "Ċ"]);
    assert_eq!(qwen.chat("the").unwrap()[..turn.len()], turn);
    assert!(qwen.stops(id(&metadata, "<|im_end|>")) && qwen.stops(id(&metadata, "<|endoftext|>")));

    // Up to three digits stay together, whole words count before pairs, and a token begins texts.
    let llama = of(&byte_level("llama-bpe")).unwrap();
    let words = ids(&["<|endoftext|>", "123", "1", "xyz"]);
    assert_eq!(llama.encode("1231xyz").unwrap(), words);

    let error = of(&byte_level("tekken")).unwrap_err().to_string();
    assert_eq!(error, "unsupported: text that is cut as \"tekken\" says");
    let error = of(&[]).unwrap_err().to_string();
    assert_eq!(error, "the array tokenizer.ggml.tokens is missing or malformed");
}

#[test]
fn a_file_of_its_own_gives_the_same_tokens() {
    let metadata = byte_level("gpt-2");
    let [tokens, merges] = ["tokens", "merges"].map(|key| {
        let key = format!("tokenizer.ggml.{key}");
        match metadata.iter().find(|(name, _)| *name == key) {
            Some((_, Entry::Texts(texts))) => texts.clone(),
            _ => panic!("no {key}"),
        }
    });
    let vocabulary: Map<_, _> = (0..).zip(&tokens).map(|(id, t)| (t.clone(), id.into())).collect();
    let bytes = json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true });
    let file = json!({
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": bytes,
        "decoder": bytes,
        "model": { "type": "BPE", "vocab": vocabulary, "merges": merges },
    });
    let folder = tempfile::tempdir().unwrap();
    Tiny::new(FAMILIES[2], 1).write_safetensors(folder.path());
    let weights = Weights::open(&Context::cpu(), folder.path()).unwrap();
    let error = Tokenizer::new(&weights).unwrap_err().to_string();
    assert!(error.contains("tokenizer.json: "), "{error}");
    std::fs::write(folder.path().join("tokenizer.json"), file.to_string()).unwrap();
    let ends = json!({ "eos_token_id": [5, 6] });
    std::fs::write(folder.path().join("generation_config.json"), ends.to_string()).unwrap();
    let tokenizer = Tokenizer::new(&weights).unwrap();
    let text = "the 123, the été\n\n  xyz";
    assert_eq!(tokenizer.encode(text).unwrap(), of(&metadata).unwrap().encode(text).unwrap());
    assert!(tokenizer.stops(5) && tokenizer.stops(6) && !tokenizer.stops(7));
    Model::open(&Context::cpu(), folder.path()).unwrap();
}

#[test]
fn an_answer_ends_with_its_tokens_or_at_a_token_that_stops() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let tiny = Tiny::new(FAMILIES[2], 11);
    let answer = |metadata: &[(&str, Entry)], count: usize| {
        tiny.write_gguf(&path, metadata);
        let model = Model::open(&Context::cpu(), &path).unwrap();
        let prompt = model.tokenizer().encode("the the").unwrap();
        let mut answer = model.generate_blocking(&prompt, count, Sampling::default()).unwrap();
        let mut text = String::new();
        while let Some(piece) = answer.next_blocking().unwrap() {
            text += &piece;
        }
        assert_eq!(answer.next_blocking().unwrap(), None);
        let mut session = model.decoder().session(64, Sampling::default()).unwrap();
        session.feed(&prompt).unwrap();
        for &token in answer.tokens() {
            assert_eq!(token, session.next_blocking().unwrap());
        }
        (answer.tokens().to_vec(), text)
    };
    let mut metadata = sentence_pieces();
    let (tokens, text) = answer(&metadata, 5);
    assert_eq!(tokens.len(), 5);
    let whole = of(&metadata).unwrap().decode(&tokens).unwrap();
    // Bytes at the end that are no character yet are held back.
    assert!(!text.is_empty() && whole.starts_with(&text), "{text:?} of {whole:?}");
    let end = tokens.iter().skip(1).find(|token| **token != tokens[0]).unwrap();
    metadata.push(("tokenizer.ggml.eot_token_id", Entry::Number(*end)));
    let stopped = answer(&metadata, 5).0;
    let count = 1 + tokens.iter().position(|token| token == end).unwrap();
    assert_eq!(stopped, tokens[..count]);
}
