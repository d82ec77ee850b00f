//! The weights of a decoder on a device.

use crate::config::Config;
use crate::source::{Source, json_beside};
use tilewise::moe::{MoeLayer, Router};
use tilewise::{Context, QuantizedTensor, Result, RightOperand, Tensor, Weights};

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
    /// Loads projections of the same rows. Neighbours become one if they can.
    fn load(source: &Source<'_>, layer: Option<usize>, parts: &[&str]) -> Result<Vec<Self>> {
        let mut all: Vec<Projection> = Vec::new();
        for part in parts {
            let bias = source.vector(layer, &format!("{part}.bias"))?;
            let next = Projection(RightOperand::of_weights(source.matrix(layer, part)?), bias);
            match all.last().and_then(|last| last.beside(&next)) {
                Some(both) => *all.last_mut().expect("the last") = both,
                None => all.push(next),
            }
        }
        Ok(all)
    }

    /// Both in one, unless the library does not join them: weights of different formats, say.
    fn beside(&self, next: &Self) -> Option<Self> {
        use RightOperand::{Dense, Quantized};
        let weights = match (&self.0, &next.0) {
            (Dense(a), Dense(b)) => Tensor::concat(&[&a.t(), &b.t()], 0).ok()?.t().into(),
            (Quantized(a), Quantized(b)) => QuantizedTensor::concat(&[a, b]).ok()?.into(),
            _ => return None,
        };
        let bias = match (&self.1, &next.1) {
            (None, None) => None,
            (Some(a), Some(b)) => Some(Tensor::concat(&[a, b], 0).ok()?),
            _ => return None,
        };
        Some(Projection(weights, bias))
    }
}

/// The part of a layer behind attention.
#[expect(clippy::large_enum_variant, reason = "a layer has one")]
pub(crate) enum Feed {
    Dense { gate_up: Vec<Projection>, down: RightOperand },
    Experts { router: Vec<Projection>, experts: MoeLayer },
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
        let projections = |parts: &[&str]| Projection::load(source, at, parts);
        let feed = match source.experts(layer)? {
            Some([gate, up, down]) => {
                let choice = Router::new(config.experts).normalize(config.normalize_experts);
                let mut experts = MoeLayer::new(gate, up, down, choice);
                experts = experts.activation(config.activation);
                if let Some(Layer { feed: Feed::Experts { experts: first, .. }, .. }) = first {
                    experts = experts.sharing_memory(first);
                }
                Feed::Experts { router: projections(&["ffn_gate_inp"])?, experts }
            }
            None => Feed::Dense {
                gate_up: projections(&["ffn_gate", "ffn_up"])?,
                down: matrix("ffn_down")?,
            },
        };
        Ok(Layer {
            attn_norm: source.norm(at, "attn_norm")?,
            qkv: projections(&["attn_q", "attn_k", "attn_v"])?,
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
