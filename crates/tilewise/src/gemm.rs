//! One product: dense, quantized or grouped, with its epilogue.

use crate::context::{Backend, Context};
use crate::execute;
use crate::gpu::Factors;
use crate::offsets::GroupOffsets;
use crate::quantized::QuantizedTensor;
use crate::right::Right;
use crate::storage::{Bound, Buffers, Bundle, on_device};
use crate::take::Take;
use crate::tensor::Tensor;
use std::sync::Arc;
use tilewise_core::kernel::Role;
use tilewise_core::plan::{Choice, Plan};
use tilewise_core::{
    Activation, Axis, Bias, DType, Epilogue, Error, Format, Grouping, Operand, Precision, Problem,
    Result,
};

/// A product C = activation(alpha · A·B + beta · C + bias) + residual, accumulated in f32 unless
/// [less is permitted](Self::precision).
///
/// On matrix units of f16, numbers in bf16 below 2⁻²⁹ of the largest in their row of A, or column
/// of B, lose digits: they are off by at most 2⁻³⁹ of that largest, and none becomes 0. All others
/// are exact.
///
/// Operands are any mixture of f32, f16 and bf16. Rows or columns of each must be contiguous, in
/// either order (so transposed views cost nothing). A batch of 1 is broadcast.
#[derive(Clone, Debug)]
#[must_use = "a product computes nothing until it is run, encoded or recorded"]
pub struct Gemm<'a> {
    a: &'a Tensor,
    b: Right<'a>,
    offsets: Option<&'a GroupOffsets>,
    alpha: f32,
    beta: f32,
    c: Option<&'a Tensor>,
    bias: Option<(&'a Tensor, Axis)>,
    activation: Activation,
    residual: Option<&'a Tensor>,
    out_dtype: Option<DType>,
    precision: Precision,
    kernel: Option<Arc<str>>,
}

impl Context {
    /// A·B with defaults: shapes \[M,K\]·\[K,N\], or with a leading batch dimension that is equal
    /// or 1; the output has the dtype of A and B, f32 where they differ.
    ///
    /// # Errors
    /// As [`Gemm::run`].
    pub fn matmul(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        self.same(a.context(), "A")?;
        Gemm::new(a, b).run()
    }
}

impl<'a> Gemm<'a> {
    /// A·B for a tensor B, X·Wᵀ for quantized weights W.
    pub fn new(a: &'a Tensor, b: impl Into<Right<'a>>) -> Self {
        Gemm {
            a,
            b: b.into(),
            offsets: None,
            alpha: 1.0,
            beta: 0.0,
            c: None,
            bias: None,
            activation: Activation::None,
            residual: None,
            out_dtype: None,
            precision: Precision::F32,
            kernel: None,
        }
    }

    /// A grouped product: the rows of A \[M,K\] in segments, each multiplied by its own entry of B
    /// \[groups,K,N\] (or of weights \[groups,N,K\]). Rows from the last offset on are left as they
    /// are; in an output that [`run`](Self::run) allocates, they are zero.
    pub fn grouped(a: &'a Tensor, b: impl Into<Right<'a>>, offsets: &'a GroupOffsets) -> Self {
        Gemm { offsets: Some(offsets), ..Gemm::new(a, b) }
    }

    /// Factor of the product; 1 by default.
    pub fn alpha(mut self, alpha: f32) -> Self {
        self.alpha = alpha;
        self
    }

    /// Factor of the output's old content; 0 by default, and then that is never read. Use it with
    /// an output of your own, or with [`c`](Self::c).
    pub fn beta(mut self, beta: f32) -> Self {
        self.beta = beta;
        self
    }

    /// For [`run`](Self::run): the output starts as a copy of `c`, which beta then multiplies. `c`
    /// must be contiguous and of the output's dtype. Without [`beta`](Self::beta) it plays no part.
    /// With an output of your own it is an error: there, beta multiplies what the output holds.
    pub fn c(mut self, c: &'a Tensor) -> Self {
        self.c = Some(c);
        self
    }

    /// Adds a vector \[N\] to every row. In a batched or grouped product it may be \[entries,N\].
    pub fn bias(self, bias: &'a Tensor) -> Self {
        self.bias_along(bias, Axis::N)
    }

