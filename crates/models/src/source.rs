//! The tensors of a model by one set of names.

use crate::fault::fault;
use serde_json::Value;
use std::collections::HashSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use tilewise::{Result, RightOperand, Tensor, Weight, Weights};

/// The tensors of a model by GGUF's names, whatever the files call them.
pub(crate) struct Source<'a> {
    weights: &'a Weights,
    names: HashSet<&'a str>,
    /// In safetensors, what stands before `layers.0`.
    base: Option<&'a str>,
    /// Whether layers have norms behind attention and products, too. They share names with norms
    /// before these in other models.
    norms_behind: bool,
}

/// Names in a layer: of GGUF, and of safetensors.
const NAMES: [(&str, &str); 14] = [
    ("attn_norm", "input_layernorm"),
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_q_norm", "self_attn.q_norm"),
    ("attn_k_norm", "self_attn.k_norm"),
    ("attn_output", "self_attn.o_proj"),
    ("post_attention_norm", "post_attention_layernorm"),
    ("ffn_norm", "pre_feedforward_layernorm"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
    ("post_ffw_norm", "post_feedforward_layernorm"),
    ("ffn_gate_inp", "mlp.gate"),
];

impl<'a> Source<'a> {
    pub(crate) fn new(weights: &'a Weights) -> Result<Self> {
        let names: HashSet<&str> = weights.names().collect();
        let of_embeddings = |name: &&'a str| {
            let base = name.strip_suffix(".weight").unwrap_or(name).strip_suffix("embed_tokens")?;
            names.contains(format!("{base}norm.weight").as_str()).then_some(base)
        };
        let base = names.iter().find_map(of_embeddings);
        if base.is_none() && weights.model().gguf_version().is_none() {
            return Err(fault("the files hold no decoder: there is no embed_tokens"));
        }
        let norms_behind = names.iter().any(|name| name.contains("pre_feedforward_layernorm"));
        Ok(Source { weights, names, base, norms_behind })
    }

    /// The name in the files of a tensor of a layer, or of the model.
    fn name(&self, layer: Option<usize>, part: &str) -> String {
        let Some(base) = self.base else {
            return layer.map_or(part.into(), |layer| format!("blk.{layer}.{part}"));
        };
        let Some(layer) = layer else {
            return match part {
                "token_embd" => format!("{base}embed_tokens"),
                "output_norm" => format!("{base}norm"),
                _ => format!("{}lm_head", base.strip_suffix("model.").unwrap_or(base)),
            };
        };
        let part = match part {
            "ffn_norm" if !self.norms_behind => "post_attention_layernorm",
            "post_attention_norm" if !self.norms_behind => "",
            _ => NAMES.iter().find(|(name, _)| *name == part).map_or(part, |(_, name)| name),
        };
        format!("{base}layers.{layer}.{part}")
    }

    /// The tensor of this name, if there is one.
    fn find(&self, name: &str) -> Result<Option<Weight>> {
        let full = format!("{name}.weight");
        let found = [full.as_str(), name].into_iter().find(|name| self.names.contains(name));
        found.map(|name| self.weights.get(name)).transpose()
    }

    /// Weights \[N, K\], or the embeddings.
    pub(crate) fn matrix(&self, layer: Option<usize>, part: &str) -> Result<RightOperand> {
        let name = self.name(layer, part);
        self.optional(&name)?.ok_or_else(|| fault(format!("there is no tensor {name}")))
    }

    /// The head, if it is not the embeddings.
    pub(crate) fn head(&self) -> Result<Option<RightOperand>> {
        self.optional(&self.name(None, "output"))
    }

    /// Stacks of experts \[E, N, K\], if the layer has experts: gate, up and down.
    pub(crate) fn experts(&self, layer: usize) -> Result<Option<[RightOperand; 3]>> {
        let stack = |part: &str| match self.base {
            None => self.optional(&self.name(Some(layer), &format!("{part}_exps"))),
            Some(base) => {
                let part = part.trim_start_matches("ffn_");
                let name =
                    |expert| format!("{base}layers.{layer}.mlp.experts.{expert}.{part}_proj");
                let mut each = Vec::new();
                while let Some(expert) = self.optional(&name(each.len()))? {
                    each.push(expert);
                }
                if each.is_empty() {
                    return Ok(None);
                }
                Ok(Some(tilewise::Shards::new(each)?.into()))
            }
        };
        let [gate, up, down] = [stack("ffn_gate")?, stack("ffn_up")?, stack("ffn_down")?];
        Ok(gate.zip(up).zip(down).map(|((gate, up), down)| [gate, up, down]))
    }

    fn optional(&self, name: &str) -> Result<Option<RightOperand>> {
        Ok(self.find(name)?.map(RightOperand::from))
    }

    /// A vector of norm's weights or biases, if there is one; `part` with `.bias` for the latter.
    pub(crate) fn vector(&self, layer: Option<usize>, part: &str) -> Result<Option<Tensor>> {
        let name = match part.strip_suffix(".bias") {
            Some(part) => format!("{}.bias", self.name(layer, part)),
            None => format!("{}.weight", self.name(layer, part)),
        };
        self.names.contains(name.as_str()).then(|| self.weights.dense(&name)).transpose()
    }

    /// A vector that each model has.
    pub(crate) fn norm(&self, layer: Option<usize>, part: &str) -> Result<Tensor> {
        let missing = || fault(format!("there is no tensor {}.weight", self.name(layer, part)));
        self.vector(layer, part)?.ok_or_else(missing)
    }
}

/// A file of JSON beside the files of a model.
///
/// # Errors
/// `File` when it cannot be read.
pub(crate) fn json_beside(weights: &Weights, name: &str) -> Result<Value> {
    let file = beside(weights, name);
    let fault = |error: &dyn Display| fault(format!("{}: {error}", file.display()));
    let text = std::fs::read(&file).map_err(|error| fault(&error))?;
    serde_json::from_slice(&text).map_err(|error| fault(&error))
}

/// The path of a file beside the files of a model.
pub(crate) fn beside(weights: &Weights, name: &str) -> PathBuf {
    Path::new(weights.model().files().next().unwrap_or_default()).with_file_name(name)
}
