//! Drawing from the softmax of logits.

mod host;

use crate::ops::layout::{Axes, Sizes, float};
use crate::ops::op::{Op, Output, only, sealed::Lower};
use crate::ops::position::Position;
use crate::ops::rows::{Rows, counted, singly};
use crate::ops::texts::{SAMPLE, Steps};
use crate::tensor::Tensor;
use smallvec::smallvec;
use std::ops::Range;
use tilewise_core::{DType, Error, Result};

/// The operation of [`sample`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Sample {
    logits: Tensor,
    temperature: f32,
    k: usize,
    p: f32,
    min_p: f32,
    seed: u64,
    counter: Position,
    /// Rows before the first one of this part.
    before: usize,
}

/// Draws an index from the softmax of each row of logits, \[…, n\], as u32, \[…\].
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let logits = Tensor::upload(&ctx, &[1.0f32, 5.0, 4.5, -3.0], &[1, 4])?;
/// let step = Tensor::upload(&ctx, &[17u32], &[1])?;
/// let draw = ops::sample(&logits, 1234).temperature(0.8).top_k(2).at(&step);
/// let token = draw.run()?.read_blocking::<u32>()?;
/// assert!(token == [1] || token == [2]);
/// assert_eq!(draw.temperature(0.0).run()?.read_blocking::<u32>()?, [1]); // as arg_max
/// # Ok(())
/// # }
/// ```
///
/// The draw depends on the seed, on the counter ([`at`](Op::at)), on the row's number and on the
/// logits, and on nothing else. Equal calls give equal indices on a device. Devices differ only if
/// two candidates, or a logit and the bound of [`top_p`](Op::top_p), are within the rounding of
/// f32 of each other.
///
/// The options apply in this order: temperature, [`top_k`](Op::top_k), `top_p`,
/// [`min_p`](Op::min_p). Equal logits are kept or left out together. NaN counts as the largest, as
/// in [`arg_max`](crate::ops::arg_max()). The method is the Gumbel-max trick.
pub fn sample(logits: &Tensor, seed: u64) -> Op<Sample> {
    Op::new(Sample {
        logits: logits.clone(),
        temperature: 1.0,
        k: usize::MAX,
        p: 1.0,
        min_p: 0.0,
        seed,
        counter: 0.into(),
        before: 0,
    })
}

impl Op<Sample> {
    /// Divides the logits by a number. At 0 the result is that of
    /// [`arg_max`](crate::ops::arg_max()).
    pub fn temperature(mut self, temperature: f32) -> Self {
        self.kind.temperature = temperature;
        self
    }

    /// Keeps the `k` largest logits, and all that equal the last one of these.
    pub fn top_k(mut self, k: usize) -> Self {
        self.kind.k = k;
        self
    }

    /// Keeps the fewest of the largest logits whose probabilities add up to `p`. The logits that
    /// [`top_k`](Self::top_k) keeps have all of the probability.
    pub fn top_p(mut self, p: f32) -> Self {
        self.kind.p = p;
        self
    }

    /// Keeps logits whose probability is `p` times the largest one, or more.
    pub fn min_p(mut self, p: f32) -> Self {
        self.kind.min_p = p;
        self
    }

    /// The counter: the number of the step, so that each step draws anew. A tensor has one element,
    /// or one for each row: \[B\] for logits \[B, n\]. It is 0 without this call.
    pub fn at(mut self, counter: impl Into<Position>) -> Self {
        self.kind.counter = counter.into();
        self
    }
}

impl Sample {
    /// The rows of the logits, of the counter, and of the output with a last axis of 1.
    fn rows(&self, out: &Tensor) -> Result<Rows<3>> {
        let (logits, last) = (&self.logits, self.logits.shape().len() - 1);
        let mut of_counter = self.counter.strides("sample", &self.tokens())?;
        of_counter.remove(last);
        let strides = [logits.strides().into(), of_counter, out.strides().into()];
        Rows::new("sample", Axes { shape: logits.shape().into(), strides }, last)
    }

    /// The logits as one token of each row, as positions see them.
    fn tokens(&self) -> Tensor {
        self.logits.with_axis(self.logits.shape().len() - 1)
    }
}

impl Lower for Sample {
    fn name(&self) -> &'static str {
        "sample"
    }

    fn first(&self) -> &Tensor {
        &self.logits
    }

    fn outputs(&self) -> Result<[Output; 1]> {
        let Sample { ref logits, temperature, k, p, min_p, .. } = *self;
        float("sample", "logits", logits)?;
        let mut shape = Sizes::from(logits.shape());
        if shape.pop().is_none_or(|length| length == 0) {
            return Err(Error::Shape(format!(
                "sample: logits have shape {:?}, wanted rows of one element at least",
                logits.shape()
            )));
        }
        let refused = |what: String| Err(Error::Misuse(format!("sample: {what}")));
        if !(temperature >= 0.0 && temperature.is_finite()) {
            return refused(format!(
                "temperature is {temperature}, wanted a finite number from 0 on"
            ));
        }
        if k == 0 {
            return refused("top_k is 0, wanted one logit at least".into());
        }
        if !(p.is_normal() && (0.0..=1.0).contains(&p)) {
            return refused(format!("top_p is {p}, wanted a number above 0, at most 1"));
        }
        if !(0.0..=1.0).contains(&min_p) {
            return refused(format!("min_p is {min_p}, wanted a number from 0 to 1"));
        }
        self.counter.strides("sample", &self.tokens())?;
        only(shape, DType::U32)
    }

    fn steps(&self, [out]: [&Tensor; 1]) -> Result<Steps> {
        let Sample { ref logits, temperature, k, p, min_p, seed, ref counter, before } = *self;
        let (shape, last, out) = (logits.shape(), logits.shape().len() - 1, singly(out));
        counted("sample", shape[last])?;
        let rows = self.rows(&out)?;
        let tensor = counter.tensor().map(|tensor| rows.view_of(tensor, 1, 1));
        let inputs = [Some(&rows.view(logits, 0)), tensor.as_ref()];
        let outs = [&rows.view_of(&out, 2, 1)];
        let mut step = SAMPLE.step("sample", counter.function(), &inputs, &outs)?;
        step.call = rows
            .dispatch(step.call, &logits.context().0.caps)
            .constant("FLIP", 0u32)
            .constant("TOP_K", k < shape[last])
            .constant("TOP_P", p < 1.0)
            .constant("MIN_P", min_p > 0.0)
            .value("temperature", temperature)
            .value("sharpness", temperature.recip().min(f32::MAX))
            .value("k", k as f32)
            .value("p", p)
            .value("spread", -temperature * min_p.ln())
            .value("before", counter.before(u32::MAX as usize))
            .value("before_rows", before as u32)
            .value("seed_low", seed as u32)
            .value("seed_high", (seed >> 32) as u32);
        Ok(smallvec![step])
    }

    fn host(&self, [out]: [&Tensor; 1]) -> Option<Result<()>> {
        Some(self.on_host(out))
    }

    fn part(&self, axis: usize, range: Range<usize>) -> Result<Option<Self>> {
        let Sample { logits, counter, before, .. } = self;
        let (shape, rank) = (logits.shape(), logits.shape().len());
        // The rows of a part follow each other.
        if axis + 1 == rank || shape[..axis].iter().any(|&size| size > 1) {
            return Ok(None);
        }
        let skipped = range.start * shape[axis + 1..rank - 1].iter().product::<usize>();
        Ok(Some(Sample {
            logits: logits.narrow(axis, range.start, range.len())?,
            counter: counter.part(rank + 1, axis, &range)?,
            before: before + skipped,
            ..self.clone()
        }))
    }
}
