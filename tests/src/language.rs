//! Tiny language models: random weights and two layers, as safetensors and as GGUF.

use crate::Rng;
use std::collections::BTreeMap;
use std::f64::consts::TAU;
use std::path::Path;
use tilewise::model::{Output, write};
use tilewise::{DType, QuantFormat, Quantized};
use tilewise_core::quant::{dequantize, quantize};

/// Layers of each model.
pub const LAYERS: usize = 2;
/// Elements of a token.
pub const WIDTH: usize = 32;
/// Heads of queries.
pub const HEADS: usize = 4;
/// Heads of keys and of values.
pub const KV_HEADS: usize = 2;
/// Elements between the products of a layer.
pub const INNER: usize = 64;
/// Tokens.
pub const VOCABULARY: usize = 320;
/// Keys that a query of a layer with a window sees. Layer 0 of Gemma has it, layer 1 has not.
pub const WINDOW: usize = 4;
/// Experts, and how many of them a token passes.
pub const EXPERTS: [usize; 2] = [4, 2];
/// Added to the mean of squares in norms.
pub const EPS: f64 = 1e-6;
/// Bases of rotary embeddings, in layers without a window and with it.
pub const BASES: [f64; 2] = [10_000.0, 100.0];
/// The scaling of Llama 3's rotary embeddings: factor, low and high factor of frequencies, tokens.
pub const SCALING: [f64; 4] = [8.0, 1.0, 4.0, 64.0];

/// Facts that set a family apart.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Its name in `config.json`.
    pub name: &'static str,
    /// Its name in GGUF.
    pub gguf: &'static str,
    /// Elements of a head.
    pub head: usize,
    /// Whether queries, keys and values have biases.
    pub biases: bool,
    /// Whether heads of queries and keys have norms.
    pub head_norms: bool,
    /// Whether it has what Gemma alone has: norms behind, 1 + w in norms, GELU, scaled embeddings,
    /// windows.
    pub gemma: bool,
    /// Whether rotary embeddings are scaled as in Llama 3, and the head is no embeddings.
    pub llama: bool,
    /// Whether layers have experts.
    pub experts: bool,
}

const QWEN2: Family = Family {
    name: "qwen2",
    gguf: "qwen2",
    head: WIDTH / HEADS,
    biases: true,
    head_norms: false,
    gemma: false,
    llama: false,
    experts: false,
};
const QWEN3: Family =
    Family { name: "qwen3", gguf: "qwen3", head: 16, biases: false, head_norms: true, ..QWEN2 };

/// All families.
pub const FAMILIES: [Family; 5] = [
    Family { name: "gemma3_text", gguf: "gemma3", gemma: true, ..QWEN3 },
    Family { name: "llama", gguf: "llama", biases: false, llama: true, ..QWEN2 },
    QWEN2,
    QWEN3,
    Family { name: "qwen3_moe", gguf: "qwen3moe", experts: true, ..QWEN3 },
];

