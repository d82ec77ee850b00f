//! Masked batches, groups along K, and tables of many groups, under every kernel in WGSL.

use super::{F32, Table};
use crate::case::{Groups, LAYOUTS};
use crate::kernels::{Kernel, smallest};
use crate::{Case, Data, Entries, Place, themes};
use tilewise::{Axis, DType};
use tilewise_core::kernel::Words;
use tilewise_core::{Access, Grouping};

/// The suite's counts and ends on each kernel, with splits of K, and around the edges of every
/// variant's tile.
pub fn forms(table: Table) -> Vec<Case> {
    let kernels = table.one_of_each();
    let mut cases = themes::on(&kernels, &themes::masked());
    cases.extend(themes::on(&kernels, &themes::indexed()));
    let lists = themes::listed(&themes::lists());
    cases.extend(themes::on(&kernels[..1], &lists));
    cases.extend(themes::on(&kernels[1..], &lists[..5]));
    cases.extend(themes::on(&kernels, &themes::aligned_lists()));
    // A and C have no more elements than a line.
    let row = Case::new([1, 3, 2], F32).listed(&[[1, 3, 2, 0, 2, 0, 3, 0, 3]], [2, 6, 3]);
    cases.push(row.kernel(table.floor()));
    for kernel in kernels.iter().filter(|kernel| kernel.splits) {
        let size = [9, 6, 2 * kernel.variant.bk as usize + 3];
        let case = Case::new(size, [DType::F32, DType::F32, DType::F16]).masked(vec![9, 0, 4]);
        let name = format!("{}+k2", kernel.name);
        let case = case.kernel(name.clone());
        cases.extend([case.clone(), case.odd()]);
        let [_, n, k] = size;
        let case = Case::new([0, n, k], [DType::F32, DType::F32, DType::F16]);
        let case = case.indexed(vec![1, 2, 0, 9], 3).kernel(name.clone());
        cases.extend([case.clone(), case.odd()]);
        // Words that rows of many groups share. The last row, or all rows, lie beyond the ends.
        let case = Case::new([9, 7, size[2]], [DType::F32, DType::F32, DType::BF16]).kernel(name);
        for share in [29, 260] {
            let ends = (0..260).map(|group| group / share).collect();
            let groups = Some(Groups { ends, on_device: true });
            cases.push(Case { groups, ..case.clone() }.odd());
        }
    }
    for (i, kernel) in table.kernels().into_iter().enumerate() {
        let [bm, bn, bk] = [kernel.variant.bm, kernel.variant.bn, kernel.variant.bk];
        let layout = LAYOUTS[i % 4];
        let on_device = true;
        let case = Case::new([2 * bm as usize, bn as usize + 4, 12], F32).layout(layout);
        let case = case.masked(vec![bm, 0, bm - 1, bm + 1, 3 * bm]);
        cases.push(Case { beta: 0.5, ..case.kernel(&kernel.name) });
        let groups = Groups { ends: (0..260).map(|group| group / 29).collect(), on_device };
        let case = Case { groups: Some(groups), ..Case::new([9, 12, 12], F32) };
        cases.push(case.kernel(&kernel.name));
        if kernel.variant.takes(Grouping::Listed { groups: 1, offset: 0, sizes: None }) {
            let [m, n, k] = [bm + 4, bn + 3, bk + 1];
            let elements = [1 + m * k, 2 + k * n, 3 + m * n + bm * n];
            // If the storage runs along the tile, rows beyond a product's last would leave the
            // storage.
            for [a, b] in [[true, false], layout] {
                let (lda, ldb) = (if a { m } else { k }, if b { k } else { n });
                let edge = [m, n, k, 1, lda, 2, ldb, 3, n];
                let after = [bm, bn, k, 0, lda, 0, ldb, 3 + m * n, n];
                let case = Case::new([m, n, k].map(|size| size as usize), F32).layout([a, b]);
                let case = case.listed(&[edge, after], elements.map(|count| count as usize));
                cases.push(case.kernel(&kernel.name));
                let [lda, ldb] = [lda, ldb].map(|ld| ld.next_multiple_of(8));
                let (a_lines, b_lines) = (if a { k } else { m }, if b { n } else { k });
                let edge = [m, n, k, 8, lda, 16, ldb, 3, n];
                let after = [bm, bn, k, 0, lda, 0, ldb, 3 + m * n, n];
                let elements = [8 + a_lines * lda, 16 + b_lines * ldb, elements[2]];
                let types = [DType::F16, DType::F16, DType::F32];
                let case = Case::new([m, n, k].map(|size| size as usize), types).layout([a, b]);
                let case = case.listed(&[edge, after], elements.map(|count| count as usize));
                cases.push(Case { aligned: true, ..case }.kernel(&kernel.name));
            }
        }
    }
    cases.extend(ranges_of_k(table));
    let units = kernels.iter().filter(|kernel| kernel.variant.unit().is_some());
    cases.extend(units.flat_map(packed_rows));
    cases
}

