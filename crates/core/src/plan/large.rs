//! Which grouped products are computed group by group.

use crate::problem::{DType, Format, Operand, Problem, Traits};

/// Groups that are computed one by one, at most.
const FEW: usize = 4;

/// Elements of C that each group must have: smaller products do not fill the cores by themselves.
const LARGE: u64 = 1 << 24;

/// Whether a grouped product is computed as a dense one for each group that has rows. `rows` are
/// the numbers of rows of these groups.
///
/// In row-major f16 the dense products took 0.97 to 1.00 of the time of one grouped product. In
/// other layouts and types, and with smaller groups, they took as long or longer
/// (benches/record/NOTES.md).
pub fn by_groups(problem: &Problem, rows: impl Iterator<Item = u64> + Clone) -> bool {
    let grouping = problem.grouping.traits();
    let row_major =
        |operand: &Operand| operand.format == Format::Dense(DType::F16) && !operand.transposed;
    matches!(grouping, Traits { shares_rows: true, indexed: false, first: 0, .. })
        && (1..=FEW).contains(&rows.clone().take(FEW + 1).count())
        && rows.clone().all(|rows| rows.saturating_mul(problem.n) >= LARGE)
        && row_major(&problem.a)
        && row_major(&problem.b)
        && problem.gathered.is_none()
        && problem.copies.iter().all(Option::is_none)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Grouping;

    #[test]
    fn few_large_groups_in_row_major_f16() {
        let grouped = |groups, n, k| Problem {
            b: Operand::packed(Format::Dense(DType::F16), groups, k, n),
            grouping: Grouping::RaggedM { groups, first: 0, offset: 0, expected: None },
            ..Problem::dense(DType::F16, 8192, n, k)
        };
        let of = |problem: &Problem, rows: &[u64]| by_groups(problem, rows.iter().copied());
        let large = grouped(8, 8192, 64);
        assert!(of(&large, &[2048]) && of(&large, &[2048; 4]));
        for rows in [&[][..], &[2048; 5], &[2048, 2047]] {
            assert!(!of(&large, rows), "{rows:?}");
        }
        let f32s = Problem { a: Problem::dense(DType::F32, 8192, 8192, 64).a, ..large };
        let transposed = Problem { b: large.b.t(), ..large };
        let dense = Problem::dense(DType::F16, 8192, 8192, 64);
        let shard = Grouping::RaggedM { groups: 8, first: 1, offset: 0, expected: None };
        for other in [f32s, transposed, dense, Problem { grouping: shard, ..large }] {
            assert!(!of(&other, &[2048]), "{other:?}");
        }
    }
}
