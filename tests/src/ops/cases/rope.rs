//! Rotary embeddings.

use super::{
    At, Case, FLOATS, Given, LIES, Lies, Rng, ULP, Wanted, boxed, broadcast, numbers, placed,
    position,
};
use tilewise::{Tensor, ops};

/// Shapes of x and of the tables.
const SHAPES: [(&[usize], &[usize]); 9] = [
    (&[300, 2], &[1, 1]),
    (&[1, 2], &[1, 1]),
    (&[3, 4], &[3, 2]),
    (&[2, 3, 5, 10], &[5, 5]),
    (&[2, 3, 4, 16], &[4, 8]),
    (&[2, 1, 7, 6], &[2, 1, 7, 3]),
    (&[5, 66], &[1, 33]),
    (&[0, 3, 8], &[3, 4]),
    (&[3, 6], &[]),
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
                let place = positions[row / tokens].saturating_add(row % tokens).min(rows - 1);
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
                on_units: false,
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
                    on_units: false,
                    op: Box::new(move |x: &[Tensor]| {
                        let rope = ops::rope(&x[0], &x[1], &x[2]);
                        boxed(if interleaved { rope.interleaved() } else { rope })
                    }),
                });
            }
        }
    }
    cases.extend(at_positions(&mut rng));
    cases.extend(NORMED.into_iter().enumerate().flat_map(|(turn, of)| {
        [false, true].map(|interleaved| normed(&mut rng, of, interleaved, turn))
    }));
    cases
}

/// Rows that are normalized: shape of x, position if there is one, and the room if rows go to a
/// cache.
type Normed = (&'static [usize], Option<At>, Option<usize>);

const NORMED: [Normed; 9] = [
    (&[3, 4], None, None),
    (&[300, 2], None, None),
    (&[2, 3, 5, 10], None, None),
    (&[5, 66], None, None),
    (&[2, 3, 4, 16], Some((2, None)), None),
    (&[3, 2, 36], Some((3, Some(&[3]))), None),
    (&[2, 3, 2, 24], Some((1, Some(&[2]))), Some(6)),
    (&[3, 1, 8], Some((2, None)), Some(4)),
    (&[1, 128], Some((0, Some(&[1]))), Some(1)),
];

/// Rows of more blocks than a workgroup has invocations.
pub(super) fn in_parts() -> Vec<Case> {
    let of: Normed = (&[2, 2060], None, None);
    [false, true].map(|interleaved| normed(&mut Rng::new(43), of, interleaved, 0)).into()
}

/// Rows that are normalized and turned.
fn normed(rng: &mut Rng, (shape, at, room): Normed, interleaved: bool, turn: usize) -> Case {
    const EPS: f32 = 1e-3;
    let [tokens, d] = [shape[shape.len() - 2], shape[shape.len() - 1]];
    let rows = if at.is_some() { 20 } else { tokens };
    let mut given = |turn: usize, shape: &[usize]| {
        Given::new(FLOATS[turn % 3], LIES[turn % 4], shape, numbers(rng, shape, 2.0))
    };
    let [x, weight] = [(0, shape), (2, &[d])].map(|(more, of)| given(turn + more, of));
    let [cos, sin] = [1, 3].map(|more| given(turn + more, &[rows, d / 2]));
    let offset = [0.0f32, 1.0][turn % 2];
    let (tensor, positions) = placed(at.unwrap_or((0, None)), shape);
    let row = |row: usize, place: usize| -> Vec<Wanted> {
        let own = &x.values[row * d..][..d];
        let square = own.iter().map(|x| x * x).sum::<f64>() / d as f64 + f64::from(EPS);
        let z = |i: usize| own[i] / square.sqrt() * (weight.values[i] + f64::from(offset));
        let turned = |i: usize| {
            let (pair, second) = match interleaved {
                true => (i / 2, i % 2 == 1),
                false => (i % (d / 2), i >= d / 2),
            };
            let [a, b] = match interleaved {
                true => [2 * pair, 2 * pair + 1],
                false => [pair, pair + d / 2],
            };
            let place = place.min(rows - 1) * (d / 2) + pair;
            let (c, s) = (cos.values[place], sin.values[place]);
            let terms = if second { [z(b) * c, z(a) * s] } else { [z(a) * c, -z(b) * s] };
            let error = (d as f64 / 4.0 + 22.0) * ULP * (terms[0].abs() + terms[1].abs());
            (terms[0] + terms[1], error)
        };
        (0..d).map(turned).collect()
    };
    let entries = positions.len();
    let wanted = match room {
        None => (0..entries * tokens)
            .flat_map(|own| row(own, positions[own / tokens].saturating_add(own % tokens)))
            .collect(),
        Some(room) => (0..entries * room)
            .flat_map(|to| match (to % room).checked_sub(positions[to / room]) {
                Some(token) if token < tokens => row(to / room * tokens + token, to % room),
                _ => vec![(f64::NAN, 0.0); d],
            })
            .collect(),
    };
    let in_place = (turn.is_multiple_of(2) && room.is_none()).then_some(0);
    let mut of_out = shape.to_vec();
    of_out[shape.len() - 2] = room.unwrap_or(tokens);
    let out = match in_place {
        Some(_) => (x.dtype, of_out, x.lies),
        None => (FLOATS[turn / 2 % 3], of_out, LIES[(turn + 1) % 4]),
    };
    Case {
        name: format!("rope of norms of {shape:?}, {at:?}, {room:?}, {interleaved}"),
        wanted,
        inputs: [Some(x), Some(cos), Some(sin), Some(weight), tensor]
            .into_iter()
            .flatten()
            .collect(),
        out,
        in_place,
        on_units: false,
        op: Box::new(move |given: &[Tensor]| {
            let rope = ops::rope(&given[0], &given[1], &given[2]).rms_norm(&given[3], EPS);
            let rope = rope.weight_offset(offset);
            let rope = if interleaved { rope.interleaved() } else { rope };
            let rope = at.into_iter().fold(rope, |rope, at| rope.at(position(at, given)));
            boxed(room.into_iter().fold(rope, |rope, room| rope.into_rows(room)))
        }),
    }
}
