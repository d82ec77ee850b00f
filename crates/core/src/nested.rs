//! Brings a batch of several dimensions to as few of them as its strides need. Most need one, and
//! are planned as any other batch.

use crate::problem::{Bias, Epilogue, Grouping, Operand, Problem};
use std::ops::Range;

/// A dimension of a nested batch: its size, and the stride of each operand along it.
type Level = (u64, [u64; 5]);

impl Problem {
    /// The problem with fewer dimensions in its [nested](Grouping::Nested) batch. Neighbouring
    /// dimensions become one if every operand has one stride for both; those of size 1 go. If one
    /// is left, the batch is nested no more.
    pub fn collapsed(&self) -> Problem {
        let Some(sizes) = self.grouping.nest() else { return *self };
        let (mut levels, mut len) = ([(1, [0; 5]); 4], 0);
        for (level, size) in sizes.into_iter().enumerate().filter(|(_, size)| *size != 1) {
            let strides = operands(&mut { *self })
                .map(|operand| operand.map_or(0, |operand| operand.entry_strides()[level]));
            levels[len] = (size, strides);
            len += 1;
            while let [.., outer, inner] = levels[..len]
                && let Some(both) = one_of(outer, inner)
            {
                len -= 1;
                levels[len - 1] = both;
            }
        }
        with_levels(self, &levels[..len])
    }
}

/// Both dimensions as one, if every operand has one stride for both.
fn one_of((outer_size, outer): Level, (size, inner): Level) -> Option<Level> {
    let one = outer.iter().zip(inner).all(|(outer, inner)| size.checked_mul(inner) == Some(*outer));
    outer_size.checked_mul(size).filter(|_| one).map(|size| (size, inner))
}

/// Some entries of the outermost dimension of a nested batch.
pub(crate) fn of_outermost(problem: &Problem, range: Range<u64>) -> Problem {
    let Some(mut sizes) = problem.grouping.nest() else { return *problem };
    let Some(outermost) = sizes.iter().position(|size| *size > 1) else { return *problem };
    let mut some = *problem;
    for operand in operands(&mut some).into_iter().flatten() {
        operand.offset += range.start * operand.entry_strides()[outermost];
    }
    let count = range.end - range.start;
    some.batch = some.batch / sizes[outermost] * count;
    sizes[outermost] = count;
    Problem { grouping: Grouping::Nested { sizes }, ..some }.collapsed()
}

/// Entries of the outermost dimension of a nested batch.
pub(crate) fn outermost(grouping: Grouping) -> Option<u64> {
    grouping.nest()?.into_iter().find(|size| *size > 1)
}

/// Whether an operand has one stride for all entries.
pub(crate) fn is_even(grouping: Grouping, operand: &Operand) -> bool {
    let levels = grouping.levels(1, operand.entry_strides());
    levels.windows(2).all(|pair| {
        let [(outer_size, outer), (size, inner)] = [pair[0], pair[1]];
        outer_size <= 1 || size.checked_mul(inner) == Some(outer)
    })
}

fn with_levels(problem: &Problem, levels: &[Level]) -> Problem {
    let mut problem = *problem;
    let mut sizes = [1; 4];
    for (place, (size, _)) in sizes[4 - levels.len()..].iter_mut().zip(levels) {
        *place = *size;
    }
    for (own, operand) in operands(&mut problem).into_iter().enumerate() {
        let Some(operand) = operand else { continue };
        let mut strides = [0; 4];
        for (place, (_, all)) in strides[4 - levels.len()..].iter_mut().zip(levels) {
            *place = all[own];
        }
        *operand = operand.with_entry_strides(strides);
    }
    problem.grouping = match levels {
        [] | [_] => Grouping::Batched,
        _ => {
            // Copies that were made beforehand have their entries one after the other.
            for copy in &mut problem.copies {
                *copy = copy.filter(|copy| copy.entries == 1);
            }
            Grouping::Nested { sizes }
        }
    };
    problem
}

/// The operands that have entries.
fn operands(problem: &mut Problem) -> [Option<&mut Operand>; 5] {
    let Problem { a, b, c, epilogue: Epilogue { bias, residual, .. }, .. } = problem;
    let bias = bias.as_mut().map(|Bias { operand, .. }| operand);
    [Some(a), Some(b), Some(c), bias, residual.as_mut()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::DType;

    /// Strides of A, B and C along dimensions of these sizes.
    fn nested(sizes: [u64; 4], strides: [[u64; 4]; 3]) -> Problem {
        let mut problem = Problem::dense(DType::F32, 2, 2, 2);
        for (operand, strides) in
            [&mut problem.a, &mut problem.b, &mut problem.c].into_iter().zip(strides)
        {
            *operand = operand.with_entry_strides(strides);
        }
        let batch = sizes.iter().product();
        Problem { batch, grouping: Grouping::Nested { sizes }, ..problem }.collapsed()
    }

    #[test]
    fn dimensions_with_one_stride_are_one() {
        let all = |strides| [strides; 3];
        let batched = nested([1, 3, 1, 5], all([0, 20, 9, 4]));
        assert_eq!((batched.grouping, batched.batch), (Grouping::Batched, 15));
        assert_eq!(batched.a.entry_strides(), [0, 0, 0, 4]);
        let one = nested([1; 4], all([7, 8, 9, 4]));
        assert_eq!((one.grouping, one.a.entry_strides()), (Grouping::Batched, [0; 4]));
        // B serves groups of four, and is packed: with A and C packed, two dimensions are left.
        let packed = [24 * 4, 8 * 4, 4 * 4, 4];
        let grouped = nested([2, 3, 2, 4], [packed, [24, 8, 4, 0], packed]);
        assert_eq!(grouped.grouping, Grouping::Nested { sizes: [1, 1, 12, 4] });
        assert_eq!(grouped.b.entry_strides(), [0, 0, 4, 0]);
        assert_eq!(grouped.a.entry_strides(), [0, 0, 16, 4]);
        let entry = of_outermost(&grouped, 5..6);
        assert_eq!((entry.grouping, entry.batch), (Grouping::Batched, 4));
        assert_eq!((entry.a.offset, entry.b.offset), (80, 20));
        assert_eq!((entry.a.entry_strides(), entry.b.is_shared()), ([0, 0, 0, 4], true));
        assert!(is_even(grouped.grouping, &grouped.a) && !is_even(grouped.grouping, &grouped.b));
        let none = nested([2, 0, 1, 4], all([1, 2, 3, 4]));
        assert_eq!(none.batch, 0);
    }
}
