//! A tiny BERT of random weights, and its vectors by plain loops in f64.

use crate::Rng;
use std::collections::BTreeMap;
use std::path::Path;
use tilewise::DType;
use tilewise::model::{Output, write};
use tilewise_oracle::erf_gelu;

/// Elements of a token, heads, elements between the two layers of a feed-forward block, layers.
const WIDTH: usize = 20;
const HEADS: usize = 2;
const WIDE: usize = 36;
const LAYERS: usize = 2;
const EPSILON: f64 = 1e-12;

/// The most tokens of a text, with the two around it.
pub const LIMIT: usize = 16;

/// More positions than a text may have.
const POSITIONS: usize = 19;

/// `[PAD]`, `[UNK]`, `[CLS]`, `[SEP]`, the letters that begin a word, and those within one.
const SPECIAL: [&str; 4] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"];
const VOCABULARY: usize = SPECIAL.len() + 26 + 26;

/// Tensors by their names, with their shapes.
#[derive(Clone, Debug)]
pub struct Bert(BTreeMap<String, (Vec<usize>, Vec<f32>)>);

/// Rows of numbers.
type Rows = Vec<Vec<f64>>;

impl Bert {
    /// A model of random weights.
    pub fn new(seed: u64) -> Self {
        let (mut bert, mut rng) = (Bert(BTreeMap::new()), Rng::new(seed));
        let mut add = |name: String, shape: &[usize], mean: f32, spread: f32| {
            let count = shape.iter().product();
            let numbers = (0..count).map(|_| mean + spread * rng.number()).collect();
            bert.0.insert(name, (shape.to_vec(), numbers));
        };
        for (name, rows) in [("word", VOCABULARY), ("position", POSITIONS), ("token_type", 2)] {
            add(format!("embeddings.{name}_embeddings.weight"), &[rows, WIDTH], 0.0, 1.0);
        }
        let layers = (0..LAYERS).map(|layer| format!("encoder.layer.{layer}."));
        for prefix in layers.clone() {
            for (name, [n, k]) in [
                ("attention.self.query", [WIDTH, WIDTH]),
                ("attention.self.key", [WIDTH, WIDTH]),
                ("attention.self.value", [WIDTH, WIDTH]),
                ("attention.output.dense", [WIDTH, WIDTH]),
                ("intermediate.dense", [WIDE, WIDTH]),
                ("output.dense", [WIDTH, WIDE]),
            ] {
                add(format!("{prefix}{name}.weight"), &[n, k], 0.0, 0.7);
                add(format!("{prefix}{name}.bias"), &[n], 0.0, 0.3);
            }
        }
        let within =
            layers.flat_map(|layer| [layer.clone() + "attention.output.", layer + "output."]);
        for prefix in within.chain(["embeddings.".to_owned()]) {
            add(format!("{prefix}LayerNorm.weight"), &[WIDTH], 1.0, 0.5);
            add(format!("{prefix}LayerNorm.bias"), &[WIDTH], 0.0, 0.3);
        }
        bert
    }

