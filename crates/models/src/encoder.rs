//! Sentence embeddings by BERT, such as all-MiniLM-L6-v2.

use crate::fault::fault;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::Path;
use tilewise::{
    Activation, Context, DType, Error, Gemm, Recorder, Result, Take, Tensor, Weights, ops,
};
use tokenizers::{Encoding, Tokenizer, TruncationParams};

/// Turns sentences into vectors of length 1: the product of two is near 1 if their sentences say
/// the same.
///
/// ```no_run
/// use tilewise::Context;
/// use tilewise_models::Encoder;
///
/// # fn main() -> tilewise::Result<()> {
/// let encoder = Encoder::open(&Context::new()?, "target/models/minilm")?;
/// let vectors = encoder.embed(&["The sun shines.", "It is a bright day."])?;
/// # Ok(())
/// # }
/// ```
///
/// It reads models of sentence-transformers that are [BERT](https://arxiv.org/abs/1810.04805) with
/// the mean over all tokens ([Sentence-BERT](https://arxiv.org/abs/1908.10084)), from a folder with
/// safetensors, `tokenizer.json` and the files that configure them.
pub struct Encoder {
    context: Context,
    tokenizer: Tokenizer,
    /// \[vocabulary, width\]
    words: Tensor,
    /// \[positions, width\], with the vector of the first type of token added.
    places: Tensor,
    norm: Norm,
    layers: Vec<Layer>,
    heads: usize,
}

/// `config.json`. Its other entries do not change the vectors.
#[derive(Deserialize)]
struct Config {
    model_type: String,
    hidden_act: String,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    layer_norm_eps: f32,
    max_position_embeddings: usize,
}

/// `sentence_bert_config.json`.
#[derive(Deserialize)]
struct Cut {
    max_seq_length: usize,
}

/// `1_Pooling/config.json`.
#[derive(Deserialize)]
struct Pooling {
    pooling_mode_mean_tokens: bool,
}

struct Layer {
    /// Queries, keys and values.
    heads: Linear,
    mix: Linear,
    mix_norm: Norm,
    up: Linear,
    down: Linear,
    down_norm: Norm,
}

/// y = x·Wᵀ + b
struct Linear {
    weight: Tensor,
    bias: Tensor,
}

struct Norm {
    weight: Tensor,
    bias: Tensor,
    eps: f32,
}

impl Encoder {
    /// Loads a model from its folder. It computes in the type of the file's weights.
    ///
    /// # Errors
    /// [`File`](Error::File) when a file is missing or malformed, `Unsupported` for a model of
    /// another architecture; otherwise as [`Weights::dense`].
    pub fn open(context: &Context, folder: impl AsRef<Path>) -> Result<Self> {
        Self::load(context, folder.as_ref(), None)
    }

