//! Slots by their keys. All results are exact.

use super::combine::indices;
use super::{Case, DType, Given, Half, LIES, Rng};
use tilewise::{Tensor, ops};

/// Rows and columns of keys, and the number of groups. Some need one workgroup, others several
/// kernels for many slots or many groups.
const SHAPES: [([usize; 2], usize); 12] = [
    ([1, 1], 1),
    ([3, 2], 4),
    ([7, 1], 3),
    ([90, 3], 5),
    ([256, 2], 8),
    ([5, 8], 300),
    ([0, 2], 3),
    ([2, 0], 3),
    ([4, 2], 0),
    ([100, 3], 1800),
    ([301, 1], 1700),
    ([600, 2], 4),
];

pub(super) fn cases() -> Vec<Case> {
    let mut rng = Rng::new(16);
    SHAPES
        .into_iter()
        .enumerate()
        .flat_map(|(turn, (shape, groups))| {
            [0, 1].map(|of| of_groups(&mut rng, shape, groups, turn + of)).into_iter().flatten()
        })
        .collect()
}

/// The starts of groups, and the slots.
fn of_groups(rng: &mut Rng, shape: [usize; 2], groups: usize, turn: usize) -> [Case; 2] {
    let mut keys = indices(rng, &shape, groups);
    // The first key is far beyond, too. It comes before keys that lie less far beyond.
    if keys.len() > 4 {
        keys[0] = f64::from(u32::MAX - 1);
        // The second key is the last group.
        keys[1] = groups.saturating_sub(1) as f64;
    }
    // The last slot lies right before the first place of the next key.
    if let Some(last) = keys.last_mut() {
        *last = 0.0;
    }
    let (count, k) = (keys.len(), shape[1]);
    let key = |slot: usize| keys[slot].min(groups as f64);
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| key(a).total_cmp(&key(b)));
    let mut places = vec![0.0; count];
    for (row, &slot) in order.iter().enumerate() {
        let has_place = keys[slot] < groups as f64;
        places[slot] = if has_place { row as f64 } else { u32::MAX.into() };
    }
    let before = |group: usize| (0..count).filter(|&slot| key(slot) < group as f64).count();
    let starts: Vec<f64> = (0..=groups).map(|group| before(group) as f64).collect();
    let slots = order.iter().map(|&slot| slot as f64);
    let rows = order.iter().map(|&slot| (slot / k) as f64);
    let slots: Vec<f64> = slots.chain(rows).chain(places).collect();
    let shapes = [vec![groups + 1], vec![3, count]];
    let inputs = vec![Given::new(DType::U32, LIES[turn % 4], &shape, keys)];
    let mut which = 0..;
    [starts, slots].map(|wanted| {
        let which = which.next().unwrap();
        let other = (DType::U32, Some(shapes[1 - which].clone()));
        Case {
            name: format!("group of {shape:?} by {groups}, {turn}: {which}"),
            wanted: wanted.into_iter().map(|value| (value, 0.0)).collect(),
            inputs: inputs.clone(),
            out: (DType::U32, shapes[which].clone(), LIES[(turn + 2) % 4]),
            in_place: None,
            on_units: false,
            op: Box::new(move |x: &[Tensor]| {
                Box::new(Half(ops::group(&x[0], groups), which, other.clone()))
            }),
        }
    })
}
