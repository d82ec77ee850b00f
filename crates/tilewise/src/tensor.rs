//! Typed, strided views of buffers.

mod element;
pub(crate) mod lock;
#[cfg(feature = "ndarray")]
mod ndarray;
mod operand;
pub(crate) mod operands;
mod read;
pub(crate) mod spacing;
pub(crate) mod storage;
mod views;

pub use element::Element;

use crate::context::Context;
use crate::tensor::storage::{PackedCopy, Storage};
use smallvec::{SmallVec, smallvec};
use std::num::NonZeroU64;
use std::sync::Arc;
use tilewise_core::{DType, Error, Result};
/// One number per dimension; up to four without an allocation, so that tensors are cheap to clone.
type Sizes = SmallVec<[usize; 4]>;

/// A typed, strided view of storage. Clones share the storage, and so do views
/// ([`t`](Tensor::t), [`slice`](Tensor::slice), [`permute`](Tensor::permute),
/// [`broadcast_to`](Tensor::broadcast_to) and others): none copies anything.
///
/// ```
/// use tilewise::{Context, Tensor};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
/// assert_eq!(x.t().read_blocking::<f32>()?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
/// # Ok(())
/// # }
/// ```
///
/// Elements are f32, f16, bf16, i32 or u32 ([`DType`], [`Element`]). Strides and offsets count
/// elements. Products take tensors of one to four dimensions: matrices \[rows, columns\] with up to
/// two dimensions of a batch before them, and vectors.
#[derive(Clone, Debug)]
pub struct Tensor {
    context: Context,
    dtype: DType,
    shape: Sizes,
    strides: Sizes,
    offset: usize,
    storage: Storage,
    /// The packed copy of a prepared tensor. Its transpose has it, too; other views have none.
    pub(crate) copy: Option<Arc<PackedCopy>>,
    /// Whether it is the transpose of the tensor that was prepared.
    pub(crate) turned: bool,
    /// Whether it is a prepared tensor or a view of one: writing to it would leave the copy behind.
    pub(crate) constant: bool,
}

pub(crate) fn count(shape: &[usize]) -> Result<usize> {
    let product = shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
    // A dimension of 0 makes the tensor empty, however large the others are.
    if shape.contains(&0) {
        Ok(0)
    } else {
        product.ok_or_else(|| Error::Shape(format!("overflow: a tensor of shape {shape:?}")))
    }
}

/// Bytes of a tensor.
fn bytes(dtype: DType, shape: &[usize]) -> Result<u64> {
    let bytes = (count(shape)? as u64).checked_mul(dtype.bytes());
    bytes.ok_or_else(|| Error::Shape(format!("overflow: shape {shape:?} of {dtype}")))
}

/// Row-major strides.
pub(crate) fn packed(shape: &[usize]) -> Sizes {
    let mut strides: Sizes = smallvec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis]);
    }
    strides
}

impl Tensor {
    /// A new tensor with a copy of `data`, row-major.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) when the length of `data` does not match `shape`; `DeviceLimit` for
    /// more than a buffer of the device holds; `OutOfMemory`.
    pub fn upload<T: Element>(context: &Context, data: &[T], shape: &[usize]) -> Result<Self> {
        Self::from_bytes(context, T::DTYPE, bytemuck::cast_slice(data), shape)
    }

    /// A new tensor with a copy of `bytes`: elements of `dtype`, little-endian, row-major.
    ///
    /// # Errors
    /// The errors of [`upload`](Self::upload).
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

    /// A new tensor of zeros.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) for a size beyond the host's numbers; `DeviceLimit` for more than a
    /// buffer of the device holds; `OutOfMemory`.
    pub fn zeros(context: &Context, dtype: DType, shape: &[usize]) -> Result<Self> {
        let storage = Storage::zeros(context, bytes(dtype, shape)?)?;
        Ok(Self::packed(context, dtype, shape, storage))
    }

    /// A tensor in the library's own memory, with any content. Its bindings are the same each time,
    /// and only the kernels of one call may use it: the next call that needs some has the same
    /// memory.
    #[cfg(feature = "custom-kernels")]
    pub(crate) fn scratch(context: &Context, dtype: DType, shape: &[usize]) -> Result<Self> {
        let storage = Storage::scratch(context, bytes(dtype, shape)?)?;
        Ok(Self::packed(context, dtype, shape, storage))
    }

    /// A tensor on storage that holds all of it, row-major.
    pub(crate) fn packed(
        context: &Context,
        dtype: DType,
        shape: &[usize],
        storage: Storage,
    ) -> Self {
        Tensor {
            context: context.clone(),
            dtype,
            shape: shape.into(),
            strides: packed(shape),
            offset: 0,
            storage,
            copy: None,
            turned: false,
            constant: false,
        }
    }

