//! A decoder by hand: Qwen 3 on the public items of `tilewise`. docs/models.md explains it, step by
//! step, with the text of this file.
//!
//! `cargo run --release -p tilewise-models --example by_hand FOLDER "The capital of France is"`

use std::error::Error;
use std::{env, fs, path::Path};
use tilewise::ops::{self, KvCache};
use tilewise::{Activation, Context, DType, Gemm, Recorder, RightOperand, Tensor, Weights};
use tokenizers::Tokenizer;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    let mut args = env::args().skip(1);
    let (Some(folder), Some(prompt)) = (args.next(), args.next()) else {
        return Err("wanted: the folder of a model, and a prompt".into());
    };
    let (ctx, folder) = (Context::new()?, Path::new(&folder));
    let tokenizer = Tokenizer::from_file(folder.join("tokenizer.json"))?;
    let prompt = tokenizer.encode(prompt, true)?;
    let tokens = generate(&ctx, folder, prompt.get_ids(), 20)?;
    println!("{}", tokenizer.decode(&tokens, true)?);
    Ok(())
}

/// Numbers of `config.json`.
struct Config {
    layers: usize,
    heads: usize,
    kv_heads: usize,
    head: usize,
    width: usize,
    eps: f32,
    base: f64,
}

impl Config {
    fn open(folder: &Path) -> Result<Self> {
        let json: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(folder.join("config.json"))?)?;
        let number = |name: &str| json[name].as_f64().ok_or(format!("config.json: no {name}"));
        Ok(Config {
            layers: number("num_hidden_layers")? as usize,
            heads: number("num_attention_heads")? as usize,
            kv_heads: number("num_key_value_heads")? as usize,
            head: number("head_dim")? as usize,
            width: number("hidden_size")? as usize,
            eps: number("rms_norm_eps")? as f32,
            base: number("rope_theta")?,
        })
    }
}

/// Weights of a layer: norms, and matrices for products.
struct Layer {
    attn_norm: Tensor,
    qkv: RightOperand,
    q_norm: Tensor,
    k_norm: Tensor,
    output: RightOperand,
    ffn_norm: Tensor,
    gate_up: RightOperand,
    down: RightOperand,
}

impl Layer {
    fn load(weights: &Weights, layer: usize) -> Result<Self> {
        let get = |name: &str| weights.dense(&format!("model.layers.{layer}.{name}.weight"));
        let joined = |names: &[&str]| -> Result<RightOperand> {
            let parts = names.iter().map(|name| get(name)).collect::<tilewise::Result<Vec<_>>>()?;
            Ok(Tensor::concat(&parts.iter().collect::<Vec<_>>(), 0)?.t().into())
        };
        let gate_up = Tensor::interleave(&[&get("mlp.gate_proj")?, &get("mlp.up_proj")?], 0)?;
        Ok(Layer {
            attn_norm: get("input_layernorm")?,
            qkv: joined(&["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"])?,
            q_norm: get("self_attn.q_norm")?,
            k_norm: get("self_attn.k_norm")?,
            output: joined(&["self_attn.o_proj"])?,
            ffn_norm: get("post_attention_layernorm")?,
            gate_up: gate_up.t().into(),
            down: joined(&["mlp.down_proj"])?,
        })
    }
}

/// Cosines and sines of each position, \[room, head/2\].
fn turns(ctx: &Context, config: &Config, room: usize) -> Result<[Tensor; 2]> {
    let half = config.head / 2;
    let angle = |at: usize, i: usize| at as f64 / config.base.powf(i as f64 / half as f64);
    let table = |of: fn(f64) -> f64| {
        let all = (0..room).flat_map(|at| (0..half).map(move |i| of(angle(at, i)) as f32));
        Tensor::upload(ctx, &all.collect::<Vec<_>>(), &[room, half])
    };
    Ok([table(f64::cos)?, table(f64::sin)?])
}

struct Model {
    config: Config,
    embeddings: Tensor,
    layers: Vec<Layer>,
    norm: Tensor,
    head: RightOperand,
}

