//! Constant operands that are packed once.

use crate::context::Backend;
use crate::gpu::{Factors, ROLES};
use crate::right::Right;
use crate::storage::{Bound, PackedCopy, Storage, on_device};
use crate::tensor::Tensor;
use std::ops::Deref;
use std::sync::Arc;
use tilewise_core::kernel::Role;
use tilewise_core::plan::{Preparation, prepare};
use tilewise_core::problem::Copied;
use tilewise_core::{Epilogue, Precision, Result};

/// A constant operand of many products, such as a layer's weights, with a copy as kernels on matrix units want it. Without one, every product
/// makes its own: of bf16 always, and of other types whose rows are not multiples of 16 bytes or whose K is no multiple of a kernel's step;
/// of f32 where the product's [`Precision`] lets kernels split it.
///
/// It is a tensor, and goes wherever a tensor goes: [`Gemm`](crate::Gemm) uses the copy where its kernel wants one, on the side that it was
/// prepared for. The same kernel gives the same bits with and without. Where kernels take the tensor as it lies, as on devices without matrix
/// units, there is no copy, and nothing is spent.
///
/// The tensor must not be written from then on: the copy would not follow. Products refuse it as their output, though not the tensor that it
/// was made of.
///
/// ```
/// use tilewise::{Context, Gemm, PreparedTensor, Tensor};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let w = Tensor::upload(&ctx, &[1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0], &[3, 2])?;
/// let w = PreparedTensor::right(&w)?;
/// let x = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0], &[1, 3])?;
/// assert_eq!(Gemm::new(&x, &w).run()?.read_blocking::<f32>()?, [4.0, 5.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PreparedTensor {
    tensor: Tensor,
}

impl PreparedTensor {
    /// A left operand A \[M,K\] or \[batch,M,K\]. The work is submitted, not waited for.
    ///
    /// # Errors
    /// `Shape`, `Strides`, `Overflow`, `BufferTooSmall`, `Unsupported` for a tensor that is no operand; `TooLarge`, `Device` when memory is
    /// spent, `DeviceLost`.
    pub fn left(tensor: &Tensor) -> Result<Self> {
        Self::left_for(tensor, Precision::F32)
    }

    /// As [`left`](Self::left), for products of this precision. It matters for f32, whose copy in two parts takes one and a half times the
    /// tensor's bytes: products of [`SplitF32`](Precision::SplitF32) and [`SplitF32Fast`](Precision::SplitF32Fast) use it, whichever of
    /// them it was made for. Others take the tensor as it lies.
    ///
    /// # Errors
    /// As [`left`](Self::left).
    pub fn left_for(tensor: &Tensor, precision: Precision) -> Result<Self> {
        Self::new(tensor, Role::A, precision)
    }

    /// A right operand B \[K,N\], \[batch,K,N\] or \[groups,K,N\]; of weights W \[N,K\], `W.t()`. As [`left`](Self::left).
    ///
    /// # Errors
    /// As [`left`](Self::left).
    pub fn right(tensor: &Tensor) -> Result<Self> {
        Self::right_for(tensor, Precision::F32)
    }

    /// As [`right`](Self::right), for products of this precision: see [`left_for`](Self::left_for).
    ///
    /// # Errors
    /// As [`left`](Self::left).
    pub fn right_for(tensor: &Tensor, precision: Precision) -> Result<Self> {
        Self::new(tensor, Role::B, precision)
    }

    fn new(tensor: &Tensor, role: Role, precision: Precision) -> Result<Self> {
        let mut tensor = tensor.view();
        tensor.copy = Some(Arc::new(PackedCopy { role, packed: copy(&tensor, role, precision)? }));
        Ok(PreparedTensor { tensor })
    }

    /// Bytes of the copy, beside those of the tensor; 0 where there is none.
    pub fn bytes(&self) -> u64 {
        let packed = self.tensor.copy.as_ref().and_then(|copy| copy.packed.as_ref());
        packed.map_or(0, |(storage, _)| storage.bytes())
    }
}

/// The copy, if kernels of the context want one.
fn copy(tensor: &Tensor, role: Role, precision: Precision) -> Result<Option<(Storage, Copied)>> {
    let (context, name) = (tensor.context(), if role == Role::A { "A" } else { "B" });
    let [entries, rows, columns] = tensor.matrix(name)?.map(|extent| extent as u64);
    let (operand, bound) = tensor.operand(name, entries)?;
    let [extent, k] = if role == Role::A { [rows, columns] } else { [columns, rows] };
    let sizes = [entries, extent, k];
    let preparation = prepare(operand, role, sizes, precision, context.caps(), context.library())?;
    let (Backend::Gpu(gpu), Some(Preparation { pass, bytes, copy })) = (&context.0.backend, preparation) else {
        return Ok(None);
    };
    let storage = Storage::zeros(context, bytes)?;
    let mut buffers = [None; ROLES];
    buffers[role as usize] = Some(bound);
    buffers[role.copy() as usize] = Some(Bound::whole(&storage));
    let prepared = gpu.compiled(vec![pass], 0, 0)?;
    gpu.device.once(|encoder| {
        let descriptor = wgpu::ComputePassDescriptor { label: Some("tilewise prepare"), timestamp_writes: None };
        let factors = Factors::of(&Epilogue::default());
        gpu.record(&mut encoder.begin_compute_pass(&descriptor), &prepared, factors, on_device(&buffers))
    })?;
    Ok(Some((storage, copy)))
}

impl Deref for PreparedTensor {
    type Target = Tensor;

    fn deref(&self) -> &Tensor {
        &self.tensor
    }
}

impl<'a> From<&'a PreparedTensor> for Right<'a> {
    fn from(prepared: &'a PreparedTensor) -> Self {
        Right::Dense(&prepared.tensor)
    }
}
