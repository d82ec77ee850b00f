//! Typed, strided views of buffers.

use crate::context::Context;
use crate::memory;
use crate::storage::{Bound, PackedCopy, Storage};
use std::ops::Range;
use std::sync::Arc;
use tilewise_core::{DType, Error, Format, Operand, Result};

/// A Rust type that a tensor can hold.
pub trait Element: bytemuck::Pod + sealed::Sealed {
    /// Its dtype.
    const DTYPE: DType;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for half::f16 {}
    impl Sealed for half::bf16 {}
    impl Sealed for i32 {}
    impl Sealed for u32 {}
}

impl Element for f32 {
    const DTYPE: DType = DType::F32;
}

impl Element for half::f16 {
    const DTYPE: DType = DType::F16;
}

impl Element for half::bf16 {
    const DTYPE: DType = DType::BF16;
}

impl Element for i32 {
    const DTYPE: DType = DType::I32;
}

impl Element for u32 {
    const DTYPE: DType = DType::U32;
}

/// A typed, strided view of storage. Views ([`t`](Tensor::t), [`slice`](Tensor::slice),
/// [`reshape`](Tensor::reshape)) and clones share the storage.
///
/// Strides and offsets count elements. Products take tensors of two dimensions, or three with the
/// batch first.
#[derive(Clone, Debug)]
pub struct Tensor {
    context: Context,
    dtype: DType,
    shape: Vec<usize>,
    strides: Vec<usize>,
    offset: usize,
    storage: Storage,
    /// Of a prepared tensor. Views have none: it is of all elements.
    pub(crate) copy: Option<Arc<PackedCopy>>,
}

pub(crate) fn count(shape: &[usize]) -> Result<usize> {
    let product = shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
    // A dimension of 0 makes it empty whatever the others are.
    if shape.contains(&0) {
        Ok(0)
    } else {
        product.ok_or_else(|| Error::Overflow(format!("a tensor of shape {shape:?}")))
    }
}

/// Row-major strides.
pub(crate) fn packed(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1usize; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis]);
    }
    strides
}

impl Tensor {
    /// A new tensor with a copy of `data`, row-major.
    ///
    /// # Errors
    /// `Shape` when `data` has another length than `shape` says, `Overflow`, `TooLarge` for the
    /// device's buffers, `Device` when its memory is spent, `DeviceLost`.
    pub fn upload<T: Element>(context: &Context, data: &[T], shape: &[usize]) -> Result<Self> {
        Self::from_bytes(context, T::DTYPE, bytemuck::cast_slice(data), shape)
    }

    /// A new tensor with a copy of `bytes`: elements of `dtype`, little-endian, row-major. Errors
    /// as [`upload`](Self::upload).
    pub fn from_bytes(
        context: &Context,
        dtype: DType,
        bytes: &[u8],
        shape: &[usize],
    ) -> Result<Self> {
        let elements = count(shape)?;
        if elements.checked_mul(dtype.bytes() as usize) != Some(bytes.len()) {
            return Err(Error::Shape(format!(
                "shape {shape:?} has {elements} elements of {} bytes, {} bytes given",
                dtype.bytes(),
                bytes.len()
            )));
        }
        let storage = Storage::with_bytes(context, bytes)?;
        Ok(Self::packed(context, dtype, shape, storage))
    }

    /// A new tensor of zeros. Errors as [`upload`](Self::upload).
    pub fn zeros(context: &Context, dtype: DType, shape: &[usize]) -> Result<Self> {
        let bytes = (count(shape)? as u64)
            .checked_mul(dtype.bytes())
            .ok_or_else(|| Error::Overflow(format!("a {dtype} tensor of shape {shape:?}")))?;
        let storage = Storage::zeros(context, bytes)?;
        Ok(Self::packed(context, dtype, shape, storage))
    }

    /// Of storage that holds all of it, row-major.
    pub(crate) fn packed(
        context: &Context,
        dtype: DType,
        shape: &[usize],
        storage: Storage,
    ) -> Self {
        let (context, shape, strides) = (context.clone(), shape.to_vec(), packed(shape));
        Tensor { context, dtype, shape, strides, offset: 0, storage, copy: None }
    }

