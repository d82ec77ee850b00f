//! One product: dense, quantized or grouped, with its epilogue.

mod batch;
mod bundle;
pub(crate) mod ends;
mod epilogue;
mod factor;
mod groups;
mod large;
mod list;
mod lower;
pub(crate) mod product_list;
mod rows;
mod shards;

use crate::context::Context;
use crate::recorder::AsRecorder;
use crate::right::RightOperand;
use crate::tensor::Tensor;
use factor::Factor;
use groups::Groups;
use std::sync::Arc;
use tilewise_core::{Activation, Axis, DType, Error, Precision, Result};
#[cfg(feature = "planner")]
use tilewise_core::{
    Problem,
    plan::{Choice, Plan},
};

/// A product C = activation(alpha · A·B + beta · C + bias) + residual. Build it, then
/// [`run`](Self::run) it:
///
/// ```
/// use tilewise::{Context, Gemm, Tensor};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let a = Tensor::upload(&ctx, &[1.0f32, 2.0], &[1, 2])?;
/// let b = Tensor::upload(&ctx, &[3.0f32, 4.0], &[2, 1])?;
/// let c = Gemm::new(&a, &b).run()?;
/// assert_eq!(c.read_blocking::<f32>()?, [11.0]);
/// # Ok(())
/// # }
/// ```
///
/// [`gated_by`](Self::gated_by) multiplies by a gate in place of the last sum, and
/// [`glu`](Self::glu) by one in every other column. [`gather_rows`](Self::gather_rows) takes the
/// rows of A by index.
///
/// # Shapes
///
/// A is \[M,K\] and B \[K,N\]. Up to two dimensions of a batch may stand before these, \[outer,
/// inner, M, K\], with any strides; missing dimensions are 1. If A and B have different sizes along
/// a dimension of the batch, the smaller size must divide the larger, and each entry of the smaller
/// operand serves a run of neighbours of the larger: with 2 heads of keys and 8 of queries, each
/// head of keys serves four. A size of 1 serves all. A vector A is a row, a vector B a column; the
/// output then has no such axis, as in `numpy.matmul`.
///
/// Operands are any mixture of f32, f16 and bf16. Either the rows or the columns of each operand
/// must be contiguous, so transposed views cost nothing.
///
/// ```
/// use tilewise::{Context, DType, Gemm, Tensor};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let (batch, tokens, heads, shared, size) = (2, 5, 8, 2, 4);
/// let width = (heads + 2 * shared) * size; // queries, keys and values of a token
/// let qkv = Tensor::zeros(&ctx, DType::F32, &[batch, tokens, width])?;
/// let part = |first: usize, heads: usize| {
///     let columns = first * size..(first + heads) * size;
///     let part = qkv.slice(&[0..batch, 0..tokens, columns])?;
///     part.reshape(&[batch, tokens, heads, size])?.transpose(1, 2) // heads first: all are views
/// };
/// let (q, k) = (part(0, heads)?, part(heads, shared)?);
/// let scores = Gemm::new(&q, k.t()).alpha(0.5).run()?;
/// assert_eq!(scores.shape(), [batch, heads, tokens, tokens]);
/// # Ok(())
/// # }
/// ```
///
/// # Numerics
///
/// Sums are accumulated in f32 unless [`precision`](Self::precision) permits less.
///
/// NaN and infinities in A and B count, with [`alpha`](Self::alpha) 0, too: zero times either is
/// NaN. NaN in C does not count with [`beta`](Self::beta) 0.
///
/// On matrix units of f16, a bf16 number below 2⁻²⁹ of the largest number in its row of A, or
/// column of B, loses digits: it is off by at most 2⁻³⁹ of that largest, and does not become 0. All
/// other numbers are exact.
#[derive(Clone, Debug)]
#[must_use = "a product computes nothing until it is run or recorded"]
pub struct Gemm {
    a: Tensor,
    b: RightOperand,
    /// Indices of the rows of A; without them all rows, in their order.
    rows: Option<Tensor>,
    /// Whether A, and B, was given as a vector: A is one row then, B one column.
    vectors: [bool; 2],
    groups: Option<Groups>,
    /// Alpha and beta.
    factors: [Factor; 2],
    c: Option<Tensor>,
    bias: Option<(Tensor, Axis)>,
    activation: Activation,
    residual: Option<Tensor>,
    /// The function of the gate, if `residual` is one.
    gate: Option<Activation>,
    /// Two calls that exclude each other.
    clash: Option<&'static str>,
    out_dtype: Option<DType>,
    precision: Precision,
    kernel: Option<Arc<str>>,
}

