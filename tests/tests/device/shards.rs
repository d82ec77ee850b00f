//! Products whose matrices lie in several buffers: masked ones, and factors in their output.

use tilewise::{Activation, DType, Error, Gemm, GroupEnds, Result, Shards, Tensor};
use tilewise_tests::contexts;

/// Shards give the same bits as one stack, with all other operands.
#[test]
fn masked_by_shards_and_by_one_stack() -> Result<()> {
    for context in contexts() {
        let upload = |shape: &[usize]| {
            let numbers = (0..shape.iter().product()).map(|i: usize| (i * 5 % 11) as f32 - 4.5);
            Tensor::upload(&context, &numbers.collect::<Vec<_>>(), shape)
        };
        let (x, stack) = (upload(&[4, 5, 12])?, upload(&[4, 12, 9])?);
        let parts = [0..1, 1..1, 1..4].map(|part| stack.narrow(0, part.start, part.len()));
        let shards = Shards::new(parts.into_iter().collect::<Result<Vec<_>>>()?)?;
        let counts = Tensor::upload(&context, &[3u32, 9, 0, 1], &[4])?;
        let (bias, gate, old) = (upload(&[4, 9])?, upload(&[4, 5, 9])?, upload(&[4, 5, 9])?);
        let vector = upload(&[12])?;
        let of = |a: &Tensor| [Gemm::masked(a, &stack, &counts), Gemm::masked(a, &shards, &counts)];
        for pair in [
            of(&x),
            of(&x).map(|gemm| gemm.bias(&bias).gated_by(&gate, Activation::Silu)),
            of(&x).map(|gemm| gemm.beta(0.5).add_to(&old).residual(&gate)),
            of(&x.narrow(0, 1, 1)?),
            of(&x.narrow(0, 1, 1)?.squeeze(0)?),
            of(&x.unsqueeze(0)?),
            of(&vector),
        ] {
            let [wanted, got] = pair.each_ref().map(Gemm::run);
            let (wanted, got) = (wanted?, got?);
            assert_eq!(got.shape(), wanted.shape(), "{context:?}");
            assert_eq!(got.read_bytes_blocking()?, wanted.read_bytes_blocking()?, "{context:?}");
            context.warm_up_problems(&pair[1].problems()?)?;
        }
        let [whole, gemm] = of(&x);
        assert_eq!(gemm.plans()?.len(), 3);
        if let (Some(device), Some(queue)) = (context.device(), context.queue()) {
            let y = Tensor::zeros(&context, DType::F32, &[4, 5, 9])?;
            let mut encoder = device.create_command_encoder(&Default::default());
            gemm.record(&mut encoder, &y)?;
            queue.submit([encoder.finish()]);
            assert_eq!(y.read_bytes_blocking()?, whole.run()?.read_bytes_blocking()?);
        }
        // The output of the first entries overlaps A, or B, of the last ones.
        let arena = Tensor::zeros(&context, DType::F32, &[900])?;
        let at = |start: usize, shape: &[usize]| {
            arena.narrow(0, start, shape.iter().product())?.reshape(shape)
        };
        let y = at(0, &[4, 5, 9])?;
        let on_a = Gemm::masked(&at(100, &[4, 5, 12])?, &shards, &counts).run_into(&y);
        let last = Shards::new([stack.narrow(0, 0, 3)?, at(10, &[1, 12, 9])?])?;
        let on_b = Gemm::masked(&x, &last, &counts).run_into(&y);
        for (operand, found) in [("A", on_a), ("B", on_b)] {
            let Err(Error::Shape(text)) = &found else { panic!("{operand}: {found:?}") };
            let told = format!("aliasing: the output and {operand} ");
            assert!(text.starts_with(&told), "{operand}: {text}");
        }
        let one = Shards::new([stack.narrow(0, 0, 1)?])?;
        for (found, words) in [
            (gemm.run_into(&at(0, &[3, 5, 9])?), ["[3, 5, 9]", "batch of 4"]),
            (gemm.run_into(&at(0, &[5, 9])?), ["[5, 9]", "batch of 4"]),
            (gemm.run_into(&at(0, &[4, 5, 8])?), ["[5, 8]", "[5, 9]"]),
            (Gemm::masked(&x, &one, &counts).run().map(drop), ["1 entry,", "batch of 4"]),
            (Gemm::masked(&upload(&[3, 5, 12])?, &shards, &counts).run().map(drop), ["3", "4"]),
        ] {
            let text = found.as_ref().map_or_else(ToString::to_string, |()| String::new());
            let fits = words.iter().all(|word| text.contains(word));
            assert!(matches!(found, Err(Error::Shape(_))) && fits, "{text}");
        }
    }
    Ok(())
}

/// The first shard's product writes over the factors, and the second shard's product still uses
/// them.
#[test]
fn factors_in_the_output() -> Result<()> {
    for context in contexts() {
        let upload = |numbers: &[f32], shape: &[usize]| Tensor::upload(&context, numbers, shape);
        let (x, one) = (upload(&[5.0, 7.0], &[2, 1])?, upload(&[1.0], &[1, 1])?);
        let shards = Shards::new([&one, &one])?;
        let ends = GroupEnds::upload(&context, &[1, 2])?;
        let counts = Tensor::upload(&context, &[1u32, 1], &[2])?;
        let grouped = Gemm::grouped(&x, &shards, &ends);
        let masked = Gemm::masked(&x.unsqueeze(1)?, &shards, &counts);
        for (gemm, shape) in [(grouped, &[2, 1][..]), (masked, &[2, 1, 1])] {
            let c = upload(&[3.0, 2.0], shape)?;
            let factor = c.narrow(0, 0, 1)?;
            gemm.clone().alpha_tensor(&factor).run_into(&c)?;
            assert_eq!(c.read_blocking::<f32>()?, [15.0, 21.0], "{context:?}");
            gemm.alpha_tensor(&factor).beta_tensor(&factor).run_into(&c)?;
            assert_eq!(c.read_blocking::<f32>()?, [300.0, 420.0], "{context:?}");
        }
    }
    Ok(())
}
