//! Rows at which a quantizer's decision changes, and scales at which a loader may go wrong.

/// A row of [`Data::Rows`](super::Data::Rows).
pub(super) fn edges([first, second]: [f32; 2], width: usize) -> impl Iterator<Item = f32> {
    (0..width).map(move |i| match i {
        0 => first,
        1 => second,
        _ => f32::from_bits((first * (E2M1_ENDS[i % 7] / 6.0)).to_bits() + (i / 7 % 2) as u32),
    })
}

/// The upper ends of the ranges that round to each magnitude of e2m1.
pub(super) const E2M1_ENDS: [f32; 7] = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0];

/// Largest weights at which a microscaling format refuses, or takes another scale. They are numbers
/// at and just beyond 3.5 · 2^126, and 480 · 6; steps of the subnormal scales of e4m3; 448 and the
/// number after it; and small ones.
pub(super) const MX_EDGES: &[[f32; 2]] = &[
    [f32::from_bits(0x7f78_0000), 0.0],
    [f32::from_bits(0x7f77_ffff), 0.0],
    [f32::from_bits(0x7f60_0001), 0.0],
    [f32::from_bits(0x7f60_0000), 0.0],
    [f32::from_bits(0x4534_0001), 0.0],
    [2880.0, 0.0],
    [6.0 * 7.0 / 512.0, 0.0],
    [6.0 * 8.0 / 512.0, 0.0],
    [f32::from_bits(0x43e0_0001), 0.0],
    [448.0, 0.0],
    [6.0, 0.0],
    // 6 and 448 times 2^-127, and numbers just after these.
    [f32::from_bits(0x0140_0000), 0.0],
    [f32::from_bits(0x0140_0002), 0.0],
    [f32::from_bits(0x0460_0000), 0.0],
    [f32::from_bits(0x0460_0001), 0.0],
    [1e-42, 0.0],
];

/// The largest scale of Q8_0, and a larger one; codes half-way between two numbers; and a scale
/// that has no inverse.
pub(super) const Q8_0_EDGES: &[[f32; 2]] =
    &[[8_319_008.0, 0.0], [8_321_040.0, 0.0], [127.0, 2.5], [-127.0, -4.5], [1e-42, 0.0]];

/// Ranges of steps whose ends are half-way between two multiples of the step.
pub(super) const AFFINE_EDGES: &[[f32; 2]] =
    &[[-3.5, -0.5], [-15.5, -0.5], [-255.5, -0.5], [3.5, 0.5]];

/// Scales of blocks, each with a second number for formats that have two.
pub(super) const SCALES: [[f32; 2]; 12] = [
    [0.0, 1.5],
    [-0.75, -0.0],
    [1.0, 1.0],
    [1.0, 1.0],
    // The smallest number of f16.
    [5.960_464_5e-8, -5.960_464_5e-8],
    [65504.0, -65504.0],
    [f32::INFINITY, 1.0],
    [f32::NEG_INFINITY, 0.25],
    [f32::NAN, 1.0],
    [1.0, f32::INFINITY],
    [0.5, f32::NAN],
    [f32::INFINITY, f32::NEG_INFINITY],
];
