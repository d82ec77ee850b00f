//! Weighted sums of rows, and elements of rows, by index.

use super::{Case, DType, FLOATS, Given, LIES, Rng, ULP, boxed, numbers};
use tilewise::{Tensor, ops};

/// Indices below `count`. Some lie beyond it, one of them far.
pub(super) fn indices(rng: &mut Rng, shape: &[usize], count: usize) -> Vec<f64> {
    let number = |number: f64| (number.abs() * (count as f64 + 1.0)).floor();
    let mut all: Vec<_> = numbers(rng, shape, 1.0).into_iter().map(number).collect();
    if let [_, _, .., last] = &mut all[..] {
        *last = f64::from(u32::MAX);
    }
    all
}

/// Weighted sums. If x has several rows, a NaN lies in the last.
pub(super) fn combine() -> Vec<Case> {
    // Rows and columns of x; rows and columns of places.
    const SHAPES: [([usize; 2], [usize; 2]); 10] = [
        ([1, 1], [1, 1]),
        ([5, 3], [4, 2]),
        ([4, 8], [7, 3]),
        ([9, 5], [300, 2]),
        ([30, 12], [5, 8]),
        ([2, 1030], [3, 4]),
        ([0, 3], [2, 2]),
        ([3, 0], [2, 2]),
        ([3, 4], [0, 2]),
        ([3, 4], [2, 0]),
    ];
    let mut rng = Rng::new(14);
    let mut cases = Vec::new();
    for (turn, ([m, n], places)) in SHAPES.into_iter().enumerate() {
        for (of, dtype) in FLOATS.into_iter().enumerate() {
            let mut values = numbers(&mut rng, &[m, n], 9.0);
            if m > 1
                && let Some(last) = values.last_mut()
            {
                *last = f64::NAN;
            }
            let lies = |at: usize| LIES[(turn + at) % 4];
            let x = Given::new(dtype, lies(of), &[m, n], values);
            let which = Given::new(DType::U32, lies(1), &places, indices(&mut rng, &places, m));
            let weights = numbers(&mut rng, &places, 1.0);
            let weights = Given::new(FLOATS[(of + turn) % 3], lies(2 * of), &places, weights);
            let [rows, k] = places;
            let mut wanted = vec![(0.0, 0.0); rows * n];
            for (at, (value, error)) in wanted.iter_mut().enumerate() {
                for slot in (at / n * k..).take(k) {
                    let row = which.values[slot] as usize;
                    if row < m {
                        let term = weights.values[slot] * x.values[row * n + at % n];
                        (*value, *error) = (*value + term, *error + k as f64 * ULP * term.abs());
                    }
                }
            }
            cases.push(Case {
                name: format!("combine of {:?} {dtype} {:?} by {places:?}", x.shape, x.lies),
                wanted,
                inputs: vec![x, which, weights],
                out: (FLOATS[(turn / 2 + of) % 3], vec![rows, n], LIES[(turn / 3 + of) % 4]),
                in_place: None,
                on_units: false,
                op: Box::new(|x: &[Tensor]| boxed(ops::combine(&x[0], &x[1], &x[2]))),
            });
        }
    }
    cases
}

pub(super) fn take_along() -> Vec<Case> {
    // Rows, columns of x, columns of the indices.
    const SHAPES: [[usize; 3]; 9] = [
        [1, 1, 1],
        [3, 5, 2],
        [4, 8, 4],
        [7, 3, 9],
        [270, 2, 1],
        [2, 70, 1030],
        [0, 3, 2],
        [3, 0, 2],
        [3, 2, 0],
    ];
    let mut rng = Rng::new(15);
    let mut cases = Vec::new();
    for (turn, [m, n, k]) in SHAPES.into_iter().enumerate() {
        for (of, dtype) in FLOATS.into_iter().enumerate() {
            let values = numbers(&mut rng, &[m, n], 9.0);
            let x = Given::new(dtype, LIES[(turn + of) % 4], &[m, n], values);
            let own = indices(&mut rng, &[m, k], n);
            let wanted = own.iter().enumerate().map(|(at, &index)| match index < n as f64 {
                true => (x.values[at / k * n + index as usize], 0.0),
                false => (f64::NAN, 0.0),
            });
            cases.push(Case {
                name: format!("take_along of {:?} {dtype} {:?}, {k}", x.shape, x.lies),
                wanted: wanted.collect(),
                inputs: vec![x, Given::new(DType::U32, LIES[(turn + 2 * of) % 4], &[m, k], own)],
                out: (dtype, vec![m, k], LIES[(turn / 2 + of) % 4]),
                in_place: None,
                on_units: false,
                op: Box::new(|x: &[Tensor]| boxed(ops::take_along(&x[0], &x[1]))),
            });
        }
    }
    cases
}
