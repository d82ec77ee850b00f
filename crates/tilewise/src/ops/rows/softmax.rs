//! Softmax along the last axis.

use super::Rows;
use crate::ops::host::math::{capped, exp, largest, sum_of};
use crate::ops::host::{Loop, Row};
use crate::ops::layout::{Axes, broadcast, float, part_of};
use crate::ops::op::{Op, Output, only, sealed::Lower};
use crate::ops::position::{FAR, Position};
use crate::ops::texts::{SOFTMAX, Steps};
use crate::tensor::Tensor;
use smallvec::smallvec;
use std::ops::Range;
use tilewise_core::{Error, Result};

/// The operation of [`softmax`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Softmax {
    x: Tensor,
    scale: f32,
    mask: Option<Tensor>,
    sinks: Option<Tensor>,
    causal: Option<Position>,
    window: Option<usize>,
    cap: Option<f32>,
}

/// exp(x) / Σ exp(x) along the last axis of `x`, which may have any shape with at least one axis.
///
/// A row of only −∞ gives zeros (PyTorch gives NaN). A row with +∞ or NaN among its scores gives
/// NaN.
///
/// With d the distance between the largest and the smallest finite score of a row, n its length and
/// ε = 2⁻²³, the relative error is at most (20 + 5·d + n/2)·ε, apart from the rounding of scores by
/// scale and mask and of the output to its type; results below 2⁻¹²⁶ may be 0. A
/// [sink](Op::sinks) counts as a score.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let scores = Tensor::upload(&ctx, &[4.0f32, 4.0, 4.0, 4.0], &[2, 2])?;
/// let p = ops::softmax(&scores).scale(0.5).causal(0).run()?;
/// assert_eq!(p.read_blocking::<f32>()?, [1.0, 0.0, 0.5, 0.5]);
/// # Ok(())
/// # }
/// ```
pub fn softmax(x: &Tensor) -> Op<Softmax> {
    Op::new(Softmax {
        x: x.clone(),
        scale: 1.0,
        mask: None,
        sinks: None,
        causal: None,
        window: None,
        cap: None,
    })
}

impl Op<Softmax> {
    /// Multiplies the scores by a factor first: 1/√D in attention.
    pub fn scale(mut self, scale: f32) -> Self {
        self.kind.scale = scale;
        self
    }

    /// Replaces each scaled score s by cap·tanh(s/cap), as Gemma 2 does, before the mask is added.
    /// This adds an error of at most 12·cap·2⁻²³ to the score.
    ///
    /// ```
    /// use tilewise::{Context, Tensor, ops};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let scores = Tensor::upload(&ctx, &[900.0f32, 1000.0], &[2])?;
    /// let p = ops::softmax(&scores).softcap(50.0).run()?.read_blocking::<f32>()?;
    /// assert!((p[0] - 0.5).abs() < 1e-6);
    /// # Ok(())
    /// # }
    /// ```
    pub fn softcap(mut self, cap: f32) -> Self {
        self.kind.cap = Some(cap);
        self
    }

    /// Adds a mask to the scaled scores: 0 for scores that count, −∞ for scores that do not. It is
    /// broadcast to the shape of the scores as numpy does.
    pub fn mask(mut self, mask: &Tensor) -> Self {
        self.kind.mask = Some(mask.clone());
        self
    }

    /// Adds a score to each row that counts in its sum but has no place in the output, as in the
    /// attention of GPT-OSS: the output's row sums to less than 1. Scale and mask do not change it;
    /// −∞ has no effect. `sinks` is broadcast to the shape of the scores with a last axis of 1. If
    /// each head of scores \[…, heads, queries, keys\] has one, give \[heads, 1, 1\].
    ///
    /// ```
    /// use tilewise::{Context, Tensor, ops};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let scores = Tensor::upload(&ctx, &[4.0f32, 4.0], &[1, 2])?;
    /// let sinks = Tensor::upload(&ctx, &[4.0f32], &[1, 1])?;
    /// let p = ops::softmax(&scores).sinks(&sinks).run()?.read_blocking::<f32>()?;
    /// assert!(p.iter().all(|p| (p - 1.0 / 3.0).abs() < 1e-6));
    /// # Ok(())
    /// # }
    /// ```
    pub fn sinks(mut self, sinks: &Tensor) -> Self {
        self.kind.sinks = Some(sinks.clone());
        self
    }

