//! The right operand of a product, or a table to take rows of: a tensor, quantized weights, or
//! several of them as shards.

use crate::context::Context;
use crate::quantized::QuantizedTensor;
use crate::tensor::Tensor;
use crate::tensor::storage::PackedCopy;
use std::sync::Arc;
use tilewise_core::{DType, Error, Format, Result};

/// The right operand of a product: a tensor B, or quantized weights W that stand for B = Wᵀ.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RightOperand {
    /// B \[K\], \[K,N\], with a batch \[inner,K,N\] or \[outer,inner,K,N\], or \[groups,K,N\] in a
    /// grouped product.
    Dense(Tensor),
    /// W \[N,K\] or \[groups,N,K\]; its transpose ([`QuantizedTensor::t`]) stands for W \[K,N\].
    Quantized(QuantizedTensor),
    /// The entries of a grouped product in several buffers.
    Shards(Shards),
}

impl RightOperand {
    /// Checks that all of the operand lies beside this output.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) if they overlap.
    pub(crate) fn lies_beside(&self, name: &'static str, out: &Tensor) -> Result<()> {
        match self {
            RightOperand::Dense(b) => out.lies_beside(name, b.vector([0; 4]).1, Some(b)).map(drop),
            RightOperand::Quantized(w) => w
                .operand()
                .1
                .into_iter()
                .try_for_each(|(_, bound)| out.lies_beside(name, bound, None).map(drop)),
            RightOperand::Shards(shards) => {
                shards.parts().iter().try_for_each(|(part, _)| part.lies_beside(name, out))
            }
        }
    }

    /// B = Wᵀ of weights W \[N,K\] or \[groups,N,K\], as PyTorch stores them. Quantized weights
    /// stand for that by themselves.
    ///
    /// ```
    /// use tilewise::{Context, Gemm, RightOperand, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let x = Tensor::upload(&ctx, &[1.0f32, 2.0], &[1, 2])?;
    /// let w = Tensor::upload(&ctx, &[3.0f32, 4.0, 5.0, 6.0], &[2, 2])?;
    /// let y = Gemm::new(&x, RightOperand::of_weights(&w)).run()?;
    /// assert_eq!(y.read_blocking::<f32>()?, [11.0, 17.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn of_weights(weights: impl Into<RightOperand>) -> Self {
        match weights.into() {
            RightOperand::Dense(w) => w.t().into(),
            RightOperand::Shards(w) => w.of_weights().into(),
            quantized => quantized,
        }
    }

    pub(crate) fn context(&self) -> &Context {
        match self {
            RightOperand::Dense(b) => b.context(),
            RightOperand::Quantized(w) => &w.context,
            RightOperand::Shards(shards) => shards.context(),
        }
    }

    /// The shape as it was given: for quantized weights, the shape of W.
    pub(crate) fn shape(&self) -> Vec<usize> {
        match self {
            RightOperand::Dense(b) => b.shape().to_vec(),
            RightOperand::Quantized(w) => w.shape(),
            RightOperand::Shards(shards) => shards.shape().to_vec(),
        }
    }

    /// The shape of B, \[K,N\] or \[groups,K,N\].
    #[cfg(feature = "custom-kernels")]
    pub(crate) fn shape_of_b(&self) -> Vec<usize> {
        let mut shape = self.shape();
        if let (None, rank @ 2..) = (self.dtype(), shape.len()) {
            shape.swap(rank - 2, rank - 1);
        }
        shape
    }

    pub(crate) fn format(&self) -> Format {
        match self {
            RightOperand::Dense(b) => Format::Dense(b.dtype()),
            RightOperand::Quantized(w) => Format::Quantized(w.format),
            RightOperand::Shards(shards) => shards.first().format(),
        }
    }

    /// The copy of a prepared operand.
    pub(crate) fn copy(&self) -> Option<&PackedCopy> {
        match self {
            RightOperand::Dense(b) => b.own_copy(),
            RightOperand::Quantized(w) => w.copy.as_deref(),
            RightOperand::Shards(_) => None,
        }
    }

    /// The type of its elements; none of quantized weights.
    pub(crate) fn dtype(&self) -> Option<DType> {
        self.format().element()
    }
}

