//! A few cases that stand for all.

use super::{
    F32, Table, almost_whole, bands, edges, epilogues, forms, gathered, group_edges, group_splits,
    groups, halves, packed, quantized, shared_loads, splits, strides, thin,
};
use crate::case::{Groups, LAYOUTS};
use crate::kernels::{Kernel, quant_families};
use crate::{Case, Place, counted, quant_formats, scaled, themes};
use tilewise::{Activation, Axis, DType, QuantFormat};
use tilewise_core::kernel::Language;
use tilewise_core::{Access, Variant};

/// The cases of the mutation check. A survivor meets all of them, so they are few and small. The
/// kernel that shares nothing is the cheapest, and meets every theme. One variant of each other
/// kernel meets the cases that concern its tile. All other variants differ in numbers only, and
/// meet one case.
pub fn for_mutants(table: Table) -> Vec<Case> {
    let one_of_each = table.one_of_each();
    let smallest: Vec<_> = one_of_each.iter().map(|kernel| kernel.name.as_str()).collect();
    let of = |case: &Case, kernels: &[&str]| {
        case.kernel
            .as_ref()
            .is_some_and(|name| kernels.contains(&name.split('+').next().unwrap_or(name)))
    };
    let tiles = (0..3)
        .flat_map(|a| edges(table, a))
        .chain(thin(table))
        .filter(|case| of(case, &smallest[1..]) && case.size[2] > 4);
    let tiles =
        tiles.enumerate().filter(|(i, case)| i % 3 == 0 || case.size[0] == 1).map(|(_, case)| case);
    // Only WGSL has all forms of groups.
    let forms = match table.0[0].kit.language {
        Language::Wgsl => [forms(table), gathered(table)].concat(),
        Language::Msl => Vec::new(),
    };
    let themes = strides(table)
        .into_iter()
        .chain(forms.clone())
        .chain(epilogues(table))
        .chain(groups(table))
        .chain(quantized(table))
        .chain(thin(table));
    // The sizes of themes are for larger tiles. Decoding weights takes long, so their first edges
    // are enough.
    let [bm, bn] = [one_of_each[0].variant.bm, one_of_each[0].variant.bn].map(|size| size as usize);
    let edge = |size: usize, tile: usize| if size > 2 * tile { tile + size % tile } else { size };
    let kinds = QuantFormat::kinds();
    let themes = themes.filter(|case| case.quantized.is_none_or(|format| kinds.contains(&format)));
    let themes = themes.filter(|case| of(case, &smallest[..1])).map(|case| {
        match (case.quantized, case.size) {
            (Some(format), [m, n, k])
                if format.block() > 64 && case.groups.is_none() && !case.across =>
            {
                Case { size: [m.min(3), n.min(9), k.min(2 * format.block() as usize)], ..case }
            }
            (Some(_), [m, n, k]) if case.groups.is_none() && !case.across => {
                Case { size: [edge(m, bm), edge(n, bn), k], ..case }
            }
            _ => case,
        }
    });
    let others = splits(table)
        .into_iter()
        .chain(almost_whole(table))
        .chain(bands(table))
        .chain(group_edges(table))
        .chain(group_splits(table))
        .chain(forms.clone())
        .chain(packed(table))
        .chain(scaled::cases(table))
        .chain(scaled::specials(table))
        .chain(scaled::split(table))
        .chain(scaled::split_specials(table))
        .chain(counted::cases(table));
    // The kernel of two rows stands for all kernels of several rows.
    let several = [&smallest[..], &["dot/2x64x32", "rows/2x8x128"]].concat();
    let others = others.filter(|case| of(case, &several)).chain(counted::turns(table));
    let others = others.chain(scaled::chains(table).into_iter().take(1));
    let others = others.chain(scaled::side_by_side(table));
    let split_epilogues = epilogues(table)
        .into_iter()
        .filter(|case| case.kernel.as_ref().is_some_and(|name| name.contains("gemv/1x4+")));
    // Eights of weights across K, whose last lines are not a whole step.
    let across = themes::across(table.kernels())
        .into_iter()
        .filter(|case| of(case, &["gemv/1x8"]) && case.size[1] < 192);
    let codes = quantized(table)
        .into_iter()
        .filter(|case| of(case, &smallest[1..]) && case.size[2] < 192)
        .step_by(3);
    let others = others.chain(split_epilogues.step_by(2)).chain(codes).chain(across);
    let groups = groups(table).into_iter().rev().take(16).filter(|case| of(case, &smallest[1..]));
    // Two tiles in each of two entries, one entry behind the other.
    let loads = shared_loads(table)
        .into_iter()
        .filter(|case| of(case, &["coop/16x64x64", "coop/32x64x64-k"]))
        .map(|case| {
            let [m, n, k] = case.size;
            Case { size: [m, n + 16, k], ..case.batch(2) }
        });
    // Formats of each family, decoded on their way to a matrix unit.
    let decoded = shared_loads(table)
        .into_iter()
        .filter(|case| of(case, &["coop/16x64x64"]))
        .flat_map(|case| {
            let formats = (0..3).flat_map(quant_families).collect::<Vec<_>>();
            formats.into_iter().map(move |format| {
                let [m, n, k] = case.size;
                let size = [m, n, k.next_multiple_of(format.block() as usize)];
                Case { size, quantized: Some(format), ..case.clone() }
            })
        });
    let others = others.chain(groups).chain(halves(table)).chain(loads).chain(decoded);
    let variants =
        table.kernels().into_iter().filter(|kernel| !smallest.contains(&kernel.name.as_str()));
    let (eights, variants): (Vec<_>, Vec<_>) =
        variants.partition(|kernel| matches!(kernel.variant.access, Access::Eights { .. }));
    let variants = variants.into_iter().map(|kernel| {
        let [m, n, k] = [kernel.variant.bm + 1, kernel.variant.bn + 5, 2 * kernel.variant.bk + 1]
            .map(|size| size as usize);
        Case::new([m, n, k], F32).layout(LAYOUTS[1]).kernel(&kernel.name)
    });
    // The smallest variants have no lanes, no eights side by side, and no rounds of sums. Each
    // variant that has them meets two cases, one in single elements and one in eights. Variants of
    // many rows have few steps.
    let eights = eights.into_iter().enumerate().flat_map(|(i, kernel)| {
        let Variant { bm, bn, bk, .. } = *kernel.variant;
        let k = if bm > 2 { 16 } else { 2 * bk };
        let [m, n, k] = [bm, bn, k].map(|size| size as usize);
        let half = [DType::BF16, DType::F16, DType::F32];
        let single = Case::new([m + 1, n + 5, k + 1], F32).layout(LAYOUTS[(i + 1) % 4]).odd();
        let eight =
            Case::new([m.next_multiple_of(8) + 8, n + 8, k + 8], half).layout(LAYOUTS[(i + 3) % 4]);
        [single, eight].map(|case| case.kernel(&kernel.name))
    });
    themes.chain(tiles).chain(others).chain(variants).chain(eights).collect()
}

