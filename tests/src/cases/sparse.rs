//! Products whose workgroups a pass counts.

use super::{F32, Table, devices, shared_loads};
use crate::case::LAYOUTS;
use crate::{Case, themes};
use tilewise::DType;
use tilewise_core::caps::DeviceClass;
use tilewise_core::{Caps, Grouping};

/// A software device, and products with so many idle workgroups that the planner counts the others.
/// Every variant has a masked product with few rows. Variants that take lists have one from the
/// host and two on the device. Splits of K have a pass that adds up tiles, and one that adds up
/// words.
pub fn sparse(table: Table) -> (Caps, Vec<Case>) {
    let mut cases = Vec::new();
    for (i, kernel) in table.kernels().into_iter().enumerate() {
        let [bm, bn, bk] = [kernel.variant.bm, kernel.variant.bn, kernel.variant.bk];
        let layout = LAYOUTS[i % 4];
        let case = Case::new([3 * bm as usize, bn as usize + 4, 12], F32).layout(layout);
        let case = case.masked(vec![bm, 0, bm - 1, bm + 1, 9 * bm]);
        cases.push(Case { beta: 0.5, expected_rows: Some(1), ..case.kernel(&kernel.name) });
        if kernel.variant.takes(Grouping::Listed { groups: 1, offset: 0, sizes: None }) {
            let [m, n, k] = [2 * bm + 1, bn + 3, bk + 1];
            let [lda, ldb] = [k, n].map(|size| size.next_multiple_of(8));
            let list = [
                [0, n, k, 0, 0, 0, 0, 0, 0],
                [m, 1, 3, 0, 8, 0, 8, 0, 2],
                [bm, n, k, 8, lda, 8, ldb, 2 * m, n],
                [9, 0, k, 0, 0, 0, 0, 0, 0],
            ];
            // A product that is too large, in C as well.
            let mut beyond = list;
            beyond[3] = [u32::MAX, u32::MAX, 0, 0, 0, 0, 0, 0, n];
            let elements = [8 + m * lda, 8 + k * ldb, 2 * m + bm * n].map(|count| count as usize);
            let size = [m, n, k].map(|size| size as usize);
            let case = Case::new(size, [DType::F16, DType::F16, DType::F32]);
            let case = Case { aligned: true, ..case.kernel(&kernel.name) };
            cases.push(case.clone().listed(&list, elements).from_host());
            cases.extend([beyond, [[0; 9]; 4]].map(|list| case.clone().listed(&list, elements)));
        }
    }
    for kernel in table.one_of_each().iter().filter(|kernel| kernel.splits) {
        let [bm, bk] = [kernel.variant.bm, kernel.variant.bk].map(|size| size as usize);
        let size = [bm.max(3) * 3, 6, 2 * bk + 3];
        let case = Case::new(size, [DType::F32, DType::F32, DType::BF16]);
        let case = case.kernel(format!("{}+k2", kernel.name));
        for counts in [[9, 0, 4, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0, 0]] {
            let case = Case { expected_rows: Some(1), ..case.clone().masked(counts.to_vec()) };
            cases.extend([case.clone(), case.odd()]);
        }
    }
    // Masked codes on matrix units: 16 workgroups stride over 20 tiles, and over none.
    for case in shared_loads(table) {
        let [bm, bn, k] = case.size;
        let rows = bm as u32;
        for counts in [[3 * rows, 0, rows + 1, 9 * rows, 2 * rows - 1], [0; 5]] {
            let case = Case { size: [3 * bm, bn + 4, k], ..case.clone() };
            cases.push(Case { expected_rows: Some(1), ..case.masked(counts.to_vec()) });
        }
    }
    let twenty = themes::listed(&themes::lists()[4..5]).remove(0).kernel(table.floor());
    cases.extend([twenty.clone(), twenty.from_host()]);
    cases.extend(whole(table));
    (Caps { class: DeviceClass::Cpu, ..devices()[0].clone() }, cases)
}

/// Lists of whole tiles, of tiles with one column more, and of tiles that would be twice as many if
/// they were half as wide.
fn whole(table: Table) -> [Case; 3] {
    let floor = &table.one_of_each()[0];
    let [bm, bn] = [floor.variant.bm, floor.variant.bn];
    let list = |sizes: &[[u32; 2]]| {
        let start = |i: usize| sizes[..i].iter().map(|[m, n]| m * n).sum::<u32>();
        let product = |(i, &[m, n]): (usize, &[u32; 2])| [m, n, 1, 0, 1, 0, n, start(i), n];
        let products: Vec<_> = sizes.iter().enumerate().map(product).collect();
        let [m, n] = [0, 1].map(|at| sizes.iter().map(|size| size[at]).max().unwrap_or(0));
        let elements = [m, n, start(sizes.len())].map(|count| count as usize);
        let case = Case::new([m as usize, n as usize, 1], F32);
        case.listed(&products, elements).kernel(&floor.name)
    };
    [
        list(&[[2 * bm, bn]; 6]),
        list(&[[bm, bn + 1]; 6]),
        list(&[[2 * bm, 10 * bn], [10 * bm, 1]]).from_host(),
    ]
}
