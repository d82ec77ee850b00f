//! A tensor or quantized weights: the right operand of a product, a table to take rows of.

use crate::quantized::QuantizedTensor;
use crate::tensor::Tensor;

/// The right operand of a product: a tensor B, or quantized weights W that stand for B = Wᵀ.
#[derive(Clone, Copy, Debug)]
pub enum Right<'a> {
    /// B \[K,N\], \[batch,K,N\], or \[groups,K,N\] in a grouped product.
    Dense(&'a Tensor),
    /// W \[N,K\] or \[groups,N,K\]; its transpose ([`QuantizedTensor::t`]) stands for W \[K,N\].
    Quantized(&'a QuantizedTensor),
}

impl<'a> From<&'a Tensor> for Right<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Right::Dense(tensor)
    }
}

impl<'a> From<&'a QuantizedTensor> for Right<'a> {
    fn from(weights: &'a QuantizedTensor) -> Self {
        Right::Quantized(weights)
    }
}
