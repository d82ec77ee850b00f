//! Which rows that name their entries of B are multiplied as they stand, and which are sorted
//! first.

use super::limits::binding_limit;
use super::ranges::bytes_bound;
use crate::caps::Caps;
use crate::problem::{Problem, Traits};
use crate::role::Role;

/// Mean rows of the entries of B that have any, up to which each row reads its entry by itself.
/// With two an H200 needed 0.96 to 1.01 of the time of sorted rows, without the time to sort them;
/// with four 1.4 (benches/record/NOTES.md).
const FEW: f64 = 2.0;

/// Whether rows with an index each ([`Grouping::Indexed`](crate::Grouping::Indexed)) are multiplied
/// as they stand: each entry of B is expected to have few of them, and the device binds all of B at
/// once. Otherwise they must be sorted, and multiplied as groups.
pub fn by_index(problem: &Problem, caps: &Caps) -> bool {
    let Traits { indexed, numbers: rows, groups, .. } = problem.grouping.traits();
    let met = problem.grouping.expected_entries(rows, 1);
    indexed
        && groups > Some(0)
        && rows as f64 <= FEW * met
        && bytes_bound(problem, Role::B, caps) <= binding_limit(caps).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{DType, Format, Grouping, Operand};

    #[test]
    fn few_rows_and_no_large_stack() {
        let caps = Caps::webgpu_default();
        let is_by_index = |rows, groups, n| {
            let b = Operand::packed(Format::Dense(DType::F16), groups, 64, n);
            let grouping = Grouping::Indexed { groups, rows, offset: 0 };
            by_index(&Problem { b, grouping, ..Problem::dense(DType::F16, rows, n, 64) }, &caps)
        };
        let most = |groups| (1..999).take_while(|&rows| is_by_index(rows, groups, 8)).last();
        assert_eq!([1, 2, 8, 64, 128].map(most), [2, 3, 13, 102, 204].map(Some));
        assert!(is_by_index(0, 8, 8) && !is_by_index(0, 0, 8));
        // 64 matrices of 64×16,384 take 128 MiB, the default limit.
        assert_eq!([4096, 16_384, 16_385].map(|n| is_by_index(8, 64, n)), [true, true, false]);
        assert!(!by_index(&Problem::dense(DType::F16, 8, 8, 64), &caps));
    }
}
