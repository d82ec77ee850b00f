//! The forms of grouped products, each with the numbers on the device that make its groups.

use super::Gemm;
use super::batch::Batch;
use crate::gemm::ends::{self, GroupEnds};
use crate::gemm::product_list::ProductList;
use crate::right::RightOperand;
use crate::tensor::Tensor;
#[cfg(feature = "custom-kernels")]
use tilewise_core::plan::by_index;
use tilewise_core::{Axis, Error, Grouping, Result};

impl Gemm {
    /// A grouped product. The rows of A \[M,K\] lie in segments, one for each group; a segment is
    /// multiplied by the group's entry of B \[groups,K,N\] (or of weights \[groups,N,K\], or of
    /// [shards](crate::Shards) in several buffers). Rows of the output from the last offset on are
    /// not written; [`run`](Self::run) leaves zeros there.
    ///
    /// ```
    /// use tilewise::{Context, Gemm, GroupEnds, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let x = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2])?;
    /// let w = Tensor::upload(&ctx, &[1.0f32, 1.0, 10.0, 10.0], &[2, 2, 1])?; // [groups, K, N]
    /// let ends = GroupEnds::upload(&ctx, &[1, 3])?; // row 0; rows 1 and 2
    /// let y = Gemm::grouped(&x, &w, &ends).run()?;
    /// assert_eq!(y.read_blocking::<f32>()?, [3.0, 70.0, 110.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn grouped(a: &Tensor, b: impl Into<RightOperand>, ends: &GroupEnds) -> Self {
        Gemm::along(Axis::M, a, b.into(), ends)
    }

    /// A product in which each row names its matrix: row i of the output is row i of A \[M,K\]
    /// times entry `indices[i]` of B \[entries,K,N\] (or of weights \[entries,N,K\]). With
    /// [`gather_rows`](Self::gather_rows), row i of A is the one that it takes for row i. A bias
    /// may be \[entries,N\]: each row adds that of its entry.
    ///
    /// It is for few rows of which few share a matrix, such as the rows of one token: nothing is
    /// sorted, and each row reads its own matrix. `moe::gather_matmul` takes any number of rows,
    /// and computes this product for up to about two rows for each matrix that is named.
    ///
    /// `indices` is a vector of u32 without gaps, one for each row of the product, at any place of
    /// a tensor; the device reads it when it computes. A row whose index is no entry is a product
    /// with K = 0: zeros, or beta·C, and the rest of the epilogue, with the bias of the first
    /// entry. One binding of the device must hold B; otherwise [`run`](Self::run) gives
    /// `DeviceLimit`. It gives `Shape` for rows without any entry of B, and `Unsupported` for
    /// [shards](crate::Shards). The rows of the output, of a residual and of a gate must be
    /// contiguous, not their columns.
    ///
    /// ```
    /// use tilewise::{Context, Gemm, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let x = Tensor::upload(&ctx, &[1.0f32, 2.0], &[1, 2])?; // one token
    /// let w = Tensor::upload(&ctx, &[1.0f32, 1.0, 10.0, 10.0], &[2, 2, 1])?; // [entries, K, N]
    /// let experts = Tensor::upload(&ctx, &[1u32, 0, 7], &[3])?; // there is no expert 7
    /// let rows = Tensor::upload(&ctx, &[0u32; 3], &[3])?; // all are of the same token
    /// let y = Gemm::indexed(&x, &w, &experts).gather_rows(&rows).run()?;
    /// assert_eq!(y.read_blocking::<f32>()?, [30.0, 3.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn indexed(a: &Tensor, b: impl Into<RightOperand>, indices: &Tensor) -> Self {
        Gemm { groups: Some(Groups::Indexed(indices.clone())), ..Gemm::new(a, b) }
    }

    /// Whether this is an [indexed](Self::indexed) product that the planner computes without
    /// sorting its rows ([`by_index`]).
    ///
    /// # Errors
    /// The errors of [`run`](Self::run), for the operands.
    #[cfg(feature = "custom-kernels")]
    pub(crate) fn is_by_index(&self) -> Result<bool> {
        Ok(!matches!(self.b, RightOperand::Shards(_))
            && by_index(&self.bundle(None)?.problem, &self.context().0.caps))
    }

    /// Whether the place and the strides of `c` allow the product to be computed into it.
    #[cfg(feature = "custom-kernels")]
    pub(crate) fn may_write(&self, c: &Tensor) -> bool {
        self.bundle(Some(&self.as_matrix(c))).is_ok()
    }

    /// A product with groups along N: columns `ends[g-1] .. ends[g]` (from 0 on for g = 0) of
    /// C \[M,N\] are entry g of A \[groups,M,K\] times the same columns of B \[K,N\]. A may be
    /// quantized weights \[groups,M,K\], or [shards](crate::Shards). Columns of the output from the
    /// last offset on are not written; [`run`](Self::run) leaves zeros there.
    ///
    /// It is planned, explained and computed as the [grouped](Self::grouped) product Cᵀ = Bᵀ·Aᵀ.
    /// The columns of the output are contiguous therefore: [`run`](Self::run) gives the transpose
    /// of a tensor \[N,M\]. A given output, a residual and [`add_to`](Self::add_to) must be such
    /// transposes, too. A bias may be \[groups,M\], [along](Self::bias_along) M.
    ///
    /// ```
    /// use tilewise::{Context, DType, Gemm, GroupEnds, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let w = Tensor::upload(&ctx, &[1.0f32, 10.0], &[2, 1, 1])?; // [groups, M, K]
    /// let x = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0], &[1, 3])?; // [K, N]
    /// let ends = GroupEnds::upload(&ctx, &[1, 3])?; // column 0; columns 1 and 2
    /// let y = Gemm::ragged_n(&w, &x, &ends).run()?;
    /// assert_eq!(y.read_blocking::<f32>()?, [1.0, 20.0, 30.0]);
    /// Gemm::ragged_n(&w, &x, &ends).run_into(&Tensor::zeros(&ctx, DType::F32, &[3, 1])?.t())?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn ragged_n(a: impl Into<RightOperand>, b: &Tensor, ends: &GroupEnds) -> Self {
        Gemm::along(Axis::N, &b.t(), RightOperand::of_weights(a), ends)
    }

    /// A product with groups of rows. With groups along N, `a` and `b` are those of the transposed
    /// product.
    fn along(along: Axis, a: &Tensor, b: RightOperand, ends: &GroupEnds) -> Self {
        let rows = Groups::Rows { ends: ends.clone(), first: 0, along };
        Gemm { groups: Some(rows), ..Gemm::new(a, b) }
    }

    /// A masked product: a batch A \[entries,M,K\] of which entry g has only its first
    /// `counts[g]` rows, by B \[entries,K,N\] (or weights \[entries,N,K\], or
    /// [shards](crate::Shards), which have all entries). A or B may have one entry for all.
    ///
    /// `counts` is a vector of u32, one for each entry, at any place of a tensor; the device reads
    /// it when it computes. A count beyond M counts as M. Rows of the output from the count on are
    /// not written; [`run`](Self::run) leaves zeros there.
    ///
    /// ```
    /// use tilewise::{Context, Gemm, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// // Two experts with places for two tokens each, of which the first has one token.
    /// let x = Tensor::upload(&ctx, &[1.0f32, 9.0, 2.0, 3.0], &[2, 2, 1])?; // [entries, M, K]
    /// let w = Tensor::upload(&ctx, &[1.0f32, 10.0], &[2, 1, 1])?; // [entries, K, N]
    /// let counts = Tensor::upload(&ctx, &[1u32, 2], &[2])?;
    /// let y = Gemm::masked(&x, &w, &counts).run()?;
    /// assert_eq!(y.read_blocking::<f32>()?, [1.0, 0.0, 20.0, 30.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn masked(a: &Tensor, b: impl Into<RightOperand>, counts: &Tensor) -> Self {
        let masked = Groups::Masked { counts: counts.clone(), expected: None };
        Gemm { groups: Some(masked), ..Gemm::new(a, b) }
    }

    /// Says how many rows each entry of a [masked](Self::masked) product, or each group with rows
    /// of a [grouped](Self::grouped) product, is expected to have. Kernels are chosen by this
    /// number. Results do not depend on it. Other products ignore it.
    ///
    /// Without it, all M rows of a masked product count. In a grouped product, ends from the host
    /// whose groups are about even give the number; otherwise rows count as if each had chosen its
    /// group at random.
    ///
    /// ```
    /// use tilewise::{Context, Gemm, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let x = Tensor::upload(&ctx, &[1.0f32; 512], &[2, 256, 1])?; // places for 256 tokens
    /// let w = Tensor::upload(&ctx, &[1.0f32, 10.0], &[2, 1, 1])?;
    /// let counts = Tensor::upload(&ctx, &[3u32, 4], &[2])?; // a kernel's
    /// let y = Gemm::masked(&x, &w, &counts).expect_rows(4).run()?;
    /// assert_eq!(y.read_blocking::<f32>()?.iter().sum::<f32>(), 43.0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn expect_rows(mut self, rows: usize) -> Self {
        match &mut self.groups {
            Some(Groups::Rows { ends, .. }) => ends.expected = Some(rows as u64),
            Some(Groups::Masked { expected, .. }) => *expected = Some(rows as u64),
            Some(Groups::Indexed(_) | Groups::AlongK(_) | Groups::Listed(_)) | None => {}
        }
        self
    }

    /// A product with groups along K: C \[groups,M,N\] of A \[M,K\] and B \[K,N\], where entry g
    /// is the sum over `ends[g-1] .. ends[g]` of K alone (from 0 on for g = 0). There is one
    /// end for each group, and no 0 before them ([`GroupEnds::without_start`]). An empty group
    /// is a product with K = 0: zeros, or beta·C, and the rest of the epilogue. A bias may be
    /// \[groups,N\], a residual \[groups,M,N\].
    ///
    /// On matrix units (`coop`) f16 may lie in any way; bf16 must be stored along M in A, and along
    /// N in B, as in the example. `simt` and `naive`, and `msl-gemm` and `msl-direct` on Apple's
    /// GPUs, take ranges of K in every type and layout. K is never split.
    ///
    /// The slopes of the weights of a [grouped](Self::grouped) product are one such product:
    ///
    /// ```
    /// use tilewise::{Context, Gemm, GroupEnds, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let x = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2])?; // [rows, K]
    /// let ends = GroupEnds::upload(&ctx, &[1, 3])?; // row 0; rows 1 and 2
    /// let dy = Tensor::upload(&ctx, &[1.0f32, 10.0, 100.0], &[3, 1])?; // [rows, N]
    /// let dw = Gemm::ragged_k(&x.t(), &dy, &ends).run()?; // X_gᵀ · dY_g: [groups, K, N]
    /// assert_eq!(dw.shape(), [2, 2, 1]);
    /// assert_eq!(dw.read_blocking::<f32>()?, [1.0, 2.0, 530.0, 640.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn ragged_k(a: &Tensor, b: &Tensor, ends: &GroupEnds) -> Self {
        Gemm { groups: Some(Groups::AlongK(ends.clone())), ..Gemm::new(a, b) }
    }
}

