//! A tensor as products, conversions and custom kernels bind it.

use super::Tensor;
#[cfg(feature = "custom-kernels")]
use crate::gpu::SharedBuffer;
use crate::storage::{Bound, Storage};
#[cfg(feature = "custom-kernels")]
use smallvec::{SmallVec, smallvec};
#[cfg(feature = "custom-kernels")]
use std::ops::Range;
#[cfg(feature = "custom-kernels")]
use tilewise_core::DType;
use tilewise_core::{Error, Format, Operand, Result};

impl Tensor {
    /// Elements from the start of the storage to the end of the view.
    pub(super) fn end(&self) -> Result<u64> {
        if self.elem_count() == 0 {
            return Ok(0);
        }
        let last = self
            .shape
            .iter()
            .zip(&self.strides)
            .try_fold(self.offset as u64, |sum, (&size, &stride)| {
                sum.checked_add((size as u64 - 1).checked_mul(stride as u64)?)
            });
        last.and_then(|last| last.checked_add(1)).ok_or_else(|| {
            Error::Overflow(format!("shape {:?} with strides {:?}", self.shape, self.strides))
        })
    }

    pub(crate) fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Entries, rows and columns of a tensor of two or three dimensions.
    pub(crate) fn matrix(&self, name: &str) -> Result<[usize; 3]> {
        match self.shape[..] {
            [rows, cols] => Ok([1, rows, cols]),
            [entries, rows, cols] => Ok([entries, rows, cols]),
            _ => Err(Error::Shape(format!(
                "{name} has shape {:?}; products take [rows, columns] or [batch, rows, columns]",
                self.shape
            ))),
        }
    }

    /// The view as an operand whose batch has `entries` entries, and where its storage is bound.
    /// One entry serves all.
    pub(crate) fn operand(&self, name: &str, entries: u64) -> Result<(Operand, Bound<'_>)> {
        let [own, rows, cols] = self.matrix(name)?;
        if own as u64 != entries && own != 1 {
            return Err(Error::Shape(format!(
                "{name} has a batch of {own}, the product one of {entries}"
            )));
        }
        let [row, col] = [self.strides[self.shape.len() - 2], self.strides[self.shape.len() - 1]];
        // A single row or column can be read either way; along the longer axis, if that is
        // contiguous, is the better.
        let (transposed, ld) = match (row, col) {
            (1, _) if cols <= 1 && rows > 1 => (true, col),
            (_, 1) => (false, row),
            (_, _) if cols <= 1 => (false, row),
            (1, _) => (true, col),
            (_, _) if rows <= 1 => (true, col),
            _ => {
                let strides = &self.strides;
                return Err(Error::Strides(format!(
                    "{name} with strides {strides:?}: rows or columns must be contiguous"
                )));
            }
        };
        let batch_stride = if own == 1 { 0 } else { self.strides[0] as u64 };
        Ok(self.bound(transposed, ld as u64, batch_stride))
    }

    /// A vector of `length`, or a matrix \[entries, length\] of them, as an operand.
    pub(crate) fn vector(
        &self,
        name: &str,
        entries: u64,
        length: u64,
    ) -> Result<(Operand, Bound<'_>)> {
        let (own, batch_stride) = match self.shape[..] {
            [n] if n as u64 == length => (1, 0),
            [own, n] if n as u64 == length && (own as u64 == entries || own == 1) => {
                (own, self.strides[0] as u64)
            }
            _ => {
                let shape = &self.shape;
                return Err(Error::Shape(format!(
                    "{name} has shape {shape:?}, wanted [{length}] or [{entries}, {length}]"
                )));
            }
        };
        let ld = self.strides[self.shape.len() - 1] as u64;
        Ok(self.bound(false, ld, if own == 1 { 0 } else { batch_stride }))
    }

    /// Bindings start at a multiple of the device's alignment; the operand's offset makes up for
    /// the rest.
    fn bound(&self, transposed: bool, ld: u64, batch_stride: u64) -> (Operand, Bound<'_>) {
        let size = self.dtype.bytes();
        let base = match &self.storage {
            Storage::Gpu { start, .. } => *start,
            Storage::Host { .. } => 0,
        };
        let first = base + self.offset as u64 * size;
        let start = match &self.storage {
            Storage::Gpu { .. } => first - first % u64::from(self.context.caps().storage_alignment),
            Storage::Host { .. } => 0,
        };
        let operand = Operand {
            format: Format::Dense(self.dtype),
            transposed,
            offset: (first - start) / size,
            ld,
            batch_stride,
            len: (base + self.storage.bytes()).saturating_sub(start) / size,
        };
        (operand, Bound { storage: &self.storage, start })
    }
}

