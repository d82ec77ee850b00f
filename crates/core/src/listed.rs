//! Products of any sizes, each at its places in one storage for all of A, of B and of C.

use crate::grouping::{Grouping, LISTED, Traits};
use crate::problem::{Operand, Problem};

impl Problem {
    /// Each product of a [list](Grouping::Listed) by itself, given the numbers of all; a product
    /// that is left out has no rows. Empty for any other grouping.
    pub fn listed(&self, numbers: &[u32]) -> Vec<Problem> {
        let Traits { listed: true, groups: Some(groups), offset, .. } = self.grouping.traits()
        else {
            return Vec::new();
        };
        let number = |at: u64| numbers.get(at as usize).map_or(0, |&number| u64::from(number));
        (0..groups)
            .map(|group| {
                let first = offset + group * LISTED;
                self.one_of_list(std::array::from_fn(|at| number(first + at as u64)))
            })
            .collect()
    }

    fn one_of_list(&self, numbers: [u64; LISTED as usize]) -> Problem {
        let [m, n, k, a, a_ld, b, b_ld, c, c_ld] = numbers;
        let [m, n, k] = [m.min(self.m), n.min(self.n), k.min(self.k)];
        let places = [
            placed(&self.a, [a, a_ld], [m, k], self.a.ld),
            placed(&self.b, [b, b_ld], [k, n], self.b.ld),
            placed(&self.c, [c, c_ld], [m, n], 1).filter(|_| m <= 1 || c_ld >= n),
        ];
        let one = Problem { m, n, k, batch: 1, grouping: Grouping::Batched, ..*self };
        match places {
            [Some(a), Some(b), Some(c)] => Problem { a, b, c, ..one },
            _ => Problem { m: 0, ..one },
        }
    }
}

/// A matrix at a place in a storage, if it lies inside, and its place and row stride are multiples
/// of `step`.
fn placed(
    whole: &Operand,
    [at, ld]: [u64; 2],
    [rows, columns]: [u64; 2],
    step: u64,
) -> Option<Operand> {
    let (lines, width) = if whole.transposed { (columns, rows) } else { (rows, columns) };
    let fits = lines == 0
        || width == 0
        || at + (lines - 1) * ld + width <= whole.batch_stride
            && at.is_multiple_of(step)
            && (lines == 1 || ld.is_multiple_of(step));
    let offset = whole.offset + at;
    fits.then_some(Operand { offset, ld, batch_stride: 0, ..*whole })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::DType;

    #[test]
    fn products_outside_are_left_out() {
        let plain = Problem::dense(DType::F32, 4, 5, 6);
        let at = |operand: Operand, elements| Operand {
            offset: 10,
            ld: 1,
            batch_stride: elements,
            len: 10 + elements,
            ..operand
        };
        let whole = Problem {
            a: at(plain.a, 24),
            b: at(plain.b.t(), 30),
            c: at(plain.c, 20),
            batch: 1,
            grouping: Grouping::Listed { groups: 1, offset: 2, sizes: None },
            ..plain
        };
        let rows = |numbers: [u32; 9]| {
            let one = whole.listed(&[&[7, 7], &numbers[..]].concat())[0];
            assert_eq!((one.batch, one.grouping), (1, Grouping::Batched));
            [one.m, one.n, one.k]
        };
        // A product that takes all of everything, and one whose sizes are larger.
        let full = [4, 5, 6, 0, 6, 0, 6, 0, 5];
        assert_eq!(rows(full), [4, 5, 6]);
        assert_eq!(rows([u32::MAX, 9, 7, 0, 6, 0, 6, 0, 5]), [4, 5, 6]);
        for (at, number) in [(3, 1), (4, 7), (5, 1), (6, 7), (7, 1), (8, 6), (8, 4)] {
            let mut wrong = full;
            wrong[at] = number;
            assert_eq!(rows(wrong), [0, 5, 6], "{at}");
        }
        // An empty operand lies anywhere, and a single row has no stride.
        assert_eq!(rows([4, 5, 0, u32::MAX, 9, u32::MAX, 9, 0, 5]), [4, 5, 0]);
        assert_eq!(rows([1, 5, 6, 18, u32::MAX, 0, 6, 15, 0]), [1, 5, 6]);
        let one = whole.listed(&[0, 0, 2, 3, 4, 5, 6, 1, 7, 8, 9])[0];
        assert_eq!([one.a.offset, one.a.ld, one.b.offset, one.b.ld], [15, 6, 11, 7]);
        assert_eq!([one.c.offset, one.c.ld], [18, 9]);
        assert!(plain.listed(&[]).is_empty());
    }
}
