//! Norms along the last axis.

use super::Rows;
use crate::ops::layout::{Axes, broadcast, float, part_of};
use crate::ops::op::{Op, Output, only, sealed::Lower};
use crate::ops::texts::{Function, NORMALIZE, Steps};
use crate::tensor::Tensor;
use smallvec::smallvec;
use std::ops::Range;
use tilewise_core::{Error, Result};

/// The operation of [`layer_norm`] and [`rms_norm`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Norm {
    x: Tensor,
    weight: Tensor,
    /// Bias of layer_norm, which subtracts the mean; none for rms_norm.
    bias: Option<Tensor>,
    residual: Option<Tensor>,
    /// The number that is added to the weights.
    offset: f32,
    eps: f32,
}

/// (x − mean) / √(variance + eps) · weight + bias along the last axis of `x`. The variance is Σ(x −
/// mean)²/n; `weight` and `bias` are vectors \[n\].
///
/// With ε = 2⁻²³, m the mean of |x|, s = √(variance + eps), z = (x − mean)/s and k = n/4 + 20, the
/// error is at most ((m/s + |z|)·k + (m/s·k)²·ε·|z|)·ε·|weight| + ε·|bias|, apart from the output's
/// rounding.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::upload(&ctx, &[1.0f32, 3.0, -2.0, 2.0], &[2, 2])?;
/// let weight = Tensor::upload(&ctx, &[1.0f32, 2.0], &[2])?;
/// let bias = Tensor::upload(&ctx, &[0.0f32, 1.0], &[2])?;
/// let y = ops::layer_norm(&x, &weight, &bias, 0.0).run()?.read_blocking::<f32>()?;
/// for (y, wanted) in y.into_iter().zip([-1.0, 3.0, -1.0, 3.0]) {
///     assert!((y - wanted).abs() < 1e-5);
/// }
/// # Ok(())
/// # }
/// ```
pub fn layer_norm(x: &Tensor, weight: &Tensor, bias: &Tensor, eps: f32) -> Op<Norm> {
    norm(x, weight, Some(bias), eps)
}

/// x / √(mean of x² + eps) · weight along the last axis of `x`; `weight` is a vector \[n\].
///
/// The relative error is at most (n/4 + 20)·2⁻²³, apart from the output's rounding.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::upload(&ctx, &[1.0f32, -7.0], &[1, 2])?;
/// let weight = Tensor::upload(&ctx, &[10.0f32, 5.0], &[2])?;
/// let y = ops::rms_norm(&x, &weight, 0.0).run()?.read_blocking::<f32>()?;
/// assert!((y[0] - 2.0).abs() < 1e-5 && (y[1] + 7.0).abs() < 1e-5);
/// # Ok(())
/// # }
/// ```
pub fn rms_norm(x: &Tensor, weight: &Tensor, eps: f32) -> Op<Norm> {
    norm(x, weight, None, eps)
}

fn norm(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>, eps: f32) -> Op<Norm> {
    let [x, weight] = [x, weight].map(Tensor::clone);
    Op::new(Norm { x, weight, bias: bias.cloned(), residual: None, offset: 0.0, eps })
}

impl Op<Norm> {
    /// Adds a tensor of the shape of `x`, or one that is broadcast to it, to the norm: the stream
    /// of a transformer, which may be the output, too. The sum rounds once more.
    ///
    /// ```
    /// use tilewise::{Context, Tensor, ops};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let stream = Tensor::upload(&ctx, &[5.0f32, 5.0], &[1, 2])?;
    /// let y = Tensor::upload(&ctx, &[2.0f32, -2.0], &[1, 2])?;
    /// let weight = Tensor::upload(&ctx, &[3.0f32, 1.0], &[2])?;
    /// ops::rms_norm(&y, &weight, 0.0).residual(&stream).run_into(&stream)?;
    /// let x = stream.read_blocking::<f32>()?;
    /// assert!((x[0] - 8.0).abs() < 1e-5 && (x[1] - 4.0).abs() < 1e-5);
    /// # Ok(())
    /// # }
    /// ```
    pub fn residual(mut self, residual: &Tensor) -> Self {
        self.kind.residual = Some(residual.clone());
        self
    }