    /// A view of the given buffer, which must have the usage `STORAGE` (and `COPY_SRC` to be read
    /// back). The first element lies at `byte_offset`, the others follow row-major;
    /// [`from_buffer_strided`](Self::from_buffer_strided) takes other strides. Kernels read whole
    /// words of 4 bytes, so a 16-bit element must not lie in a word that the end of the buffer cuts
    /// off.
    ///
    /// The context keeps the last 64 given buffers, so new tensors on them cost little. A buffer is
    /// kept until others push it out, or until [`Context::release_scratch`].
    ///
    /// ```
    /// use tilewise::{Context, DType, Tensor, wgpu};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// // The CPU executor has neither.
    /// if let (Some(device), Some(queue)) = (ctx.device(), ctx.queue()) {
    ///     let buffer = device.create_buffer(&wgpu::BufferDescriptor {
    ///         label: None,
    ///         size: 24,
    ///         usage: wgpu::BufferUsages::STORAGE
    ///             | wgpu::BufferUsages::COPY_DST
    ///             | wgpu::BufferUsages::COPY_SRC,
    ///         mapped_at_creation: false,
    ///     });
    ///     let bytes: Vec<u8> = (1..=6).flat_map(|i| (i as f32).to_le_bytes()).collect();
    ///     queue.write_buffer(&buffer, 0, &bytes);
    ///     let x = Tensor::from_buffer(&ctx, buffer.clone(), 8, DType::F32, &[2, 2])?;
    ///     assert_eq!(x.read_blocking::<f32>()?, [3.0, 4.0, 5.0, 6.0]);
    ///     // The last two of each row of three.
    ///     let x = Tensor::from_buffer_strided(&ctx, buffer, 4, DType::F32, &[2, 2], &[3, 1])?;
    ///     assert_eq!(x.read_blocking::<f32>()?, [2.0, 3.0, 5.0, 6.0]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A buffer of another device makes the product that takes it fail, with `Device`. A buffer of
    /// another wgpu instance is not recognised: wgpu panics, or takes one of its own buffers in its
    /// place.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) when the buffer ends too early, the offset is not a multiple of the
    /// element size, or the last element lies in a word that the end of the buffer cuts off;
    /// `Misuse` for a buffer without `STORAGE`, and on the CPU executor.
    pub fn from_buffer(
        context: &Context,
        buffer: wgpu::Buffer,
        byte_offset: u64,
        dtype: DType,
        shape: &[usize],
    ) -> Result<Self> {
        Self::from_buffer_strided(context, buffer, byte_offset, dtype, shape, &packed(shape))
    }

    /// Like [`from_buffer`](Self::from_buffer), with strides: how many elements lie between
    /// neighbours along each dimension.
    ///
    /// # Errors
    /// The errors of [`from_buffer`](Self::from_buffer), and [`Shape`](crate::Error) when `strides`
    /// and `shape` differ in length.
    pub fn from_buffer_strided(
        context: &Context,
        buffer: wgpu::Buffer,
        byte_offset: u64,
        dtype: DType,
        shape: &[usize],
        strides: &[usize],
    ) -> Result<Self> {
        context.gpu_backend()?;
        if !byte_offset.is_multiple_of(dtype.bytes()) {
            return Err(Error::Shape(format!(
                "misaligned: byte offset {byte_offset} of {dtype} elements of {} bytes",
                dtype.bytes()
            )));
        }
        let storage = Storage::of_buffer(context, buffer, 0)?;
        let offset = usize::try_from(byte_offset / dtype.bytes())
            .map_err(|_| Error::Shape(format!("overflow: byte offset {byte_offset}")))?;
        Tensor { offset, ..Self::packed(context, dtype, &[0], storage) }.strided(shape, strides)
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
    pub fn elem_count(&self) -> usize {
        // A dimension of 0 makes it empty, however large the others are.
        if self.shape.contains(&0) { 0 } else { self.shape.iter().product() }
    }

    /// Whether the elements lie one after the other, row-major.
    pub fn is_contiguous(&self) -> bool {
        let packed = packed(&self.shape);
        self.elem_count() == 0
            || (0..self.shape.len()).all(|i| self.shape[i] == 1 || self.strides[i] == packed[i])
    }

    /// The buffer and the byte of it at which the first element lies; none on the CPU executor.
    /// Buffers that the library makes are padded to multiples of 16 bytes:
    /// [`binding`](Self::binding) leaves the padding out. They have the usages `STORAGE`,
    /// `COPY_SRC` and `COPY_DST`.
    pub fn buffer(&self) -> Option<(&wgpu::Buffer, u64)> {
        match &self.storage {
            Storage::Gpu { buffer, start } => {
                Some((buffer, start + self.offset as u64 * self.dtype.bytes()))
            }
            Storage::Host { .. } => None,
        }
    }

    /// The range from the first element to the end of the last, as a bind group takes it. WGSL's
    /// `arrayLength` therefore counts the elements of a contiguous tensor and no padding. The range
    /// has whole words, so the last of an odd number of 16-bit elements is bound with the half word
    /// behind it.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) when no binding of the device can begin at the first element
    /// ([`Caps::storage_alignment`](tilewise_core::Caps::storage_alignment)), or there is none;
    /// `Misuse` on the CPU executor.
    pub fn binding(&self) -> Result<wgpu::BindingResource<'_>> {
        self.context.gpu_backend()?;
        let alignment = u64::from(self.context.0.caps.storage_alignment);
        let size = NonZeroU64::new(self.extent()?.next_multiple_of(4)).ok_or_else(|| {
            Error::Shape(format!("a binding of no elements: the shape is {:?}", self.shape()))
        })?;
        match self.buffer() {
            Some((buffer, offset)) if offset.is_multiple_of(alignment) => {
                let binding = wgpu::BufferBinding { buffer, offset, size: Some(size) };
                Ok(wgpu::BindingResource::Buffer(binding))
            }
            start => Err(Error::Shape(format!(
                "misaligned: the first element lies at byte {}; bindings of this device begin at \
                 multiples of {alignment}",
                start.map_or(0, |(_, offset)| offset)
            ))),
        }
    }

    /// A new tensor with the same contents. The view must be contiguous.
    pub(crate) fn copy(&self) -> Result<Tensor> {
        let copy = Tensor::zeros(&self.context, self.dtype, &self.shape)?;
        let size = self.dtype.bytes();
        let (first, bytes) = (self.offset as u64 * size, self.elem_count() as u64 * size);
        if bytes == 0 {
            return Ok(copy);
        }
        let piece = std::iter::once((first..first + bytes, 0));
        copy.storage.copy_from(&self.context, &self.storage, piece)?;
        Ok(copy)
    }
}
