//! Operations with indices. All results are exact.

use super::{Case, DType, FLOATS, Given, Half, LIES, Lies, ROWS, Rng, ULP, Wanted, boxed, numbers};
use tilewise::{Tensor, ops};

/// The places of vectors with strides.
const STRIDED: Lies = Lies::TransposedWithin;

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
            // There are few different numbers, so that there are ties.
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
                    on_units: false,
                    op: Box::new(move |x: &[Tensor]| {
                        Box::new(Half(ops::top_k(&x[0], k), which, (other, None)))
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
        (&[300, 2], 200),
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
            // Some rows get several indices, some none. Some indices lie beyond, one of them far.
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
            let lies = LIES[(turn + 2 * of) % 4];
            cases.push(Case {
                name: format!("scatter of {shape:?} {dtype} {:?} to {rows} rows", x.lies),
                wanted: exact(wanted),
                inputs: vec![x, Given::new(DType::U32, lies, &shape[..1], indices)],
                out: (dtype, out, LIES[(turn / 2 + of) % 4]),
                in_place: None,
                on_units: false,
                op: Box::new(move |x: &[Tensor]| boxed(ops::scatter(&x[0], &x[1], rows))),
            });
        }
    }
    cases
}

/// Random integers from 0 up to a bound.
fn integers(rng: &mut Rng, shape: &[usize], bound: f64) -> Vec<f64> {
    let fine = numbers(rng, shape, 1.0 / 1024.0);
    let coarse = numbers(rng, shape, 1.0);
    let number = |(fine, coarse): (f64, f64)| ((fine + coarse).abs().fract() * bound).floor();
    fine.into_iter().zip(coarse).map(number).collect()
}

pub(super) fn histogram() -> Vec<Case> {
    const SHAPES: [(&[usize], usize); 11] = [
        (&[1], 1),
        (&[], 3),
        (&[9], 4),
        (&[400], 7),
        (&[5, 31], 40),
        (&[2, 3, 33], 2048),
        (&[300], 2049),
        (&[40_000], 5),
        (&[9000], 70_000),
        (&[0, 3], 4),
        (&[5], 0),
    ];
    let mut rng = Rng::new(8);
    let mut cases = Vec::new();
    for (turn, (shape, bins)) in SHAPES.into_iter().enumerate() {
        for of in 0..2 {
            let lies = [LIES[(turn + 2 * of) % 4], LIES[(turn + of) % 4]];
            cases.push(histogram_of(&mut rng, shape, bins, lies));
        }
    }
    cases
}

fn histogram_of(rng: &mut Rng, shape: &[usize], bins: usize, lies: [Lies; 2]) -> Case {
    // Some keys lie beyond the bins, one of them far.
    let mut keys = integers(rng, shape, bins as f64 * 1.2 + 1.0);
    if let [_, _, .., last] = &mut keys[..] {
        *last = f64::from(u32::MAX);
    }
    let mut wanted = vec![0.0; bins];
    for &key in keys.iter().filter(|key| **key < bins as f64) {
        wanted[key as usize] += 1.0;
    }
    Case {
        name: format!("histogram of {shape:?} {lies:?}, {bins} bins"),
        wanted: exact(wanted),
        inputs: vec![Given::new(DType::U32, lies[0], shape, keys)],
        out: (DType::U32, vec![bins], lies[1]),
        in_place: None,
        on_units: false,
        op: Box::new(move |x: &[Tensor]| boxed(ops::histogram(&x[0], bins))),
    }
}

pub(super) fn scan() -> Vec<Case> {
    let mut rng = Rng::new(9);
    let long: [&[usize]; 3] = [&[16_384], &[2, 16_400], &[300, 40]];
    let short = ROWS.into_iter().filter(|shape| shape.iter().product::<usize>() < 10_000);
    let mut cases = Vec::new();
    for (turn, shape) in short.chain(long).enumerate() {
        for (of, dtype) in [DType::U32, DType::I32, DType::F32].into_iter().enumerate() {
            let lies = [LIES[(turn + of) % 4], LIES[(turn / 2 + of) % 4]];
            cases.push(scan_of(&mut rng, shape, dtype, (turn + of) % 2 == 0, lies));
        }
    }
    cases
}

