//! Constant operands that are packed, or decoded, once.

use crate::context::{Backend, Context};
use crate::gpu::{Factors, ROLES};
use crate::quantized::QuantizedTensor;
use crate::right::RightOperand;
use crate::tensor::Tensor;
use crate::tensor::storage::{Bound, PackedCopy, Storage, on_device};
use std::ops::Deref;
use std::sync::Arc;
use tilewise_core::kernel::Role;
use tilewise_core::plan::{Preparation, prepare};
use tilewise_core::problem::Copied;
use tilewise_core::{Epilogue, Error, Operand, Precision, Result};

/// A constant operand of many products, such as a layer's weights, with a copy in the form that
/// kernels on matrix units load. It goes wherever the tensor or the quantized weights go.
///
/// ```
/// use tilewise::{Context, Gemm, Prepared, Tensor};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let w = Tensor::upload(&ctx, &[1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0], &[3, 2])?;
/// let w = Prepared::right(&w)?;
/// let x = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0], &[1, 3])?;
/// assert_eq!(Gemm::new(&x, &w).run()?.read_blocking::<f32>()?, [4.0, 5.0]);
/// # Ok(())
/// # }
/// ```
///
/// If kernels need no copy, for example on devices without matrix units, none is made, and no
/// memory is spent.
///
/// Nobody may write to the operand from then on, because the copy would not follow. A prepared
/// operand and its views are refused as outputs; the operand from which it was made is not.
///
/// # Tensors
///
/// Without the copy, every product on matrix units packs a tensor again if it is bf16, if its rows
/// are not multiples of 16 bytes, if K is not a multiple of a kernel's step, or if it is f32 and
/// the product's [`Precision`] lets kernels split it. A stack of f16 matrices that are stored along
/// K, such as weights \[experts,N,K\], gets a copy, too: it lies in the order in which kernels read
/// it, and takes as much memory as the stack.
///
/// [`Gemm`](crate::Gemm) uses the copy if its kernel needs one, and the tensor is the operand that
/// it was prepared to be: left or right. The same kernel gives the same bits with the copy and
/// without it.
///
/// Views of the tensor, such as `slice()`, have no copy. Its transpose does not use the copy, but
/// the transpose of the transpose does. [`MoeLayer`](crate::moe::MoeLayer) and
/// [`Gemm::ragged_n`](crate::Gemm::ragged_n) transpose weights \[N,K\] or \[experts,N,K\]; prepare
/// these by `Prepared::right(&w.t())?.t()`.
///
/// # Quantized weights
///
/// Their copy is decoded to f16. Without it, every product on matrix units decodes the weights
/// again. Products of f16 and bf16 may read the copy; products of f32 never do.
///
/// [`Gemm`](crate::Gemm) reads the copy if that is estimated to be faster. Products of one row, or
/// a few, read the codes, which are fewer bytes. The copy makes kernels on matrix units cheaper, so
/// the planner may choose one for fewer rows than without it. If a kernel would decode the weights
/// to such a copy in any case, the result has the same bits with the prepared copy. Every other
/// result is within the error of a product that rounds weights to f16 once.
///
/// Their transpose and slices have no copy: prepare the view that a product takes.
/// [`Quantize`](crate::Quantize) refuses prepared weights and their views as its output.
#[derive(Clone, Debug)]
pub struct Prepared<T> {
    operand: T,
    bytes: u64,
}

impl Prepared<Tensor> {
    /// Prepares a left operand A \[M,K\], or with a batch \[inner,M,K\] or \[outer,inner,M,K\]. The
    /// work is submitted, not waited for.
    ///
    /// # Errors
    /// [`Shape`](crate::Error), `Unsupported` for a tensor that is no operand.
    pub fn left(tensor: &Tensor) -> Result<Self> {
        Self::left_for(tensor, Precision::F32)
    }

    /// Like [`left`](Self::left), for products of this precision. The precision matters for f32
    /// alone. With [`SplitF32`](Precision::SplitF32) or [`SplitF32Fast`](Precision::SplitF32Fast),
    /// the copy holds each number in two terms and takes one and a half times the tensor's bytes.
    /// Products with either of these two precisions use it. Other products read the tensor.
    ///
    /// # Errors
    /// The errors of [`left`](Self::left).
    pub fn left_for(tensor: &Tensor, precision: Precision) -> Result<Self> {
        Self::new(tensor, Role::A, precision)
    }

    /// Prepares a right operand B \[K,N\], with a batch \[inner,K,N\] or \[outer,inner,K,N\], or
    /// \[groups,K,N\]. For weights W \[N,K\], give `W.t()`. The work is submitted, not waited for.
    ///
    /// # Errors
    /// The errors of [`left`](Self::left).
    pub fn right(tensor: &Tensor) -> Result<Self> {
        Self::right_for(tensor, Precision::F32)
    }

    /// Like [`right`](Self::right), for products of this precision: see
    /// [`left_for`](Self::left_for).
    ///
    /// # Errors
    /// The errors of [`left`](Self::left).
    pub fn right_for(tensor: &Tensor, precision: Precision) -> Result<Self> {
        Self::new(tensor, Role::B, precision)
    }

