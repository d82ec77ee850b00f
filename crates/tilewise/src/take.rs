//! Copying elements of a table: all of them as numbers of a type, or rows and columns by index.

use crate::context::Context;
use crate::execute::{self, source::Source};
use crate::gpu::{Conversion, Factors};
use crate::host::memory;
use crate::quantized::QuantizedTensor;
use crate::recorder::{AsRecorder, Way};
use crate::right::RightOperand;
use crate::tensor::Tensor;
use crate::tensor::operands::Operands;
use crate::tensor::storage::{Bound, Buffers, on_device};
use tilewise_core::kernel::Role;
use tilewise_core::plan::{self, Index, Table};
use tilewise_core::{DType, Epilogue, Error, Operand, Result, convert};

/// Copies rows and columns of a table by index, or all of it: an embedding look-up, or weights
/// dequantized.
///
/// The table is a tensor or quantized weights, of shape \[rows, columns\] or \[entries, rows,
/// columns\]; the same indices serve every entry. Indices are u32. An index beyond the table gives
/// NaN; in a table of integers it gives i32::MIN or u32::MAX, which are no indices either. Integers
/// keep their type.
///
/// Elements of a tensor keep their bits, except that a NaN of 16 bits becomes quiet; elements that
/// change their type are rounded once. Decoded elements may differ from the CPU executor's: by a
/// rounding in affine formats and with a factor, in other formats only in subnormal numbers and the
/// sign of zero ([`Codec::error`](tilewise_core::quant::Codec::error)).
///
/// ```
/// use tilewise::{Context, Take, Tensor};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let table = Tensor::upload(&ctx, &[0.0f32, 0.5, 1.0, 1.5, 2.0, 2.5], &[3, 2])?;
/// let tokens = Tensor::upload(&ctx, &[2u32, 0, 2], &[3])?;
/// let x = Take::new(&table).rows(&tokens).run()?;
/// assert_eq!(x.read_blocking::<f32>()?, [2.0, 2.5, 0.0, 0.5, 2.0, 2.5]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is copied until it is run or recorded"]
pub struct Take {
    table: RightOperand,
    rows: Option<Tensor>,
    columns: Option<Tensor>,
    zeros: bool,
    dtype: Option<DType>,
}

/// A problem with the storage of its operands.
struct Bundle<'a> {
    take: plan::Take,
    buffers: Buffers<'a>,
}

impl Take {
    /// Takes all of a table, in its type, or as f32 for quantized weights.
    pub fn new(table: impl Into<RightOperand>) -> Self {
        Take { table: table.into(), rows: None, columns: None, zeros: false, dtype: None }
    }

    /// Takes rows by index, a vector of u32.
    pub fn rows(self, indices: &Tensor) -> Self {
        Take { rows: Some(indices.clone()), ..self }
    }

    /// Takes columns by index, a vector of u32.
    pub fn columns(self, indices: &Tensor) -> Self {
        Take { columns: Some(indices.clone()), ..self }
    }

