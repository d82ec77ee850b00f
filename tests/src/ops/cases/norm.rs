//! Norms.

use super::{
    Case, DType, FLOATS, Given, Half, LIES, Lies, ROWS, Rng, Turn, U, ULP, Wanted, boxed,
    broadcast, numbers, rows, turns,
};
use tilewise::{Tensor, ops};

const EPS: f32 = 1e-3;

pub(super) fn cases() -> Vec<Case> {
    let mut rng = Rng::new(3);
    let turns = turns(&ROWS).into_iter().enumerate();
    let mut cases: Vec<_> = turns.flat_map(|(at, turn)| norms(&mut rng, at, turn)).collect();
    cases.extend(with_residuals(&mut rng));
    cases.extend(of_sums(&mut rng));
    cases
}

/// Sums and their norms. The last number says which operand is the sum, too.
fn of_sums(rng: &mut Rng) -> Vec<Case> {
    const SHAPES: [(&[usize], &[usize], Option<usize>); 6] = [
        (&[3, 12], &[3, 12], Some(0)),
        (&[2, 3, 31], &[3, 31], None),
        (&[4, 33], &[4, 33], Some(1)),
        (&[2, 260], &[2, 1], None),
        (&[300, 4], &[300, 4], Some(0)),
        (&[8], &[8], Some(1)),
    ];
    let mut cases = Vec::new();
    for (turn, (shape, of_residual, in_place)) in SHAPES.into_iter().enumerate() {
        for (of, dtype) in FLOATS.into_iter().enumerate() {
            for normed in [false, true] {
                let operands = (shape, of_residual, in_place);
                cases.extend(of_sum(rng, turn + of, dtype, operands, normed));
            }
        }
    }
    cases
}

/// The sum, and its norm. The residual may have a norm before it is added.
fn of_sum(
    rng: &mut Rng,
    turn: usize,
    dtype: DType,
    (shape, of_residual, in_place): (&[usize], &[usize], Option<usize>),
    normed: bool,
) -> [Case; 2] {
    let n = shape[shape.len() - 1];
    let mut given = |dtype, lies, shape: &[usize], spread| {
        Given::new(dtype, lies, shape, numbers(rng, shape, spread))
    };
    let x = given(dtype, LIES[turn % 4], shape, 3.0);
    let weight = given(FLOATS[(turn + 1) % 3], LIES[turn / 2 % 4], &[n], 1.0);
    let residual = given(FLOATS[turn % 3], LIES[(turn + 1) % 4], of_residual, 9.0);
    let behind = given(FLOATS[turn % 3], LIES[(turn + 2) % 4], &[n], 1.0);
    let offset = [0.0f32, 1.0][turn % 2];
    let with_offset = |own: &Given| own.values.iter().map(|w| w + f64::from(offset)).collect();
    let [weights, behind_weights]: [Vec<f64>; 2] = [&weight, &behind].map(with_offset);
    // A weight with its offset rounds, too.
    let rounded = |(y, error): Wanted| (y, error + 2.0 * ULP * y.abs());
    let added = broadcast(&residual.values, of_residual, shape);
    let added: Vec<Wanted> = match normed {
        true => {
            let row = |row| norm(row, &behind_weights, None);
            rows(shape, &added).flat_map(row).map(rounded).collect()
        }
        false => added.into_iter().map(|added| (added, 0.0)).collect(),
    };
    let sum = |(x, (added, error)): (&f64, &Wanted)| (x + added, error + U * (x + added).abs());
    let sums: Vec<Wanted> = x.values.iter().zip(&added).map(sum).collect();
    let of_row = |sums: &[Wanted]| {
        let row: Vec<f64> = sums.iter().map(|(sum, _)| *sum).collect();
        let s = (row.iter().map(|v| v * v).sum::<f64>() / n as f64 + f64::from(EPS)).sqrt();
        // The errors of the sums reach the norm: by its own element, and by the length of the row.
        let length = sums.iter().map(|(v, error)| v.abs() * error).sum::<f64>() / n as f64 / s;
        let off = |((y, error), ((_, of_sum), weight)): (Wanted, (&Wanted, &f64))| {
            (y, error + 1.01 * (weight.abs() * of_sum + y.abs() * length) / s)
        };
        let norms = norm(&row, &weights, None).into_iter().map(rounded);
        norms.zip(sums.iter().zip(&weights)).map(off).collect::<Vec<_>>()
    };
    let wanted = [sums.clone(), sums.chunks(n).flat_map(of_row).collect()];
    let inputs = [x, weight, residual, behind];
    let mut which = 0..;
    wanted.map(|wanted| {
        let which = which.next().unwrap();
        let in_place = in_place.filter(|_| which == 0).map(|at| [0, 2][at]);
        let (out, lies) = match in_place {
            Some(at) => (inputs[at].dtype, inputs[at].lies),
            None => (FLOATS[(turn + 2) % 3], LIES[turn % 3]),
        };
        Case {
            name: format!(
                "sum of {shape:?} {dtype} and {of_residual:?}, normed {normed}, or its norm: \
                 {which}"
            ),
            wanted,
            inputs: inputs.to_vec(),
            out: (out, shape.to_vec(), lies),
            in_place,
            on_units: false,
            op: Box::new(move |x: &[Tensor]| {
                let norm = ops::add_rms_norm(&x[0], &x[2], &x[1], EPS).weight_offset(offset);
                let norm = if normed { norm.norm_residual(&x[3]) } else { norm };
                Box::new(Half(norm, which, (FLOATS[turn % 3], None)))
            }),
        }
    })
}

