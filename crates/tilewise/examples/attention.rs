//! Causal attention with several heads, from products and a softmax between them. The projections
//! are batched over the heads by views of their weights: nothing is copied or permuted.
//!
//! `cargo run --release --example attention`; on the CPU with TILEWISE_ADAPTER=cpu.

use tilewise::{Context, DType, Gemm, Result, Tensor, ops};

mod checked;

const T: usize = 19; // tokens
const E: usize = 32; // their width
const H: usize = 4; // heads
const D: usize = 8; // width of a head

fn main() -> Result<()> {
    run(&Context::new()?)
}

pub(crate) fn run(ctx: &Context) -> Result<()> {
    let data = checked::numbers(T * E, 1, 0.25);
    // As PyTorch stores them: [heads · head, width] for Q, K and V, [width, heads · head] for O.
    let weights = [2, 3, 4, 5].map(|seed| checked::numbers(E * H * D, seed, 0.0625));

    let x = Tensor::upload(ctx, &data, &[T, E])?;
    let [wq, wk, wv, wo] = &weights;
    let heads = |w: &[f32]| {
        let w = Tensor::upload(ctx, w, &[H, D, E])?;
        ctx.matmul(&x, &w.t()) // x is taken for every head: [H, T, D]
    };
    let [q, k, v] = [heads(wq)?, heads(wk)?, heads(wv)?];
    let scores = ctx.matmul(&q, &k.t())?; // [H, T, T]
    // A token sees itself and those before it.
    ops::softmax(&scores).scale((D as f32).sqrt().recip()).causal(0).run_into(&scores)?;
    let p = scores;
    // Each head's result goes where the next product wants it: its columns of [T, H · D].
    let joined = Tensor::zeros(ctx, DType::F32, &[T, H * D])?;
    for h in 0..H {
        let [p, v] = [(&p, T), (&v, D)].map(|(m, n)| m.slice(&[h..h + 1, 0..T, 0..n]));
        let (p, v) = (p?.reshape(&[T, T])?, v?.reshape(&[T, D])?);
        Gemm::new(&p, &v).run_into(&joined.slice(&[0..T, h * D..(h + 1) * D])?)?;
    }
    let wo = Tensor::upload(ctx, wo, &[E, H * D])?;
    let y = Gemm::new(&joined, wo.t()).residual(&x).run()?;

    let expected = in_plain_loops(&data, &weights);
    let got = checked::wide(&y.read_blocking::<f32>()?);
    let error = got.iter().zip(&expected).map(|(g, e)| (g - e).abs()).fold(0.0, f64::max);
    println!("{}: {T} tokens, {H} heads, off by at most {error:.1e}", ctx.adapter_name());
    // Behind a number lie about 150 roundings: sums of 32, 8, 19 and 32 products, and exp. Each is
    // one of at most 2⁻²⁴ of numbers below 8.
    assert!(error <= 150.0 * 8.0 * 2f64.powi(-24), "off by {error:e}");
    Ok(())
}

fn in_plain_loops(data: &[f32], weights: &[Vec<f32>; 4]) -> Vec<f64> {
    let x = checked::wide(data);
    let [wq, wk, wv, wo] = weights.each_ref().map(|w| checked::wide(w));
    let project = |w: &[f64]| checked::product(&x, &checked::transposed(w, E), E, H * D);
    let [q, k, v] = [project(&wq), project(&wk), project(&wv)];
    let mut joined = vec![0.0; T * H * D];
    for (h, token) in (0..H).flat_map(|h| (0..T).map(move |token| (h, token))) {
        let at = |token: usize, i: usize| token * H * D + h * D + i;
        let score = |other| -> f64 { (0..D).map(|i| q[at(token, i)] * k[at(other, i)]).sum() };
        let parts: Vec<f64> =
            (0..=token).map(|other| (score(other) / (D as f64).sqrt()).exp()).collect();
        for i in 0..D {
            let sum: f64 = parts.iter().enumerate().map(|(t, part)| part * v[at(t, i)]).sum();
            joined[at(token, i)] = sum / parts.iter().sum::<f64>();
        }
    }
    let y = checked::product(&joined, &checked::transposed(&wo, H * D), H * D, E);
    y.iter().zip(&x).map(|(y, x)| y + x).collect()
}
