//! Reductions: sums, means, largest and smallest elements along an axis.

use super::{Rows, Shared, singly};
use crate::ops::cut;
use crate::ops::host::math::{largest, number as number_of, ordered, sum_of};
use crate::ops::host::{Loop, Row};
use crate::ops::layout::{Axes, Sizes, float};
use crate::ops::op::{Op, Output, only, sealed::Lower};
use crate::ops::texts::{FIRST, Function, LARGEST, REDUCE, SUM, Step, Steps};
use crate::tensor::Tensor;
use smallvec::smallvec;
use std::ops::Range;
use tilewise_core::{DType, Error, Result};

/// Results that are computed at once on the host.
const SIDE_BY_SIDE: usize = 1024;

/// The operation of [`sum`], [`mean`], [`max`], [`min`] and [`arg_max`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Reduce {
    kind: Kind,
    x: Tensor,
    axis: usize,
    /// The factor of the result.
    factor: f32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sum,
    Mean,
    Max,
    Min,
    ArgMax,
}

/// The sum along an axis, which the output does not have. The sum of no elements is 0.
///
/// With n elements and ε = 2⁻²³ the error is at most (n/8 + 8)·ε·Σ|x|, apart from the output's
/// rounding.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
/// assert_eq!(ops::sum(&x, 0).run()?.read_blocking::<f32>()?, [4.0, 6.0]);
/// # Ok(())
/// # }
/// ```
pub fn sum(x: &Tensor, axis: usize) -> Op<Reduce> {
    Op::new(Reduce::new(Kind::Sum, x, axis))
}

/// The mean along an axis, which the output does not have.
///
/// With n elements and ε = 2⁻²³ the error is at most (n/8 + 9)·ε·Σ|x|/n, apart from the output's
/// rounding. The mean is infinite if the sum is beyond f32.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
/// assert_eq!(ops::mean(&x, 1).run()?.read_blocking::<f32>()?, [1.5, 3.5]);
/// # Ok(())
/// # }
/// ```
pub fn mean(x: &Tensor, axis: usize) -> Op<Reduce> {
    Op::new(Reduce::new(Kind::Mean, x, axis))
}

/// The largest element along an axis, which the output does not have. NaN counts as the largest, as
/// in PyTorch. The result is exact, except that −0 may come as 0.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0, -4.0], &[2, 2])?;
/// assert_eq!(ops::max(&x, 1).run()?.read_blocking::<f32>()?, [2.0, 3.0]);
/// # Ok(())
/// # }
/// ```
pub fn max(x: &Tensor, axis: usize) -> Op<Reduce> {
    Op::new(Reduce::new(Kind::Max, x, axis))
}

/// The smallest element along an axis, which the output does not have. NaN counts as the smallest,
/// as in PyTorch. The result is exact, except that −0 may come as 0.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0, -4.0], &[2, 2])?;
/// assert_eq!(ops::min(&x, 1).run()?.read_blocking::<f32>()?, [1.0, -4.0]);
/// # Ok(())
/// # }
/// ```
pub fn min(x: &Tensor, axis: usize) -> Op<Reduce> {
    Op::new(Reduce::new(Kind::Min, x, axis))
}

/// The index of the largest element along an axis, as u32; the first index if several are equal.
/// NaN counts as the largest, as in PyTorch.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let logits = Tensor::upload(&ctx, &[1.0f32, 5.0, 5.0, 3.0, 2.0, 0.0], &[2, 3])?;
/// assert_eq!(ops::arg_max(&logits, 1).run()?.read_blocking::<u32>()?, [1, 0]);
/// # Ok(())
/// # }
/// ```
pub fn arg_max(x: &Tensor, axis: usize) -> Op<Reduce> {
    Op::new(Reduce::new(Kind::ArgMax, x, axis))
}

impl Reduce {
    fn new(kind: Kind, x: &Tensor, axis: usize) -> Self {
        let length = x.shape().get(axis).copied().unwrap_or(1);
        let factor = if kind == Kind::Mean { 1.0 / length as f32 } else { 1.0 };
        Reduce { kind, x: x.clone(), axis, factor }
    }
}

impl Kind {
    /// The header that combines elements, and the function that stores a row's result. A place that
    /// is yet to be `joined` has its element beside it.
    fn function(self, joined: bool) -> Function {
        let (header, name) = match self {
            Kind::Sum | Kind::Mean => (SUM, "sum"),
            Kind::Max | Kind::Min => (LARGEST, "number"),
            Kind::ArgMax if joined => (LARGEST, "part"),
            Kind::ArgMax => (LARGEST, "place"),
        };
        Function { header: Some(header), role: "keep", name }
    }
}

