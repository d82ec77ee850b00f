//! Compares mixtures of experts with the f64 oracle, on every adapter and on the CPU executor.

mod errors;
mod gather;
mod routes;
mod routing;

use tilewise::moe::{MoeLayer, Scoring};
use tilewise::planner::Grouping;
use tilewise::{Activation, DType, Result, Tensor};
use tilewise_tests::moe::{Case, FEW_BITS, Held, Operands, PLAIN, cases, numbers, upload, wide};
use tilewise_tests::{Rng, adapters, contexts, minima};

/// Fails if an output is too far off.
pub(crate) fn check(operands: &Operands, y: &Tensor) {
    pollster::block_on(operands.check(y)).unwrap_or_else(|wrong| panic!("{wrong}"));
}

#[test]
fn the_layer_is_right() {
    for (turn, context) in contexts().into_iter().enumerate() {
        for (seed, case) in cases().into_iter().enumerate() {
            // Compiling takes most of the time, so a device runs the first cases and every other
            // one of the rest.
            if !context.is_cpu() && seed > 6 && seed % 2 != turn % 2 {
                continue;
            }
            let operands = Operands::new(case, seed as u64);
            let [x, logits] = operands.on(&context);
            let y = operands.layer(&context).forward(&x, &logits).unwrap();
            assert_eq!(y.dtype(), case.dtype);
            check(&operands, &y);
        }
    }
}

/// A device with no more than Vulkan requires decodes weights before it multiplies them.
#[test]
fn the_smallest_device() {
    for adapter in adapters() {
        let context = adapter.with_limits(|limits| minima::lower(limits, &minima::vulkan()));
        for tokens in [2, 40] {
            let case = Case { tokens, weights: "affine-4bit-g64-f16", ..FEW_BITS };
            let operands = Operands::new(case, 5);
            let [x, logits] = operands.on(&context);
            check(&operands, &operands.layer(&context).forward(&x, &logits).unwrap());
        }
    }
}

/// Every way to call a layer gives equal bits, whatever was computed before.
#[test]
fn calls_are_alike() -> Result<()> {
    for context in contexts() {
        for case in [Case { tokens: 9, shared: Some(6), ..PLAIN }, Case { fused: true, ..PLAIN }] {
            let operands = Operands::new(case, 3);
            let layer = operands.layer(&context);
            let [x, logits] = operands.on(&context);
            let bits = |y: &Tensor| y.read_bytes_blocking().unwrap();
            let y = layer.forward(&x, &logits)?;
            check(&operands, &y);
            let wanted = bits(&y);
            assert_eq!(bits(&layer.forward(&x, &logits)?), wanted);
            // Rows whose elements are not neighbours are copied.
            let turned = x.t().contiguous()?.t();
            assert_eq!(bits(&layer.forward(&turned, &logits)?), wanted);
            // The rows of one token are not sorted.
            let one = [&x, &logits].map(|all| all.narrow(0, 0, 1).unwrap());
            let named = |[x, logits]: [&Tensor; 2]| {
                let grouping = layer.plans(x, logits).unwrap()[0].problem.grouping;
                matches!(grouping, Grouping::Indexed { .. })
            };
            assert!(named(one.each_ref()) && !named([&x, &logits]));
            // Fewer tokens use the same memory, then all of them again.
            let few = [&x, &logits].map(|all| all.narrow(0, 2, 4).unwrap());
            let fresh = operands.layer(&context).forward(&few[0], &few[1])?;
            assert_eq!(bits(&layer.forward(&few[0], &few[1])?), bits(&fresh));
            assert_eq!(bits(&layer.clone().forward(&x, &logits)?), wanted);
            // The output is a view, and nothing is written beside it.
            let [t, h] = [case.tokens, case.h];
            let all = upload(&context, DType::F32, &vec![7.0; (t + 2) * (h + 3)], &[t + 2, h + 3]);
            let out = all.slice(&[1..t + 1, 2..h + 2])?;
            layer.forward_into(&x, &logits, &out)?;
            assert_eq!(bits(&out), wanted);
            let around = all.read_blocking::<f32>()?;
            let sevens = around.iter().filter(|y| **y == 7.0).count();
            assert_eq!(sevens, (t + 2) * (h + 3) - t * h, "{context:?}");
            let columns = Tensor::zeros(&context, DType::F32, &[h, t])?.t();
            layer.forward_into(&x, &logits, &columns)?;
            assert_eq!(bits(&columns.contiguous()?), wanted);
            // A layer with gate and up in one stack, or apart, has memory of other sizes.
            let apart = Operands::new(Case { fused: !case.fused, ..case }, 3);
            let apart = apart.layer(&context).sharing_memory(&layer);
            check(&operands, &apart.forward(&x, &logits)?);
            assert_eq!(bits(&layer.forward(&x, &logits)?), wanted);
            // Two layers use the same memory by turns.
            let other = Operands::new(Case { h: 4, f: 3, ..PLAIN }, 4);
            let [own, its] = other.on(&context);
            let other = other.layer(&context).sharing_memory(&layer);
            let first = bits(&other.forward(&own, &its)?);
            assert_eq!(bits(&layer.forward(&x, &logits)?), wanted);
            assert_eq!(bits(&other.forward(&own, &its)?), first);
            if let (Some(device), Some(queue)) = (context.device(), context.queue()) {
                let y = [(); 3].map(|()| Tensor::zeros(&context, DType::F32, &[t, h]).unwrap());
                let mut encoder = device.create_command_encoder(&Default::default());
                layer.record(&mut encoder, &x, &logits, &y[0])?;
                let mut pass = encoder.begin_compute_pass(&Default::default());
                // Each call finds the memory as the one before has left it.
                layer.record(&mut pass, &few[0], &few[1], &y[2].narrow(0, 0, 4)?)?;
                layer.record(&mut pass, &x, &logits, &y[1])?;
                drop(pass);
                queue.submit([encoder.finish()]);
                assert_eq!([bits(&y[0]), bits(&y[1])], [wanted.clone(), wanted.clone()]);
                assert_eq!(bits(&y[2].narrow(0, 0, 4)?), bits(&fresh));
            }
            // The output is the input.
            layer.forward_into(&x, &logits, &x)?;
            assert_eq!(bits(&x), wanted);
        }
    }
    Ok(())
}

