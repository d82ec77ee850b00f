//! A tensor as products, conversions and custom kernels bind it.

use super::Tensor;
use crate::gpu::SharedBuffer;
use crate::tensor::storage::{Bound, Storage};
#[cfg(feature = "custom-kernels")]
use smallvec::{SmallVec, smallvec};
use std::ops::Range;
use tilewise_core::{DType, Error, Format, Operand, Result};

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
            let negative = self.strides.iter().any(|&stride| stride > isize::MAX as usize);
            let hint = if negative { ": strides cannot be negative" } else { "" };
            Error::Shape(format!(
                "overflow: shape {:?} with strides {:?} from element {} on{hint}",
                self.shape, self.strides, self.offset
            ))
        })
    }

    /// `Unsupported` for another type than u32. `name` is the operand's.
    pub(crate) fn must_be_u32(&self, name: impl std::fmt::Display) -> Result<()> {
        match self.dtype {
            DType::U32 => Ok(()),
            dtype => Err(Error::Unsupported(format!("{name} in {dtype}, wanted u32"))),
        }
    }

    pub(crate) fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Rows and columns: the last two dimensions of two to four.
    pub(crate) fn rows_and_columns(&self, name: &str) -> Result<[usize; 2]> {
        match self.shape[..] {
            [rows, cols] | [_, rows, cols] | [_, _, rows, cols] => Ok([rows, cols]),
            _ => Err(Error::Shape(format!(
                "{name} has shape {:?}; [rows, columns] is wanted, with up to two dimensions of a \
                 batch before them",
                self.shape
            ))),
        }
    }

    /// Whether the elements of each row follow each other.
    #[cfg(feature = "custom-kernels")]
    pub(crate) fn has_whole_rows(&self) -> bool {
        self.shape.last().is_none_or(|size| *size <= 1) || self.strides.last() == Some(&1)
    }

    /// Size and stride of the two dimensions before the last `inner`; a missing dimension has size
    /// 1.
    pub(crate) fn batch(&self, inner: usize) -> [(usize, usize); 2] {
        [2, 1].map(|before| match self.shape.len().checked_sub(inner + before) {
            Some(axis) => (self.shape[axis], self.strides[axis]),
            None => (1, 0),
        })
    }

    /// Entries, rows and columns of a table, and the one stride that its entries must have.
    pub(crate) fn table(&self, name: &str) -> Result<([usize; 3], u64)> {
        let [rows, cols] = self.rows_and_columns(name)?;
        let [(outer, far), (inner, near)] = self.batch(2);
        let entries = outer
            .checked_mul(inner)
            .ok_or_else(|| Error::Shape(format!("overflow: {name} of shape {:?}", self.shape)))?;
        let stride = match (outer, inner) {
            (_, 1) => far,
            (0..=1, _) => near,
            _ if near.checked_mul(inner) == Some(far) => near,
            _ => {
                return Err(Error::Shape(format!(
                    "strides: {name} of shape {:?} with strides {:?}: its entries have no common \
                     stride",
                    self.shape, self.strides
                )));
            }
        };
        Ok(([entries, rows, cols], if entries == 1 { 0 } else { stride as u64 }))
    }

    /// The view as an operand whose entries have these strides
    /// ([`Operand::entry_strides`](tilewise_core::Operand::entry_strides)), and where its storage
    /// is bound.
    pub(crate) fn operand(&self, name: &str, entries: [u64; 4]) -> Result<(Operand, Bound<'_>)> {
        let [rows, cols] = self.rows_and_columns(name)?;
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
                return Err(Error::Shape(format!(
                    "strides: {name} has {strides:?}: rows or columns must be contiguous"
                )));
            }
        };
        Ok(self.bound(transposed, ld as u64, entries))
    }

    /// A vector, or one for each entry, as an operand whose entries have these strides.
    pub(crate) fn vector(&self, entries: [u64; 4]) -> (Operand, Bound<'_>) {
        let ld = self.strides.last().map_or(0, |stride| *stride as u64);
        self.bound(false, ld, entries)
    }

    /// The operand, and the binding of its storage. The binding starts at a multiple of the
    /// device's alignment; the operand's offset makes up for the rest.
    fn bound(&self, transposed: bool, ld: u64, entries: [u64; 4]) -> (Operand, Bound<'_>) {
        let size = self.dtype.bytes();
        let base = match &self.storage {
            Storage::Gpu { start, .. } => *start,
            Storage::Host { .. } => 0,
        };
        let first = base + self.offset as u64 * size;
        let start = match &self.storage {
            Storage::Gpu { .. } => first - first % u64::from(self.context.0.caps.storage_alignment),
            Storage::Host { .. } => 0,
        };
        let operand = Operand {
            format: Format::Dense(self.dtype),
            transposed,
            offset: (first - start) / size,
            ld,
            batch_stride: 0,
            outer_strides: [0; 3],
            len: (base + self.storage.bytes()).saturating_sub(start) / size,
        };
        (operand.with_entry_strides(entries), Bound { storage: &self.storage, start })
    }
}

