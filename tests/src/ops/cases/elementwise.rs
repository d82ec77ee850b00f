//! Functions of elements, and copies.

use super::{
    Case, DType, FLOATS, Given, Lies, ROWS, Rng, ULP, Wanted, boxed, broadcast, numbers, turns,
};
use tilewise::Tensor;
use tilewise::ops::{self, Binary, Unary};

/// Numbers at which functions often go wrong.
const EDGES: [f64; 22] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    -3.0,
    10.5,
    -10.5,
    12.5,
    -12.5,
    89.0,
    -89.0,
    1e-30,
    -1e-30,
    3e4,
    -3e4,
    1e38,
    -1e38,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

pub(super) fn cases() -> Vec<Case> {
    let mut rng = Rng::new(2);
    let mut cases = Vec::new();
    for (turn, &function) in Unary::ALL.iter().enumerate() {
        for (of, dtype) in FLOATS.into_iter().enumerate() {
            let (shape, lies) = ([3, 21 + turn], [Lies::Packed, Lies::TransposedWithin][turn % 2]);
            let mut values = numbers(&mut rng, &shape, 8.0);
            values[..EDGES.len()].copy_from_slice(&EDGES);
            let out = (FLOATS[(turn + of) % 3], [Lies::Within, Lies::Packed][of % 2]);
            let x = Given::new(dtype, lies, &shape, values);
            cases.push(unary(function, x, out, None));
        }
    }
    // One function runs in all shapes and places.
    for (shape, dtype, out, lies, out_lies) in turns(&ROWS) {
        let x = Given::new(dtype, lies, shape, numbers(&mut rng, shape, 3.0));
        cases.push(unary(Unary::Square, x.clone(), (out, out_lies), None));
        cases.push(unary(Unary::Neg, x, (dtype, lies), Some(0)));
    }
    let x = Given::new(DType::F32, Lies::Packed, &[], vec![3.0]);
    cases.push(unary(Unary::Neg, x, (DType::F16, Lies::Packed), None));
    let x = Given::new(DType::BF16, Lies::Within, &[22], EDGES.to_vec());
    cases.push(Case {
        name: "scale".into(),
        wanted: x.values.iter().map(|x| (-1.25 * x, (1.25 * x).abs() * ULP)).collect(),
        inputs: vec![x],
        out: (DType::F32, vec![22], Lies::Packed),
        in_place: None,
        on_units: false,
        op: Box::new(|x: &[Tensor]| boxed(ops::scale(&x[0], -1.25))),
    });
    cases.extend(binary(&mut rng));
    cases.extend(copies(&mut rng));
    cases
}

fn unary(function: Unary, x: Given, (dtype, lies): (DType, Lies), in_place: Option<usize>) -> Case {
    let wanted = x.values.iter().map(|&x| tilewise_oracle::unary(function, x)).collect();
    Case {
        name: format!("{} of {:?} {} {:?}", function.name(), x.shape, x.dtype, x.lies),
        wanted,
        out: (dtype, x.shape.clone(), lies),
        inputs: vec![x],
        in_place,
        on_units: false,
        op: Box::new(move |x: &[Tensor]| boxed(ops::unary(&x[0], function))),
    }
}

