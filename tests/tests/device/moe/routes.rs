//! Experts that are chosen already.

use super::errors::refused;
use super::{Case, Operands, PLAIN, check, upload};
use tilewise::moe::{MoeLayer, Router, Routes};
use tilewise::{Context, DType, Error, Result, Tensor};
use tilewise_tests::contexts;

/// A layer, x, and the weights and experts that its router chooses.
fn routed(context: &Context, case: Case) -> Result<(Operands, MoeLayer, [Tensor; 2], [Tensor; 2])> {
    let operands = Operands::new(case, 21);
    let (layer, [x, logits]) = (operands.layer(context), operands.on(context));
    let chosen = Router::new(case.k).choose(&logits).run()?;
    Ok((operands, layer, [x, logits], chosen))
}

#[test]
fn routers_choose_no_better() -> Result<()> {
    let crowded = Case { tokens: 600, crowded: true, ..PLAIN };
    for context in contexts() {
        for case in [PLAIN, crowded, Case { shared: Some(4), ..PLAIN }] {
            let (operands, layer, [x, logits], chosen) = routed(&context, case)?;
            let y = layer.forward(&x, &chosen)?;
            check(&operands, &y);
            let by_logits = layer.forward(&x, &logits)?.read_bytes_blocking()?;
            assert_eq!(y.read_bytes_blocking()?, by_logits, "{context:?}");
            // The router's own k does not matter here.
            let other = Operands::new(Case { k: 1, ..case }, 21).layer(&context);
            assert_eq!(other.forward(&x, &chosen)?.read_bytes_blocking()?, by_logits);
            if let (Some(device), Some(queue)) = (context.device(), context.queue()) {
                let y = Tensor::zeros(&context, DType::F32, x.shape())?;
                let mut encoder = device.create_command_encoder(&Default::default());
                layer.record(&mut encoder, &x, &chosen, &y)?;
                queue.submit([encoder.finish()]);
                assert_eq!(y.read_bytes_blocking()?, by_logits);
            }
        }
    }
    Ok(())
}

/// Experts that are not here add nothing, whatever an earlier call has left in the memory. The bits
/// are those of a weight of zero.
#[test]
fn experts_elsewhere() -> Result<()> {
    for context in contexts() {
        for (tokens, biases) in [(7, false), (600, false), (2, true), (7, true)] {
            let case = Case { tokens, k: 3, biases, ..PLAIN };
            let (_, layer, [x, _], [weights, experts]) = routed(&context, case)?;
            let nan = upload(&context, DType::F32, &vec![f32::NAN; tokens * case.h], x.shape());
            let y = layer.forward(&nan, [&weights, &experts])?;
            assert!(y.read_blocking::<f32>()?.iter().all(|y| y.is_nan()));
            let mut own = experts.read_blocking::<u32>()?;
            let mut less = weights.read_blocking::<f32>()?;
            let elsewhere = [5, 6, u32::MAX];
            let there = own.iter_mut().zip(&mut less).filter(|(expert, _)| **expert >= 3);
            let mut count = 0;
            for ((expert, weight), far) in there.zip(elsewhere.into_iter().cycle()) {
                (*expert, *weight, count) = (far, 0.0, count + 1);
            }
            assert!(count >= tokens.min(6), "{count}");
            let own = Tensor::upload(&context, &own, &[tokens, 3])?;
            let less = Tensor::upload(&context, &less, &[tokens, 3])?;
            let read = |y: Tensor| y.read_blocking::<f32>();
            let y = read(layer.forward(&x, [&weights, &own])?)?;
            assert_eq!(y, read(layer.forward(&x, [&less, &experts])?)?, "{context:?}");
            assert!(y.iter().any(|y| *y != 0.0));
        }
    }
    Ok(())
}

/// More slots than experts, one expert twice, and no slots.
#[test]
fn any_number() -> Result<()> {
    let context = Context::new()?;
    let one = Tensor::upload(&context, &[1.0f32], &[1, 1, 1])?;
    let layer = MoeLayer::new(&one, &one, &one, 1).activation(tilewise::Activation::None);
    let x = Tensor::upload(&context, &[3.0f32, 4.0], &[2, 1])?;
    let weights = Tensor::upload(&context, &[1.0f32, 0.5, 8.0, 2.0], &[2, 2])?;
    let experts = Tensor::upload(&context, &[0u32, 0, 1, 0], &[2, 2])?;
    let y = layer.forward(&x, [&weights, &experts])?;
    assert_eq!(y.read_blocking::<f32>()?, [13.5, 32.0]);
    let none = [DType::F32, DType::U32].map(|dtype| Tensor::zeros(&context, dtype, &[2, 0]));
    let [weights, experts] = none;
    let y = layer.forward(&x, [weights?, experts?])?;
    assert_eq!(y.read_blocking::<f32>()?, [0.0, 0.0]);
    Ok(())
}

#[test]
fn errors() -> Result<()> {
    for context in contexts() {
        let (_, layer, [x, _], chosen) = routed(&context, PLAIN)?;
        let [weights, experts] = &chosen;
        let by = |weights: &Tensor, experts: &Tensor| layer.forward(&x, [weights, experts]);
        refused(by(experts, experts), "Unsupported", &["weights of tokens are u32"]);
        refused(by(weights, weights), "Unsupported", &["experts of tokens are f32", "u32"]);
        let fewer = experts.narrow(1, 0, 1)?;
        refused(by(weights, &fewer), "Shape", &["[7, 2]", "[7, 1]"]);
        let short = [&weights.narrow(0, 0, 6)?, &experts.narrow(0, 0, 6)?];
        refused(by(short[0], short[1]), "Shape", &["weights of tokens", "[6, 2]", "[7, 13]"]);
        let other = Tensor::zeros(&Context::cpu(), DType::F32, &[7, 2])?;
        refused(by(&other, experts), "Misuse", &["wrong context: ", "the weights of tokens"]);
        let stack = |shape: &[usize]| Tensor::zeros(&context, DType::F32, shape).unwrap();
        let unlike = MoeLayer::new(stack(&[3, 9, 13]), stack(&[4, 9, 13]), stack(&[3, 13, 9]), 1);
        refused(unlike.forward(&x, &chosen), "Shape", &["up", "[4, 9, 13]", "[3, 9, 13]"]);
        let matrix = MoeLayer::new(stack(&[9, 13]), stack(&[9, 13]), stack(&[13, 9]), 1);
        refused(matrix.forward(&x, &chosen), "Shape", &["gate", "[9, 13]", "[E, F, H]"]);
        // The output overlaps the weights, which are read last.
        let all = upload(&context, DType::F32, &[1.0; 7 * 13], &[7, 13]);
        let weights = all.narrow(1, 0, 2)?;
        let own = Routes::Chosen { weights, experts: experts.clone() };
        refused(layer.forward_into(&x, own, &all), "Shape", &["aliasing: ", "weights of tokens"]);
    }
    Ok(())
}

/// Each product is explained.
#[test]
fn explained() -> Result<()> {
    for context in contexts().into_iter().filter(|context| !context.is_cpu()) {
        let (_, layer, [x, logits], chosen) = routed(&context, PLAIN)?;
        let text = layer.explain(&x, &logits)?;
        let label =
            |at: usize| Ok::<_, Error>(layer.plans(&x, &chosen)?[at].passes[0].label.clone());
        for at in 0..3 {
            assert!(text.contains(&format!("product {} of 3\n", at + 1)), "{text}");
            assert!(text.contains(&label(at)?), "{text}");
        }
    }
    Ok(())
}
