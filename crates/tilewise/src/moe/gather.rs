//! Products of rows that indices name with matrices that indices name.

use super::work::{asked, copied, vector};
use crate::gemm::Gemm;
use crate::gemm::ends::GroupEnds;
use crate::ops;
use crate::recorder::planned::Product;
use crate::recorder::{AsRecorder, Recorder};
use crate::right::RightOperand;
use crate::tensor::Tensor;
use std::sync::Arc;
use tilewise_core::{DType, Error, Precision, Result};
#[cfg(feature = "planner")]
use tilewise_core::{Problem, plan::Choice, plan::Plan};

/// The operation of [`gather_matmul`].
#[derive(Clone, Debug)]
#[must_use = "a product computes nothing until it is run or recorded"]
pub struct GatherMatmul {
    x: Tensor,
    w: RightOperand,
    lhs: Option<Tensor>,
    rhs: Tensor,
    sorted: bool,
    out_dtype: Option<DType>,
    precision: Precision,
    kernel: Option<Arc<str>>,
}

/// A product for each index: `y[i] = x[lhs[i]] · w[rhs[i]]`, \[n, N\]. `x` is \[M, K\], `w` is \[E,
/// K, N\] or quantized weights \[E, N, K\], and indices are u32 \[n\]. Without `lhs` the row is
/// `x[i]`. It is MLX's `gather_mm` and `gather_qmm` of single rows.
///
/// Indices may have any shape, and `x` may have more than two dimensions: then `lhs` counts its
/// rows in row-major order, and without `lhs` each row stands for its place in x. Both sides are
/// broadcast to one shape, and `y` is \[that shape, N\]. For example, `x` \[tokens, 1, K\] with
/// `rhs` \[tokens, k\] gives each token the product with its k matrices, \[tokens, k, N\].
///
/// Rows are sorted by matrix, each matrix is multiplied by its rows at once, and the rows return to
/// their places. All of this happens on the device, and the order of the rows does not change their
/// bits. If few rows share a matrix, such as the rows of one token, each row reads its own matrix
/// ([`Gemm::indexed`](crate::Gemm::indexed)), and nothing is sorted. An index beyond `x` stands for
/// a row of zeros; its products with numbers of `w` that are not finite may be 0 or NaN. An index
/// beyond `w` gives a row of zeros.
///
/// ```
/// use tilewise::{Context, Tensor, moe};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
/// let w = Tensor::upload(&ctx, &[1.0f32, 1.0, 10.0, 10.0], &[2, 2, 1])?; // [E, K, N]
/// let lhs = Tensor::upload(&ctx, &[0u32, 1, 0], &[3])?;
/// let rhs = Tensor::upload(&ctx, &[1u32, 0, 0], &[3])?;
/// let y = moe::gather_matmul(&x, &w, Some(&lhs), &rhs).run()?;
/// assert_eq!(y.read_blocking::<f32>()?, [30.0, 7.0, 3.0]);
/// # Ok(())
/// # }
/// ```
pub fn gather_matmul(
    x: &Tensor,
    w: impl Into<RightOperand>,
    lhs: Option<&Tensor>,
    rhs: &Tensor,
) -> GatherMatmul {
    GatherMatmul {
        x: x.clone(),
        w: w.into(),
        lhs: lhs.cloned(),
        rhs: rhs.clone(),
        sorted: false,
        out_dtype: None,
        precision: Precision::default(),
        kernel: None,
    }
}

impl GatherMatmul {
    /// Says that `rhs` does not decrease: nothing needs sorting then. If it does decrease, rows are
    /// multiplied by other matrices than `rhs` names; nothing outside the operands is read.
    pub fn sorted(mut self) -> Self {
        self.sorted = true;
        self
    }

    /// Type of the output that [`run`](Self::run) makes, as
    /// [`Gemm::out_dtype`](crate::Gemm::out_dtype).
    pub fn out_dtype(mut self, dtype: DType) -> Self {
        self.out_dtype = Some(dtype);
        self
    }

