//! Exclusive scans: for each element, the sum of all elements before it.

use crate::ops::host::{Loop, Row};
use crate::ops::layout::{Axes, Sizes, of_type, rank};
use crate::ops::op::{Op, Output, only, sealed::Lower};
use crate::ops::rows::{Rows, counted};
use crate::ops::texts::{Function, SCAN, Step, Steps};
use crate::tensor::Tensor;
use smallvec::smallvec;
use std::ops::Range;
use tilewise_core::{DType, Error, Result};

/// The longest row that one workgroup scans alone.
const LONG: usize = 16 << 10;

/// Elements of a workgroup's segment of a longer row.
const SEGMENT: usize = 4 << 10;

/// The operation of [`exclusive_scan`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Scan {
    x: Tensor,
    total: bool,
}

/// For each element, the sum of all elements before it along the last axis of `x`, \[…, n\]; the
/// first sum is 0. `x` is u32, i32 or f32, and the output has the same type.
///
/// Integers wrap around. With n elements and ε = 2⁻²³ the error of floats is at most
/// (n/1024 + 40)·ε·Σ|x|, where Σ|x| sums the elements before.
///
/// ```
/// use tilewise::{Context, GroupEnds, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let counts = Tensor::upload(&ctx, &[1u32, 0, 2], &[3])?;
/// assert_eq!(ops::exclusive_scan(&counts).run()?.read_blocking::<u32>()?, [0, 1, 1]);
/// let starts = ops::exclusive_scan(&counts).with_total().run()?;
/// assert_eq!(starts.read_blocking::<u32>()?, [0, 1, 1, 3]);
/// let offsets = GroupEnds::from_tensor(&starts)?; // of three groups
/// # assert_eq!(offsets.count(), 4);
/// # Ok(())
/// # }
/// ```
pub fn exclusive_scan(x: &Tensor) -> Op<Scan> {
    Op::new(Scan { x: x.clone(), total: false })
}

impl Op<Scan> {
    /// Adds the sum of all elements at the end: \[…, n + 1\], as row pointers of CSR and
    /// [`GroupEnds`](crate::GroupEnds) have it.
    pub fn with_total(mut self) -> Self {
        self.kind.total = true;
        self
    }
}

impl Scan {
    fn on_host(&self, out: &Tensor) -> Result<()> {
        let (x, width) = (&self.x, out.shape().last().copied().unwrap_or(1));
        let axes =
            Axes { shape: x.shape().into(), strides: [x.strides().into(), out.strides().into()] };
        let rows = Rows::new("exclusive_scan", axes, x.shape().len() - 1)?;
        let (x, out) = (rows.view(x, 0), rows.view_of(out, 1, width));
        let is_float = x.dtype().is_float();
        Loop::new([Some(&x)], [&out]).run(|Row { inputs: [own], outs: [y], .. }| {
            if is_float {
                let mut sum = 0.0;
                for (at, y) in y.iter_mut().enumerate() {
                    *y = sum as f32;
                    sum += own.get(at).copied().map_or(0.0, f64::from);
                }
                return;
            }
            let mut sum = 0u32;
            for (at, y) in y.iter_mut().enumerate() {
                *y = f32::from_bits(sum);
                sum = sum.wrapping_add(own.get(at).map_or(0, |own| own.to_bits()));
            }
        })
    }
}

