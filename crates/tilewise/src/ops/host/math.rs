//! Sums and functions of f32 on many numbers, written so that the compiler makes vectors of them.

use tilewise_core::lanes::LANES;

/// Adds `of(element)` for all elements: [`LANES`] sums side by side, which are then added in pairs.
#[inline(always)]
pub(in crate::ops) fn sum_of(elements: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0.0f32; LANES];
    let (chunks, rest) = elements.as_chunks::<LANES>();
    for chunk in chunks {
        for (sum, &x) in sums.iter_mut().zip(chunk) {
            *sum += of(x);
        }
    }
    for (sum, &x) in sums.iter_mut().zip(rest) {
        *sum += of(x);
    }
    in_pairs(sums)
}

fn in_pairs(mut sums: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            sums[i] += sums[i + half];
        }
        half /= 2;
    }
    sums[0]
}

/// The largest `of(element)`; −∞ without any. NaN is left out.
#[inline(always)]
pub(in crate::ops) fn largest(elements: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let more = |most: f32, x: f32| if x > most { x } else { most };
    let mut most = [f32::NEG_INFINITY; LANES];
    let (chunks, rest) = elements.as_chunks::<LANES>();
    for chunk in chunks {
        for (most, &x) in most.iter_mut().zip(chunk) {
            *most = more(*most, of(x));
        }
    }
    most.into_iter().chain(rest.iter().map(|&x| of(x))).fold(f32::NEG_INFINITY, more)
}

/// eˣ for x up to 88; 0 from −104 down, and NaN for NaN. The relative error is at most 2⁻²² for
/// normal results. The compiler makes vectors of it, other than of `f32::exp`.
#[inline(always)]
pub(in crate::ops) fn exp(x: f32) -> f32 {
    // Adding this rounds to a whole number, which then lies in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    let x = if x < -104.0 { -104.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let power = shifted - ROUND;
    // ln 2 in two parts; the products of the first are exact.
    let r = (x - power * (355.0 / 512.0)) + power * 2.121_944_4e-4;
    let p = 1.987_569_1e-4f32;
    let p = p * r + 1.398_2e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let p = (p * r * r + r) + 1.0;
    // The power of two in two factors, which both are normal numbers.
    let n = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    let half = n >> 1;
    let factor = |n: i32| f32::from_bits((n.wrapping_add(127) as u32) << 23);
    p * factor(half) * factor(n.wrapping_sub(half))
}

/// cap·tanh(s/cap).
#[inline(always)]
pub(in crate::ops) fn capped(s: f32, cap: f32) -> f32 {
    let doubled = 2.0 * (s / cap).clamp(-15.0, 15.0);
    cap - 2.0 * cap / (exp(doubled) + 1.0)
}

/// A float's order, as an integer: NaN is above all numbers, and the two zeros are equal.
#[inline(always)]
pub(in crate::ops) fn ordered(x: f32) -> u32 {
    let bits = x.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        u32::MAX
    } else if bits == magnitude {
        0x8000_0000 + magnitude
    } else {
        0x8000_0000 - magnitude
    }
}

/// The number of an order; one NaN for all NaNs.
pub(in crate::ops) fn number(order: u32) -> f32 {
    let negative = 0x8000_0000u32.wrapping_sub(order) | 0x8000_0000;
    f32::from_bits(if order < 0x8000_0000 { negative } else { order - 0x8000_0000 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_right_to_two_units() {
        let mut x = -86.0f32;
        while x < 88.0 {
            let wanted = f64::from(x).exp();
            let error = (f64::from(exp(x)) - wanted).abs() / wanted;
            assert!(error <= 2f64.powi(-22), "{x}: {error}");
            x += 0.00137;
        }
        for (x, wanted) in [(0.0, 1.0), (-104.0, 0.0), (-1e30, 0.0), (f32::NEG_INFINITY, 0.0)] {
            assert_eq!(exp(x), wanted, "{x}");
        }
        assert!((exp(-90.0) as f64 - (-90f64).exp()).abs() < 1e-44);
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn orders_are_those_of_numbers() {
        let numbers = [f32::NEG_INFINITY, -2.0, -1e-40, 0.0, 1e-40, 3.0, f32::INFINITY, f32::NAN];
        assert!(numbers.is_sorted_by(|&a, &b| ordered(a) < ordered(b)));
        assert_eq!(ordered(0.0), ordered(-0.0));
        let finite = &numbers[..7];
        assert!(finite.iter().all(|&x| number(ordered(x)) == x) && number(u32::MAX).is_nan());
    }

    #[test]
    fn all_elements_are_added() {
        for n in [0, 1, 15, 16, 17, 33, 100] {
            let all: Vec<f32> = (0..n).map(|i| i as f32).collect();
            assert_eq!(sum_of(&all, |x| x), (0..n).sum::<i32>() as f32);
            let most = if n == 0 { f32::NEG_INFINITY } else { (n - 1) as f32 };
            assert_eq!(largest(&all, |x| x), most);
        }
    }
}
