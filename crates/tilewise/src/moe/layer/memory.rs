//! The sizes of a call, and its memory.

use super::MoeLayer;
use crate::moe::routes::{Routes, chosen_sizes};
use crate::moe::routing::Routing;
use crate::moe::slots::Slots;
use crate::moe::weights::{Gated, Hidden};
use crate::ops::of_type;
use crate::tensor::Tensor;
use tilewise_core::{DType, Error, Result};

/// The shape of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) tokens: usize,
    pub(super) experts: usize,
    pub(super) k: usize,
    pub(super) h: usize,
    pub(super) f: usize,
    /// F of the shared experts.
    pub(super) shared: Option<usize>,
    /// Whether gate and up are one product: for the experts, and for the shared experts.
    pub(super) fused: [bool; 2],
    pub(super) dtype: DType,
}

/// Memory for calls of up to `sizes.tokens` tokens.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    pub(super) sizes: Sizes,
    pub(super) routing: Routing,
    pub(super) slots: Slots,
    /// A row for each slot: first the experts' input, if that is copied, then their output.
    pub(super) rows: Tensor,
    pub(super) hidden: Hidden,
    pub(super) shared: Option<Hidden>,
}

impl MoeLayer {
    /// The sizes of a call, once all operands are found to fit.
    pub(super) fn sizes(&self, x: &Tensor, routes: &Routes) -> Result<Sizes> {
        let (context, dtype) = (x.context(), x.dtype());
        of_type("x is", dtype, &DType::FLOATS)?;
        let &[tokens, h] = x.shape() else {
            return Err(Error::Shape(format!("x has shape {:?}, wanted [T, H]", x.shape())));
        };
        let (rows, experts, k) = match routes {
            Routes::Logits(logits) => {
                context.same(logits.context(), "the logits")?;
                let [rows, experts] = self.router.sizes(logits)?;
                let (own, all_agree) = self.experts.count();
                if own != 0 && own != experts && all_agree {
                    return Err(Error::Shape(format!(
                        "logits have shape {:?} and {}, wanted a column for each expert: \
                         [T, {own}]",
                        logits.shape(),
                        self.experts.first_shown()
                    )));
                }
                (rows, (experts, "the logits have columns for"), self.router.top_k())
            }
            Routes::Chosen { weights, experts } => {
                let [rows, k] = chosen_sizes(context, weights, experts)?;
                (rows, (self.experts.count().0, "other weights are of"), k)
            }
        };
        let [f, own] = self.experts.sizes("the experts", context, Some(experts), h)?;
        let shared = match &self.shared {
            Some(shared) => {
                let [f, own] = shared.sizes("the shared experts", context, None, h)?;
                fits(x, own, "the shared experts")?;
                Some(f)
            }
            None => None,
        };
        fits(x, own, "the experts")?;
        if rows != tokens {
            let (name, shape) = match routes {
                Routes::Logits(logits) => ("logits", logits.shape()),
                Routes::Chosen { weights, .. } => ("weights of tokens", weights.shape()),
            };
            return Err(Error::Shape(format!(
                "{name} have shape {shape:?} and x {:?}, wanted one row of each for a token",
                x.shape()
            )));
        }
        let fused = [self.experts.is_fused(), self.shared.as_ref().is_some_and(Gated::is_fused)];
        let (experts, _) = experts;
        Ok(Sizes { tokens, experts, k, h, f, shared, fused, dtype })
    }

    /// Memory for a call: the kept memory if it fits, or new memory, which is kept instead.
    pub(super) fn memory(
        &self,
        kept: &mut Option<Memory>,
        x: &Tensor,
        sizes: Sizes,
    ) -> Result<Memory> {
        let Sizes { tokens, experts, k, h, f, shared, dtype, .. } = sizes;
        let alike = |memory: &&Memory| {
            let context = memory.rows.context().same(x.context(), "");
            Sizes { tokens: memory.sizes.tokens, ..sizes } == memory.sizes
                && memory.sizes.tokens >= tokens
                && context.is_ok()
        };
        if let Some(memory) = kept.as_ref().filter(alike) {
            return memory.narrow(tokens);
        }
        // The old memory goes first, so both are never there at once.
        *kept = None;
        let context = x.context();
        let routing = Routing::with_room(context, tokens, experts, k)?;
        let count = routing.order.elem_count();
        let memory = Memory {
            sizes,
            routing,
            slots: Slots::new(context, tokens, experts, k)?,
            rows: Tensor::zeros(context, dtype, &[count, h])?,
            hidden: self.experts.hidden(context, dtype, [count, f])?,
            shared: match (&self.shared, shared) {
                (Some(own), Some(f)) => Some(own.hidden(context, dtype, [tokens, f])?),
                _ => None,
            },
        };
        *kept = Some(memory.clone());
        Ok(memory)
    }
}

impl Memory {
    /// The part for fewer tokens.
    fn narrow(&self, tokens: usize) -> Result<Self> {
        let count = tokens * self.sizes.k;
        Ok(Memory {
            sizes: Sizes { tokens, ..self.sizes },
            routing: self.routing.narrow(tokens)?,
            slots: self.slots.clone(),
            rows: self.rows.narrow(0, 0, count)?,
            hidden: self.hidden.narrow(count)?,
            shared: self.shared.as_ref().map(|hidden| hidden.narrow(tokens)).transpose()?,
        })
    }
}

/// `Shape` unless the rows of x are as long as weights want them.
fn fits(x: &Tensor, h: usize, whose: &str) -> Result<()> {
    match x.shape() {
        [.., own] if *own == h => Ok(()),
        shape => Err(Error::Shape(format!("x has shape {shape:?}, and H of {whose} is {h}"))),
    }
}