/// Names of a layer's tensors, in safetensors and in GGUF.
const NAMES: [(&str, &str); 13] = [
    ("input_layernorm", "attn_norm"),
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.o_proj", "attn_output"),
    ("self_attn.q_norm", "attn_q_norm"),
    ("self_attn.k_norm", "attn_k_norm"),
    ("pre_feedforward_layernorm", "ffn_norm"),
    ("post_feedforward_layernorm", "post_ffw_norm"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
    ("mlp.gate", "ffn_gate_inp"),
];

/// A model: its tensors by their names in safetensors, with their shapes.
#[derive(Clone, Debug)]
pub struct Tiny {
    /// Its family.
    pub family: Family,
    /// Shapes and elements.
    pub tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
    /// Whether GGUF gets matrices as Q8_0.
    quantized: bool,
}

/// A value of GGUF's metadata.
#[derive(Clone, Debug)]
pub enum Entry {
    /// A number.
    Number(u32),
    /// A number.
    Float(f32),
    /// Yes or no.
    Flag(bool),
    /// A text.
    Text(String),
    /// Texts.
    Texts(Vec<String>),
    /// Numbers.
    Floats(Vec<f32>),
    /// Numbers.
    Numbers(Vec<u32>),
}

impl Tiny {
    /// A model with random weights; equal seeds give equal ones.
    pub fn new(family: Family, seed: u64) -> Self {
        let mut tiny = Tiny { family, tensors: BTreeMap::new(), quantized: false };
        let mut rng = Rng::new(seed);
        let mut add = |name: &str, shape: &[usize], scale: f32, first: f32| {
            let count = shape.iter().product();
            let elements = (0..count).map(|_| first + scale * rng.number()).collect();
            tiny.tensors.insert(name.to_owned(), (shape.to_vec(), elements));
        };
        let norm = if family.gemma { 0.0 } else { 1.0 };
        add("model.embed_tokens.weight", &[VOCABULARY, WIDTH], 1.0, 0.0);
        add("model.norm.weight", &[WIDTH], 0.3, norm);
        if family.llama {
            add("lm_head.weight", &[VOCABULARY, WIDTH], 1.0, 0.0);
        }
        let (q, kv) = (HEADS * family.head, KV_HEADS * family.head);
        for layer in 0..LAYERS {
            let mut add = |name: &str, shape: &[usize], scale: f32, first: f32| {
                add(&format!("model.layers.{layer}.{name}"), shape, scale, first);
            };
            let mut norms = vec!["input_layernorm", "post_attention_layernorm"];
            if family.gemma {
                norms.extend(["pre_feedforward_layernorm", "post_feedforward_layernorm"]);
            }
            norms.iter().for_each(|name| add(&format!("{name}.weight"), &[WIDTH], 0.3, norm));
            for (name, rows) in [("q", q), ("k", kv), ("v", kv)] {
                add(&format!("self_attn.{name}_proj.weight"), &[rows, WIDTH], 0.4, 0.0);
                if family.biases {
                    add(&format!("self_attn.{name}_proj.bias"), &[rows], 0.5, 0.0);
                }
                if family.head_norms && name != "v" {
                    add(&format!("self_attn.{name}_norm.weight"), &[family.head], 0.3, norm);
                }
            }
            add("self_attn.o_proj.weight", &[WIDTH, q], 0.3, 0.0);
            let experts = if family.experts { EXPERTS[0] } else { 1 };
            for expert in 0..experts {
                let at = if family.experts { format!("experts.{expert}.") } else { String::new() };
                add(&format!("mlp.{at}gate_proj.weight"), &[INNER, WIDTH], 0.4, 0.0);
                add(&format!("mlp.{at}up_proj.weight"), &[INNER, WIDTH], 0.4, 0.0);
                add(&format!("mlp.{at}down_proj.weight"), &[WIDTH, INNER], 0.3, 0.0);
            }
            if family.experts {
                add("mlp.gate.weight", &[experts, WIDTH], 0.4, 0.0);
            }
        }
        tiny
    }

    /// The model with the weights that Q8_0 leaves of its matrices. GGUF gets its codes.
    pub fn quantized(mut self) -> Self {
        self.quantized = true;
        for (shape, elements) in self.tensors.values_mut().filter(|(shape, _)| shape.len() > 1) {
            let columns = shape.last().copied().unwrap_or_default();
            *elements = dequantize(&q8_0(elements, columns));
        }
        self
    }

    /// Frequencies of rotary embeddings of a layer.
    pub fn frequencies(&self, layer: usize) -> Vec<f64> {
        let base = BASES[usize::from(self.has_window(layer))];
        let [factor, low, high, tokens] = SCALING;
        let scaled = |i: usize| {
            let plain = base.powf(-2.0 * i as f64 / self.family.head as f64);
            let wave = TAU / plain;
            if !self.family.llama || wave < tokens / high {
                plain
            } else if wave > tokens / low {
                plain / factor
            } else {
                let share = (tokens / wave - low) / (high - low);
                (1.0 - share) * plain / factor + share * plain
            }
        };
        (0..self.family.head / 2).map(scaled).collect()
    }

    /// Whether a layer has the window, and the second base.
    pub fn has_window(&self, layer: usize) -> bool {
        self.family.gemma && layer == 0
    }

    /// Writes `model.safetensors` and `config.json` into a folder.
    pub fn write_safetensors(&self, folder: &Path) {
        let bytes: Vec<_> = self.tensors.values().map(|(_, elements)| le_bytes(elements)).collect();
        let each = self.tensors.iter().zip(&bytes);
        let outputs =
            each.map(|((name, (shape, _)), bytes)| Output::dense(name, DType::F32, shape, bytes));
        let file = folder.join("model.safetensors");
        write(file, outputs.collect(), &BTreeMap::new(), &mut |_, _| {}).expect("a file");
        let mut config = format!("{{\"model_type\": \"{}\"", self.family.name);
        for (_, key, number) in self.numbers() {
            config += &format!(", \"{key}\": {number}");
        }
        if self.family.llama {
            let [factor, low, high, tokens] = SCALING;
            config += &format!(
                ", \"rope_scaling\": {{\"rope_type\": \"llama3\", \"factor\": {factor}, \
                 \"low_freq_factor\": {low}, \"high_freq_factor\": {high}, \
                 \"original_max_position_embeddings\": {tokens}}}"
            );
        }
        std::fs::write(folder.join("config.json"), config + "}").expect("a file");
    }

    /// Writes a GGUF file as converters do, with more metadata.
    pub fn write_gguf(&self, file: &Path, metadata: &[(&str, Entry)]) {
        let name = self.family.gguf;
        let mut entries = vec![("general.architecture".to_owned(), Entry::Text(name.into()))];
        for (key, _, number) in self.numbers() {
            let whole = number.fract() == 0.0 && !key.contains("freq");
            let float = Entry::Float(number as f32);
            let entry = if whole { Entry::Number(number as u32) } else { float };
            entries.push((format!("{name}.{key}"), entry));
        }
        entries.extend(metadata.iter().map(|(key, entry)| ((*key).to_owned(), entry.clone())));
        let tensors = self.gguf_tensors();
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend((tensors.len() as u64).to_le_bytes());
        bytes.extend((entries.len() as u64).to_le_bytes());
        for (key, entry) in &entries {
            put_text(&mut bytes, key);
            put_entry(&mut bytes, entry);
        }
        let mut data = Vec::new();
        for (name, (shape, elements)) in &tensors {
            put_text(&mut bytes, name);
            bytes.extend((shape.len() as u32).to_le_bytes());
            shape.iter().rev().for_each(|&size| bytes.extend((size as u64).to_le_bytes()));
            // Files often keep values in another format than queries and keys.
            let codes = self.quantized && shape.len() > 1 && !name.contains("attn_v");
            bytes.extend(if codes { 8u32 } else { 0 }.to_le_bytes());
            bytes.extend((data.len() as u64).to_le_bytes());
            match codes {
                true => data.extend(blocks(&q8_0(elements, shape[shape.len() - 1]))),
                false => data.extend(le_bytes(elements)),
            }
            data.resize(data.len().next_multiple_of(32), 0);
        }
        bytes.resize(bytes.len().next_multiple_of(32), 0);
        std::fs::write(file, [bytes, data].concat()).expect("a file");
    }

    /// Numbers by their names in GGUF, behind the architecture's, and in `config.json`.
    fn numbers(&self) -> Vec<(&'static str, &'static str, f64)> {
        let mut numbers = vec![
            ("block_count", "num_hidden_layers", LAYERS as f64),
            ("embedding_length", "hidden_size", WIDTH as f64),
            ("attention.head_count", "num_attention_heads", HEADS as f64),
            ("attention.head_count_kv", "num_key_value_heads", KV_HEADS as f64),
            ("attention.key_length", "head_dim", self.family.head as f64),
            ("attention.layer_norm_rms_epsilon", "rms_norm_eps", EPS),
            ("rope.freq_base", "rope_theta", BASES[0]),
        ];
        if self.family.gemma {
            numbers.extend([
                ("attention.sliding_window", "sliding_window", WINDOW as f64),
                ("attention.sliding_window_pattern", "sliding_window_pattern", 2.0),
                ("rope.freq_base_swa", "rope_local_base_freq", BASES[1]),
                ("attention.scalar", "query_pre_attn_scalar", self.family.head as f64),
            ]);
        }
        if self.family.experts {
            numbers.push(("expert_used_count", "num_experts_per_tok", EXPERTS[1] as f64));
        }
        numbers
    }

    /// The tensors as GGUF has them.
    fn gguf_tensors(&self) -> BTreeMap<String, (Vec<usize>, Vec<f32>)> {
        let mut tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)> = BTreeMap::new();
        for (name, (shape, elements)) in &self.tensors {
            let (stem, end) = name.rsplit_once('.').expect("an end");
            let (mut shape, mut elements) = (shape.clone(), elements.clone());
            if self.family.gemma && stem.ends_with("norm") {
                elements.iter_mut().for_each(|element| *element += 1.0);
            }
            let Some(part) = stem.strip_prefix("model.layers.") else {
                let name = match stem {
                    "model.embed_tokens" => "token_embd",
                    "model.norm" => "output_norm",
                    _ => "output",
                };
                tensors.insert(format!("{name}.{end}"), (shape, elements));
                continue;
            };
            let (layer, part) = part.split_once('.').expect("a layer");
            if self.family.llama && (part.ends_with("q_proj") || part.ends_with("k_proj")) {
                elements = self.by_neighbours(&elements);
            }
            // Experts become one stack, in their order.
            let expert = part.strip_prefix("mlp.experts.").and_then(|part| part.split_once('.'));
            let part = match expert {
                Some((_, part)) => format!("ffn_{}_exps", part.trim_end_matches("_proj")),
                None if part == "post_attention_layernorm" && self.family.gemma => {
                    "post_attention_norm".to_owned()
                }
                None if part == "post_attention_layernorm" => "ffn_norm".to_owned(),
                None => NAMES.iter().find(|(name, _)| *name == part).expect("a name").1.to_owned(),
            };
            if expert.is_some() {
                shape.insert(0, EXPERTS[0]);
            }
            let stack = tensors.entry(format!("blk.{layer}.{part}.{end}"));
            stack.or_insert((shape, Vec::new())).1.extend(elements);
        }
        if self.family.llama {
            let plain = |i: usize| BASES[0].powf(-2.0 * i as f64 / self.family.head as f64);
            let scaled = self.frequencies(0).into_iter().enumerate();
            let factors = scaled.map(|(i, scaled)| (plain(i) / scaled) as f32).collect();
            tensors.insert("rope_freqs.weight".into(), (vec![self.family.head / 2], factors));
        }
        tensors
    }

    /// Rows of heads in the order in which rotary embeddings turn neighbours.
    fn by_neighbours(&self, elements: &[f32]) -> Vec<f32> {
        let (head, rows) = (self.family.head, elements.len() / WIDTH);
        let from = |row: usize| row / head * head + row % head / 2 + row % 2 * (head / 2);
        (0..rows).flat_map(|row| &elements[from(row) * WIDTH..][..WIDTH]).copied().collect()
    }
}

