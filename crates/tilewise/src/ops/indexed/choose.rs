//! Choosing experts and weights of tokens.

mod host;

use crate::ops::layout::{Axes, Sizes, of_type};
use crate::ops::op::{Output, sealed::Lower};
use crate::ops::rows::Rows;
use crate::ops::texts::{CHOOSE, Function, Steps};
use crate::tensor::Tensor;
use smallvec::smallvec;
use std::ops::Range;
use tilewise_core::{DType, Error, Result};

/// The operation of [`Router::choose`](crate::moe::Router::choose).
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Choose {
    pub(crate) logits: Tensor,
    pub(crate) bias: Option<Tensor>,
    pub(crate) k: usize,
    /// How many groups the experts have, and from how many of them a token chooses.
    pub(crate) groups: [usize; 2],
    pub(crate) softmax: bool,
    pub(crate) normalize: bool,
    pub(crate) scale: f32,
}

impl Choose {
    /// The numbers of tokens and experts, once the logits are found to fit.
    pub(crate) fn sizes(&self) -> Result<[usize; 2]> {
        let Choose { ref logits, ref bias, k, groups: [n_group, topk_group], .. } = *self;
        of_type("logits are", logits.dtype(), &DType::FLOATS)?;
        let &[tokens, experts] = logits.shape() else {
            return Err(Error::Shape(format!(
                "logits have shape {:?}, wanted [tokens, experts]",
                logits.shape()
            )));
        };
        admitted(k, experts)?;
        if n_group == 0 || !experts.is_multiple_of(n_group) {
            return Err(Error::Shape(format!(
                "{n_group} groups of {experts} experts, wanted groups of equal size"
            )));
        }
        if topk_group > n_group {
            return Err(Error::Shape(format!(
                "{topk_group} of {n_group} groups for each token, more than there are"
            )));
        }
        if k > experts / n_group * topk_group {
            return Err(Error::Shape(format!(
                "{k} experts for each token, more than {topk_group} of {n_group} groups of \
                 {experts} experts have"
            )));
        }
        if let Some(bias) = bias {
            logits.context().same(bias.context(), "the bias")?;
            of_type("the bias of the choice is", bias.dtype(), &DType::FLOATS)?;
            if bias.shape() != [experts] {
                return Err(Error::Shape(format!(
                    "the bias of the choice has shape {:?}, wanted [{experts}]",
                    bias.shape()
                )));
            }
        }
        Ok([tokens, experts])
    }
}

/// `Shape` for k that is 0 or above the number of experts.
pub(crate) fn admitted(k: usize, experts: usize) -> Result<()> {
    match k {
        0 => {
            Err(Error::Shape(format!("0 of {experts} experts for each token, wanted one at least")))
        }
        _ if k > experts => Err(Error::Shape(format!(
            "{k} of {experts} experts for each token, more than there are"
        ))),
        _ => Ok(()),
    }
}

impl Lower<2> for Choose {
    fn name(&self) -> &'static str {
        "choose"
    }

    fn first(&self) -> &Tensor {
        &self.logits
    }

    fn outputs(&self) -> Result<[Output; 2]> {
        let [tokens, _] = self.sizes()?;
        let slots: Sizes = smallvec![tokens, self.k];
        Ok([("weights", slots.clone(), DType::F32), ("experts", slots, DType::U32)])
    }

    fn steps(&self, [weights, experts]: [&Tensor; 2]) -> Result<Steps> {
        let Choose { ref logits, ref bias, k, groups, softmax, normalize, scale } = *self;
        // All groups are as good as one.
        let [n_group, topk_group] = if groups[0] == groups[1] { [1; 2] } else { groups };
        let strides = [logits, weights, experts].map(|tensor| tensor.strides().into());
        let axes = Axes { shape: logits.shape().into(), strides };
        let rows = Rows::new("choose", axes, 1)?;
        let outs = [&rows.view_of(weights, 1, k), &rows.view_of(experts, 2, k)];
        let inputs = [Some(&rows.view(logits, 0)), bias.as_ref()];
        let mut step = CHOOSE.step("choose", Function::NONE, &inputs, &outs)?;
        let biased = bias.is_some();
        step.call = rows
            .dispatch_each(step.call, &logits.context().0.caps)
            .constant("FLIP", 0u32)
            .constant("SOFTMAX", softmax)
            .constant("NORMALIZE", normalize)
            .constant("BIASED", biased)
            .constant("OF_ALL", softmax && (biased || !normalize))
            .constant("GROUPS", n_group as u32)
            .constant("TOPK_GROUP", topk_group as u32)
            .value("k", k as u32)
            .value("scale", scale);
        Ok(smallvec![step])
    }

    fn host(&self, outs: [&Tensor; 2]) -> Option<Result<()>> {
        Some(self.on_host(outs))
    }

    fn part(&self, axis: usize, range: Range<usize>) -> Result<Option<Self>> {
        if axis > 0 {
            return Ok(None);
        }
        Ok(Some(Choose {
            logits: self.logits.narrow(0, range.start, range.len())?,
            ..self.clone()
        }))
    }
}
