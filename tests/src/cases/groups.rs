//! Cases of grouped products.

use super::Table;
use crate::case::{Groups, LAYOUTS};
use crate::kernels::Kernel;
use crate::{Case, Place, themes};
use tilewise::{Axis, DType};
use tilewise_core::Variant;

/// Groups of rows: the suite's ends, right and wrong, on each kernel.
pub fn groups(table: Table) -> Vec<Case> {
    let mut cases = themes::on(&table.one_of_each(), &themes::grouped(&themes::ends(), true));
    cases
        .extend(themes::on(&table.one_of_each()[..1], &themes::grouped(&themes::bad_ends(), true)));
    cases.extend(themes::on(
        &table.one_of_each()[1..],
        &themes::grouped(&themes::bad_ends()[..2], true),
    ));
    cases.extend(group_splits(table));
    let shards = themes::in_shards(themes::grouped(&themes::ends(), true));
    let shards: Vec<_> = shards.into_iter().step_by(3).collect();
    cases.extend(themes::on(&table.one_of_each()[..1], &shards));
    cases.extend(themes::in_shards(group_splits(table)).into_iter().take(3));
    // Every launched workgroup has a tile. Then biases by group in a finishing pass.
    for (ends, out) in
        [(vec![3, 5, 8, 9], DType::F32), (vec![2, 3, 9], DType::F16), (vec![4, 3, 9], DType::BF16)]
    {
        let case = Case::new([9, 7, 5], [DType::F32, DType::F32, out]).odd();
        let case =
            Case { groups: Some(Groups { ends, on_device: true }), residual: Some(case.c), ..case };
        let case = Case { bias: Some((Axis::N, Place::odd(out))), ..case };
        cases.extend(themes::on(&table.one_of_each(), std::slice::from_ref(&case)));
        let many = with_table(case.kernel(table.floor()));
        let shards = vec![1, many.entries().entries() - 2, 1];
        cases.extend([Case { shards, ..many.clone() }, many]);
    }
    cases.extend(halves(table));
    cases.extend(many_groups(table));
    table.loaded(cases)
}

/// Kernels with a loop for half tiles, with one subgroup and with two along M; and a kernel with a
/// loop for each quarter.
const HALVES: [&str; 3] = ["coop/32x64x64", "coop/64x64x64", "coop/128x128x32"];

/// Tiles in which about a half, a quarter or all of the rows are used; and a masked product with A
/// stored along M. K has an odd number of slices, and an even one: loops over parts of a tile load
/// two slices ahead.
pub fn halves(table: Table) -> Vec<Case> {
    let kernels = table.kernels().into_iter();
    let kernels = kernels.filter(|kernel| HALVES.contains(&kernel.name.as_str()));
    let cases = |kernel: Kernel| {
        let half = kernel.variant.bm / 2;
        let case = |m: u32| Case::new([m as usize, 20, 72], [DType::F16, DType::F16, DType::F32]);
        let grouped = |ends: Vec<u32>| {
            let groups = Some(Groups { ends: ends.clone(), on_device: true });
            Case { groups, ..case(ends[2]) }
        };
        let around = vec![half, 2 * half + 1, 2 * half + 1 + half / 2 + 1];
        let whole = vec![2 * half + 1, 3 * half, 4 * half];
        let counts = vec![half - 1, half + 1, half / 2];
        let along_m = case(2 * half + 8).layout(LAYOUTS[2]).masked(counts);
        let even = |case: Case, k: usize| Case { size: [case.size[0], 20, k], ..case };
        let evens = [even(grouped(around.clone()), 64), even(along_m.clone(), 128)];
        [grouped(around), grouped(whole).layout(LAYOUTS[1]), along_m]
            .into_iter()
            .chain(evens)
            .map(|case| case.kernel(&kernel.name))
            .collect::<Vec<_>>()
    };
    kernels.flat_map(cases).collect()
}

/// Two groups for each lane, in shards and on matrix units; and so many groups that they have a
/// table.
fn many_groups(table: Table) -> Vec<Case> {
    let floor = table.floor();
    let case = |ends: Vec<u32>, types| {
        let groups = Some(Groups { ends, on_device: true });
        Case { groups, ..Case::new([40, 24, 32], types) }
    };
    let [wide, apart] = themes::lanes();
    let f32s = [DType::F32; 3];
    let mut cases = vec![case(apart.clone(), f32s).kernel(&floor)];
    cases.push(Case { shards: vec![5, 57, 2], ..case(wide.clone(), f32s).kernel(&floor) });
    let few = with_table(case(vec![5, 13, 13, 40], f32s).kernel(&floor));
    cases.extend([Case { shards: vec![1, 258, 1], ..few.clone() }, few]);
    // Rows of C share words with rows of other shards.
    let words = case(vec![2, 3, 9], [DType::F32, DType::F32, DType::BF16]).kernel(&floor);
    let bias = Some((Axis::N, Place::odd(DType::F16)));
    let words = with_table(Case { size: [9, 7, 5], beta: 0.5, bias, ..words });
    cases.push(Case { shards: vec![1, 257, 1], ..words });
    let units = table.one_of_each().into_iter().filter(|kernel| kernel.variant.unit().is_some());
    for kernel in units {
        let types = [DType::F16, DType::F16, DType::F32];
        let all = [wide.clone(), apart.clone(), themes::bad_ends().swap_remove(1)];
        cases.extend(all.map(|ends| case(ends, types).kernel(&kernel.name)));
    }
    cases
}

