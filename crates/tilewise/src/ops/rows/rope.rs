//! Rotary position embeddings.

use super::{Rows, in_blocks};
use crate::ops::layout::{Axes, Sizes, broadcast, float, part_of};
use crate::ops::op::{Op, Output, only, sealed::Lower};
use crate::ops::texts::{Function, ROPE, Steps};
use crate::tensor::Tensor;
use smallvec::smallvec;
use std::ops::Range;
use tilewise_core::{Error, Result};

/// The operation of [`rope`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Rope {
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    interleaved: bool,
}

/// Rotary position embedding of `x` \[…, T, D\]: turns each pair of elements of a row by the angle
/// whose cosine and sine are given, \[T, D/2\] or anything that is broadcast to \[…, T, D/2\]. A
/// pair is elements i and i + D/2, as in Llama; if [`interleaved`](Op::interleaved), 2i and 2i + 1,
/// as in GPT-J.
///
/// With ε = 2⁻²³ the error is at most 2·ε·(|a·cos| + |b·sin|), apart from the output's rounding.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0, 4.0], &[1, 4])?;
/// let cos = Tensor::upload(&ctx, &[0.0f32, 1.0], &[1, 2])?;
/// let sin = Tensor::upload(&ctx, &[1.0f32, 0.0], &[1, 2])?;
/// let rope = ops::rope(&x, &cos, &sin);
/// assert_eq!(rope.run()?.read_blocking::<f32>()?, [-3.0, 2.0, 1.0, 4.0]);
/// assert_eq!(rope.interleaved().run()?.read_blocking::<f32>()?, [-2.0, 1.0, 3.0, 4.0]);
/// # Ok(())
/// # }
/// ```
pub fn rope(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Op<Rope> {
    Op::new(Rope { x: x.clone(), cos: cos.clone(), sin: sin.clone(), interleaved: false })
}

impl Op<Rope> {
    /// Takes neighbours as pairs.
    pub fn interleaved(mut self) -> Self {
        self.kind.interleaved = true;
        self
    }
}

impl Rope {
    /// Shape of the cosines that are used: one for each pair.
    fn pairs(&self) -> Sizes {
        let mut pairs = Sizes::from(self.x.shape());
        if let Some(last) = pairs.last_mut() {
            *last /= 2;
        }
        pairs
    }
}

impl Lower for Rope {
    fn name(&self) -> &'static str {
        "rope"
    }

    fn first(&self) -> &Tensor {
        &self.x
    }

    fn outputs(&self) -> Result<[Output; 1]> {
        let x = &self.x;
        float("rope", "x", x)?;
        if x.shape().len() < 2 || !x.shape()[x.shape().len() - 1].is_multiple_of(2) {
            return Err(Error::Shape(format!(
                "rope: x has shape {:?}, wanted [..., T, D] with an even D",
                x.shape()
            )));
        }
        for (name, table) in [("cos", &self.cos), ("sin", &self.sin)] {
            float("rope", name, table)?;
            x.context().same(table.context(), name)?;
            if broadcast(table, &self.pairs()).is_none() {
                return Err(Error::Shape(format!(
                    "rope: {name} has shape {:?}, wanted {:?} for x of shape {:?}",
                    table.shape(),
                    &self.pairs()[x.shape().len() - 2..],
                    x.shape()
                )));
            }
        }
        only(x.shape().into(), x.dtype())
    }

    fn steps(&self, [out]: [&Tensor; 1]) -> Result<Steps> {
        let Rope { x, cos, sin, interleaved } = self;
        let shape = self.pairs();
        let table = |table| broadcast(table, &shape).unwrap_or_default();
        let strides = [x.strides().into(), table(cos), table(sin), out.strides().into()];
        let rows = Rows::new("rope", Axes { shape: shape.clone(), strides }, shape.len() - 1)?;
        let pairs = |tensor: &Tensor, of: usize| {
            let half = rows.length();
            let (mut shape, mut strides) = (rows.axes.shape.clone(), rows.axes.strides[of].clone());
            let step = strides.last().copied().unwrap_or_default();
            if *interleaved {
                shape.pop();
                shape.push(2 * half);
            } else {
                shape.insert(shape.len() - 1, 2);
                strides.insert(strides.len() - 1, half * step);
            }
            tensor.laid_out(&shape, &strides)
        };
        let inputs = [pairs(x, 0), rows.view(cos, 1), rows.view(sin, 2)];
        let inputs = inputs.each_ref().map(Some);
        let mut step = ROPE.step("rope", Function::NONE, &inputs, &[&pairs(out, 3)])?;
        let caps = &x.context().0.caps;
        step.call = in_blocks("rope", step.call, rows.count, rows.length(), caps)?
            .constant("INTERLEAVED", *interleaved);
        Ok(smallvec![step])
    }

    fn part(&self, axis: usize, range: Range<usize>) -> Result<Option<Self>> {
        let Rope { x, cos, sin, interleaved } = self;
        if axis + 1 == x.shape().len() {
            return Ok(None);
        }
        let part = |tensor| part_of(tensor, x.shape().len(), axis, &range);
        let [x, cos, sin] = [part(x)?, part(cos)?, part(sin)?];
        Ok(Some(Rope { x, cos, sin, interleaved: *interleaved }))
    }
}