impl Context {
    /// Computes A·B with defaults, for the shapes that [`Gemm`] takes. The output has the dtype of
    /// A and B, or f32 if these differ.
    ///
    /// # Errors
    /// The errors of [`Gemm::run`].
    pub fn matmul(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        self.same(a.context(), "A")?;
        Gemm::new(a, b).run()
    }
}

impl Gemm {
    /// The product A·B of a tensor B, or A·Wᵀ of quantized weights W.
    pub fn new(a: &Tensor, b: impl Into<RightOperand>) -> Self {
        let is_vector = |tensor: &Tensor| tensor.shape().len() == 1;
        let row = is_vector(a);
        let (b, column) = match b.into() {
            RightOperand::Dense(b) if is_vector(&b) => (b.with_axis(1).into(), true),
            b => (b, false),
        };
        Gemm {
            a: if row { a.with_axis(0) } else { a.clone() },
            b,
            rows: None,
            vectors: [row, column],
            groups: None,
            factors: [1.0, 0.0].map(Factor::Host),
            c: None,
            bias: None,
            activation: Activation::None,
            residual: None,
            gate: None,
            clash: None,
            out_dtype: None,
            precision: Precision::F32,
            kernel: None,
        }
    }

    /// Starts the output of [`run`](Self::run) as a copy of `c`, which [`beta`](Self::beta) then
    /// multiplies; with beta 0 the numbers of `c` do not count. `c` must be contiguous and have the
    /// output's shape. The output gets the dtype of `c`; [`out_dtype`](Self::out_dtype) must name
    /// the same one, if it is called. With a given output `c` is an error: there beta multiplies
    /// the numbers that the output holds.
    pub fn add_to(mut self, c: &Tensor) -> Self {
        self.c = Some(c.clone());
        self
    }

    /// Type of the output that [`run`](Self::run) allocates. By default it is the type of A and B,
    /// or f32 if these differ; with quantized weights it is the type of A. A given output must have
    /// the type named here.
    pub fn out_dtype(mut self, dtype: DType) -> Self {
        self.out_dtype = Some(dtype);
        self
    }

    /// How exact the product must be: [`Precision::F32`] by default. Only this call permits less.
    /// It is a permission: the planner takes a less exact kernel, on matrix units or on bytes, if
    /// that is estimated to be faster. Otherwise, and on the CPU, the product is computed as with
    /// `F32`.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Forces a kernel: `simt`, `simt/64x64x16`, `simt/64x64x16+k4` (4 splits of K) or
    /// `coop/64x64x32+pad16` (16 elements between lines in workgroup memory, for kernels with such
    /// padding). `msl-gemm/64x64x16` is a kernel in MSL, if the context has some; if the driver
    /// does not compile it, the product is an error, `DeviceLimit`. The CPU executor only checks
    /// that the name exists.
    pub fn kernel(mut self, name: impl Into<String>) -> Self {
        self.kernel = Some(name.into().into());
        self
    }

    /// Computes into a new tensor of shape \[M,N\] with the batch before it. The work is submitted,
    /// not waited for.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) for operands that do not fit together, `Unsupported` for their
    /// types, `DeviceLimit` when no kernel takes the product on this device, or not the forced one;
    /// `Misuse` for operands of different contexts, and for text that names no kernel.
    pub fn run(&self) -> Result<Tensor> {
        let c = self.output()?;
        self.context().submit(|to| self.record_onto(to, &c))?;
        Ok(c)
    }

    /// Computes into `c`, which may be a view if no two of its elements share a place. The work is
    /// submitted, not waited for.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run); [`Shape`](crate::Error) when `c` overlaps an operand, or
    /// shares a buffer with quantized weights, group offsets, row counts or indices of entries;
    /// `Misuse` when `c` is of another type than [`out_dtype`](Self::out_dtype), is a [prepared
    /// tensor](crate::Prepared) or a view of one, or [`add_to`](Self::add_to) was called, too.
    pub fn run_into(&self, c: &Tensor) -> Result<()> {
        self.context().submit(|to| self.record(to, c))
    }

