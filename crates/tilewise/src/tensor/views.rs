//! Views: other shapes, strides and offsets on the same storage.

use super::{Sizes, Tensor, count, packed};
use crate::tensor::storage::PackedCopy;
use smallvec::{SmallVec, smallvec};
use std::ops::Range;
use tilewise_core::{Error, Result};

impl Tensor {
    /// The transpose: a view with the last two dimensions exchanged. A tensor of fewer dimensions
    /// is its own transpose. The transpose of the transpose of a [prepared
    /// tensor](crate::Prepared) uses the copy again.
    #[must_use = "a view changes nothing"]
    pub fn t(&self) -> Tensor {
        let mut view = self.clone();
        if let rank @ 2.. = view.shape.len() {
            view.shape.swap(rank - 2, rank - 1);
            view.strides.swap(rank - 2, rank - 1);
            view.turned = !view.turned;
        }
        view
    }

    /// The view with two dimensions exchanged.
    ///
    /// ```
    /// use tilewise::{Context, DType, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let x = Tensor::zeros(&Context::cpu(), DType::F32, &[2, 7, 3, 5])?;
    /// assert_eq!(x.transpose(1, 2)?.shape(), [2, 3, 7, 5]); // a row of heads each
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::Error) when there is no such dimension.
    pub fn transpose(&self, i: usize, j: usize) -> Result<Tensor> {
        let mut axes: Sizes = (0..self.shape.len()).collect();
        if i.max(j) >= axes.len() {
            return Err(self.refused(
                "transpose",
                &[i, j],
                format_args!("it has {}", self.shape.len()),
            ));
        }
        axes.swap(i, j);
        self.permute(&axes)
    }

    /// The view with its dimensions in another order: dimension `i` of it is dimension `axes[i]` of
    /// this one.
    ///
    /// ```
    /// use tilewise::{Context, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let x = Tensor::upload(&Context::cpu(), &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[1, 2, 3])?;
    /// let y = x.permute(&[2, 0, 1])?;
    /// assert_eq!(y.shape(), [3, 1, 2]);
    /// assert_eq!(y.read_blocking::<f32>()?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::Error) unless `axes` names every dimension once.
    pub fn permute(&self, axes: &[usize]) -> Result<Tensor> {
        let rank = self.shape.len();
        if axes.len() != rank || !(0..rank).all(|axis| axes.contains(&axis)) {
            return Err(self.refused(
                "permute",
                axes,
                format_args!("each of its {rank} is wanted once"),
            ));
        }
        let mut view = self.view();
        for (to, &from) in axes.iter().enumerate() {
            view.shape[to] = self.shape[from];
            view.strides[to] = self.strides[from];
        }
        Ok(view)
    }

    /// The view with a dimension of size 1 before dimension `axis`, or behind the last.
    ///
    /// ```
    /// use tilewise::{Context, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let x = Tensor::upload(&Context::cpu(), &[1.0f32, 2.0], &[2])?;
    /// assert_eq!(x.unsqueeze(0)?.shape(), [1, 2]);
    /// assert_eq!(x.unsqueeze(1)?.shape(), [2, 1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::Error) when `axis` is beyond the number of dimensions.
    pub fn unsqueeze(&self, axis: usize) -> Result<Tensor> {
        if axis > self.shape.len() {
            return Err(self.refused(
                "unsqueeze",
                &[axis],
                format_args!("the last possible is {}", self.shape.len()),
            ));
        }
        Ok(self.with_axis(axis))
    }

    /// Like [`unsqueeze`](Self::unsqueeze), for an `axis` that is not beyond the number of
    /// dimensions.
    pub(crate) fn with_axis(&self, axis: usize) -> Tensor {
        let mut view = self.view();
        view.shape.insert(axis, 1);
        view.strides.insert(axis, 1);
        view
    }

    /// The view without dimension `axis`, which must have size 1.
    ///
    /// ```
    /// use tilewise::{Context, DType, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let x = Tensor::zeros(&Context::cpu(), DType::F32, &[3, 1, 2])?;
    /// assert_eq!(x.squeeze(1)?.shape(), [3, 2]);
    /// assert!(x.squeeze(0).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::Error) when there is no such dimension, or its size is not 1.
    pub fn squeeze(&self, axis: usize) -> Result<Tensor> {
        if self.shape.get(axis) != Some(&1) {
            return Err(self.refused("squeeze", &[axis], format_args!("one of size 1 is wanted")));
        }
        let mut view = self.view();
        view.shape.remove(axis);
        view.strides.remove(axis);
        Ok(view)
    }

    /// The view with dimensions of size 1 repeated, by a stride of 0, and new dimensions before the
    /// first: NumPy's rule. It cannot be the output of a product or kernel, because its elements
    /// share places.
    ///
    /// ```
    /// use tilewise::{Context, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let x = Tensor::upload(&Context::cpu(), &[1.0f32, 2.0], &[2, 1])?;
    /// let y = x.broadcast_to(&[2, 2, 3])?;
    /// assert_eq!(y.strides(), [0, 1, 0]);
    /// let entry = [1.0, 1.0, 1.0, 2.0, 2.0, 2.0];
    /// assert_eq!(y.read_blocking::<f32>()?, [entry, entry].concat());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::Error) when a dimension is neither 1 nor the one wanted.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Tensor> {
        let refused =
            || Error::Shape(format!("a tensor of shape {:?} broadcast to {shape:?}", self.shape));
        let new = shape.len().checked_sub(self.shape.len()).ok_or_else(refused)?;
        let mut strides: Sizes = smallvec![0; shape.len()];
        for (axis, (&own, &stride)) in self.shape.iter().zip(&self.strides).enumerate() {
            match shape[new + axis] {
                size if size == own => strides[new + axis] = stride,
                _ if own == 1 => {}
                _ => return Err(refused()),
            }
        }
        self.strided(shape, &strides)
    }

    /// The view of any elements of the storage: the element at index (i, j, …) lies `offset +
    /// i·strides[0] + j·strides[1] + …` elements behind this view's first. The new view may reach
    /// outside this view, but not outside the storage. On a GPU the storage ends with its buffer,
    /// which may have a few bytes of padding.
    ///
    /// ```
    /// use tilewise::{Context, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let x = Tensor::upload(&Context::cpu(), &[1.0f32, 2.0, 3.0, 4.0, 5.0], &[5])?;
    /// let windows = x.as_strided(&[3, 2], &[1, 1], 1)?;
    /// assert_eq!(windows.read_blocking::<f32>()?, [2.0, 3.0, 3.0, 4.0, 4.0, 5.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::Error) when `shape` and `strides` differ in length, or the view would reach
    /// beyond the storage, or end in a word of 4 bytes that the end of the buffer cuts off.
    pub fn as_strided(&self, shape: &[usize], strides: &[usize], offset: usize) -> Result<Tensor> {
        let first = self.offset.checked_add(offset);
        let first = first.ok_or_else(|| {
            Error::Shape(format!("overflow: offset {offset} from element {}", self.offset))
        })?;
        let view = Tensor { offset: first, ..self.view() }.strided(shape, strides)?;
        // An empty view keeps its offset, as one of `slice` does.
        let offset = if view.elem_count() == 0 { self.offset } else { first };
        Ok(Tensor { offset, ..view })
    }

    /// The view with this shape and these strides from the first element on, if it lies inside the
    /// storage.
    pub(super) fn strided(&self, shape: &[usize], strides: &[usize]) -> Result<Tensor> {
        if shape.len() != strides.len() {
            return Err(Error::Shape(format!(
                "shape {shape:?} and strides {strides:?} differ in length"
            )));
        }
        let size = self.dtype.bytes();
        // Whoever reads the elements needs memory for all of them.
        (count(shape)? as u64)
            .checked_mul(size)
            .and_then(|bytes| isize::try_from(bytes).ok())
            .ok_or_else(|| Error::Shape(format!("overflow: a {} view of {shape:?}", self.dtype)))?;
        let view = Tensor { shape: shape.into(), strides: strides.into(), ..self.view() };
        // Bindings and copies go by words of 4 bytes.
        let len = match self.storage.is_on_gpu() {
            true => self.storage.bytes() / 4 * (4 / size),
            false => self.storage.bytes() / size,
        };
        match view.end()? {
            needed if needed <= len => Ok(view),
            needed if needed <= self.storage.bytes() / size => Err(Error::Shape(format!(
                "misaligned: the last element lies in a word of 4 bytes that is cut off by the end \
                 of its buffer of {} bytes: kernels read whole words, so make it {}",
                self.storage.bytes(),
                self.storage.bytes().next_multiple_of(4)
            ))),
            needed => Err(Error::buffer_too_small("tensor", needed, len)),
        }
    }

    /// The view of a range along each dimension.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) when there are more or fewer ranges than dimensions or one exceeds
    /// its dimension.
    pub fn slice(&self, ranges: &[Range<usize>]) -> Result<Tensor> {
        let mut both = ranges.iter().zip(&self.shape);
        let wrong = both.find(|(range, size)| range.start > range.end || range.end > **size);
        let why = match wrong {
            Some((range, size)) => format!("{range:?} is not within 0..{size}"),
            None if ranges.len() != self.shape.len() => {
                format!("{} ranges for {} dimensions", ranges.len(), self.shape.len())
            }
            None => String::new(),
        };
        if !why.is_empty() {
            let shape = &self.shape;
            let text = format!("slice {ranges:?} of a tensor of shape {shape:?}: {why}");
            return Err(Error::Shape(text));
        }
        let mut view = self.view();
        for (axis, range) in ranges.iter().enumerate() {
            view.shape[axis] = range.len();
        }
        // An empty view keeps its offset: nothing of it is ever touched, and the start may lie
        // beyond the storage.
        if view.elem_count() > 0 {
            view.offset += ranges
                .iter()
                .zip(&self.strides)
                .map(|(range, stride)| range.start * stride)
                .sum::<usize>();
        }
        Ok(view)
    }

    /// The view of `len` places from `start` on along one dimension, and of all places along the
    /// others.
    ///
    /// ```
    /// use tilewise::{Context, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let x = Tensor::upload(&Context::cpu(), &[0u32, 1, 2, 3, 4, 5], &[2, 3])?;
    /// assert_eq!(x.narrow(1, 1, 2)?.read_blocking::<u32>()?, [1, 2, 4, 5]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::Error) for an axis or places that the tensor does not have.
    pub fn narrow(&self, axis: usize, start: usize, len: usize) -> Result<Tensor> {
        let mut ranges: SmallVec<[Range<usize>; 4]> = self.shape.iter().map(|&n| 0..n).collect();
        match (ranges.get_mut(axis), start.checked_add(len)) {
            (Some(range), Some(end)) => *range = start..end,
            _ => {
                return Err(Error::Shape(format!(
                    "narrow({axis}, {start}, {len}) of a tensor of shape {:?}",
                    self.shape
                )));
            }
        }
        self.slice(&ranges)
    }

    /// The view of the elements, in row-major order, under another shape. Dimensions are split, and
    /// joined if their strides allow it.
    ///
    /// ```
    /// use tilewise::{Context, DType, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let qkv = Tensor::zeros(&Context::cpu(), DType::F32, &[2, 5, 3 * 4 * 8])?;
    /// let k = qkv.slice(&[0..2, 0..5, 32..64])?; // rows with gaps
    /// assert_eq!(k.reshape(&[2, 5, 4, 8])?.strides(), [480, 96, 8, 1]);
    /// assert_eq!(k.reshape(&[10, 32])?.strides(), [96, 1]);
    /// assert!(k.reshape(&[2, 160]).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::Error) when the number of elements differs, or elements would have to be
    /// copied.
    pub fn reshape(&self, shape: &[usize]) -> Result<Tensor> {
        if count(shape)? != self.elem_count() {
            return Err(Error::Shape(format!(
                "reshape of {:?} with {} elements to {shape:?} with {}",
                self.shape,
                self.elem_count(),
                count(shape)?
            )));
        }
        let strides = self.strides_as(shape).ok_or_else(|| {
            Error::Shape(format!(
                "strides: reshape of a view of shape {:?} with strides {:?} to {shape:?}, which \
                 takes a row-major copy: contiguous()",
                self.shape, self.strides
            ))
        })?;
        Ok(Tensor { shape: shape.into(), strides, ..self.view() })
    }

    /// The strides of the elements under another shape with equally many; none if no strides fit.
    fn strides_as(&self, shape: &[usize]) -> Option<Sizes> {
        let mut strides = packed(shape);
        if self.is_contiguous() {
            return Some(strides);
        }
        // From the last dimension on, join dimensions at one stride into a run, and split the run
        // by the new shape.
        let mut axis = shape.len();
        let mut own = self.shape.iter().zip(&self.strides).rev().filter(|(size, _)| **size != 1);
        let mut next = own.next();
        while let Some((&size, &step)) = next {
            let mut run = size;
            next = own.next();
            while let Some((&size, &stride)) = next
                && step.checked_mul(run) == Some(stride)
            {
                run *= size;
                next = own.next();
            }
            let mut stride = step;
            while run > 1 {
                axis = axis.checked_sub(1)?;
                if !run.is_multiple_of(shape[axis]) {
                    return None;
                }
                strides[axis] = stride;
                run /= shape[axis];
                stride = stride.saturating_mul(shape[axis]);
            }
        }
        // The remaining dimensions have size 1.
        Some(strides)
    }

    /// The whole tensor, without its packed copy.
    pub(crate) fn view(&self) -> Tensor {
        Tensor { copy: None, turned: false, ..self.clone() }
    }

    /// The copy of a prepared tensor, unless this is its transpose.
    pub(crate) fn own_copy(&self) -> Option<&PackedCopy> {
        self.copy.as_deref().filter(|_| !self.turned)
    }

    fn refused(&self, view: &str, axes: &[usize], why: std::fmt::Arguments<'_>) -> Error {
        let shape = &self.shape;
        Error::Shape(format!("{view} of dimensions {axes:?} of a tensor of shape {shape:?}: {why}"))
    }
}
