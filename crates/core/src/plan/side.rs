//! A or B, and how it lies.

use crate::kernel::Role;
use crate::problem::{Copied, Operand, Problem, Traits};

/// A or B, and how it lies.
#[derive(Clone, Copy)]
pub(super) struct Side {
    pub(super) name: &'static str,
    pub(super) role: Role,
    pub(super) operand: Operand,
    /// Extent along the axis that is not K.
    pub(super) extent: u64,
    pub(super) k: u64,
    pub(super) entries: u64,
    /// Whether storage runs along K.
    pub(super) along_k: bool,
    /// Its copy, if it was packed beforehand.
    pub(super) copy: Option<Copied>,
    /// Whether its lines are found by index.
    pub(super) gathered: bool,
    /// Whether entries are ranges of K that end anywhere.
    pub(super) in_ranges: bool,
    /// Whether entries are products of a list.
    pub(super) listed: bool,
    /// The share of an entry's rows that the device is expected to ask for. Absent: all rows are
    /// packed.
    pub(super) wanted: Option<f64>,
    /// Whether its product has many entries of B. Copies along K then lie in slabs.
    pub(super) many: bool,
}

impl Side {
    pub(super) fn both(problem: &Problem) -> [Side; 2] {
        let Problem { m, n, k, a, b, copies, .. } = *problem;
        let Traits { whole_k, listed, masked, .. } = problem.grouping.traits();
        let many = problem.entries() > 1;
        // An index may name any row, and entries that share A want unlike ones.
        let all = problem.gathered.is_some() || (a.is_shared() && problem.batch > 1);
        let masked = masked && !all;
        // Row strides of a list are multiples of `ld`, so there is room to round sizes up.
        let whole = |size: u64, operand: Operand| match listed {
            true => size.next_multiple_of(operand.ld),
            false => size,
        };
        [
            Side {
                name: "a",
                role: Role::A,
                operand: a,
                extent: whole(m, a),
                k: whole(k, a),
                entries: problem.batch,
                along_k: !a.transposed,
                copy: copies[0],
                gathered: problem.gathered.is_some(),
                in_ranges: !whole_k,
                listed,
                wanted: masked.then(|| problem.grouping.expected_rows(m) / m.max(1) as f64),
                many,
            },
            Side {
                name: "b",
                role: Role::B,
                operand: b,
                extent: whole(n, b),
                k: whole(k, b),
                entries: problem.entries(),
                along_k: b.transposed,
                copy: copies[1],
                gathered: false,
                in_ranges: !whole_k,
                listed,
                wanted: None,
                many,
            },
        ]
    }

    /// The operand that a copy was made of.
    pub(super) fn whole(&self, Copied { entries, extent, k }: Copied) -> Self {
        Side { extent, k, entries, wanted: None, many: entries > 1, ..*self }
    }
}
