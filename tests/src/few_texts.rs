//! Cases with few texts, for kernels that take longer to compile than to run.

use crate::Case;
use crate::case::LAYOUTS;
use crate::cases::{
    Table, almost_whole, bands, empty, epilogues, gathered, group_edges, groups, mixed, packed,
    padded, quantized, rounding, splits, strides, thin,
};
use crate::kernels::{Kernel, even_sizes, odd_sizes};
use std::collections::HashSet;
use tilewise::DType;

/// Every variant, type and pair of transposes around the edges of the tile. Each variant has twelve
/// texts. In them every operand meets every type, vector loads and single ones, along K and across.
/// A has the type of this index.
pub fn edges(table: Table, a: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for kernel in table.kernels() {
        for (i, layout) in LAYOUTS.into_iter().enumerate() {
            let vectors = (i + a).is_multiple_of(2);
            let types = [a, (a + i) % 3, (a + 2 * i) % 3].map(|t| DType::FLOATS[t]);
            let mut sizes =
                if vectors { even_sizes(kernel.variant) } else { odd_sizes(kernel.variant) };
            // Whole tiles side by side, with whole slices and one that is not whole. Then a tile
            // that ends where a tile turned round would end.
            let [bm, bn, bk] =
                [kernel.variant.bm, kernel.variant.bn, kernel.variant.bk].map(|size| size as usize);
            let rest = if vectors { 0 } else { bk.min(2) - 1 };
            sizes.extend([
                [bm, 2 * bn, 2 * bk - rest],
                [bm + (bm.max(bn) + bm.min(bn)) / 2 / 8 * 8, 2 * bn, bk],
            ]);
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

/// Every text that the suite makes, by theme.
pub fn all(table: Table) -> Vec<Case> {
    let themes = [
        thin,
        almost_whole,
        bands,
        splits,
        strides,
        padded,
        packed,
        mixed,
        epilogues,
        quantized,
        groups,
        group_edges,
        empty,
        rounding,
    ];
    (0..3)
        .flat_map(|a| edges(table, a))
        .chain(themes.into_iter().flat_map(|theme| theme(table)))
        .collect()
}

/// Cases for a run under a sanitizer, which is slow. Every kernel meets every type and layout
/// around the edges of its smallest tile; the other variants run once; and the shared files are all
/// met.
pub fn watched(table: Table) -> Vec<Case> {
    let smallest: Vec<_> = table.one_of_each().into_iter().map(|kernel| kernel.name).collect();
    let is_small = |case: &Case| case.kernel.as_ref().is_some_and(|name| smallest.contains(name));
    let (small, large): (Vec<_>, Vec<_>) = (0..3).flat_map(|a| edges(table, a)).partition(is_small);
    // Half of the cases are enough, and those of one row.
    let small = small
        .into_iter()
        .enumerate()
        .filter(|(i, case)| i % 2 == 1 || case.size[0] == 1)
        .map(|(_, case)| case);
    let mut met = HashSet::new();
    let large = large.into_iter().rev().filter(|case| met.insert(case.kernel.clone()));
    let mut cases: Vec<_> = small.chain(large).chain(almost_whole(table)).collect();
    let some = |cases: Vec<Case>, step: usize| cases.into_iter().step_by(step);
    cases.extend(
        some(splits(table), 9).chain(some(quantized(table), 7)).chain(some(groups(table), 13)),
    );
    cases.extend(some(strides(table), 31).chain(some(epilogues(table), 29)));
    cases
}

/// Each variant around the edges of its tile, in one type and two layouts, which take turns.
pub fn each_variant(table: Table) -> Vec<Case> {
    let kernels = table.kernels().into_iter().filter(|kernel| kernel.variant.unit().is_none());
    let of = |(i, kernel): (usize, Kernel)| {
        let layouts = |case: &Case| case.seed as usize / 100 % 2 == i / 3 % 2;
        let own = edges(table, i % 3)
            .into_iter()
            .filter(move |case| case.kernel.as_ref() == Some(&kernel.name));
        own.filter(layouts).collect::<Vec<_>>()
    };
    kernels.enumerate().flat_map(of).collect()
}

/// Cases for naga's MSL of WGSL in a run under a sanitizer: each variant once, and some cases for
/// the shared files.
pub fn translated(table: Table) -> Vec<Case> {
    let mut met = HashSet::new();
    let mut cases: Vec<_> =
        each_variant(table).into_iter().filter(|case| met.insert(case.kernel.clone())).collect();
    for theme in [splits, quantized, groups, epilogues] {
        cases
            .extend(theme(table).into_iter().filter(|case| met.contains(&case.kernel)).step_by(29));
    }
    let floor = Some(table.floor());
    cases.extend(gathered(table).into_iter().filter(|case| case.kernel == floor).take(3));
    let gates = epilogues(table).into_iter().filter(|case| case.gated && case.kernel == floor);
    cases.extend(gates.take(1));
    cases
}

/// All cases of the first kernel, and every sixth of the others. Most of what a theme tests lies in
/// files that all kernels share, and compiling takes longer than running.
pub fn sampled(table: Table, cases: Vec<Case>) -> Vec<Case> {
    let floor = table.floor();
    let first = |case: &Case| case.kernel.as_ref().is_some_and(|name| name.starts_with(&floor));
    let (all, others): (Vec<_>, Vec<_>) = cases.into_iter().partition(first);
    all.into_iter().chain(others.into_iter().step_by(6)).collect()
}

/// Sampled cases of quantized weights. Every mainloop meets every kind of format.
pub fn of_every_kind(table: Table) -> Vec<Case> {
    let kind = |case: &Case| {
        let mainloop =
            case.kernel.as_ref().and_then(|name| name.split('/').next()).map(str::to_owned);
        let format = case.quantized.map(|format| {
            let own = format
                .def()
                .constants
                .iter()
                .filter(|(name, _)| !["X_BLOCK", "X_SCALE"].contains(name));
            (format.def().family, own.collect::<Vec<_>>())
        });
        (mainloop, format)
    };
    let mut cases = sampled(table, quantized(table));
    let mut met: HashSet<_> = cases.iter().map(kind).collect();
    cases.extend(quantized(table).into_iter().filter(|case| met.insert(kind(case))));
    cases
}
