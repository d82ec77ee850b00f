//! Cases in few texts, for kernels that take longer to compile than to run.

use crate::Case;
use crate::case::LAYOUTS;
use crate::cases::{Table, almost_whole, epilogues, groups, quantized, splits, strides};
use crate::kernels::{even_sizes, odd_sizes};
use tilewise::DType;

/// Every variant × type × transposes around the edges of its tile: twelve texts each, in which every operand meets every type, vector loads and single ones,
/// along K and across. A is in the type of this index.
pub fn edges(table: Table, a: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for kernel in table.kernels() {
        for (i, layout) in LAYOUTS.into_iter().enumerate() {
            let vectors = (i + a).is_multiple_of(2);
            let types = [a, (a + i) % 3, (a + 2 * i) % 3].map(|t| DType::ALL[t]);
            let mut sizes = if vectors { even_sizes(kernel.variant) } else { odd_sizes(kernel.variant) };
            // Whole tiles beside each other with whole slices and one that is not; and one that ends where a tile turned round would.
            let [bm, bn, bk] = [kernel.variant.bm, kernel.variant.bn, kernel.variant.bk].map(|size| size as usize);
            let rest = if vectors { 0 } else { bk.min(2) - 1 };
            sizes.extend([[bm, 2 * bn, 2 * bk - rest], [bm + (bm.max(bn) + bm.min(bn)) / 2 / 8 * 8, 2 * bn, bk]]);
            for (j, size) in sizes.into_iter().enumerate() {
                let case = Case { seed: (100 * i + j) as u64, ..Case::new(size, types) };
                let case = case.kernel(&kernel.name).layout(layout);
                let case = if vectors { case } else { case.odd() };
                // The sums of more products outgrow the integers that bf16 holds.
                let exact = j % 2 == 0 && (types[2] != DType::BF16 || size[2] <= 512);
                cases.push(if exact { case.integers() } else { case });
            }
        }
    }
    cases
}

/// What runs where somebody looks on, which is slow: every kernel in every type and layout around the edges of its smallest tile, the other variants once, and
/// everything that kernels share.
pub fn watched(table: Table) -> Vec<Case> {
    let smallest: Vec<_> = table.one_of_each().into_iter().map(|kernel| kernel.name).collect();
    let is_small = |case: &Case| case.kernel.as_ref().is_some_and(|name| smallest.contains(name));
    let (small, large): (Vec<_>, Vec<_>) = (0..3).flat_map(|a| edges(table, a)).partition(is_small);
    // Whole tiles, and the first beyond.
    let small = small.into_iter().enumerate().filter(|(i, case)| i % 2 == 1 || case.size[0] == 1).map(|(_, case)| case);
    let mut met = std::collections::HashSet::new();
    let large = large.into_iter().rev().filter(|case| met.insert(case.kernel.clone()));
    let mut cases: Vec<_> = small.chain(large).chain(almost_whole(table)).collect();
    let some = |cases: Vec<Case>, step: usize| cases.into_iter().step_by(step);
    cases.extend(some(splits(table), 9).chain(some(quantized(table), 7)).chain(some(groups(table), 13)));
    cases.extend(some(strides(table), 31).chain(some(epilogues(table), 29)));
    cases
}
