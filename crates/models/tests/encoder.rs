//! Sentence embeddings of a tiny model against plain loops in f64, on every adapter and the CPU
//! executor.

use std::path::Path;
use tilewise::{Context, DType, Error};
use tilewise_models::Encoder;
use tilewise_tests::bert::{Bert, LIMIT};
use tilewise_tests::contexts;

/// Texts of 2 to 16 tokens; the last is longer than the model takes.
const TEXTS: [&str; 6] =
    ["", "a", "Hello World", "the quick brown", "rows by columns", "beyond the limit of the model"];

fn tiny() -> (Bert, tempfile::TempDir) {
    let (bert, folder) = (Bert::new(60), tempfile::tempdir().unwrap());
    bert.write(folder.path());
    (bert, folder)
}

/// The largest distance between elements.
fn distance<T: Copy + Into<f64>>(found: &[f32], wanted: &[T]) -> f64 {
    assert_eq!(found.len(), wanted.len());
    let each = found.iter().zip(wanted).map(|(&f, &w)| (f64::from(f) - w.into()).abs());
    each.fold(0.0, |largest, each| if each <= largest { largest } else { each })
}

#[test]
fn vectors_are_those_of_plain_loops() {
    let (bert, folder) = tiny();
    for context in contexts() {
        let encoder = Encoder::open(&context, folder.path()).unwrap();
        let halved = Encoder::open_as(&context, folder.path(), DType::F16).unwrap();
        let (single, half) = (encoder.embed(&TEXTS).unwrap(), halved.embed(&TEXTS).unwrap());
        assert_eq!([single.len(), half.len()], [TEXTS.len(); 2]);
        for ((text, single), half) in TEXTS.iter().zip(&single).zip(&half) {
            let wanted = bert.embed(&text.to_lowercase());
            assert_eq!(single.len(), encoder.width());
            for (found, most) in [(single, 3e-6), (half, 1e-2)] {
                let off = distance(found, &wanted);
                assert!(off <= most, "{text:?} on {context:?}: off by {off}");
            }
        }
    }
}

#[test]
fn batch_and_padding_change_nothing() {
    let (_, folder) = tiny();
    for context in contexts() {
        let encoder = Encoder::open(&context, folder.path()).unwrap();
        let together = encoder.embed(&TEXTS).unwrap();
        for (text, together) in TEXTS.iter().zip(&together) {
            let alone = &encoder.embed(&[text]).unwrap()[0];
            let off = distance(together, alone);
            assert!(off <= 1e-6, "{text:?} on {context:?}: off by {off}");
        }
        assert!(encoder.embed::<&str>(&[]).unwrap().is_empty());
    }
}

#[test]
fn texts_are_cut_at_the_limit() {
    let (_, folder) = tiny();
    let encoder = Encoder::open(&Context::cpu(), folder.path()).unwrap();
    let of = |letters: usize| {
        encoder.embed(&["abcdefghijklmnopqrstuvwxyz"[..letters].to_owned()]).unwrap()
    };
    assert_eq!(of(LIMIT - 2), of(26));
    assert_ne!(of(LIMIT - 3), of(26));
}

#[test]
fn models_that_are_refused() {
    let change = |name: &str, from: &str, to: &str| {
        let (_, folder) = tiny();
        let path = folder.path().join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{name} has {text}");
        std::fs::write(path, text.replace(from, to)).unwrap();
        Encoder::open(&Context::cpu(), folder.path()).err()
    };
    for (name, from, to) in [
        ("config.json", "\"bert\"", "\"roberta\""),
        ("config.json", "\"gelu\"", "\"relu\""),
        ("1_Pooling/config.json", "true", "false"),
    ] {
        let refused = change(name, from, to);
        assert!(matches!(refused, Some(Error::Unsupported(_))), "{to}: {refused:?}");
    }
    for (name, from, to) in [
        ("config.json", "hidden_act", "act"),
        ("tokenizer.json", "WordPiece", "WordPieces"),
        ("sentence_bert_config.json", "{", "["),
    ] {
        let refused = change(name, from, to);
        assert!(
            matches!(&refused, Some(Error::File { text, .. }) if text.contains(name)),
            "{to}: {refused:?}"
        );
    }
    let missing = Encoder::open(&Context::cpu(), Path::new("nowhere")).err();
    assert!(
        matches!(&missing, Some(Error::File { text, .. }) if text.contains("nowhere")),
        "{missing:?}"
    );
}
