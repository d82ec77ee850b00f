//! Routing: the chosen experts, their weights, and the order of the rows.

use super::{numbers, upload};
use tilewise::moe::{Router, Routing, Scoring};
use tilewise::{DType, Result, Tensor};
use tilewise_tests::{Rng, contexts};

fn words(tensor: &Tensor) -> Vec<usize> {
    tensor.read_blocking::<u32>().unwrap().into_iter().map(|word| word as usize).collect()
}

#[test]
fn rows_are_sorted_by_expert() -> Result<()> {
    for context in contexts() {
        for [tokens, experts, k] in [
            [0, 3, 2],
            [1, 1, 1],
            [1, 9, 9],
            [7, 2, 1],
            [33, 8, 2],
            [64, 5, 5],
            [5, 257, 8],
            [900, 3, 3],
        ] {
            let mut rng = Rng::new((tokens + experts) as u64);
            // There are few different numbers, so that there are ties.
            let mut logits = numbers(&mut rng, DType::F32, tokens * experts, 3.0);
            logits.iter_mut().for_each(|logit| *logit = logit.round());
            let device = upload(&context, DType::F32, &logits, &[tokens, experts]);
            let routing = Router::new(k).run(&device)?;
            let mut wanted = Vec::new();
            for row in logits.chunks(experts) {
                let mut order: Vec<usize> = (0..experts).collect();
                order.sort_by(|&a, &b| row[b].total_cmp(&row[a]).then(a.cmp(&b)));
                // Both zeros are equal.
                order.sort_by(|&a, &b| row[b].partial_cmp(&row[a]).unwrap().then(a.cmp(&b)));
                wanted.extend_from_slice(&order[..k]);
            }
            assert_eq!(words(&routing.experts), wanted, "{context:?}");
            let mut order: Vec<usize> = (0..tokens * k).collect();
            order.sort_by_key(|&slot| wanted[slot]);
            assert_eq!(words(&routing.order), order, "{context:?}");
            let owners: Vec<usize> = order.iter().map(|slot| slot / k).collect();
            assert_eq!(words(&routing.tokens), owners);
            let mut places = vec![0; order.len()];
            order.iter().enumerate().for_each(|(row, &slot)| places[slot] = row);
            assert_eq!(words(&routing.places), places);
            assert_eq!(routing.offsets.count(), experts + 1);
            for row in routing.weights.read_blocking::<f32>()?.chunks(k) {
                assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{row:?}");
                assert!(row.is_sorted_by(|a, b| a >= b), "{row:?}");
            }
        }
    }
    Ok(())
}

/// Recorded routings equal those that are run, also with another type of logits.
#[test]
fn recorded_routings() -> Result<()> {
    for context in contexts() {
        let logits = numbers(&mut Rng::new(1), DType::F16, 12, 3.0);
        let logits = upload(&context, DType::F16, &logits, &[3, 4]);
        let router = Router::new(2).scoring(Scoring::Sigmoid).normalize(true);
        let run = router.run(&logits)?;
        assert_eq!(run.weights.dtype(), DType::F32);
        let (Some(device), Some(queue)) = (context.device(), context.queue()) else { continue };
        let others = [Routing::zeros(&context, 3, 4, 2)?, Routing::zeros(&context, 3, 4, 2)?];
        let mut encoder = device.create_command_encoder(&Default::default());
        router.record(&mut encoder, &logits, &others[0])?;
        let mut pass = encoder.begin_compute_pass(&Default::default());
        router.record(&mut pass, &logits, &others[1])?;
        drop(pass);
        queue.submit([encoder.finish()]);
        for other in &others {
            for (one, other) in [
                (&run.weights, &other.weights),
                (&run.experts, &other.experts),
                (&run.order, &other.order),
                (&run.tokens, &other.tokens),
                (&run.places, &other.places),
            ] {
                assert_eq!(one.read_bytes_blocking()?, other.read_bytes_blocking()?);
            }
        }
    }
    Ok(())
}
