//! The place of an operand in a buffer that is larger than it needs.

use tilewise::{DType, Result, Tensor};
use tilewise_core::{Format, Grouping, Operand};

/// Elements of guard band behind every operand; and before it, if nothing else is asked for.
pub const GUARD: usize = 8;

/// How the entries of a batch follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entries {
    /// One after the other, with this many elements between them.
    Apart(usize),
    /// Row by row: row r of every entry before row r + 1 of any.
    Between,
    /// One entry serves all, because the stride is 0.
    Stride0,
    /// One entry serves all, because the tensor has no more.
    Single,
    /// A nested batch \[outer, heads\]: row r of all heads lies before row r + 1 of any, as in
    /// attention.
    Heads,
    /// Like `Heads`, with one head for each group.
    SharedHeads,
    /// One after the other, one for each group.
    Shared,
    /// One after the other, the same for all outer entries.
    Inner,
    /// Like `Inner`, with one for each group.
    SharedInner,
    /// One after the other, the same for the outer entries of a group.
    SharedOuter,
}

/// How many entries a batch has: groups of outer entries, outer entries in each group, groups of
/// heads in each outer entry, and heads in each group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub [usize; 4]);

impl From<usize> for Count {
    fn from(entries: usize) -> Self {
        Count([1, 1, 1, entries])
    }
}

impl Count {
    /// The number of all entries.
    pub fn entries(self) -> usize {
        self.0.iter().product()
    }

    /// The grouping of a product.
    pub fn grouping(self) -> Grouping {
        match self.0 {
            [1, 1, 1, _] => Grouping::Batched,
            sizes => Grouping::Nested { sizes: sizes.map(|size| size as u64) },
        }
    }

    /// Strides for these sizes, without missing dimensions.
    pub(crate) fn strides(self, strides: [usize; 4]) -> [u64; 4] {
        match (self.0, strides.map(|stride| stride as u64)) {
            ([1, 1, 1, _], [.., each]) => [0, 0, 0, each],
            (_, strides) => strides,
        }
    }

    /// The distance of entries along each dimension, if they follow each other.
    fn packed(self, own: usize) -> [usize; 4] {
        let [_, outer, groups, each] = self.0;
        [own * each * groups * outer, own * each * groups, own * each, own]
    }

    /// The place at which each entry of an operand begins.
    pub fn firsts(self, operand: &Operand) -> Vec<usize> {
        let dimensions = self.0.into_iter().zip(operand.entry_strides());
        dimensions.fold(vec![operand.offset as usize], |firsts, (size, stride)| {
            let along = |first: usize| (0..size).map(move |i| first + i * stride as usize);
            firsts.into_iter().flat_map(along).collect()
        })
    }
}

/// Type and layout of an operand; [`operand`](Place::operand) gives the numbers for a shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// Element type.
    pub dtype: DType,
    /// Whether the storage holds the transpose.
    pub transposed: bool,
    /// Elements before the first, all guard.
    pub lead: usize,
    /// Elements by which the row stride exceeds the row.
    pub pad: usize,
    /// How batch entries follow each other.
    pub entries: Entries,
}

impl Place {
    /// Packed rows, at an offset that suits vector loads.
    pub const fn packed(dtype: DType) -> Self {
        Place { dtype, transposed: false, lead: GUARD, pad: 0, entries: Entries::Apart(0) }
    }

    /// An odd offset and odd gaps: nothing is aligned.
    pub const fn odd(dtype: DType) -> Self {
        Place { dtype, transposed: false, lead: GUARD + 3, pad: 5, entries: Entries::Apart(3) }
    }

    /// Stores the matrices as their transposes if `transposed`.
    pub const fn transposed(self, transposed: bool) -> Self {
        Place { transposed, ..self }
    }

    /// Lets batch entries follow each other in another way.
    pub const fn entries(self, entries: Entries) -> Self {
        Place { entries, ..self }
    }

