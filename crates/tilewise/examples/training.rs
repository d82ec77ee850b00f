//! Two layers, trained by Adam. The loop reads nothing back: a kernel changes the weights and their
//! moments in place, at a rate that is new in each step.
//!
//! `cargo run --release --example training`; on the CPU with TILEWISE_ADAPTER=cpu.

use tilewise::{Activation, Call, Context, DType, Gemm, Kernel, Result, Tensor};

mod checked;
use checked::{numbers, product, transposed, wide};

const BATCH: usize = 64;
const IN: usize = 4;
const HIDDEN: usize = 32;
const OUT: usize = 2;
const STEPS: i32 = 200;
const ADAM: &str = "let i = global_id.x;
    m[i] = mix(g[i], m[i], 0.9); v[i] = mix(g[i] * g[i], v[i], 0.999);
    w[i] -= rate * m[i] / (sqrt(v[i]) + 1e-4);";

/// The rate of a step, which makes up for moments that begin at 0.
fn rate(step: i32) -> f64 {
    0.01 * (1.0 - 0.999f64.powi(step)).sqrt() / (1.0 - 0.9f64.powi(step))
}

fn main() -> Result<()> {
    run(&Context::new()?)
}

pub(crate) fn run(ctx: &Context) -> Result<()> {
    let data = numbers(BATCH * IN, 1, 0.25);
    let wanted: Vec<f32> = data.chunks(IN).flat_map(|x| [x[0] * x[1], x[2] - x[3]]).collect();
    let start =
        [(IN * HIDDEN, 2), (HIDDEN, 3), (HIDDEN * OUT, 4)].map(|(n, i)| numbers(n, i, 0.0625));
    let x = Tensor::upload(ctx, &data, &[BATCH, IN])?;
    let t = Tensor::upload(ctx, &wanted, &[BATCH, OUT])?;
    let ones = Tensor::upload(ctx, &[1.0f32; BATCH], &[1, BATCH])?;
    // Weights, and the moments of their slopes.
    let trained = |data: &[f32], shape: [usize; 2]| -> Result<[Tensor; 3]> {
        let moment = || Tensor::zeros(ctx, DType::F32, &shape);
        Ok([Tensor::upload(ctx, data, &shape)?, moment()?, moment()?])
    };
    let (w1, b1) = (trained(&start[0], [IN, HIDDEN])?, trained(&start[1], [1, HIDDEN])?);
    let w2 = trained(&start[2], [HIDDEN, OUT])?;
    let gate = "let i = global_id.x; g[i] = select(0.0, g[i], h[i] > 0.0);";
    let gate = Kernel::new("relu_backward").inputs(["h"]).outputs(["g"]).source(gate);
    let adam = Kernel::new("adam").inputs(["g"]).outputs(["w", "m", "v"]).source(ADAM);
    let mut errors = Vec::new();
    for step in 1..=STEPS {
        let h = Gemm::new(&x, &w1[0]).bias(&b1[0]).activation(Activation::Relu).run()?;
        let d = Gemm::new(&h, &w2[0]).c(&t).beta(-1.0).run()?; // h·w2 − t
        let g = ctx.matmul(&d, &w2[0].t())?;
        gate.run(&Call::of(&h).inout(&g).grid([(BATCH * HIDDEN) as u32, 1, 1]))?;
        for ([w, m, v], a, d) in [(&w1, &x.t(), &g), (&b1, &ones, &g), (&w2, &h.t(), &d)] {
            let g = ctx.matmul(a, d)?;
            let call = Call::of(&g).inout(w).inout(m).inout(v).value("rate", rate(step) as f32);
            adam.run(&call.grid([w.elem_count() as u32, 1, 1]))?;
        }
        errors.push(d);
    }
    let loss = |d: &[f64]| d.iter().map(|d| d * d).sum::<f64>() / (2 * BATCH) as f64;
    let measured = |d: &Tensor| Ok(loss(&wide(&d.read_blocking::<f32>()?)));
    let [first, last] = [measured(&errors[0])?, measured(&errors[errors.len() - 1])?];
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
    let mut w = start.each_ref().map(|numbers| wide(numbers));
    let mut moments = w.each_ref().map(|w| vec![[0.0; 2]; w.len()]);
    let mut losses = Vec::new();
    for step in 1..=STEPS {
        let mut h = product(&x, &w[0], IN, HIDDEN);
        h.iter_mut().zip(w[1].iter().cycle()).for_each(|(h, b)| *h = (*h + b).max(0.0));
        let mut d = product(&h, &w[2], HIDDEN, OUT);
        d.iter_mut().zip(&t).for_each(|(d, t)| *d -= t);
        let mut g = product(&d, &transposed(&w[2], OUT), OUT, HIDDEN);
        g.iter_mut().zip(&h).filter(|(_, h)| **h <= 0.0).for_each(|(g, _)| *g = 0.0);
        let slopes = [
            product(&transposed(&x, IN), &g, BATCH, HIDDEN),
            product(&[1.0; BATCH], &g, BATCH, HIDDEN),
            product(&transposed(&h, HIDDEN), &d, BATCH, OUT),
        ];
        let trained = w.iter_mut().flatten().zip(moments.iter_mut().flatten());
        for ((w, [m, v]), g) in trained.zip(slopes.iter().flatten()) {
            (*m, *v) = (0.9 * *m + 0.1 * g, 0.999 * *v + 0.001 * g * g);
            *w -= rate(step) * *m / (v.sqrt() + 1e-4);
        }
        losses.push(d.iter().map(|d| d * d).sum::<f64>() / (2 * BATCH) as f64);
    }
    [losses[0], losses[losses.len() - 1]]
}
