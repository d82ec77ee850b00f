//! Softmax.

use super::{At, Case, DType, Given, Lies, Rng, Wanted, ops};
use super::{ROWS, U, ULP, boxed, broadcast, numbers, placed, position, rows, turns};
use tilewise::Tensor;

/// Softmax of a row whose scores have these errors. The operation's documentation gives the bound.
fn softmax_row(scores: &[(f64, f64)]) -> Vec<Wanted> {
    if scores.iter().any(|(score, _)| score.is_nan() || *score == f64::INFINITY) {
        return vec![(f64::NAN, 0.0); scores.len()];
    }
    let finite = || scores.iter().filter(|(score, _)| score.is_finite());
    let most = finite().map(|(score, _)| *score).fold(f64::NEG_INFINITY, f64::max);
    let least = finite().map(|(score, _)| *score).fold(f64::INFINITY, f64::min);
    if most == f64::NEG_INFINITY {
        return vec![(0.0, 0.0); scores.len()];
    }
    let sum: f64 = finite().map(|(score, _)| (score - most).exp()).sum();
    let rounding = finite().map(|(_, error)| *error).fold(0.0, f64::max);
    let steps = 20.0 + 5.0 * (most - least).min(110.0) + scores.len() as f64 / 2.0;
    let relative = steps * ULP + 2.0 * rounding;
    let p = |(score, _): &(f64, f64)| {
        let p = (score - most).exp() / sum;
        // Exponentials below 2⁻¹²⁶ vanish.
        (p, relative * p + f64::from(f32::MIN_POSITIVE))
    };
    scores.iter().map(p).collect()
}

pub(super) fn cases() -> Vec<Case> {
    let mut rng = Rng::new(1);
    let mut cases = Vec::new();
    for (shape, dtype, out, lies, out_lies) in turns(&ROWS) {
        let mut values = numbers(&mut rng, shape, 20.0);
        // Rows after the first have some −∞, unless a score is far above the others. In one shape
        // the first rows have other special numbers.
        let last = shape.last().copied().unwrap_or(1);
        let some = if last == 16 { 0 } else { values.len() };
        values[..some]
            .iter_mut()
            .skip(last)
            .step_by(7)
            .for_each(|value| *value = f64::NEG_INFINITY);
        if last == 31 {
            // These are at the third and the second place of a block.
            values[last + 6] = f64::NAN;
            values[2 * last + 9] = f64::INFINITY;
            values[3 * last..4 * last].fill(f64::NEG_INFINITY);
            values[4 * last] = -3e38;
            values[4 * last + 30] = 60000.0;
            (values[2], values[7]) = (60000.0, 65000.0);
        }
        // In each row one number is far above the others, at another place of its block.
        if last == 12 || last == 16 {
            let peak = |(row, scores): (usize, &mut [f64])| scores[(5 * row + 1) % last] += 400.0;
            values.chunks_mut(last).enumerate().for_each(peak);
        }
        // All numbers are far below the zeros that are read beyond the ends of rows.
        if last == 33 || last == 2 {
            values.iter_mut().for_each(|value| *value -= 500.0);
        }
        let x = Given::new(dtype, lies, shape, values);
        let score = |&x: &f64| (0.5 * x, 0.5 * x.abs() * U);
        let wanted = rows(shape, &x.values);
        let wanted: Vec<_> = wanted
            .flat_map(|row| softmax_row(&row.iter().map(score).collect::<Vec<_>>()))
            .collect();
        cases.push(Case {
            name: format!("softmax of {shape:?} {dtype} {lies:?} to {out} {out_lies:?}"),
            wanted,
            inputs: vec![x],
            out: (out, shape.to_vec(), out_lies),
            in_place: None,
            on_units: false,
            op: Box::new(|x: &[Tensor]| boxed(ops::softmax(&x[0]).scale(0.5))),
        });
    }
    cases.extend(masked_softmax(&mut rng));
    cases
}

/// Scores with their mask and their sinks, which may be absent; types of the three; the places of
/// scores and mask; and the keys before the first query.
type Masked = (&'static [usize], [Option<&'static [usize]>; 2], [DType; 3], [Lies; 2], At);

