//! Weights in few bits, on the device.

mod concat;
pub(crate) mod planes;
pub(crate) mod quantize;
pub(crate) mod status;

use crate::context::Context;
use crate::host::memory;
use crate::quantized::status::{Status, quantize_all};
use crate::tensor::Tensor;
use crate::tensor::storage::{Bound, PackedCopy, Storage};
use std::ops::Range;
use std::sync::Arc;
use tilewise_core::kernel::Role;
use tilewise_core::plan::Table;
use tilewise_core::quant::Quantized;
use tilewise_core::{Error, Operand, QuantFormat, Result};

/// A weight matrix W \[N,K\], or one per group \[G,N,K\], quantized along its rows. As the right
/// operand of a product it stands for Wᵀ: Y = X·Wᵀ. Its transpose, [`t`](Self::t), stands for W.
///
/// ```
/// use tilewise::{Context, Gemm, QuantFormat, QuantizedTensor, Tensor};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::upload(&ctx, &[1.0f32; 32], &[1, 32])?;
/// let w = QuantizedTensor::quantize(&ctx, &[0.5; 64], [2, 32], QuantFormat::MXFP4)?;
/// assert_eq!(Gemm::new(&x, &w).run()?.read_blocking::<f32>()?, [16.0, 16.0]);
/// # Ok(())
/// # }
/// ```
///
/// [`QuantFormat`] lists the formats. Each has a [block](QuantFormat::block) of weights, of which K
/// must be a multiple. [`quantize`](Self::quantize) makes weights on the CPU,
/// [`Quantize`](crate::Quantize) on the device; [`upload`](Self::upload) and
/// [`from_planes`](Self::from_planes) take weights that are quantized already.
#[derive(Clone, Debug)]
pub struct QuantizedTensor {
    pub(crate) context: Context,
    pub(crate) format: QuantFormat,
    /// Storage of each plane, in the order of [`QuantFormat::planes`].
    pub(crate) planes: Vec<Storage>,
    pub(crate) operand: Operand,
    pub(crate) entries: u64,
    /// Whether the shape is \[G,N,K\], even with one matrix.
    pub(crate) stacked: bool,
    pub(crate) n: u64,
    pub(crate) k: u64,
    /// Whether the planes also hold weights outside this tensor: it is a slice, or one of several
    /// matrices.
    pub(crate) part: bool,
    /// Where the device stores which row it could not quantize. None for weights from the host.
    pub(crate) status: Option<Arc<Status>>,
    /// Factor of all matrices, or the power of two by which their scales were divided
    /// ([`QuantFormat::power_of`]); products take it into their alpha.
    pub(crate) factor: f32,
    /// Order of the stored columns, if it differs from the order of W's columns.
    pub(crate) order: Option<Arc<Order>>,
    /// The decoded copy of prepared weights. Slices and transposes have none: the copy is of all
    /// weights, as they stand for B.
    pub(crate) copy: Option<Arc<PackedCopy>>,
    /// Whether these are prepared weights, or slices or transposes of them: writing to them would
    /// leave the copy behind.
    pub(crate) constant: bool,
}

/// How stored columns and W's columns correspond, in both directions.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// Stored column i is column `columns[i]` of W.
    pub(crate) columns: Tensor,
    /// Column i of W is stored column `places[i]`.
    pub(crate) places: Tensor,
}

impl Order {
    /// Uploads both directions of a permutation.
    fn new(context: &Context, columns: &[u32]) -> Result<Self> {
        let mut places = vec![0; columns.len()];
        for (place, &column) in columns.iter().enumerate() {
            places[column as usize] = place as u32;
        }
        let upload = |indices: &[u32]| Tensor::upload(context, indices, &[indices.len()]);
        Ok(Order { columns: upload(columns)?, places: upload(&places)? })
    }
}

impl QuantizedTensor {
    /// Uploads weights that are already quantized: one matrix. Scales in f32 that f16 lacks are
    /// divided by a power of two, which products take into their alpha.
    ///
    /// # Errors
    /// [`DeviceLimit`](crate::Error), `OutOfMemory`.
    pub fn upload(context: &Context, weights: &Quantized) -> Result<Self> {
        let one = Self::upload_groups(context, std::slice::from_ref(weights))?;
        Ok(QuantizedTensor { stacked: false, ..one })
    }