fn binary(rng: &mut Rng) -> Vec<Case> {
    let shapes: [[&[usize]; 3]; 8] = [
        [&[4, 22], &[4, 22], &[4, 22]],
        [&[5, 1], &[1, 7], &[5, 7]],
        [&[2, 3, 4], &[4], &[2, 3, 4]],
        [&[33], &[], &[33]],
        [&[2, 1, 6], &[3, 1], &[2, 3, 6]],
        [&[3, 8], &[2, 3, 1, 1], &[2, 3, 3, 8]],
        [&[0, 3], &[1, 3], &[0, 3]],
        [&[257], &[3, 257], &[3, 257]],
    ];
    let lies = [Lies::Packed, Lies::Within, Lies::Transposed, Lies::TransposedWithin];
    let mut cases = Vec::new();
    for (of, &function) in Binary::ALL.iter().enumerate() {
        // One function runs in all shapes, the others in the first.
        let shapes = if function == Binary::Add { &shapes[..] } else { &shapes[..1] };
        for (turn, &[left, right, shape]) in shapes.iter().enumerate() {
            let mut given = |own: &[usize], turn: usize| {
                let mut values = numbers(rng, own, 4.0);
                if own.len() == 2 && own[1] == 22 {
                    let edges = EDGES.iter().cycle().skip(turn % 5).copied();
                    values.iter_mut().step_by(1 + turn % 2).zip(edges).for_each(|(v, e)| *v = e);
                    // Whole numbers, for powers.
                    values.iter_mut().skip(44).for_each(|value| *value = value.round());
                }
                Given::new(FLOATS[turn % 3], lies[turn % 4], own, values)
            };
            let inputs = vec![given(left, of + turn), given(right, of + 2 * turn + 1)];
            for in_place in [None, Some(0), Some(1)] {
                if in_place.is_some_and(|at: usize| inputs[at].shape != shape) {
                    continue;
                }
                let out = match in_place {
                    Some(at) => (inputs[at].dtype, inputs[at].lies),
                    None => (FLOATS[(of + turn / 2) % 3], lies[turn / 2 % 4]),
                };
                cases.push(two(function, inputs.clone(), shape, out, in_place));
            }
        }
    }
    // Powers of special numbers.
    let bases = [0.0, -0.0, 1.0, -1.0, 1.1, -2.0, -0.5, 8.0, f64::INFINITY, -1e30, f64::NAN];
    let exponents = [0.0, 1.0, -1.0, 2.0, -3.0, 0.5, -0.5, f64::NAN, 40.0];
    let a = Given::new(DType::F32, Lies::Packed, &[11, 1], bases.to_vec());
    let b = Given::new(DType::F32, Lies::Packed, &[9], exponents.to_vec());
    let out = (DType::F32, Lies::Packed);
    cases.push(two(Binary::Pow, vec![a, b], &[11, 9], out, None));
    // An operand that is given twice, and both in place.
    let x = Given::new(DType::F16, Lies::Packed, &[3, 5], numbers(rng, &[3, 5], 2.0));
    let wanted = x.values.iter().map(|&x| (x * x, x * x * 1e-6)).collect();
    cases.push(Case {
        name: "the square of a tensor in place".into(),
        wanted,
        out: (x.dtype, x.shape.clone(), x.lies),
        inputs: vec![x],
        in_place: Some(0),
        on_units: false,
        op: Box::new(|x: &[Tensor]| boxed(ops::mul(&x[0], &x[0]))),
    });
    cases.extend(gates(rng));
    cases
}

/// The gate of GPT-OSS with its numbers, and with others; special numbers meet each other.
fn gates(rng: &mut Rng) -> Vec<Case> {
    let mut cases = Vec::new();
    let special = [-0.0, -1.0, 7.0, 7.5, -7.5, -60.0, 1e38, -1e38].into_iter().chain([
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ]);
    for (turn, numbers_of) in [[1.702f32, 7.0], [1.0, 2.5], [0.25, 0.0]].into_iter().enumerate() {
        for dtype in FLOATS {
            let mut given = |shape: &[usize], lies| {
                let mut values = numbers(rng, shape, 9.0);
                values.iter_mut().zip(special.clone()).for_each(|(v, special)| *v = special);
                Given::new(dtype, lies, shape, values)
            };
            let gate = given(&[13, 1], Lies::Packed);
            let up = given(&[4, 13, 13], Lies::TransposedWithin);
            let up = if turn == 0 { up } else { given(&[13], Lies::Within) };
            let shape = [&up.shape[..], &[13, 13]][usize::from(turn > 0)].to_vec();
            let [a, b] = [&gate, &up].map(|one| broadcast(&one.values, &one.shape, &shape));
            let wide = numbers_of.map(f64::from);
            let wanted = |(&a, &b): (&f64, &f64)| tilewise_oracle::swiglu_oai(a, b, wide);
            let in_place = (turn == 0).then_some(1);
            cases.push(Case {
                name: format!("swiglu_oai of {dtype} by {numbers_of:?}"),
                wanted: a.iter().zip(&b).map(wanted).collect(),
                out: (dtype, shape, if turn == 0 { up.lies } else { Lies::Packed }),
                inputs: vec![gate, up],
                in_place,
                on_units: false,
                op: Box::new(move |x: &[Tensor]| {
                    let [alpha, limit] = numbers_of;
                    boxed(ops::swiglu_oai(&x[0], &x[1], alpha, limit))
                }),
            });
        }
    }
    cases
}

