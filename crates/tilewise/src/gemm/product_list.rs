//! Products of any sizes, as a list.

use crate::context::Context;
use crate::tensor::Tensor;
use std::ops::Range;
use std::sync::Arc;
use tilewise_core::problem::{LISTED, ListSizes};
use tilewise_core::{Error, Result};

/// A product of a [list](ProductList): its sizes, and for A \[M,K\], B \[K,N\] and C \[M,N\] the
/// place of the first element and how many elements lie from one row to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProductShape {
    /// Rows of A and C.
    pub m: u32,
    /// Columns of B and C.
    pub n: u32,
    /// The summed dimension.
    pub k: u32,
    /// Place of A's first element.
    pub a: u32,
    /// Row stride of A.
    pub lda: u32,
    /// Place of B's first element.
    pub b: u32,
    /// Row stride of B.
    pub ldb: u32,
    /// Place of C's first element.
    pub c: u32,
    /// Row stride of C.
    pub ldc: u32,
}

impl ProductShape {
    /// The elements of C from the first that it writes to the last.
    fn written(&self) -> Range<u64> {
        let [_, _, end] = self.ends([false; 2]);
        u64::from(self.c).min(end)..end
    }

    /// Whether this product and another write the same element of C. [`ProductList::check`] finds
    /// rows of one product that overlap each other.
    fn meets(&self, other: &Self) -> bool {
        let row = |of: &Self, at: u32| {
            let first = u64::from(of.c) + u64::from(at) * u64::from(of.ldc);
            first..first + u64::from(of.n)
        };
        if self.ldc == other.ldc && self.ldc > 0 {
            return self.meets_in_step(other);
        }
        let (mut i, mut j) = (0, 0);
        while i < self.m && j < other.m {
            let (one, two) = (row(self, i), row(other, j));
            match (one.end <= two.start, two.end <= one.start) {
                (true, _) => i += 1,
                (_, true) => j += 1,
                _ => return true,
            }
        }
        false
    }

    /// Like [`meets`](Self::meets), if both have rows equally far apart: whether row i of this
    /// product meets row j of the other depends on i - j alone.
    fn meets_in_step(&self, other: &Self) -> bool {
        let [m, n, c, ld] = [self.m, self.n, self.c, self.ldc].map(i64::from);
        let [other_m, other_n, other_c] = [other.m, other.n, other.c].map(i64::from);
        // The least and the greatest i - j for which c + (i - j)·ld meets other_c.
        let least = (other_c - c - n).div_euclid(ld) + 1;
        let most = (other_c - c + other_n - 1).div_euclid(ld);
        least.max(1 - other_m) <= most.min(m - 1)
    }

    fn numbers(&self) -> [u32; LISTED as usize] {
        let Self { m, n, k, a, lda, b, ldb, c, ldc } = *self;
        [m, n, k, a, lda, b, ldb, c, ldc]
    }

    /// For each operand: its place, its row stride, how many lines of storage it has, and how long
    /// they are. A and B may be stored as their transposes.
    fn stored(&self, [a_turned, b_turned]: [bool; 2]) -> [[u64; 4]; 3] {
        let stored = |at: u32, ld: u32, rows: u32, columns: u32, turned| {
            let (lines, width) = if turned { (columns, rows) } else { (rows, columns) };
            [at, ld, lines, width].map(u64::from)
        };
        let Self { m, n, k, a, lda, b, ldb, c, ldc } = *self;
        let (a, b) = (stored(a, lda, m, k, a_turned), stored(b, ldb, k, n, b_turned));
        [a, b, stored(c, ldc, m, n, false)]
    }

    /// The elements of each operand from the start of its storage to the end.
    fn ends(&self, turned: [bool; 2]) -> [u64; 3] {
        self.stored(turned).map(|[at, ld, lines, width]| match lines * width {
            0 => 0,
            _ => at + (lines - 1) * ld + width,
        })
    }
}

/// Whether no two products write the same element of C.
fn apart(shapes: &[ProductShape]) -> Result<()> {
    let mut all: Vec<_> = (0..).zip(shapes).map(|(at, shape)| (shape.written(), at)).collect();
    all.retain(|(written, _)| !written.is_empty());
    all.sort_by_key(|(written, _)| written.start);
    // Earlier products that end behind the start of this one.
    let mut open: Vec<(Range<u64>, usize)> = Vec::new();
    for (written, at) in all {
        open.retain(|(other, _)| other.end > written.start);
        if let Some(&(_, other)) = open.iter().find(|(_, other)| shapes[*other].meets(&shapes[at]))
        {
            let [first, second] = [other.min(at), other.max(at)];
            return Err(Error::Shape(format!(
                "strides: products {first} and {second} of the list write the same elements of C"
            )));
        }
        open.push((written, at));
    }
    Ok(())
}