    /// Like [`open`](Self::open), with weights and activations of another type: f16 is faster on
    /// most GPUs.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn open_as(context: &Context, folder: impl AsRef<Path>, dtype: DType) -> Result<Self> {
        Self::load(context, folder.as_ref(), Some(dtype))
    }

    fn load(context: &Context, folder: &Path, dtype: Option<DType>) -> Result<Self> {
        if folder.is_file() {
            let text = format!("{}: a file; a model for vectors is a folder", folder.display());
            return Err(fault(text));
        }
        let config: Config = read(folder, "config.json")?;
        if (&*config.model_type, &*config.hidden_act) != ("bert", "gelu") {
            let Config { model_type, hidden_act, .. } = config;
            let text = format!("a model {model_type} with {hidden_act}; wanted bert with gelu");
            return Err(Error::Unsupported(text));
        }
        let pooling: Pooling = read(folder, "1_Pooling/config.json")?;
        if !pooling.pooling_mode_mean_tokens {
            return Err(Error::Unsupported("vectors that are no mean over the tokens".into()));
        }
        let cut: Cut = read(folder, "sentence_bert_config.json")?;
        let limit = cut.max_seq_length.min(config.max_position_embeddings);

        let weights = Weights::open(context, folder)?;
        let load = |name: &str| {
            let tensor = weights.dense(name)?;
            dtype.map_or(Ok(tensor.clone()), |dtype| tensor.cast(dtype))
        };
        let norm = |name: &str| {
            let [weight, bias] = ["weight", "bias"].map(|part| load(&format!("{name}.{part}")));
            Ok(Norm { weight: weight?, bias: bias?, eps: config.layer_norm_eps })
        };
        let [words, places, types] = ["word", "position", "token_type"]
            .map(|what| load(&format!("embeddings.{what}_embeddings.weight")));
        let layer = |number| {
            let of = |name: &str| format!("encoder.layer.{number}.{name}");
            let linear = |names: &[&str]| {
                let [weight, bias] = ["weight", "bias"].map(|part| {
                    let parts = names.iter().map(|name| load(&format!("{}.{part}", of(name))));
                    stacked(&parts.collect::<Result<Vec<_>>>()?)
                });
                Ok(Linear { weight: weight?, bias: bias? })
            };
            Ok(Layer {
                heads: linear(&[
                    "attention.self.query",
                    "attention.self.key",
                    "attention.self.value",
                ])?,
                mix: linear(&["attention.output.dense"])?,
                mix_norm: norm(&of("attention.output.LayerNorm"))?,
                up: linear(&["intermediate.dense"])?,
                down: linear(&["output.dense"])?,
                down_norm: norm(&of("output.LayerNorm"))?,
            })
        };
        Ok(Self {
            context: context.clone(),
            tokenizer: tokenizer(folder, limit)?,
            words: words?,
            places: ops::add(&places?, &types?.narrow(0, 0, 1)?).run()?,
            norm: norm("embeddings.LayerNorm")?,
            layers: (0..config.num_hidden_layers).map(layer).collect::<Result<_>>()?,
            heads: config.num_attention_heads,
        })
    }

    /// The number of elements of a vector.
    pub fn width(&self) -> usize {
        self.words.shape()[1]
    }

    /// Computes a vector for each text. The texts are one batch, padded to the longest, so texts of
    /// like length cost least. A text beyond the model's limit is cut.
    ///
    /// ```no_run
    /// # fn main() -> tilewise::Result<()> {
    /// # let encoder = tilewise_models::Encoder::open(&tilewise::Context::new()?, "minilm")?;
    /// let vectors = encoder.embed(&["one", "two"])?;
    /// assert_eq!(vectors[1].len(), encoder.width());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`File`](Error::File) when the tokenizer cannot read a text; `OutOfMemory` and `DeviceLimit`
    /// for a batch that is too large.
    pub fn embed<S: AsRef<str>>(&self, texts: &[S]) -> Result<Vec<Vec<f32>>> {
        let texts = texts.iter().map(AsRef::as_ref).collect();
        let read = self.tokenizer.encode_batch_fast::<&str>(texts, true);
        let read = read.map_err(|why| unfit("tokenizer.json", &*why))?;
        let length = read.iter().map(Encoding::len).max().unwrap_or(0);
        let (mut ids, mut counted) =
            (vec![0u32; read.len() * length], vec![0f32; read.len() * length]);
        for (row, text) in read.iter().enumerate() {
            let own = row * length..row * length + text.len();
            ids[own.clone()].copy_from_slice(text.get_ids());
            counted[own].fill(1.0);
        }
        let lengths: Vec<u32> = read.iter().map(|text| text.len() as u32).collect();

        let ids = Tensor::upload(&self.context, &ids, &[ids.len()])?;
        let lengths = Tensor::upload(&self.context, &lengths, &[lengths.len()])?;
        let counted = Tensor::upload(&self.context, &counted, &[read.len(), 1, length])?;
        let sums = self.context.submit(|to| self.record(to, &ids, &lengths, &counted))?;
        Ok(sums.read_blocking::<f32>()?.chunks(self.width()).map(normalized).collect())
    }

    /// Records a batch, and gives the sum over the tokens of each text, \[texts, 1, width\].
    /// `ids` has all tokens, `counted` \[texts, 1, tokens\] is 0 for padding and 1 elsewhere.
    fn record(
        &self,
        to: &mut Recorder<'_>,
        ids: &Tensor,
        lengths: &Tensor,
        counted: &Tensor,
    ) -> Result<Tensor> {
        let (texts, tokens, width) = (counted.shape()[0], counted.shape()[2], self.width());
        let new = |dtype, width| Tensor::zeros(&self.context, dtype, &[texts * tokens, width]);
        let rows = |width| new(self.words.dtype(), width);
        let (x, mixed, qkv) = (rows(width)?, rows(width)?, rows(3 * width)?);
        // Only norms read these sums. In bf16 they would add a sixth to the error of a vector.
        let y = new(DType::F32, width)?;
        let by_text = |rows: &Tensor| rows.reshape(&[texts, tokens, width]);
        let split = [texts, tokens, 3, self.heads, width / self.heads];
        let of_heads = |rows: &Tensor, which| {
            rows.reshape(&split)?.narrow(2, which, 1)?.squeeze(2)?.transpose(1, 2)
        };
        let [q, k, v] = [0, 1, 2].map(|which| of_heads(&qkv, which));
        let attention = ops::attention(&q?, &k?, &v?).lengths(lengths);
        let mixed_heads =
            mixed.reshape(&[texts, tokens, self.heads, width / self.heads])?.transpose(1, 2)?;

        Take::new(&self.words).rows(ids).out_dtype(DType::F32).record(to, &y)?;
        let places = self.places.narrow(0, 0, tokens)?;
        ops::add(&by_text(&y)?, &places).record(to, &by_text(&y)?)?;
        self.norm.record(to, &y, &x)?;
        for Layer { heads, mix, mix_norm, up, down, down_norm } in &self.layers {
            heads.of(&x).record(to, &qkv)?;
            attention.record(to, &mixed_heads)?;
            mix.of(&mixed).residual(&x).record(to, &y)?;
            mix_norm.record(to, &y, &x)?;
            let wide = rows(up.bias.elem_count())?;
            up.of(&x).activation(Activation::GeluErf).record(to, &wide)?;
            down.of(&wide).residual(&x).record(to, &y)?;
            down_norm.record(to, &y, &x)?;
        }
        let sums = Tensor::zeros(&self.context, DType::F32, &[texts, 1, width])?;
        Gemm::new(counted, &by_text(&x)?).record(to, &sums)?;
        Ok(sums)
    }
}

