//! Weights in few bits, on the device.

use crate::context::Context;
use crate::storage::Storage;
use tilewise_core::quant::{Quantized, quantize};
use tilewise_core::{DType, Error, Format, Operand, QuantFormat, Result};

/// A weight matrix W \[N,K\], or one per group \[G,N,K\], quantized along K. As the right operand of a product it stands for Wᵀ: Y = X·Wᵀ.
#[derive(Clone, Debug)]
pub struct QuantizedTensor {
    pub(crate) context: Context,
    pub(crate) codes: Storage,
    pub(crate) scales: Storage,
    pub(crate) biases: Storage,
    pub(crate) operand: Operand,
    pub(crate) entries: u64,
    pub(crate) n: u64,
    pub(crate) k: u64,
}

impl QuantizedTensor {
    /// Uploads weights that are already quantized: one matrix.
    ///
    /// # Errors
    /// `TooLarge`, `Device` when the device has no memory left, `DeviceLost`.
    pub fn upload(context: &Context, weights: &Quantized) -> Result<Self> {
        Self::upload_groups(context, std::slice::from_ref(weights))
    }

    /// Uploads one matrix per group, all of one shape and format, for a grouped (or batched) product.
    ///
    /// # Errors
    /// `Shape` when there is none or they differ; otherwise as [`upload`](Self::upload).
    pub fn upload_groups(context: &Context, weights: &[Quantized]) -> Result<Self> {
        let first = weights.first().ok_or_else(|| Error::Shape("no quantized matrix given".into()))?;
        let kind = |w: &Quantized| (w.format(), w.n(), w.k(), w.scale_dtype());
        if let Some(other) = weights.iter().find(|w| kind(w) != kind(first)) {
            return Err(Error::Shape(format!("quantized matrices differ: {:?} and {:?}", kind(first), kind(other))));
        }
        let join =
            |part: fn(&Quantized) -> &[u8]| weights.iter().flat_map(|w| part(w).iter().copied()).collect::<Vec<u8>>();
        let (n, k, entries) = (first.n() as u64, first.k() as u64, weights.len() as u64);
        let format = Format::Quantized(first.format(), first.scale_dtype());
        Ok(QuantizedTensor {
            context: context.clone(),
            codes: Storage::with_bytes(context, &join(|w| bytemuck::cast_slice(w.codes())))?,
            scales: Storage::with_bytes(context, &join(Quantized::scales))?,
            biases: Storage::with_bytes(context, &join(Quantized::biases))?,
            operand: Operand::packed(format, entries, n, k).t(),
            entries,
            n,
            k,
        })
    }

    /// Quantizes row-major weights \[N,K\] on the CPU and uploads them. `scales` is the type in which scales and biases are stored.
    ///
    /// # Errors
    /// As [`quantize`](tilewise_core::quant::quantize()) and [`upload`](Self::upload).
    pub fn quantize(
        context: &Context,
        weights: &[f32],
        [n, k]: [usize; 2],
        format: QuantFormat,
        scales: DType,
    ) -> Result<Self> {
        Self::upload(context, &quantize(weights, n, k, format, scales)?)
    }

    /// Shape of the weights: \[N,K\], or \[G,N,K\] for more than one matrix.
    pub fn shape(&self) -> Vec<usize> {
        let matrix = [self.n as usize, self.k as usize];
        if self.entries == 1 { matrix.to_vec() } else { vec![self.entries as usize, matrix[0], matrix[1]] }
    }

    /// The format and the type of its scales.
    pub fn format(&self) -> Format {
        self.operand.format
    }
}