/// GGUF's numbers of kinds of tokens.
const NORMAL: u32 = 1;
const CONTROL: u32 = 3;
const BYTE: u32 = 6;

/// Metadata of a tokenizer of SentencePiece's kind, with bytes: tokens 0 to 2 are `<unk>`, `<s>`
/// and `</s>`, bytes follow, then letters and pairs, the best pair first.
pub fn sentence_pieces() -> Vec<(&'static str, Entry)> {
    let mut tokens: Vec<(String, u32, f32)> =
        vec![("<unk>".into(), 2, 0.0), ("<s>".into(), CONTROL, 0.0), ("</s>".into(), CONTROL, 0.0)];
    tokens.extend((0..256).map(|byte| (format!("<0x{byte:02X}>"), BYTE, 0.0)));
    let pieces = ["he", "th", "▁t", "the", "▁the", "▁", "t", "h", "e", "c", "a"];
    let ranked = (0..).zip(pieces).map(|(rank, piece)| (piece.into(), NORMAL, -(rank as f32)));
    tokens.extend(ranked);
    fill(&mut tokens);
    let mut entries = vec![
        ("tokenizer.ggml.model", Entry::Text("llama".into())),
        ("tokenizer.ggml.scores", Entry::Floats(tokens.iter().map(|token| token.2).collect())),
    ];
    entries.extend(common(&tokens, 1, 2));
    entries
}

