//! Gathers.

use super::{Case, DType, FLOATS, Given, LIES, Rng, boxed, numbers};
use tilewise::{Tensor, ops};

/// Shapes of x, and how many indices there are.
const SHAPES: [(&[usize], usize); 11] = [
    (&[1], 1),
    (&[5], 3),
    (&[3, 4], 7),
    (&[4, 5], 3),
    (&[3, 4, 8], 5),
    (&[7, 2, 3, 1, 6], 9),
    (&[30, 3], 300),
    (&[2, 1030], 4),
    (&[0, 3], 2),
    (&[3, 0], 2),
    (&[4, 3], 0),
];

pub(super) fn cases() -> Vec<Case> {
    let mut rng = Rng::new(13);
    let mut cases = Vec::new();
    for (turn, (shape, count)) in SHAPES.into_iter().enumerate() {
        let dtypes = FLOATS.into_iter().chain([DType::I32, DType::U32]);
        for (of, dtype) in dtypes.enumerate() {
            let mut values = numbers(&mut rng, shape, 90.0);
            values.iter_mut().for_each(|value| *value = value.abs().round());
            let x = Given::new(dtype, LIES[(turn + of) % 4], shape, values);
            // Some indices lie beyond x, one of them far.
            let mut indices: Vec<_> = numbers(&mut rng, &[count], 1.0)
                .into_iter()
                .map(|number| (number.abs() * (shape[0] as f64 + 1.0)).floor())
                .collect();
            if let [_, _, .., last] = &mut indices[..] {
                *last = f64::from(u32::MAX);
            }
            let beyond = match dtype {
                DType::I32 => f64::from(i32::MIN),
                DType::U32 => f64::from(u32::MAX),
                _ => f64::NAN,
            };
            let zeros = turn % 3 == 2;
            let beyond = if zeros { 0.0 } else { beyond };
            let width = shape[1..].iter().product::<usize>();
            let entry = |&index: &f64| match index < shape[0] as f64 {
                true => x.values[index as usize * width..][..width].to_vec(),
                false => vec![beyond; width],
            };
            let wanted = indices.iter().flat_map(entry).map(|value| (value, 0.0)).collect();
            let mut out = shape.to_vec();
            out[0] = count;
            let lies = LIES[(turn + 1) % 4];
            cases.push(Case {
                name: format!(
                    "gather of {shape:?} {dtype} {:?} by {count} indices, zeros {zeros}",
                    x.lies
                ),
                wanted,
                inputs: vec![x, Given::new(DType::U32, lies, &[count], indices)],
                out: (dtype, out, LIES[(turn / 2 + of) % 4]),
                in_place: None,
                on_units: false,
                op: Box::new(move |x: &[Tensor]| {
                    let gather = ops::gather(&x[0], &x[1]);
                    boxed(if zeros { gather.or_zeros() } else { gather })
                }),
            });
        }
    }
    cases
}
