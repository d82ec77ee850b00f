//! The experts of tokens: chosen by the layer's router, or already.

use crate::context::Context;
use crate::tensor::Tensor;
use tilewise_core::{DType, Error, Result};

/// Which of E experts each token passes in a [`MoeLayer`](super::MoeLayer), and with which weights.
///
/// A tensor converts to logits. Two tensors convert to weights and experts, in the order in which
/// [`Router::choose`](super::Router::choose) gives them.
///
/// ```
/// use tilewise::{Context, Tensor, moe::MoeLayer};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let (experts, f, h) = (2, 1, 1);
/// let gate = Tensor::upload(&ctx, &[9.0f32, 90.0], &[experts, f, h])?;
/// let up = Tensor::upload(&ctx, &[1.0f32, 1.0], &[experts, f, h])?;
/// let down = Tensor::upload(&ctx, &[1.0f32, 1.0], &[experts, h, f])?;
/// let layer = MoeLayer::new(&gate, &up, &down, 1);
/// let x = Tensor::upload(&ctx, &[10.0f32, 10.0], &[2, h])?; // two tokens
/// let weights = Tensor::upload(&ctx, &[1.0f32, 0.5, 2.0, 3.0], &[2, 2])?;
/// let chosen = Tensor::upload(&ctx, &[1u32, 0, 0, 7], &[2, 2])?; // the layer has no expert 7
/// let y = layer.forward(&x, [&weights, &chosen])?;
/// assert_eq!(y.read_blocking::<f32>()?, [9450.0, 1800.0]); // 9000 + 900/2, 2·900
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub enum Routes {
    /// The layer's router chooses by logits, floats \[T, E\].
    Logits(Tensor),
    /// The experts are chosen already, k for each token; the layer's router is not asked. Any k
    /// will do, and a token may have an expert twice. A call with another k takes new memory.
    Chosen {
        /// Factors of the experts' outputs: floats \[T, k\].
        weights: Tensor,
        /// u32 \[T, k\]. An expert number of E or more adds nothing, if its weight is finite:
        /// another layer may have that expert.
        experts: Tensor,
    },
}

impl From<&Tensor> for Routes {
    fn from(logits: &Tensor) -> Self {
        Routes::Logits(logits.clone())
    }
}

impl From<[&Tensor; 2]> for Routes {
    fn from([weights, experts]: [&Tensor; 2]) -> Self {
        Routes::Chosen { weights: weights.clone(), experts: experts.clone() }
    }
}

impl From<&[Tensor; 2]> for Routes {
    fn from(all: &[Tensor; 2]) -> Self {
        all.each_ref().into()
    }
}

impl From<[Tensor; 2]> for Routes {
    fn from([weights, experts]: [Tensor; 2]) -> Self {
        Routes::Chosen { weights, experts }
    }
}

/// The number of tokens, and k, of chosen experts, once they are found to fit their weights.
pub(super) fn chosen_sizes(
    context: &Context,
    weights: &Tensor,
    experts: &Tensor,
) -> Result<[usize; 2]> {
    context.same(weights.context(), "the weights of tokens")?;
    context.same(experts.context(), "the experts of tokens")?;
    for (name, dtype, fits, wanted) in [
        ("weights", weights.dtype(), weights.dtype().is_float(), "floats"),
        ("experts", experts.dtype(), experts.dtype() == DType::U32, "u32"),
    ] {
        if !fits {
            return Err(Error::Unsupported(format!(
                "{name} of tokens are {dtype}, wanted {wanted}"
            )));
        }
    }
    match (weights.shape(), experts.shape()) {
        (&[tokens, k], own) if *own == [tokens, k] => Ok([tokens, k]),
        (weights, experts) => Err(Error::Shape(format!(
            "weights of tokens have shape {weights:?} and experts {experts:?}, wanted [T, k] of \
             both"
        ))),
    }
}