    /// Adds a vector along an axis: \[N\] to every row, or \[M\] to every column.
    pub fn bias_along(mut self, bias: &'a Tensor, axis: Axis) -> Self {
        self.bias = Some((bias, axis));
        self
    }

    /// Function applied after the bias.
    pub fn activation(mut self, activation: Activation) -> Self {
        self.activation = activation;
        self
    }

    /// Adds a matrix of the output's shape last, after the activation.
    pub fn residual(mut self, residual: &'a Tensor) -> Self {
        self.residual = Some(residual);
        self
    }

    /// Type of the output that [`run`](Self::run) allocates. By default that of A and B, f32 if
    /// they differ; A's with quantized weights. An output of your own must have it.
    pub fn out_dtype(mut self, dtype: DType) -> Self {
        self.out_dtype = Some(dtype);
        self
    }

    /// How exact the product must be: [`Precision::F32`] by default. Nothing else permits less. It
    /// is a permission: the planner takes a less exact kernel where that is expected to be faster,
    /// on matrix units or on bytes. Everywhere else, as on the CPU, it computes as with `F32`.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Forces a kernel: `simt`, `simt/64x64x16`, `simt/64x64x16+k4` (K in 4 parts) or
    /// `coop/64x64x32+pad16` (16 elements between lines in workgroup memory, for kernels that have
    /// some); in MSL `msl-gemm/64x64x16`, where the context has such kernels
    /// ([`Context::library`]), and an error, `NoKernel`, where the driver does not compile it. The
    /// CPU executor ignores it once the name is known to exist.
    pub fn kernel(mut self, name: impl Into<String>) -> Self {
        self.kernel = Some(name.into().into());
        self
    }

    /// Computes into a new tensor of shape \[M,N\], or \[batch,M,N\]. The work is submitted, not
    /// waited for.
    ///
    /// # Errors
    /// `Shape`, `Strides`, `Misaligned`, `Overflow`, `BufferTooSmall`, `TooLarge`, `Unsupported`,
    /// `GroupOffsets` for operands that cannot be multiplied on this device; `Value` when beta is
    /// not 0 and there is no [`c`](Self::c); `UnknownKernel`, `NoKernel` for a forced kernel,
    /// `Value` for a name that is none; `WrongContext` for operands of different contexts;
    /// `Device`, `DeviceLost`.
    pub fn run(&self) -> Result<Tensor> {
        let c = self.output()?;
        self.onto().run_into(&c)?;
        Ok(c)
    }

    /// Computes into `c`, which may be a view. The work is submitted, not waited for.
    ///
    /// # Errors
    /// As [`run`](Self::run), and `Aliased` when `c` shares a buffer with an operand; `Value` when
    /// `c` is of another type than [`out_dtype`](Self::out_dtype), is a [prepared
    /// tensor](crate::PreparedTensor), or stands beside [`c`](Self::c).
    pub fn run_into(&self, c: &Tensor) -> Result<()> {
        match &self.context().0.backend {
            Backend::Gpu(gpu) => gpu.device.once(|encoder| self.encode(encoder, c)),
            Backend::Cpu => {
                self.fits(c)?;
                let bundle = self.bundle(Some(c))?;
                if let Some(InOrder { a, w, columns }) = self.in_order()? {
                    Take::new(self.a).columns(columns).run_into(&a)?;
                    return Gemm { a: &a, b: Right::Quantized(&w), ..self.clone() }.run_into(c);
                }
                self.context().plan(&bundle.problem, self.kernel.as_deref())?;
                execute::run(&bundle)
            }
        }
    }

    /// Adds the product to a command encoder of the caller's, as one compute pass. Nothing is
    /// submitted.
    ///
    /// # Errors
    /// As [`run_into`](Self::run_into); `WrongContext` on the CPU executor. After an error the
    /// encoder is as good as before.
    pub fn encode(&self, encoder: &mut wgpu::CommandEncoder, c: &Tensor) -> Result<()> {
        let descriptor =
            wgpu::ComputePassDescriptor { label: Some("tilewise"), timestamp_writes: None };
        self.record(&mut encoder.begin_compute_pass(&descriptor), c)
    }

