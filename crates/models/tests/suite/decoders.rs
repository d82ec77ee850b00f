//! Decoders of each family, from either kind of file.

use crate::reference;
use tempfile::TempDir;
use tilewise::{Context, Error};
use tilewise_models::{Decoder, Sampling, Session};
use tilewise_tests::contexts;
use tilewise_tests::language::{FAMILIES, LAYERS, Tiny};

#[expect(dead_code, reason = "the example's `main`")]
#[path = "../../examples/by_hand.rs"]
mod by_hand;

/// More tokens than a window has keys.
const PROMPT: [u32; 9] = [7, 300, 21, 7, 150, 3, 88, 255, 13];

/// Tokens that are generated.
const MORE: usize = 4;

/// The decoder of both files of a model, which lie in the folder.
fn decoders(context: &Context, model: &Tiny, folder: &TempDir) -> [Decoder; 2] {
    let gguf = folder.path().join("model.gguf");
    ["safetensors", "gguf"].map(|kind| {
        // A folder with two models would be refused.
        let path = if kind == "gguf" { gguf.clone() } else { folder.path().join("hf") };
        if kind == "gguf" {
            model.write_gguf(&path, &[]);
        } else {
            std::fs::create_dir_all(&path).unwrap();
            model.write_safetensors(&path);
        }
        Decoder::open(context, &path).unwrap_or_else(|error| panic!("{kind}: {error}"))
    })
}

fn close(session: &Session, model: &Tiny, tokens: &[u32], what: &str) {
    let logits = session.logits().read_f32_blocking().unwrap();
    let wanted = reference::logits(model, tokens);
    assert_eq!(logits.len(), wanted.len());
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let logits: Vec<f64> = logits.into_iter().map(f64::from).collect();
    let cosine = dot(&logits, &wanted) / (dot(&logits, &logits) * dot(&wanted, &wanted)).sqrt();
    let name = model.family.name;
    assert!(cosine >= 1.0 - 1e-9, "{name}, {what}: 1 - cosine is {:e}", 1.0 - cosine);
    let size = dot(&wanted, &wanted).sqrt() / dot(&logits, &logits).sqrt();
    assert!((size - 1.0).abs() < 1e-4, "{name}, {what}: off by the factor {size}");
}