    /// Gives zeros for an index beyond the table.
    ///
    /// ```
    /// use tilewise::{Context, Take, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let table = Tensor::upload(&ctx, &[1.0f32, 2.0], &[2, 1])?;
    /// let rows = Tensor::upload(&ctx, &[1u32, 7], &[2])?;
    /// let taken = Take::new(&table).rows(&rows).or_zeros().run()?;
    /// assert_eq!(taken.read_blocking::<f32>()?, [2.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn or_zeros(self) -> Self {
        Take { zeros: true, ..self }
    }

    /// Type of the output.
    pub fn out_dtype(self, dtype: DType) -> Self {
        Take { dtype: Some(dtype), ..self }
    }

    /// Copies to a new tensor. The work is submitted, not waited for.
    ///
    /// # Errors
    /// [`Shape`](crate::Error), `Unsupported`, `DeviceLimit` for a table or indices that cannot be
    /// used on this device; `Misuse` for columns by index of weights with an
    /// [order](QuantizedTensor::with_order) of columns, and for operands of different contexts.
    pub fn run(&self) -> Result<Tensor> {
        let out = Tensor::zeros(self.context(), self.dtype(), &self.shape()?)?;
        self.run_into(&out)?;
        Ok(out)
    }

    /// Copies into `out`, a contiguous tensor or view. The work is submitted, not waited for.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run); [`Shape`](crate::Error) when `out` has another shape or
    /// type, is not contiguous, or overlaps an operand; `Misuse` when it is a [prepared
    /// tensor](crate::Prepared) or a view of one.
    pub fn run_into(&self, out: &Tensor) -> Result<()> {
        self.context().submit(|to| self.record(to, out))
    }

    /// Adds the copy to the given compute pass, command encoder or recorder.
    ///
    /// # Errors
    /// The errors of [`run_into`](Self::run_into); [`Misuse`](crate::Error) on the CPU executor,
    /// unless the recorder is its own, and for the recorder of another context.
    pub fn record(&self, to: &mut impl AsRecorder, out: &Tensor) -> Result<()> {
        let to = &mut to.as_recorder();
        let (gpu, target) = match to.way(self.context())? {
            Way::Record(gpu, target) => (gpu, target),
            Way::Run => return on_host(&self.bundle(out)?, self.factor()),
            Way::Plan(planned) => {
                self.bundle(out)?;
                let (take, out) = (self.clone(), out.clone());
                planned.operations.push(Box::new(move |to| take.record(to, &out)));
                return Ok(());
            }
        };
        let Bundle { take, buffers } = self.bundle(out)?;
        if let Some((all, numbers)) = self.decoded()? {
            Take::new(all).record(to, &numbers)?;
            return self.of_decoded(numbers).record(to, out);
        }
        let compiled = gpu.convert(Conversion::Take(take), &self.context().0.caps)?;
        let epilogue = Epilogue { alpha: self.factor(), ..Epilogue::default() };
        gpu.record(target, &compiled, Factors::of(&epilogue), on_device(&buffers))
    }

    /// All of a quantized table, with its columns as they are stored, and memory for its numbers.
    /// `None` unless the table must be decoded first, because the device binds too few storage
    /// buffers for planes, indices and output at once.
    fn decoded(&self) -> Result<Option<(QuantizedTensor, Tensor)>> {
        let RightOperand::Quantized(w) = &self.table else { return Ok(None) };
        let columns = self.columns.is_some() || w.order.is_some();
        let indices = usize::from(self.rows.is_some()) + usize::from(columns);
        let most = self.context().0.caps.max_storage_buffers as usize;
        if indices == 0 || w.planes.len() + indices < most {
            return Ok(None);
        }
        let numbers = Tensor::zeros(self.context(), DType::F32, &w.shape())?;
        Ok(Some((QuantizedTensor { order: None, ..w.clone() }, numbers)))
    }

    /// Takes these rows and columns of the numbers that the table stands for.
    fn of_decoded(&self, numbers: Tensor) -> Take {
        let places = match &self.table {
            RightOperand::Quantized(w) => w.order.as_ref().map(|order| order.places.clone()),
            _ => None,
        };
        Take {
            table: numbers.into(),
            rows: self.rows.clone(),
            columns: self.columns.clone().or(places),
            zeros: self.zeros,
            dtype: Some(self.dtype()),
        }
    }

    fn context(&self) -> &Context {
        self.table.context()
    }

    fn dtype(&self) -> DType {
        self.dtype.or(self.table.dtype()).unwrap_or(DType::F32)
    }

    /// Factor of a quantized table; 1 for any other.
    fn factor(&self) -> f32 {
        if let RightOperand::Quantized(table) = &self.table { table.factor } else { 1.0 }
    }

    /// Shape of the output.
    fn shape(&self) -> Result<Vec<usize>> {
        let mut shape = match &self.table {
            RightOperand::Dense(table) => table.shape().to_vec(),
            RightOperand::Quantized(table) if table.is_transposed() => {
                return Err(Error::Misuse(
                    "a table that is the transpose of quantized weights, whose rows are columns of \
                     the weights: take of these, before t()"
                        .into(),
                ));
            }
            RightOperand::Quantized(table) => table.shape(),
            RightOperand::Shards(shards) => return Err(shards.refused("a table")),
        };
        let (Some(row), 2..=4) = (shape.len().checked_sub(2), shape.len()) else {
            return Err(Error::Shape(format!(
                "a table of shape {shape:?}, wanted [rows, columns]"
            )));
        };
        for (axis, indices) in [(row, &self.rows), (row + 1, &self.columns)] {
            match indices.as_ref().map(Tensor::shape) {
                Some([count]) => shape[axis] = *count,
                Some(other) => {
                    return Err(Error::Shape(format!(
                        "indices of shape {other:?}, wanted a vector"
                    )));
                }
                None => {}
            }
        }
        Ok(shape)
    }

    fn bundle<'s>(&'s self, out: &'s Tensor) -> Result<Bundle<'s>> {
        let (context, shape, dtype) = (self.context(), self.shape()?, self.dtype());
        context.same(out.context(), "the output")?;
        out.writable()?;
        if out.shape() != shape || out.dtype() != dtype || !out.is_contiguous() {
            let (kind, got, strides) = (out.dtype(), out.shape(), out.strides());
            return Err(Error::Shape(format!(
                "the output must be contiguous {dtype} {shape:?}; it is {kind} {got:?}, strides \
                 {strides:?}"
            )));
        }
        let mut operands = Operands::new(context, Some(out));
        let table = match &self.table {
            RightOperand::Dense(table) => {
                let ([entries, rows, columns], stride) = table.table("the table")?;
                let (operand, bound) = table.operand("the table", [0, 0, 0, stride])?;
                operands.add(Role::B, "the table", table, bound)?;
                Table {
                    operand,
                    entries: entries as u64,
                    rows: rows as u64,
                    columns: columns as u64,
                }
            }
            RightOperand::Quantized(w) => {
                for (role, plane) in Role::B.planes().zip(&w.planes) {
                    operands.add_buffer(role, "the table", &w.context, Bound::whole(plane))?;
                }
                w.table()
            }
            RightOperand::Shards(shards) => return Err(shards.refused("a table")),
        };
        let mut index = |role: Role, name: &'static str, indices: Option<&'s Tensor>| {
            let Some(indices) = indices else { return Ok(None) };
            indices.must_be_u32(name)?;
            let count = indices.elem_count() as u64;
            let (Operand { offset, ld, len, .. }, bound) = indices.vector([0; 4]);
            operands.add(role, name, indices, bound)?;
            Ok(Some(Index { offset, step: ld, count, len }))
        };
        let rows = index(Role::RowIndex, "the row indices", self.rows.as_ref())?;
        let columns = match (&self.table, self.columns.as_ref()) {
            (RightOperand::Quantized(QuantizedTensor { order: Some(_), .. }), Some(_)) => {
                let text = "columns by index of weights whose columns are in another order: \
                            dequantize them first";
                return Err(Error::Misuse(text.into()));
            }
            (RightOperand::Quantized(QuantizedTensor { order: Some(order), .. }), None) => {
                Some(&order.places)
            }
            (_, columns) => columns,
        };
        let columns = index(Role::ColumnIndex, "the column indices", columns)?;
        let (Operand { offset, len, .. }, bound) = out.operand("the output", [0; 4])?;
        operands.add_output("the output", out, bound)?;
        let Operands { buffers, beside_out: beside_c, .. } = operands;
        let zeros = self.zeros;
        let take = plan::Take { table, rows, columns, zeros, dtype, offset, len, beside_c };
        let take = take.checked()?;
        Ok(Bundle { take, buffers })
    }
}