/// The form of a grouped product, with the tensor of its numbers.
#[derive(Clone, Debug)]
pub(super) enum Groups {
    /// Rows of A and C, one group after the other, from group `first` on. Along N they are columns
    /// of B and C, and the product is computed as its transpose, of Bᵀ and Aᵀ.
    Rows { ends: GroupEnds, first: usize, along: Axis },
    /// Rows of A and C, and the entry of B for each.
    Indexed(Tensor),
    /// The first rows of each entry of a batch, and how many they are expected to be.
    Masked { counts: Tensor, expected: Option<u64> },
    /// Ranges of K, one after the other.
    AlongK(GroupEnds),
    /// Products of any sizes.
    Listed(ProductList),
}

impl Groups {
    /// The numbers, and their name in errors.
    pub(super) fn numbers(&self) -> (&'static str, &Tensor) {
        match self {
            Groups::Rows { ends, .. } | Groups::AlongK(ends) => ("group offsets", &ends.tensor),
            Groups::Indexed(indices) => ("indices of entries", indices),
            Groups::Masked { counts, .. } => ("row counts", counts),
            Groups::Listed(list) => ("the list of products", &list.numbers),
        }
    }

    /// The batch of the product, once the shapes of A and B, and the numbers that are known, are
    /// found to fit.
    pub(super) fn batch(&self, a: &Tensor, b: [usize; 2], [m, k]: [usize; 2]) -> Result<Batch> {
        match self {
            Groups::Rows { ends, first, along } => {
                let (form, whose, lines, other) = match along {
                    Axis::M => ("a grouped product takes A [M,K]", "A has", "rows", "B"),
                    Axis::N => ("groups along N take B [K,N]", "B has", "columns", "A"),
                };
                if a.shape().len() != 2 {
                    let (turned, groups) = (a.t(), b[1]);
                    let shape = if *along == Axis::M { a.shape() } else { turned.shape() };
                    return Err(Error::Shape(format!(
                        "{form}, with the {lines} of all {groups} groups one after the other; \
                         {whose} shape {shape:?}, which reshape() may turn into {lines}"
                    )));
                }
                if b[0] != 1 {
                    return Err(Error::Shape(format!(
                        "{form}, and one entry of {other} for each group, not a batch of {}×{}",
                        b[0], b[1]
                    )));
                }
                ends.before(other, first + b[1])?;
                // Rows by index are as many as the indices.
                let own = *along == Axis::N || a.shape()[0] == m;
                within(ends, m, if own { whose } else { "the product has" }, lines)?;
                Ok(Batch::entries(1))
            }
            Groups::Indexed(indices) => {
                ends::vector_of_u32("indices of entries", indices)?;
                let (shape, rows) = (a.shape(), indices.elem_count());
                if shape.len() != 2 || b[0] != 1 {
                    return Err(Error::Shape(format!(
                        "a product by indices takes A [M,K] and B [entries,K,N]; A has shape \
                         {shape:?}, B a batch of {}×{}",
                        b[0], b[1]
                    )));
                }
                if rows != m {
                    return Err(Error::Shape(format!(
                        "{rows} indices of entries for {m} rows; each row needs one"
                    )));
                }
                if b[1] == 0 && m > 0 {
                    return Err(Error::Shape(format!(
                        "{m} rows name entries of B, which has none"
                    )));
                }
                Ok(Batch::entries(1))
            }
            Groups::Masked { counts, .. } => {
                ends::vector_of_u32("row counts", counts)?;
                let batch = Batch::of(a, b)?;
                let entries = batch.simple().ok_or_else(|| {
                    Error::Shape(format!(
                        "a masked product takes one batch of entries, one matrix of A and of B for \
                         each or for all; A has shape {:?}, B a batch of {}×{}",
                        a.shape(),
                        b[0],
                        b[1]
                    ))
                })?;
                match counts.elem_count() {
                    count if count == entries => Ok(batch),
                    count => Err(Error::Shape(format!(
                        "{count} row counts for a batch of {entries}; each entry needs one"
                    ))),
                }
            }
            Groups::AlongK(ends) => {
                if a.batch(2).map(|(size, _)| size) != [1, 1] || b != [1, 1] {
                    return Err(Error::Shape(format!(
                        "groups along K take A [M,K] and B [K,N]; A has shape {:?}, B a batch of \
                         {}×{}",
                        a.shape(),
                        b[0],
                        b[1]
                    )));
                }
                within(ends, k, "K is", "long")?;
                Ok(Batch::entries(ends.count()))
            }
            Groups::Listed(list) => Ok(Batch::entries(list.count())),
        }
    }

    /// The form as the planner takes it, with the first number at `offset` of its storage.
    pub(super) fn grouping(&self, offset: u64, groups: u64) -> Grouping {
        match self {
            Groups::Indexed(indices) => {
                Grouping::Indexed { groups, rows: indices.elem_count() as u64, offset }
            }
            Groups::Rows { ends, first, .. } => {
                let (first, expected) = (*first as u64, ends.expected);
                Grouping::RaggedM { groups, first, offset, expected }
            }
            &Groups::Masked { expected, .. } => {
                Grouping::Masked { entries: groups, offset, expected }
            }
            Groups::AlongK(_) => Grouping::RaggedK { groups, offset },
            Groups::Listed(list) => Grouping::Listed { groups, offset, sizes: list.sizes() },
        }
    }
}

/// `Shape` if the ends are known and exceed a size.
fn within(ends: &GroupEnds, size: usize, whose: &str, unit: &str) -> Result<()> {
    match ends.ends.as_deref().and_then(<[u32]>::last) {
        Some(&last) if last as usize > size => Err(Error::Shape(format!(
            "group offsets: the last one is {last}, {whose} {size} {unit}"
        ))),
        _ => Ok(()),
    }
}