    /// Uploads one matrix per group, all of one shape and format, for a grouped (or batched)
    /// product.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) when there is no matrix, or shapes or formats differ; `Misuse` when
    /// factors ([`Quantized::factor`]) differ; otherwise as [`upload`](Self::upload).
    pub fn upload_groups(context: &Context, weights: &[Quantized]) -> Result<Self> {
        let first =
            weights.first().ok_or_else(|| Error::Shape("no quantized matrix given".into()))?;
        let kind = |w: &Quantized| (w.format(), w.n(), w.k());
        if let Some(other) = weights.iter().find(|w| kind(w) != kind(first)) {
            return Err(Error::Shape(format!(
                "quantized matrices differ: {:?} and {:?}",
                kind(first),
                kind(other)
            )));
        }
        if let Some(other) = weights.iter().find(|w| w.factor() != first.factor()) {
            let [a, b] = [first.factor(), other.factor()];
            return Err(Error::Misuse(format!(
                "the matrices of one tensor must have one factor; these have {a} and {b}"
            )));
        }
        let shape = [weights.len(), first.n(), first.k()];
        let made = Self::spread(context, first.format(), &shape, weights)?;
        Ok(QuantizedTensor { factor: first.factor() * made.factor, ..made })
    }

    /// Weights \[N,K\] or \[G,N,K\] whose bytes are all 0: an output for
    /// [`Quantize`](crate::Quantize).
    ///
    /// # Errors
    /// [`Shape`](crate::Error) for another shape, or a K that is not a multiple of
    /// [`QuantFormat::block`]; `DeviceLimit`, `OutOfMemory`.
    pub fn zeros(context: &Context, format: QuantFormat, shape: &[usize]) -> Result<Self> {
        let weights = Self::empty(context, format, shape)?;
        Ok(QuantizedTensor { status: Some(Arc::new(Status::zeros(context, shape)?)), ..weights })
    }

    /// Weights whose bytes are all 0, with gaps between their rows.
    fn empty(context: &Context, format: QuantFormat, shape: &[usize]) -> Result<Self> {
        let pitch = pitch(context, format, shape)?;
        let sizes = sizes(format, shape, pitch)?;
        let planes = sizes.into_iter().map(|bytes| Storage::zeros(context, bytes as u64));
        let planes = planes.collect::<Result<_>>()?;
        Self::of_planes(context, format, shape, pitch, planes)
    }

    /// Replaces the factor of the whole matrix ([`Quantized::with_factor`]).
    ///
    /// # Errors
    /// [`Unsupported`](crate::Error) for a format that has no factor, `Misuse` for one that is not
    /// finite.
    pub fn with_factor(self, factor: f32) -> Result<Self> {
        self.format.admit_factor(factor)?;
        Ok(QuantizedTensor { factor, ..self })
    }

    /// The order of the stored columns, a vector of u32, if it differs from the order of W's
    /// columns: see [`with_order`](Self::with_order).
    pub fn order(&self) -> Option<&Tensor> {
        self.order.as_deref().map(|order| &order.columns)
    }

    /// The factor of all matrices; 1 for formats that have none.
    pub fn factor(&self) -> f32 {
        if self.format.divided_plane().is_some() { 1.0 } else { self.factor }
    }

