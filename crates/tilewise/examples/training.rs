//! Two layers, trained by gradient descent. The loop reads nothing back: products add to the
//! weights in place, by alpha and beta.
//!
//! `cargo run --release --example training`; on the CPU with TILEWISE_ADAPTER=cpu.

use tilewise::{Activation, Call, Context, DType, Gemm, Kernel, Result, Tensor};

mod checked;
use checked::{numbers, product, transposed, wide};

const BATCH: usize = 64;
const IN: usize = 4;
const HIDDEN: usize = 32;
const OUT: usize = 2;
const STEPS: usize = 200;
const RATE: f32 = 0.25 / BATCH as f32;

fn main() -> Result<()> {
    run(&Context::new()?)
}

pub(crate) fn run(ctx: &Context) -> Result<()> {
    let data = numbers(BATCH * IN, 1, 0.25);
    let wanted: Vec<f32> = data.chunks(IN).flat_map(|x| [x[0] * x[1], x[2] - x[3]]).collect();
    let start = [
        numbers(IN * HIDDEN, 2, 0.125),
        numbers(HIDDEN, 3, 0.0625),
        numbers(HIDDEN * OUT, 4, 0.0625),
    ];

    let x = Tensor::upload(ctx, &data, &[BATCH, IN])?;
    let t = Tensor::upload(ctx, &wanted, &[BATCH, OUT])?;
    let w1 = Tensor::upload(ctx, &start[0], &[IN, HIDDEN])?;
    let b1 = Tensor::upload(ctx, &start[1], &[1, HIDDEN])?;
    let w2 = Tensor::upload(ctx, &start[2], &[HIDDEN, OUT])?;
    let ones = Tensor::upload(ctx, &[1.0f32; BATCH], &[1, BATCH])?;
    let gate = Kernel::new("relu_backward")
        .inputs(["h", "g"])
        .outputs(["out"])
        .source("let i = global_id.x; out[i] = select(0.0, g[i], h[i] > 0.0);");

    // The slope of half the mean of squares. w ← w − rate · slope is a product onto w itself.
    let descend =
        |w: &Tensor, a: &Tensor, d: &Tensor| Gemm::new(a, d).alpha(-RATE).beta(1.0).run_into(w);
    let mut errors = Vec::new();
    for _ in 0..STEPS {
        let h = Gemm::new(&x, &w1).bias(&b1).activation(Activation::Relu).run()?;
        let d = Gemm::new(&h, &w2).c(&t).beta(-1.0).run()?; // h·w2 − t
        let g = ctx.matmul(&d, &w2.t())?; // with w2 before its step
        let call = Call::new(ctx).input(&h).input(&g).output(DType::F32, &[BATCH, HIDDEN]);
        let g = &gate.run(&call.grid([(BATCH * HIDDEN) as u32, 1, 1]))?[0];
        descend(&w2, &h.t(), &d)?;
        descend(&w1, &x.t(), g)?;
        descend(&b1, &ones, g)?;
        errors.push(d);
    }
    let loss = |d: &[f64]| d.iter().map(|d| d * d).sum::<f64>() / (2 * BATCH) as f64;
    let measured = |d: &Tensor| Ok(loss(&wide(&d.read_blocking::<f32>()?)));
    let [first, last] = [measured(&errors[0])?, measured(&errors[STEPS - 1])?];
    println!("{}: loss from {first:.4} to {last:.4}", ctx.adapter_name());

    // The same in plain loops. Slopes jump where h passes 0, so that a rounding may make a step
    // another one: the losses agree to a hundredth, and only the first to f32's precision.
    let [twin_first, twin_last] = twin(&data, &wanted, &start);
    assert!((first - twin_first).abs() <= 1e-5 * twin_first, "{first}, not {twin_first}");
    assert!((last - twin_last).abs() <= 0.01 * twin_last, "{last}, not {twin_last}");
    assert!(last < first / 10.0, "the loss fell from {first} to {last} only");
    Ok(())
}

/// The first and the last loss.
fn twin(data: &[f32], wanted: &[f32], start: &[Vec<f32>; 3]) -> [f64; 2] {
    let (x, t) = (wide(data), wide(wanted));
    let [mut w1, mut b1, mut w2] = start.each_ref().map(|numbers| wide(numbers));
    let descend = |w: &mut [f64], slope: Vec<f64>| {
        w.iter_mut().zip(slope).for_each(|(w, s)| *w -= f64::from(RATE) * s)
    };
    let losses: Vec<f64> = (0..STEPS)
        .map(|_| {
            let mut h = product(&x, &w1, IN, HIDDEN);
            h.iter_mut().zip(b1.iter().cycle()).for_each(|(h, b)| *h = (*h + b).max(0.0));
            let mut d = product(&h, &w2, HIDDEN, OUT);
            d.iter_mut().zip(&t).for_each(|(d, t)| *d -= t);
            let mut g = product(&d, &transposed(&w2, OUT), OUT, HIDDEN);
            g.iter_mut().zip(&h).filter(|(_, h)| **h <= 0.0).for_each(|(g, _)| *g = 0.0);
            descend(&mut w2, product(&transposed(&h, HIDDEN), &d, BATCH, OUT));
            descend(&mut w1, product(&transposed(&x, IN), &g, BATCH, HIDDEN));
            descend(&mut b1, product(&[1.0; BATCH], &g, BATCH, HIDDEN));
            d.iter().map(|d| d * d).sum::<f64>() / (2 * BATCH) as f64
        })
        .collect();
    [losses[0], losses[STEPS - 1]]
}
