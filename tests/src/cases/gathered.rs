//! Rows of A by index, under every kernel that has them.

use super::{F32, Table};
use crate::{Case, themes};
use tilewise_core::Variant;

/// The suite's indices on the first kernel, every other one on one of each; and each variant, over
/// the edge of a small tile, in vectors and in single elements, with splits of K where it has them.
pub fn gathered(table: Table) -> Vec<Case> {
    let (kernels, all) = (table.one_of_each(), themes::gathered());
    let mut cases = themes::on(&kernels[..1], &all);
    let some: Vec<_> = all.into_iter().step_by(2).collect();
    cases.extend(themes::on(&kernels[1..], &some));
    for (i, kernel) in table.kernels().into_iter().enumerate() {
        let Variant { bm, bn, bk, .. } = *kernel.variant;
        let [m, n, k] = [bm.min(16) + 1, bn.min(32) + 4, 2 * bk].map(|size| size as usize);
        let rows = 2 * m - 1;
        // Some rows twice, some not at all, and the last one beyond.
        let all: Vec<u32> = (0..m).map(|row| (row * 5 % (rows + 1)) as u32).collect();
        let case = Case { seed: i as u64, ..Case::new([m, n, k], F32) }.kernel(&kernel.name);
        let split = format!("{}{}", kernel.name, if kernel.splits { "+k2" } else { "" });
        let others = match kernel.variant.unit() {
            // Matrix units take whole steps along K, of A from where it lies. Large tiles take
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