/// The entries of a grouped product's right operand in several buffers, such as one for each
/// expert: for weights that are too large for one buffer of the device, or that come one by one.
///
/// The entries of the first shard serve the first groups, the entries of the next shard the groups
/// behind them, and so on. A shard is \[K,N\] for one group, or \[n,K,N\] for n groups; of
/// quantized weights it is \[N,K\] or \[n,N,K\]. All shards have one type and matrices of one
/// shape; their strides may differ, and so may the factors of quantized weights.
/// [`Gemm::grouped`](crate::Gemm::grouped), [`Gemm::ragged_n`](crate::Gemm::ragged_n),
/// [`Gemm::masked`](crate::Gemm::masked), [`MoeLayer`](crate::moe::MoeLayer) and
/// [`moe::gather_matmul`](crate::moe::gather_matmul) take shards. Each shard is a product on the
/// device, which computes the rows of its groups; nothing is copied.
///
/// ```
/// use tilewise::{Context, Gemm, GroupEnds, Shards, Tensor};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0], &[3, 1])?;
/// let one = Tensor::upload(&ctx, &[1.0f32], &[1, 1])?; // [K, N]
/// let more = Tensor::upload(&ctx, &[10.0f32, 100.0], &[2, 1, 1])?; // [2, K, N]
/// let w = Shards::new([&one, &more])?;
/// assert_eq!(w.shape(), [3, 1, 1]);
/// let ends = GroupEnds::upload(&ctx, &[1, 2, 3])?;
/// let y = Gemm::grouped(&x, &w, &ends).run()?;
/// assert_eq!(y.read_blocking::<f32>()?, [1.0, 20.0, 300.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Shards {
    /// The shards, each with its number of groups. There is at least one; none is made of shards
    /// itself.
    parts: Arc<[(RightOperand, usize)]>,
    shape: [usize; 3],
}

impl Shards {
    /// Shards from parts in the order of their groups; shards among the parts are taken apart.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) when there is no part, for a part that is neither a matrix nor a
    /// stack, and for parts of different types or shapes; `Misuse` for parts of different contexts.
    pub fn new<B: Into<RightOperand>>(parts: impl IntoIterator<Item = B>) -> Result<Self> {
        let mut all = Vec::new();
        for part in parts {
            match part.into() {
                RightOperand::Shards(shards) => all.extend_from_slice(&shards.parts),
                part => all.push((part, 0)),
            }
        }
        let Some((first, _)) = all.first().cloned() else {
            return Err(Error::Shape("0 shards, wanted one or more".into()));
        };
        let (mut groups, mut wanted) = (0, None);
        for (at, (part, count)) in all.iter_mut().enumerate() {
            first.context().same(part.context(), "a shard")?;
            let shape = part.shape();
            let own = match *shape {
                [rows, columns] => {
                    *count = 1;
                    [rows, columns]
                }
                [entries, rows, columns] => {
                    *count = entries;
                    [rows, columns]
                }
                _ => {
                    return Err(Error::Shape(format!(
                        "shard {at} has shape {shape:?}, wanted [K,N] or [n,K,N]"
                    )));
                }
            };
            let wanted = *wanted.get_or_insert(own);
            if (own, part.format()) != (wanted, first.format()) {
                return Err(Error::Shape(format!(
                    "shard {at} has matrices {own:?} of {}, the first {wanted:?} of {}",
                    part.format(),
                    first.format()
                )));
            }
            groups += *count;
        }
        let [rows, columns] = wanted.unwrap_or_default();
        Ok(Shards { parts: all.into(), shape: [groups, rows, columns] })
    }

    /// The number of groups and the shape of a matrix, as it was given: \[groups,K,N\], or
    /// \[groups,N,K\] of quantized weights.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// The context that they belong to.
    pub fn context(&self) -> &Context {
        self.first().context()
    }

    pub(crate) fn shape_of_b(&self) -> [usize; 3] {
        let [groups, rows, columns] = self.shape;
        match self.first().format() {
            Format::Dense(_) => self.shape,
            Format::Quantized(_) => [groups, columns, rows],
        }
    }

    pub(crate) fn first(&self) -> &RightOperand {
        &self.parts[0].0
    }

    /// The shards, each with its number of groups.
    pub(crate) fn parts(&self) -> &[(RightOperand, usize)] {
        &self.parts
    }

    /// Like [`RightOperand::of_weights`].
    fn of_weights(&self) -> Self {
        let turned = |(part, groups): &(RightOperand, usize)| {
            (RightOperand::of_weights(part.clone()), *groups)
        };
        let [groups, rows, columns] = self.shape;
        let shape = match self.first().format() {
            Format::Dense(_) => [groups, columns, rows],
            Format::Quantized(_) => self.shape,
        };
        Shards { parts: self.parts.iter().map(turned).collect(), shape }
    }

    /// The error of a call that does not take shards.
    pub(crate) fn refused(&self, what: &str) -> Error {
        let (count, end) = (self.parts.len(), if self.parts.len() == 1 { "" } else { "s" });
        Error::Unsupported(format!(
            "{what} in {count} shard{end}; grouped and masked products, gather_matmul and layers \
             take them"
        ))
    }
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

impl From<Shards> for RightOperand {
    fn from(shards: Shards) -> Self {
        RightOperand::Shards(shards)
    }
}

impl From<&Shards> for RightOperand {
    fn from(shards: &Shards) -> Self {
        RightOperand::Shards(shards.clone())
    }
}