    /// A view of a buffer of the caller's, which must have the usage `STORAGE` (and `COPY_SRC` to
    /// be read back). The first element lies at `byte_offset`; `strides` count elements, one per
    /// dimension. Only whole words of 4 bytes count, which matters to 16-bit elements. The context
    /// keeps the last 64 of the caller's buffers, so that tensors made anew on them cost little:
    /// until others push them out, or [`Context::release_scratch`].
    ///
    /// # Errors
    /// `Shape` when `strides` and `shape` differ in length, `Misaligned` when the offset is not a
    /// multiple of the element size, `BufferTooSmall`, `Overflow`, `Unsupported` for a buffer
    /// without `STORAGE`, `WrongContext` on the CPU executor.
    pub fn from_buffer(
        context: &Context,
        buffer: wgpu::Buffer,
        byte_offset: u64,
        dtype: DType,
        shape: &[usize],
        strides: &[usize],
    ) -> Result<Self> {
        context.gpu()?;
        if shape.len() != strides.len() {
            return Err(Error::Shape(format!(
                "shape {shape:?} and strides {strides:?} differ in length"
            )));
        }
        if !byte_offset.is_multiple_of(dtype.bytes()) {
            return Err(Error::Misaligned(format!(
                "byte offset {byte_offset} of {dtype} elements of {} bytes",
                dtype.bytes()
            )));
        }
        count(shape)?;
        let storage = Storage::of_buffer(context, buffer, 0)?;
        let offset = usize::try_from(byte_offset / dtype.bytes())
            .map_err(|_| Error::Overflow(format!("byte offset {byte_offset}")))?;
        let tensor = Tensor {
            context: context.clone(),
            dtype,
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            offset,
            storage,
            copy: None,
        };
        // Bindings and copies go by words of 4 bytes.
        let per_word = 4 / dtype.bytes();
        let (needed, len) = (tensor.end()?, tensor.storage.bytes() / 4 * per_word);
        if needed > len {
            return Err(Error::BufferTooSmall { operand: "tensor", needed, len });
        }
        Ok(tensor)
    }

    /// The context it belongs to.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Size of each dimension.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Distance in elements between neighbours along each dimension.
    pub fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether the elements lie one after the other, row-major.
    pub fn is_contiguous(&self) -> bool {
        let packed = packed(&self.shape);
        self.elements() == 0
            || (0..self.shape.len()).all(|i| self.shape[i] == 1 || self.strides[i] == packed[i])
    }

    /// The buffer and the byte of it at which the first element lies; none on the CPU executor.
    pub fn buffer(&self) -> Option<(&wgpu::Buffer, u64)> {
        match &self.storage {
            Storage::Gpu { buffer, start } => {
                Some((buffer, start + self.offset as u64 * self.dtype.bytes()))
            }
            Storage::Host { .. } => None,
        }
    }

    /// The transpose: a view with the last two dimensions exchanged. A tensor of fewer dimensions
    /// is its own transpose.
    pub fn t(&self) -> Tensor {
        let mut view = self.view();
        if let rank @ 2.. = view.shape.len() {
            view.shape.swap(rank - 2, rank - 1);
            view.strides.swap(rank - 2, rank - 1);
        }
        view
    }

    /// All of it, without its copy.
    pub(crate) fn view(&self) -> Tensor {
        Tensor { copy: None, ..self.clone() }
    }

    /// The view of a range along each dimension. `Shape` when there are more or fewer ranges than
    /// dimensions or one exceeds its dimension.
    pub fn slice(&self, ranges: &[Range<usize>]) -> Result<Tensor> {
        let fits = ranges.len() == self.shape.len()
            && ranges
                .iter()
                .zip(&self.shape)
                .all(|(range, &size)| range.start <= range.end && range.end <= size);
        if !fits {
            return Err(Error::Shape(format!(
                "slice {ranges:?} of a tensor of shape {:?}",
                self.shape
            )));
        }
        let mut view = self.view();
        for (axis, range) in ranges.iter().enumerate() {
            view.shape[axis] = range.len();
        }
        // An empty view keeps its offset: nothing of it is ever touched, and the start may lie
        // beyond the storage.
        if view.elements() > 0 {
            view.offset += ranges
                .iter()
                .zip(&self.strides)
                .map(|(range, stride)| range.start * stride)
                .sum::<usize>();
        }
        Ok(view)
    }

    /// The same elements in row-major order under another shape. `Shape` when the number of
    /// elements differs, `Strides` when the view is not contiguous (nothing is copied).
    pub fn reshape(&self, shape: &[usize]) -> Result<Tensor> {
        if count(shape)? != self.elements() {
            return Err(Error::Shape(format!("reshape of {:?} to {shape:?}", self.shape)));
        }
        if !self.is_contiguous() {
            return Err(Error::Strides(format!(
                "reshape of a view of shape {:?} with strides {:?}",
                self.shape, self.strides
            )));
        }
        Ok(Tensor { shape: shape.to_vec(), strides: packed(shape), ..self.view() })
    }

    /// A new tensor with the same contents. The view must be contiguous.
    pub(crate) fn copy(&self) -> Result<Tensor> {
        let copy = Tensor::zeros(&self.context, self.dtype, &self.shape)?;
        let size = self.dtype.bytes();
        let (first, bytes) = (self.offset as u64 * size, self.elements() as u64 * size);
        if bytes == 0 {
            return Ok(copy);
        }
        match (&self.storage, &copy.storage) {
            (Storage::Gpu { buffer, start }, Storage::Gpu { buffer: target, .. }) => {
                let (first, end) = (start + first, (start + first + bytes).next_multiple_of(4));
                // Copies go by words.
                if !first.is_multiple_of(4) || end > buffer.size() {
                    return Err(Error::Misaligned(format!(
                        "copying {bytes} bytes from byte {first} of {}",
                        buffer.size()
                    )));
                }
                let gpu = self.context.gpu()?;
                gpu.device.once(|encoder| {
                    encoder.copy_buffer_to_buffer(buffer, first, target, 0, end - first);
                    Ok(())
                })?;
            }
            _ => {
                let words = self.storage.host()?;
                let source = &bytemuck::cast_slice::<u32, u8>(&words)
                    [first as usize..(first + bytes) as usize];
                bytemuck::cast_slice_mut(&mut copy.storage.host_mut()?)[..bytes as usize]
                    .copy_from_slice(source);
            }
        }
        Ok(copy)
    }

