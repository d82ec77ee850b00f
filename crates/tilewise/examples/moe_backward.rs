//! The slopes of a mixture of experts with respect to its input and its weights, as a framework's
//! backward pass needs them. On a GPU nothing is read back.
//!
//! `cargo run --release --example moe_backward`; on the CPU with TILEWISE_ADAPTER=cpu.

use tilewise::moe::Router;
use tilewise::{Context, DType, Gemm, Result, Tensor, ops};

mod checked;
use checked::{numbers, product, transposed, wide};

const TOKENS: usize = 6;
const WIDTH: usize = 5;
const EXPERTS: usize = 3;
const HIDDEN: usize = 4; // width within an expert

fn main() -> Result<()> {
    run(&Context::new()?)
}

/// Slopes of x and of the weights of each expert, from the slopes of the output.
fn backward(
    [x, logits, slopes]: [&Tensor; 3],
    [gate, up, down]: [&Tensor; 3],
) -> Result<[Tensor; 4]> {
    let routing = Router::new(2).run(logits)?;
    let (ends, count) = (&routing.offsets, routing.order.elem_count());
    // Forward: a row for each pair of token and expert, sorted by expert.
    let rows = ops::gather(x, &routing.tokens).run()?;
    let g = Gemm::grouped(&rows, gate.t(), ends).run()?;
    let u = Gemm::grouped(&rows, up.t(), ends).run()?;
    let silu = ops::silu(&g).run()?;
    let h = ops::mul(&silu, &u).run()?;
    // Back: each row's slopes, by its share of the token.
    let shares = ops::gather(&routing.weights.reshape(&[count])?, &routing.order).run()?;
    let of_rows = ops::gather(slopes, &routing.tokens).run()?;
    let of_rows = ops::mul(&of_rows, &shares.unsqueeze(1)?).run()?;
    let of_h = Gemm::grouped(&of_rows, down, ends).run()?;
    let of_u = ops::mul(&of_h, &silu).run()?;
    let of_g = ops::silu_backward(&ops::mul(&of_h, &u).run()?, &g).run()?;
    let through_gate = Gemm::grouped(&of_g, gate, ends).run()?;
    let of_x = Gemm::grouped(&of_u, up, ends).residual(&through_gate).run()?;
    let ones = Tensor::zeros(x.context(), DType::F32, routing.places.shape())?;
    ones.fill(1.0)?;
    let of_x = ops::combine(&of_x, &routing.places, &ones).run()?; // sums each token's rows
    // Each expert's weights, by its own rows.
    let ends = ends.without_start()?;
    let of = |slopes: &Tensor, rows| Gemm::ragged_k(&slopes.t(), rows, &ends).run();
    Ok([of_x, of(&of_g, &rows)?, of(&of_u, &rows)?, of(&of_rows, &h)?])
}

pub(crate) fn run(ctx: &Context) -> Result<()> {
    let [inner, outer] = [[EXPERTS, HIDDEN, WIDTH], [EXPERTS, WIDTH, HIDDEN]];
    let shapes: [&[usize]; 4] = [&[TOKENS, WIDTH], &inner, &inner, &outer]; // x, gate, up, down
    let held = [0, 1, 2, 3].map(|i| numbers(shapes[i].iter().product(), i as u64, 0.25));
    let (logits, slopes) = (numbers(TOKENS * EXPERTS, 4, 0.25), numbers(TOKENS * WIDTH, 5, 0.25));
    let on = |at: usize| Tensor::upload(ctx, &held[at], shapes[at]);
    let routed = Tensor::upload(ctx, &logits, &[TOKENS, EXPERTS])?;
    let of_y = Tensor::upload(ctx, &slopes, shapes[0])?;
    let got = backward([&on(0)?, &routed, &of_y], [&on(1)?, &on(2)?, &on(3)?])?;

    let (logits, slopes) = (wide(&logits), wide(&slopes));
    let held = held.each_ref().map(|held| wide(held));
    let mut worst = 0f64;
    for (which, got) in got.iter().enumerate() {
        for (i, got) in got.read_blocking::<f32>()?.into_iter().enumerate() {
            let at = |step: f64| {
                let mut held = held.clone();
                held[which][i] += step;
                loss(&held, &logits, &slopes)
            };
            let wanted = (at(1e-5) - at(-1e-5)) / 2e-5;
            worst = worst.max((f64::from(got) - wanted).abs());
            assert!(worst < 1e-5, "{got}, not {wanted}: number {i} of {which}");
        }
    }
    println!("{}: slopes are differences to {worst:.1e}", ctx.adapter_name());
    Ok(())
}

/// The sum of slopes · y; its slopes with respect to y are `slopes`.
fn loss([x, gate, up, down]: &[Vec<f64>; 4], logits: &[f64], slopes: &[f64]) -> f64 {
    let tokens = x.chunks(WIDTH).zip(logits.chunks(EXPERTS)).zip(slopes.chunks(WIDTH));
    let of_token = |((x, logits), slopes): ((&[f64], &[f64]), &[f64])| -> f64 {
        let mut order: Vec<usize> = (0..EXPERTS).collect();
        order.sort_by(|&one, &other| logits[other].total_cmp(&logits[one])); // stable
        let share = 1.0 / (1.0 + (logits[order[1]] - logits[order[0]]).exp());
        let of_expert = |(expert, share): (usize, f64)| -> f64 {
            let own = |all: &[f64]| all[expert * HIDDEN * WIDTH..][..HIDDEN * WIDTH].to_vec();
            let through = |w: &[f64]| product(x, &transposed(&own(w), WIDTH), WIDTH, HIDDEN);
            let (g, u) = (through(gate), through(up));
            let h: Vec<f64> = g.iter().zip(u).map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect();
            let y = product(&h, &transposed(&own(down), HIDDEN), HIDDEN, WIDTH);
            share * y.iter().zip(slopes).map(|(y, slope)| y * slope).sum::<f64>()
        };
        [(order[0], share), (order[1], 1.0 - share)].into_iter().map(of_expert).sum()
    };
    tokens.map(of_token).sum()
}