    /// How exact the product must be, as [`Gemm::precision`](crate::Gemm::precision).
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Forces a kernel, as [`Gemm::kernel`](crate::Gemm::kernel).
    pub fn kernel(mut self, name: impl Into<String>) -> Self {
        self.kernel = Some(name.into().into());
        self
    }

    /// Computes into a new tensor. The work is submitted, not waited for.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) for operands that do not fit together, and if x has more than two
    /// dimensions and its rows do not lie at one stride; `Unsupported` for indices that are not
    /// u32; otherwise as [`Gemm::run`](crate::Gemm::run).
    pub fn run(&self) -> Result<Tensor> {
        let y = self.zeros()?;
        self.run_into(&y)?;
        Ok(y)
    }

    fn zeros(&self) -> Result<Tensor> {
        let Sizes { shape, n, dtype, .. } = self.sizes()?;
        Tensor::zeros(self.x.context(), dtype, &[&shape[..], &[n]].concat())
    }

    /// Like [`run`](Self::run), into `y`, which may overlap x: x is read before `y` is written. The
    /// work is submitted, not waited for. Each call takes memory for the product and the sorted
    /// indices.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run); [`Shape`](crate::Error) when `y` overlaps `w` or itself,
    /// or its rows do not lie at one stride; `Misuse` when it is a [prepared
    /// tensor](crate::Prepared), or of another type than [`out_dtype`](Self::out_dtype).
    pub fn run_into(&self, y: &Tensor) -> Result<()> {
        let context = self.x.context();
        context.submit_as("gather_matmul", |to| self.record(to, y))
    }

    /// Adds it to the given compute pass, command encoder or recorder.
    ///
    /// # Errors
    /// The errors of [`run_into`](Self::run_into); [`Misuse`](crate::Error) on the CPU executor,
    /// unless the recorder is its own, and for the recorder of another context.
    pub fn record(&self, to: &mut impl AsRecorder, y: &Tensor) -> Result<()> {
        let to = &mut to.as_recorder();
        to.way(self.x.context())?;
        let Sizes { shape, count, experts, n, .. } = self.sizes()?;
        let (GatherMatmul { x, w, rhs, .. }, context) = (self, self.x.context());
        context.same(y.context(), "the output")?;
        let words = |count: usize| Tensor::zeros(context, DType::U32, &[count]);
        let wanted = [&shape[..], &[n]].concat();
        if y.shape() != wanted {
            let got = y.shape();
            return Err(Error::Shape(format!("the output has shape {got:?}, wanted {wanted:?}")));
        }
        if let Some(dtype) = self.out_dtype.filter(|dtype| *dtype != y.dtype()) {
            let own = y.dtype();
            return Err(Error::Misuse(format!("the output is {own}, and out_dtype says {dtype}")));
        }
        w.lies_beside("w", y)?;
        let y = &flat(y, [count, n])?;
        let x = &flat(x, self.matrix())?;
        let rhs = &vector(to, &rhs.broadcast_to(&shape)?)?;
        let lhs = self.rows(to, &shape)?;
        let as_asked =
            |gemm, rows: Option<&Tensor>| asked(gemm, self.precision, rows, self.kernel.as_ref());
        let by_index = |x: &Tensor| as_asked(Gemm::indexed(x, w.clone(), rhs), lhs.as_ref());
        if experts > 0 && by_index(x).is_by_index()? {
            let whole = if x.has_whole_rows() { x.clone() } else { copied(to, x)? };
            let gemm = by_index(&whole);
            // The product cannot write y if y overlaps an operand, shares the buffer of indices, or
            // has other strides.
            if gemm.may_write(y) {
                return gemm.record(to, y);
            }
            let apart = Tensor::zeros(context, y.dtype(), &[count, n])?;
            gemm.record(to, &apart)?;
            return ops::copy(&apart).record(to, y);
        }
        let starts = words(experts + 1)?;
        let order = match self.sorted {
            true => {
                let counts = words(experts)?;
                ops::histogram(rhs, experts).record(to, &counts)?;
                ops::exclusive_scan(&counts).with_total().record(to, &starts)?;
                None
            }
            false => {
                let slots = Tensor::zeros(context, DType::U32, &[3, count])?;
                ops::group(&rhs.unsqueeze(1)?, experts).record(to, [&starts, &slots])?;
                Some(slots.narrow(0, 0, 1)?.squeeze(0)?)
            }
        };
        let ends = GroupEnds::from_tensor(&starts)?;

        let rows = match (&order, lhs) {
            (None, None) => None,
            (Some(order), None) => Some(order.clone()),
            (None, Some(lhs)) => Some(lhs),
            (Some(order), Some(lhs)) => {
                let rows = words(count)?;
                ops::gather(&lhs, order).record(to, &rows)?;
                Some(rows)
            }
        };
        let (a, rows) = match rows {
            // Products gather whole rows.
            Some(rows) if !x.has_whole_rows() => {
                let a = Tensor::zeros(context, x.dtype(), &[count, x.shape()[1]])?;
                ops::gather(x, &rows).or_zeros().record(to, &a)?;
                (a, None)
            }
            None if !x.has_whole_rows() => (copied(to, x)?, None),
            rows => (x.clone(), rows),
        };
        // Rows of no matrix stay zeros.
        let sorted = Tensor::zeros(context, y.dtype(), &[count, n])?;
        let gemm = as_asked(Gemm::grouped(&a, w.clone(), &ends), rows.as_ref());
        gemm.record(to, &sorted)?;
        match &order {
            Some(order) => ops::scatter(&sorted, order, count).record(to, y),
            None => ops::copy(&sorted).record(to, y),
        }
    }

