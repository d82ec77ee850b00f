//! Gates, in place of residuals and in even columns, under every kernel that takes them.

use super::{F32, Table};
use crate::case::Groups;
use crate::{Case, themes};
use tilewise::DType;

/// Gates on the kernel that shares the least, and with splits that are added; and pairs of columns,
/// if the language has them.
pub fn gates(table: Table) -> Vec<Case> {
    let mut cases = if table.0[0].kit.paired.is_some() { pairs(table) } else { Vec::new() };
    let split = table.one_of_each().into_iter().find(|kernel| kernel.splits);
    let split = split.map(|kernel| format!("{}+k2", kernel.name));
    for (i, out) in DType::FLOATS.into_iter().enumerate() {
        let case = Case::new([6, 22, 11], [DType::F32, DType::F16, out]);
        let whole = case.clone().kernel(table.floor());
        cases.extend(themes::gates(&whole, DType::FLOATS[(i + 1) % 3]));
        let split =
            split.as_ref().map(|name| Case { size: [3, 9, 600], ..case }.odd().kernel(name));
        cases.extend(split.iter().flat_map(|case| themes::gates(case, DType::FLOATS[i]).pop()));
    }
    let case = Case::new([9, 23, 5], F32).kernel(table.floor());
    cases.extend(themes::gates(&case, DType::F16).pop().map(in_groups));
    cases
}

/// Pairs under each kernel, for each output type: C in whole vectors, at odd places, and with
/// splits that are added.
fn pairs(table: Table) -> Vec<Case> {
    let mut cases = Vec::new();
    for kernel in table.one_of_each() {
        for (i, out) in DType::FLOATS.into_iter().enumerate() {
            let (k, dtype) = (kernel.variant.bk as usize + 3, DType::FLOATS[(i + 1) % 3]);
            let case = |n| Case::new([6, n, k], [DType::F32, DType::F32, out]).kernel(&kernel.name);
            cases.extend(themes::pairs(&case(48), dtype).pop());
            cases.extend(themes::pairs(&case(22).odd(), dtype));
            if kernel.splits {
                let split = case(22).kernel(format!("{}+k2", kernel.name)).batch(2).odd();
                cases.extend(themes::pairs(&split, dtype).pop());
            }
        }
    }
    let case = Case::new([9, 22, 5], F32).kernel(table.floor());
    cases.extend(themes::pairs(&case, DType::F16).pop().map(in_groups));
    cases
}

fn in_groups(case: Case) -> Case {
    let groups = Some(Groups { ends: vec![2, 2, 7], on_device: true });
    Case { groups, ..case }
}