/// Tokens with NaN among their logits become NaN, and no others.
#[test]
fn not_a_number() -> Result<()> {
    for context in contexts() {
        for scoring in [Scoring::Softmax, Scoring::Sigmoid] {
            let case = Case { scoring, normalize: Some(true), ..PLAIN };
            let mut operands = Operands::new(case, 5);
            let e = case.experts;
            operands.logits[e..2 * e].fill(f32::NAN);
            operands.logits[3 * e + 2] = f32::NAN;
            let layer = operands.layer(&context);
            let [x, logits] = operands.on(&context);
            let y = layer.forward(&x, &logits)?;
            let bad = [1, 3];
            for (token, row) in y.read_blocking::<f32>()?.chunks(case.h).enumerate() {
                let is_bad = bad.contains(&token);
                assert!(row.iter().all(|y| y.is_nan() == is_bad), "{token}, {context:?}");
            }
            // The other tokens have the same results as without the NaN.
            let good: Vec<usize> = (0..case.tokens).filter(|token| !bad.contains(token)).collect();
            let rows = |all: &[f32], width: usize| {
                good.iter().flat_map(|&row| all[row * width..][..width].to_vec()).collect()
            };
            let (x, logits) = (rows(&operands.x, case.h), rows(&operands.logits, e));
            let own = Operands {
                case: Case { tokens: good.len(), ..case },
                x,
                logits,
                ..Operands::new(case, 5)
            };
            let places: Vec<u32> = good.iter().map(|&row| row as u32).collect();
            let places = Tensor::upload(&context, &places, &[places.len()])?;
            check(&own, &y.rows(&places)?);
        }
    }
    Ok(())
}

/// A narrow output does not round the sum of routed experts before the shared ones are added.
#[test]
fn narrow_outputs() -> Result<()> {
    for context in contexts() {
        let of = |number: f32| upload(&context, DType::F32, &[number], &[1, 1]);
        let stack = |number: f32| of(number).unsqueeze(0);
        let layer = MoeLayer::new(&stack(1.0)?, &stack(1.0)?, &stack(4097.0)?, 1)
            .activation(Activation::Relu)
            .shared(of(1.0), of(1.0), of(-4096.0));
        for dtype in DType::FLOATS {
            let y = Tensor::zeros(&context, dtype, &[1, 1])?;
            layer.forward_into(&of(1.0), &of(0.0), &y)?;
            assert_eq!(y.read_f32_blocking()?, [1.0], "{dtype} {context:?}");
        }
    }
    Ok(())
}

/// If rows of gate and up alternate, they are two views, without a copy. Weights that are stored
/// transposed are views, too.
#[test]
fn views_of_weights() -> Result<()> {
    let (tokens, experts, f, h) = (5, 3, 7, 16);
    for context in contexts() {
        let mut rng = Rng::new(77);
        let [gate, up, down] = [0; 3].map(|_| numbers(&mut rng, DType::F16, experts * f * h, 0.5));
        let x = upload(&context, DType::F16, &numbers(&mut rng, DType::F16, 80, 1.0), &[tokens, h]);
        let logits = upload(
            &context,
            DType::F32,
            &numbers(&mut rng, DType::F32, 15, 2.0),
            &[tokens, experts],
        );
        let rows = gate.chunks(h).zip(up.chunks(h));
        let alternate: Vec<f32> = rows.flat_map(|(gate, up)| [gate, up].concat()).collect();
        let both = upload(&context, DType::F16, &alternate, &[experts, f, 2, h]);
        let half = |i| both.narrow(2, i, 1)?.squeeze(2);
        let stack = |numbers: &[f32], [n, k]: [usize; 2]| {
            upload(&context, DType::F16, numbers, &[experts, n, k])
        };
        let whole = [stack(&gate, [f, h]), stack(&up, [f, h]), stack(&down, [h, f])];
        let turned = |w: &Tensor| w.transpose(1, 2)?.contiguous()?.transpose(1, 2);
        let [gate, up, down] = &whole;
        let [apart, alternate, turned] = [
            MoeLayer::new(gate, up, down, 2),
            MoeLayer::new(&half(0)?, &half(1)?, down, 2),
            MoeLayer::new(&turned(gate)?, &turned(up)?, &turned(down)?, 2),
        ]
        .map(|layer| layer.forward(&x, &logits).and_then(|y| y.read_bytes_blocking()));
        let apart = apart?;
        assert!(apart.iter().any(|&byte| byte != 0), "nothing was computed");
        assert_eq!(apart, alternate?, "{context:?}");
        assert_eq!(apart, turned?, "{context:?}");
    }
    Ok(())
}
