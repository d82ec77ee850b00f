//! Copies, also between types, and the methods of `Tensor` that write.

use super::{Elementwise, each, host};
use crate::kernel::Constant;
use crate::ops::cut;
use crate::ops::layout::{Sizes, broadcast, of_type, rank};
use crate::ops::op::{Op, record};
use crate::ops::texts::Function;
use crate::recorder::Way;
use crate::tensor::{Element, Tensor};
use tilewise_core::{DType, Error, Result};

/// Copies the elements, to an output of any type and strides.
///
/// A float becomes a float of another type by one rounding. It becomes an integer by dropping the
/// fraction; numbers beyond the range become its nearest end (through OpenGL the driver decides),
/// and NaN may become any number. An integer becomes an f32 by one rounding, and a 16-bit float by
/// up to two. i32 and u32 become one another by their bits.
///
/// ```
/// use tilewise::{Context, DType, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::upload(&ctx, &[1.5f32, 2.0, 3.0, -4.0], &[2, 2])?;
/// let y = ops::copy(&x.t()).out_dtype(DType::I32).run()?;
/// assert_eq!(y.read_blocking::<i32>()?, [1, 3, 2, -4]);
/// # Ok(())
/// # }
/// ```
pub fn copy(x: &Tensor) -> Op<Elementwise> {
    Elementwise::any("copy", x)
}

pub(in crate::ops) const FILL: Function = Function::new("apply", "fill");

impl Tensor {
    /// Copies the elements to a new tensor of another type, as [`ops::copy`](crate::ops::copy)
    /// converts them. The work is submitted, not waited for.
    ///
    /// ```
    /// use half::f16;
    /// use tilewise::{Context, DType, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let x = Tensor::upload(&ctx, &[1.0f32, 0.1], &[2])?.cast(DType::F16)?;
    /// assert_eq!(x.read_blocking::<f16>()?, [1.0, 0.1].map(f16::from_f32));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`Op::run`](crate::ops::Op::run).
    pub fn cast(&self, dtype: DType) -> Result<Tensor> {
        copy(self).out_dtype(dtype).run()
    }

    /// The elements one after the other, row-major: this tensor if it is contiguous, otherwise a
    /// copy. The work is submitted, not waited for.
    ///
    /// ```
    /// use tilewise::{Context, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let x = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// let y = x.t().contiguous()?;
    /// assert_eq!(y.strides(), [2, 1]);
    /// assert_eq!(y.reshape(&[4])?.read_blocking::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`Op::run`](crate::ops::Op::run).
    pub fn contiguous(&self) -> Result<Tensor> {
        if self.is_contiguous() { Ok(self.clone()) } else { copy(self).run() }
    }

    /// Writes a number to every element; floats round it. The work is submitted, not waited for.
    ///
    /// ```
    /// use tilewise::{Context, DType, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let x = Tensor::zeros(&ctx, DType::F32, &[2, 2])?;
    /// x.slice(&[0..2, 1..2])?.fill(3.0)?;
    /// assert_eq!(x.read_blocking::<f32>()?, [0.0, 3.0, 0.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Misuse`](crate::Error) for a number that an integer type does not have; otherwise as
    /// [`Op::run_into`](crate::ops::Op::run_into).
    pub fn fill(&self, value: impl Into<f64>) -> Result<()> {
        let (value, dtype) = (value.into(), self.dtype());
        let range = match dtype {
            DType::I32 => Some(f64::from(i32::MIN)..=f64::from(i32::MAX)),
            DType::U32 => Some(0.0..=f64::from(u32::MAX)),
            DType::F32 | DType::F16 | DType::BF16 => None,
        };
        if range.is_some_and(|range| value.fract() != 0.0 || !range.contains(&value)) {
            return Err(Error::Misuse(format!("fill: {value} does not fit a tensor of {dtype}")));
        }
        rank("fill", "the tensor", self)?;
        self.writable()?;
        if self.overlaps_itself() {
            return Err(Error::Shape(format!(
                "strides: fill: elements of the tensor overlap: shape {:?} with strides {:?}",
                self.shape(),
                self.strides()
            )));
        }
        if self.elem_count() == 0 {
            return Ok(());
        }
        let value = match dtype {
            DType::I32 => Constant::U32(value as i32 as u32),
            DType::U32 => Constant::U32(value as u32),
            DType::F32 | DType::F16 | DType::BF16 => Constant::F32(value as f32),
        };
        let fill = |(): &(), [out]: [&Tensor; 1]| each("fill", FILL, &[], out, value);
        let part = |(): &(), _, _| Ok(Some(()));
        let steps = cut::steps(&(), [self], &fill, &part, &|(), _| 1, &|()| 1)?;
        self.context().submit_as("fill", |to| match to.way(self.context())? {
            Way::Run => host::fill(self, value),
            _ => record(to, &steps),
        })
    }

