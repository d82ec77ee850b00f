//! A mixture of experts, from the router's logits to the output: each token goes to two experts,
//! which are gated by SiLU. `MoeLayer` does it all; this example then does the same with products
//! and ready kernels. On a GPU nothing is read back.
//!
//! `cargo run --release --example routed_experts`; on the CPU with TILEWISE_ADAPTER=cpu.

use tilewise::moe::{MoeLayer, Router};
use tilewise::{Context, Gemm, GroupEnds, Result, Tensor, ops};

mod checked;
use checked::{numbers, product, transposed, wide};

const TOKENS: usize = 23;
const WIDTH: usize = 32;
const EXPERTS: usize = 4;
const HIDDEN: usize = 48; // width within an expert

fn main() -> Result<()> {
    run(&Context::new()?)
}

pub(crate) fn run(ctx: &Context) -> Result<()> {
    let data = numbers(TOKENS * WIDTH, 1, 0.25);
    let router = numbers(WIDTH * EXPERTS, 2, 0.25);
    let up = numbers(EXPERTS * 2 * HIDDEN * WIDTH, 3, 0.25); // gate and up
    let down = numbers(EXPERTS * WIDTH * HIDDEN, 4, 0.25);

    let x = Tensor::upload(ctx, &data, &[TOKENS, WIDTH])?;
    let w = Tensor::upload(ctx, &router, &[WIDTH, EXPERTS])?;
    let logits = ctx.matmul(&x, &w)?;
    // The shapes are those in which PyTorch stores the weights.
    let up_w = Tensor::upload(ctx, &up, &[EXPERTS, 2 * HIDDEN, WIDTH])?;
    let down_w = Tensor::upload(ctx, &down, &[EXPERTS, WIDTH, HIDDEN])?;

    let layer = MoeLayer::fused(&up_w, &down_w, 2);
    let whole = layer.forward(&x, &logits)?.read_blocking::<f32>()?;
    // Another router would give weights and experts, [TOKENS, 2] each.
    let chosen = layer.forward(&x, Router::new(2).choose(&logits).run()?)?;
    assert_eq!(chosen.read_blocking::<f32>()?, whole);

    let [logits, experts] = ops::top_k(&logits, 2).run()?; // [TOKENS, 2]
    let shares = ops::softmax(&logits).run()?;

    // Each token has two slots. They are sorted by their experts, and the tokens likewise.
    let experts = experts.reshape(&[2 * TOKENS])?;
    let [_, slots] = ops::sort(&experts).bits(EXPERTS.ilog2()).run()?;
    let owners: Vec<u32> = (0..2 * TOKENS as u32).map(|slot| slot / 2).collect();
    let owners = Tensor::upload(ctx, &owners, &[2 * TOKENS, 1])?;
    let tokens = owners.rows(&slots)?.squeeze(1)?;
    let counts = ops::histogram(&experts, EXPERTS).run()?;
    let ends = GroupEnds::from_tensor(&ops::exclusive_scan(&counts).with_total().run()?)?;

    let rows = x.rows(&tokens)?;
    let h = Gemm::grouped(&rows, up_w.t(), &ends).run()?;
    let h = ops::silu_mul(&h.narrow(1, 0, HIDDEN)?, &h.narrow(1, HIDDEN, HIDDEN)?).run()?;
    let rows = Gemm::grouped(&h, down_w.t(), &ends).run()?;
    let rows = ops::scatter(&rows, &slots, 2 * TOKENS).run()?.reshape(&[TOKENS, 2, WIDTH])?;
    let y = ctx.matmul(&shares.unsqueeze(1)?, &rows)?; // for each token [1, 2] · [2, WIDTH]

    let parts = y.read_blocking::<f32>()?;
    let [data, router, up, down] = [&data, &router, &up, &down].map(|w| wide(w));
    let epsilon = 2f64.powi(-23);
    let mut worst = 0f64; // of error and bound
    let tokens = data.chunks(WIDTH).zip(whole.chunks(WIDTH)).zip(parts.chunks(WIDTH));
    for ((x, whole), parts) in tokens {
        let logits = product(x, &router, WIDTH, EXPERTS);
        let mut order: Vec<usize> = (0..EXPERTS).collect();
        order.sort_by(|&one, &other| logits[other].total_cmp(&logits[one])); // stable
        let apart = logits[order[0]] - logits[order[1]];
        let share = 1.0 / (1.0 + (-apart).exp());
        let (mut wanted, mut bound) = (vec![0.0; WIDTH], vec![0.0; WIDTH]);
        for (expert, share) in [(order[0], share), (order[1], 1.0 - share)] {
            let own = |all: &[f64]| -> Vec<f64> {
                all.chunks(all.len() / EXPERTS).nth(expert).unwrap_or_default().to_vec()
            };
            let h = product(x, &transposed(&own(&up), WIDTH), WIDTH, 2 * HIDDEN); // exact in f32
            let pairs = || h[..HIDDEN].iter().zip(&h[HIDDEN..]);
            let passed: Vec<_> = pairs().map(|(a, b)| a / (1.0 + (-a).exp()) * b).collect();
            // Roundings of h itself, of a sum of HIDDEN products, of a share and of the sum of
            // both.
            let roundings = HIDDEN as f64 + (20.0 + 5.0 * apart + 1.0) + 3.0;
            let errors = h[..HIDDEN].iter().zip(&passed).map(|(a, passed)| {
                // WGSL's exponential, then a sum, a division and a product.
                let function = (3.0 + 2.0 * a.abs()) / (1.0 + a.exp()) + 5.0;
                passed.abs() * (roundings + function) * epsilon
            });
            let w = transposed(&own(&down), HIDDEN);
            let sizes: Vec<_> = w.iter().map(|w| w.abs()).collect();
            for (all, part) in [
                (&mut wanted, product(&passed, &w, HIDDEN, WIDTH)),
                (&mut bound, product(&errors.collect::<Vec<_>>(), &sizes, HIDDEN, WIDTH)),
            ] {
                all.iter_mut().zip(part).for_each(|(sum, part)| *sum += share * part);
            }
        }
        let got = whole.iter().zip(parts).flat_map(|(whole, parts)| [whole, parts]);
        let twice = wanted.iter().zip(&bound).flat_map(|both| [both; 2]);
        for (got, (wanted, bound)) in got.zip(twice) {
            worst = worst.max((f64::from(*got) - wanted).abs() / bound);
            assert!(worst <= 1.0, "{got} instead of {wanted}, which may be off by {bound:e}");
        }
    }
    let name = ctx.adapter_name();
    println!("{name}: {TOKENS} tokens, each by 2 of {EXPERTS} experts; {worst:.2} of the bound");
    Ok(())
}