impl Linear {
    fn of(&self, x: &Tensor) -> Gemm {
        Gemm::new(x, self.weight.t()).bias(&self.bias)
    }
}

impl Norm {
    fn record(&self, to: &mut Recorder<'_>, x: &Tensor, out: &Tensor) -> Result<()> {
        ops::layer_norm(x, &self.weight, &self.bias, self.eps).record(to, out)
    }
}

/// Tensors of one shape, one below the other.
fn stacked(parts: &[Tensor]) -> Result<Tensor> {
    let mut shape = parts[0].shape().to_vec();
    let rows = shape[0];
    shape[0] *= parts.len();
    let all = Tensor::zeros(parts[0].context(), parts[0].dtype(), &shape)?;
    for (at, part) in parts.iter().enumerate() {
        all.narrow(0, at * rows, rows)?.copy_from(part)?;
    }
    Ok(all)
}

/// The vector of length 1. It is the same for the sum over tokens and for their mean.
fn normalized(sum: &[f32]) -> Vec<f32> {
    let length = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
    sum.iter().map(|x| x / length).collect()
}

/// Reads the tokenizer, which cuts texts to `limit` tokens, and pads none.
fn tokenizer(folder: &Path, limit: usize) -> Result<Tokenizer> {
    let path = folder.join("tokenizer.json");
    let failed = |why: tokenizers::Error| unfit(&path.display().to_string(), &*why);
    let mut tokenizer = Tokenizer::from_file(&path).map_err(failed)?;
    if limit < 3 {
        return Err(Error::Unsupported(format!("texts of {limit} tokens, two of them around it")));
    }
    let cut = TruncationParams { max_length: limit, ..Default::default() };
    tokenizer.with_padding(None).with_truncation(Some(cut)).map_err(failed)?;
    Ok(tokenizer)
}

/// Reads a file in JSON.
fn read<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<T> {
    let path = folder.join(name);
    let failed = |why: &dyn std::error::Error| unfit(&path.display().to_string(), why);
    let bytes = std::fs::read(&path).map_err(|why| failed(&why))?;
    serde_json::from_slice(&bytes).map_err(|why| failed(&why))
}

fn unfit(file: &str, why: &dyn std::error::Error) -> Error {
    Error::File { text: format!("{file}: {why}"), source: None }
}
