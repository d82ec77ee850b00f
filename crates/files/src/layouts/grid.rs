//! Scales that blocks of rows and columns share.

/// Which scale an element of W has, `[N, K]` or a stack of them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Grid {
    /// Rows of one matrix.
    n: usize,
    /// Rows that share a scale; the last block may have fewer.
    rows: usize,
    /// Columns that share a scale; the last block may have fewer.
    pub(super) columns: usize,
    /// Scales from one block to that below it.
    down: usize,
    /// Scales from one matrix to the next.
    next: usize,
}

impl Grid {
    /// The grid of scales of this shape: one for all, one for each matrix or row, or one for each
    /// block. Blocks are `said`; or parts of a row, all of one length; or 128 by 128, as DeepSeek
    /// has them. One scale in two dimensions is no scale of several blocks that are said.
    pub(super) fn of(w: &[usize], scales: &[usize], said: Option<[usize; 2]>) -> Option<Self> {
        let [stack @ .., n, k] = w else { return None };
        let (n, k) = (*n, *k);
        // Without columns, a block has one all the same: counts are divided by it.
        let whole = |next| Grid { n, rows: n, columns: k.max(1), down: 0, next };
        let is_cut = said.is_some_and(|[rows, columns]| n > rows || k > columns);
        if scales.iter().all(|&extent| extent == 1) {
            return (scales.len() < 2 || !is_cut).then(|| whole(0));
        }
        let own = scales.strip_prefix(stack)?;
        let (down, across) = match *own {
            [1, 1] if is_cut => return None,
            [] | [1] | [1, 1] => return Some(whole(1)),
            [down] => (down, 1),
            [down, across] => (down, across),
            _ => return None,
        };
        let in_row = (across > 0 && k.is_multiple_of(across)).then(|| [1, k / across]);
        let [rows, columns] =
            [said, in_row, Some([128, 128])].into_iter().flatten().find(|&[rows, columns]| {
                rows > 0 && columns > 0 && (n.div_ceil(rows), k.div_ceil(columns)) == (down, across)
            })?;
        Some(Grid { n, rows, columns, down: across, next: down.saturating_mul(across) })
    }

    /// The scale of an element. Rows of a stack are counted through.
    pub(super) fn at(&self, row: usize, column: usize) -> usize {
        row / self.n * self.next + row % self.n / self.rows * self.down + column / self.columns
    }

    /// Whether no two rows share a scale.
    pub(super) fn is_by_row(&self) -> bool {
        self.rows == 1
    }
}

#[cfg(test)]
mod tests {
    use super::Grid;

    #[test]
    fn grids_of_all_kinds() {
        let of = |w: &[usize], scales: &[usize], said| Grid::of(w, scales, said);
        for (w, scales, said, row, column, at) in [
            (&[5, 64][..], &[][..], None, 4, 63, 0),
            (&[5, 64], &[1], None, 4, 63, 0),
            (&[5, 64], &[5], None, 4, 63, 4),
            (&[5, 64], &[5, 1], None, 4, 63, 4),
            (&[5, 64], &[5, 2], None, 4, 32, 9),
            (&[300, 320], &[3, 3], None, 256, 128, 7),
            (&[300, 320], &[5, 10], Some([64, 32]), 64, 319, 19),
            (&[2, 5, 64], &[2], None, 5, 0, 1),
            (&[2, 5, 64], &[2, 1, 1], None, 9, 63, 1),
            (&[2, 5, 64], &[2, 5], None, 9, 63, 9),
            (&[2, 130, 256], &[2, 2, 2], None, 130 + 128, 255, 7),
        ] {
            assert_eq!(of(w, scales, said).unwrap().at(row, column), at, "{w:?} {scales:?}");
        }
        for (w, scales, said) in [
            (&[64][..], &[][..], None),
            (&[5, 64], &[4], None),
            (&[5, 64], &[5, 3], None),
            (&[5, 64], &[5, 0], None),
            (&[5, 64], &[5, 2, 2], None),
            (&[300, 320], &[1, 1], Some([128, 128])),
            (&[2, 300, 320], &[2, 1, 1], Some([128, 128])),
            (&[300, 320], &[3, 2], None),
            (&[300, 320], &[5, 10], Some([64, 0])),
            (&[2, 5, 64], &[3, 5], None),
        ] {
            assert_eq!(of(w, scales, said), None, "{w:?} {scales:?}");
        }
    }
}