    fn new(tensor: &Tensor, role: Role, precision: Precision) -> Result<Self> {
        let name = if role == Role::A { "A" } else { "B" };
        let (matrix, stride) = tensor.table(name)?;
        let (operand, bound) = tensor.operand(name, [0, 0, 0, stride])?;
        let packed = copy(tensor.context(), operand, matrix, role, [(role, bound)], precision)?;
        let mut tensor = tensor.view();
        tensor.copy = Some(Arc::new(PackedCopy { role, packed }));
        tensor.constant = true;
        Ok(Prepared { bytes: tensor.copy.as_deref().map_or(0, PackedCopy::bytes), operand: tensor })
    }
}

impl Prepared<QuantizedTensor> {
    /// Prepares weights W \[N,K\] or \[groups,N,K\], or their transpose ([`QuantizedTensor::t`]).
    /// They may be slices. The work is submitted, not waited for.
    ///
    /// ```
    /// use tilewise::{Context, DType, Gemm, Prepared, QuantFormat, QuantizedTensor, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let w: Vec<f32> = (0..64).map(|i| (i % 16) as f32).collect();
    /// let format = QuantFormat::affine(4, 64, DType::F16)?;
    /// let w = Prepared::quantized(&QuantizedTensor::quantize(&ctx, &w, [1, 64], format)?)?;
    /// let x = Tensor::upload(&ctx, &[1.0f32; 64], &[1, 64])?;
    /// assert_eq!(Gemm::new(&x, &w).run()?.read_blocking::<f32>()?, [480.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Misuse`](crate::Error) for the transpose of weights with an
    /// [order](QuantizedTensor::with_order) of columns; `Shape`, `Unsupported` for weights that are
    /// no operand.
    pub fn quantized(weights: &QuantizedTensor) -> Result<Self> {
        let (operand, planes) = weights.operand();
        let packed =
            copy(&weights.context, operand, weights.matrix()?, Role::B, planes, Precision::F32)?;
        let copy = Arc::new(PackedCopy { role: Role::B, packed });
        let bytes = copy.bytes();
        let operand = QuantizedTensor { copy: Some(copy), constant: true, ..weights.clone() };
        Ok(Prepared { operand, bytes })
    }
}

impl<T> Prepared<T> {
    /// Bytes of the copy, beside those of the operand; 0 if there is none.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The copy of an operand, if kernels of the context want one. `planes` says where the operand
/// lies.
fn copy<'a>(
    context: &Context,
    operand: Operand,
    matrix: [usize; 3],
    role: Role,
    planes: impl IntoIterator<Item = (Role, Bound<'a>)>,
    precision: Precision,
) -> Result<Option<(Storage, Copied)>> {
    context.not_recording()?;
    let [entries, rows, columns] = matrix.map(|extent| extent as u64);
    let [extent, k] = if role == Role::A { [rows, columns] } else { [columns, rows] };
    let sizes = [entries, extent, k];
    let preparation = prepare(operand, role, sizes, precision, &context.0.caps, context.0.library)?;
    let (Backend::Gpu(gpu), Some(Preparation { pass, bytes, copy })) =
        (&context.0.backend, preparation)
    else {
        return Ok(None);
    };
    let storage = Storage::zeros(context, bytes)?;
    let mut buffers = [None; ROLES];
    for (role, bound) in planes {
        buffers[role as usize] = Some(bound);
    }
    buffers[role.copy() as usize] = Some(Bound::whole(&storage));
    let prepared = gpu.compiled(vec![pass], false)?;
    gpu.submit("tilewise prepare", &context.0.caps, |target| {
        gpu.record(target, &prepared, Factors::of(&Epilogue::default()), on_device(&buffers))
    })?;
    Ok(Some((storage, copy)))
}

impl Tensor {
    /// `Misuse` for a prepared tensor or a view of one, which nobody may write to.
    pub(crate) fn writable(&self) -> Result<()> {
        if !self.constant {
            return Ok(());
        }
        let view = if self.own_copy().is_some() { "" } else { "a view of " };
        Err(Error::Misuse(format!(
            "writing to {view}a prepared tensor, whose copy would not follow: give another tensor"
        )))
    }
}

impl<T> Deref for Prepared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.operand
    }
}

impl<T: Into<RightOperand>> From<Prepared<T>> for RightOperand {
    fn from(prepared: Prepared<T>) -> Self {
        prepared.operand.into()
    }
}

impl<T: Clone + Into<RightOperand>> From<&Prepared<T>> for RightOperand {
    fn from(prepared: &Prepared<T>) -> Self {
        prepared.operand.clone().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewise_core::DType;

    #[test]
    fn the_transpose_of_the_transpose_has_the_copy() -> Result<()> {
        let w = Tensor::zeros(&Context::cpu(), DType::F32, &[2, 3, 5])?;
        let prepared = Prepared::right(&w.t())?;
        assert!(prepared.own_copy().is_some());
        let weights = prepared.t();
        assert_eq!((weights.shape(), weights.own_copy().is_some()), (w.shape(), false));
        assert!(weights.transpose(1, 2)?.own_copy().is_none());
        assert!(weights.narrow(0, 0, 1)?.t().own_copy().is_none());
        assert!(RightOperand::of_weights(&weights).copy().is_some());
        assert!(RightOperand::of_weights(&w).copy().is_none());
        Ok(())
    }
}