/// Inserts so many empty groups after the second group that a table of groups is made.
fn with_table(mut case: Case) -> Case {
    if let Some(Groups { ends, .. }) = &mut case.groups {
        let second = ends[1];
        ends.splice(2..2, [second; 256]);
    }
    case
}

/// Splits of K with few groups, with many and with a table. Then as many tiles as rows.
pub fn group_splits(table: Table) -> Vec<Case> {
    let splits = table.one_of_each().into_iter().filter(|kernel| kernel.splits);
    let cases = |kernel: Kernel| {
        let Variant { bn, bk, .. } = *kernel.variant;
        ends().into_iter().enumerate().map(move |(i, (rows, ends))| {
            let size = [rows, bn as usize + 6, 2 * bk as usize + 3];
            let case = Case::new(size, [DType::F32, DType::F32, DType::FLOATS[i]]);
            let bias = Some((Axis::N, Place::odd(DType::F32)));
            let case = Case { groups: Some(Groups { ends, on_device: true }), bias, ..case };
            case.kernel(format!("{}+k{}", kernel.name, 2 + i))
        })
    };
    let single = table.one_of_each().into_iter().filter(|kernel| kernel.variant.bm == 1);
    let single = single.map(|kernel| {
        let groups = Some(Groups { ends: (1..=20).collect(), on_device: true });
        let case = Case { groups, ..Case::new([20, 9, 32], [DType::F32; 3]) };
        case.kernel(&kernel.name)
    });
    let single = single.flat_map(|case| [with_table(case.clone()), case]);
    splits.flat_map(cases).chain(single).collect()
}

/// Numbers of rows, and ends of groups: of six groups, of two groups for each lane of a schedule,
/// and of so many groups that they have a table.
pub(super) fn ends() -> [(usize, Vec<u32>); 3] {
    let few = (0..36).map(|group| group / 3).collect();
    let many = [2].into_iter().chain((0..259).map(|group| 3 + group * 9 / 258)).collect();
    [(9, vec![2, 2, 4, 7, 7, 9]), (11, few), (12, many)]
}

/// Groups that begin and end around the edges of every variant's tile, in every layout.
pub fn group_edges(table: Table) -> Vec<Case> {
    let mut cases = Vec::new();
    for (i, kernel) in table.kernels().into_iter().enumerate() {
        let bm = kernel.variant.bm;
        let ends = |lengths: &[u32]| {
            let ends = lengths.iter().scan(0, |end, length| {
                *end += length;
                Some(*end)
            });
            ends.collect::<Vec<_>>()
        };
        let lengths = [
            vec![bm, 1, 0, bm + 1],
            vec![0, bm.max(2) - 1, 2 * bm],
            vec![1, 1, 1, bm],
            vec![2 * bm, 0, 0],
        ];
        for (j, (lengths, layout)) in lengths.iter().zip(LAYOUTS).enumerate() {
            let ends = ends(lengths);
            let rows = ends.last().map_or(0, |end| *end as usize);
            let size = [(rows + 3).next_multiple_of(4), kernel.variant.bn as usize + 4, 8 + 4 * j];
            let types = [i + j, j, i].map(|t| DType::FLOATS[t % 3]);
            let case =
                Case { groups: Some(Groups { ends, on_device: true }), ..Case::new(size, types) };
            let case = case.layout(layout).kernel(&kernel.name);
            cases.push(if j % 2 == 0 {
                case
            } else {
                Case { size: [rows + 1, size[1] - 1, size[2] + 1], ..case }.odd()
            });
        }
        // Rows that name their entries: in the types of the kernel's unit, or in any.
        let own = kernel.variant.unit().map(|unit| unit.matrix.operands);
        let types = [i, i + 1].map(|t| own.unwrap_or(DType::FLOATS[t % 3]));
        let [bn, bk] = [kernel.variant.bn, kernel.variant.bk].map(|size| size as usize);
        let case = Case::new([0, bn + 4, bk + 12], [types[0], types[1], DType::F32]);
        let case = case.layout([false, i % 2 == 0]).indexed(vec![1, 3, 0, 1, 2], 3);
        cases.push(case.kernel(&kernel.name));
    }
    cases
}