impl Lower for Reduce {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Sum => "sum",
            Kind::Mean => "mean",
            Kind::Max => "max",
            Kind::Min => "min",
            Kind::ArgMax => "arg_max",
        }
    }

    fn first(&self) -> &Tensor {
        &self.x
    }

    fn outputs(&self) -> Result<[Output; 1]> {
        let Reduce { kind, ref x, axis, .. } = *self;
        let name = self.name();
        float(name, "x", x)?;
        let mut shape = Sizes::from(x.shape());
        if axis >= shape.len() {
            return Err(Error::Shape(format!(
                "{name}: axis {axis} of shape {:?}, which has {} axes",
                x.shape(),
                shape.len()
            )));
        }
        let length = shape.remove(axis);
        if length == 0 && kind != Kind::Sum && !shape.contains(&0) {
            return Err(Error::Shape(format!(
                "{name}: axis {axis} of shape {:?} has no elements",
                x.shape()
            )));
        }
        only(shape, if kind == Kind::ArgMax { DType::U32 } else { x.dtype() })
    }

    fn host(&self, [out]: [&Tensor; 1]) -> Option<Result<()>> {
        Some(self.on_host(out))
    }

    fn steps(&self, [out]: [&Tensor; 1]) -> Result<Steps> {
        let Reduce { kind, ref x, factor, .. } = *self;
        let context = x.context();
        let (rows, caps) = (self.rows(out)?, &context.0.caps);
        let limit = match kind {
            Kind::ArgMax => caps.max_scratch_bytes / (8 * u64::from(rows.count.max(1))),
            _ => u64::MAX,
        };
        let shared = rows.in_segments(usize::try_from(limit).unwrap_or(usize::MAX), caps);
        let first = |factor: f32, out: &Tensor| {
            let first = Segments { reduce: Reduce { factor, ..self.clone() }, shared };
            let plan = |part: &Segments, [out]: [&Tensor; 1]| part.steps(out);
            cut::steps(&first, [out], &plan, &Segments::part, &|_, _| 1, &|_| 1)
        };
        if shared.segments == 1 {
            return first(factor, &singly(out).with_axis(0));
        }
        // First reduce segments, and then their results.
        let mut shape: Sizes = smallvec![shared.segments];
        shape.extend_from_slice(out.shape());
        if kind == Kind::ArgMax {
            shape.push(2);
            let parts = Tensor::scratch(context, DType::U32, &shape)?;
            let mut steps = first(factor, &parts)?;
            steps.push(first_of(&parts, shared.span, out)?);
            return Ok(steps);
        }
        let parts = Tensor::zeros(context, DType::F32, &shape)?;
        let mut steps = first(1.0, &singly(&parts))?;
        steps.extend(Reduce { kind, x: parts, axis: 0, factor }.steps([out])?);
        Ok(steps)
    }
}

impl Reduce {
    fn on_host(&self, out: &Tensor) -> Result<()> {
        let Reduce { kind, factor, .. } = *self;
        let rows = self.rows(out)?;
        if rows.across() {
            return self.on_host_across(&rows, out);
        }
        let (x, y) = (rows.view(&self.x, 0), rows.view_of(out, 1, 1));
        Loop::new([Some(&x)], [&y]).run(|Row { inputs: [x], outs: [y], .. }| {
            let is_nan = |all: &[f32]| all.iter().fold(false, |any, x| any | x.is_nan());
            y[0] = match kind {
                Kind::Sum | Kind::Mean => sum_of(x, |x| x) * factor,
                Kind::Max | Kind::Min if is_nan(x) => f32::NAN,
                Kind::Max => largest(x, |x| x),
                Kind::Min => -largest(x, |x| -x),
                Kind::ArgMax => {
                    let most = if is_nan(x) { f32::NAN } else { largest(x, |x| x) };
                    let first = x.iter().position(|x| *x == most || most.is_nan() && x.is_nan());
                    f32::from_bits(first.unwrap_or_default() as u32)
                }
            };
        })
    }

