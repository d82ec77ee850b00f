//! Norms along the last axis.

use super::Rows;
use crate::ops::host::math::sum_of;
use crate::ops::host::{self, Loop, Row};
use crate::ops::layout::{Axes, broadcast, float, part_of};
use crate::ops::op::{Op, Output, sealed::Lower};
use crate::ops::texts::{Function, NORMALIZE, Steps};
use crate::tensor::Tensor;
use smallvec::smallvec;
use std::ops::Range;
use tilewise_core::{DType, Error, Result};

/// The operation of [`layer_norm`], [`rms_norm`] and [`add_rms_norm`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Norm {
    x: Tensor,
    weight: Tensor,
    /// Bias of layer_norm, which subtracts the mean; none for rms_norm.
    bias: Option<Tensor>,
    residual: Option<Tensor>,
    /// Whether the residual is added to `x`, not to the norm.
    summed: bool,
    /// The weights of the norm that the residual has before it is added.
    behind: Option<Tensor>,
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
/// The relative error is at most (n/4 + 20)·2⁻²³, apart from the output's rounding, if the sum of
/// squares is a normal number of f32: the largest |x| of a row lies between 1e-18 and 1e18/√n.
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

/// The sum `x` + `residual` and its [`rms_norm`], in one pass: the stream of a transformer, and
/// what the next layer reads.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let stream = Tensor::upload(&ctx, &[5.0f32, 5.0], &[1, 2])?;
/// let y = Tensor::upload(&ctx, &[-4.0f32, -12.0], &[1, 2])?;
/// let weight = Tensor::upload(&ctx, &[10.0f32, 5.0], &[2])?;
/// let normed = Tensor::upload(&ctx, &[0.0f32; 2], &[1, 2])?;
/// ops::add_rms_norm(&stream, &y, &weight, 0.0).run_into([&stream, &normed])?;
/// assert_eq!(stream.read_blocking::<f32>()?, [1.0, -7.0]);
/// let z = normed.read_blocking::<f32>()?;
/// assert!((z[0] - 2.0).abs() < 1e-5 && (z[1] + 7.0).abs() < 1e-5);
/// # Ok(())
/// # }
/// ```
///
/// Both outputs have the shape and the type of `x`; given ones may be any floats. `residual` is
/// broadcast to this shape. Either operand may be the first output, the sum. The norm is that of
/// the sum before it is rounded to its type; its relative error is (n/4 + 21)·2⁻²³ at most.
pub fn add_rms_norm(x: &Tensor, residual: &Tensor, weight: &Tensor, eps: f32) -> Op<Norm, 2> {
    let kind = norm(x, weight, None, eps).kind;
    Op::new(Norm { residual: Some(residual.clone()), summed: true, ..kind })
}

fn norm(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>, eps: f32) -> Op<Norm> {
    let [x, weight] = [x, weight].map(Tensor::clone);
    let bias = bias.cloned();
    Op::new(Norm { x, weight, bias, residual: None, summed: false, behind: None, offset: 0.0, eps })
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
}

impl Op<Norm, 2> {
    /// Adds the [`rms_norm`] of the residual, with these weights, in place of the residual: the
    /// stream of Gemma, whose layers have a norm behind them. Both norms have the same `eps` and
    /// [`weight_offset`](Op::weight_offset).
    ///
    /// ```
    /// use tilewise::{Context, Tensor, ops};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let upload = |row: [f32; 2], shape: &[usize]| Tensor::upload(&ctx, &row, shape);
    /// let (stream, y) = (upload([2.0, -5.0], &[1, 2])?, upload([4.0, 4.0], &[1, 2])?);
    /// let (behind, weight) = (upload([-1.0, -2.0], &[2])?, upload([10.0, 5.0], &[2])?);
    /// let normed = upload([0.0; 2], &[1, 2])?;
    /// let sum = ops::add_rms_norm(&stream, &y, &weight, 0.0).norm_residual(&behind);
    /// sum.run_into([&stream, &normed])?;
    /// let x = stream.read_blocking::<f32>()?;
    /// assert!((x[0] - 1.0).abs() < 1e-5 && (x[1] + 7.0).abs() < 1e-5);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The error of the sum is that of the residual's [`rms_norm`], and one rounding. The norm of
    /// the sum carries it beside its own.
    pub fn norm_residual(mut self, weight: &Tensor) -> Self {
        self.kind.behind = Some(weight.clone());
        self
    }
}

impl<const N: usize> Op<Norm, N> {
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

impl Norm {
    fn operation(&self) -> &'static str {
        match (self.summed, &self.bias) {
            (true, _) => "add_rms_norm",
            (false, Some(_)) => "layer_norm",
            (false, None) => "rms_norm",
        }
    }
}

impl Norm {
    /// The rows of x, of the residual, of the first output, and of the last.
    fn rows<const N: usize>(&self, outs: [&Tensor; N]) -> Result<Rows<4>> {
        let (x, shape) = (&self.x, self.x.shape());
        let of_residual = self.residual.as_ref().and_then(|residual| broadcast(residual, shape));
        let of_residual = of_residual.unwrap_or_else(|| smallvec![0; shape.len()]);
        let [first, last] = [outs[0], outs[N - 1]].map(|out| out.strides().into());
        let strides = [x.strides().into(), of_residual, first, last];
        let axes = Axes { shape: shape.into(), strides };
        Rows::new(self.operation(), axes, shape.len() - 1)
    }

