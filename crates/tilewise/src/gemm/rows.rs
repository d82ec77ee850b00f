//! Rows of A by index, and copies of A.

use super::Gemm;
use crate::quantized::QuantizedTensor;
use crate::take::Take;
use crate::tensor::Tensor;
use tilewise_core::{Error, Result};

impl Gemm {
    /// Takes the rows of A by index: A is \[rows,K\], and row i of the product is that of A's row
    /// `indices[i]`. There may be any number of indices, in any order. An index beyond A's rows
    /// stands for a row of zeros; its products with numbers of B that are not finite may be 0 or
    /// NaN. In a batch A has one matrix, whose rows serve all entries. The elements of a row must
    /// follow each other.
    ///
    /// `indices` is a vector of u32 at any place of a tensor; the device reads it when it computes.
    /// Most kernels read the rows from where they lie. If the best kernel for a product cannot, the
    /// rows are copied first (`copies_rows` of its plan). Sums have the same bits as if A had its
    /// rows in this order.
    ///
    /// ```
    /// use tilewise::{Context, Gemm, GroupEnds, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let x = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?; // two tokens
    /// let w = Tensor::upload(&ctx, &[1.0f32, 1.0, 10.0, 10.0], &[2, 2, 1])?; // two experts
    /// let tokens = Tensor::upload(&ctx, &[1u32, 0, 1], &[3])?; // the token of each row
    /// let ends = GroupEnds::upload(&ctx, &[1, 3])?; // row 0; rows 1 and 2
    /// let y = Gemm::grouped(&x, &w, &ends).gather_rows(&tokens).run()?;
    /// assert_eq!(y.read_blocking::<f32>()?, [7.0, 30.0, 70.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn gather_rows(mut self, indices: &Tensor) -> Self {
        self.rows = Some(indices.clone());
        self
    }

    /// Rows of the product, if A has `stored` rows.
    pub(super) fn count_of_rows(&self, stored: usize) -> Result<usize> {
        let Some(indices) = &self.rows else { return Ok(stored) };
        if self.is_turned() {
            return Err(Error::Unsupported("row indices beside groups of columns".into()));
        }
        indices.must_be_u32("row indices")?;
        if indices.shape().len() != 1 {
            let shape = indices.shape();
            return Err(Error::Shape(format!("row indices of shape {shape:?}, wanted a vector")));
        }
        match self.a.shape() {
            [_, _] if !self.vectors[0] => Ok(indices.elem_count()),
            shape => Err(Error::Shape(format!(
                "rows are gathered from a matrix A [rows,K]; it has {} dimensions",
                shape.len() - usize::from(self.vectors[0])
            ))),
        }
    }

    /// The copy of A with its columns in the order of the weights
    /// ([`QuantizedTensor::with_order`]), and the product that takes the copy.
    pub(super) fn of_ordered_columns(
        &self,
        w: &QuantizedTensor,
        columns: &Tensor,
    ) -> Result<(Take, Gemm)> {
        let a = Tensor::zeros(self.context(), self.a.dtype(), self.a.shape())?;
        let take = Take::new(&self.a).columns(columns);
        let b = QuantizedTensor { order: None, ..w.clone() }.into();
        Ok((take, Gemm { a, b, ..self.clone() }))
    }

    /// The copy of the indexed rows of A, and the product that takes the copy.
    pub(super) fn of_copied_rows(&self) -> Result<(Take, Gemm)> {
        let mut take = Take::new(&self.a).or_zeros();
        let mut shape = [0, 0];
        shape.copy_from_slice(self.a.shape());
        if let Some(indices) = &self.rows {
            take = take.rows(indices);
            shape[0] = indices.elem_count();
        }
        let a = Tensor::zeros(self.context(), self.a.dtype(), &shape)?;
        Ok((take, Gemm { a, rows: None, ..self.clone() }))
    }
}