    /// Adds the product to a compute pass of the caller's, so that a whole model can run in few
    /// passes. Sets pipeline and bind group 0.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn record(&self, pass: &mut wgpu::ComputePass<'_>, c: &Tensor) -> Result<()> {
        let gpu = self.context().gpu()?;
        self.fits(c)?;
        let bundle = self.bundle(Some(c))?;
        if let Some(InOrder { a, w, columns }) = self.in_order()? {
            Take::new(self.a).columns(columns).record(pass, &a)?;
            return Gemm { a: &a, b: Right::Quantized(&w), ..self.clone() }.record(pass, c);
        }
        let prepared = self.context().prepare(gpu, &bundle.problem, self.kernel.as_ref())?;
        gpu.record(
            pass,
            &prepared,
            Factors::of(&bundle.problem.epilogue),
            on_device(&bundle.buffers),
        )
    }

    /// The plan for an output that [`run`](Self::run) would allocate: passes, grids, bindings,
    /// parameters. Nothing is allocated. On the CPU executor it has no passes. Errors as
    /// [`run`](Self::run).
    pub fn plan(&self) -> Result<Plan> {
        self.context().plan(&self.problem()?, self.kernel.as_deref())
    }

    /// Every kernel that would do, the cheapest by estimate first, but for those in MSL that the
    /// device was seen to refuse; each name (`Choice::to_string()`) may be given to
    /// [`kernel`](Self::kernel). Empty on the CPU executor. Errors as [`run`](Self::run).
    pub fn choices(&self) -> Result<Vec<Choice>> {
        self.context().choices(&self.problem()?)
    }

    /// Which kernel was chosen and why not another, as text; at its end, for each pass, whether its
    /// pipeline is compiled, and how long that took. Errors as [`run`](Self::run).
    pub fn explain(&self) -> Result<String> {
        self.context().explain(&self.problem()?, self.kernel.as_deref())
    }

    /// The problem that the planner sees for an output that [`run`](Self::run) would allocate, as
    /// [`Context::warm_up`] takes it. Errors as [`run`](Self::run).
    pub fn problem(&self) -> Result<Problem> {
        Ok(self.bundle(None)?.problem)
    }

    pub(crate) fn context(&self) -> &Context {
        self.a.context()
    }

    /// The same product for an output that holds its C already.
    pub(crate) fn onto(&self) -> Self {
        Gemm { c: None, ..self.clone() }
    }

    /// `Value` when options speak of an output to allocate, and contradict the one that is there
    /// already.
    fn fits(&self, c: &Tensor) -> Result<()> {
        if self.c.is_some() {
            return Err(Error::Value(
                "c() is for run(): an output of your own is itself the C that beta multiplies"
                    .into(),
            ));
        }
        c.writable()?;
        match self.out_dtype {
            Some(dtype) if dtype != c.dtype() => Err(Error::Value(format!(
                "out_dtype() is {dtype}, the output given is {}",
                c.dtype()
            ))),
            _ => Ok(()),
        }
    }

    /// Memory for A with its columns in W's order, if W has one ([`QuantizedTensor::with_order`]).
    fn in_order(&self) -> Result<Option<InOrder<'a>>> {
        let Right::Quantized(w) = self.b else { return Ok(None) };
        let Some(order) = w.order.as_deref() else { return Ok(None) };
        let a = Tensor::zeros(self.context(), self.a.dtype(), self.a.shape())?;
        Ok(Some(InOrder {
            a,
            w: QuantizedTensor { order: None, ..w.clone() },
            columns: &order.columns,
        }))
    }

    /// Shape of the right operand as B: entries, K, N.
    fn b_matrix(&self) -> Result<[usize; 3]> {
        match self.b {
            Right::Dense(b) => b.matrix("B"),
            Right::Quantized(w) => w.matrix(),
        }
    }

    /// Batch, M, N, K.
    fn sizes(&self) -> Result<[usize; 4]> {
        let ([a_batch, m, k], [b_batch, b_k, n]) = (self.a.matrix("A")?, self.b_matrix()?);
        if k != b_k {
            return Err(Error::Shape(format!("A is {m}×{k} and B is {b_k}×{n}: K differs")));
        }
        let batch = match self.offsets {
            Some(offsets) if a_batch != 1 => {
                let groups = offsets.groups;
                return Err(Error::Shape(format!(
                    "a grouped product ({groups} groups) takes A [M,K], not a batch of {a_batch}"
                )));
            }
            Some(offsets) if b_batch as u64 != offsets.groups => {
                return Err(Error::Shape(format!(
                    "{} group offsets for {b_batch} entries of B",
                    offsets.groups
                )));
            }
            Some(_) => 1,
            None if a_batch == b_batch || b_batch == 1 => a_batch,
            None if a_batch == 1 => b_batch,
            None => {
                return Err(Error::Shape(format!(
                    "A has a batch of {a_batch}, B one of {b_batch}"
                )));
            }
        };
        if let Some(&last) =
            self.offsets.and_then(|offsets| offsets.ends.as_deref()).and_then(<[u32]>::last)
            && last as usize > m
        {
            return Err(Error::GroupOffsets(format!("the last one is {last}, A has {m} rows")));
        }
        Ok([batch, m, n, k])
    }

    /// Type and shape of the output that `run` allocates.
    fn output_kind(&self) -> Result<(DType, Vec<usize>)> {
        let [batch, m, n, _] = self.sizes()?;
        let stacked = match self.b {
            Right::Dense(b) => b.shape().len() == 3,
            Right::Quantized(w) => w.stacked,
        };
        let batched = self.offsets.is_none() && (self.a.shape().len() == 3 || stacked);
        let shape = if batched { vec![batch, m, n] } else { vec![m, n] };
        let shared = match self.b {
            Right::Dense(b) if b.dtype() != self.a.dtype() => DType::F32,
            _ => self.a.dtype(),
        };
        Ok((self.out_dtype.or(self.c.map(Tensor::dtype)).unwrap_or(shared), shape))
    }

    /// The output that `run` allocates.
    pub(crate) fn output(&self) -> Result<Tensor> {
        let (dtype, shape) = self.output_kind()?;
        let Some(c) = self.c else {
            if self.beta != 0.0 {
                let beta = self.beta;
                return Err(Error::Value(format!(
                    "beta is {beta} and there is no C: give one with c() or use run_into()"
                )));
            }
            return Tensor::zeros(self.context(), dtype, &shape);
        };
        self.context().same(c.context(), "C")?;
        if c.shape() != shape || c.dtype() != dtype || !c.is_contiguous() {
            let (kind, got, strides) = (c.dtype(), c.shape(), c.strides());
            return Err(Error::Shape(format!(
                "C to start from must be contiguous {dtype} {shape:?}; it is {kind} {got:?}, strides {strides:?}"
            )));
        }
        c.copy()
    }

    /// The problem and its operands' storage, for the output `c`, or for a packed one that is not
    /// there yet.
    pub(crate) fn bundle<'s>(&'s self, c: Option<&'s Tensor>) -> Result<Bundle<'s>> {
        let context = self.context();
        let [batch, m, n, k] = self.sizes()?;
        let entries = self.offsets.map_or(batch as u64, |offsets| offsets.groups);
        let mut buffers = Buffers::default();
        let mut add = |role: Role, name: &'static str, owner: &Context, bound: Bound<'s>| {
            context.same(owner, name)?;
            if c.is_some_and(|c| bound.storage.shares(c.storage())) {
                return Err(Error::Aliased { operand: name });
            }
            buffers[role as usize] = Some(bound);
            Ok(())
        };
        let (a, bound) = self.a.operand("A", batch as u64)?;
        add(Role::A, "A", context, bound)?;
        let b = match self.b {
            Right::Dense(b) => {
                let (operand, bound) = b.operand("B", entries)?;
                add(Role::B, "B", b.context(), bound)?;
                operand
            }
            Right::Quantized(w) => {
                let (operand, planes) = w.operand();
                for (role, bound) in planes {
                    add(role, "B", &w.context, bound)?;
                }
                operand
            }
        };
        let bias = match self.bias {
            Some((bias, axis)) => {
                let (operand, bound) =
                    bias.vector("bias", entries, if axis == Axis::N { n } else { m } as u64)?;
                add(Role::Bias, "bias", bias.context(), bound)?;
                Some(Bias { axis, operand })
            }
            None => None,
        };
        let residual = match self.residual {
            Some(residual) => {
                let [_, rows, cols] = residual.matrix("residual")?;
                same_shape("residual", [rows, cols], [m, n])?;
                let (operand, bound) = residual.operand("residual", batch as u64)?;
                add(Role::Residual, "residual", residual.context(), bound)?;
                Some(along_rows("residual", operand, m, n)?)
            }
            None => None,
        };
        if let Some(offsets) = self.offsets {
            add(Role::Offsets, "group offsets", &offsets.context, Bound::whole(&offsets.storage))?;
        }
        let c = match c {
            Some(c) => {
                context.same(c.context(), "C")?;
                let [c_batch, rows, cols] = c.matrix("C")?;
                same_shape("C", [rows, cols], [m, n])?;
                if c_batch != batch {
                    return Err(Error::Shape(format!(
                        "C has a batch of {c_batch}, the product one of {batch}"
                    )));
                }
                let (operand, bound) = c.operand("C", batch as u64)?;
                buffers[Role::C as usize] = Some(bound);
                along_rows("C", operand, m, n)?
            }
            None => packed(self.output_kind()?.0, [batch, m, n])?,
        };
        let b_copy = match self.b {
            Right::Dense(b) => &b.copy,
            Right::Quantized(w) => &w.copy,
        };
        let copies = [(Role::A, &self.a.copy), (Role::B, b_copy)].map(|(role, copy)| {
            let copy = copy.as_deref().filter(|copy| copy.role == role)?;
            let (storage, copied) = copy.packed.as_ref()?;
            buffers[role.copy() as usize] = Some(Bound::whole(storage));
            Some(*copied)
        });
        let factor = if let Right::Quantized(w) = self.b { w.factor } else { 1.0 };
        let problem = Problem {
            m: m as u64,
            n: n as u64,
            k: k as u64,
            batch: batch as u64,
            a,
            b,
            c,
            grouping: match self.offsets {
                Some(offsets) => Grouping::RaggedM { groups: offsets.groups },
                None => Grouping::Batched,
            },
            epilogue: Epilogue {
                alpha: self.alpha * factor,
                beta: self.beta,
                bias,
                activation: self.activation,
                residual,
            },
            precision: self.precision,
            copies,
        };
        Ok(Bundle { problem, buffers })
    }
}

