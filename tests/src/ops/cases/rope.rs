//! Rotary embeddings.

use super::{At, Case, FLOATS, Given, Lies, Rng, ULP, boxed, broadcast, numbers, placed, position};
use tilewise::{Tensor, ops};

/// Shapes of x and of the tables.
const SHAPES: [(&[usize], &[usize]); 8] = [
    (&[300, 2], &[1, 1]),
    (&[1, 2], &[1, 1]),
    (&[3, 4], &[3, 2]),
    (&[2, 3, 5, 10], &[5, 5]),
    (&[2, 3, 4, 16], &[4, 8]),
    (&[2, 1, 7, 6], &[2, 1, 7, 3]),
    (&[5, 66], &[1, 33]),
    (&[0, 3, 8], &[3, 4]),
];

/// Shapes of x, rows of the tables, and positions. The last one lies beyond the tables.
const PLACED: [(&[usize], usize, At); 5] = [
    (&[1, 8], 3, (2, None)),
    (&[2, 3, 4, 10], 9, (0, Some(&[2]))),
    (&[3, 2, 16], 12, (3, Some(&[1]))),
    (&[3, 2, 6], 30, (5, Some(&[3]))),
    (&[2, 2, 4], 5, (u32::MAX as usize - 3, Some(&[2]))),
];

/// Rows whose tables begin at a position.
fn at_positions(rng: &mut Rng) -> Vec<Case> {
    let mut cases = Vec::new();
    for (turn, (shape, rows, at)) in PLACED.into_iter().enumerate() {
        let [tokens, d] = [shape[shape.len() - 2], shape[shape.len() - 1]];
        let tables = [rows, d / 2];
        let mut given =
            |shape, lies| Given::new(FLOATS[turn % 3], lies, shape, numbers(rng, shape, 2.0));
        let x = given(shape, Lies::Transposed);
        let [cos, sin] = [Lies::Within, Lies::Packed].map(|lies| given(&tables, lies));
        let (tensor, positions) = placed(at, shape);
        for interleaved in [false, true] {
            let wanted = |element: usize| {
                let (row, i) = (element / d, element % d);
                let pair = if interleaved { i / 2 } else { i % (d / 2) };
                let [a, b] = match interleaved {
                    true => [2 * pair, 2 * pair + 1],
                    false => [pair, pair + d / 2],
                };
                let place = (positions[row / tokens] + row % tokens).min(rows - 1);
                let [c, s] = [&cos, &sin].map(|table| table.values[place * (d / 2) + pair]);
                let [x, y] = [a, b].map(|i| x.values[row * d + i]);
                let terms = if i == a { [x * c, -y * s] } else { [y * c, x * s] };
                (terms[0] + terms[1], 2.0 * ULP * (terms[0].abs() + terms[1].abs()))
            };
            let inputs = [Some(x.clone()), Some(cos.clone()), Some(sin.clone()), tensor.clone()];
            cases.push(Case {
                name: format!("rope of {shape:?} at {at:?} {interleaved}"),
                wanted: (0..x.values.len()).map(wanted).collect(),
                inputs: inputs.into_iter().flatten().collect(),
                out: (x.dtype, shape.to_vec(), x.lies),
                in_place: (turn % 2 == 0).then_some(0),
                op: Box::new(move |given: &[Tensor]| {
                    let rope = ops::rope(&given[0], &given[1], &given[2]);
                    let rope = rope.at(position(at, given));
                    boxed(if interleaved { rope.interleaved() } else { rope })
                }),
            });
        }
    }
    cases
}

pub(super) fn cases() -> Vec<Case> {
    let mut rng = Rng::new(5);
    let lies = [Lies::Packed, Lies::Within, Lies::Transposed, Lies::TransposedWithin];
    let mut cases = Vec::new();
    for (turn, (shape, of_tables)) in SHAPES.into_iter().enumerate() {
        for (of, dtype) in FLOATS.into_iter().enumerate() {
            let x = Given::new(dtype, lies[(turn + of) % 4], shape, numbers(&mut rng, shape, 3.0));
            let mut table = || {
                let values = numbers(&mut rng, of_tables, 1.0);
                Given::new(FLOATS[turn % 2 * of], lies[(turn + 1) % 4], of_tables, values)
            };
            let (cos, sin) = (table(), table());
            let d = shape[shape.len() - 1];
            let mut pairs = shape.to_vec();
            pairs[shape.len() - 1] = d / 2;
            let [c, s] = [&cos, &sin].map(|t| broadcast(&t.values, of_tables, &pairs));
            for interleaved in [false, true] {
                let wanted = |at: usize| {
                    let (row, i) = (at / d, at % d);
                    let (pair, second) =
                        if interleaved { (i / 2, i % 2 == 1) } else { (i % (d / 2), i >= d / 2) };
                    let [a, b] = match interleaved {
                        true => [2 * pair, 2 * pair + 1],
                        false => [pair, pair + d / 2],
                    };
                    let [a, b] = [a, b].map(|i| x.values[row * d + i]);
                    let (c, s) = (c[row * (d / 2) + pair], s[row * (d / 2) + pair]);
                    let terms = if second { [b * c, a * s] } else { [a * c, -b * s] };
                    (terms[0] + terms[1], 2.0 * ULP * (terms[0].abs() + terms[1].abs()))
                };
                let in_place = (turn % 2 == 1).then_some(0);
                let out = match in_place {
                    Some(_) => (dtype, x.lies),
                    None => (FLOATS[(turn + of) % 3], lies[of]),
                };
                cases.push(Case {
                    name: format!("rope of {shape:?} {dtype} {:?} {interleaved}", x.lies),
                    wanted: (0..x.values.len()).map(wanted).collect(),
                    inputs: vec![x.clone(), cos.clone(), sin.clone()],
                    out: (out.0, shape.to_vec(), out.1),
                    in_place,
                    op: Box::new(move |x: &[Tensor]| {
                        let rope = ops::rope(&x[0], &x[1], &x[2]);
                        boxed(if interleaved { rope.interleaved() } else { rope })
                    }),
                });
            }
        }
    }
    cases.extend(at_positions(&mut rng));
    cases
}
