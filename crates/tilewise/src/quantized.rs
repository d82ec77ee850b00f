//! Weights in few bits, on the device.

use crate::context::Context;
use crate::storage::Storage;
use std::ops::Range;
use tilewise_core::plan::Table;
use tilewise_core::quant::{Quantized, quantize};
use tilewise_core::{Error, Format, Operand, QuantFormat, Result};

/// Bytes of a status.
const STATUS_BYTES: u64 = 4;

/// A weight matrix W \[N,K\], or one per group \[G,N,K\], quantized along its rows. As the right
/// operand of a product it stands for Wᵀ: Y = X·Wᵀ. Its transpose, [`t`](Self::t), stands for W.
#[derive(Clone, Debug)]
pub struct QuantizedTensor {
    pub(crate) context: Context,
    pub(crate) format: QuantFormat,
    /// In the order of [`QuantFormat::planes`].
    pub(crate) planes: Vec<Storage>,
    pub(crate) operand: Operand,
    pub(crate) entries: u64,
    pub(crate) n: u64,
    pub(crate) k: u64,
    /// Where the device says what it could not store, if it has made the weights.
    pub(crate) status: Option<Storage>,
    /// Of all matrices; products take it into their alpha.
    pub(crate) factor: f32,
}

impl QuantizedTensor {
    /// Uploads weights that are already quantized: one matrix.
    ///
    /// # Errors
    /// `TooLarge`, `Device` when the device has no memory left, `DeviceLost`.
    pub fn upload(context: &Context, weights: &Quantized) -> Result<Self> {
        Self::upload_groups(context, std::slice::from_ref(weights))
    }

    /// Uploads one matrix per group, all of one shape and format, for a grouped (or batched) product.
    ///
    /// # Errors
    /// `Shape` when there is none or they differ, `Unsupported` when their factors
    /// ([`Quantized::factor`]) do; otherwise as [`upload`](Self::upload).
    pub fn upload_groups(context: &Context, weights: &[Quantized]) -> Result<Self> {
        let first = weights.first().ok_or_else(|| Error::Shape("no quantized matrix given".into()))?;
        let kind = |w: &Quantized| (w.format(), w.n(), w.k());
        if let Some(other) = weights.iter().find(|w| kind(w) != kind(first)) {
            return Err(Error::Shape(format!("quantized matrices differ: {:?} and {:?}", kind(first), kind(other))));
        }
        if let Some(other) = weights.iter().find(|w| w.factor() != first.factor()) {
            let [a, b] = [first.factor(), other.factor()];
            return Err(Error::Unsupported(format!("matrices of one tensor with the factors {a} and {b}")));
        }
        let upload = |plane: usize| match weights {
            [only] => Storage::with_bytes(context, &only.planes()[plane]),
            all => {
                Storage::with_bytes(context, &all.iter().flat_map(|w| w.planes()[plane].clone()).collect::<Vec<_>>())
            }
        };
        let (n, k, entries) = (first.n() as u64, first.k() as u64, weights.len() as u64);
        Ok(QuantizedTensor {
            context: context.clone(),
            format: first.format(),
            planes: (0..first.planes().len()).map(upload).collect::<Result<_>>()?,
            operand: Operand::packed(Format::Quantized(first.format()), entries, n, k).t(),
            entries,
            n,
            k,
            status: None,
            factor: first.factor(),
        })
    }

    /// Weights of a format, \[N,K\] or \[G,N,K\], of which all bytes are 0: an output for
    /// [`Quantize`](crate::Quantize).
    ///
    /// # Errors
    /// `Shape` for another shape, or a K that is not a multiple of [`QuantFormat::block`]; `Overflow`,
    /// `TooLarge`, `Device`, `DeviceLost`.
    pub fn zeros(context: &Context, format: QuantFormat, shape: &[usize]) -> Result<Self> {
        let [entries, n, k] = match *shape {
            [n, k] => [1, n, k],
            [entries, n, k] => [entries, n, k],
            _ => return Err(Error::Shape(format!("quantized weights of shape {shape:?}"))),
        };
        let overflow = || Error::Overflow(format!("{format} weights of shape {shape:?}"));
        let sizes = format.sizes(entries.checked_mul(n).ok_or_else(overflow)?, k)?;
        let [entries, n, k] = [entries, n, k].map(|size| size as u64);
        Ok(QuantizedTensor {
            context: context.clone(),
            format,
            planes: sizes.into_iter().map(|bytes| Storage::zeros(context, bytes as u64)).collect::<Result<_>>()?,
            operand: Operand::packed(Format::Quantized(format), entries, n, k).t(),
            entries,
            n,
            k,
            status: Some(Storage::zeros(context, STATUS_BYTES)?),
            factor: 1.0,
        })
    }