    /// Sets the order in which the columns of W are stored, as in GPTQ's act-order: stored column i
    /// is column `order[i]` of W. It replaces an earlier order. Products first copy the columns of
    /// X in this order. [`dequantize`](Self::dequantize) and [`rows`](Self::rows) give the columns
    /// in the order of W.
    ///
    /// ```
    /// use tilewise::{Context, Gemm, QuantFormat, QuantizedTensor, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let mut stored = [1.0; 32];
    /// stored[0] = 4.0;
    /// let w = QuantizedTensor::quantize(&ctx, &stored, [1, 32], QuantFormat::MXFP4)?;
    /// let order: Vec<u32> = (0..32).rev().collect(); // stored column 0 is column 31 of W
    /// let mut x = [0.0f32; 32];
    /// x[31] = 1.0;
    /// let x = Tensor::upload(&ctx, &x, &[1, 32])?;
    /// let y = Gemm::new(&x, w.with_order(&order)?).run()?;
    /// assert_eq!(y.read_blocking::<f32>()?, [4.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Misuse`](crate::Error) if `order` is no permutation of all columns.
    pub fn with_order(self, order: &[u32]) -> Result<Self> {
        let refused = |why: String| Err(Error::Misuse(format!("an order of columns: {why}")));
        let mut places = vec![None; self.k as usize];
        for (place, &column) in order.iter().enumerate() {
            match places.get_mut(column as usize) {
                Some(first @ None) => *first = Some(place),
                Some(Some(first)) => {
                    return refused(format!("column {column} stands at {first} and at {place}"));
                }
                None => {
                    return refused(format!("column {column} at {place}, of {} columns", self.k));
                }
            }
        }
        if order.len() as u64 != self.k {
            return refused(format!("it has {} of {}", order.len(), self.k));
        }
        Ok(QuantizedTensor { order: Some(Arc::new(Order::new(&self.context, order)?)), ..self })
    }

    /// Reports weights that [the device could not quantize](crate::Quantize): NaN, infinite, or
    /// beyond the format's range. Weights from the host were checked when they were made. Never
    /// blocks.
    ///
    /// # Errors
    /// [`Misuse`](crate::Error) if rows cannot be stored. It names the last such row, and its
    /// matrix in the stack that was quantized, also for a slice of the stack.
    pub async fn check(&self) -> Result<()> {
        match &self.status {
            Some(status) => status.check(&self.context, self.format).await,
            None => Ok(()),
        }
    }

    /// Like [`check`](Self::check), blocking.
    ///
    /// # Errors
    /// The errors of [`check`](Self::check).
    #[cfg(not(target_family = "wasm"))]
    pub fn check_blocking(&self) -> Result<()> {
        pollster::block_on(self.check())
    }

    /// Reads back the matrices, without gaps between rows. Never blocks.
    ///
    /// # Errors
    /// [`Misuse`](crate::Error) for columns in [another order](Self::with_order), which the result
    /// would not show, and for a [plane](Self::from_planes) in a buffer without `COPY_SRC`.
    pub async fn read(&self) -> Result<Vec<Quantized>> {
        if self.order.is_some() {
            let text = "reading weights whose columns are in another order: dequantize them";
            return Err(Error::Misuse(text.into()));
        }
        let (n, k) = (self.n as usize, self.k as usize);
        let lines = if k == 0 { 0 } else { self.n };
        let mut matrices = vec![Vec::new(); self.entries as usize];
        for (storage, plane) in self.planes.iter().zip(self.format.planes()) {
            let bytes = |weights: u64| plane.bytes_of(self.format.block(), weights);
            let Operand { offset, ld, batch_stride, .. } = self.operand;
            let (first, end) = (bytes(offset), bytes(offset + self.table().extent()));
            let read = storage.read(&self.context, first..end).await?;
            for (entry, planes) in (0..).zip(&mut matrices) {
                let mut rows = memory::room(self.format.sizes(n, k)?[planes.len()])?;
                for row in 0..lines {
                    let at = bytes(entry * batch_stride + row * ld) as usize;
                    rows.extend_from_slice(&read[at..at + bytes(self.k) as usize]);
                }
                planes.push(rows);
            }
        }
        let matrix = |mut planes: Vec<Vec<u8>>| {
            if let Some(plane) = self.format.divided_plane() {
                let scales = self.format.divided(plane, &planes[plane], 1.0 / self.factor);
                planes[plane] = scales.into_owned();
            }
            let matrix = Quantized::from_planes(self.format, n, k, planes)?;
            if self.factor() == 1.0 { Ok(matrix) } else { matrix.with_factor(self.factor) }
        };
        matrices.into_iter().map(matrix).collect()
    }

    /// Like [`read`](Self::read), blocking.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    #[cfg(not(target_family = "wasm"))]
    pub fn read_blocking(&self) -> Result<Vec<Quantized>> {
        pollster::block_on(self.read())
    }

    /// The weights as rows along K.
    pub(crate) fn table(&self) -> Table {
        let operand = Operand { transposed: false, ..self.operand };
        Table { operand, entries: self.entries, rows: self.n, columns: self.k }
    }

