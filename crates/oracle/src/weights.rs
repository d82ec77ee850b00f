//! The largest difference between a weight in a kernel and the weight that
//! [`dequantize`](tilewise_core::quant::dequantize) gives.

use tilewise_core::quant::{Quantized, dequantize};
use tilewise_core::{DType, convert};

/// [`Quantized::weight_error`] for a kernel that may round weights to one of these types, as
/// kernels on matrix units do: WGSL's to f16, Apple's to [`staged`](tilewise_core::cost::staged). A
/// weight beyond a type's range has an infinite error: nothing is promised of it.
pub fn rounded_error(weights: &Quantized, to: &[DType]) -> Vec<f64> {
    let rounded = |to: DType, w: f32, error: f64| {
        let smallest =
            if to == DType::F16 { 2.0f64.powi(-25) } else { f64::from(f32::MIN_POSITIVE) };
        match f64::from(w.abs()) + error {
            most if most > convert::largest(to) && w.is_finite() => f64::INFINITY,
            most => error + to.unit_roundoff() * most + smallest,
        }
    };
    let rounding = |w, error| to.iter().map(|&to| rounded(to, w, error)).fold(error, f64::max);
    dequantize(weights)
        .into_iter()
        .zip(weights.weight_error())
        .map(|(w, error)| rounding(w, error))
        .collect()
}

/// [`Quantized::weight_error`] for a kernel that multiplies scale and bias with sums of up to 32
/// elements of A, and of their products with codes. Each term of a sum is rounded once per term of
/// the sum, and twice more. [`Quantized::weight_error`] admits at least two roundings of each.
pub fn summed_error(weights: &Quantized) -> Vec<f64> {
    weights.weight_error().into_iter().map(|error| error * f64::from(32 + 2) / 2.0).collect()
}

/// The larger of [`rounded_error`] and [`summed_error`]: the kernel may be of either kind.
pub fn any_error(weights: &Quantized, to: &[DType]) -> Vec<f64> {
    let rounded = rounded_error(weights, to).into_iter();
    rounded.zip(summed_error(weights)).map(|(rounded, summed)| rounded.max(summed)).collect()
}
