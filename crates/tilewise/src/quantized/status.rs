//! Errors for weights that a format does not hold: on the host, and from the status that a device
//! stores.

use crate::context::Context;
use crate::tensor::storage::Storage;
use tilewise_core::quant::{self, Quantized};
use tilewise_core::{Error, QuantFormat, Result};

/// Bytes of a status.
pub(crate) const STATUS_BYTES: u64 = 4;

/// The word in which the device stores the row that it could not quantize.
#[derive(Debug)]
pub(crate) struct Status {
    pub(crate) storage: Storage,
    /// Rows of each matrix of a stack.
    each: Option<u64>,
}

impl Status {
    pub(crate) fn zeros(context: &Context, shape: &[usize]) -> Result<Self> {
        let each = if let [_, each, _] = *shape { Some(each as u64) } else { None };
        Ok(Status { storage: Storage::zeros(context, STATUS_BYTES)?, each })
    }

    /// `Misuse` if there is a row that the device could not quantize.
    pub(crate) async fn check(&self, context: &Context, format: QuantFormat) -> Result<()> {
        let bytes = self.storage.read(context, 0..STATUS_BYTES).await?;
        let status =
            bytes.as_chunks().0.first().map_or(0, |&word| u64::from(u32::from_le_bytes(word)));
        let Some(row) = status.checked_sub(1) else { return Ok(()) };
        let place = match self.each {
            Some(each) => format!("matrix {}: row {}", row / each.max(1), row % each.max(1)),
            None => format!("row {row}"),
        };
        Err(Error::Misuse(format!(
            "{place} holds a weight that is NaN or infinite, or beyond the range of {format}"
        )))
    }
}

/// Runs [`quant::quantize`] on a matrix, or on a stack as one matrix: blocks lie along rows. The
/// error of a stack names the matrix.
pub(crate) fn quantize_all(
    weights: &[f32],
    [entries, n, k]: [usize; 3],
    stacked: bool,
    format: QuantFormat,
) -> Result<Quantized> {
    let made = quant::quantize(weights, entries * n, k, format);
    if !stacked {
        return made;
    }
    made.map_err(|error| {
        let refused = |(matrix, own)| match quant::quantize(own, n, k, format) {
            Err(error @ Error::Misuse(_)) => {
                Some(error.map_text(|why| format!("matrix {matrix}: {why}")))
            }
            _ => None,
        };
        weights.chunks_exact((n * k).max(1)).enumerate().find_map(refused).unwrap_or(error)
    })
}
