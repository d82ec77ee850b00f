//! Causal attention with a cache of keys and values that grows: a prompt at once, then one token
//! at a time. 8 heads of queries share 2 heads of keys and values. One product computes queries,
//! keys and values, and views separate them. Keys and values are written into the cache, which
//! attention gets as a whole.
//!
//! `cargo run --release --example attention`; on the CPU with TILEWISE_ADAPTER=cpu.

use tilewise::{Context, DType, Gemm, Result, Tensor, ops};

mod checked;

const T: usize = 19; // tokens
const PROMPT: usize = 12; // of them
const E: usize = 32; // their width
const H: usize = 8; // heads of queries
const S: usize = 2; // heads of keys, and of values
const D: usize = 8; // width of a head
const ROOM: usize = 24; // tokens in the cache

fn main() -> Result<()> {
    run(&Context::new()?)
}

pub(crate) fn run(ctx: &Context) -> Result<()> {
    let data = checked::numbers(T * E, 1, 0.25);
    let w_in = checked::numbers((H + 2 * S) * D * E, 2, 0.0625);
    let w_out = checked::numbers(E * H * D, 3, 0.0625);
    let angle = |i: usize| (i / (D / 2)) as f32 / 10f32.powi((i % (D / 2)) as i32);
    let turns = [f32::cos, f32::sin].map(|f| (0..T * D / 2).map(|i| f(angle(i))).collect());

    let x = Tensor::upload(ctx, &data, &[T, E])?;
    let y = Tensor::zeros(ctx, DType::F32, &[T, E])?;
    // Shapes as PyTorch stores them: [queries, keys and values · head, width], [width, heads ·
    // head].
    let qkv = Tensor::upload(ctx, &w_in, &[(H + 2 * S) * D, E])?;
    let o = Tensor::upload(ctx, &w_out, &[E, H * D])?;
    let table = |of: &Vec<f32>| Tensor::upload(ctx, of, &[T, D / 2]);
    let (cos, sin) = (table(&turns[0])?, table(&turns[1])?);
    let cache = || Tensor::zeros(ctx, DType::F32, &[S, ROOM, D]);
    let (keys, values) = (cache()?, cache()?);
    for (past, n) in [(0, PROMPT)].into_iter().chain((PROMPT..T).map(|token| (token, 1))) {
        let x = x.narrow(0, past, n)?;
        let packed = ctx.matmul(&x, &qkv.t())?;
        let heads = |first: usize, count: usize| {
            let part = packed.narrow(1, first * D, count * D)?;
            part.reshape(&[n, count, D])?.transpose(0, 1) // a view: [heads, tokens, head]
        };
        let (q, k, v) = (heads(0, H)?, heads(H, S)?, heads(H + S, S)?);
        let (cos, sin) = (cos.narrow(0, past, n)?, sin.narrow(0, past, n)?);
        ops::rope(&q, &cos, &sin).run_into(&q)?;
        ops::rope(&k, &cos, &sin).run_into(&keys.narrow(1, past, n)?)?; // appends
        ops::copy(&v).run_into(&values.narrow(1, past, n)?)?;
        let joined = Tensor::zeros(ctx, DType::F32, &[n, H, D])?;
        // Four heads of queries meet the same keys, and none sees the room behind its own token.
        let attention = ops::attention(&q, &keys, &values).causal(past);
        attention.run_into(&joined.transpose(0, 1)?)?;
        let joined = joined.reshape(&[n, H * D])?;
        Gemm::new(&joined, o.t()).residual(&x).run_into(&y.narrow(0, past, n)?)?;
    }

    let expected = in_plain_loops(&data, [&w_in, &w_out], &turns);
    let got = checked::wide(&y.read_blocking::<f32>()?);
    let error = got.iter().zip(&expected).map(|(g, e)| (g - e).abs()).fold(0.0, f64::max);
    println!("{}: {T} tokens, {H} heads, off by at most {error:.1e}", ctx.adapter_name());
    // A number takes about 150 roundings: sums of 8, 19 and 64 products, exp and turns. Each
    // rounding is off by at most 2⁻²⁴ of a number below 8.
    assert!(error <= 150.0 * 8.0 * 2f64.powi(-24), "off by {error:e}");
    Ok(())
}

fn in_plain_loops(data: &[f32], weights: [&[f32]; 2], turns: &[Vec<f32>; 2]) -> Vec<f64> {
    let [x, w_in, w_out] = [data, weights[0], weights[1]].map(checked::wide);
    let [cos, sin] = turns.each_ref().map(|turns| checked::wide(turns));
    let width = (H + 2 * S) * D;
    let mut packed = checked::product(&x, &checked::transposed(&w_in, E), E, width);
    for (token, head, i) in (0..T * (H + S) * D / 2)
        .map(|at| (at / (D / 2) / (H + S), at / (D / 2) % (H + S), at % (D / 2)))
    {
        let (one, turn) = (token * width + head * D + i, token * D / 2 + i);
        let (a, b) = (packed[one], packed[one + D / 2]);
        packed[one] = a * cos[turn] - b * sin[turn];
        packed[one + D / 2] = b * cos[turn] + a * sin[turn];
    }
    let row = |token: usize, head: usize| &packed[token * width + head * D..][..D];
    let mut joined = Vec::new();
    for (token, head) in (0..T).flat_map(|token| (0..H).map(move |head| (token, head))) {
        let (q, shared) = (row(token, head), H + head / (H / S));
        let score = |k: &[f64]| -> f64 { q.iter().zip(k).map(|(q, k)| q * k).sum() };
        let part = |other| (score(row(other, shared)) / (D as f64).sqrt()).exp();
        let parts: Vec<f64> = (0..=token).map(part).collect();
        let sum = |i| parts.iter().enumerate().map(|(t, p)| p * row(t, shared + S)[i]).sum::<f64>();
        joined.extend((0..D).map(|i| sum(i) / parts.iter().sum::<f64>()));
    }
    let y = checked::product(&joined, &checked::transposed(&w_out, H * D), H * D, E);
    y.iter().zip(&x).map(|(y, x)| y + x).collect()
}