fn masked_softmax(rng: &mut Rng) -> Vec<Case> {
    use DType::{BF16, F16, F32};
    use Lies::{Packed, Transposed, TransposedWithin, Within};
    const MASKED: [Masked; 13] = [
        (&[2, 3, 5, 7], [Some(&[5, 7]), None], [F32, F16, F32], [Packed, Within], (2, None)),
        (
            &[2, 2, 4, 33],
            [Some(&[2, 1, 1, 33]), None],
            [F16, F32, F32],
            [Within, Packed],
            (30, None),
        ),
        (&[3, 12], [Some(&[3, 12]), None], [BF16, F32, F32], [Packed; 2], (9, None)),
        (&[9, 40], [Some(&[1]), None], [F32, BF16, F32], [TransposedWithin, Within], (2, None)),
        (&[2, 6, 5, 7], [None, Some(&[6, 1, 1])], [F32, F32, BF16], [Packed; 2], (7, None)),
        (&[2, 6, 3, 8], [Some(&[3, 8]), Some(&[6, 1, 1])], [F16, F32, F32], [Packed; 2], (5, None)),
        (&[300, 2], [None, Some(&[300, 1])], [BF16, F32, F16], [Transposed, Packed], (300, None)),
        (&[6, 1], [None, Some(&[6, 1])], [F32, F32, F32], [Within, Packed], (1, None)),
        (&[5, 12], [Some(&[12]), Some(&[])], [F32, F16, F16], [Packed, Within], (3, None)),
        (&[2, 3, 5, 7], [None, None], [F32; 3], [Packed; 2], (1, Some(&[2]))),
        (&[2, 3, 2, 12], [Some(&[12]), None], [F16, F32, F32], [Within; 2], (0, Some(&[2, 3]))),
        (&[3, 1, 40], [None, Some(&[3, 1, 1])], [F32; 3], [Transposed; 2], (20, Some(&[]))),
        (&[2, 4, 9], [None, None], [BF16; 3], [Packed; 2], (u32::MAX as usize - 3, Some(&[2]))),
    ];
    /// With a window, a softcap, or both.
    const BOUNDED: [(Masked, Option<usize>, Option<f32>); 8] = [
        ((&[5, 12], [None; 2], [F32; 3], [Packed; 2], (3, None)), Some(1), None),
        ((&[5, 12], [None; 2], [F32; 3], [Packed; 2], (20, None)), Some(11), None),
        ((&[2, 7, 33], [None; 2], [F16; 3], [Within; 2], (20, Some(&[2]))), Some(6), None),
        ((&[300, 9], [None, Some(&[])], [F32; 3], [Packed; 2], (0, None)), Some(4), Some(2.5)),
        ((&[2, 3, 8], [Some(&[8]), None], [F32; 3], [Packed; 2], (2, None)), Some(99), Some(0.5)),
        (
            (&[4, 31], [Some(&[31]), None], [BF16, F32, F32], [Packed; 2], (7, None)),
            None,
            Some(1.0),
        ),
        ((&[3, 16], [None; 2], [F32; 3], [Transposed; 2], (30, Some(&[1]))), Some(17), None),
        (
            (&[2, 2, 9], [None; 2], [F32; 3], [Packed; 2], (4_000_000_000, Some(&[2]))),
            Some(3),
            None,
        ),
    ];
    let masked = MASKED.map(|masked| (masked, None, None)).into_iter();
    let of = |bounded| [None, Some(0)].map(|in_place| masked_of(rng, bounded, in_place));
    masked.chain(BOUNDED).flat_map(of).collect()
}

/// Rows that are too long for a workgroup to keep.
pub(super) fn in_parts() -> Vec<Case> {
    let masked: Masked = (
        &[3, 8196],
        [Some(&[8196]), Some(&[3, 1])],
        [DType::F32; 3],
        [Lies::Packed; 2],
        (8194, None),
    );
    let bounded = [(masked, None, None), (masked, Some(6000), Some(300.0))];
    bounded.map(|bounded| masked_of(&mut Rng::new(13), bounded, None)).into()
}