impl Lower for Scan {
    fn name(&self) -> &'static str {
        "exclusive_scan"
    }

    fn first(&self) -> &Tensor {
        &self.x
    }

    fn outputs(&self) -> Result<[Output; 1]> {
        let Scan { ref x, total } = *self;
        rank("exclusive_scan", "x", x)?;
        of_type("exclusive_scan: x is", x.dtype(), &[DType::U32, DType::I32, DType::F32])?;
        let mut shape = Sizes::from(x.shape());
        match shape.last_mut() {
            Some(length) => *length += usize::from(total),
            None => {
                let text = "exclusive_scan: x has shape [], wanted a last axis";
                return Err(Error::Shape(text.into()));
            }
        }
        only(shape, x.dtype())
    }

    fn takes(&self, dtype: DType, own: DType) -> bool {
        dtype == own
    }

    fn steps(&self, [out]: [&Tensor; 1]) -> Result<Steps> {
        scan("exclusive_scan", &self.x, out, self.total)
    }

    fn host(&self, [out]: [&Tensor; 1]) -> Option<Result<()>> {
        Some(self.on_host(out))
    }

    fn part(&self, axis: usize, range: Range<usize>) -> Result<Option<Self>> {
        let Scan { ref x, total } = *self;
        if axis + 1 == x.shape().len() {
            return Ok(None);
        }
        Ok(Some(Scan { x: x.narrow(axis, range.start, range.len())?, total }))
    }
}

/// The task of a kernel in a row.
struct Part<'a> {
    /// Elements of a segment.
    span: usize,
    /// Segments of a row.
    segments: usize,
    /// The sum before each segment.
    base: Option<&'a Tensor>,
    /// Whether the kernel gives only the sum of each segment.
    sums: bool,
    /// Whether the kernel adds the sum of all elements at the end.
    total: bool,
}

/// The kernels of a scan. For a long row they sum its segments, scan the sums, and scan each
/// segment from its sum on.
pub(in crate::ops) fn scan(
    operation: &str,
    x: &Tensor,
    out: &Tensor,
    total: bool,
) -> Result<Steps> {
    let length = x.shape().last().copied().unwrap_or_default();
    if length <= LONG {
        let whole = Part { span: length, segments: 1, base: None, sums: false, total };
        return Ok(smallvec![step(operation, x, out, &whole)?]);
    }
    let (span, segments) = (SEGMENT, length.div_ceil(SEGMENT));
    let mut shape = Sizes::from(x.shape());
    shape.pop();
    shape.push(segments);
    let zeros = || Tensor::zeros(x.context(), x.dtype(), &shape);
    let (sums, base) = (zeros()?, zeros()?);
    let first = Part { span, segments, base: None, sums: true, total: false };
    let last = Part { span, segments, base: Some(&base), sums: false, total };
    let mut steps: Steps = smallvec![step(operation, x, &sums, &first)?];
    steps.extend(scan(operation, &sums, &base, false)?);
    steps.push(step(operation, x, out, &last)?);
    Ok(steps)
}

fn step(operation: &str, x: &Tensor, out: &Tensor, part: &Part<'_>) -> Result<Step> {
    let length = x.shape().last().copied().unwrap_or_default();
    counted(operation, length)?;
    let strides = [x.strides().into(), out.strides().into()];
    let axes = Axes { shape: x.shape().into(), strides };
    let rows = Rows::new(operation, axes, x.shape().len() - 1)?;
    let width = out.shape().last().copied().unwrap_or_default();
    let (view, out) = (rows.view(x, 0), rows.view_of(out, 1, width));
    let base = part.base.map(|base| base.laid_out(&[base.elem_count()], &[1]));
    let before = if base.is_some() { "base" } else { "zero" };
    let inputs = [Some(&view), base.as_ref()];
    let mut step = SCAN.step(operation, Function::new("before", before), &inputs, &[&out])?;
    // Each segment counts as a row.
    let count = u32::try_from(part.segments).ok().and_then(|all| rows.count.checked_mul(all));
    let count = count.ok_or_else(|| {
        Error::Shape(format!(
            "overflow: {operation}: {} rows of {} segments: kernels count to {}",
            rows.count,
            part.segments,
            u32::MAX
        ))
    })?;
    let segments = Axes { shape: smallvec![part.span], strides: [smallvec![1]] };
    step.call = Rows { axes: segments, count }
        .dispatch(step.call, &x.context().0.caps)
        .dtype("T", x.dtype())
        .constant("SUMS", part.sums)
        .constant("TOTAL", part.total)
        .value("span", part.span as u32)
        .value("segments", part.segments as u32);
    Ok(step)
}
