//! Two layers, trained by Adam in memory that does not grow. Products write to existing tensors,
//! and a kernel changes weights and moments in place, at a rate that changes with each step.
//!
//! `cargo run --release --example training -- 10000`; on the CPU with TILEWISE_ADAPTER=cpu.

use tilewise::{Activation, Call, Context, DType, Gemm, Kernel, Result, Tensor};

mod checked;
use checked::{numbers, product, transposed, wide};

const BATCH: usize = 64;
const IN: usize = 4;
const HIDDEN: usize = 32;
const OUT: usize = 2;
pub(crate) const STEPS: i32 = 200;
const GATE: &str = "let i = global_id.x; g[i] = select(0.0, g[i], h[i] > 0.0);";
const ADAM: &str = "let i = global_id.x;
    m[i] = mix(g[i], m[i], 0.9); v[i] = mix(g[i] * g[i], v[i], 0.999);
    w[i] -= rate * m[i] / (sqrt(v[i]) + 1e-4);";

/// The rate of a step. It makes up for moments that begin at 0.
fn rate(step: i32) -> f64 {
    0.01 * (1.0 - 0.999f64.powi(step)).sqrt() / (1.0 - 0.9f64.powi(step))
}

fn main() -> Result<()> {
    let steps = std::env::args().nth(1).and_then(|steps| steps.parse().ok()).unwrap_or(STEPS);
    train(&Context::new()?, steps.max(STEPS), |_| ())
}

pub(crate) fn train(ctx: &Context, steps: i32, mut after: impl FnMut(i32)) -> Result<()> {
    let data = numbers(BATCH * IN, 1, 0.25);
    let less: Vec<f32> = data.chunks(IN).flat_map(|x| [-x[0] * x[1], x[3] - x[2]]).collect(); // −t
    let start = [IN * HIDDEN, HIDDEN, HIDDEN * OUT].map(|n| numbers(n, n as u64, 0.0625));
    let x = Tensor::upload(ctx, &data, &[BATCH, IN])?;
    let minus_t = Tensor::upload(ctx, &less, &[BATCH, OUT])?;
    let ones = Tensor::upload(ctx, &[1.0f32; BATCH], &[1, BATCH])?;
    let zeros = |shape: [usize; 2]| Tensor::zeros(ctx, DType::F32, &shape);
    let trained = |data: &[f32], shape: [usize; 2]| -> Result<[Tensor; 4]> {
        // Weights, their slopes, and the moments of these.
        Ok([Tensor::upload(ctx, data, &shape)?, zeros(shape)?, zeros(shape)?, zeros(shape)?])
    };
    let (w1, b1) = (trained(&start[0], [IN, HIDDEN])?, trained(&start[1], [1, HIDDEN])?);
    let w2 = trained(&start[2], [HIDDEN, OUT])?;
    let (h, d, back) = (zeros([BATCH, HIDDEN])?, zeros([BATCH, OUT])?, zeros([BATCH, HIDDEN])?);
    let gate = Kernel::new("relu_backward").inputs(["h"]).outputs(["g"]).source(GATE);
    let adam = Kernel::new("adam").inputs(["g"]).outputs(["w", "m", "v"]).source(ADAM);
    let mut losses = Vec::new();
    for step in 1..=steps {
        Gemm::new(&x, &w1[0]).bias(&b1[0]).activation(Activation::Relu).run_into(&h)?;
        Gemm::new(&h, &w2[0]).residual(&minus_t).run_into(&d)?; // h·w2 − t
        Gemm::new(&d, w2[0].t()).run_into(&back)?;
        gate.run(&Call::of(&h).inout(&back).grid([(BATCH * HIDDEN) as u32, 1, 1]))?;
        for ([w, g, m, v], a, d) in [(&w1, &x.t(), &back), (&b1, &ones, &back), (&w2, &h.t(), &d)] {
            Gemm::new(a, d).run_into(g)?;
            let call = Call::of(g).inout(w).inout(m).inout(v).value("rate", rate(step) as f32);
            adam.run(&call.grid([w.elem_count() as u32, 1, 1]))?;
        }
        if [1, STEPS, steps].contains(&step) {
            losses.push(wide(&d.read_blocking::<f32>()?).iter().map(|d| d * d).sum::<f64>());
        }
        after(step);
    }
    println!("{}: {steps} steps, losses {losses:.7?}", ctx.adapter_name());
    // Slopes jump when h passes 0, so a rounding may change a step: the losses agree to a
    // hundredth, and only the first agrees to f32's precision.
    for ((got, twin), bound) in losses.iter().zip(twin(&data, &less, &start)).zip([1e-5, 0.01]) {
        assert!((got - twin).abs() <= bound * twin, "{got}, not {twin}");
    }
    assert!(losses[losses.len() - 1] < losses[0] / 10.0, "{losses:?}");
    Ok(())
}

/// The losses of the first step and of number `STEPS`, in plain loops.
fn twin(data: &[f32], less: &[f32], start: &[Vec<f32>; 3]) -> [f64; 2] {
    let (x, less) = (wide(data), wide(less));
    let mut w = start.each_ref().map(|numbers| wide(numbers));
    let mut moments = w.each_ref().map(|w| vec![[0.0; 2]; w.len()]);
    let mut losses = Vec::new();
    for step in 1..=STEPS {
        let mut h = product(&x, &w[0], IN, HIDDEN);
        h.iter_mut().zip(w[1].iter().cycle()).for_each(|(h, b)| *h = (*h + b).max(0.0));
        let mut d = product(&h, &w[2], HIDDEN, OUT);
        d.iter_mut().zip(&less).for_each(|(d, less)| *d += less);
        let mut g = product(&d, &transposed(&w[2], OUT), OUT, HIDDEN);
        g.iter_mut().zip(&h).filter(|(_, h)| **h <= 0.0).for_each(|(g, _)| *g = 0.0);
        let (left, ones, right) = (transposed(&x, IN), [1.0; BATCH], transposed(&h, HIDDEN));
        let slopes = [(&left[..], &g, HIDDEN), (&ones, &g, HIDDEN), (&right, &d, OUT)];
        let slopes = slopes.map(|(a, d, n)| product(a, d, BATCH, n));
        let trained = w.iter_mut().flatten().zip(moments.iter_mut().flatten());
        for ((w, [m, v]), g) in trained.zip(slopes.iter().flatten()) {
            (*m, *v) = (0.9 * *m + 0.1 * g, 0.999 * *v + 0.001 * g * g);
            *w -= rate(step) * *m / (v.sqrt() + 1e-4);
        }
        losses.push(d.iter().map(|d| d * d).sum::<f64>());
    }
    [losses[0], losses[STEPS as usize - 1]]
}