    /// Adds the product to the given compute pass, command encoder or recorder; a whole model can
    /// run in few passes. An encoder gets one compute pass for it.
    ///
    /// ```
    /// use tilewise::{Activation, Context, DType, Gemm, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// // The CPU executor has neither.
    /// if let (Some(device), Some(queue)) = (ctx.device(), ctx.queue()) {
    ///     let x = Tensor::upload(&ctx, &[1.0f32, 2.0], &[1, 2])?;
    ///     let w = Tensor::upload(&ctx, &[2.0f32, 1.0, 3.0, -4.0], &[2, 2])?;
    ///     let h = Tensor::zeros(&ctx, DType::F32, &[1, 2])?;
    ///     let y = Tensor::zeros(&ctx, DType::F32, &[1, 2])?;
    ///     let mut encoder = device.create_command_encoder(&Default::default());
    ///     let mut pass = encoder.begin_compute_pass(&Default::default());
    ///     Gemm::new(&x, &w).activation(Activation::Relu).record(&mut pass, &h)?;
    ///     Gemm::new(&h, w.t()).record(&mut pass, &y)?; // your own dispatches may stand between
    ///     drop(pass);
    ///     queue.submit([encoder.finish()]);
    ///     assert_eq!(y.read_blocking::<f32>()?, [16.0, 24.0]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`run_into`](Self::run_into); [`Misuse`](crate::Error) on the CPU executor,
    /// unless the recorder is its own, and for the recorder of another context.
    pub fn record(&self, to: &mut impl AsRecorder, c: &Tensor) -> Result<()> {
        self.fits(c)?;
        self.record_onto(&mut to.as_recorder(), c)
    }

    /// Which kernel was chosen and why not another, as text. It ends with the state of each pass's
    /// pipeline: whether it is compiled, and how long that took. A product that is
    /// planned in parts has a text for each: [shards](crate::Shards) of B, and a few large
    /// [groups](Self::grouped). Neighbouring shards with equal numbers of groups
    /// and equal kernels share one.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run).
    pub fn explain(&self) -> Result<String> {
        self.parts()?.explain()
    }

    /// Plans the product and compiles its pipelines: the first run then waits for nothing. No
    /// operand is allocated. On the CPU executor the product is only checked.
    ///
    /// ```
    /// use tilewise::{Activation, Context, DType, Gemm, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let x = Tensor::zeros(&ctx, DType::F32, &[8, 32])?;
    /// let w = Tensor::zeros(&ctx, DType::F32, &[64, 32])?;
    /// Gemm::new(&x, &w.t()).activation(Activation::Relu).warm_up()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`run`](Self::run).
    pub fn warm_up(&self) -> Result<()> {
        self.parts()?.warm_up()
    }

    pub(crate) fn context(&self) -> &Context {
        self.a.context()
    }

    /// `Misuse` when options for an output to allocate contradict the given output `c`.
    fn fits(&self, c: &Tensor) -> Result<()> {
        if self.c.is_some() {
            return Err(Error::Misuse(
                "add_to() is for run(): an output of your own is itself the C that beta multiplies"
                    .into(),
            ));
        }
        c.writable()?;
        match self.out_dtype {
            Some(dtype) if dtype != c.dtype() => Err(Error::Misuse(format!(
                "out_dtype() is {dtype}, the output given is {}",
                c.dtype()
            ))),
            _ => Ok(()),
        }
    }
}

/// Names types of the [planner](crate::planner).
#[cfg(feature = "planner")]
impl Gemm {
    /// The plans for an output that [`run`](Self::run) would allocate: passes, grids, bindings,
    /// parameters. Nothing is allocated. On the CPU executor they have no passes.
    ///
    /// A product has one plan, with two exceptions. [Shards](crate::Shards) of B have a plan each.
    /// The groups of a [grouped](Self::grouped) product of row-major f16 tensors have a plan each,
    /// and are computed as dense products one after the other, if all of these hold: no more than
    /// four groups have rows, the output has 2²⁴ elements or more for each of them, the host knows
    /// their ends, and neither a kernel, nor rows by index, nor a [packed
    /// copy](crate::Prepared) of A or B is given.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run).
    pub fn plans(&self) -> Result<Vec<Plan>> {
        self.parts()?.plans()
    }

    /// Every kernel that may be of use for the product, the cheapest by estimate first. With
    /// [shards](crate::Shards) these are the kernels that take all of them, in the order for the
    /// first. Kernels in MSL that the device has refused are left out. Each name
    /// (`Choice::to_string()`) may be given to [`kernel`](Self::kernel). Kernels that compute the
    /// product slowly are not listed but may be given, too, such as kernels for few rows when it
    /// has many. Empty on the CPU executor.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run).
    pub fn choices(&self) -> Result<Vec<Choice>> {
        // Large groups are one product if a kernel is given.
        match &self.b {
            RightOperand::Shards(_) => self.parts(),
            _ => self.whole(),
        }?
        .choices()
    }

    /// The problem of each [plan](Self::plans), as [`Context::warm_up_problems`] takes them.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run), for the operands.
    pub fn problems(&self) -> Result<Vec<Problem>> {
        Ok(self.parts()?.problems())
    }
}
