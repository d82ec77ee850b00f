//! Norms.

use super::{Case, FLOATS, Given, Lies, ROWS, Rng, Turn, ULP, Wanted, boxed, numbers, rows, turns};
use tilewise::{Tensor, ops};

const EPS: f32 = 1e-3;

pub(super) fn cases() -> Vec<Case> {
    let mut rng = Rng::new(3);
    turns(&ROWS).into_iter().enumerate().flat_map(|(at, turn)| norms(&mut rng, at, turn)).collect()
}

/// Rows that are too long for a workgroup to keep.
pub(super) fn in_parts() -> Vec<Case> {
    let (rng, [f32, ..]) = (&mut Rng::new(14), FLOATS);
    let strided = norms(rng, 1, (&[2, 8193], f32, f32, Lies::Transposed, Lies::Within));
    let packed = norms(rng, 2, (&[2, 8196], f32, f32, Lies::Packed, Lies::Packed));
    strided.into_iter().chain(packed).collect()
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
