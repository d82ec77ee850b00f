//! Experts and weights of tokens.

use super::layout::{Axes, Sizes};
use super::pair::{Pair, sealed::Plan};
use super::rows::Rows;
use super::texts::{CHOOSE, Function, Steps};
use crate::moe::{Router, Scoring};
use crate::tensor::Tensor;
use smallvec::smallvec;
use tilewise_core::{DType, Result};

/// The operation of [`Router::choose`].
#[derive(Clone, Debug)]
pub struct Choose {
    router: Router,
    logits: Tensor,
}

/// Weights and experts, as [`Router::choose`] says.
pub(crate) fn choose(router: &Router, logits: &Tensor) -> Pair<Choose> {
    Pair { kind: Choose { router: router.clone(), logits: logits.clone() } }
}

impl Plan for Choose {
    fn name(&self) -> &'static str {
        "choose"
    }

    fn first(&self) -> &Tensor {
        &self.logits
    }

    fn outputs(&self) -> Result<[(&'static str, Sizes, DType); 2]> {
        let [tokens, _] = self.router.sizes(&self.logits)?;
        let slots: Sizes = smallvec![tokens, self.router.top_k()];
        Ok([("weights", slots.clone(), DType::F32), ("experts", slots, DType::U32)])
    }

    fn steps(&self, [weights, experts]: [&Tensor; 2]) -> Result<Steps> {
        let Choose { router, logits } = self;
        let strides = [logits, weights, experts].map(|tensor| tensor.strides().into());
        let axes = Axes { shape: logits.shape().into(), strides };
        let (rows, k) = (Rows::new("choose", axes, 1)?, router.top_k());
        let outs = [&rows.view_of(weights, 1, k), &rows.view_of(experts, 2, k)];
        let inputs = [Some(&rows.view(logits, 0)), router.biases()];
        let function = Function::new("const FLIP = 0u;\n");
        let mut step = CHOOSE.step("choose", function, &inputs, &outs)?;
        let (softmax, normalize) = (router.scores() == Scoring::Softmax, router.normalizes());
        let biased = router.biases().is_some();
        step.call = rows
            .dispatch_each(step.call, logits.context().caps())
            .constant("SOFTMAX", softmax)
            .constant("NORMALIZE", normalize)
            .constant("BIASED", biased)
            .constant("OF_ALL", softmax && (biased || !normalize))
            .value("k", k as u32);
        Ok(smallvec![step])
    }
}
