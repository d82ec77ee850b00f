//! A power of two by which the scales of weights in a device's memory are divided.
//!
//! Matrix units take weights in f16, which ends at 65504 and has steps of 2⁻²⁴ below 2⁻¹⁴. Scales
//! in f32 reach further. So a tensor whose largest weight may be outside 2⁻⁸ to 2¹⁵ is stored with
//! other scales, and its products take the power into their alpha. Division by a power of two
//! changes no digit. If it would, the scales stay. The power is 2⁻²⁴ to 2²⁴: a larger one would
//! take too much of the range of alpha, of sums and of small activations.

use super::QuantFormat;
use std::borrow::Cow;

/// Exponents of the largest weight that need no power.
const WITHIN: std::ops::RangeInclusive<i32> = -8..=14;

/// The exponent of the largest power, and the negative of the smallest.
const MOST: i32 = 24;

impl QuantFormat {
    /// The plane whose scales may be divided; none for formats without scales in f32.
    #[doc(hidden)]
    pub fn divided_plane(self) -> Option<usize> {
        self.def().codec.magnitudes().map(|_| self.planes().len() - 1)
    }

    /// The power by which the scales of a tensor are divided. `parts` are the plane's bytes.
    #[doc(hidden)]
    pub fn power_of<'a>(self, parts: impl Iterator<Item = &'a [u8]> + Clone) -> f32 {
        let Some([least, number]) = self.def().codec.magnitudes() else { return 1.0 };
        let scales = parts.flat_map(read).filter(|scale| scale.is_finite() && *scale != 0.0);
        let largest = scales.clone().fold(0f32, |most, scale| most.max(scale.abs())) * number;
        // An infinite weight stays infinite only if nothing is divided.
        if largest == 0.0 || !largest.is_finite() {
            return 1.0;
        }
        let exponent = (f64::from(largest).to_bits() >> 52) as i32 - 1023;
        let steps = exponent - exponent.clamp(*WITHIN.start(), *WITHIN.end());
        let power = 2f32.powi(steps.clamp(-MOST, MOST));
        let exact = |scale: f32| power < 1.0 || (scale / power * least).is_normal();
        if scales.clone().all(exact) { power } else { 1.0 }
    }

    /// The bytes of a plane. Scales are divided by a power that [`power_of`](Self::power_of) gave,
    /// or by its inverse; other planes stay.
    #[doc(hidden)]
    pub fn divided(self, plane: usize, bytes: &[u8], power: f32) -> Cow<'_, [u8]> {
        if power == 1.0 || self.divided_plane() != Some(plane) {
            return bytes.into();
        }
        // Arithmetic with NaN may change its bits.
        let own = |scale: f32| if scale.is_nan() { scale } else { scale / power };
        read(bytes).flat_map(|scale| own(scale).to_le_bytes()).collect()
    }
}

fn read(scales: &[u8]) -> impl Iterator<Item = f32> + Clone + '_ {
    scales.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes))
}
