//! Cases for operands that a pass packs for matrix units, and for prepared operands.

use super::{F32, Table};
use crate::case::{Groups, LAYOUTS};
use crate::kernels::Kernel;
use crate::{Case, Entries};
use tilewise::DType;

/// Operands that several workgroups pack, along their lines and across. They lie in a batch, or one
/// serves all entries.
pub fn packed(table: Table) -> Vec<Case> {
    let wide = |kernel: &Kernel, layout| {
        Case::new([5, 301, 35], F32).layout(layout).kernel(&kernel.name).batch(2).odd()
    };
    let units: Vec<_> =
        table.one_of_each().into_iter().filter(|kernel| kernel.variant.unit().is_some()).collect();
    let cases = units.iter().flat_map(|kernel| LAYOUTS.map(|layout| wide(kernel, layout)));
    let once =
        units.iter().map(|kernel| Case::new([70, 9, 261], F32).kernel(&kernel.name).batch(2).odd());
    let once = once.map(|case| Case { a: case.a.entries(Entries::Stride0), ..case });
    // The last elements along K fill whole words of both operands.
    let words = units
        .iter()
        .map(|kernel| Case::new([5, 9, 262], F32).layout(LAYOUTS[1]).kernel(&kernel.name).odd());
    cases.chain(once).chain(words).collect()
}

/// Stacks of f16 that are stored along K, whose rows matrix units take as they lie.
pub fn stacks(table: Table) -> Vec<Case> {
    let units = table.one_of_each().into_iter().filter(|kernel| kernel.variant.unit().is_some());
    let cases = units.flat_map(|kernel| {
        let case = Case::new([9, 40, 256], [DType::F16; 3]).layout(LAYOUTS[1]).kernel(&kernel.name);
        let groups = Some(Groups { ends: vec![3, 3, 9], on_device: true });
        [case.clone().batch(2), Case { groups, ..case }]
    });
    cases.collect()
}