    /// Like [`on_host`](Self::on_host), for rows whose neighbours lie side by side: the results of
    /// many rows are computed at once.
    fn on_host_across(&self, rows: &Rows<2>, out: &Tensor) -> Result<()> {
        let Reduce { kind, factor, .. } = *self;
        let Axes { shape, strides: [of_x, of_out] } = &rows.axes;
        let (last, length) = (shape.len() - 1, rows.length());
        let (mut shape_x, mut of_x) = (shape.clone(), of_x.clone());
        shape_x.swap(last - 1, last);
        of_x.swap(last - 1, last);
        let x = self.x.laid_out(&shape_x, &of_x);
        let y = out.laid_out(&shape[..last], &of_out[..last]);
        let each = Loop::new([], [&y]).in_parts(SIDE_BY_SIDE).cost(length * SIDE_BY_SIDE);
        each.beside(&[&x]).run(|Row { number, first, outs: [y], others, scratch, .. }| {
            let part = first..first + y.len();
            let mut rows = (0..length).map(|i| number * length + i);
            if matches!(kind, Kind::Sum | Kind::Mean) {
                let mut sums = vec![0.0f64; y.len()];
                for row in rows {
                    let x = others[0].part(row, part.clone(), &mut scratch[0]);
                    sums.iter_mut().zip(x).for_each(|(sum, &x)| *sum += f64::from(x));
                }
                let sums = y.iter_mut().zip(sums);
                return sums.for_each(|(y, sum)| *y = sum as f32 * factor);
            }
            let sign = if kind == Kind::Min { -1.0 } else { 1.0 };
            let mut best = vec![(0u32, 0u32); y.len()];
            for (i, row) in (0u32..).zip(&mut rows) {
                let x = others[0].part(row, part.clone(), &mut scratch[0]);
                for (best, x) in best.iter_mut().zip(x) {
                    let order = ordered(x * sign);
                    *best = if order > best.0 { (order, i) } else { *best };
                }
            }
            for (y, (order, i)) in y.iter_mut().zip(best) {
                let is_place = kind == Kind::ArgMax;
                *y = if is_place { f32::from_bits(i) } else { number_of(order) * sign };
            }
        })
    }

    /// Operand and output as rows along the axis, which the output does not have.
    fn rows(&self, out: &Tensor) -> Result<Rows<2>> {
        let Reduce { x, axis, .. } = self;
        let mut of_out = Sizes::from(out.strides());
        of_out.insert(*axis, 0);
        let axes = Axes { shape: x.shape().into(), strides: [x.strides().into(), of_out] };
        Rows::new(self.name(), axes, *axis)
    }
}

/// The step that joins the parts of arg-max, [segments, …, 2], of segments of `span` elements.
fn first_of(parts: &Tensor, span: usize, out: &Tensor) -> Result<Step> {
    let last = parts.shape().len() - 1;
    let one = parts.narrow(last, 0, 1)?.squeeze(last)?;
    let mut of_out = Sizes::from(out.strides());
    of_out.insert(0, 0);
    let axes = Axes { shape: one.shape().into(), strides: [one.strides().into(), of_out] };
    let rows = Rows::new("arg_max", axes, 0)?;
    let mut axes = rows.axes.clone();
    axes.push(2, [1; 2]);
    let x = parts.laid_out(&axes.shape, &axes.strides[0]);
    let y = rows.view_of(out, 1, 1);
    let mut step = FIRST.step("arg_max", Function::NONE, &[Some(&x)], &[&y])?;
    let call = step.call.constant("FLIP", 0u32).value("span", span as u32);
    step.call = rows.dispatch_each(call, &out.context().0.caps);
    Ok(step)
}

/// The step that gives the results of segments of rows, [segments, …, 1], or, for arg-max, their
/// parts, [segments, …, 2]. Parts of it cut rows as the whole does, and so add in its order.
struct Segments {
    reduce: Reduce,
    shared: Shared,
}

impl Segments {
    fn steps(&self, out: &Tensor) -> Result<Steps> {
        let Segments { reduce, shared } = self;
        let last = out.shape().len() - 1;
        let one = out.narrow(last, 0, 1)?.squeeze(last)?;
        let (name, rows) = (reduce.name(), reduce.rows(&one.narrow(0, 0, 1)?.squeeze(0)?)?);
        let strides = [one.strides().into()];
        let mut axes = Axes { shape: one.shape().into(), strides }.collapsed();
        let numbers = out.shape()[last];
        axes.push(numbers, [1]);
        let out = out.laid_out(&axes.shape, &axes.strides[0]);
        let inputs = [Some(&rows.view(&reduce.x, 0))];
        let mut step = REDUCE.step(name, reduce.kind.function(numbers > 1), &inputs, &[&out])?;
        let flip = if reduce.kind == Kind::Min { 0x8000_0000u32 } else { 0 };
        let call = step.call.value("factor", reduce.factor).constant("FLIP", flip);
        let caps = &out.context().0.caps;
        step.call = rows.dispatch_segments(name, call, shared, caps)?;
        Ok(smallvec![step])
    }

    /// The part with some whole segments, or with some of the rows.
    fn part(&self, axis: usize, range: Range<usize>) -> Result<Option<Self>> {
        let Segments { reduce, shared } = self;
        let (along, range) = match axis.checked_sub(1) {
            Some(row) if row + 1 == reduce.x.shape().len() => return Ok(None),
            Some(row) => (row + usize::from(row >= reduce.axis), range),
            None => {
                let end = (range.end * shared.span).min(reduce.x.shape()[reduce.axis]);
                (reduce.axis, range.start * shared.span..end)
            }
        };
        let x = reduce.x.narrow(along, range.start, range.len())?;
        Ok(Some(Segments { reduce: Reduce { x, ..reduce.clone() }, shared: *shared }))
    }
}
