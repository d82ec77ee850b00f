//! The weights of a decoder on a device.

use crate::config::Config;
use crate::source::{Source, json_beside};
use tilewise::moe::{MoeLayer, Router};
use tilewise::{Context, Gemm, QuantizedTensor, Result, RightOperand, Tensor, Weights};

/// A decoder's numbers and weights.
pub(crate) struct Weighed {
    pub(crate) context: Context,
    pub(crate) config: Config,
    pub(crate) embeddings: RightOperand,
    pub(crate) layers: Vec<Layer>,
    pub(crate) norm: Tensor,
    pub(crate) head: RightOperand,
}

impl Weighed {
    pub(crate) fn load(weights: &Weights) -> Result<Self> {
        let config = match weights.model().gguf_version() {
            Some(_) => Config::from_gguf(weights.model())?,
            None => Config::from_json(&json_beside(weights, "config.json")?)?,
        };
        let source = Source::new(weights)?;
        let embeddings = source.matrix(None, "token_embd")?;
        let head = source.head()?.unwrap_or_else(|| embeddings.clone());
        let mut layers: Vec<Layer> = Vec::new();
        for layer in 0..config.layers {
            let loaded = Layer::load(&source, &config, layer, layers.first())?;
            layers.push(loaded);
        }
        let norm = source.norm(None, "output_norm")?;
        let (context, head) = (norm.context().clone(), RightOperand::of_weights(head));
        Ok(Weighed { context, config, embeddings, layers, norm, head })
    }

    /// The number of tokens that it knows.
    pub(crate) fn vocabulary(&self) -> usize {
        match &self.embeddings {
            RightOperand::Dense(rows) => rows.shape()[0],
            RightOperand::Quantized(rows) => rows.shape()[0],
            _ => unreachable!("`Source` gives no other weights"),
        }
    }
}

/// The weights of a layer. Some families have the optional ones.
pub(crate) struct Layer {
    pub(crate) attn_norm: Tensor,
    pub(crate) qkv: Vec<Projection>,
    /// Norms of the heads of queries and of keys.
    pub(crate) q_norm: Option<Tensor>,
    pub(crate) k_norm: Option<Tensor>,
    pub(crate) output: RightOperand,
    /// The norm between attention and the sum with its input.
    pub(crate) attn_norm_behind: Option<Tensor>,
    pub(crate) ffn_norm: Tensor,
    pub(crate) feed: Feed,
    pub(crate) ffn_norm_behind: Option<Tensor>,
}

/// Weights, and a bias.
pub(crate) struct Projection(pub(crate) RightOperand, pub(crate) Option<Tensor>);

impl Projection {
    fn load(source: &Source<'_>, layer: Option<usize>, part: &str) -> Result<Self> {
        let bias = source.vector(layer, &format!("{part}.bias"))?;
        Ok(Projection(RightOperand::of_weights(source.matrix(layer, part)?), bias))
    }

    /// x·W + bias
    pub(crate) fn product(&self, x: &Tensor) -> Gemm {
        let product = Gemm::new(x, self.0.clone());
        self.1.iter().fold(product, |product, bias| product.bias(bias))
    }

    /// Loads projections of the same rows. Neighbours become one if they can.
    fn load_joined(source: &Source<'_>, layer: Option<usize>, parts: &[&str]) -> Result<Vec<Self>> {
        let mut all: Vec<Projection> = Vec::new();
        for part in parts {
            let next = Self::load(source, layer, part)?;
            match all.last().and_then(|last| last.joined(&next, false)) {
                Some(both) => *all.last_mut().expect("the last") = both,
                None => all.push(next),
            }
        }
        Ok(all)
    }

    /// Both in one, their columns side by side or by turns, unless the library does not join them:
    /// weights of different formats, say.
    fn joined(&self, next: &Self, by_turns: bool) -> Option<Self> {
        use RightOperand::{Dense, Quantized};
        let dense = |a: &Tensor, b: &Tensor| match by_turns {
            true => Tensor::interleave(&[a, b], 0).ok(),
            false => Tensor::concat(&[a, b], 0).ok(),
        };
        let weights = match (&self.0, &next.0) {
            (Dense(a), Dense(b)) => dense(&a.t(), &b.t())?.t().into(),
            (Quantized(a), Quantized(b)) if by_turns => {
                QuantizedTensor::interleave(&[a, b]).ok()?.into()
            }
            (Quantized(a), Quantized(b)) => QuantizedTensor::concat(&[a, b]).ok()?.into(),
            _ => return None,
        };
        let bias = match (&self.1, &next.1) {
            (None, None) => None,
            (Some(a), Some(b)) => Some(dense(a, b)?),
            _ => return None,
        };
        Some(Projection(weights, bias))
    }
}

/// Gate and up.
#[expect(clippy::large_enum_variant, reason = "a layer has one")]
pub(crate) enum GateUp {
    /// Their columns by turns.
    ByTurns(Projection),
    /// One after the other, if the library does not join them.
    Apart(Projection, Projection),
}

/// The part of a layer behind attention.
#[expect(clippy::large_enum_variant, reason = "a layer has one")]
pub(crate) enum Feed {
    Dense { gate_up: GateUp, down: RightOperand },
    Experts { router: Projection, experts: MoeLayer },
}

impl Layer {
    /// Loads a layer. Its experts share the memory of the first one's.
    fn load(
        source: &Source<'_>,
        config: &Config,
        layer: usize,
        first: Option<&Layer>,
    ) -> Result<Self> {
        let at = Some(layer);
        let matrix = |part: &str| source.matrix(at, part).map(RightOperand::of_weights);
        let feed = match source.experts(layer)? {
            Some([gate, up, down]) => {
                let choice = Router::new(config.experts).normalize(config.normalize_experts);
                let mut experts = MoeLayer::new(gate, up, down, choice);
                experts = experts.activation(config.activation);
                if let Some(Layer { feed: Feed::Experts { experts: first, .. }, .. }) = first {
                    experts = experts.sharing_memory(first);
                }
                Feed::Experts { router: Projection::load(source, at, "ffn_gate_inp")?, experts }
            }
            None => {
                let gate = Projection::load(source, at, "ffn_gate")?;
                let up = Projection::load(source, at, "ffn_up")?;
                let gate_up = match gate.joined(&up, true) {
                    Some(both) => GateUp::ByTurns(both),
                    None => GateUp::Apart(gate, up),
                };
                Feed::Dense { gate_up, down: matrix("ffn_down")? }
            }
        };
        Ok(Layer {
            attn_norm: source.norm(at, "attn_norm")?,
            qkv: Projection::load_joined(source, at, &["attn_q", "attn_k", "attn_v"])?,
            q_norm: source.vector(at, "attn_q_norm")?,
            k_norm: source.vector(at, "attn_k_norm")?,
            output: matrix("attn_output")?,
            attn_norm_behind: source.vector(at, "post_attention_norm")?,
            ffn_norm: source.norm(at, "ffn_norm")?,
            feed,
            ffn_norm_behind: source.vector(at, "post_ffw_norm")?,
        })
    }
}
