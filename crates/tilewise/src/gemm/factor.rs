//! Alpha and beta: numbers of the host, or one element of a tensor each.

use super::Gemm;
use super::lower::{Own, Step};
use crate::gpu::Written;
use crate::recorder::Recorder;
use crate::right::RightOperand;
use crate::take::Take;
use crate::tensor::Tensor;
use tilewise_core::{DType, Error, Result};

/// Alpha or beta: a number, or a tensor of one element.
#[derive(Clone, Debug)]
pub(super) enum Factor {
    Host(f32),
    Device(Tensor),
    /// An alpha that was multiplied by the factor of the weights.
    Whole(Tensor),
}

impl Factor {
    /// The factor's number in a problem. A plan sees only whether it is 0.
    pub(super) fn planned(&self) -> f32 {
        if let Factor::Host(number) = self { *number } else { 1.0 }
    }

    fn tensor(&self) -> Option<&Tensor> {
        match self {
            Factor::Host(_) => None,
            Factor::Device(tensor) | Factor::Whole(tensor) => Some(tensor),
        }
    }
}

impl Gemm {
    /// Factor of the product; 1 by default. With 0 the product is computed all the same: NaN or an
    /// infinity in A or B gives NaN, where BLAS reads neither. With a [`beta`](Self::beta) of 0, in
    /// contrast, the old content does not count.
    pub fn alpha(mut self, alpha: f32) -> Self {
        self.factors[0] = Factor::Host(alpha);
        self
    }

    /// Like [`alpha`](Self::alpha), with a tensor of one f32 that the device reads when it
    /// computes: a rate or a scale that a kernel has computed stays on the device. The tensor may
    /// lie in any buffer, also in the output's. Plans and explanations show 1 in its place,
    /// times the factor of the weights.
    ///
    /// ```
    /// use tilewise::{Context, Gemm, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let x = Tensor::upload(&ctx, &[1.0f32, 2.0], &[1, 2])?;
    /// let w = Tensor::upload(&ctx, &[3.0f32, 4.0], &[2, 1])?;
    /// let scale = ctx.matmul(&x, &x.t())?; // 5
    /// let y = Gemm::new(&x, &w).alpha_tensor(&scale).run()?;
    /// assert_eq!(y.read_blocking::<f32>()?, [55.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn alpha_tensor(mut self, alpha: &Tensor) -> Self {
        self.factors[0] = Factor::Device(alpha.view());
        self
    }

    /// Factor of the output's old content, 0 by default. With 0 the old content is never read. Use
    /// it with [`run_into`](Self::run_into) and the like, or with [`add_to`](Self::add_to).
    ///
    /// In place, `beta(1.0)` adds a product to what is there, such as the residual stream of a
    /// transformer. `alpha(-rate).beta(1.0)` is a step of gradient descent:
    ///
    /// ```
    /// use tilewise::{Context, Gemm, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let h = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?; // [batch, in]
    /// let d = Tensor::upload(&ctx, &[1.0f32, -1.0], &[2, 1])?; // slopes [batch, out]
    /// let w = Tensor::upload(&ctx, &[5.0f32, 5.0], &[2, 1])?;
    /// Gemm::new(&h.t(), &d).alpha(-0.5).beta(1.0).run_into(&w)?; // w ← w − 0.5 · hᵀ·d
    /// assert_eq!(w.read_blocking::<f32>()?, [6.0, 6.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn beta(mut self, beta: f32) -> Self {
        self.factors[1] = Factor::Host(beta);
        self
    }

    /// Like [`beta`](Self::beta), with a tensor of one f32, as in
    /// [`alpha_tensor`](Self::alpha_tensor). If its number is 0, the old output is not read: a NaN
    /// there does not show.
    pub fn beta_tensor(mut self, beta: &Tensor) -> Self {
        self.factors[1] = Factor::Device(beta.view());
        self
    }

    fn named_factors(&self) -> [(&'static str, &Factor); 2] {
        let [alpha, beta] = &self.factors;
        [("alpha", alpha), ("beta", beta)]
    }

    /// Checks the tensors of factors.
    pub(super) fn check_factors(&self) -> Result<()> {
        for (name, factor) in self.named_factors() {
            let Some(tensor) = factor.tensor() else { continue };
            self.context().same(tensor.context(), name)?;
            if tensor.dtype() != DType::F32 || tensor.elem_count() != 1 {
                let (dtype, shape) = (tensor.dtype(), tensor.shape());
                return Err(Error::Shape(format!(
                    "{name} is {dtype} of shape {shape:?}, wanted one element of f32"
                )));
            }
        }
        Ok(())
    }

    /// The factor that the weights B have for the whole matrix.
    pub(super) fn own_factor(&self) -> f32 {
        if let RightOperand::Quantized(w) = &self.b { w.factor } else { 1.0 }
    }

    /// If alpha lies on the device and the weights have a factor, records their product, and gives
    /// the product of matrices by that.
    pub(super) fn of_whole_alpha(&self, to: &mut Recorder<'_>) -> Result<Option<Gemm>> {
        let Factor::Device(alpha) = &self.factors[0] else { return Ok(None) };
        let own = self.own_factor();
        if own == 1.0 {
            return Ok(None);
        }
        let context = self.context();
        let whole = Tensor::zeros(context, DType::F32, &[1, 1])?;
        let own = Tensor::upload(context, &[own], &[1, 1])?;
        Gemm::new(&alpha.reshape(&[1, 1])?, &own).record_onto(to, &whole)?;
        let [_, beta] = self.factors.clone();
        Ok(Some(Gemm { factors: [Factor::Whole(whole), beta], ..self.clone() }))
    }

    /// Copies the factors that lie in the output `c`, before steps write to it: each step reads the
    /// factors anew.
    pub(super) fn copy_factors(
        &self,
        to: &mut Recorder<'_>,
        c: &Tensor,
        steps: &mut [Step<'_>],
    ) -> Result<()> {
        self.check_factors()?;
        for (at, factor) in self.factors.iter().enumerate() {
            let Some(own) = factor.tensor() else { continue };
            if c.shares_bytes(own)?.is_some() {
                let apart = Tensor::zeros(c.context(), DType::F32, &[1, 1])?;
                Take::new(&own.reshape(&[1, 1])?).record(to, &apart)?;
                steps.iter_mut().for_each(|step| {
                    if let Own::Made(gemm) = &mut step.gemm {
                        gemm.factors[at] = Factor::Device(apart.clone());
                    }
                });
            }
        }
        Ok(())
    }

    /// The place of each factor that lies on a GPU.
    pub(super) fn written(&self) -> [Option<Written<'_>>; 2] {
        self.named_factors().map(|(_, factor)| {
            let (operand, bound) = factor.tensor()?.vector([0; 4]);
            Some((operand, bound.on_device()?))
        })
    }

    /// Alpha and beta on the CPU executor; `planned` are the problem's numbers.
    pub(super) fn numbers(&self, planned: [f32; 2]) -> Result<[f32; 2]> {
        let mut numbers = planned;
        for (number, (_, factor)) in numbers.iter_mut().zip(self.named_factors()) {
            if let Some(tensor) = factor.tensor() {
                let (operand, bound) = tensor.vector([0; 4]);
                *number = f32::from_bits(bound.storage.host()?[operand.offset as usize]);
            }
        }
        Ok(numbers)
    }
}
