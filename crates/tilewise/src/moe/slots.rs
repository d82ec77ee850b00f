//! Rows in the order of the slots of tokens, for calls that do not sort them.

use crate::context::Context;
use crate::tensor::Tensor;
use tilewise_core::Result;

/// The rows of tokens, one for each slot.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    /// The token of each row: u32 \[tokens · k\].
    pub(super) tokens: Tensor,
    /// The row of each slot: u32 \[tokens, k\].
    pub(super) places: Tensor,
}

impl Slots {
    /// Rows for tokens with k slots each, but for no more tokens than
    /// [`by_index`](tilewise_core::plan::by_index) may admit: two rows for each expert at the most.
    pub(super) fn new(context: &Context, tokens: usize, experts: usize, k: usize) -> Result<Self> {
        let tokens = tokens.min(2 * experts / k.max(1));
        let rows = 0..(tokens * k) as u32;
        let own: Vec<u32> = rows.clone().map(|row| row / k as u32).collect();
        Ok(Slots {
            tokens: Tensor::upload(context, &own, &[own.len()])?,
            places: Tensor::upload(context, &rows.collect::<Vec<_>>(), &[tokens, k])?,
        })
    }

    /// The slots of the first `tokens` tokens; none if there are fewer.
    pub(super) fn narrow(&self, tokens: usize) -> Result<Option<Self>> {
        let &[most, k] = self.places.shape() else { return Ok(None) };
        if tokens > most {
            return Ok(None);
        }
        Ok(Some(Slots {
            tokens: self.tokens.narrow(0, 0, tokens * k)?,
            places: self.places.narrow(0, 0, tokens)?,
        }))
    }
}
