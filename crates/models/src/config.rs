//! The numbers that describe a decoder, from either kind of file.

use crate::fault::fault;
use serde_json::{Map, Value, json};
use std::f64::consts::TAU;
use tilewise::model::{Model as Files, Value as Entry};
use tilewise::{Activation, Error, Result};

/// The numbers that describe a decoder. Models of different families differ in these, and in which
/// tensors their files have.
pub(crate) struct Config {
    pub(crate) layers: usize,
    /// Elements of a token between layers.
    pub(crate) width: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    /// Elements of a head.
    pub(crate) head: usize,
    pub(crate) eps: f32,
    /// Added to the weights of norms: 1 for Gemma in safetensors. GGUF holds the sums.
    pub(crate) norm_offset: f32,
    pub(crate) embedding_scale: f32,
    pub(crate) attention_scale: f32,
    /// Function of the gate.
    pub(crate) activation: Activation,
    /// Whether rotary embeddings turn neighbours, as Llama's do in GGUF.
    pub(crate) interleaved: bool,
    /// The most tokens of a text, if the files say it.
    pub(crate) context: Option<usize>,
    /// Keys that a query sees in layers with a window.
    pub(crate) window: usize,
    /// Whether a layer has the window, and the second frequencies.
    pub(crate) local: Vec<bool>,
    /// Frequencies of rotary embeddings: of layers without a window, and with it.
    pub(crate) frequencies: [Vec<f64>; 2],
    /// Experts that a token passes, if a layer has any.
    pub(crate) experts: usize,
    /// Whether the weights of a token's experts are made to sum to 1.
    pub(crate) normalize_experts: bool,
}

/// Facts about a family that its files do not say.
struct Family {
    /// Names as in `model_type`, and in GGUF.
    names: &'static [&'static str],
    activation: Activation,
    /// Whether embeddings grow by √width.
    scaled: bool,
    norm_offset: f32,
    /// Whether GGUF has rows of queries and keys by neighbours.
    interleaved: bool,
    /// Values of entries that a file may leave out, by the names of `config.json`.
    defaults: fn() -> Value,
}

const PLAIN: Family = Family {
    names: &[],
    activation: Activation::Silu,
    scaled: false,
    norm_offset: 0.0,
    interleaved: false,
    defaults: || json!({ "rms_norm_eps": 1e-6 }),
};

const FAMILIES: [Family; 3] = [
    Family {
        names: &["gemma3", "gemma3_text"],
        activation: Activation::Gelu,
        scaled: true,
        norm_offset: 1.0,
        defaults: || {
            json!({
                "num_attention_heads": 8,
                "num_key_value_heads": 4,
                "head_dim": 256,
                "rms_norm_eps": 1e-6,
                "rope_theta": 1e6,
                "rope_local_base_freq": 1e4,
                "sliding_window": 4096,
                "sliding_window_pattern": 6,
            })
        },
        ..PLAIN
    },
    Family { names: &["llama"], interleaved: true, ..PLAIN },
    Family { names: &["qwen2", "qwen3", "qwen3_moe", "qwen3moe"], ..PLAIN },
];

/// Layers beyond which a number is taken for a mistake.
const MOST_LAYERS: usize = 10_000;

