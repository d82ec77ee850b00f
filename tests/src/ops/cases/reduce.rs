//! Reductions along an axis.

use super::{Case, DType, FLOATS, Given, Lies, Rng, ULP, Wanted, boxed, numbers};
use tilewise::{Tensor, ops};

/// Shapes, and the axis along which they are reduced.
const SHAPES: [(&[usize], usize); 22] = [
    (&[300, 2], 1),
    (&[4, 5, 2], 1),
    (&[1], 0),
    (&[2], 0),
    (&[3, 3], 0),
    (&[3, 3], 1),
    (&[31, 5], 0),
    (&[5, 31], 1),
    (&[2, 33, 3], 1),
    (&[257, 40], 0),
    (&[2, 1000], 1),
    (&[1000, 2], 0),
    (&[4099], 0),
    (&[100_000], 0),
    (&[2, 3, 2, 3, 2, 3, 2, 5], 6),
    (&[70, 3, 1], 2),
    (&[3, 16], 1),
    (&[40, 300, 2], 1),
    (&[3, 0], 1),
    (&[300, 2], 0),
    (&[5, 12], 1),
    (&[0, 4], 1),
];

pub(super) fn cases() -> Vec<Case> {
    let mut rng = Rng::new(4);
    let lies = [Lies::Packed, Lies::Within, Lies::Transposed, Lies::TransposedWithin];
    let mut cases = Vec::new();
    for (turn, (shape, axis)) in SHAPES.into_iter().enumerate() {
        for (of, dtype) in FLOATS.into_iter().enumerate() {
            // There are few different numbers, so that there are ties. The first row has edges.
            let mut values = numbers(&mut rng, shape, 20.0);
            values.iter_mut().for_each(|value| *value = value.round() / 2.0);
            if shape == [31, 5] {
                (values[7 * 5], values[9 * 5], values[3 * 5]) =
                    (-f64::NAN, f64::NAN, f64::INFINITY);
                (0..31).for_each(|i| values[5 * i + 1] = -values[5 * i + 1].abs());
                (0..31).for_each(|i| values[5 * i + 2] = f64::NEG_INFINITY);
                (0..31).for_each(|i| values[5 * i + 3] = [0.0, -0.0][(i + 1) % 2]);
            }
            // These numbers lie below the zeros that are read beyond the ends of rows.
            if (shape, axis) == (&[300, 2][..], 0) {
                values.iter_mut().step_by(2).for_each(|value| *value = -value.abs() - 1.0);
            }
            let x = Given::new(dtype, lies[(turn + of) % 4], shape, values);
            let (inner, n) = (shape[axis + 1..].iter().product::<usize>(), shape[axis]);
            let count = shape.iter().product::<usize>().checked_div(n);
            let mut out = shape.to_vec();
            out.remove(axis);
            let count = count.unwrap_or_else(|| out.iter().product());
            let row = |at: usize| {
                let first = at / inner * inner * n + at % inner;
                (0..n).map(|i| x.values[first + i * inner]).collect::<Vec<_>>()
            };
            let rows: Vec<_> = (0..count).map(row).collect();
            let place = (FLOATS[(turn + of) % 3], out, lies[(turn / 2 + of) % 4]);
            cases.push(case("sum", &x, axis, &rows, place.clone(), sum));
            if n > 0 {
                cases.push(case("mean", &x, axis, &rows, place.clone(), mean));
                cases.push(case("min", &x, axis, &rows, place.clone(), |row| (smallest(row), 0.0)));
                cases.push(case("max", &x, axis, &rows, place.clone(), |row| {
                    (row[largest(row)], 0.0)
                }));
                let place = (DType::U32, place.1, place.2);
                cases.push(case("arg_max", &x, axis, &rows, place, |row| {
                    (largest(row) as f64, 0.0)
                }));
            }
        }
    }
    cases
}

/// Rows of a workgroup each, rows in nine segments, and rows in more segments than invocations.
pub(super) fn in_parts() -> Vec<Case> {
    let mut rng = Rng::new(15);
    let mut cases = Vec::new();
    for (name, shape, axis) in
        [("sum", [2, 2049], 1), ("arg_max", [1160, 40], 0), ("arg_max", [34_000, 2], 0)]
    {
        let mut values = numbers(&mut rng, &shape, 20.0);
        if shape[0] > 2 {
            // The largest element of the first row lies in the last segment, twice.
            let last = values.len() - shape[1];
            (values[last - shape[1]], values[last]) = (50.0, 50.0);
        }
        let x = Given::new(DType::F32, Lies::Packed, &shape, values);
        let (count, step) = if axis == 0 { (shape[1], shape[1]) } else { (shape[0], 1) };
        let first = |row: usize| if axis == 0 { row } else { row * shape[1] };
        let row = |row: usize| {
            x.values[first(row)..].iter().copied().step_by(step).take(shape[axis]).collect()
        };
        let rows: Vec<_> = (0..count).map(row).collect();
        let dtype = if name == "sum" { DType::F32 } else { DType::U32 };
        let out = (dtype, vec![count], Lies::Packed);
        cases.push(match name {
            "sum" => case(name, &x, axis, &rows, out, sum),
            _ => case(name, &x, axis, &rows, out, |row| (largest(row) as f64, 0.0)),
        });
    }
    cases
}

fn sum(row: &[f64]) -> Wanted {
    let magnitude: f64 = row.iter().map(|x| x.abs()).sum();
    (row.iter().sum(), (row.len() as f64 / 8.0 + 8.0) * ULP * magnitude)
}

fn mean(row: &[f64]) -> Wanted {
    let ((sum, error), n) = (sum(row), row.len() as f64);
    (sum / n, error / n + ULP * row.iter().map(|x| x.abs()).sum::<f64>() / n)
}

fn smallest(row: &[f64]) -> f64 {
    row.iter().copied().fold(f64::INFINITY, |a, b| if a < b || a.is_nan() { a } else { b })
}

/// The index of the largest number; of several, the first.
fn largest(row: &[f64]) -> usize {
    let larger = |a: f64, b: f64| !b.is_nan() && (a.is_nan() || a > b);
    (1..row.len()).fold(0, |best, i| if larger(row[i], row[best]) { i } else { best })
}

fn case(
    name: &'static str,
    x: &Given,
    axis: usize,
    rows: &[Vec<f64>],
    out: (DType, Vec<usize>, Lies),
    wanted: impl Fn(&[f64]) -> Wanted,
) -> Case {
    Case {
        name: format!("{name} of {:?} {} {:?} along {axis} to {out:?}", x.shape, x.dtype, x.lies),
        wanted: rows.iter().map(|row| wanted(row)).collect(),
        inputs: vec![x.clone()],
        out,
        in_place: None,
        on_units: false,
        op: Box::new(move |x: &[Tensor]| {
            boxed(match name {
                "sum" => ops::sum(&x[0], axis),
                "mean" => ops::mean(&x[0], axis),
                "min" => ops::min(&x[0], axis),
                "max" => ops::max(&x[0], axis),
                _ => ops::arg_max(&x[0], axis),
            })
        }),
    }
}