/// Products of any sizes for [`Gemm::list`](crate::Gemm::list), on the device.
#[derive(Clone, Debug)]
pub struct ProductList {
    /// Nine numbers for each product. A list from the host has its tables behind them.
    pub(crate) numbers: Tensor,
    count: usize,
    /// The largest M, N and K.
    pub(crate) most: [usize; 3],
    /// Whether A and whether B is stored as its transpose.
    pub(crate) transposed: [bool; 2],
    /// The products, if they came from the host.
    shapes: Option<Arc<[ProductShape]>>,
    /// Whether the caller promises that a list on the device is aligned.
    aligned: bool,
}

/// The most products for which a list from the host has tables, of 144 bytes for each product. The
/// tiles of longer lists are counted on the device.
const WITH_TABLES: usize = 1 << 16;

impl ProductList {
    /// Uploads a list. The host compares each pair of products whose ranges in C overlap, so many
    /// such pairs take long. A pair with different row strides takes time in proportion to its
    /// rows.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) if two products write the same element of C. The product that uses
    /// the list checks that all of it lies inside the operands.
    pub fn upload(context: &Context, shapes: &[ProductShape]) -> Result<Self> {
        apart(shapes)?;
        let mut words: Vec<u32> = shapes.iter().flat_map(ProductShape::numbers).collect();
        if shapes.len() <= WITH_TABLES {
            let sizes: Vec<_> = shapes.iter().map(|shape| [shape.m, shape.n]).collect();
            words.extend(ListSizes::tables(&sizes));
        }
        let numbers = Tensor::upload(context, &words, &[words.len()])?;
        let most = |size: fn(&ProductShape) -> u32| shapes.iter().map(size).max().unwrap_or(0);
        let most = [most(|one| one.m), most(|one| one.n), most(|one| one.k)];
        Ok(ProductList {
            numbers,
            count: shapes.len(),
            most: most.map(|size| size as usize),
            transposed: [false; 2],
            shapes: Some(shapes.into()),
            aligned: false,
        })
    }

    /// Takes a list from a tensor of u32 \[products, 9\], which a kernel may write: the numbers of
    /// a [`ProductShape`] in their order. Nothing is read back. `most` has the largest M, N and K,
    /// for which workgroups are started; a larger size is cut to `most`. A product is left out if
    /// it would then leave A, B or C, or if its rows of C overlap.
    ///
    /// # Errors
    /// [`Unsupported`](crate::Error) for another type than u32, `Shape` for another shape, or a
    /// tensor that is not contiguous.
    pub fn from_tensor(numbers: &Tensor, most: [usize; 3]) -> Result<Self> {
        let shape = numbers.shape();
        numbers.must_be_u32("a list of products")?;
        if shape.len() != 2 || shape[1] != LISTED as usize {
            return Err(Error::Shape(format!(
                "a list of products of shape {shape:?}, wanted [products, {LISTED}]"
            )));
        }
        if !numbers.is_contiguous() {
            let strides = numbers.strides();
            let text = format!("strides: a list of products with {strides:?}, not contiguous");
            return Err(Error::Shape(text));
        }
        Ok(ProductList {
            numbers: numbers.clone(),
            count: shape[0],
            most,
            transposed: [false; 2],
            shapes: None,
            aligned: false,
        })
    }

    /// Says whether A is stored as \[K,M\], and B as \[N,K\], in all products. Their strides then
    /// lead from row to row of the stored matrix.
    #[must_use]
    pub fn transposed(self, a: bool, b: bool) -> Self {
        ProductList { transposed: [a, b], ..self }
    }

