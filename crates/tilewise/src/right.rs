//! A tensor or quantized weights: the right operand of a product, a table to take rows of.

use crate::quantized::QuantizedTensor;
use crate::tensor::Tensor;

/// The right operand of a product: a tensor B, or quantized weights W that stand for B = Wᵀ.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RightOperand {
    /// B \[K\], \[K,N\], with a batch \[inner,K,N\] or \[outer,inner,K,N\], or \[groups,K,N\] in a
    /// grouped product.
    Dense(Tensor),
    /// W \[N,K\] or \[groups,N,K\]; its transpose ([`QuantizedTensor::t`]) stands for W \[K,N\].
    Quantized(QuantizedTensor),
}

impl From<Tensor> for RightOperand {
    fn from(tensor: Tensor) -> Self {
        RightOperand::Dense(tensor)
    }
}

impl From<&Tensor> for RightOperand {
    fn from(tensor: &Tensor) -> Self {
        RightOperand::Dense(tensor.clone())
    }
}

impl From<QuantizedTensor> for RightOperand {
    fn from(weights: QuantizedTensor) -> Self {
        RightOperand::Quantized(weights)
    }
}

impl From<&QuantizedTensor> for RightOperand {
    fn from(weights: &QuantizedTensor) -> Self {
        RightOperand::Quantized(weights.clone())
    }
}