fn two(
    function: Binary,
    inputs: Vec<Given>,
    shape: &[usize],
    (dtype, lies): (DType, Lies),
    in_place: Option<usize>,
) -> Case {
    let [a, b] = [0, 1].map(|at| broadcast(&inputs[at].values, &inputs[at].shape, shape));
    let wanted = |(&a, &b): (&f64, &f64)| tilewise_oracle::binary(function, a, b);
    Case {
        name: format!("{} of {:?} and {:?}", function.name(), inputs[0].shape, inputs[1].shape)
            + &format!(" {} {} to {dtype} {lies:?}", inputs[0].dtype, inputs[1].dtype),
        wanted: a.iter().zip(&b).map(wanted).collect(),
        out: (dtype, shape.to_vec(), lies),
        inputs,
        in_place,
        on_units: false,
        op: Box::new(move |x: &[Tensor]| boxed(ops::binary(&x[0], &x[1], function))),
    }
}

fn copies(rng: &mut Rng) -> Vec<Case> {
    let all = [DType::F32, DType::F16, DType::BF16, DType::I32, DType::U32];
    let lies = [Lies::Packed, Lies::Within, Lies::Transposed, Lies::TransposedWithin];
    let mut cases = Vec::new();
    for (turn, (from, to)) in all.iter().flat_map(|&a| all.map(|b| (a, b))).enumerate() {
        let shape = [3, 2 + turn % 5];
        let mut values = numbers(rng, &shape, 60.0);
        match from {
            DType::I32 => values[0] = -2_147_483_647.0,
            DType::U32 => values = values.into_iter().map(|x| x.abs() * 7e7).collect(),
            _ => values[0] = 1e10,
        }
        if !from.is_float() {
            values = values.into_iter().map(f64::trunc).collect();
        }
        let x = Given::new(from, lies[turn % 4], &shape, values);
        let wanted = x.values.iter().map(|&x| converted(from, to, x)).collect();
        cases.push(Case {
            name: format!("copy of {from} to {to}"),
            wanted,
            out: (to, shape.to_vec(), lies[turn / 4 % 4]),
            inputs: vec![x],
            in_place: None,
            on_units: false,
            op: Box::new(move |x: &[Tensor]| boxed(ops::copy(&x[0]).out_dtype(to))),
        });
    }
    cases
}

fn converted(from: DType, to: DType, x: f64) -> Wanted {
    match (from, to) {
        (DType::I32, DType::U32) => (f64::from(x as i32 as u32), 0.0),
        (DType::U32, DType::I32) => (f64::from(x as u32 as i32), 0.0),
        // WGSL converts to the last f32 within the range.
        (_, DType::I32) => (x.trunc().clamp(-2_147_483_648.0, 2_147_483_520.0), 0.0),
        (_, DType::U32) => (x.trunc().clamp(0.0, 4_294_967_040.0), 0.0),
        // An integer is rounded to f32 first.
        (DType::I32 | DType::U32, _) => (x, x.abs() * DType::F32.unit_roundoff()),
        _ => (x, 0.0),
    }
}