impl Model {
    /// Records a pass over `tokens`, u32 \[T\]. It leaves the token that follows in `next`.
    fn pass(
        &self,
        to: &mut Recorder<'_>,
        tokens: &Tensor,
        cache: &mut KvCache,
        [cos, sin]: &[Tensor; 2],
        next: &Tensor,
    ) -> tilewise::Result<()> {
        let Config { heads, kv_heads, head, width, eps, .. } = self.config;
        let count = tokens.elem_count();
        let zeros = |columns: usize| Tensor::zeros(tokens.context(), DType::F32, &[count, columns]);
        let (x, h) = (zeros(width)?, zeros(width)?);
        ops::gather(&self.embeddings, tokens).record(to, &x)?;
        for (at, layer) in self.layers.iter().enumerate() {
            ops::rms_norm(&x, &layer.attn_norm, eps).record(to, &h)?;
            let qkv = zeros((heads + 2 * kv_heads) * head)?;
            Gemm::new(&h, layer.qkv.clone()).record(to, &qkv)?;
            // The heads from the `first` one on, as a view [1, heads, T, head].
            let split = |rows: &Tensor, first: usize, heads: usize| {
                let rows = rows.narrow(1, first * head, heads * head)?;
                rows.reshape(&[1, count, heads, head])?.transpose(1, 2)
            };
            let q = split(&qkv, 0, heads)?;
            let k = split(&qkv, heads, kv_heads)?;
            let v = split(&qkv, heads + kv_heads, kv_heads)?;
            let rope = |x: &Tensor, norm: &Tensor| {
                ops::rope(x, cos, sin).rms_norm(norm, eps).at(cache.position())
            };
            rope(&q, &layer.q_norm).record(to, &q)?;
            let k = rope(&k, &layer.k_norm).into_rows(cache.room());
            k.record(to, cache.keys(at))?;
            ops::append(&v, cache.room(), cache.position()).record(to, cache.values(at))?;
            let mixed = zeros(heads * head)?;
            cache.attention(at, &q).record(to, &split(&mixed, 0, heads)?)?;
            Gemm::new(&mixed, layer.output.clone()).beta(1.0).record(to, &x)?;

            ops::rms_norm(&x, &layer.ffn_norm, eps).record(to, &h)?;
            let product = Gemm::new(&h, layer.gate_up.clone()).glu(Activation::Silu);
            let gated = zeros(product.output_shape()?[1])?;
            product.record(to, &gated)?;
            Gemm::new(&gated, layer.down.clone()).beta(1.0).record(to, &x)?;
        }
        let last = x.narrow(0, count - 1, 1)?;
        ops::rms_norm(&last, &self.norm, eps).record(to, &last)?;
        let product = Gemm::new(&last, self.head.clone());
        let logits = Tensor::zeros(tokens.context(), DType::F32, &product.output_shape()?)?;
        product.record(to, &logits)?;
        ops::arg_max(&logits, 1).record(to, next)?;
        cache.advance(to, count)
    }
}

/// The `more` tokens that follow a prompt.
pub(crate) fn generate(
    ctx: &Context,
    folder: &Path,
    prompt: &[u32],
    more: usize,
) -> Result<Vec<u32>> {
    let (config, weights) = (Config::open(folder)?, Weights::open(ctx, folder)?);
    let layers = (0..config.layers).map(|layer| Layer::load(&weights, layer));
    let embeddings = weights.dense("model.embed_tokens.weight")?;
    let model = Model {
        layers: layers.collect::<Result<_>>()?,
        norm: weights.dense("model.norm.weight")?,
        head: embeddings.t().into(),
        embeddings,
        config,
    };
    let room = prompt.len() + more;
    let turns = turns(ctx, &model.config, room)?;
    let shape = [1, model.config.kv_heads, room, model.config.head];
    let mut cache = KvCache::new(ctx, DType::F32, model.config.layers, shape)?;
    let text = Tensor::zeros(ctx, DType::U32, &[more])?;

    let mut input = Tensor::upload(ctx, prompt, &[prompt.len()])?;
    for at in 0..more {
        let next = text.narrow(0, at, 1)?;
        ctx.submit(|to| model.pass(to, &input, &mut cache, &turns, &next))?;
        input = next;
    }
    Ok(text.read_blocking()?)
}