/// Masked entries. A pass packs their strips that have rows: divided, and only copied.
fn packed_rows(kernel: &Kernel) -> Vec<Case> {
    let counts = [0, 16, 21, 32, 33, 99];
    let types = HALF.into_iter().flat_map(|types| [(types, LAYOUTS[0]), (types, LAYOUTS[2])]);
    let case = |(types, layout)| {
        let case = Case::new([70, 12, 73], types).layout(layout).masked(counts.to_vec());
        case.kernel(&kernel.name)
    };
    types.map(case).collect()
}

/// Ranges of K. One variant of each kernel meets the suite's ends; every variant meets ends around
/// its steps, and many ends.
pub fn ranges_of_k(table: Table) -> Vec<Case> {
    let mut all = table.kernels();
    all.retain(|kernel| kernel.variant.takes(Grouping::RaggedK { groups: 1, offset: 0 }));
    let some = smallest(all.clone());
    let mut ends = [themes::ends(), themes::bad_ends()].concat();
    // Each group has a C of its own, so very many groups are left out.
    ends.retain(|ends| ends.len() <= 64);
    let mut cases = themes::on(&some, &themes::along_k(&ends, true));
    for (i, kernel) in all.into_iter().enumerate() {
        let [bm, bn, bk] = [kernel.variant.bm, kernel.variant.bn, kernel.variant.bk];
        let layout = LAYOUTS[i % 4];
        let on_device = true;
        let ends = vec![1, bk, 2 * bk, 2 * bk, 4 * bk + 1];
        let size = [bm as usize + 4, bn as usize + 4, 4 * bk as usize + 2];
        let case = Case::new(size, F32).layout(layout);
        let case = case.along_k(Groups { ends, on_device });
        let bias = Some((Axis::N, Place::odd(DType::F16)));
        let [a, b] = [case.a, case.b].map(|place| {
            Place::odd(place.dtype).transposed(place.transposed).entries(Entries::Single)
        });
        cases.push(case.clone().kernel(&kernel.name));
        cases.push(Case { a, b, bias, ..case.integers() }.kernel(&kernel.name));
        // These are enough groups for a table.
        let lying = |group| match group {
            5 => 0,
            19 => 99,
            group => group * 24 / 19,
        };
        let ends = (0..20).map(lying).collect();
        let case = Case::new([4, 8, 24], F32).layout([true, false]);
        cases.push(case.along_k(Groups { ends, on_device }).kernel(&kernel.name));
    }
    cases.extend(some.iter().filter(|kernel| kernel.variant.unit().is_some()).flat_map(ranges));
    cases
}

/// Ranges of K that begin and end around the steps of a matrix unit. Some have one element, which
/// is infinite, or so large that the digits of other ranges' numbers would be lost beside it.
/// Elements beyond the last end are like that, too.
fn ranges(kernel: &Kernel) -> Vec<Case> {
    let Access::Words(Words { depth, .. }) = kernel.variant.access else { return Vec::new() };
    let bk = kernel.variant.bk;
    let case = |size: [usize; 3], types, layout, lengths: &[u32]| {
        let ends = lengths.iter().scan(0, |end, length| {
            *end += length;
            Some(*end)
        });
        let groups = Groups { ends: ends.collect(), on_device: true };
        Case::new(size, types).layout(layout).along_k(groups).kernel(&kernel.name)
    };
    let large = |dtype, size| if dtype == DType::BF16 { size } else { f32::INFINITY };
    // One step and nothing after it.
    let mut cases = vec![case([8, 16, 1], HALF[0], LAYOUTS[2], &[0, 1, 0])];
    for (i, layout) in LAYOUTS.into_iter().enumerate() {
        let k = 4 * bk as usize;
        let lengths = [0, depth - 1, 0, bk, bk + 1, 0, 1, bk - 9];
        cases.push(case([8, 24, k], HALF[i % 3], layout, &lengths));
        let odd = case([3, 5, k - 1], HALF[(i + 1) % 3], layout, &lengths[..4 + i]);
        let [a, b] = [odd.a, odd.b].map(|place| {
            Place::odd(place.dtype).transposed(place.transposed).entries(Entries::Single)
        });
        cases.push(Case { a, b, ..odd });
        let k = bk as usize;
        let is_alone = |step: usize| [3, k - 12].contains(&step) || step >= k - 6;
        for (types, size) in
            HALF.into_iter().flat_map(|types| [(types, f32::INFINITY), (types, 2f32.powi(60))])
        {
            let case = case([8, 16, k], types, layout, &[3, 1, bk - 16, 1, 5, 0]);
            let number = |dtype, line: usize, step: usize| match is_alone(step) {
                true => large(dtype, size),
                false => [1.0, -2.0, 0.5][(line + step) % 3],
            };
            let [a, b] = [case.a.dtype, case.b.dtype];
            let a = (0..8 * k).map(|at| number(a, at / k, at % k)).collect();
            let b = (0..k * 16).map(|at| number(b, at % 16, at / 16)).collect();
            let (a_data, b_data) = (Data::Given(a), Data::Given(b));
            cases.push(Case { a_data, b_data, exact: true, ..case });
        }
    }
    cases
}

/// Types of A, B and C for matrix units of f16.
const HALF: [[DType; 3]; 3] = [
    [DType::F16, DType::F16, DType::F32],
    [DType::BF16, DType::BF16, DType::F32],
    [DType::BF16, DType::F16, DType::F32],
];