/// A product whose weights have an order of columns: memory for A with its columns in that order,
/// and the weights without it.
struct InOrder<'a> {
    a: Tensor,
    w: QuantizedTensor,
    columns: &'a Tensor,
}

/// An output that is still to be allocated.
fn packed(dtype: DType, [batch, m, n]: [usize; 3]) -> Result<Operand> {
    let elements = (batch as u64).checked_mul(m as u64).and_then(|rows| rows.checked_mul(n as u64));
    match elements {
        Some(_) => Ok(Operand::packed(Format::Dense(dtype), batch as u64, m as u64, n as u64)),
        None => Err(Error::Overflow(format!("an output of {batch}×{m}×{n} elements"))),
    }
}

fn same_shape(name: &str, got: [usize; 2], wanted: [usize; 2]) -> Result<()> {
    if got == wanted {
        Ok(())
    } else {
        Err(Error::Shape(format!("{name} is {got:?}, the product {wanted:?}")))
    }
}

/// C and the residual are walked along their rows. A single column that was taken for a row is
/// turned back.
fn along_rows(name: &str, mut operand: Operand, m: usize, n: usize) -> Result<Operand> {
    if operand.transposed {
        match (m, n) {
            (_, 0..=1) => operand.ld = 1,
            (0..=1, _) if operand.ld == 1 => operand.ld = 0,
            _ => {
                return Err(Error::Strides(format!(
                    "{name} must run along its rows: give the transposed product instead, Cᵀ = Bᵀ·Aᵀ"
                )));
            }
        }
        operand.transposed = false;
    }
    Ok(operand)
}