fn best(logits: &[f64]) -> u32 {
    (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap() as u32
}

#[test]
fn logits_and_tokens_are_those_of_plain_loops() {
    let plain = (0..).zip(FAMILIES).map(|(seed, family)| Tiny::new(family, seed));
    let quantized = [0, 1, 4].map(|family| Tiny::new(FAMILIES[family], 9).quantized());
    for model in plain.chain(quantized) {
        let mut text = PROMPT.to_vec();
        (0..MORE).for_each(|_| text.push(best(&reference::logits(&model, &text))));
        for context in contexts() {
            let folder = tempfile::tempdir().unwrap();
            for (gguf, decoder) in
                [false, true].into_iter().zip(decoders(&context, &model, &folder))
            {
                let kind = if gguf { "GGUF" } else { "safetensors" };
                let what = format!("{kind} on {}", context.adapter_name());
                let mut session = decoder.session(text.len(), Sampling::default()).unwrap();
                session.feed(&PROMPT).unwrap();
                close(&session, &model, &PROMPT, &what);
                let more: Vec<u32> = (0..MORE).map(|_| session.next_blocking().unwrap()).collect();
                assert_eq!(more, text[PROMPT.len()..], "{}, {what}", model.family.name);
                // The last token was submitted, too.
                close(&session, &model, &text, &what);
            }
        }
    }
}

#[test]
fn a_decoder_by_hand_gives_the_tokens_of_plain_loops() {
    let model = Tiny::new(FAMILIES[3], 8);
    let mut text = PROMPT.to_vec();
    (0..MORE).for_each(|_| text.push(best(&reference::logits(&model, &text))));
    let folder = tempfile::tempdir().unwrap();
    model.write_safetensors(folder.path());
    for context in contexts() {
        let more = by_hand::generate(&context, folder.path(), &PROMPT, MORE).unwrap();
        assert_eq!(more, text[PROMPT.len()..], "{}", context.adapter_name());
    }
}

/// The chapter shows the text of the example, line by line.
#[test]
fn the_chapter_shows_the_example() {
    let lines = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let example = lines(include_str!("../../examples/by_hand.rs"));
    let chapter = include_str!("../../../../docs/models.md");
    let blocks = chapter.split("```rust\n").skip(1);
    let blocks: Vec<_> = blocks.map(|rest| lines(rest.split("\n```").next().unwrap())).collect();
    assert!(blocks.len() > 9);
    for block in blocks {
        assert!(example.contains(&block), "{block}");
    }
}

#[test]
fn parts_of_a_text_give_the_logits_of_the_whole() {
    let model = Tiny::new(FAMILIES[0], 5);
    for context in contexts() {
        let folder = tempfile::tempdir().unwrap();
        let [decoder, _] = decoders(&context, &model, &folder);
        let mut session = decoder.session(PROMPT.len(), Sampling::default()).unwrap();
        for part in [&PROMPT[..2], &PROMPT[2..3], &PROMPT[3..8], &PROMPT[8..]] {
            session.feed(part).unwrap();
            let past = session.past();
            close(&session, &model, &PROMPT[..past], &format!("{past} tokens"));
        }
        let full = session.feed(&PROMPT[..1]).unwrap_err();
        assert_eq!(full.to_string(), "1 tokens behind 9, room for 9");
        let token = session.next_blocking().unwrap();
        assert_eq!(token, best(&reference::logits(&model, &PROMPT)));
        assert!(matches!(session.next_blocking(), Err(Error::Misuse(_))));
    }
}

#[test]
fn a_seed_gives_one_text() {
    let greedy = Sampling::default();
    let warm = Sampling { temperature: 1.0, seed: 3, ..greedy };
    for context in contexts() {
        let folder = tempfile::tempdir().unwrap();
        let [decoder, _] = decoders(&context, &Tiny::new(FAMILIES[1], 6), &folder);
        let text = |sampling| -> Vec<u32> {
            let mut session = decoder.session(PROMPT.len() + 12, sampling).unwrap();
            session.feed(&PROMPT).unwrap();
            (0..12).map(|_| session.next_blocking().unwrap()).collect()
        };
        let drawn = text(warm);
        assert_eq!(text(warm), drawn);
        assert_ne!(text(Sampling { seed: 4, ..warm }), drawn);
        let most_likely = text(greedy);
        assert_ne!(drawn, most_likely);
        assert_eq!(text(Sampling { temperature: 0.0, ..warm }), most_likely);
        // Each filter keeps the most likely token alone.
        assert_eq!(text(Sampling { top_k: 1, ..warm }), most_likely);
        assert_eq!(text(Sampling { top_p: 1e-6, ..warm }), most_likely);
        assert_eq!(text(Sampling { min_p: 1.0, ..warm }), most_likely);
        let mut refused = decoder.session(1, Sampling { top_p: 2.0, ..warm }).unwrap();
        assert!(matches!(refused.feed(&[1]), Err(Error::Misuse(_))));
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let context = Context::cpu();
    let model = Tiny::new(FAMILIES[3], 1);
    let folder = tempfile::tempdir().unwrap();
    let [decoder, _] = decoders(&context, &model, &folder);
    assert!(matches!(decoder.session(0, Sampling::default()), Err(Error::Misuse(_))));
    let mut session = decoder.session(4, Sampling::default()).unwrap();
    assert!(matches!(session.next_blocking(), Err(Error::Misuse(_))));
    assert!(matches!(session.feed(&[]), Err(Error::Misuse(_))));
    let beyond = session.feed(&[320]).unwrap_err();
    assert_eq!(beyond.to_string(), "token 320 of a vocabulary of 320");

    let path = folder.path().join("other.gguf");
    let refused = |model: &Tiny| {
        model.write_gguf(&path, &[]);
        Decoder::open(&context, &path).unwrap_err().to_string()
    };
    let mut other = model.clone();
    other.family.gguf = "mamba";
    let text = refused(&other);
    assert!(text.contains("the model is of the type \"mamba\"; known types"), "{text}");
    let mut other = model.clone();
    other.tensors.remove("model.layers.1.self_attn.v_proj.weight");
    assert_eq!(refused(&other), "there is no tensor blk.1.attn_v");
    std::fs::remove_file(folder.path().join("hf/config.json")).unwrap();
    let text = Decoder::open(&context, folder.path().join("hf")).unwrap_err().to_string();
    assert!(text.contains("config.json: "), "{text}");
}

#[test]
fn a_profile_names_the_calls_of_a_pass() {
    for context in contexts() {
        let folder = tempfile::tempdir().unwrap();
        let model = Tiny::new(FAMILIES[1], 1).quantized();
        let [dense, quantized] = decoders(&context, &model, &folder);
        // Queries, keys and values are joined, but for values in another format.
        for (decoder, products) in [(dense, 1), (quantized, 2)] {
            let session = |room| decoder.session(room, Sampling::default()).unwrap();
            let profile = session(3).profile_blocking(3).unwrap();
            let times = profile.calls;
            assert!(!profile.recording.is_zero() && !profile.pass.is_zero());
            let calls = |name: &str| times.iter().find(|timed| timed.name == name).unwrap().calls;
            assert_eq!([calls("token_embd"), calls("output"), calls("arg_max")], [1, 1, 1]);
            assert_eq!([calls("attention"), calls("ffn_gated"), calls("ffn_down")], [LAYERS; 3]);
            assert_eq!([calls("attn_qkv"), calls("rope")], [products * LAYERS, 2 * LAYERS]);
            assert!(times.iter().all(|timed| !timed.time.is_zero()));
            assert!(matches!(session(3).profile_blocking(4), Err(Error::Misuse(_))));
        }
    }
}