    /// Counts the scores of row i (along the second-last axis) only up to column i + `position`.
    /// The position is the number of keys before the first query, 0 without a cache.
    ///
    /// ```
    /// use tilewise::{Context, Tensor, ops};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let scores = Tensor::upload(&ctx, &[4.0f32; 6], &[2, 1, 3])?; // two sequences
    /// let position = Tensor::upload(&ctx, &[0u32, 1], &[2])?;
    /// let p = ops::softmax(&scores).causal(&position).run()?;
    /// assert_eq!(p.read_blocking::<f32>()?, [1.0, 0.0, 0.0, 0.5, 0.5, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn causal(mut self, position: impl Into<Position>) -> Self {
        self.kind.causal = Some(position.into());
        self
    }

    /// Counts only the last `keys` of the scores that [`causal`](Self::causal) counts in a row: a
    /// sliding window.
    ///
    /// ```
    /// use tilewise::{Context, Tensor, ops};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let scores = Tensor::upload(&ctx, &[4.0f32; 6], &[2, 3])?;
    /// let p = ops::softmax(&scores).causal(1).window(2).run()?;
    /// assert_eq!(p.read_blocking::<f32>()?, [0.5, 0.5, 0.0, 0.0, 0.5, 0.5]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn window(mut self, keys: usize) -> Self {
        self.kind.window = Some(keys);
        self
    }
}

impl Softmax {
    /// The rows of x, of mask, sinks and position, and of the output.
    fn rows(&self, out: &Tensor) -> Result<Rows<5>> {
        let (x, shape) = (&self.x, self.x.shape());
        let [of_mask, of_sinks] = [self.mask.as_ref(), self.sinks.as_ref()].map(|other| {
            let strides = other.and_then(|other| broadcast(other, shape));
            strides.unwrap_or_else(|| smallvec![0; shape.len()])
        });
        let of_position = match &self.causal {
            Some(position) => position.strides("softmax", x)?,
            None => smallvec![0; shape.len()],
        };
        let strides = [x.strides().into(), of_mask, of_sinks, of_position, out.strides().into()];
        let axes = Axes { shape: shape.into(), strides };
        Rows::new("softmax", axes, shape.len() - 1)
    }

    fn on_host(&self, out: &Tensor) -> Result<()> {
        let Softmax { ref x, scale, ref mask, ref sinks, ref causal, window, cap } = *self;
        let rows = self.rows(out)?;
        let is_causal = causal.is_some();
        let tokens = causal.as_ref().map_or(1, |_| x.shape()[x.shape().len() - 2]);
        let position = causal.clone().unwrap_or(0.into());
        let tensor = position.tensor().map(|tensor| rows.view_of(tensor, 3, 1));
        let placed = position.on_host(tensor.as_ref(), FAR)?;
        let inputs = [
            Some(rows.view(x, 0)),
            mask.as_ref().map(|mask| rows.view(mask, 1)),
            sinks.as_ref().map(|sinks| rows.view_of(sinks, 2, 1)),
        ];
        let (inputs, out) = (inputs.each_ref().map(Option::as_ref), rows.view(out, 4));
        Loop::new(inputs, [&out]).run(
            |Row { number, inputs: [x, mask, sink], outs: [y], .. }| {
                let (mut begin, mut end) = (0, y.len());
                if is_causal {
                    let keys = number % tokens + placed.of(number) + 1;
                    end = end.min(keys);
                    begin = keys.saturating_sub(window.unwrap_or(usize::MAX)).min(end);
                }
                let scores = &mut y[begin..end];
                scores.iter_mut().zip(&x[begin..]).for_each(|(score, x)| *score = x * scale);
                if let Some(cap) = cap {
                    scores.iter_mut().for_each(|score| *score = capped(*score, cap));
                }
                let mask = mask.get(begin..).unwrap_or_default();
                scores.iter_mut().zip(mask).for_each(|(score, mask)| *score += mask);

                let sink = sink.first().copied().unwrap_or(f32::NEG_INFINITY);
                let top = largest(scores, |score| score).max(sink);
                let is_nan = scores.iter().fold(sink.is_nan(), |any, score| any | score.is_nan());
                if is_nan || top == f32::INFINITY {
                    return y.fill(f32::NAN);
                }
                // If no score counts, all exponentials vanish.
                let top = top.max(f32::MIN);
                scores.iter_mut().for_each(|score| *score = exp(*score - top));
                let factor = 1.0 / (sum_of(scores, |p| p) + exp(sink - top)).max(1.0);
                scores.iter_mut().for_each(|score| *score *= factor);
                y[..begin].fill(0.0);
                y[end..].fill(0.0);
            },
        )
    }
}

