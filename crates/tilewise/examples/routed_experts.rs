//! A mixture of experts: each token goes to two of them. A kernel of your own chooses and sorts,
//! and writes where each expert's rows end; on a GPU nothing is read back.
//!
//! `cargo run --release --example routed_experts`; on the CPU with TILEWISE_ADAPTER=cpu.

use tilewise::{
    Activation, Call, Context, DType, Gemm, GroupOffsets, Kernel, Result, Take, Tensor,
};

mod checked;

const TOKENS: usize = 23;
const WIDTH: usize = 32;
const EXPERTS: usize = 4;
const HIDDEN: usize = 48; // width within an expert

const ROUTE: &str = include_str!("routed_experts.wgsl");

const COMBINE: &str = "
    let at = global_id.y * WIDTH + global_id.x;
    let first = rows[place[2 * global_id.y] * WIDTH + global_id.x];
    let second = rows[place[2 * global_id.y + 1] * WIDTH + global_id.x];
    out[at] = mix(second, first, share[global_id.y]);";

fn main() -> Result<()> {
    run(&Context::new()?)
}

pub(crate) fn run(ctx: &Context) -> Result<()> {
    let data = checked::numbers(TOKENS * WIDTH, 1, 1.0);
    let router = checked::numbers(WIDTH * EXPERTS, 2, 1.0);
    let [up, down] = [3, 4].map(|seed| checked::numbers(EXPERTS * WIDTH * HIDDEN, seed, 1.0));

    let x = Tensor::upload(ctx, &data, &[TOKENS, WIDTH])?;
    let w = Tensor::upload(ctx, &router, &[WIDTH, EXPERTS])?;
    let scores = Gemm::new(&x, &w).alpha(1.0 / 64.0).run()?;
    let route = Kernel::new("route")
        .inputs(["scores"])
        .outputs(["ends", "token", "place", "share"])
        .source(ROUTE);
    let call = Call::new(ctx)
        .input(&scores)
        .output(DType::U32, &[EXPERTS])
        .output(DType::U32, &[2 * TOKENS])
        .output(DType::U32, &[2 * TOKENS])
        .output(DType::F32, &[TOKENS])
        .constant("EXPERTS", EXPERTS as u32);
    let routed = route.run(&call.grid([1, 1, 1]))?;
    let [ends, token, place, share] = &routed[..] else { unreachable!("four outputs") };
    let ends = match ends.buffer() {
        Some((buffer, at)) => GroupOffsets::from_buffer(ctx, buffer.clone(), at, EXPERTS as u64)?,
        None => GroupOffsets::upload(ctx, &ends.read_blocking()?)?, // on the CPU
    };

    let rows = Take::new(&x).rows(token).run()?; // sorted by expert
    let w = Tensor::upload(ctx, &up, &[EXPERTS, HIDDEN, WIDTH])?; // as PyTorch stores it
    let h = Gemm::grouped(&rows, w.t(), &ends).activation(Activation::Relu).run()?;
    let w = Tensor::upload(ctx, &down, &[EXPERTS, WIDTH, HIDDEN])?;
    let rows = Gemm::grouped(&h, w.t(), &ends).run()?;
    let combine =
        Kernel::new("combine").inputs(["rows", "place", "share"]).outputs(["out"]).source(COMBINE);
    let call = Call::new(ctx)
        .input(&rows)
        .input(place)
        .input(share)
        .output(DType::F32, &[TOKENS, WIDTH])
        .constant("WIDTH", WIDTH as u32);
    let y = &combine.run(&call.grid([WIDTH as u32, TOKENS as u32, 1]))?[0];

    let got = y.read_blocking::<f32>()?;
    let [data, router, up, down] = [data, router, up, down].map(|w| checked::wide(&w));
    for (x, got) in data.chunks(WIDTH).zip(got.chunks(WIDTH)) {
        let scores = checked::product(x, &router, WIDTH, EXPERTS);
        let mut order: Vec<usize> = (0..EXPERTS).collect();
        order.sort_by(|&one, &other| scores[other].total_cmp(&scores[one])); // stable
        let share = 1.0 / (1.0 + ((scores[order[1]] - scores[order[0]]) / 64.0).exp());
        let [first, second] = [order[0], order[1]].map(|expert| {
            let [up, down] =
                [&up, &down].map(|w| &w[expert * WIDTH * HIDDEN..(expert + 1) * WIDTH * HIDDEN]);
            let mut h = checked::product(x, &checked::transposed(up, WIDTH), WIDTH, HIDDEN);
            h.iter_mut().for_each(|number| *number = number.max(0.0));
            checked::product(&h, &checked::transposed(down, HIDDEN), HIDDEN, WIDTH)
        });
        for ((got, first), second) in got.iter().zip(first).zip(second) {
            let wanted = share * first + (1.0 - share) * second;
            // Whole numbers make the products exact. exp of at most 16 is off by 2⁻²³ · 35 of
            // itself, and eight roundings follow.
            let bound = 43.0 * 2f64.powi(-23) * (first.abs() + second.abs());
            let error = (f64::from(*got) - wanted).abs();
            assert!(error <= bound, "{got} instead of {wanted}");
        }
    }
    println!("{}: {TOKENS} tokens, each by 2 of {EXPERTS} experts", ctx.adapter_name());
    Ok(())
}