impl QuantizedTensor {
    /// Decodes the weights to numbers, in a new tensor of their [shape](Self::shape): see [`Take`].
    ///
    /// # Errors
    /// The errors of [`Take::run`].
    pub fn dequantize(&self, dtype: DType) -> Result<Tensor> {
        if self.is_transposed() {
            return Ok(self.t().dequantize(dtype)?.t());
        }
        Take::new(self).out_dtype(dtype).run()
    }

    /// Rows by index as numbers, an embedding look-up: see [`Take`].
    ///
    /// # Errors
    /// The errors of [`Take::run`].
    pub fn rows(&self, indices: &Tensor, dtype: DType) -> Result<Tensor> {
        Take::new(self).rows(indices).out_dtype(dtype).run()
    }
}

impl Tensor {
    /// Rows by index, a vector of u32, in a new tensor: see [`Take`].
    ///
    /// # Errors
    /// The errors of [`Take::run`].
    pub fn rows(&self, indices: &Tensor) -> Result<Tensor> {
        Take::new(self).rows(indices).run()
    }

    /// Columns by index, a vector of u32, in a new tensor: see [`Take`].
    ///
    /// # Errors
    /// The errors of [`Take::run`].
    pub fn columns(&self, indices: &Tensor) -> Result<Tensor> {
        Take::new(self).columns(indices).run()
    }
}

