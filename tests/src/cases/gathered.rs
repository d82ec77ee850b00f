//! Rows of A by index, under every kernel that takes them.

use super::{F32, Table};
use crate::{Case, themes};
use tilewise_core::Variant;

/// The suite's indices: the first kernel meets all, the others every second case. Each variant
/// meets the edge of a small tile, in vectors and in single elements, with splits of K if it has
/// them.
pub fn gathered(table: Table) -> Vec<Case> {
    let (kernels, all) = (table.one_of_each(), themes::gathered());
    let mut cases = themes::on(&kernels[..1], &all);
    let some: Vec<_> = all.into_iter().step_by(2).collect();
    cases.extend(themes::on(&kernels[1..], &some));
    for (i, kernel) in table.kernels().into_iter().enumerate() {
        let Variant { bm, bn, bk, .. } = *kernel.variant;
        let [m, n, k] = [bm.min(16) + 1, bn.min(32) + 4, 2 * bk].map(|size| size as usize);
        let rows = 2 * m - 1;
        // Some rows are there twice, some not at all, and an index may lie beyond all rows.
        let all: Vec<u32> = (0..m).map(|row| (row * 5 % (rows + 1)) as u32).collect();
        let case = Case { seed: i as u64, ..Case::new([m, n, k], F32) }.kernel(&kernel.name);
        let split = format!("{}{}", kernel.name, if kernel.splits { "+k2" } else { "" });
        let others = match kernel.variant.unit() {
            // Matrix units read A from where it lies, in whole steps along K. Large tiles take
            // turns.
            Some(_) => {
                let odd = Case { size: [m, n - 3, k], ..case.clone() };
                let mut both = vec![odd, case.kernel(split)];
                if bm > 16 {
                    both.remove(i % 2);
                }
                both
            }
            None => {
                let odd = Case { size: [m, n - 3, k / 2 + 3], ..case.clone() }.odd();
                vec![odd.kernel(split).batch(2), case]
            }
        };
        cases.extend(others.into_iter().map(|case| case.gathered(rows, &all)));
    }
    cases
}