/// Metadata of a tokenizer of bytes and pairs, whose texts are cut as `pre` says. Tokens 0 to 255
/// are the bytes in the order of the characters that stand for them.
pub fn byte_level(pre: &str) -> Vec<(&'static str, Entry)> {
    let mut tokens: Vec<(String, u32, f32)> =
        byte_characters().into_iter().map(|byte| (byte.into(), NORMAL, 0.0)).collect();
    let merges = ["h e", "Ġ t", "t he", "Ġt he", "1 2", "12 3"];
    tokens.extend(merges.map(|pair| (pair.replace(' ', ""), NORMAL, 0.0)));
    tokens.push(("xyz".into(), NORMAL, 0.0));
    for name in ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] {
        tokens.push((name.into(), CONTROL, 0.0));
    }
    let end = tokens.len() as u32 - 3;
    fill(&mut tokens);
    let merges = merges.map(str::to_owned).to_vec();
    let mut entries = vec![
        ("tokenizer.ggml.model", Entry::Text("gpt2".into())),
        ("tokenizer.ggml.pre", Entry::Text(pre.into())),
        ("tokenizer.ggml.merges", Entry::Texts(merges)),
        ("tokenizer.chat_template", Entry::Text("a template".into())),
    ];
    entries.extend(common(&tokens, end, end));
    entries
}