    /// Promises that in every product the places and row strides of A and of B are multiples of 16
    /// bytes: of 8 elements in f16 and bf16, of 4 in f32. Then matrix units may multiply them
    /// ([`Gemm::list`](crate::Gemm::list) says which). A product that breaks the promise is left
    /// out. The promise does not cover operands without elements, nor the row stride of an operand
    /// that is stored in one row. M, N, K and the places in C may be anything.
    ///
    /// A list from the host needs no promise: the library knows its numbers.
    ///
    /// ```
    /// use tilewise::{Context, DType, Gemm, ProductList, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let a = Tensor::zeros(&ctx, DType::F16, &[64])?;
    /// let b = Tensor::zeros(&ctx, DType::F16, &[64])?;
    /// // [3,5]×[5,2] at place 8 of A, in rows 16 apart, and at the start of B, in rows 8 apart.
    /// let numbers = Tensor::upload(&ctx, &[3u32, 2, 5, 8, 16, 0, 8, 0, 2], &[1, 9])?;
    /// let list = ProductList::from_tensor(&numbers, [3, 2, 5])?.aligned();
    /// let c = Tensor::zeros(&ctx, DType::F32, &[6])?;
    /// Gemm::list(&a, &b, &list).run_into(&c)?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn aligned(self) -> Self {
        ProductList { aligned: true, ..self }
    }

    /// How many products there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Sums of the products' sizes; none for a list from the device, and for a long list.
    pub(crate) fn sizes(&self) -> Option<ListSizes> {
        let shapes = self.shapes.as_deref().filter(|shapes| shapes.len() <= WITH_TABLES)?;
        Some(ListSizes::of(shapes.iter().map(|shape| [shape.m, shape.n])))
    }

    /// Whether all places and row strides in A, and whether those in B, are multiples of `vectors`
    /// elements.
    pub(crate) fn is_aligned(&self, vectors: [u64; 2]) -> [bool; 2] {
        let Some(shapes) = self.shapes.as_deref() else { return [self.aligned; 2] };
        std::array::from_fn(|own| {
            shapes.iter().all(|shape| {
                let [at, ld, lines, width] = shape.stored(self.transposed)[own];
                let whole = |number: u64| number.is_multiple_of(vectors[own]);
                lines * width == 0 || whole(at) && (lines == 1 || whole(ld))
            })
        })
    }

    /// Elements of C up to the last one that a product writes.
    pub(crate) fn c_elements(&self) -> Result<usize> {
        let shapes = self.shapes.as_deref().ok_or_else(|| {
            let text = "the device alone knows how long the output is: use run_into()";
            Error::Misuse(text.into())
        })?;
        let ends = shapes.iter().map(|shape| shape.ends(self.transposed)[2]);
        Ok(ends.max().unwrap_or(0) as usize)
    }

    /// Checks that all products of a known list lie inside operands with these numbers of elements.
    pub(crate) fn check(&self, elements: [usize; 3]) -> Result<()> {
        for (at, shape) in self.shapes.iter().flat_map(|shapes| shapes.iter().enumerate()) {
            let ends = shape.ends(self.transposed).into_iter().zip(elements);
            for (name, (end, len)) in ["A", "B", "C"].into_iter().zip(ends) {
                if end > len as u64 {
                    return Err(Error::Shape(format!(
                        "product {at} of the list takes {end} elements of {name}, which has {len}"
                    )));
                }
            }
            let ProductShape { m, n, ldc, .. } = *shape;
            if m > 1 && ldc < n {
                return Err(Error::Shape(format!(
                    "strides: rows of C overlap in product {at} of the list: {n} columns, {ldc} \
                     apart"
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_that_write_the_same_elements() {
        let of = |c, ldc, m, n| ProductShape { m, n, k: 3, c, ldc, ..ProductShape::default() };
        let whole = of(0, 10, 4, 6);
        for beside in [
            of(6, 10, 4, 4),
            of(40, 10, 2, 10),
            of(9, 5, 1, 1),
            of(16, 20, 2, 4),
            of(3, 10, 0, 6),
            of(3, 10, 4, 0),
        ] {
            for all in [[whole, beside], [beside, whole]] {
                apart(&all).unwrap_or_else(|error| panic!("{beside:?}: {error}"));
            }
        }
        for across in [
            whole,
            of(5, 10, 1, 1),
            of(6, 10, 4, 5),
            of(9, 5, 3, 2),
            of(35, 10, 9, 3),
            of(16, 13, 3, 4),
        ] {
            for all in [[whole, across, of(99, 1, 1, 1)], [of(99, 1, 1, 1), across, whole]] {
                let error = apart(&all).unwrap_err();
                assert!(error.to_string().contains("same elements of C"), "{across:?}: {error}");
            }
        }
    }

    #[test]
    fn rows_as_far_apart_meet_where_elements_do() {
        let of = |c, m, n, ldc| ProductShape { m, n, c, ldc, ..ProductShape::default() };
        let elements = |of: &ProductShape| {
            let rows = (0..of.m).flat_map(|i| (0..of.n).map(move |j| (i, j)));
            rows.map(|(i, j)| of.c + i * of.ldc + j).collect::<Vec<_>>()
        };
        let sizes = (1..4).flat_map(|m| (1..6).map(move |n| (m, n)));
        for ((m, n), ldc) in sizes.clone().flat_map(|size| [5, 7].map(|ldc| (size, ldc))) {
            let one = of(9, m, n, ldc);
            for ((m, n), c) in sizes.clone().flat_map(|size| (0..30).map(move |c| (size, c))) {
                let two = of(c, m, n, ldc);
                let own = elements(&one);
                let meet = elements(&two).iter().any(|element| own.contains(element));
                assert_eq!(one.meets(&two), meet, "{one:?} {two:?}");
                assert_eq!(two.meets(&one), meet, "{two:?} {one:?}");
            }
        }
        let far = of(0, u32::MAX, 1, 2);
        assert!(!far.meets(&ProductShape { c: 1, ..far }) && far.meets(&of(8, 1, 1, 2)));
    }

    #[test]
    fn columns_of_one_matrix_are_apart() {
        let column = |n| ProductShape { m: 50, n: 1, c: n, ldc: 300, ..ProductShape::default() };
        let mut all: Vec<_> = (0..300).map(column).collect();
        apart(&all).unwrap();
        all.push(ProductShape { m: 51, ..column(17) });
        let text = apart(&all).unwrap_err().to_string();
        assert!(text.contains("products 17 and 300"), "{text}");
    }
}
