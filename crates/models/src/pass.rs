//! The forward pass, as a list of calls that is made once and recorded for each token.

use crate::sampling::Sampling;
use crate::weights::{Feed, GateUp, Layer, Projection, Weighed};
use std::collections::HashMap;
use std::slice;
use tilewise::ops::{self, KvCache, Op, Operation};
use tilewise::{DType, Gemm, Recorder, Result, RightOperand, Take, Tensor};

/// A text on the device: what passes read and write besides weights.
pub(crate) struct Text {
    /// Keys and values.
    pub(crate) past: KvCache,
    /// Cosines and sines \[room, head/2\], of layers without a window and with it.
    turns: [[Tensor; 2]; 2],
    /// Logits behind the last token: \[1, vocabulary\].
    pub(crate) logits: Tensor,
    /// The token that follows, and how it is drawn.
    pub(crate) next: Tensor,
    sampling: Sampling,
}

impl Text {
    pub(crate) fn new(decoder: &Weighed, room: usize, sampling: Sampling) -> Result<Self> {
        let (context, config) = (&decoder.context, &decoder.config);
        let shape = [1, config.kv_heads, room, config.head];
        let table = |frequencies: &[f64], of: fn(f64) -> f64| {
            let angles = (0..room).flat_map(|at| frequencies.iter().map(move |f| at as f64 * f));
            let table: Vec<f32> = angles.map(|angle| of(angle) as f32).collect();
            Tensor::upload(context, &table, &[room, config.head / 2])
        };
        let turns = |of: &[f64]| Ok([table(of, f64::cos)?, table(of, f64::sin)?]);
        Ok(Text {
            past: KvCache::new(context, DType::F32, config.layers, shape)?,
            turns: [turns(&config.frequencies[0])?, turns(&config.frequencies[1])?],
            logits: Tensor::zeros(context, DType::F32, &[1, decoder.vocabulary()])?,
            next: Tensor::zeros(context, DType::U32, &[1])?,
            sampling,
        })
    }
}

/// A call of the library with its operands.
pub(crate) struct Call {
    /// Its purpose, in GGUF's words.
    pub(crate) name: &'static str,
    record: Box<Record>,
}