/// A case for each type of A, B and C and each way in and out, on one kernel. The bits of the
/// outputs do not depend on the device.
pub fn for_bits(kernel: &Kernel) -> Vec<Case> {
    let [bm, bn, bk] =
        [kernel.variant.bm, kernel.variant.bn, kernel.variant.bk].map(|size| size as usize);
    let mut cases = Vec::new();
    for (i, layout) in LAYOUTS.into_iter().enumerate() {
        let types = [i, i + 1, 2 * i].map(|t| DType::FLOATS[t % 3]);
        let case = Case::new([bm.min(64) + 4, bn.min(64) + 4, bk + 8], types)
            .layout(layout)
            .kernel(&kernel.name);
        cases.push(if i % 2 == 0 { case } else { case.odd() });
    }
    let case = Case::new([5, 22, bk + 3], F32).kernel(&kernel.name);
    let (bias, residual) =
        (Some((Axis::N, Place::packed(DType::F16))), Some(Place::odd(DType::BF16)));
    // Powers of two have exact products. So it does not matter if a driver fuses them with the sum
    // that follows.
    cases.push(Case {
        alpha: 0.5,
        beta: -2.0,
        activation: Activation::Relu,
        residual,
        ..case.clone()
    });
    cases.push(Case { alpha: 0.5, bias, residual, ..case });
    let format = quant_formats()[0];
    let size = [3, 9, 2 * format.block() as usize];
    let types = [DType::F32, DType::F32, DType::BF16];
    cases.push(Case { quantized: Some(format), ..Case::new(size, types).kernel(&kernel.name) });
    let groups = Some(Groups { ends: vec![3, 3, 7], on_device: true });
    cases.push(Case {
        groups,
        ..Case::new([9, 22, 12], [DType::BF16, DType::F16, DType::F32]).kernel(&kernel.name)
    });
    if kernel.splits {
        let types = [DType::F32, DType::F32, DType::F16];
        cases.push(
            Case::new([5, 22, 2 * bk + 3], types).kernel(format!("{}+k2", kernel.name)).odd(),
        );
    }
    cases
}
