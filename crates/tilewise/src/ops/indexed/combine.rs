//! Weighted sums of rows from places that indices name.

use crate::ops::host::{Loop, Row};
use crate::ops::layout::{float, words};
use crate::ops::op::{Op, Output, only, sealed::Lower};
use crate::ops::rows::{counted, in_blocks, singly};
use crate::ops::texts::{COMBINE, Function, Steps};
use crate::tensor::Tensor;
use smallvec::smallvec;
use std::ops::Range;
use tilewise_core::{Error, Result};
use tilewise_sanitizer::Options;

/// The operation of [`combine`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Combine {
    x: Tensor,
    places: Tensor,
    weights: Tensor,
}

/// Weighted sums of rows of `x`, \[m, n\]: `out[t] = Σ weights[t, j] · x[places[t, j]]`, \[t, n\].
/// `places`, u32, and `weights` are \[t, k\]. It turns the rows that experts computed into rows of
/// tokens.
///
/// The sum runs over j from 0 up. A place beyond `x` adds nothing. With ε = 2⁻²³ the error is at
/// most k·ε·Σ|weight·x|, apart from the output's rounding.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
/// let places = Tensor::upload(&ctx, &[1u32, 0, 0, 9], &[2, 2])?;
/// let weights = Tensor::upload(&ctx, &[0.5f32, 2.0, 1.0, 1.0], &[2, 2])?;
/// let y = ops::combine(&x, &places, &weights).run()?;
/// assert_eq!(y.read_blocking::<f32>()?, [3.5, 6.0, 1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
pub fn combine(x: &Tensor, places: &Tensor, weights: &Tensor) -> Op<Combine> {
    let [x, places, weights] = [x, places, weights].map(Tensor::clone);
    Op::new(Combine { x, places, weights })
}

impl Combine {
    fn on_host(&self, out: &Tensor) -> Result<()> {
        let Combine { x, places, weights } = self;
        let (entries, terms) = (x.shape()[0], places.shape()[1]);
        let each = Loop::new([Some(places), Some(weights)], [out]);
        let each = each.cost(terms.saturating_mul(out.shape()[1]));
        each.beside(&[x]).run(
            |Row { inputs: [places, weights], outs: [y], others, scratch, .. }| {
                y.fill(0.0);
                for (place, weight) in places.iter().zip(weights) {
                    let place = place.to_bits() as usize;
                    if place < entries {
                        let x = others[0].row(place, &mut scratch[0]);
                        y.iter_mut().zip(x).for_each(|(y, x)| *y += weight * x);
                    }
                }
            },
        )
    }
}

impl Lower for Combine {
    fn name(&self) -> &'static str {
        "combine"
    }

    fn first(&self) -> &Tensor {
        &self.x
    }

    fn outputs(&self) -> Result<[Output; 1]> {
        let Combine { x, places, weights } = self;
        float("combine", "x", x)?;
        words("combine", "places", places)?;
        float("combine", "weights", weights)?;
        x.context().same(places.context(), "places")?;
        x.context().same(weights.context(), "weights")?;
        let (&[_, n], &[rows, _]) = (x.shape(), places.shape()) else {
            return Err(Error::Shape(format!(
                "combine: x has shape {:?} and places {:?}, wanted two dimensions of each",
                x.shape(),
                places.shape()
            )));
        };
        if weights.shape() != places.shape() {
            return Err(Error::Shape(format!(
                "combine: weights have shape {:?}, wanted that of places, {:?}",
                weights.shape(),
                places.shape()
            )));
        }
        only(smallvec![rows, n], x.dtype())
    }

    fn steps(&self, [out]: [&Tensor; 1]) -> Result<Steps> {
        let Combine { x, places, weights } = self;
        let &[rows, n] = out.shape() else { return Ok(Steps::new()) };
        let inputs = [Some(x), Some(places), Some(&singly(weights))];
        let mut step = COMBINE.step("combine", Function::NONE, &inputs, &[out])?;
        let (rows, caps) = (counted("combine", rows)?, &x.context().0.caps);
        step.call = in_blocks("combine", step.call, rows, n, caps)?
            .value("entries", counted("combine", x.shape()[0])?)
            .max_iterations(Options::execute().max_iterations.max(places.shape()[1] as u64));
        Ok(smallvec![step])
    }

    fn host(&self, [out]: [&Tensor; 1]) -> Option<Result<()>> {
        Some(self.on_host(out))
    }

    fn part(&self, axis: usize, range: Range<usize>) -> Result<Option<Self>> {
        let part = |tensor: &Tensor| tensor.narrow(axis, range.start, range.len());
        let Combine { x, places, weights } = self.clone();
        Ok(Some(match axis {
            0 => Combine { places: part(&places)?, weights: part(&weights)?, x },
            _ => Combine { x: part(&x)?, places, weights },
        }))
    }
}