    /// Copies another tensor's elements into this one, converted as [`ops::copy`](crate::ops::copy)
    /// says, and broadcast as numpy does. The work is submitted, not waited for.
    ///
    /// ```
    /// use tilewise::{Context, DType, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let cache = Tensor::zeros(&ctx, DType::F32, &[3, 2])?;
    /// let row = Tensor::upload(&ctx, &[1.0f32, 2.0], &[2])?;
    /// cache.slice(&[1..2, 0..2])?.copy_from(&row)?;
    /// assert_eq!(cache.read_blocking::<f32>()?, [0.0, 0.0, 1.0, 2.0, 0.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`Op::run_into`](crate::ops::Op::run_into).
    pub fn copy_from(&self, source: &Tensor) -> Result<()> {
        let strides = broadcast(source, self.shape()).ok_or_else(|| {
            Error::Shape(format!(
                "copy_from: a tensor of shape {:?} for one of {:?}",
                source.shape(),
                self.shape()
            ))
        })?;
        copy(&source.laid_out(self.shape(), &strides)).run_into(self)
    }

    /// Joins tensors of one type along an axis; their other sizes must be equal. The result is
    /// row-major. The work is submitted, not waited for.
    ///
    /// ```
    /// use tilewise::{Context, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let a = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// let b = Tensor::upload(&ctx, &[5.0f32, 6.0], &[2, 1])?;
    /// let y = Tensor::concat(&[&a, &b], 1)?;
    /// assert_eq!(y.read_blocking::<f32>()?, [1.0, 2.0, 5.0, 3.0, 4.0, 6.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::Error) for no tensors, and for sizes or an axis that do not fit;
    /// `Unsupported` for different types; otherwise as [`Op::run`](crate::ops::Op::run).
    pub fn concat(tensors: &[&Tensor], axis: usize) -> Result<Tensor> {
        let Some(&first) = tensors.first() else {
            return Err(Error::Shape("concat: no tensors are given".into()));
        };
        let mut shape = Sizes::from(first.shape());
        let mut length = 0usize;
        for own in tensors {
            first.context().same(own.context(), "a tensor to be joined")?;
            of_type("concat: a tensor is", own.dtype(), &[first.dtype()])?;
            let size = own.shape().get(axis).copied().unwrap_or_default();
            if let Some(own) = shape.get_mut(axis) {
                *own = size;
            }
            let all = length.checked_add(size).filter(|_| axis < shape.len());
            length = all.filter(|_| own.shape() == &shape[..]).ok_or_else(|| {
                Error::Shape(format!(
                    "concat along axis {axis}: shapes {:?} and {:?}",
                    first.shape(),
                    own.shape()
                ))
            })?;
        }
        shape[axis] = length;
        let whole = Tensor::zeros(first.context(), first.dtype(), &shape)?;
        let mut start = 0;
        for own in tensors {
            let size = own.shape()[axis];
            whole.narrow(axis, start, size)?.copy_from(own)?;
            start += size;
        }
        Ok(whole)
    }

    /// Joins tensors of one shape along an axis by turns: the first entry of each, then the second
    /// of each. [`Gemm::glu`](crate::Gemm::glu) takes the columns of gate and up in this order.
    ///
    /// ```
    /// use tilewise::{Context, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let gate = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// let up = Tensor::upload(&ctx, &[5.0f32, 6.0, 7.0, 8.0], &[2, 2])?;
    /// let y = Tensor::interleave(&[&gate, &up], 0)?; // [4, 2]
    /// assert_eq!(y.read_blocking::<f32>()?, [1.0, 2.0, 5.0, 6.0, 3.0, 4.0, 7.0, 8.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`concat`](Self::concat); [`Shape`](crate::Error) for different shapes.
    pub fn interleave(tensors: &[&Tensor], axis: usize) -> Result<Tensor> {
        let Some(&first) = tensors.first() else {
            return Err(Error::Shape("interleave: no tensors are given".into()));
        };
        let mut shape = first.shape().to_vec();
        let fits = |own: &&Tensor| own.shape() == first.shape() && axis < first.shape().len();
        if let Some(other) = tensors.iter().copied().find(|own| !fits(own)) {
            let [own, other] = [first.shape(), other.shape()];
            let text = format!("interleave along axis {axis}: shapes {own:?} and {other:?}");
            return Err(Error::Shape(text));
        }
        let apart: Vec<Tensor> = tensors.iter().map(|own| own.with_axis(axis + 1)).collect();
        let whole = Self::concat(&apart.iter().collect::<Vec<_>>(), axis + 1)?;
        shape[axis] *= tensors.len();
        whole.reshape(&shape)
    }

    /// Writes elements from the host, row-major in the view's order. The work is submitted, not
    /// waited for.
    ///
    /// ```
    /// use tilewise::{Context, DType, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let x = Tensor::zeros(&ctx, DType::F32, &[2, 2])?;
    /// x.t().write(&[1.0f32, 2.0, 3.0, 4.0])?;
    /// assert_eq!(x.read_blocking::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Misuse`](crate::Error) when `T` is not the tensor's dtype, `Shape` for more or fewer
    /// elements than it has; otherwise as [`Op::run_into`](crate::ops::Op::run_into).
    pub fn write<T: Element>(&self, data: &[T]) -> Result<()> {
        if T::DTYPE != self.dtype() {
            return Err(Error::Misuse(format!(
                "writing {} elements to a tensor of {}",
                T::DTYPE,
                self.dtype()
            )));
        }
        self.copy_from(&Tensor::upload(self.context(), data, self.shape())?)
    }
}