fn masked_of(
    rng: &mut Rng,
    ((shape, [of_mask, of_sinks], dtypes, lies, at), window, cap): (
        Masked,
        Option<usize>,
        Option<f32>,
    ),
    in_place: Option<usize>,
) -> Case {
    let (queries, keys) = (shape[shape.len() - 2], shape[shape.len() - 1]);
    let mut values = numbers(rng, shape, 4.0);
    let mask = of_mask.map(|of_mask| {
        let mut mask = numbers(rng, of_mask, 1.0);
        mask.iter_mut().skip(1).step_by(3).for_each(|mask| *mask = f64::NEG_INFINITY);
        if of_mask == [3, 12] {
            mask[12] = f32::MAX.into();
        }
        Given::new(dtypes[1], lies[1], of_mask, mask)
    });
    // One is far above all scores, one far below them, and three are special.
    let sinks = of_sinks.map(|of_sinks| {
        let mut sinks = numbers(rng, of_sinks, 2.0);
        let special = [f64::NEG_INFINITY, 40.0, -40.0, f64::NAN, f64::INFINITY];
        sinks.iter_mut().skip(1).zip(special).for_each(|(sink, special)| *sink = special);
        Given::new(dtypes[2], Lies::TransposedWithin, of_sinks, sinks)
    });
    if keys == 8196 {
        // These are far above the others, and above the sinks. One is in a block that is read
        // together with the first block, the other in a later one.
        [8196 + 1500, 2 * 8196 + 6000].iter().for_each(|&at| values[at] += 800.0);
    }
    if cap == Some(0.5) {
        // A cap bounds them.
        (values[0], values[2 * 8 + 2]) = (f64::INFINITY, f64::NEG_INFINITY);
    }
    let x = Given::new(dtypes[0], lies[0], shape, values);
    let of_rows = [&shape[..shape.len() - 1], &[1]].concat();
    let all = |other: &Option<Given>, shape: &[usize]| {
        other.as_ref().map(|other| broadcast(&other.values, &other.shape, shape))
    };
    let (tensor, positions) = placed(at, shape);
    let (masks, sink_of) = (all(&mask, shape), all(&sinks, &of_rows));
    let score = |(at, &x): (usize, &f64)| {
        let (key, query) = (at % keys, at / keys % queries);
        let scaled =
            cap.map_or(0.25 * x, |cap| f64::from(cap) * (0.25 * x / f64::from(cap)).tanh());
        let of_cap = cap.map_or(0.0, |cap| 12.0 * f64::from(cap) * ULP);
        let sum = scaled + masks.as_ref().map_or(0.0, |masks| masks[at]);
        // Some positions are the largest numbers of 32 bits, which browsers count with.
        let own = query.saturating_add(positions[at / keys / queries]);
        let early = window.is_some_and(|window| key + window <= own);
        let score = if key > own || early { f64::NEG_INFINITY } else { sum };
        let most = cap.map_or(f64::INFINITY, |cap| 80.0 * f64::from(cap));
        (score, 2.0 * U * (x.abs().min(most) + 2.0) + of_cap)
    };
    let scores: Vec<_> = x.values.iter().enumerate().map(score).collect();
    let of_row = |(row, scores): (usize, &[(f64, f64)])| {
        let sink = sink_of.as_ref().map(|sinks| (sinks[row], 0.0));
        let mut wanted = softmax_row(&[scores, sink.as_slice()].concat());
        wanted.truncate(keys);
        wanted
    };
    let (masked, sinks_given) = (mask.is_some(), sinks.is_some());
    Case {
        name: format!(
            "softmax of {shape:?}, mask {of_mask:?}, sinks {of_sinks:?}, in place {in_place:?}, \
             at {at:?}, window {window:?}, cap {cap:?}"
        ),
        wanted: scores.chunks(keys).enumerate().flat_map(of_row).collect(),
        out: (x.dtype, shape.to_vec(), x.lies),
        inputs: [Some(x), mask, sinks, tensor].into_iter().flatten().collect(),
        in_place,
        on_units: false,
        op: Box::new(move |given: &[Tensor]| {
            let mut op = ops::softmax(&given[0]).scale(0.25).causal(position(at, given));
            if let Some(window) = window {
                op = op.window(window);
            }
            if let Some(cap) = cap {
                op = op.softcap(cap);
            }
            if masked {
                op = op.mask(&given[1]);
            }
            if sinks_given {
                op = op.sinks(&given[1 + usize::from(masked)]);
            }
            boxed(op)
        }),
    }
}