impl Lower for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn first(&self) -> &Tensor {
        &self.x
    }

    fn outputs(&self) -> Result<[Output; 1]> {
        let Softmax { x, mask, sinks, causal, window, cap, .. } = self;
        float("softmax", "x", x)?;
        let axes = 1 + usize::from(causal.is_some());
        if x.shape().len() < axes {
            return Err(Error::Shape(format!(
                "softmax: x has shape {:?}, wanted {axes} dimensions at least",
                x.shape()
            )));
        }
        let mut one_each = x.shape().to_vec();
        one_each[x.shape().len() - 1] = 1;
        for (name, what, other, shape) in
            [("the mask", "a mask", mask, x.shape()), ("the sinks", "sinks", sinks, &one_each)]
        {
            let Some(other) = other else { continue };
            float("softmax", name, other)?;
            x.context().same(other.context(), name)?;
            if broadcast(other, shape).is_none() {
                return Err(Error::Shape(format!(
                    "softmax: {what} of shape {:?} for scores of shape {:?}, wanted {shape:?}, or \
                     1 in place of a number",
                    other.shape(),
                    x.shape()
                )));
            }
        }
        if let Some(position) = causal {
            position.strides("softmax", x)?;
        }
        if window.is_some_and(|keys| keys == 0 || causal.is_none()) {
            return Err(Error::Misuse(
                "softmax: window() wants causal(), and a key at least".into(),
            ));
        }
        if let Some(cap) = cap.filter(|cap| !(*cap > 0.0 && cap.is_finite())) {
            return Err(Error::Misuse(format!(
                "softmax: softcap is {cap}, wanted a finite number above 0"
            )));
        }
        only(x.shape().into(), x.dtype())
    }

    fn steps(&self, [out]: [&Tensor; 1]) -> Result<Steps> {
        let (x, shape, rows) = (&self.x, self.x.shape(), self.rows(out)?);
        let position = self.causal.clone().unwrap_or(0.into());
        let [mask, sinks] = [self.mask.as_ref(), self.sinks.as_ref()];
        let inputs = [
            Some(rows.view(x, 0)),
            mask.map(|mask| rows.view(mask, 1)),
            sinks.map(|sinks| rows.view(sinks, 2)),
            position.tensor().map(|tensor| rows.view(tensor, 3)),
        ];
        let inputs = inputs.each_ref().map(Option::as_ref);
        let out = rows.view(out, 4);
        let mut step = SOFTMAX.step("softmax", position.function(), &inputs, &[&out])?;
        let causal = self.causal.is_some();
        let window = self.window.and_then(|keys| u32::try_from(keys).ok()).unwrap_or(u32::MAX);
        let tokens = if causal { shape[shape.len() - 2] as u32 } else { 1 };
        step.call = rows
            .dispatch_kept(step.call, &x.context().0.caps)
            .constant("MASKED", mask.is_some())
            .constant("SINKS", sinks.is_some())
            .constant("CAUSAL", causal)
            .constant("WINDOWED", self.window.is_some())
            .constant("CAPPED", self.cap.is_some())
            .value("window", window)
            .value("cap", self.cap.unwrap_or_default())
            .value("none", f32::NEG_INFINITY)
            .value("scale", self.scale)
            .value("tokens", tokens)
            .value("before", position.before(FAR));
        Ok(smallvec![step])
    }

    fn host(&self, [out]: [&Tensor; 1]) -> Option<Result<()>> {
        Some(self.on_host(out))
    }

    fn part(&self, axis: usize, range: Range<usize>) -> Result<Option<Self>> {
        let rank = self.x.shape().len();
        if axis + 1 == rank {
            return Ok(None);
        }
        let part = |tensor| part_of(tensor, rank, axis, &range);
        let causal = self.causal.as_ref().map(|position| position.part(rank, axis, &range));
        Ok(Some(Softmax {
            x: part(&self.x)?,
            mask: self.mask.as_ref().map(part).transpose()?,
            sinks: self.sinks.as_ref().map(part).transpose()?,
            causal: causal.transpose()?,
            ..*self
        }))
    }
}
