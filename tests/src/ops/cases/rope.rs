//! Rotary embeddings.

use super::{Case, FLOATS, Given, Lies, Rng, ULP, boxed, broadcast, numbers};
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
    cases
}