/// Views that custom kernels bind.
#[cfg(feature = "custom-kernels")]
impl Tensor {
    /// The words around a view, from where they can be bound to the end of the last element, and
    /// the place of the first element in them.
    pub(crate) fn words(&self) -> Result<(Tensor, u64)> {
        let size = self.dtype.bytes();
        let (storage, first, alignment) = match &self.storage {
            Storage::Gpu { buffer, start } => {
                let alignment = u64::from(self.context.caps().storage_alignment);
                let whole = Storage::Gpu { buffer: buffer.clone(), start: 0 };
                (whole, start + self.offset as u64 * size, alignment)
            }
            Storage::Host { .. } => (self.storage.clone(), self.offset as u64 * size, 4),
        };
        let start = first - first % alignment;
        let words = (first - start + self.extent()?).div_ceil(4);
        let too_many = |_| Error::Overflow(format!("a view of {words} words"));
        let view = Tensor {
            context: self.context.clone(),
            dtype: DType::U32,
            shape: smallvec![usize::try_from(words).map_err(too_many)?],
            strides: smallvec![1],
            offset: usize::try_from(start / 4).map_err(too_many)?,
            storage,
            copy: None,
        };
        Ok((view, (first - start) / size))
    }

    /// The buffer and the byte of it at which the first element lies, of device storage.
    pub(crate) fn place(&self) -> Option<(&SharedBuffer, u64)> {
        match &self.storage {
            Storage::Gpu { buffer, start } => {
                Some((buffer, start + self.offset as u64 * self.dtype.bytes()))
            }
            Storage::Host { .. } => None,
        }
    }

    /// The byte of its buffer at which the first element lies.
    fn first(&self) -> u64 {
        let start = match &self.storage {
            Storage::Gpu { start, .. } => *start,
            Storage::Host { .. } => 0,
        };
        start + self.offset as u64 * self.dtype.bytes()
    }

    /// The words of its buffer in which elements lie or between which they do, in bytes.
    pub(crate) fn span(&self) -> Result<Range<u64>> {
        let first = self.first();
        Ok(match self.extent()? {
            0 => 0..0,
            extent => first / 4 * 4..(first + extent).next_multiple_of(4),
        })
    }

    /// The same first element under another shape and other strides, which lead to no element
    /// outside the view.
    pub(crate) fn laid_out(&self, shape: &[usize], strides: &[usize]) -> Tensor {
        Tensor { shape: shape.into(), strides: strides.into(), ..self.view() }
    }

    /// Whether both are the same elements in the same order.
    pub(crate) fn is_same_view(&self, other: &Tensor) -> bool {
        self.storage.shares(&other.storage)
            && self.first() == other.first()
            && self.dtype == other.dtype
            && self.shape == other.shape
            && self.strides == other.strides
    }

    /// Whether an element may lie where another one lies: along the axes from the shortest stride
    /// on, each step must pass all that came before. So interleaved elements count as overlapping.
    pub(crate) fn overlaps_itself(&self) -> bool {
        if self.is_contiguous() {
            return false;
        }
        let axes = self.strides.iter().zip(&self.shape).filter(|(_, size)| **size > 1);
        let mut axes: SmallVec<[_; 8]> =
            axes.map(|(&stride, &size)| (stride as u64, size as u64)).collect();
        axes.sort_unstable();
        let mut reach = 0u64;
        axes.into_iter().any(|(stride, size)| {
            let overlaps = stride <= reach;
            reach = reach.saturating_add(stride.saturating_mul(size - 1));
            overlaps
        })
    }

    /// Writes the elements, given row-major in the view's order, into host storage.
    pub(crate) fn put(&self, bytes: &[u8]) -> Result<()> {
        let size = self.dtype.bytes() as usize;
        let mut words = self.storage.host_mut()?;
        let target: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        for (element, at) in bytes.chunks(size).zip(self.places()) {
            let at = (self.offset + at) * size;
            target[at..at + size].copy_from_slice(element);
        }
        Ok(())
    }

    /// The same storage from its start, as elements of another type.
    pub(crate) fn as_packed(&self, dtype: DType, shape: &[usize]) -> Tensor {
        Tensor::packed(&self.context, dtype, shape, self.storage.clone())
    }
}