    /// Number of distinct entries stored for a batch.
    pub fn stored(&self, count: impl Into<Count>) -> usize {
        let count = count.into();
        let [far, outer, groups, each] = count.0;
        match self.entries {
            Entries::Apart(_) | Entries::Between | Entries::Heads => count.entries(),
            Entries::Stride0 | Entries::Single => 1,
            Entries::SharedHeads | Entries::Shared => far * outer * groups,
            Entries::Inner => groups * each,
            Entries::SharedInner => groups,
            Entries::SharedOuter => far * groups * each,
        }
    }

    /// The row stride and the strides of entries, for a matrix of `lines` lines. `row` is the
    /// length of a line with its gap.
    fn strides(&self, count: Count, lines: usize, row: usize) -> (usize, [usize; 4]) {
        let [_, outer, groups, each] = count.0;
        let whole = lines * row;
        let of_outer = |own: usize| [own * outer, own];
        match self.entries {
            Entries::Apart(gap) => (row, count.packed(whole + gap)),
            Entries::Between => (row * count.entries(), count.packed(row)),
            Entries::Stride0 | Entries::Single => (row, [0; 4]),
            Entries::Heads => {
                let ld = row * groups * each;
                let [far, near] = of_outer(lines * ld);
                (ld, [far, near, row * each, row])
            }
            Entries::SharedHeads => {
                let [far, near] = of_outer(whole * groups);
                (row * groups, [far, near, row, 0])
            }
            Entries::Shared => {
                let [far, near] = of_outer(whole * groups);
                (row, [far, near, whole, 0])
            }
            Entries::Inner => (row, [0, 0, whole * each, whole]),
            Entries::SharedInner => (row, [0, 0, whole, 0]),
            Entries::SharedOuter => (row, [whole * each * groups, 0, whole * each, whole]),
        }
    }

    /// The operand in elements from the start of its buffer, whose length includes the guard bands.
    pub fn operand(&self, count: impl Into<Count>, [rows, cols]: [usize; 2]) -> Operand {
        let count = count.into();
        let (lines, width) = if self.transposed { (cols, rows) } else { (rows, cols) };
        let (ld, strides) = self.strides(count, lines, width + self.pad);
        let reach = strides.iter().zip(count.0).map(|(stride, size)| size.max(1) * stride);
        let len = self.lead + reach.max().unwrap_or(0).max(lines * ld) + lines * ld + ld + GUARD;
        Operand {
            format: Format::Dense(self.dtype),
            transposed: self.transposed,
            offset: self.lead as u64,
            ld: ld as u64,
            batch_stride: 0,
            outer_strides: [0; 3],
            len: len.next_multiple_of(8) as u64,
        }
        .with_entry_strides(count.strides(strides))
    }

    /// A view of `flat`, the whole buffer, as an operand. It is \[rows, cols\] without a batch,
    /// \[entries, rows, cols\] with one, and \[outer, heads, rows, cols\] with a nested one.
    pub fn view(&self, flat: &Tensor, count: Option<Count>, shape: [usize; 2]) -> Result<Tensor> {
        let whole = count.unwrap_or(1.into());
        let operand = self.operand(whole, shape);
        let ld = operand.ld as usize;
        let inner = if self.transposed { [1, ld] } else { [ld, 1] };
        let [most, outer, groups, each] = whole.0;
        let heads = match self.entries {
            Entries::Single => [1, 1],
            Entries::SharedHeads | Entries::Shared => [most * outer, groups],
            Entries::Inner => [1, groups * each],
            Entries::SharedInner => [1, groups],
            Entries::SharedOuter => [most, groups * each],
            _ => [most * outer, groups * each],
        };
        let [far, near, group, own] = operand.entry_strides().map(|stride| stride as usize);
        let far = if heads[0] == most { far } else { near };
        let near = if heads[1] == groups { group } else { own };
        let all = [(heads[0], far), (heads[1], near), (shape[0], inner[0]), (shape[1], inner[1])];
        let first = match whole.grouping() {
            _ if count.is_none() => 2,
            Grouping::Nested { .. } => 0,
            _ => 1,
        };
        let (shape, strides): (Vec<_>, Vec<_>) = all[first..].iter().copied().unzip();
        flat.as_strided(&shape, &strides, self.lead)
    }
}