    /// Writes the model into a folder, as sentence-transformers does. The tokenizer says that texts
    /// are cut and padded to other lengths, as that of all-MiniLM-L6-v2 does.
    pub fn write(&self, folder: &Path) {
        let config = format!(
            r#"{{"model_type": "bert", "hidden_act": "gelu", "hidden_size": {WIDTH},
            "num_hidden_layers": {LAYERS}, "num_attention_heads": {HEADS},
            "layer_norm_eps": {EPSILON:e}, "max_position_embeddings": {POSITIONS}}}"#
        );
        let letters =
            |prefix: &'static str| ('a'..='z').map(move |letter| format!("{prefix}{letter}"));
        let words = SPECIAL.map(String::from).into_iter().chain(letters("")).chain(letters("##"));
        let words: Vec<_> = words.enumerate().map(|(id, word)| format!("{word:?}: {id}")).collect();
        let tokenizer = format!(
            r###"{{"version": "1.0", "added_tokens": [],
            "truncation": {{"max_length": 5, "strategy": "LongestFirst", "stride": 0}},
            "padding": {{"strategy": {{"Fixed": 9}}, "direction": "Right", "pad_id": 0,
                "pad_to_multiple_of": null, "pad_type_id": 0, "pad_token": "[PAD]"}},
            "normalizer": {{"type": "BertNormalizer", "clean_text": true,
                "handle_chinese_chars": true, "strip_accents": null, "lowercase": true}},
            "pre_tokenizer": {{"type": "BertPreTokenizer"}},
            "post_processor":
                {{"type": "BertProcessing", "cls": ["[CLS]", 2], "sep": ["[SEP]", 3]}},
            "decoder": null,
            "model": {{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100, "vocab": {{{}}}}}}}"###,
            words.join(", ")
        );
        let cut = format!(r#"{{"max_seq_length": {LIMIT}, "do_lower_case": false}}"#);
        std::fs::create_dir_all(folder.join("1_Pooling")).expect("a folder");
        for (name, text) in [
            ("config.json", &*config),
            ("tokenizer.json", &tokenizer),
            ("sentence_bert_config.json", &cut),
            ("1_Pooling/config.json", r#"{"pooling_mode_mean_tokens": true}"#),
        ] {
            std::fs::write(folder.join(name), text).expect("a file");
        }
        let bytes: Vec<_> =
            self.0.values().map(|(_, numbers)| bytemuck::cast_slice(numbers)).collect();
        let named = self.0.iter().zip(bytes);
        let outputs =
            named.map(|((name, (shape, _)), bytes)| Output::dense(name, DType::F32, shape, bytes));
        let path = folder.join("model.safetensors");
        write(path, outputs.collect(), &BTreeMap::new(), &mut |_, _| {}).expect("a model");
    }

    /// The vector of a text of letters and spaces.
    pub fn embed(&self, text: &str) -> Vec<f64> {
        let ids = tokens(text);
        let [words, places, types] = ["word", "position", "token_type"]
            .map(|name| self.rows(&format!("embeddings.{name}_embeddings.weight")));
        let embedded =
            |(place, &id): (usize, &usize)| sum(&sum(&words[id], &places[place]), &types[0]);
        let mut x = self.norm("embeddings", ids.iter().enumerate().map(embedded).collect());
        for layer in 0..LAYERS {
            let of = |name: &str| format!("encoder.layer.{layer}.{name}");
            let [q, k, v] = ["query", "key", "value"]
                .map(|name| self.linear(&of(&format!("attention.self.{name}")), &x));
            let mixed = self.linear(&of("attention.output.dense"), &attention(&q, &k, &v));
            x = self.norm(&of("attention.output"), sums(&x, &mixed));
            let mut wide = self.linear(&of("intermediate.dense"), &x);
            wide.iter_mut().flatten().for_each(|x| *x = erf_gelu(*x));
            let fed = self.linear(&of("output.dense"), &wide);
            x = self.norm(&of("output"), sums(&x, &fed));
        }
        let mean = x.iter().fold(vec![0.0; WIDTH], |mean, row| sum(&mean, row));
        let length = dot(&mean, &mean).sqrt();
        mean.iter().map(|x| x / length).collect()
    }

    /// The rows of a matrix; a vector is one row.
    fn rows(&self, name: &str) -> Rows {
        let (shape, numbers) = &self.0[name];
        let rows = numbers.chunks(shape[shape.len() - 1]);
        rows.map(|row| row.iter().map(|&x| x.into()).collect()).collect()
    }

    fn linear(&self, name: &str, x: &Rows) -> Rows {
        let (weight, bias) =
            (self.rows(&format!("{name}.weight")), self.rows(&format!("{name}.bias")));
        let of =
            |row: &Vec<f64>| weight.iter().zip(&bias[0]).map(|(w, b)| dot(row, w) + b).collect();
        x.iter().map(of).collect()
    }

    fn norm(&self, name: &str, x: Rows) -> Rows {
        let [weight, bias] =
            ["weight", "bias"].map(|part| self.rows(&format!("{name}.LayerNorm.{part}")));
        let of = |row: Vec<f64>| {
            let mean = row.iter().sum::<f64>() / WIDTH as f64;
            let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / WIDTH as f64;
            let scaled = row.iter().map(|x| (x - mean) / (variance + EPSILON).sqrt());
            scaled.zip(&weight[0]).zip(&bias[0]).map(|((x, w), b)| x * w + b).collect()
        };
        x.into_iter().map(of).collect()
    }
}

/// The tokens of a text: a letter is one.
fn tokens(text: &str) -> Vec<usize> {
    let letters = |word: &str| -> Vec<usize> {
        let letters = word.bytes().map(|letter| SPECIAL.len() + usize::from(letter - b'a'));
        letters.enumerate().map(|(at, id)| if at == 0 { id } else { id + 26 }).collect()
    };
    let inside = text.split_whitespace().flat_map(letters).take(LIMIT - 2);
    std::iter::once(2).chain(inside).chain([3]).collect()
}

/// Attention of all tokens to all tokens.
fn attention(q: &Rows, k: &Rows, v: &Rows) -> Rows {
    const HEAD: usize = WIDTH / HEADS;
    let mut mixed = vec![vec![0.0; WIDTH]; q.len()];
    for head in (0..HEADS).map(|head| head * HEAD..(head + 1) * HEAD) {
        for (q, mixed) in q.iter().zip(&mut mixed) {
            let scores =
                k.iter().map(|k| dot(&q[head.clone()], &k[head.clone()]) / (HEAD as f64).sqrt());
            let weights: Vec<f64> = scores.map(f64::exp).collect();
            let total: f64 = weights.iter().sum();
            for (weight, v) in weights.iter().zip(v) {
                head.clone().for_each(|at| mixed[at] += weight / total * v[at]);
            }
        }
    }
    mixed
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn sum(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn sums(a: &Rows, b: &Rows) -> Rows {
    a.iter().zip(b).map(|(a, b)| sum(a, b)).collect()
}
