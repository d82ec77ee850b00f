//! The backward pass of a small layer by hand, against differences of the forward pass in f64.

use super::{Case, Experts, Operands, PLAIN, numbers, upload, wide};
use tilewise::moe::reference::Layer;
use tilewise::moe::{Router, Scoring};
use tilewise::{Activation, DType, Gemm, Precision, Result, Tensor, ops};
use tilewise_tests::{Rng, contexts};

const CASE: Case = Case { tokens: 6, experts: 3, f: 4, h: 5, ..PLAIN };

/// Σ slopes · y in f64.
fn loss(
    x: &[f64],
    logits: &[f64],
    weights: &[Vec<f64>; 3],
    experts: &Experts,
    slopes: &[f64],
) -> f64 {
    let mut own = experts.ffn();
    own.gate.values = &weights[0];
    own.up.values = &weights[1];
    own.down.values = &weights[2];
    let layer = Layer {
        dtype: DType::F32,
        h: CASE.h,
        experts: CASE.experts,
        k: CASE.k,
        scoring: Scoring::Softmax,
        normalize: true,
        bias: None,
        activation: Activation::Silu,
        precision: Precision::F32,
        own,
        shared: None,
    };
    let y = layer.forward(x, logits, DType::F32);
    y.value.iter().zip(slopes).map(|(y, slope)| y * slope).sum()
}

/// The slopes of the loss by x, gate, up and down.
fn backward(
    [x, logits, slopes]: [&Tensor; 3],
    [gate, up, down]: &[Tensor; 3],
) -> Result<[Tensor; 4]> {
    let context = x.context();
    let routing = Router::new(CASE.k).run(logits)?;
    let ends = &routing.offsets;
    let count = [routing.order.elem_count()];
    // Forward, row by row.
    let rows = ops::gather(x, &routing.tokens).run()?;
    let g = Gemm::grouped(&rows, gate.t(), ends).run()?;
    let u = Gemm::grouped(&rows, up.t(), ends).run()?;
    let s = ops::sigmoid(&g).run()?;
    let silu = ops::mul(&g, &s).run()?;
    let inner = ops::mul(&silu, &u).run()?;
    // Back: the slopes of each row, by its weight.
    let weights = ops::gather(&routing.weights.reshape(&count)?, &routing.order).run()?;
    let of_rows = ops::gather(slopes, &routing.tokens).run()?;
    let of_rows = ops::mul(&of_rows, &weights.unsqueeze(1)?).run()?;
    let of_inner = Gemm::grouped(&of_rows, down, ends).run()?;
    let of_up = ops::mul(&of_inner, &silu).run()?;
    // s + silu − silu·s is the slope of silu.
    let slope = ops::sub(&ops::add(&s, &silu).run()?, &ops::mul(&silu, &s).run()?).run()?;
    let of_gate = ops::mul(&ops::mul(&of_inner, &u).run()?, &slope).run()?;
    let through_gate = Gemm::grouped(&of_gate, gate, ends).run()?;
    let through_up = Gemm::grouped(&of_up, up, ends).run()?;
    let of_x = ops::add(&through_gate, &through_up).run()?;
    let ones = Tensor::upload(context, &vec![1.0f32; count[0]], routing.places.shape())?;
    let of_x = ops::combine(&of_x, &routing.places, &ones).run()?;
    // Of weights, of which each expert has its rows' share.
    let ends = ends.without_start()?;
    let of_weights =
        |slopes: &Tensor, rows: &Tensor| Gemm::ragged_k(&slopes.t(), rows, &ends).run();
    let of_gate = of_weights(&of_gate, &rows)?;
    let of_up = of_weights(&of_up, &rows)?;
    Ok([of_x, of_gate, of_up, of_weights(&of_rows, &inner)?])
}

#[test]
fn slopes_are_differences() -> Result<()> {
    let operands = Operands::new(CASE, 11);
    let slopes = numbers(&mut Rng::new(12), DType::F32, CASE.tokens * CASE.h, 1.0);
    let (x, logits, wide_slopes) = (wide(&operands.x), wide(&operands.logits), wide(&slopes));
    let held = operands.own.0.each_ref();
    let weights = held.map(|held| held.wide.clone());
    // Differences of the loss by every number of x and of the weights.
    const STEP: f64 = 1e-5;
    let mut wanted: Vec<Vec<f64>> = Vec::new();
    for which in 0..4 {
        let count = if which == 0 { x.len() } else { weights[which - 1].len() };
        let at = |i: usize, step: f64| {
            let (mut x, mut weights) = (x.clone(), weights.clone());
            match which {
                0 => x[i] += step,
                _ => weights[which - 1][i] += step,
            }
            loss(&x, &logits, &weights, &operands.own, &wide_slopes)
        };
        wanted.push((0..count).map(|i| (at(i, STEP) - at(i, -STEP)) / (2.0 * STEP)).collect());
    }
    assert!(wanted.iter().all(|all| all.iter().any(|slope| slope.abs() > 0.1)));
    for context in contexts() {
        let [x, logits] = operands.on(&context);
        let slopes = upload(&context, DType::F32, &slopes, &[CASE.tokens, CASE.h]);
        let on = |at: usize| {
            let [n, k] = held[at].size;
            upload(&context, DType::F32, &held[at].numbers, &[CASE.experts, n, k])
        };
        let got = backward([&x, &logits, &slopes], &[on(0), on(1), on(2)])?;
        for (got, wanted) in got.iter().zip(&wanted) {
            for (got, wanted) in got.read_f32_blocking()?.iter().zip(wanted) {
                let error = (f64::from(*got) - wanted).abs();
                assert!(error < 2e-5, "{got}, not {wanted}: {context:?}");
            }
        }
    }
    Ok(())
}