type Record = dyn Fn(&mut Recorder<'_>) -> Result<()> + Send + Sync;

impl Call {
    pub(crate) fn record(&self, to: &mut Recorder<'_>) -> Result<()> {
        (self.record)(to)
    }
}

/// The calls of a pass over some tokens. Each binds the same tensors whenever it is recorded.
pub(crate) struct Calls<'a> {
    decoder: &'a Weighed,
    text: &'a Text,
    /// Tokens of the pass.
    count: usize,
    /// Room for rows, by name and width. Layers share it, as the device runs them by turns.
    scratch: HashMap<(&'static str, usize), Tensor>,
    list: Vec<Call>,
}

impl<'a> Calls<'a> {
    /// The pass that appends `tokens`, u32 \[T\], to the text. These may be the text's next one.
    pub(crate) fn of(decoder: &'a Weighed, text: &'a Text, tokens: &Tensor) -> Result<Vec<Call>> {
        let count = tokens.elem_count();
        let mut calls = Calls { decoder, text, count, scratch: HashMap::new(), list: Vec::new() };
        let config = &decoder.config;
        let (x, h) = (calls.rows("x", config.width)?, calls.rows("h", config.width)?);
        let take = Take::new(decoder.embeddings.clone()).rows(tokens).out_dtype(DType::F32);
        calls.push("token_embd", &x, move |to, x| take.record(to, x));
        if config.embedding_scale != 1.0 {
            calls.op("token_embd", ops::scale(&x, config.embedding_scale), &x);
        }
        // The norm that reads the stream before a layer, or behind all.
        let norm_of =
            |layer| decoder.layers.get(layer).map_or(&decoder.norm, |own: &Layer| &own.attn_norm);
        calls.op("norm", calls.norm(&x, norm_of(0)), &h);
        for (layer, weights) in decoder.layers.iter().enumerate() {
            let y = calls.attention(layer, weights, &h)?;
            let norms = (&weights.attn_norm_behind, &weights.ffn_norm);
            calls.back("attn_output", (&y, &weights.output), norms, [&x, &h])?;
            match &weights.feed {
                Feed::Dense { gate_up, down } => {
                    let y = calls.gated(&h, gate_up)?;
                    let norms = (&weights.ffn_norm_behind, norm_of(layer + 1));
                    calls.back("ffn_down", (&y, down), norms, [&x, &h])?;
                }
                Feed::Experts { router, experts } => {
                    let scores = calls.products("ffn_gate_inp", &h, slice::from_ref(router))?;
                    let y = calls.rows("ffn_experts", config.width)?;
                    let experts = experts.clone();
                    let input = h.clone();
                    calls.push("ffn_experts", &y, move |to, y| {
                        experts.record(to, &input, &scores, y)
                    });
                    calls.add(&y, (&None, norm_of(layer + 1)), [&x, &h]);
                }
            }
        }
        let last = h.narrow(0, count - 1, 1)?;
        calls.product("output", Gemm::new(&last, decoder.head.clone()), &text.logits);
        calls.choose();
        Ok(calls.list)
    }

    /// The next token of the logits.
    fn choose(&mut self) {
        let Text { logits, next, past, sampling, .. } = self.text;
        let Sampling { temperature, top_k, top_p, min_p, seed } = *sampling;
        if temperature == 0.0 {
            return self.op("arg_max", ops::arg_max(logits, 1), next);
        }
        let drawn = ops::sample(logits, seed).temperature(temperature).top_k(top_k).top_p(top_p);
        self.op("sample", drawn.min_p(min_p).at(past.position()), next);
    }

    /// Attention of a layer, before the product with its output's weights: \[T, heads · head\].
    fn attention(&mut self, layer: usize, weights: &Layer, h: &Tensor) -> Result<Tensor> {
        let (config, past) = (&self.decoder.config, &self.text.past);
        let (heads, kv_heads) = (config.heads, config.kv_heads);
        let y = self.products("attn_qkv", h, &weights.qkv)?;
        let q = self.heads(&y, 0, heads)?;
        let k = self.heads(&y, heads, kv_heads)?;
        let v = self.heads(&y, heads + kv_heads, kv_heads)?;
        let local = config.local[layer];
        let [cos, sin] = &self.text.turns[usize::from(local)];
        let rope = |x: &Tensor, norm: &Option<Tensor>| {
            let mut rope = ops::rope(x, cos, sin).at(past.position());
            if let Some(norm) = norm {
                rope = rope.rms_norm(norm, config.eps).weight_offset(config.norm_offset);
            }
            if config.interleaved { rope.interleaved() } else { rope }
        };
        // The three calls write different tensors, so they need not wait for each other.
        let turned = self.rows("turned", heads * config.head)?;
        let turned = self.heads(&turned, 0, heads)?;
        self.op("rope", rope(&q, &weights.q_norm), &turned);
        self.op("rope", rope(&k, &weights.k_norm).into_rows(past.room()), past.keys(layer));
        self.op("append", ops::append(&v, past.room(), past.position()), past.values(layer));
        let joined = self.rows("attention", heads * config.head)?;
        let mut attention = past.attention(layer, &turned).scale(config.attention_scale);
        if local {
            attention = attention.window(config.window);
        }
        self.op("attention", attention, &self.heads(&joined, 0, heads)?);
        Ok(joined)
    }

    /// The heads in rows from the `first` one on: \[1, heads, T, head\].
    fn heads(&self, rows: &Tensor, first: usize, heads: usize) -> Result<Tensor> {
        let head = self.decoder.config.head;
        let rows = rows.narrow(1, first * head, heads * head)?;
        rows.reshape(&[1, self.count, heads, head])?.transpose(1, 2)
    }

    /// Adds a product, or its norm, to the stream `x`, and leaves the next norm of that in `h`.
    fn back(
        &mut self,
        name: &'static str,
        (y, weights): (&Tensor, &RightOperand),
        (behind, next): (&Option<Tensor>, &Tensor),
        [x, h]: [&Tensor; 2],
    ) -> Result<()> {
        let product = Gemm::new(y, weights.clone());
        if behind.is_none() {
            self.product(name, product.beta(1.0), x);
            self.op("norm", self.norm(x, next), h);
            return Ok(());
        }
        let y = self.rows(name, x.shape()[1])?;
        self.product(name, product, &y);
        self.add(&y, (behind, next), [x, h]);
        Ok(())
    }

    /// Adds rows, or their norm, to the stream `x`, and leaves the next norm of that in `h`.
    fn add(
        &mut self,
        y: &Tensor,
        (behind, next): (&Option<Tensor>, &Tensor),
        [x, h]: [&Tensor; 2],
    ) {
        let config = &self.decoder.config;
        let sum = ops::add_rms_norm(x, y, next, config.eps).weight_offset(config.norm_offset);
        let sum = behind.iter().fold(sum, |sum, behind| sum.norm_residual(behind));
        let x = x.clone();
        self.push("norm", h, move |to, h| sum.record(to, [&x, h]));
    }

    /// Room for a row of each token.
    fn rows(&mut self, name: &'static str, width: usize) -> Result<Tensor> {
        let rows = match self.scratch.get(&(name, width)) {
            Some(rows) => rows.clone(),
            None => Tensor::zeros(&self.decoder.context, DType::F32, &[self.count, width])?,
        };
        self.scratch.insert((name, width), rows.clone());
        Ok(rows)
    }

    fn norm(&self, x: &Tensor, weights: &Tensor) -> Op<ops::Norm> {
        let config = &self.decoder.config;
        ops::rms_norm(x, weights, config.eps).weight_offset(config.norm_offset)
    }

    /// The gated product of a layer: of gate and up in one, or of one after the other.
    fn gated(&mut self, x: &Tensor, gate_up: &GateUp) -> Result<Tensor> {
        let activation = self.decoder.config.activation;
        let product = match gate_up {
            GateUp::ByTurns(both) => both.product(x).glu(activation),
            GateUp::Apart(gate, up) => {
                let gate = self.products("ffn_gate", x, slice::from_ref(gate))?;
                up.product(x).gated_by(&gate, activation)
            }
        };
        let y = self.rows("ffn_gated", product.output_shape()?[1])?;
        self.product("ffn_gated", product, &y);
        Ok(y)
    }

    /// Products with the same rows into room of their name, side by side.
    fn products(
        &mut self,
        name: &'static str,
        x: &Tensor,
        projections: &[Projection],
    ) -> Result<Tensor> {
        let product = |projection: &Projection| {
            let product = projection.product(x);
            Ok((product.output_shape()?[1], product))
        };
        let products = projections.iter().map(product).collect::<Result<Vec<_>>>()?;
        let y = self.rows(name, products.iter().map(|(width, _)| width).sum())?;
        let mut first = 0;
        for (width, product) in products {
            self.product(name, product, &y.narrow(1, first, width)?);
            first += width;
        }
        Ok(y)
    }

    fn product(&mut self, name: &'static str, product: Gemm, out: &Tensor) {
        self.push(name, out, move |to, out| product.record(to, out));
    }

    fn op<K>(&mut self, name: &'static str, op: Op<K>, out: &Tensor)
    where
        K: Operation + Send + Sync + 'static,
    {
        self.push(name, out, move |to, out| op.record(to, out));
    }

    fn push(
        &mut self,
        name: &'static str,
        out: &Tensor,
        record: impl Fn(&mut Recorder<'_>, &Tensor) -> Result<()> + Send + Sync + 'static,
    ) {
        let out = out.clone();
        self.list.push(Call { name, record: Box::new(move |to| record(to, &out)) });
    }
}
