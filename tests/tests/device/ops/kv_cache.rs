//! Caches of keys and values.

use super::refused::refused;
use tilewise::{DType, Error, Tensor, ops};
use tilewise_tests::contexts;
use tilewise_tests::generators::Rng;

/// A cache that is filled step by step gives what attention to all keys at once gives. Its
/// sequences may have different lengths. Tokens behind a rewound length do not count.
#[test]
fn caches_give_what_whole_attention_gives() {
    const SHAPE: [usize; 4] = [2, 2, 9, 8];
    let [batch, heads, room, width] = SHAPE;
    let mut rng = Rng::new(60);
    let mut numbers =
        || -> Vec<f32> { (0..SHAPE.iter().product()).map(|_| rng.number()).collect() };
    let [q, k, v] = [(); 3].map(|()| numbers());
    let is_shape: fn(&Error) -> bool = |error| matches!(error, Error::Shape(_));
    for context in contexts() {
        let upload = |x: &[f32], shape: &[usize]| Tensor::upload(&context, x, shape).unwrap();
        let [all_q, all_k, all_v] = [&q, &k, &v].map(|x| upload(x, &SHAPE));
        let whole = ops::attention(&all_q, &all_k, &all_v).causal(0).window(4).run().unwrap();
        let whole = whole.read_f32_blocking().unwrap();
        assert!(whole.iter().all(|y| *y != 0.0), "{whole:?}");
        // The numbers of `tokens` tokens of each sequence, from its own place on.
        let rows = |x: &[f32], past: [usize; 2], tokens: usize| -> Vec<f32> {
            let head = |at: usize| (at * room + past[at / heads]) * width;
            (0..batch * heads).flat_map(|at| &x[head(at)..][..tokens * width]).copied().collect()
        };
        let mut cache = ops::KvCache::new(&context, DType::F32, 2, SHAPE).unwrap();
        let step = |cache: &mut ops::KvCache, past: [usize; 2], tokens: usize, sign: f32| {
            let shape = [batch, heads, tokens, width];
            let [q, k, v] = [&q, &k, &v].map(|x| upload(&rows(x, past, tokens), &shape));
            let [k, less] =
                [(&k, sign), (&v, -1.0)].map(|(x, by)| ops::scale(x, by).run().unwrap());
            let y = [(); 2].map(|()| Tensor::zeros(&context, DType::F32, &shape).unwrap());
            let all = context.submit(|to| {
                for (layer, (v, y)) in [&v, &less].into_iter().zip(&y).enumerate() {
                    cache.append(to, layer, &k, v)?;
                    cache.attention(layer, &q).window(4).record(to, y)?;
                }
                cache.advance(to, tokens)
            });
            all.map(|()| y.map(|y| y.read_f32_blocking().unwrap()))
        };
        let is_right = |cache: &mut ops::KvCache, past, tokens| {
            let wanted = rows(&whole, past, tokens);
            let [y, less] = step(cache, past, tokens, 1.0).unwrap();
            for ((y, less), wanted) in y.into_iter().zip(less).zip(wanted) {
                assert!((y - wanted).abs() < 1e-5 && y == -less, "{y} {less} {wanted}");
            }
        };
        is_right(&mut cache, [0, 0], 5);
        is_right(&mut cache, [5, 5], 1);
        context.warm_up(|to| cache.advance(to, 2)).unwrap();
        assert_eq!(cache.length(), 6);
        step(&mut cache, [6, 6], 2, 9.0).unwrap();
        cache.rewind(&[4, 2]).unwrap();
        is_right(&mut cache, [4, 2], 3);
        is_right(&mut cache, [7, 5], 2);
        refused(
            step(&mut cache, [0, 0], 1, 1.0),
            is_shape,
            "10 tokens for a KvCache with room for 9",
        );
        refused(cache.rewind(&[10, 0]), is_shape, "10 tokens");
        refused(cache.rewind(&[1]), is_shape, "");
        assert_eq!(cache.position().read_blocking::<u32>().unwrap(), [9, 7]);
    }
}