    /// Whether weights that were [quantized on the device](crate::Quantize) are what they were made of:
    /// finite numbers in a range that the format holds. Others are checked when they are made. Never
    /// blocks.
    ///
    /// # Errors
    /// `Value` with a row that cannot be stored, the last one, counted over all matrices; `Device`,
    /// `DeviceLost`.
    pub async fn check(&self) -> Result<()> {
        let Some(status) = &self.status else { return Ok(()) };
        let bytes = status.read(&self.context, STATUS_BYTES).await?;
        let status = bytes.as_chunks().0.first().map_or(0, |&word| u64::from(u32::from_le_bytes(word)));
        let Some(row) = status.checked_sub(1) else { return Ok(()) };
        let format = self.format;
        Err(Error::Value(format!("row {row} holds a weight that is NaN or infinite, or beyond the range of {format}")))
    }

    /// As [`check`](Self::check), blocking.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    #[cfg(not(target_family = "wasm"))]
    pub fn check_blocking(&self) -> Result<()> {
        pollster::block_on(self.check())
    }

    /// The matrices, read back. Never blocks.
    ///
    /// # Errors
    /// `Unsupported` for a slice, `Device`, `DeviceLost`.
    pub async fn read(&self) -> Result<Vec<Quantized>> {
        let (n, k) = (self.n as usize, self.k as usize);
        let (sizes, whole) =
            (self.format.sizes(n, k)?, Table::packed(self.operand.format, self.entries, self.n, self.k));
        if self.table() != whole {
            return Err(Error::Unsupported("reading a slice of quantized weights".into()));
        }
        let mut planes = Vec::with_capacity(sizes.len());
        for (plane, size) in self.planes.iter().zip(&sizes) {
            planes.push(plane.read(&self.context, self.entries * *size as u64).await?);
        }
        let matrix = |entry: usize| {
            let part = |(plane, size): (&Vec<u8>, &usize)| plane[entry * size..(entry + 1) * size].to_vec();
            let matrix = Quantized::from_planes(self.format, n, k, planes.iter().zip(&sizes).map(part).collect())?;
            if self.factor == 1.0 { Ok(matrix) } else { matrix.with_factor(self.factor) }
        };
        (0..self.entries as usize).map(matrix).collect()
    }

    /// As [`read`](Self::read), blocking.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[cfg(not(target_family = "wasm"))]
    pub fn read_blocking(&self) -> Result<Vec<Quantized>> {
        pollster::block_on(self.read())
    }

    /// The weights as rows along K.
    pub(crate) fn table(&self) -> Table {
        let operand = Operand { transposed: false, ..self.operand };
        Table { operand, entries: self.entries, rows: self.n, columns: self.k }
    }

    /// Quantizes row-major weights \[N,K\] on the CPU and uploads them.
    ///
    /// # Errors
    /// As [`quantize`](tilewise_core::quant::quantize()) and [`upload`](Self::upload).
    pub fn quantize(context: &Context, weights: &[f32], [n, k]: [usize; 2], format: QuantFormat) -> Result<Self> {
        Self::upload(context, &quantize(weights, n, k, format)?)
    }

    /// The transpose, on the same memory: as the right operand of a product it stands for W itself,
    /// Y = X·W, whose rows X's columns meet. Blocks stay along the rows of W.
    pub fn t(&self) -> Self {
        QuantizedTensor { operand: self.operand.t(), ..self.clone() }
    }

    /// Rows `n` and columns `k` of W, or of every matrix, on the same memory.
    ///
    /// # Errors
    /// `Shape` for a range that is not inside the shape, `Misaligned` for columns that do not begin
    /// and end with whole blocks ([`QuantFormat::block`]).
    pub fn slice(&self, n: Range<usize>, k: Range<usize>) -> Result<Self> {
        let inside = |range: &Range<usize>, size: u64| range.start <= range.end && range.end as u64 <= size;
        if !inside(&n, self.n) || !inside(&k, self.k) {
            return Err(Error::Shape(format!("{n:?} and {k:?} of quantized weights [{}, {}]", self.n, self.k)));
        }
        let format = self.format;
        let block = format.block() as usize;
        if let Some(end) = [k.start, k.end].into_iter().find(|end| !end.is_multiple_of(block)) {
            return Err(Error::Misaligned(format!("K cut at {end}, not a multiple of {block}, the block of {format}")));
        }
        let offset = self.operand.offset + n.start as u64 * self.operand.ld + k.start as u64;
        let mut slice = QuantizedTensor { n: n.len() as u64, k: k.len() as u64, ..self.clone() };
        slice.operand.offset = offset;
        Ok(slice)
    }

    /// Shape of the weights: \[N,K\], or \[G,N,K\] for more than one matrix.
    pub fn shape(&self) -> Vec<usize> {
        let matrix = [self.n as usize, self.k as usize];
        if self.entries == 1 { matrix.to_vec() } else { vec![self.entries as usize, matrix[0], matrix[1]] }
    }

    /// The format.
    pub fn format(&self) -> QuantFormat {
        self.format
    }
}
