//! Masked batches, groups along K, and tables of many groups, under every kernel in WGSL.

use super::{F32, Table};
use crate::case::{Groups, LAYOUTS};
use crate::{Case, Entries, Place, themes};
use tilewise::{Axis, DType};

/// The suite's counts and ends on each kernel, splits of K, and the edges of every variant's tile.
pub fn forms(table: Table) -> Vec<Case> {
    let kernels = table.one_of_each();
    let mut ends = [themes::ends(), themes::bad_ends()].concat();
    // Each of very many groups would have a C.
    ends.retain(|ends| ends.len() <= 64);
    let mut cases = themes::on(&kernels, &themes::masked());
    cases.extend(themes::on(&kernels, &themes::along_k(&ends, true)));
    let lists = themes::listed(&themes::lists());
    cases.extend(themes::on(&kernels[..1], &lists));
    cases.extend(themes::on(&kernels[1..], &lists[..5]));
    // As many elements as a line has.
    let row = Case::new([1, 3, 2], F32).listed(&[[1, 3, 2, 0, 2, 0, 3, 0, 3]], [2, 6, 3]);
    cases.push(row.kernel(table.floor()));
    for kernel in kernels.iter().filter(|kernel| kernel.splits) {
        let size = [9, 6, 2 * kernel.variant.bk as usize + 3];
        let case = Case::new(size, [DType::F32, DType::F32, DType::F16]).masked(vec![9, 0, 4]);
        let case = case.kernel(format!("{}+k2", kernel.name));
        cases.extend([case.clone(), case.odd()]);
    }
    for (i, kernel) in table.kernels().into_iter().enumerate() {
        let [bm, bn, bk] = [kernel.variant.bm, kernel.variant.bn, kernel.variant.bk];
        let layout = LAYOUTS[i % 4];
        let on_device = true;
        let case = Case::new([2 * bm as usize, bn as usize + 4, 12], F32).layout(layout);
        let case = case.masked(vec![bm, 0, bm - 1, bm + 1, 3 * bm]);
        cases.push(Case { beta: 0.5, ..case.kernel(&kernel.name) });
        let groups = Groups { ends: (0..18).map(|group| group / 2).collect(), on_device };
        let case = Case { groups: Some(groups), ..Case::new([9, 12, 12], F32) };
        cases.push(case.kernel(&kernel.name));
        if kernel.variant.begins_anywhere() {
            let [m, n, k] = [bm + 4, bn + 3, bk + 1];
            let elements = [1 + m * k, 2 + k * n, 3 + m * n + bm * n];
            // Where storage runs along the tile, those beyond a product's last would leave it.
            for [a, b] in [[true, false], layout] {
                let (lda, ldb) = (if a { m } else { k }, if b { k } else { n });
                let edge = [m, n, k, 1, lda, 2, ldb, 3, n];
                let after = [bm, bn, k, 0, lda, 0, ldb, 3 + m * n, n];
                let case = Case::new([m, n, k].map(|size| size as usize), F32).layout([a, b]);
                let case = case.listed(&[edge, after], elements.map(|count| count as usize));
                cases.push(case.kernel(&kernel.name));
            }
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
        }
    }
    cases
}