fn scan_of(rng: &mut Rng, shape: &[usize], dtype: DType, total: bool, lies: [Lies; 2]) -> Case {
    // Integers soon wrap around.
    let values = match dtype {
        DType::U32 => integers(rng, shape, 2f64.powi(32)),
        DType::I32 => {
            integers(rng, shape, 2f64.powi(32)).iter().map(|x| x - 2f64.powi(31)).collect()
        }
        _ => numbers(rng, shape, 9.0),
    };
    let x = Given::new(dtype, lies[0], shape, values);
    let length = shape[shape.len() - 1];
    let error = (length as f64 / 1024.0 + 40.0) * ULP;
    let wrapped = |sum: f64| match dtype {
        DType::U32 => sum.rem_euclid(2f64.powi(32)),
        DType::I32 => (sum + 2f64.powi(31)).rem_euclid(2f64.powi(32)) - 2f64.powi(31),
        _ => sum,
    };
    let mut wanted: Vec<Wanted> = Vec::new();
    for row in 0..shape[..shape.len() - 1].iter().product() {
        let (mut sum, mut magnitude) = (0.0, 0.0);
        for &value in &x.values[row * length..][..length] {
            wanted.push((wrapped(sum), error * magnitude));
            (sum, magnitude) = (sum + value, magnitude + value.abs());
        }
        if total {
            wanted.push((wrapped(sum), error * magnitude));
        }
    }
    let mut out = shape.to_vec();
    *out.last_mut().unwrap() += usize::from(total);
    Case {
        name: format!("scan of {shape:?} {dtype} {lies:?}, total {total}"),
        wanted,
        inputs: vec![x],
        out: (dtype, out, lies[1]),
        in_place: None,
        on_units: false,
        op: Box::new(move |x: &[Tensor]| {
            let scan = ops::exclusive_scan(&x[0]);
            boxed(if total { scan.with_total() } else { scan })
        }),
    }
}

pub(super) fn sort() -> Vec<Case> {
    let mut rng = Rng::new(10);
    let sizes = [(0, 8), (1, 32), (3, 1), (255, 8), (256, 5), (257, 13), (350, 32), (4097, 20)];
    let mut cases = Vec::new();
    for (turn, (size, bits)) in sizes.into_iter().enumerate() {
        for payload in [false, true] {
            let lies = if (turn % 2 == 0) == payload { Lies::Packed } else { STRIDED };
            cases.extend(sort_of(&mut rng, size, bits, payload, lies));
        }
    }
    cases
}

/// The sorted keys, and what moves with them.
fn sort_of(rng: &mut Rng, size: usize, bits: u32, payload: bool, lies: Lies) -> [Case; 2] {
    // The keys have more bits than are sorted by; these bits move with the others.
    let keys = integers(rng, &[size], 2f64.powi((bits as i32 + 3).min(32)));
    let other = integers(rng, &[size], 2f64.powi(32));
    let counted = |i: usize| keys[i] as u64 % (1 << bits);
    let mut order: Vec<_> = (0..size).collect();
    order.sort_by_key(|&i| counted(i));
    let moved = |&i: &usize| if payload { other[i] } else { i as f64 };
    let wanted = [exact(order.iter().map(|&i| keys[i])), exact(order.iter().map(moved))];
    let mut inputs = vec![Given::new(DType::U32, lies, &[size], keys.clone())];
    if payload {
        inputs.push(Given::new(DType::U32, lies, &[size], other.clone()));
    }
    let mut which = 0..;
    wanted.map(|wanted| {
        let which = which.next().unwrap();
        Case {
            name: format!("sort of {size} by {bits} bits, payload {payload}, {lies:?}: {which}"),
            wanted,
            inputs: inputs.clone(),
            out: (DType::U32, vec![size], lies),
            in_place: None,
            on_units: false,
            op: Box::new(move |x: &[Tensor]| {
                let sort = match payload {
                    true => ops::sort_by_key(&x[0], &x[1]),
                    false => ops::sort(&x[0]),
                };
                Box::new(Half(sort.bits(bits), which, (DType::U32, None)))
            }),
        }
    })
}

pub(super) fn in_parts() -> Vec<Case> {
    let rng = &mut Rng::new(11);
    let mut cases = vec![
        scan_of(rng, &[2, 16_390], DType::I32, true, [Lies::Transposed, Lies::Within]),
        histogram_of(rng, &[8190], 5, [STRIDED; 2]),
    ];
    cases.extend(sort_of(rng, 2100, 8, true, STRIDED));
    cases
}

pub(super) fn large() -> Vec<Case> {
    let rng = &mut Rng::new(12);
    let lies = [Lies::Packed; 2];
    let mut cases = vec![
        scan_of(rng, &[1_000_000], DType::F32, true, lies),
        scan_of(rng, &[70_000, 5], DType::U32, true, lies),
    ];
    cases.extend(sort_of(rng, 131_072, 8, true, Lies::Packed));
    cases.extend(sort_of(rng, 1_000_003, 32, false, Lies::Packed));
    cases
}