/// Norms with an offset of the weights, added to a residual. The last number says which operand is
/// the output.
fn with_residuals(rng: &mut Rng) -> Vec<Case> {
    const SHAPES: [(&[usize], &[usize], Option<usize>); 6] = [
        (&[3, 12], &[3, 12], Some(2)),
        (&[2, 3, 31], &[3, 31], Some(0)),
        (&[4, 31], &[31], None),
        (&[2, 260], &[2, 1], None),
        (&[300, 4], &[300, 4], Some(0)),
        (&[8], &[8], Some(2)),
    ];
    let mut cases = Vec::new();
    for (turn, (shape, of_residual, in_place)) in SHAPES.into_iter().enumerate() {
        for (of, dtype) in FLOATS.into_iter().enumerate() {
            let n = shape[shape.len() - 1];
            let mut given = |dtype, lies, shape: &[usize], spread| {
                Given::new(dtype, lies, shape, numbers(rng, shape, spread))
            };
            let lies = LIES[(turn + of) % 4];
            let x = given(dtype, lies, shape, 3.0);
            let weight = given(FLOATS[turn % 3], LIES[of], &[n], 1.0);
            let residual = given(FLOATS[(of + turn) % 3], LIES[turn % 4], of_residual, 9.0);
            let offset = [1.0f32, -0.25][turn % 2];
            let weights: Vec<_> = weight.values.iter().map(|w| w + f64::from(offset)).collect();
            let added = broadcast(&residual.values, of_residual, shape);
            let normed: Vec<_> =
                rows(shape, &x.values).flat_map(|row| norm(row, &weights, None)).collect();
            let sum = |((value, error), added): (Wanted, &f64)| {
                let rounding = (3.0 * value.abs() + added.abs()) * ULP;
                (value + added, error + rounding)
            };
            let inputs = vec![x, weight, residual];
            let (out, out_lies) = match in_place {
                Some(at) => (inputs[at].dtype, inputs[at].lies),
                None => (FLOATS[(turn + of + 1) % 3], LIES[of]),
            };
            cases.push(Case {
                name: format!("norm of {shape:?} {dtype} {lies:?}, residual {of_residual:?}"),
                wanted: normed.into_iter().zip(&added).map(sum).collect(),
                inputs,
                out: (out, shape.to_vec(), out_lies),
                in_place,
                on_units: false,
                op: Box::new(move |x: &[Tensor]| {
                    let norm = ops::rms_norm(&x[0], &x[1], EPS).weight_offset(offset);
                    boxed(norm.residual(&x[2]))
                }),
            });
        }
    }
    let mut given =
        |shape: &[usize]| Given::new(DType::F32, Lies::Packed, shape, numbers(rng, shape, 2.0));
    let inputs = [given(&[3, 9]), given(&[9]), given(&[9]), given(&[3, 9])];
    let [x, weight, bias, residual] = &inputs;
    let normed = rows(&x.shape, &x.values)
        .flat_map(|row| norm(row, &weight.values, Some(&bias.values)))
        .zip(&residual.values);
    cases.push(Case {
        name: "layer norm with a residual".into(),
        wanted: normed.map(|((y, error), r)| (y + r, error + (y.abs() + r.abs()) * ULP)).collect(),
        inputs: inputs.to_vec(),
        out: (DType::F32, vec![3, 9], Lies::Within),
        in_place: None,
        on_units: false,
        op: Box::new(|x: &[Tensor]| {
            boxed(ops::layer_norm(&x[0], &x[1], &x[2], EPS).residual(&x[3]))
        }),
    });
    cases
}

