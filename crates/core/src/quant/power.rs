//! A power of two by which the scales of weights in a device's memory are divided.
//!
//! Matrix units take weights in f16, which ends at 65504 and has steps of 2⁻²⁴ below 2⁻¹⁴. Scales
//! in f32 reach further. So a tensor whose largest weight may be outside 2⁻⁸ to 2¹⁵ is stored with
//! other scales, and its products take the power into their alpha. Division by a power of two
//! changes no digit. If it would, the scales stay.

use super::QuantFormat;
use std::borrow::Cow;

/// Exponents of the largest weight that need no power.
const WITHIN: std::ops::RangeInclusive<i32> = -8..=14;

impl QuantFormat {
    /// The plane whose scales may be divided; none for formats without scales in f32.
    #[doc(hidden)]
    pub fn divided_plane(self) -> Option<usize> {
        self.def().codec.largest().map(|_| self.planes().len() - 1)
    }

    /// The power by which the scales of a tensor are divided. `parts` are the plane's bytes.
    #[doc(hidden)]
    pub fn power_of<'a>(self, parts: impl Iterator<Item = &'a [u8]> + Clone) -> f32 {
        let Some(number) = self.def().codec.largest() else { return 1.0 };
        let scales = parts.flat_map(read).filter(|scale| scale.is_finite() && *scale != 0.0);
        let largest = scales.clone().fold(0f32, |most, scale| most.max(scale.abs())) * number;
        // An infinite weight stays infinite only if nothing is divided.
        if largest == 0.0 || !largest.is_finite() {
            return 1.0;
        }
        let exponent = (f64::from(largest).to_bits() >> 52) as i32 - 1023;
        let steps = exponent - exponent.clamp(*WITHIN.start(), *WITHIN.end());
        let power = 2f32.powi(steps.max(f32::MIN_EXP - 1));
        let exact = |scale: f32| (scale / power).is_normal() && scale / power * power == scale;
        if scales.clone().all(exact) { power } else { 1.0 }
    }
}

/// Scales, divided by a power that [`QuantFormat::power_of`] gave, or by its inverse.
#[doc(hidden)]
pub fn divided(scales: &[u8], power: f32) -> Cow<'_, [u8]> {
    if power == 1.0 {
        return scales.into();
    }
    read(scales).flat_map(|scale| (scale / power).to_le_bytes()).collect()
}

fn read(scales: &[u8]) -> impl Iterator<Item = f32> + Clone + '_ {
    scales.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes))
}
