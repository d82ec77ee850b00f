//! Rows that are appended to a cache, and rows that rope writes there.

use super::{At, Case, FLOATS, Given, LIES, Lies, Rng, ULP, boxed, numbers, placed, position};
use tilewise::{DType, Tensor, ops};

/// Shapes of the rows, the room, and the position. Some positions lie beyond the room.
const SHAPES: [(&[usize], usize, At); 10] = [
    (&[1, 4], 3, (2, None)),
    (&[1, 4], 3, (1, Some(&[]))),
    (&[5, 10], 9, (4, None)),
    (&[5, 10], 9, (6, Some(&[1]))),
    (&[3, 1, 16], 7, (0, Some(&[3]))),
    (&[2, 3, 2, 6], 5, (1, Some(&[2]))),
    (&[2, 3, 2, 8], 4, (0, Some(&[1, 3]))),
    (&[2, 3, 4, 2], 6, (0, Some(&[2, 3]))),
    (&[300, 2], 303, (1, Some(&[]))),
    (&[2, 300, 6], 301, (u32::MAX as usize - 3, Some(&[2]))),
];

/// The output's elements, from the rows that are written: the contents of others are NaN.
fn wanted(
    (shape, room, at): (&[usize], usize, At),
    row: impl Fn(usize, usize) -> Vec<(f64, f64)>,
) -> Vec<(f64, f64)> {
    let (tokens, d) = (shape[shape.len() - 2], shape[shape.len() - 1]);
    let mut wanted = Vec::new();
    for (entry, position) in placed(at, shape).1.into_iter().enumerate() {
        for place in 0..room {
            wanted.extend(match place.checked_sub(position).filter(|token| *token < tokens) {
                Some(token) => row(entry * tokens + token, place),
                None => vec![(f64::NAN, 0.0); d],
            });
        }
    }
    wanted
}

pub(super) fn cases() -> Vec<Case> {
    let mut rng = Rng::new(23);
    let mut cases = Vec::new();
    for (turn, (shape, room, at)) in SHAPES.into_iter().enumerate() {
        let mut of_out = shape.to_vec();
        of_out[shape.len() - 2] = room;
        let d = shape[shape.len() - 1];
        for (of, dtype) in FLOATS.into_iter().enumerate() {
            let lies = LIES[(turn + of) % 4];
            let x = Given::new(dtype, lies, shape, numbers(&mut rng, shape, 3.0));
            let row = |row: usize, _| x.values[row * d..][..d].iter().map(|&x| (x, 0.0)).collect();
            let out = (FLOATS[(turn + 2 * of) % 3], of_out.clone(), LIES[(turn / 2 + of) % 4]);
            cases.push(Case {
                name: format!("append of {shape:?} {dtype} {lies:?} at {at:?} to {out:?}"),
                wanted: wanted((shape, room, at), row),
                inputs: [Some(x.clone()), placed(at, shape).0].into_iter().flatten().collect(),
                out: out.clone(),
                in_place: None,
                on_units: false,
                op: Box::new(move |given: &[Tensor]| {
                    boxed(ops::append(&given[0], room, position(at, given)))
                }),
            });
            let tables = [room + turn, d / 2];
            let mut table = || {
                let lies = LIES[(turn + of) / 2 % 4];
                Given::new(FLOATS[of], lies, &tables, numbers(&mut rng, &tables, 1.0))
            };
            let (cos, sin) = (table(), table());
            let row = |row: usize, place: usize| {
                let turned = |i: usize| {
                    let [a, b] = [0, d / 2].map(|half| x.values[row * d + half + i % (d / 2)]);
                    let at = place * (d / 2) + i % (d / 2);
                    let (c, s) = (cos.values[at], sin.values[at]);
                    let terms = if i < d / 2 { [a * c, -b * s] } else { [b * c, a * s] };
                    (terms[0] + terms[1], 2.0 * ULP * (terms[0].abs() + terms[1].abs()))
                };
                (0..d).map(turned).collect()
            };
            let wanted = wanted((shape, room, at), row);
            let given = [Some(x.clone()), Some(cos), Some(sin), placed(at, shape).0];
            cases.push(Case {
                name: format!("rope of {shape:?} {dtype} {lies:?} at {at:?} into {out:?}"),
                wanted,
                inputs: given.into_iter().flatten().collect(),
                out,
                in_place: None,
                on_units: false,
                op: Box::new(move |given: &[Tensor]| {
                    let rope = ops::rope(&given[0], &given[1], &given[2]);
                    boxed(rope.at(position(at, given)).into_rows(room))
                }),
            });
        }
    }
    let integers = Given::new(DType::I32, Lies::Within, &[2, 5], (0..10).map(f64::from).collect());
    let elements = integers.values.iter().map(|&x| (x, 0.0));
    cases.push(Case {
        name: "append of integers".into(),
        wanted: [(0.0, 0.0); 5].into_iter().chain(elements).collect(),
        inputs: vec![integers],
        out: (DType::I32, vec![3, 5], Lies::Transposed),
        in_place: None,
        on_units: false,
        op: Box::new(|given: &[Tensor]| boxed(ops::append(&given[0], 3, 1))),
    });
    cases
}
