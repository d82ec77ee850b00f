//! Operations with indices. All results are exact.

use super::{Case, DType, FLOATS, Given, Half, Lies, Rng, boxed, numbers};
use tilewise::{Tensor, ops};

const LIES: [Lies; 4] = [Lies::Packed, Lies::Within, Lies::Transposed, Lies::TransposedWithin];

fn exact(values: impl IntoIterator<Item = f64>) -> Vec<(f64, f64)> {
    values.into_iter().map(|value| (value, 0.0)).collect()
}

pub(super) fn top_k() -> Vec<Case> {
    const SHAPES: [(&[usize], usize); 12] = [
        (&[1], 1),
        (&[2], 2),
        (&[3, 3], 2),
        (&[4, 9], 9),
        (&[2, 3, 31], 5),
        (&[3, 257], 64),
        (&[300, 2], 1),
        (&[2, 4099], 7),
        (&[2, 3, 2, 2, 1, 2, 2, 6], 3),
        (&[0, 7], 3),
        (&[7, 0], 0),
        (&[1, 100_000], 3),
    ];
    let mut rng = Rng::new(6);
    let mut cases = Vec::new();
    for (turn, (shape, k)) in SHAPES.into_iter().enumerate() {
        for (of, dtype) in FLOATS.into_iter().enumerate() {
            // Few different numbers, so that there are ties.
            let mut values = numbers(&mut rng, shape, 20.0);
            values.iter_mut().for_each(|value| *value = value.round() / 2.0);
            if shape == [4, 9] {
                values[..9].fill(f64::NEG_INFINITY);
                (values[9], values[11], values[14]) = (f64::NAN, f64::INFINITY, f64::NAN);
                (18..27).for_each(|at| values[at] = [0.0, -0.0][at % 2]);
                (27..36).for_each(|at| values[at] = -values[at].abs() - 1.0);
            }
            let x = Given::new(dtype, LIES[(turn + of) % 4], shape, values);
            let mut out = shape.to_vec();
            let length = out.pop().unwrap();
            out.push(k);
            let rows: Vec<_> = x.values.chunks(length.max(1)).collect();
            let order = |row: &[f64]| {
                let number = |i: usize| if row[i].is_nan() { f64::MAX } else { row[i] };
                let finite = |i: usize| if row[i] == f64::INFINITY { 1e300 } else { number(i) };
                let mut order: Vec<_> = (0..row.len()).collect();
                order.sort_by(|&a, &b| finite(b).partial_cmp(&finite(a)).unwrap());
                order.truncate(k);
                order
            };
            let values = rows.iter().flat_map(|row| order(row).into_iter().map(|i| row[i]));
            let indices = rows.iter().flat_map(|row| order(row).into_iter().map(|i| i as f64));
            let wanted = [exact(values), exact(indices)];
            for (which, wanted) in wanted.into_iter().enumerate() {
                let dtypes = [dtype, DType::U32];
                let other = dtypes[1 - which];
                cases.push(Case {
                    name: format!("top_k of {shape:?} {dtype} {:?}, {k}: {which}", x.lies),
                    wanted,
                    inputs: vec![x.clone()],
                    out: (dtypes[which], out.clone(), LIES[(turn / 2 + of) % 4]),
                    in_place: None,
                    op: Box::new(move |x: &[Tensor]| {
                        Box::new(Half(ops::top_k(&x[0], k), which, other))
                    }),
                });
            }
        }
    }
    cases
}

pub(super) fn scatter() -> Vec<Case> {
    // Shapes of x, and rows of the output.
    const SHAPES: [(&[usize], usize); 10] = [
        (&[1], 1),
        (&[5], 3),
        (&[3, 4], 7),
        (&[4, 5], 3),
        (&[7, 2, 3, 1, 6], 9),
        (&[300, 3], 200),
        (&[2, 1030], 4),
        (&[0, 3], 2),
        (&[3, 0], 2),
        (&[4, 3], 0),
    ];
    let mut rng = Rng::new(7);
    let mut cases = Vec::new();
    for (turn, (shape, rows)) in SHAPES.into_iter().enumerate() {
        let dtypes = FLOATS.into_iter().chain([DType::I32, DType::U32]);
        for (of, dtype) in dtypes.enumerate() {
            let mut values = numbers(&mut rng, shape, 90.0);
            values.iter_mut().for_each(|value| *value = value.abs().round());
            let x = Given::new(dtype, LIES[(turn + of) % 4], shape, values);
            // Some rows have several, some none, and some indices lie beyond, one far.
            let mut indices: Vec<_> = numbers(&mut rng, &shape[..1], 1.0)
                .into_iter()
                .map(|number| (number.abs() * (rows as f64 + 1.0)).floor())
                .collect();
            if let [_, _, .., last] = &mut indices[..] {
                *last = f64::from(u32::MAX);
            }
            let width = shape[1..].iter().product::<usize>();
            let untouched = if dtype.is_float() { f64::NAN } else { 0.0 };
            let mut wanted = vec![untouched; rows * width];
            for (i, &row) in indices.iter().enumerate().filter(|(_, row)| **row < rows as f64) {
                let first = row as usize * width;
                wanted[first..first + width].copy_from_slice(&x.values[i * width..][..width]);
            }
            let mut out = shape.to_vec();
            out[0] = rows;
            let lies = [Lies::Packed, Lies::Within][turn % 2];
            cases.push(Case {
                name: format!("scatter of {shape:?} {dtype} {:?} to {rows} rows", x.lies),
                wanted: exact(wanted),
                inputs: vec![x, Given::new(DType::U32, lies, &shape[..1], indices)],
                out: (dtype, out, LIES[(turn / 2 + of) % 4]),
                in_place: None,
                op: Box::new(move |x: &[Tensor]| boxed(ops::scatter(&x[0], &x[1], rows))),
            });
        }
    }
    cases
}