    /// Quantizes row-major weights, \[N,K\] or one matrix per group \[G,N,K\], on the CPU and
    /// uploads them. Each matrix of a stack gets the bits that it would get alone.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) for another shape, or another number of weights; otherwise as
    /// [`quantize`](tilewise_core::quant::quantize()), naming the matrix of a stack, and as
    /// [`upload`](Self::upload).
    ///
    /// ```
    /// use tilewise::{Context, DType, QuantFormat, QuantizedTensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let experts = QuantizedTensor::quantize(&ctx, &[0.5; 192], [3, 2, 32], QuantFormat::MXFP4)?;
    /// assert_eq!(experts.dequantize(DType::F32)?.read_blocking::<f32>()?, [0.5; 192]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn quantize(
        context: &Context,
        weights: &[f32],
        shape: impl AsRef<[usize]>,
        format: QuantFormat,
    ) -> Result<Self> {
        let shape = shape.as_ref();
        let [entries, n, k] = matrices(shape)?;
        sizes(format, shape, k)?;
        if weights.len() != entries * n * k {
            return Err(Error::Shape(format!(
                "weights of shape {shape:?} are {} elements, there are {}",
                entries * n * k,
                weights.len()
            )));
        }
        let made = quantize_all(weights, [entries, n, k], shape.len() == 3, format)?;
        Self::spread(context, format, shape, &[made])
    }

    /// The transpose, on the same memory. As the right operand of a product it stands for W itself:
    /// Y = X·W, where X has a column for each row of W. Blocks stay along the rows of W. Products
    /// refuse it if the columns have an [order](Self::with_order). [`Take`](crate::Take) and
    /// [`slice`](Self::slice) refuse it: give them the weights before `t()`.
    #[must_use = "a view changes nothing"]
    pub fn t(&self) -> Self {
        QuantizedTensor { operand: self.operand.t(), copy: None, ..self.clone() }
    }

    /// Rows `n` and columns `k` of W, or of every matrix, on the same memory.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) for a range that is not inside the shape, and for columns that do
    /// not begin and end with whole blocks ([`QuantFormat::block`]); `Misuse` for a
    /// [transpose](Self::t), and for less than all columns if they have an
    /// [order](Self::with_order).
    pub fn slice(&self, n: Range<usize>, k: Range<usize>) -> Result<Self> {
        if self.is_transposed() {
            return Err(Error::Misuse(
                "a slice of the transpose of quantized weights: slice these, before t()".into(),
            ));
        }
        let inside =
            |range: &Range<usize>, size: u64| range.start <= range.end && range.end as u64 <= size;
        if !inside(&n, self.n) || !inside(&k, self.k) {
            return Err(Error::Shape(format!(
                "rows {n:?} and columns {k:?} of quantized weights [{}, {}]",
                self.n, self.k
            )));
        }
        let format = self.format;
        let block = format.block() as usize;
        if let Some(end) = [k.start, k.end].into_iter().find(|end| !end.is_multiple_of(block)) {
            return Err(Error::Shape(format!(
                "misaligned: K cut at {end}, not a multiple of {block}, the block of {format}"
            )));
        }
        if self.order.is_some() && k.len() as u64 != self.k {
            let text = format!("columns {k:?} of weights whose columns are in another order");
            return Err(Error::Misuse(text));
        }
        let offset = self.operand.offset + n.start as u64 * self.operand.ld + k.start as u64;
        let mut slice =
            QuantizedTensor { n: n.len() as u64, k: k.len() as u64, copy: None, ..self.clone() };
        slice.operand.offset = offset;
        slice.part |= [slice.n, slice.k] != [self.n, self.k];
        Ok(slice)
    }

    /// One matrix of a stack \[G,N,K\], on the same memory, as weights \[N,K\] with the format, the
    /// factor and the order of the stack. A [transpose](Self::t) gives the transpose of the matrix.
    ///
    /// ```
    /// use tilewise::{Context, DType, QuantFormat, QuantizedTensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let experts = QuantizedTensor::zeros(&ctx, QuantFormat::MXFP4, &[8, 2, 32])?;
    /// let one = experts.get(7)?;
    /// assert_eq!(one.shape(), [2, 32]);
    /// assert_eq!(one.dequantize(DType::F32)?.read_blocking::<f32>()?, [0.0; 64]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::Error) for an index beyond the last matrix, and for weights that are no
    /// stack.
    pub fn get(&self, index: usize) -> Result<Self> {
        if !self.stacked || index as u64 >= self.entries {
            return Err(Error::Shape(format!(
                "matrix {index} of quantized weights {:?}, {}",
                self.shape(),
                match self.stacked {
                    true => format!("a stack of {}", self.entries),
                    false => "which are no stack".into(),
                }
            )));
        }
        let mut one = QuantizedTensor { entries: 1, stacked: false, copy: None, ..self.clone() };
        one.part |= self.entries > 1;
        one.operand.offset += index as u64 * self.operand.batch_stride;
        Ok(one)
    }

    /// Entries, K and N of the operand B that the weights stand for.
    pub(crate) fn matrix(&self) -> Result<[usize; 3]> {
        if self.order.is_some() && !self.operand.transposed {
            let text = "weights whose columns are in another order, as the transpose: X·W would \
                        come out in that order";
            return Err(Error::Misuse(text.into()));
        }
        let (k, n) = if self.operand.transposed { (self.k, self.n) } else { (self.n, self.k) };
        Ok([self.entries, k, n].map(|size| size as usize))
    }

    /// The operand B, and where its planes are bound. A single matrix serves the whole batch.
    pub(crate) fn operand(&self) -> (Operand, impl Iterator<Item = (Role, Bound<'_>)>) {
        let batch_stride = if self.entries == 1 { 0 } else { self.operand.batch_stride };
        (
            Operand { batch_stride, ..self.operand },
            Role::B.planes().zip(self.planes.iter().map(Bound::whole)),
        )
    }

    /// The context that they belong to.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Shape of the weights: \[N,K\], or \[G,N,K\] if they were made as a stack of one or more
    /// matrices. A [transpose](Self::t) has the last two exchanged.
    pub fn shape(&self) -> Vec<usize> {
        let (rows, columns) =
            if self.is_transposed() { (self.k, self.n) } else { (self.n, self.k) };
        let shape = [self.entries, rows, columns].map(|size| size as usize);
        shape[usize::from(!self.stacked)..].to_vec()
    }

    /// Whether they stand for the transpose ([`t`](Self::t)).
    pub(crate) fn is_transposed(&self) -> bool {
        !self.operand.transposed
    }

    /// The format.
    pub fn format(&self) -> QuantFormat {
        self.format
    }
}