/// Views in one buffer.
impl Tensor {
    /// The byte of its buffer at which the first element lies.
    pub(crate) fn first(&self) -> u64 {
        let start = match &self.storage {
            Storage::Gpu { start, .. } => *start,
            Storage::Host { .. } => 0,
        };
        start + self.offset as u64 * self.dtype.bytes()
    }

    /// The bytes of its buffer from the first to the last element, in whole words.
    pub(crate) fn span(&self) -> Result<Range<u64>> {
        let first = self.first();
        Ok(match self.extent()? {
            0 => 0..0,
            extent => first / 4 * 4..(first + extent).next_multiple_of(4),
        })
    }

    /// Whether an operand lies in the buffer of this output, beside it. In that buffer an operand
    /// without a `tensor` counts as overlapping, because its bytes are not known.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) if they overlap.
    pub(crate) fn lies_beside(
        &self,
        operand: &'static str,
        bound: Bound<'_>,
        tensor: Option<&Tensor>,
    ) -> Result<bool> {
        if !bound.storage.shares(&self.storage) {
            return Ok(false);
        }
        let aliased = |how: &str| Err(Error::aliased(operand, how));
        let Some(tensor) = tensor else {
            return aliased("lie in one buffer, whose bytes cannot be told apart: take two");
        };
        let Some(shared) = self.shares_bytes(tensor)? else { return Ok(true) };
        let also = match operand {
            "residual" => {
                "; without an activation, beta(1.0) adds to the output, and needs no residual"
            }
            _ => "",
        };
        aliased(&format!("{shared}: give another output, as run() does{also}"))
    }

    /// The buffer, and the byte of it at which the first element lies; none for host storage.
    pub(crate) fn place(&self) -> Option<(&SharedBuffer, u64)> {
        match &self.storage {
            Storage::Gpu { buffer, start } => {
                Some((buffer, start + self.offset as u64 * self.dtype.bytes()))
            }
            Storage::Host { .. } => None,
        }
    }

    /// Text about the bytes that two views share, if they share any. A view counts from its first
    /// word to its last.
    pub(crate) fn shares_bytes(&self, other: &Tensor) -> Result<Option<String>> {
        if !self.storage.shares(&other.storage) {
            return Ok(None);
        }
        let (own, other_bytes) = (self.span()?, other.span()?);
        let (start, end) = (own.start.max(other_bytes.start), own.end.min(other_bytes.end));
        let gaps = match self.is_contiguous() && other.is_contiguous() {
            true => "",
            false => ", gaps between their elements included",
        };
        Ok((start < end).then(|| format!("share bytes {start}..{end} of one buffer{gaps}")))
    }
}

/// Views that custom kernels bind.
#[cfg(feature = "custom-kernels")]
impl Tensor {
    /// The words around a view, and the place of its first element in them. The words begin where a
    /// binding can begin, and end with the view's last element.
    pub(crate) fn words(&self) -> Result<(Tensor, u64)> {
        let size = self.dtype.bytes();
        let (storage, first, alignment) = match &self.storage {
            Storage::Gpu { buffer, start } => {
                let alignment = u64::from(self.context.0.caps.storage_alignment);
                let whole = Storage::Gpu { buffer: buffer.clone(), start: 0 };
                (whole, start + self.offset as u64 * size, alignment)
            }
            Storage::Host { .. } => (self.storage.clone(), self.offset as u64 * size, 4),
        };
        let start = first - first % alignment;
        let words = (first - start + self.extent()?).div_ceil(4);
        let too_many = |_| Error::Shape(format!("overflow: a view of {words} words"));
        let view = Tensor {
            context: self.context.clone(),
            dtype: DType::U32,
            shape: smallvec![usize::try_from(words).map_err(too_many)?],
            strides: smallvec![1],
            offset: usize::try_from(start / 4).map_err(too_many)?,
            storage,
            copy: None,
            turned: false,
            constant: self.constant,
        };
        Ok((view, (first - start) / size))
    }

    /// This view under another shape and other strides, which lead to no element outside it.
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

    /// Whether two elements may share a place. Taking the axes from the shortest stride on, each
    /// stride must pass all elements of the axes before it. Interleaved elements therefore count as
    /// overlapping.
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

    /// This storage from its start, as elements of another type.
    pub(crate) fn as_packed(&self, dtype: DType, shape: &[usize]) -> Tensor {
        Tensor::packed(&self.context, dtype, shape, self.storage.clone())
    }
}