    fn on_host<const N: usize>(&self, outs: [&Tensor; N]) -> Result<()> {
        let Norm { ref x, ref bias, ref residual, summed, eps, .. } = *self;
        let rows = self.rows(outs)?;
        let weights = |own: &Tensor| {
            let mut own = host::floats(own)?;
            own.iter_mut().for_each(|weight| *weight += self.offset);
            Ok::<_, Error>(own)
        };
        let weight = weights(&self.weight)?;
        let behind = self.behind.as_ref().map(weights).transpose()?;
        let factor = |squares: f32, count: usize| 1.0 / (squares / count as f32 + eps).sqrt();
        let bias = bias.as_ref().map(host::floats).transpose()?;
        let inputs = [Some(rows.view(x, 0)), residual.as_ref().map(|own| rows.view(own, 1))];
        let outs: [Tensor; N] = std::array::from_fn(|at| rows.view(outs[at], 2 + at));
        let inputs = inputs.each_ref().map(Option::as_ref);
        Loop::new(inputs, outs.each_ref()).run(|Row { inputs: [x, residual], mut outs, .. }| {
            let Some((y, sums)) = outs.split_last_mut() else { return };
            let v = match sums.first_mut() {
                Some(sum) => {
                    let terms = sum.iter_mut().zip(x).zip(residual);
                    match &behind {
                        None => terms.for_each(|((sum, x), residual)| *sum = x + residual),
                        Some(behind) => {
                            let by = factor(sum_of(residual, |r| r * r), residual.len());
                            let terms = terms.zip(behind);
                            terms.for_each(|(((sum, x), r), weight)| *sum = x + r * by * weight);
                        }
                    }
                    &**sum
                }
                None => x,
            };
            let count = v.len() as f32;
            let mean = if bias.is_some() { sum_of(v, |v| v) / count } else { 0.0 };
            let squares = sum_of(v, |v| (v - mean) * (v - mean));
            let factor = factor(squares, v.len());
            for ((y, v), weight) in y.iter_mut().zip(v).zip(&weight) {
                *y = (v - mean) * factor * weight;
            }
            if let Some(bias) = &bias {
                y.iter_mut().zip(bias).for_each(|(y, bias)| *y += bias);
            }
            if !summed {
                y.iter_mut().zip(residual).for_each(|(y, residual)| *y += residual);
            }
        })
    }
}

impl<const N: usize> Lower<N> for Norm {
    fn name(&self) -> &'static str {
        self.operation()
    }

    fn first(&self) -> &Tensor {
        &self.x
    }

    fn outputs(&self) -> Result<[Output; N]> {
        let (name, x) = (self.operation(), &self.x);
        float(name, "x", x)?;
        if x.shape().is_empty() {
            return Err(Error::Shape(format!("{name}: x has shape [], wanted a last axis")));
        }
        let vectors = [
            ("weight", Some(&self.weight)),
            ("bias", self.bias.as_ref()),
            ("the residual's weight", self.behind.as_ref()),
        ];
        normed(name, x, &vectors, self.offset, self.eps)?;
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
        let names = if self.summed { ["the sum", "the norm"] } else { ["the output"; 2] };
        Ok(std::array::from_fn(|at| (names[at], x.shape().into(), x.dtype())))
    }

    fn takes(&self, dtype: DType, _: DType) -> bool {
        dtype.is_float()
    }

    fn steps(&self, outs: [&Tensor; N]) -> Result<Steps> {
        let (x, rows) = (&self.x, self.rows(outs)?);
        let view = rows.view(x, 0);
        let outs: [Tensor; N] = std::array::from_fn(|at| rows.view(outs[at], 2 + at));
        let residual = self.residual.as_ref().map(|residual| rows.view(residual, 1));
        let (bias, behind) = (self.bias.as_ref(), self.behind.as_ref());
        let inputs = [Some(&view), Some(&self.weight), bias, residual.as_ref(), behind];
        let outs = outs.each_ref();
        let mut step = NORMALIZE.step(self.operation(), Function::NONE, &inputs, &outs)?;
        step.call = rows
            .dispatch_kept(step.call, &x.context().0.caps)
            .constant("CENTRED", self.bias.is_some())
            .constant("ADDED", self.residual.is_some() && !self.summed)
            .constant("SUMMED", self.summed)
            .constant("NORMED", self.behind.is_some())
            .value("offset", self.offset)
            .value("eps", self.eps);
        Ok(smallvec![step])
    }

    fn host(&self, outs: [&Tensor; N]) -> Option<Result<()>> {
        Some(self.on_host(outs))
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

/// Checks vectors, offset and eps of a norm of the rows of `x`.
pub(super) fn normed(
    name: &str,
    x: &Tensor,
    vectors: &[(&str, Option<&Tensor>)],
    offset: f32,
    eps: f32,
) -> Result<()> {
    let length = x.shape()[x.shape().len() - 1];
    for &(what, vector) in vectors {
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
    if !offset.is_finite() {
        return Err(Error::Misuse(format!("{name}: weight_offset is {offset}")));
    }
    if !(eps >= 0.0 && eps.is_finite()) {
        return Err(Error::Misuse(format!(
            "{name}: eps is {eps}, wanted a finite number from 0 on"
        )));
    }
    Ok(())
}