/// Numbers of matrices, rows and columns of a shape.
pub(crate) fn matrices(shape: &[usize]) -> Result<[usize; 3]> {
    match *shape {
        [n, k] => Ok([1, n, k]),
        [entries, n, k] => Ok([entries, n, k]),
        _ => Err(Error::Shape(format!(
            "quantized weights of shape {shape:?}; [N,K] or [G,N,K] is expected"
        ))),
    }
}

/// The distance from row to row, in weights, for weights that the library stores: with a gap
/// between rows, unless a buffer of the device would not hold it.
pub(crate) fn pitch(context: &Context, format: QuantFormat, shape: &[usize]) -> Result<usize> {
    let [.., k] = matrices(shape)?;
    let pitch = format.pitch(k as u64) as usize;
    let most = context.0.caps.max_buffer_bytes;
    let fits = |sizes: Vec<usize>| sizes.into_iter().all(|bytes| bytes as u64 <= most);
    Ok(if sizes(format, shape, pitch).is_ok_and(fits) { pitch } else { k })
}

/// Bytes of each plane of all matrices, with `pitch` weights from row to row.
///
/// # Errors
/// [`Shape`](crate::Error).
pub(crate) fn sizes(format: QuantFormat, shape: &[usize], pitch: usize) -> Result<Vec<usize>> {
    let [entries, n, _] = matrices(shape)?;
    let rows = entries.checked_mul(n);
    format.sizes(
        rows.ok_or_else(|| Error::Shape(format!("overflow: {format} weights of shape {shape:?}")))?,
        pitch,
    )
}
