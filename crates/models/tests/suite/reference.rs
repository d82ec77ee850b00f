//! The forward pass in plain loops and f64, after the papers of the families.

use tilewise_tests::language::{
    EPS, EXPERTS, HEADS, KV_HEADS, LAYERS, Tiny, VOCABULARY, WIDTH, WINDOW,
};

/// The logits behind the last of these tokens.
pub(crate) fn logits(model: &Tiny, tokens: &[u32]) -> Vec<f64> {
    let embeddings = tensor(model, "model.embed_tokens.weight");
    let scale = if model.family.gemma { (WIDTH as f64).sqrt() } else { 1.0 };
    let row = |&token: &u32| embeddings[token as usize * WIDTH..][..WIDTH].iter();
    let mut x: Vec<Vec<f64>> =
        tokens.iter().map(|token| row(token).map(|element| scale * element).collect()).collect();
    for layer in 0..LAYERS {
        let at = |part: &str| format!("model.layers.{layer}.{part}");
        let gemma = model.family.gemma;
        let h = each(&x, |x| norm(model, &at("input_layernorm.weight"), x));
        let mut y = each(&attention(model, layer, &h), |joined| {
            product(model, &at("self_attn.o_proj"), joined)
        });
        if gemma {
            y = each(&y, |y| norm(model, &at("post_attention_layernorm.weight"), y));
        }
        add(&mut x, &y);
        let before = if gemma { "pre_feedforward_layernorm" } else { "post_attention_layernorm" };
        let h = each(&x, |x| norm(model, &at(&format!("{before}.weight")), x));
        let mut y = each(&h, |h| match model.family.experts {
            true => experts(model, layer, h),
            false => feed(model, &at("mlp."), h),
        });
        if gemma {
            y = each(&y, |y| norm(model, &at("post_feedforward_layernorm.weight"), y));
        }
        add(&mut x, &y);
    }
    let last = norm(model, "model.norm.weight", x.last().expect("a token"));
    let head = if model.family.llama { "lm_head" } else { "model.embed_tokens" };
    let logits = product(model, head, &last);
    assert_eq!(logits.len(), VOCABULARY);
    logits
}

fn attention(model: &Tiny, layer: usize, h: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let head = model.family.head;
    let frequencies = model.frequencies(layer);
    let heads = |name: &str, count: usize| -> Vec<Vec<Vec<f64>>> {
        let of = |position: usize, h: &Vec<f64>| {
            let all = product(model, &format!("model.layers.{layer}.self_attn.{name}_proj"), h);
            let one = |which: usize| {
                let mut x = all[which * head..][..head].to_vec();
                if model.family.head_norms && name != "v" {
                    let name = format!("model.layers.{layer}.self_attn.{name}_norm.weight");
                    x = norm(model, &name, &x);
                }
                if name != "v" {
                    turn(&mut x, position, &frequencies);
                }
                x
            };
            (0..count).map(one).collect()
        };
        h.iter().enumerate().map(|(position, h)| of(position, h)).collect()
    };
    let (q, k, v) = (heads("q", HEADS), heads("k", KV_HEADS), heads("v", KV_HEADS));
    let of = |query: usize| -> Vec<f64> {
        let first = match model.has_window(layer) {
            true => (query + 1).saturating_sub(WINDOW),
            false => 0,
        };
        let one = |which: usize| {
            let shared = which / (HEADS / KV_HEADS);
            let score = |key: usize| -> f64 {
                let products = q[query][which].iter().zip(&k[key][shared]).map(|(q, k)| q * k);
                (products.sum::<f64>() / (head as f64).sqrt()).exp()
            };
            let parts: Vec<f64> = (first..=query).map(score).collect();
            let sum: f64 = parts.iter().sum();
            let element = |i: usize| {
                let keys = (first..=query).zip(&parts);
                keys.map(|(key, part)| part * v[key][shared][i]).sum::<f64>() / sum
            };
            (0..head).map(element).collect::<Vec<f64>>()
        };
        (0..HEADS).flat_map(one).collect()
    };
    (0..h.len()).map(of).collect()
}

/// Turns pairs of elements that are half a head apart.
fn turn(x: &mut [f64], position: usize, frequencies: &[f64]) {
    let half = x.len() / 2;
    for (i, frequency) in frequencies.iter().enumerate() {
        let (sin, cos) = (position as f64 * frequency).sin_cos();
        (x[i], x[i + half]) = (x[i] * cos - x[i + half] * sin, x[i + half] * cos + x[i] * sin);
    }
}

/// down · (f(gate · h) ∘ (up · h))
fn feed(model: &Tiny, at: &str, h: &[f64]) -> Vec<f64> {
    let gelu = |x: f64| {
        let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
        0.5 * x * (1.0 + inner.tanh())
    };
    let silu = |x: f64| x / (1.0 + (-x).exp());
    let gate = product(model, &format!("{at}gate_proj"), h);
    let up = product(model, &format!("{at}up_proj"), h);
    let both = gate.iter().zip(&up);
    let inner: Vec<f64> = both
        .map(|(&gate, up)| if model.family.gemma { gelu(gate) } else { silu(gate) } * up)
        .collect();
    product(model, &format!("{at}down_proj"), &inner)
}

/// The sum of the likeliest experts by their likelihoods, which are made to sum to 1.
fn experts(model: &Tiny, layer: usize, h: &[f64]) -> Vec<f64> {
    let scores = product(model, &format!("model.layers.{layer}.mlp.gate"), h);
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    order.truncate(EXPERTS[1]);
    let sum: f64 = order.iter().map(|&expert| scores[expert].exp()).sum();
    let mut y = vec![0.0; WIDTH];
    for expert in order {
        let of = feed(model, &format!("model.layers.{layer}.mlp.experts.{expert}."), h);
        y.iter_mut().zip(of).for_each(|(y, of)| *y += scores[expert].exp() / sum * of);
    }
    y
}

fn norm(model: &Tiny, name: &str, x: &[f64]) -> Vec<f64> {
    let offset = if model.family.gemma { 1.0 } else { 0.0 };
    let mean = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
    let weights = tensor(model, name);
    x.iter().zip(weights).map(|(x, w)| x / (mean + EPS).sqrt() * (offset + w)).collect()
}

/// w · x + bias, if there is one.
fn product(model: &Tiny, name: &str, x: &[f64]) -> Vec<f64> {
    let weights = tensor(model, &format!("{name}.weight"));
    let bias = format!("{name}.bias");
    let bias = model.tensors.contains_key(&bias).then(|| tensor(model, &bias));
    let rows = weights.chunks(x.len()).enumerate();
    rows.map(|(row, weights)| {
        let sum: f64 = weights.iter().zip(x).map(|(w, x)| w * x).sum();
        sum + bias.as_ref().map_or(0.0, |bias| bias[row])
    })
    .collect()
}

fn tensor(model: &Tiny, name: &str) -> Vec<f64> {
    model.tensors[name].1.iter().map(|&element| element.into()).collect()
}

fn each(rows: &[Vec<f64>], of: impl Fn(&[f64]) -> Vec<f64>) -> Vec<Vec<f64>> {
    rows.iter().map(|row| of(row)).collect()
}

fn add(x: &mut [Vec<f64>], y: &[Vec<f64>]) {
    x.iter_mut().flatten().zip(y.iter().flatten()).for_each(|(x, y)| *x += y);
}