    /// Adds a number to the weights, which rounds once: 1 for the files of Gemma, which hold the
    /// distance of the weights from 1.
    ///
    /// ```
    /// use tilewise::{Context, Tensor, ops};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let x = Tensor::upload(&ctx, &[2.0f32, -2.0], &[1, 2])?;
    /// let weight = Tensor::upload(&ctx, &[0.0f32, 1.0], &[2])?;
    /// let y = ops::rms_norm(&x, &weight, 0.0).weight_offset(1.0).run()?.read_blocking::<f32>()?;
    /// assert!((y[0] - 1.0).abs() < 1e-5 && (y[1] + 2.0).abs() < 1e-5);
    /// # Ok(())
    /// # }
    /// ```
    pub fn weight_offset(mut self, offset: f32) -> Self {
        self.kind.offset = offset;
        self
    }
}

impl Lower for Norm {
    fn name(&self) -> &'static str {
        if self.bias.is_some() { "layer_norm" } else { "rms_norm" }
    }

    fn first(&self) -> &Tensor {
        &self.x
    }

    fn outputs(&self) -> Result<[Output; 1]> {
        let (name, x) = (self.name(), &self.x);
        float(name, "x", x)?;
        let Some(&length) = x.shape().last() else {
            return Err(Error::Shape(format!("{name}: x has shape [], wanted a last axis")));
        };
        let vectors = [("weight", Some(&self.weight)), ("bias", self.bias.as_ref())];
        for (what, vector) in vectors {
            let Some(vector) = vector else { continue };
            float(name, what, vector)?;
            x.context().same(vector.context(), what)?;
            if vector.shape() != [length] {
                return Err(Error::Shape(format!(
                    "{name}: {what} has shape {:?}, wanted [{length}]",
                    vector.shape()
                )));
            }
        }
        if let Some(residual) = &self.residual {
            float(name, "the residual", residual)?;
            x.context().same(residual.context(), "the residual")?;
            if broadcast(residual, x.shape()).is_none() {
                return Err(Error::Shape(format!(
                    "{name}: a residual of shape {:?} for x of shape {:?}",
                    residual.shape(),
                    x.shape()
                )));
            }
        }
        if !self.offset.is_finite() {
            return Err(Error::Misuse(format!("{name}: weight_offset is {}", self.offset)));
        }
        if !(self.eps >= 0.0 && self.eps.is_finite()) {
            return Err(Error::Misuse(format!(
                "{name}: eps is {}, wanted a finite number from 0 on",
                self.eps
            )));
        }
        only(x.shape().into(), x.dtype())
    }

    fn steps(&self, [out]: [&Tensor; 1]) -> Result<Steps> {
        let (x, shape) = (&self.x, self.x.shape());
        let of_residual = self.residual.as_ref().and_then(|residual| broadcast(residual, shape));
        let of_residual = of_residual.unwrap_or_else(|| smallvec![0; shape.len()]);
        let strides = [x.strides().into(), of_residual, out.strides().into()];
        let axes = Axes { shape: shape.into(), strides };
        let rows = Rows::new(self.name(), axes, shape.len() - 1)?;
        let (view, out) = (rows.view(x, 0), rows.view(out, 2));
        let residual = self.residual.as_ref().map(|residual| rows.view(residual, 1));
        let inputs = [Some(&view), Some(&self.weight), self.bias.as_ref(), residual.as_ref()];
        let mut step = NORMALIZE.step(self.name(), Function::NONE, &inputs, &[&out])?;
        step.call = rows
            .dispatch_kept(step.call, &x.context().0.caps)
            .constant("CENTRED", self.bias.is_some())
            .constant("ADDED", self.residual.is_some())
            .value("offset", self.offset)
            .value("eps", self.eps);
        Ok(smallvec![step])
    }

    fn part(&self, axis: usize, range: Range<usize>) -> Result<Option<Self>> {
        if axis + 1 == self.x.shape().len() {
            return Ok(None);
        }
        let part = |tensor: &Tensor| part_of(tensor, self.x.shape().len(), axis, &range);
        let residual = self.residual.as_ref().map(part).transpose()?;
        Ok(Some(Norm { x: part(&self.x)?, residual, ..self.clone() }))
    }
}
