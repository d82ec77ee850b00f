//! Keys and values of the tokens before.

use super::append;
use super::attention::{Attention, attention};
use super::elementwise::{each, host};
use super::op::{Op, record};
use super::texts::Function;
use crate::context::Context;
use crate::kernel::Constant;
use crate::recorder::{AsRecorder, Way};
use crate::tensor::Tensor;
use tilewise_core::{DType, Error, Result};

/// The keys and values of a model's layers for the tokens so far, and their number on the device:
/// each step of a loop binds the same tensors.
///
/// ```
/// use tilewise::{Context, DType, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let mut cache = ops::KvCache::new(&ctx, DType::F16, 1, [1, 1, 16, 4])?; // room for 16 tokens
/// let q = Tensor::upload(&ctx, &[1.0f32; 4], &[1, 1, 1, 4])?;
/// for value in [2.0f32, 4.0] {
///     let v = Tensor::upload(&ctx, &[value; 4], &[1, 1, 1, 4])?;
///     let y = Tensor::zeros(&ctx, DType::F32, &[1, 1, 1, 4])?;
///     ctx.submit(|to| {
///         cache.append(to, 0, &q, &v)?;
///         cache.attention(0, &q).record(to, &y)?;
///         cache.advance(to, 1) // after all layers
///     })?;
///     assert_eq!(y.read_blocking::<f32>()?[0], [2.0, 3.0][cache.length() - 1]);
/// }
/// cache.rewind(&[1])?; // forgets the second token
/// # Ok(())
/// # }
/// ```
///
/// A step gives each sequence of the batch T tokens. Sequences may have different lengths: give all
/// of them the rows of the longest prompt, then [`rewind`](Self::rewind) each to its own length.
/// Later tokens overwrite the rows behind it. For a sliding window, give
/// [`window`](Op::window) to [`attention`](Self::attention): keys before the window are kept, but
/// not read.
///
/// A clone shares keys, values and the number of tokens on the device, but counts for itself on the
/// host: only one of the clones may [`advance`](Self::advance).
#[derive(Clone, Debug)]
pub struct KvCache {
    layers: Vec<[Tensor; 2]>,
    position: Tensor,
    room: usize,
    length: usize,
}

impl KvCache {
    /// An empty cache: for each layer two tensors of `dtype` and of the shape \[batch, heads of
    /// keys, room, width of a head\].
    ///
    /// # Errors
    /// The errors of [`Tensor::zeros`].
    pub fn new(context: &Context, dtype: DType, layers: usize, shape: [usize; 4]) -> Result<Self> {
        let layer = || Tensor::zeros(context, dtype, &shape);
        let layers = (0..layers).map(|_| Ok([layer()?, layer()?])).collect::<Result<_>>()?;
        let position = Tensor::zeros(context, DType::U32, &shape[..1])?;
        Ok(KvCache { layers, position, room: shape[2], length: 0 })
    }

    /// The number of tokens of each sequence on the device, u32 \[batch\]: a
    /// [`Position`](super::Position) for [`rope`](super::rope) and others.
    pub fn position(&self) -> &Tensor {
        &self.position
    }

    /// The number of tokens of the longest sequence.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The most tokens of a sequence.
    pub fn room(&self) -> usize {
        self.room
    }

    /// The keys of a layer, \[batch, heads, room, width\]. `rope(..).at(cache.position())
    /// .into_rows(cache.room())` writes into them without an append.
    ///
    /// # Panics
    /// If there is no such layer.
    pub fn keys(&self, layer: usize) -> &Tensor {
        &self.layers[layer][0]
    }

    /// The values of a layer, \[batch, heads, room, width\].
    ///
    /// # Panics
    /// If there is no such layer.
    pub fn values(&self, layer: usize) -> &Tensor {
        &self.layers[layer][1]
    }

    /// Records the writing of T new keys and values, \[batch, heads, T, width\] of any floats,
    /// behind the tokens so far.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) if they do not fit, or if there is no room; otherwise as
    /// [`Op::record`].
    ///
    /// # Panics
    /// If there is no such layer.
    pub fn append(
        &self,
        to: &mut impl AsRecorder,
        layer: usize,
        keys: &Tensor,
        values: &Tensor,
    ) -> Result<()> {
        let tokens = keys.shape().iter().rev().nth(1).copied().unwrap_or_default();
        self.after(tokens)?;
        let to = &mut to.as_recorder();
        for (x, cache) in [keys, values].into_iter().zip(&self.layers[layer]) {
            append(x, self.room, &self.position).record(to, cache)?;
        }
        Ok(())
    }

    /// Causal [`attention`] of the queries \[batch, heads, T, width\] of the newest T tokens, whose
    /// keys and values have been written, to those and all before.
    ///
    /// # Panics
    /// If there is no such layer.
    pub fn attention(&self, layer: usize, q: &Tensor) -> Op<Attention> {
        attention(q, self.keys(layer), self.values(layer)).causal(&self.position)
    }

    /// Records that each sequence has `tokens` tokens more: the end of a step, after all layers.
    /// The host counts them at once. If the work then does not run, after an error of `submit` or
    /// when an encoder is dropped, [`rewind`](Self::rewind) sets the number right.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) if there is no room for them; `Misuse` inside the work of a
    /// [`Recording`](crate::Recording); otherwise as [`Op::record`].
    pub fn advance(&mut self, to: &mut impl AsRecorder, tokens: usize) -> Result<()> {
        let length = self.after(tokens)?;
        let more = Constant::U32((tokens as u32).wrapping_neg());
        let minus = Function::new("apply", "minus");
        let position = std::slice::from_ref(&self.position);
        let steps = each("advance", minus, position, &self.position, more)?;
        let to = &mut to.as_recorder();
        let (runs, computes) = match to.way(self.position.context())? {
            Way::Plan(planned) if planned.repeats => {
                return Err(Error::Misuse(
                    "KvCache::advance counts tokens on the host, too: call it in submit(), after \
                     the Recording's record()"
                        .into(),
                ));
            }
            Way::Plan(_) => (false, false),
            Way::Run => (true, true),
            Way::Record(..) => (true, false),
        };
        match computes {
            true => host::increase(&self.position, tokens as u32)?,
            false => record(to, &steps)?,
        }
        // A warm-up runs nothing.
        if runs {
            self.length = length;
        }
        Ok(())
    }

    /// Sets the number of tokens of each sequence, for work that is recorded after this. The rest
    /// is forgotten.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) unless there is a number for each sequence, and room for it;
    /// otherwise as [`Tensor::write`].
    pub fn rewind(&mut self, lengths: &[u32]) -> Result<()> {
        let longest = lengths.iter().copied().max().unwrap_or_default() as usize;
        self.fits(longest)?;
        self.position.write(lengths)?;
        self.length = longest;
        Ok(())
    }

    /// The number of tokens of the longest sequence after `tokens` more.
    fn after(&self, tokens: usize) -> Result<usize> {
        let length = self.length.saturating_add(tokens);
        self.fits(length)?;
        Ok(length)
    }

    fn fits(&self, length: usize) -> Result<()> {
        if length > self.room {
            return Err(Error::Shape(format!(
                "{length} tokens for a KvCache with room for {}",
                self.room
            )));
        }
        Ok(())
    }
}
