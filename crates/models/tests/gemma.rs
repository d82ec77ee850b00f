//! The logits and tokens of Gemma 3 270M in Q4_K_M, where it has been fetched, against those of
//! plain loops in f64.

use std::ops::Range;
use std::time::Instant;
use tilewise_models::{Model, Sampling};
use tilewise_tests::{contexts, fetched, turns};

/// `data/make_gemma.py` computes what is wanted and says how it is stored.
const SENTENCES: &str = include_str!("data/sentences.txt");
const WANTED: &[u8] = include_bytes!("data/gemma.bin");
const PROMPTS: [Range<usize>; 5] = [3..4, 4..5, 130..131, 170..171, 190..194];
const TOKENS: usize = 64;
const STRIDE: usize = 257;

/// 1 − the cosine of two vectors: half of the square of the distance between their directions.
fn beside(found: &[f64], wanted: &[f64]) -> f64 {
    assert_eq!(found.len(), wanted.len());
    let length = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    let lengths = [found, wanted].map(length);
    let apart = found.iter().zip(wanted).map(|(f, w)| (f / lengths[0] - w / lengths[1]).powi(2));
    apart.sum::<f64>() / 2.0
}

/// Software takes seconds for a token, so a commit tries one of the prompts.
#[test]
fn logits_and_tokens_are_those_of_plain_loops() {
    let Some(folder) = fetched("gemma") else { return };
    let lines: Vec<&str> = SENTENCES.lines().collect();
    let wanted = WANTED.chunks_exact(WANTED.len() / PROMPTS.len());
    for context in contexts() {
        let model = Model::open(&context, folder.join("gemma-3-270m-q4_k_m.gguf")).unwrap();
        for (prompt, wanted) in turns::of(PROMPTS.into_iter().zip(wanted.clone()), PROMPTS.len()) {
            let (logits, tokens) = wanted.split_at(wanted.len() - 4 * TOKENS);
            let (logits, tokens) = (logits.as_chunks().0.iter(), tokens.as_chunks().0.iter());
            let logits: Vec<f64> = logits.map(|&b| f32::from_le_bytes(b).into()).collect();
            let tokens: Vec<u32> = tokens.map(|&b| u32::from_le_bytes(b)).collect();
            let text = model.tokenizer().encode(&lines[prompt.clone()].join(" ")).unwrap();
            let (count, start) = (text.len(), Instant::now());
            let room = count + TOKENS - 1;
            let mut session = model.decoder().session(room, Sampling::default()).unwrap();
            session.feed(&text).unwrap();
            let found: Vec<f32> = session.logits().read_blocking().unwrap();
            let found: Vec<f64> = found.into_iter().step_by(STRIDE).map(f64::from).collect();
            let off = beside(&found, &logits);
            eprintln!("{context:?}: lines {prompt:?}, {count} tokens: 1 - cosine is {off:.1e}");
            assert!(off <= 1e-9, "lines {prompt:?} on {context:?}: 1 - cosine is {off:e}");

            let found: Vec<u32> = tokens.iter().map(|_| session.next_blocking().unwrap()).collect();
            eprintln!("{TOKENS} tokens follow, {:.1?} in all", start.elapsed());
            assert_eq!(found, tokens, "lines {prompt:?} on {context:?}");
        }
    }
}