    /// Which kernel was chosen and why not another, as [`Gemm::explain`](crate::Gemm::explain).
    ///
    /// # Errors
    /// The errors of [`run`](Self::run).
    pub fn explain(&self) -> Result<String> {
        self.planned()?.0.explain()
    }

    /// Compiles all that a call needs, as [`Context::warm_up`](crate::Context::warm_up).
    ///
    /// # Errors
    /// The errors of [`run`](Self::run).
    pub fn warm_up(&self) -> Result<()> {
        let y = self.zeros()?;
        self.x.context().warm_up(|to| self.record(to, &y))
    }

    /// The product that a call computes, of sorted rows or of rows that name their matrices, and
    /// its plans.
    fn planned(&self) -> Result<Product> {
        let y = self.zeros()?;
        Ok(self.x.context().products(|to| self.record(to, &y))?.remove(0))
    }

    fn sizes(&self) -> Result<Sizes> {
        let GatherMatmul { x, w, lhs, rhs, .. } = self;
        let context = x.context();
        let named = [("rhs", Some(rhs)), ("lhs", lhs.as_ref())];
        for (name, indices) in named.into_iter().filter_map(|(name, own)| Some((name, own?))) {
            context.same(indices.context(), name)?;
            indices.must_be_u32(name)?;
        }
        context.same(w.context(), "w")?;
        let shape = w.shape_of_b();
        let (&[ref rows @ .., _, _], &[experts, k, n]) = (x.shape(), &*shape) else {
            return Err(Error::Shape(format!(
                "x has shape {:?} and w, as [E, K, N], {shape:?}; wanted [M, K] and a stack",
                x.shape()
            )));
        };
        let rows = &x.shape()[..rows.len() + 1];
        if x.shape()[rows.len()] != k {
            let hint = if x.shape()[rows.len()] == n { "; w transposed would fit" } else { "" };
            return Err(Error::Shape(format!(
                "x has shape {:?} and w, as [E, K, N], {shape:?}: K differs{hint}",
                x.shape()
            )));
        }
        let (others, whose) = match lhs {
            Some(lhs) => (lhs.shape(), "indices lhs"),
            None => (rows, "rows of x"),
        };
        let shape = broadcast(rhs.shape(), others).ok_or_else(|| {
            let own = rhs.shape();
            Error::Shape(format!("indices rhs of shape {own:?} for {whose} of shape {others:?}"))
        })?;
        let shared = w.dtype().is_none_or(|own| own == x.dtype());
        let own = if shared { x.dtype() } else { DType::F32 };
        let count = shape.iter().product();
        Ok(Sizes { shape, count, experts, n, dtype: self.out_dtype.unwrap_or(own) })
    }