/// Entries of GGUF, behind the name of the architecture, and of `config.json`.
const KEYS: [(&str, &str); 12] = [
    ("block_count", "num_hidden_layers"),
    ("embedding_length", "hidden_size"),
    ("attention.head_count", "num_attention_heads"),
    ("attention.head_count_kv", "num_key_value_heads"),
    ("attention.key_length", "head_dim"),
    ("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
    ("attention.sliding_window", "sliding_window"),
    ("attention.sliding_window_pattern", "sliding_window_pattern"),
    ("rope.freq_base", "rope_theta"),
    ("rope.freq_base_swa", "rope_local_base_freq"),
    ("expert_used_count", "num_experts_per_tok"),
    ("context_length", "max_position_embeddings"),
];

impl Config {
    /// Reads the entries of `config.json`.
    ///
    /// # Errors
    /// `File` for an entry that is missing or no number, `Unsupported` for another family or
    /// another kind of rotary embeddings.
    pub(crate) fn from_json(json: &Value) -> Result<Self> {
        // Models with vision have the decoder's entries in `text_config`.
        let json = json.get("text_config").unwrap_or(json);
        let name = json["model_type"].as_str().unwrap_or_default();
        let found = FAMILIES.iter().find(|family| family.names.contains(&name));
        let Some(family) = found else {
            let known: Vec<&str> =
                FAMILIES.iter().flat_map(|family| family.names).copied().collect();
            return Err(Error::Unsupported(format!(
                "the model is of the type {name:?}; known types are {}",
                known.join(", ")
            )));
        };
        let defaults = (family.defaults)();
        let get = |key: &str| json.get(key).filter(|value| !value.is_null()).or(defaults.get(key));
        let number = |key: &str| get(key).and_then(Value::as_f64);
        let size = |key: &str| {
            let size = number(key).map(|number| number as usize).filter(|&size| size > 0);
            size.ok_or_else(|| fault(format!("the entry {key} is missing, or no size")))
        };
        let (layers, width, heads) =
            (size("num_hidden_layers")?, size("hidden_size")?, size("num_attention_heads")?);
        if layers > MOST_LAYERS {
            return Err(fault(format!("num_hidden_layers is {layers}, at most {MOST_LAYERS}")));
        }
        let head = size("head_dim").unwrap_or(width / heads);
        let local: Vec<bool> = match (get("layer_types"), number("sliding_window_pattern")) {
            (Some(Value::Array(types)), _) => {
                types.iter().map(|kind| kind == "sliding_attention").collect()
            }
            (_, pattern) => (1..=layers)
                .map(|layer| pattern.is_some_and(|every| !layer.is_multiple_of(every as usize)))
                .collect(),
        };
        if local.len() != layers {
            return Err(fault(format!("{} layer_types for {layers} layers", local.len())));
        }
        if get("use_sliding_window") == Some(&Value::Bool(true)) && !local.contains(&true) {
            return Err(Error::Unsupported("use_sliding_window without layer_types".into()));
        }
        let frequencies = |kind: &str, base: &str, scaling: &Value| {
            // Newer files have all in `rope_parameters`, by kinds of layers if these differ.
            let own = &json["rope_parameters"];
            let own = own.get(kind).unwrap_or(own);
            let base = own["rope_theta"].as_f64().or(number(base)).unwrap_or(1e4);
            frequencies(base, head, if own.is_object() { own } else { scaling })
        };
        let scores = number("query_pre_attn_scalar").unwrap_or(head as f64);
        Ok(Config {
            layers,
            width,
            heads,
            kv_heads: size("num_key_value_heads").unwrap_or(heads),
            head,
            eps: number("rms_norm_eps").unwrap_or_default() as f32,
            norm_offset: family.norm_offset,
            embedding_scale: if family.scaled { (width as f32).sqrt() } else { 1.0 },
            attention_scale: scores.sqrt().recip() as f32,
            activation: family.activation,
            interleaved: false,
            context: size("max_position_embeddings").ok(),
            window: if local.contains(&true) { size("sliding_window")? } else { 0 },
            frequencies: [
                frequencies("full_attention", "rope_theta", &json["rope_scaling"])?,
                frequencies("sliding_attention", "rope_local_base_freq", &Value::Null)?,
            ],
            local,
            experts: size("num_experts_per_tok").unwrap_or(0),
            normalize_experts: get("norm_topk_prob") != Some(&Value::Bool(false)),
        })
    }

    /// Reads GGUF's metadata, which becomes the entries of a `config.json`.
    ///
    /// # Errors
    /// The errors of [`from_json`](Self::from_json); `File` for factors of frequencies that are not
    /// as they should be.
    pub(crate) fn from_gguf(files: &Files) -> Result<Self> {
        let name = files.gguf_value("general.architecture");
        let name = name.as_ref().and_then(Entry::as_str).unwrap_or_default();
        let get = |key: &str| files.gguf_value(&format!("{name}.{key}"));
        let mut json = Map::from_iter([("model_type".to_owned(), name.into())]);
        for (key, entry) in KEYS {
            if let Some(number) = get(key).and_then(|value| value.as_f32()) {
                json.insert(entry.into(), number.into());
            }
        }
        if let Some(kind) = get("rope.scaling.type").as_ref().and_then(Entry::as_str) {
            let factor = get("rope.scaling.factor").and_then(|value| value.as_f32());
            json.insert("rope_scaling".into(), json!({ "rope_type": kind, "factor": factor }));
        }
        // The one model whose scores have another factor than its heads say (Gemma 3 27B).
        if name == "gemma3" && json.get("num_hidden_layers") == Some(&json!(62.0)) {
            json.insert("query_pre_attn_scalar".into(), 168.into());
        }
        let mut config = Self::from_json(&Value::Object(json))?;
        config.norm_offset = 0.0;
        config.interleaved =
            FAMILIES.iter().any(|family| family.names.contains(&name) && family.interleaved);
        if let Ok(factors) = files.get("rope_freqs.weight") {
            let (dtype, bytes) = factors.dense()?;
            let (factors, []) = bytes.as_chunks() else { return Err(fault("rope_freqs")) };
            if dtype != tilewise::DType::F32 || factors.len() != config.head / 2 {
                return Err(fault(format!("rope_freqs has {} factors of {dtype}", factors.len())));
            }
            for (frequency, &factor) in config.frequencies[0].iter_mut().zip(factors) {
                *frequency /= f64::from(f32::from_le_bytes(factor));
            }
        }
        Ok(config)
    }
}

/// Turns for each token of the pairs of a head, base^(−2i/head), scaled as `scaling` says.
fn frequencies(base: f64, head: usize, scaling: &Value) -> Result<Vec<f64>> {
    if !(base > 0.0 && base.is_finite()) {
        return Err(fault(format!("the base of rotary embeddings is {base}")));
    }
    let number = |key: &str| {
        scaling[key].as_f64().ok_or_else(|| fault(format!("the scaling of rope lacks {key}")))
    };
    let plain = (0..head / 2).map(|i| base.powf(-2.0 * i as f64 / head as f64));
    let kind = scaling.get("rope_type").or(scaling.get("type")).and_then(Value::as_str);
    match kind.unwrap_or("default") {
        "default" | "none" => Ok(plain.collect()),
        "linear" => {
            let factor = number("factor")?;
            Ok(plain.map(|frequency| frequency / factor).collect())
        }
        // Long waves become longer by the factor, short ones stay, those between are mixed ("The
        // Llama 3 Herd of Models", as the package transformers computes them).
        "llama3" => {
            let [factor, low, high, original] = [
                number("factor")?,
                number("low_freq_factor")?,
                number("high_freq_factor")?,
                number("original_max_position_embeddings")?,
            ];
            let scaled = |frequency: f64| {
                let waves = original * frequency / TAU;
                let share = ((waves - low) / (high - low)).clamp(0.0, 1.0);
                frequency * (share + (1.0 - share) / factor)
            };
            Ok(plain.map(scaled).collect())
        }
        other => Err(Error::Unsupported(format!("rotary embeddings with the scaling {other:?}"))),
    }
}