/// Rows that are too long for a workgroup to keep.
pub(super) fn in_parts() -> Vec<Case> {
    let (rng, [f32, ..]) = (&mut Rng::new(14), FLOATS);
    let strided = norms(rng, 1, (&[2, 8193], f32, f32, Lies::Transposed, Lies::Within));
    let packed = norms(rng, 2, (&[2, 8196], f32, f32, Lies::Packed, Lies::Packed));
    let operands: (&[usize], &[usize], _) = (&[2, 8193], &[2, 8193], Some(0));
    let sums = [false, true].map(|normed| of_sum(rng, 0, f32, operands, normed));
    strided.into_iter().chain(packed).chain(sums.into_iter().flatten()).collect()
}

/// Both norms of a tensor.
fn norms(rng: &mut Rng, at: usize, (shape, dtype, out, lies, out_lies): Turn) -> [Case; 2] {
    let n = shape[shape.len() - 1];
    let mut values = numbers(rng, shape, 3.0);
    // Every second element is moved away from 0, and one row has NaN.
    values.iter_mut().step_by(2).for_each(|value| *value += 1.5);
    if n == 31 {
        values[2 * n + 30] = f64::NAN;
    }
    let x = Given::new(dtype, lies, shape, values);
    let mut vector = |at: usize| {
        let lies = [Lies::Packed, Lies::Within, Lies::Transposed, Lies::TransposedWithin];
        Given::new(FLOATS[at % 3], lies[at % 4], &[n], numbers(rng, &[n], 1.0))
    };
    let (weight, bias) = (vector(at), vector(at + 1));
    [true, false].map(|centred| {
        let row = |row| norm(row, &weight.values, centred.then_some(&bias.values[..]));
        let wanted = rows(shape, &x.values).flat_map(row).collect();
        let in_place = at.is_multiple_of(3).then_some(0);
        let (dtype, lies) = if in_place.is_some() { (dtype, lies) } else { (out, out_lies) };
        Case {
            name: format!("norm of {shape:?} {} {:?}, centred {centred}", x.dtype, x.lies),
            wanted,
            inputs: vec![x.clone(), weight.clone(), bias.clone()],
            out: (dtype, shape.to_vec(), lies),
            in_place,
            on_units: false,
            op: Box::new(move |x: &[Tensor]| match centred {
                true => boxed(ops::layer_norm(&x[0], &x[1], &x[2], EPS)),
                false => boxed(ops::rms_norm(&x[0], &x[1], EPS)),
            }),
        }
    })
}

/// The norm of a row, with the errors that the operations' documentation permits.
fn norm(row: &[f64], weight: &[f64], bias: Option<&[f64]>) -> Vec<Wanted> {
    let (n, k) = (row.len() as f64, row.len() as f64 / 4.0 + 20.0);
    let mean = if bias.is_some() { row.iter().sum::<f64>() / n } else { 0.0 };
    let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    let s = (variance + f64::from(EPS)).sqrt();
    let m = if bias.is_some() { row.iter().map(|x| x.abs()).sum::<f64>() / n / s } else { 0.0 };
    let element = |(i, x): (usize, &f64)| {
        let (z, weight) = ((x - mean) / s, weight[i]);
        let bias = bias.map_or(0.0, |bias| bias[i]);
        let error = (m + z.abs()) * k + (m * k).powi(2) * ULP * z.abs();
        (z * weight + bias, (error * weight.abs() + bias.abs()) * ULP)
    };
    row.iter().enumerate().map(element).collect()
}