    /// The elements, row-major in the view's order. Never blocks.
    ///
    /// # Errors
    /// `Unsupported` when `T` is not the tensor's dtype or a buffer of the caller's lacks
    /// `COPY_SRC`, `DeviceLost`, `Device`.
    pub async fn read<T: Element>(&self) -> Result<Vec<T>> {
        if T::DTYPE != self.dtype {
            return Err(Error::Unsupported(format!(
                "reading a {} tensor as {}",
                self.dtype,
                T::DTYPE
            )));
        }
        let bytes = self.read_bytes().await?;
        let mut elements = memory::filled(bytes.len() / size_of::<T>(), T::zeroed())?;
        bytemuck::cast_slice_mut(&mut elements).copy_from_slice(&bytes);
        Ok(elements)
    }

    /// The elements widened to f32. Errors as [`read`](Self::read).
    pub async fn read_f32(&self) -> Result<Vec<f32>> {
        memory::decoded(self.dtype, &self.read_bytes().await?)
    }

    /// The elements as little-endian bytes, row-major in the view's order. Errors as
    /// [`read`](Self::read).
    pub async fn read_bytes(&self) -> Result<Vec<u8>> {
        let bytes = self.extent_bytes().await?;
        if self.is_contiguous() { Ok(bytes) } else { self.gather(&bytes) }
    }

    /// The bytes from the view's first element to its last.
    pub(crate) async fn extent_bytes(&self) -> Result<Vec<u8>> {
        match (&self.storage, self.buffer()) {
            (Storage::Gpu { .. }, Some((buffer, first))) if self.elements() > 0 => {
                self.context.gpu()?.device.read(buffer, first..first + self.extent()?).await
            }
            (Storage::Gpu { .. }, _) => Ok(Vec::new()),
            (Storage::Host { .. }, _) => self.host_bytes(),
        }
    }

    /// As [`extent_bytes`](Self::extent_bytes), for host storage.
    pub(crate) fn host_bytes(&self) -> Result<Vec<u8>> {
        let (first, bytes) = (self.offset * self.dtype.bytes() as usize, self.extent()? as usize);
        let words = self.storage.host()?;
        // An empty view may begin beyond the storage.
        if bytes == 0 {
            Ok(Vec::new())
        } else {
            memory::copied(&bytemuck::cast_slice(&words)[first..first + bytes])
        }
    }

    /// Bytes from the view's first element to the end of its last.
    pub(crate) fn extent(&self) -> Result<u64> {
        Ok(if self.elements() == 0 {
            0
        } else {
            (self.end()? - self.offset as u64) * self.dtype.bytes()
        })
    }

    /// As [`read`](Self::read), blocking.
    #[cfg(not(target_family = "wasm"))]
    pub fn read_blocking<T: Element>(&self) -> Result<Vec<T>> {
        pollster::block_on(self.read())
    }

    /// As [`read_f32`](Self::read_f32), blocking.
    #[cfg(not(target_family = "wasm"))]
    pub fn read_f32_blocking(&self) -> Result<Vec<f32>> {
        pollster::block_on(self.read_f32())
    }

    /// As [`read_bytes`](Self::read_bytes), blocking.
    #[cfg(not(target_family = "wasm"))]
    pub fn read_bytes_blocking(&self) -> Result<Vec<u8>> {
        pollster::block_on(self.read_bytes())
    }

    /// Picks the view's elements from the storage between its first and its last.
    pub(crate) fn gather(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        let size = self.dtype.bytes() as usize;
        let mut out = memory::room(self.elements() * size)?;
        let mut index = vec![0usize; self.shape.len()];
        for _ in 0..self.elements() {
            let at =
                index.iter().zip(&self.strides).map(|(i, stride)| i * stride).sum::<usize>() * size;
            out.extend_from_slice(&bytes[at..at + size]);
            for axis in (0..index.len()).rev() {
                index[axis] += 1;
                if index[axis] < self.shape[axis] {
                    break;
                }
                index[axis] = 0;
            }
        }
        Ok(out)
    }

    /// Elements from the start of the storage to the end of the view.
    fn end(&self) -> Result<u64> {
        if self.elements() == 0 {
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
            shape: vec![usize::try_from(words).map_err(too_many)?],
            strides: vec![1],
            offset: usize::try_from(start / 4).map_err(too_many)?,
            storage,
            copy: None,
        };
        Ok((view, (first - start) / size))
    }

    /// The same storage from its start, as elements of another type.
    pub(crate) fn as_packed(&self, dtype: DType, shape: &[usize]) -> Tensor {
        Tensor::packed(&self.context, dtype, shape, self.storage.clone())
    }
}