    /// The rows of x, and K.
    fn matrix(&self) -> [usize; 2] {
        let (rows, k) = self.x.shape().split_at(self.x.shape().len() - 1);
        [rows.iter().product(), k[0]]
    }

    /// Indices, broadcast to a shape, as a vector.
    fn vector(&self, to: &mut Recorder<'_>, indices: &Tensor, shape: &[usize]) -> Result<Tensor> {
        let all = indices.broadcast_to(shape)?;
        all.reshape(&[all.elem_count()]).or_else(|_| vector(to, &all))
    }

    /// The row of x for each index, as a vector. Absent: row i for index i.
    fn rows(&self, to: &mut Recorder<'_>, shape: &[usize]) -> Result<Option<Tensor>> {
        let GatherMatmul { x, lhs, .. } = self;
        let own = &x.shape()[..x.shape().len() - 1];
        let [m, _] = self.matrix();
        match lhs {
            Some(lhs) => self.vector(to, lhs, shape).map(Some),
            None if own == shape => Ok(None),
            None => {
                let every: Vec<u32> = (0..m as u32).collect();
                let every = Tensor::upload(x.context(), &every, own)?;
                self.vector(to, &every, shape).map(Some)
            }
        }
    }
}

/// Sizes of a call.
struct Sizes {
    /// Shape of the indices; `count` is their number.
    shape: Vec<usize>,
    count: usize,
    experts: usize,
    n: usize,
    dtype: DType,
}

/// A tensor as a matrix.
fn flat(tensor: &Tensor, shape: [usize; 2]) -> Result<Tensor> {
    if tensor.shape() == shape { Ok(tensor.clone()) } else { tensor.reshape(&shape) }
}

/// The shape to which two shapes are broadcast, by NumPy's rule.
fn broadcast(one: &[usize], other: &[usize]) -> Option<Vec<usize>> {
    let rank = one.len().max(other.len());
    let size = |shape: &[usize], axis: usize| {
        (axis + shape.len()).checked_sub(rank).map_or(1, |i| shape[i])
    };
    let both = (0..rank).map(|axis| match (size(one, axis), size(other, axis)) {
        (1, size) | (size, 1) => Some(size),
        (own, size) => (own == size).then_some(size),
    });
    both.collect()
}

/// Names types of the [planner](crate::planner).
#[cfg(feature = "planner")]
impl GatherMatmul {
    /// The plan of the product, or the plans of its [shards](crate::Shards). Nothing is computed;
    /// memory is taken as for a call.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run).
    pub fn plans(&self) -> Result<Vec<Plan>> {
        Ok(self.planned()?.1)
    }

    /// The [problem](crate::planner::Problem) of each [plan](Self::plans).
    /// [`Context::warm_up_problems`](crate::Context::warm_up_problems) takes all of them,
    /// [`Context::tune`](crate::Context::tune) takes one.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run).
    pub fn problems(&self) -> Result<Vec<Problem>> {
        Ok(self.planned()?.0.problems())
    }

    /// Every kernel that may be of use, as [`Gemm::choices`](crate::Gemm::choices).
    ///
    /// # Errors
    /// The errors of [`run`](Self::run).
    pub fn choices(&self) -> Result<Vec<Choice>> {
        self.planned()?.0.choices()
    }
}