/// Copies on the CPU.
fn on_host(Bundle { take, buffers }: &Bundle<'_>, factor: f32) -> Result<()> {
    let [entries, m, n] = take.shape();
    if entries * m * n == 0 {
        return Ok(());
    }
    let storage = |role| execute::storage(buffers, role);
    let Table { operand, rows, columns, .. } = take.table;
    let planes = operand.format.planes();
    let guards = Role::B
        .planes()
        .zip(planes)
        .map(|(role, _)| storage(role)?.host())
        .collect::<Result<Vec<_>>>()?;
    let planes: Vec<&[u32]> = guards.iter().map(|words| words.as_slice()).collect();
    let source = Source::new(operand.format, &planes);
    let indices = |role: Role, index: Option<Index>, all: u64| -> Result<Vec<u64>> {
        let Some(Index { offset, step, count, .. }) = index else { return Ok((0..all).collect()) };
        let words = storage(role)?.host()?;
        Ok((0..count).map(|i| u64::from(words[(offset + i * step) as usize])).collect())
    };
    let row_indices = indices(Role::RowIndex, take.rows, rows)?;
    let column_indices = indices(Role::ColumnIndex, take.columns, columns)?;
    if !take.dtype.is_float() {
        let mut words = memory::room((entries * m * n) as usize)?;
        for entry in 0..entries {
            for (&row, &column) in
                row_indices.iter().flat_map(|row| column_indices.iter().map(move |c| (row, c)))
            {
                let [line, at] = if operand.transposed { [column, row] } else { [row, column] };
                let place = || operand.offset + entry * operand.batch_stride + line * operand.ld;
                let inside = row < rows && column < columns;
                words.push(if inside { planes[0][(place() + at) as usize] } else { take.beyond() });
            }
        }
        drop(guards);
        let first = take.offset as usize;
        storage(Role::C)?.host_mut()?[first..first + words.len()].copy_from_slice(&words);
        return Ok(());
    }
    let (mut row, mut taken) =
        (memory::filled(columns as usize, 0f32)?, memory::filled(n as usize, 0f32)?);
    let mut taken_bytes = memory::room((entries * m * n * take.dtype.bytes()) as usize)?;
    for entry in 0..entries {
        for &index in &row_indices {
            if index < rows {
                let Operand { transposed, offset, ld, batch_stride, .. } = operand;
                let [between, along] = if transposed { [1, ld] } else { [ld, 1] };
                let first = offset + entry * batch_stride + index * between;
                source.read_apart(first, along, &mut row);
                if factor != 1.0 {
                    row.iter_mut().for_each(|number| *number *= factor);
                }
            }
            for (taken, &column) in taken.iter_mut().zip(&column_indices) {
                *taken = match index < rows && column < columns {
                    true => row[column as usize],
                    false => f32::from_bits(take.beyond()),
                };
            }
            taken_bytes.extend(convert::encode(take.dtype, &taken));
        }
    }
    // The table may lie in the output's storage, so it is unlocked before that is locked to write.
    drop(guards);
    let first = (take.offset * take.dtype.bytes()) as usize;
    let mut words = storage(Role::C)?.host_mut()?;
    let out: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    out[first..first + taken_bytes.len()].copy_from_slice(&taken_bytes);
    Ok(())
}
