//! Sizes that the host knows of a list of products.

/// Sums over the products of a list that the host knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ListSizes {
    /// Sum of M·N.
    pub area: u64,
    /// Sum of M.
    pub rows: u64,
    /// Sum of N.
    pub columns: u64,
}

/// Sides of tiles for which a list from the host has tables.
const SIDES: [u32; 6] = [8, 16, 32, 64, 128, 256];

impl ListSizes {
    /// Tables behind the numbers of the list, one for each shape of tiles.
    pub const TABLES: u64 = (SIDES.len() * SIDES.len()) as u64;

    /// Sums over products of these M and N.
    pub fn of(sizes: impl Iterator<Item = [u32; 2]>) -> Self {
        sizes.fold(ListSizes::default(), |sums, size| {
            let [m, n] = size.map(u64::from);
            let ListSizes { area, rows, columns } = sums;
            ListSizes { area: area + m * n, rows: rows + m, columns: columns + n }
        })
    }

    /// The tables of these products: for each shape of tiles and each product, the tiles of all
    /// products up to it, at most `u32::MAX`.
    pub fn tables(sizes: &[[u32; 2]]) -> Vec<u32> {
        let shapes = SIDES.into_iter().flat_map(|bm| SIDES.map(|bn| [bm, bn]));
        let table = |[bm, bn]: [u32; 2]| {
            sizes.iter().scan(0u32, move |all, [m, n]| {
                *all = all.saturating_add(m.div_ceil(bm).saturating_mul(n.div_ceil(bn)));
                Some(*all)
            })
        };
        shapes.flat_map(table).collect()
    }

    /// The number of the table for tiles of this shape, if there is one.
    pub fn table([bm, bn]: [u32; 2]) -> Option<u64> {
        let place = |side| SIDES.iter().position(|own| *own == side);
        Some((place(bm)? * SIDES.len() + place(bn)?) as u64)
    }

    /// Tiles of `products` products, at most.
    pub(crate) fn tiles(self, products: u64, [bm, bn]: [u64; 2]) -> u64 {
        let ListSizes { area, rows, columns } = self;
        let [bm, bn] = [bm, bn].map(u128::from);
        let [area, rows, columns, products] = [area, rows, columns, products].map(u128::from);
        // Each product has (m + bm − 1) / bm tiles along M, rounded down.
        let sum = area + rows * (bn - 1) + columns * (bm - 1) + products * (bm - 1) * (bn - 1);
        u64::try_from(sum / (bm * bn)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_at_most_as_many() {
        let sizes = [[1, 1], [128, 64], [129, 65], [0, 9], [9, 0], [7, 500]];
        let sums = ListSizes::of(sizes.into_iter());
        let tables = ListSizes::tables(&sizes);
        assert_eq!(tables.len() as u64, ListSizes::TABLES * sizes.len() as u64);
        for (bm, bn) in SIDES.into_iter().flat_map(|bm| SIDES.map(|bn| (bm, bn))) {
            let number = ListSizes::table([bm, bn]).unwrap() as usize;
            let table = &tables[number * sizes.len()..][..sizes.len()];
            let ends = sizes.iter().scan(0, |end, [m, n]| {
                *end += m.div_ceil(bm) * n.div_ceil(bn);
                Some(*end)
            });
            assert!(table.iter().copied().eq(ends), "{bm}×{bn}");
            let most = sums.tiles(sizes.len() as u64, [bm, bn].map(u64::from));
            let last = u64::from(table[sizes.len() - 1]);
            // One row and one column of tiles more for each product is the most it overstates.
            let above = sizes.iter().map(|[m, n]| (m.div_ceil(bm) + 1) * (n.div_ceil(bn) + 1));
            assert!((last..=u64::from(above.sum::<u32>())).contains(&most), "{bm}×{bn}: {most}");
        }
        assert_eq!(ListSizes::table([48, 64]), None);
        assert_eq!(ListSizes::tables(&[[u32::MAX; 2]; 2])[..2], [u32::MAX; 2]);
    }
}
