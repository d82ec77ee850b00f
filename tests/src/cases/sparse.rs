//! Workgroups as many as a pass before has counted.

use super::{F32, Table, devices};
use crate::Case;
use crate::case::LAYOUTS;
use tilewise::DType;
use tilewise_core::caps::DeviceClass;
use tilewise_core::{Caps, Grouping};

/// A software device, on which few workgroups without a tile take longer than to count the others,
/// and products that have more: masked entries with few rows on every variant; lists on those that
/// take them, whose tiles the device counts or the host; splits of K, with a pass that adds up
/// tiles or words.
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
            let elements = [8 + m * lda, 8 + k * ldb, 2 * m + bm * n].map(|count| count as usize);
            let size = [m, n, k].map(|size| size as usize);
            let case = Case::new(size, [DType::F16, DType::F16, DType::F32]);
            let case = Case { aligned: true, ..case.kernel(&kernel.name) };
            let lists = [list, [[0; 9]; 4]].map(|list| case.clone().listed(&list, elements));
            cases.push(lists[0].clone().from_host());
            cases.extend(lists);
        }
    }
    for kernel in table.one_of_each().iter().filter(|kernel| kernel.splits) {
        let [bm, bk] = [kernel.variant.bm, kernel.variant.bk].map(|size| size as usize);
        let size = [bm.max(3) * 3, 6, 2 * bk + 3];
        let case = Case::new(size, [DType::F32, DType::F32, DType::F16]);
        let case = case.masked([vec![9, 0, 4], vec![0; 5]].concat());
        let case = Case { expected_rows: Some(1), ..case };
        let case = case.kernel(format!("{}+k2", kernel.name));
        cases.extend([case.clone(), case.odd()]);
    }
    (Caps { class: DeviceClass::Cpu, ..devices()[0].clone() }, cases)
}
