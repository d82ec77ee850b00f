//! Groups of rows: their ends, right and wrong, and products of them.

use crate::case::Groups;
use crate::{Case, Place};
use tilewise::{Axis, DType, QuantFormat};

/// Cumulative ends for 40 rows: empty groups at every place, one group for all, rows that belong to
/// no group, and groups of one row.
pub fn ends() -> Vec<Vec<u32>> {
    vec![
        vec![0, 0, 5, 5, 37, 40, 40],
        vec![40],
        vec![3, 17, 30],
        vec![0, 0],
        vec![1],
        // Each lane of a schedule has one group, and then two.
        (9..41).collect(),
        lanes()[0].clone(),
        vec![8, 16, 24, 32, 40],
        // There are more groups than invocations in the workgroup that makes their table.
        (0..300).map(|group| group * 40 / 299).collect(),
    ]
}

/// Two groups for each lane of a schedule: with rows in all groups; and with rows in the second and
/// the last only, between which ends decrease.
pub fn lanes() -> [Vec<u32>; 2] {
    let apart = |group| match group {
        1 => 9,
        63 => 40,
        _ => 0,
    };
    [(0..64).map(|group| group * 40 / 63).collect(), (0..64).map(apart).collect()]
}

/// Ends that only a device can hold: decreasing, beyond the last row, both.
pub fn bad_ends() -> Vec<Vec<u32>> {
    vec![
        vec![10, 5, 20],
        // Each lane has two groups. The first ends are in lanes that lie farther and farther apart,
        // all others decrease, and the last is beyond all rows.
        (0..64)
            .map(|group| match [0, 1, 3, 6, 10, 15, 21, 28].iter().position(|l| 2 * l == group) {
                Some(place) => 4 * (place as u32 + 1),
                None if group == 63 => u32::MAX,
                None => 0,
            })
            .collect(),
        vec![41],
        vec![u32::MAX, 3, 7],
        vec![7, u32::MAX],
        vec![1 << 31, 1 << 30, 40],
        vec![20, 1000, 0],
        // The table takes three turns: ends go up and down, are all lower, and go up again.
        (0..600)
            .map(|group| match group {
                0..256 => (group * 30u32 / 255).saturating_sub(group % 2 * 10),
                256..512 => 5,
                _ => 6 + (group - 512) / 3,
            })
            .collect(),
    ]
}

/// Grouped products over segments of 40 rows; a format of each kind meets one of the ends.
pub fn grouped(ends: &[Vec<u32>], on_device: bool) -> Vec<Case> {
    let (mut cases, count) = (Vec::new(), ends.len());
    for (i, ends) in ends.iter().enumerate() {
        let groups = Some(Groups { ends: ends.clone(), on_device });
        let types = [DType::F32, DType::FLOATS[i % 3], DType::FLOATS[(i + i / 3) % 3]];
        let case = Case { groups, ..Case::new([40, 22, 12], types).layout([false, i % 2 == 1]) };
        cases.push(Case { size: [40, 21, 13], ..case.clone() }.odd());
        // Very many groups have a table, and one case is enough for it.
        if case.groups.as_ref().is_some_and(|groups| groups.ends.len() > 64) {
            continue;
        }
        cases.push(case.clone());
        let bias = Some((Axis::N, Place::odd(types[1])));
        cases.push(Case {
            bias,
            beta: -1.5,
            residual: Some(Place::odd(DType::F32)),
            ..case.clone()
        });
        // Formats of one kind differ only in constants, and products without groups show these.
        for format in QuantFormat::kinds().into_iter().skip(i).step_by(count) {
            let size = [40, 7, format.block() as usize];
            cases.push(Case { quantized: Some(format), size, ..case.clone() });
        }
    }
    cases
}

/// Some of these cases with their entries of B in shards: the first entry alone, then the others,
/// of which the last few are a shard of their own.
pub fn in_shards(cases: Vec<Case>) -> Vec<Case> {
    let cut = |(i, case): (usize, Case)| {
        let groups = case.entries().entries();
        let last = (groups.saturating_sub(1)).min(i % 3);
        let shards = vec![1, groups.checked_sub(1 + last)?, last];
        let shards = shards.into_iter().filter(|count| *count > 0).collect();
        Some(Case { shards, ..case })
    };
    cases.into_iter().enumerate().filter_map(cut).collect()
}
