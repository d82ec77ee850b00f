//! Sampling: the distribution of tokens, and their dependence on seed, counter and row.

use tilewise::ops::{self, Op, Sample};
use tilewise::{Context, DType, Tensor};
use tilewise_tests::contexts;

/// Logits of which two are equal.
const LOGITS: [f32; 8] = [0.3, -1.0, 2.0, 1.5, -2.5, 1.5, 0.0, 2.4];

/// How often each index is drawn from one row of logits, in `draws` rows.
fn counts(context: &Context, draws: usize, kind: impl Fn(Op<Sample>) -> Op<Sample>) -> Vec<usize> {
    let logits = Tensor::upload(context, &LOGITS, &[1, 8]).unwrap();
    let rows = logits.broadcast_to(&[draws, 8]).unwrap();
    let tokens = kind(ops::sample(&rows, 20_260)).run().unwrap().read_blocking::<u32>().unwrap();
    (0..8).map(|i| tokens.iter().filter(|token| **token == i).count()).collect()
}

/// Draws have the probabilities of the softmax among what is kept. The sum of squares of 7 degrees
/// of freedom exceeds 30 once in ten thousand times; seeds are fixed. Other options exceed it.
#[test]
fn draws_have_the_softmax_as_distribution() {
    const DRAWS: usize = 20_000;
    // Temperature, top-k, top-p, min-p, and the tokens that these keep.
    let options = [
        (1.0, 99, 1.0, 0.0, &[0, 1, 2, 3, 4, 5, 6, 7][..]),
        (0.8, 99, 1.0, 0.0, &[0, 1, 2, 3, 4, 5, 6, 7]),
        (1.0, 5, 1.0, 0.0, &[0, 2, 3, 5, 7]),
        (1.0, 3, 1.0, 0.0, &[2, 3, 5, 7]),
        (1.0, 99, 0.6, 0.0, &[2, 7]),
        (1.0, 99, 0.85, 0.0, &[2, 3, 5, 7]),
        (1.0, 99, 1.0, 0.1, &[0, 2, 3, 5, 7]),
        (2.0, 99, 1.0, 0.1, &[0, 1, 2, 3, 5, 6, 7]),
        (1.5, 5, 0.7, 0.2, &[2, 3, 5, 7]),
    ];
    let of = |(t, k, p, min_p, _): (f32, usize, f32, f32, &[usize])| {
        move |op: Op<Sample>| op.temperature(t).top_k(k).top_p(p).min_p(min_p)
    };
    let squares = |counts: &[usize], (t, .., kept): (f32, usize, f32, f32, &[usize])| {
        let weight = |i: usize| (f64::from(LOGITS[i]) / f64::from(t)).exp();
        let all: f64 = kept.iter().map(|&i| weight(i)).sum();
        let square = |i: usize| match (kept.contains(&i), counts[i] as f64) {
            (true, count) => {
                let wanted = DRAWS as f64 * weight(i) / all;
                (count - wanted).powi(2) / wanted
            }
            (false, 0.0) => 0.0,
            (false, _) => f64::INFINITY,
        };
        (0..8).map(square).sum::<f64>()
    };
    for context in contexts() {
        for (at, own) in options.into_iter().enumerate() {
            let counts = counts(&context, DRAWS, of(own));
            assert!(own.4.iter().all(|&i| counts[i] > 0), "{own:?}: {counts:?}");
            for (other, wanted) in options.into_iter().enumerate() {
                let sum = squares(&counts, wanted);
                let same = (wanted.0, wanted.4) == (own.0, own.4);
                assert_eq!(sum < 30.0, same, "{at} as {other}: {sum}, {counts:?} on {context:?}");
            }
        }
    }
}

/// Seeds, counters and rows give other draws, without order among them; equal calls give equal
/// ones. A counter on the device is as good as a number.
#[test]
fn draws_depend_on_seed_counter_and_row() {
    const DRAWS: usize = 4000;
    for context in contexts() {
        let rows = Tensor::zeros(&context, DType::F32, &[1, 16]).unwrap();
        let rows = rows.broadcast_to(&[DRAWS, 16]).unwrap();
        let read = |op: Op<Sample>| op.run().unwrap().read_blocking::<u32>().unwrap();
        let first = read(ops::sample(&rows, 7).at(3));
        let step = Tensor::upload(&context, &[3u32], &[1]).unwrap();
        assert_eq!(first, read(ops::sample(&rows, 7).at(&step)));
        let others = [
            read(ops::sample(&rows, 8).at(3)),
            read(ops::sample(&rows, 7 + (1 << 32)).at(3)),
            read(ops::sample(&rows, 7).at(4)),
        ];
        let shifted = [first[1..].to_vec(), others[2][1..].to_vec()];
        for other in others.iter().chain(&shifted) {
            // One in 16 agrees by chance; 4000 draws are 15 off, by their standard deviation.
            let equal = first.iter().zip(other).filter(|(a, b)| a == b).count();
            assert!(equal.abs_diff(DRAWS / 16) < 75, "{equal} of {DRAWS} on {context:?}");
        }
    }
}

/// At temperature 0 a draw is the element that `arg_max` finds, and so it is if one is kept.
#[test]
fn cold_draws_are_the_largest() {
    for context in contexts() {
        for (dtype, n) in DType::FLOATS.into_iter().zip([70, 5, 240]) {
            let numbers: Vec<f32> = (0..3 * n).map(|i| (i * 7919 % 251) as f32).collect();
            let x = Tensor::upload(&context, &numbers, &[3, n]).unwrap().cast(dtype).unwrap();
            let read = |x: Tensor| x.read_blocking::<u32>().unwrap();
            let wanted = read(ops::arg_max(&x, 1).run().unwrap());
            let draw = ops::sample(&x, 1).top_p(0.9);
            assert_eq!(read(draw.clone().temperature(0.0).run().unwrap()), wanted);
            assert_eq!(read(draw.top_k(1).run().unwrap()), wanted);
        }
    }
}