/// The characters that stand for bytes in GPT-2's tokenizer, in their order: signs and letters
/// stand for themselves, other bytes have those from U+0100 on.
fn byte_characters() -> Vec<char> {
    let printed = |byte: &u32| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let others = (0..256).filter(|byte| !printed(byte)).count() as u32;
    (0..256).filter(printed).chain(256..256 + others).filter_map(char::from_u32).collect()
}

/// Adds tokens that no text has.
fn fill(tokens: &mut Vec<(String, u32, f32)>) {
    let more = tokens.len()..VOCABULARY;
    tokens.extend(more.map(|number| (format!("[{number}]"), NORMAL, -1000.0)));
}

fn common(tokens: &[(String, u32, f32)], first: u32, end: u32) -> [(&'static str, Entry); 4] {
    let texts = tokens.iter().map(|token| token.0.clone()).collect();
    let kinds = tokens.iter().map(|token| token.1).collect();
    [
        ("tokenizer.ggml.tokens", Entry::Texts(texts)),
        ("tokenizer.ggml.token_type", Entry::Numbers(kinds)),
        ("tokenizer.ggml.bos_token_id", Entry::Number(first)),
        ("tokenizer.ggml.eos_token_id", Entry::Number(end)),
    ]
}

fn q8_0(elements: &[f32], columns: usize) -> Quantized {
    let rows = elements.len() / columns;
    quantize(elements, rows, columns, QuantFormat::Q8_0).expect("whole blocks")
}

/// Blocks of Q8_0 as GGUF has them: a scale, then 32 codes.
fn blocks(weights: &Quantized) -> Vec<u8> {
    let [scales, codes] = weights.planes() else { panic!("other planes") };
    let each = scales.as_chunks::<2>().0.iter().zip(codes.as_chunks::<32>().0);
    each.flat_map(|(scale, codes)| scale.iter().chain(codes)).copied().collect()
}

fn le_bytes(elements: &[f32]) -> Vec<u8> {
    elements.iter().flat_map(|element| element.to_le_bytes()).collect()
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

/// A value behind the number of its type.
fn put_entry(bytes: &mut Vec<u8>, entry: &Entry) {
    let array = |bytes: &mut Vec<u8>, kind: u32, count: usize| {
        bytes.extend(9u32.to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend((count as u64).to_le_bytes());
    };
    match entry {
        Entry::Number(number) => bytes.extend([4, *number].map(u32::to_le_bytes).concat()),
        Entry::Float(number) => bytes.extend([6, number.to_bits()].map(u32::to_le_bytes).concat()),
        Entry::Flag(flag) => bytes.extend([7, 0, 0, 0, u8::from(*flag)]),
        Entry::Text(text) => {
            bytes.extend(8u32.to_le_bytes());
            put_text(bytes, text);
        }
        Entry::Texts(texts) => {
            array(bytes, 8, texts.len());
            texts.iter().for_each(|text| put_text(bytes, text));
        }
        Entry::Floats(numbers) => {
            array(bytes, 6, numbers.len());
            bytes.extend(le_bytes(numbers));
        }
        Entry::Numbers(numbers) => {
            array(bytes, 4, numbers.len());
            numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        }
    }
}
