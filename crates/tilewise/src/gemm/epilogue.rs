//! The epilogue: bias, activation, residual and gate.

use super::Gemm;
use crate::tensor::Tensor;
use tilewise_core::{Activation, Axis, Error, Result};

const ENDS: &str = "residual(), gated_by() and glu(): a product ends with one of them";

impl Gemm {
    /// Adds a vector \[N\] to every row. In a batched product it may be \[inner,N\] or
    /// \[outer,inner,N\], where a dimension of 1 serves all; in a grouped product \[groups,N\], in
    /// an [indexed](Self::indexed) product \[entries,N\]. It replaces the bias of an earlier call.
    pub fn bias(self, bias: &Tensor) -> Self {
        self.bias_along(bias, Axis::N)
    }

    /// Adds a vector along an axis: \[N\] to every row, or \[M\] to every column. Entries of a
    /// batch, or groups, may have a vector each, as in [`bias`](Self::bias): with \[groups,M\], row
    /// i gets number i of its group's vector. A product has one bias: this one replaces the bias of
    /// an earlier call; one along the other axis is [`Misuse`](crate::Error).
    pub fn bias_along(mut self, bias: &Tensor, axis: Axis) -> Self {
        let turned = if axis == Axis::M { Axis::N } else { Axis::M };
        let axis = if self.is_turned() { turned } else { axis };
        if self.bias.as_ref().is_some_and(|(_, earlier)| *earlier != axis) {
            self.clash = Some("two biases, along N and along M: a product has one");
        }
        self.bias = Some((bias.clone(), axis));
        self
    }

    /// The function applied after the bias. A [gated](Self::gated_by) product may have none.
    pub fn activation(mut self, activation: Activation) -> Self {
        self.activation = activation;
        self
    }

    /// Adds a matrix of the output's shape last, after the activation. A dimension of its batch may
    /// be 1, which serves all. It replaces the residual of an earlier call. A
    /// [gate](Self::gated_by) beside it is [`Misuse`](crate::Error).
    pub fn residual(self, residual: &Tensor) -> Self {
        self.last(residual, None)
    }

    /// A residual, or a gate with its function.
    fn last(mut self, matrix: &Tensor, gate: Option<Activation>) -> Self {
        let another = self.residual.is_some() && self.gate.is_some() != gate.is_some();
        if another || self.columns() > 1 {
            self.clash = Some(ENDS);
        }
        self.residual = Some(self.as_matrix(matrix).into_owned());
        self.gate = gate;
        self
    }

    /// Multiplies by a function of a matrix of the output's shape, last: C = function(gate) ·
    /// (alpha · A·B + beta · C + bias), element by element, in f32. The gate takes the place of a
    /// [residual](Self::residual): it may have the same shapes, and replaces the gate of an earlier
    /// call. A residual beside it is [`Misuse`](crate::Error).
    ///
    /// A gated layer needs no pass over its hidden rows:
    ///
    /// ```
    /// use tilewise::{Activation, Context, Gemm, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let x = Tensor::upload(&ctx, &[1.0f32, 2.0], &[1, 2])?;
    /// let gate = Tensor::upload(&ctx, &[3.0f32, -1.0, -3.0, 1.0], &[2, 2])?; // [F, H]
    /// let up = Tensor::upload(&ctx, &[10.0f32, 0.0, 0.0, 10.0], &[2, 2])?;
    /// let g = Gemm::new(&x, gate.t()).run()?; // 1, -1
    /// let h = Gemm::new(&x, up.t()).gated_by(&g, Activation::Relu).run()?;
    /// assert_eq!(h.read_blocking::<f32>()?, [10.0, 0.0]); // relu(x·gateᵀ) ∘ (x·upᵀ)
    /// # Ok(())
    /// # }
    /// ```
    pub fn gated_by(self, gate: &Tensor, function: Activation) -> Self {
        self.last(gate, Some(function))
    }

    /// Takes the columns of the product in pairs, of which the first is the gate of the second:
    /// C\[i,j\] = function(y\[i,2j\]) · y\[i,2j+1\], where y is alpha · A·B + bias. C has half as
    /// many columns. It is the gated linear unit ([GLU](https://arxiv.org/abs/1612.08083),
    /// [SwiGLU](https://arxiv.org/abs/2002.05202)) of a layer whose rows of weights are those of
    /// gate and up by turns ([`QuantizedTensor::interleave`], [`Tensor::interleave`]), in one
    /// product.
    ///
    /// ```
    /// use tilewise::{Activation, Context, Gemm, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let x = Tensor::upload(&ctx, &[1.0f32, 2.0], &[1, 2])?;
    /// let gate = Tensor::upload(&ctx, &[3.0f32, -1.0, -3.0, 1.0], &[2, 2])?; // [F, H]
    /// let up = Tensor::upload(&ctx, &[10.0f32, 0.0, 0.0, 10.0], &[2, 2])?;
    /// let gate_up = Tensor::interleave(&[&gate, &up], 0)?; // [2F, H]
    /// let h = Gemm::new(&x, gate_up.t()).glu(Activation::Relu).run()?; // [1, F]
    /// assert_eq!(h.read_blocking::<f32>()?, [10.0, 0.0]); // relu(x·gateᵀ) ∘ (x·upᵀ)
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A bias has a number for each column of the product. Beside it [`beta`](Self::beta),
    /// [`residual`](Self::residual), [`gated_by`](Self::gated_by), a list and groups along N are
    /// errors, and so is an odd number of columns. No kernel in MSL takes it.
    ///
    /// [`QuantizedTensor::interleave`]: crate::QuantizedTensor::interleave
    pub fn glu(mut self, function: Activation) -> Self {
        if self.residual.is_some() {
            self.clash = Some(ENDS);
        }
        self.gate = Some(function);
        self
    }

    /// Columns of the product that make one of C.
    pub(super) fn columns(&self) -> usize {
        if self.gate.is_some() && self.residual.is_none() { 2 } else { 1 }
    }

    /// The function after the bias, or the function of the gate.
    ///
    /// # Errors
    /// [`Misuse`](crate::Error) if there are both, and for other calls that exclude each other.
    pub(super) fn function(&self) -> Result<Activation> {
        if let Some(clash) = self.clash {
            return Err(Error::Misuse(clash.into()));
        }
        if self.columns() > 1 && self.is_turned() {
            let why =
                "glu() with groups along N: its pairs are columns of C, and are divided there";
            return Err(Error::Unsupported(why.into()));
        }
        match (self.gate, self.activation) {
            (Some(gate), Activation::None) => Ok(gate),
            (None, own) => Ok(own),
            (Some(gate), own) => Err(Error::Misuse(format!(
                "activation() is {}, and gated_by() or glu() has {}: a gated product has the \
                 function of its gate alone",
                own.name(),
                gate.name()
            ))),
        }
    }
}
