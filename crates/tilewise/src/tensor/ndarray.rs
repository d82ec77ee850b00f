//! Arrays of the crate ndarray.

use super::{Element, Tensor};
use crate::context::Context;
use crate::host::memory;
use ndarray::{ArrayD, ArrayRef, Dimension, IxDyn};
use tilewise_core::{Error, Result};

impl Tensor {
    /// A new tensor with a copy of an array, or of a view of one, in any layout. The tensor is
    /// row-major, in the array's order. Needs the feature `ndarray`.
    ///
    /// ```
    /// use ndarray::array;
    /// use tilewise::{Context, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let x = Tensor::from_ndarray(&ctx, &array![[1.0f32, 2.0], [3.0, 4.0]])?;
    /// let y = ctx.matmul(&x, &x.t())?.to_ndarray_blocking::<f32>()?;
    /// assert_eq!(y, array![[5.0, 11.0], [11.0, 25.0]].into_dyn());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`upload`](Self::upload).
    pub fn from_ndarray<T: Element, D: Dimension>(
        context: &Context,
        array: &ArrayRef<T, D>,
    ) -> Result<Self> {
        match array.as_slice() {
            Some(elements) => Self::upload(context, elements, array.shape()),
            None => {
                let mut elements: Vec<T> = memory::room(array.len())?;
                elements.extend(array.iter());
                Self::upload(context, &elements, array.shape())
            }
        }
    }

    /// Reads the elements as an array of the tensor's shape, row-major in the view's order. Never
    /// blocks. ndarray's `into_dimensionality` turns it into an `Array2` and the like. Needs the
    /// feature `ndarray`.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read); [`Shape`](crate::Error) for a shape that no array has.
    pub async fn to_ndarray<T: Element>(&self) -> Result<ArrayD<T>> {
        let elements = self.read().await?;
        ArrayD::from_shape_vec(IxDyn(self.shape()), elements).map_err(|error| {
            Error::Shape(format!("overflow: an array of {:?}: {error}", self.shape()))
        })
    }

    /// Like [`to_ndarray`](Self::to_ndarray), blocking.
    ///
    /// # Errors
    /// The errors of [`to_ndarray`](Self::to_ndarray).
    #[cfg(not(target_family = "wasm"))]
    pub fn to_ndarray_blocking<T: Element>(&self) -> Result<ArrayD<T>> {
        pollster::block_on(self.to_ndarray())
    }
}
