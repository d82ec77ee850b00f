//! Data of the examples, and products in plain loops with which the device's are checked.

/// Whole numbers from -4 to 4 without 0, times `scale`, the same on every run. If `scale` is a
/// power of two, their products and sums are exact in f32, as long as 24 bits hold them.
pub(crate) fn numbers(len: usize, seed: u64, scale: f32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let number = ((state >> 33) % 8) as f32;
        scale * if number < 4.0 { number - 4.0 } else { number - 3.0 }
    };
    (0..len).map(|_| next()).collect()
}

/// A·B in f64 for rows of A of length `k` and rows of B of length `n`.
pub(crate) fn product(a: &[f64], b: &[f64], k: usize, n: usize) -> Vec<f64> {
    let row = |a: &[f64]| -> Vec<f64> {
        (0..n).map(|column| (0..k).map(|i| a[i] * b[i * n + column]).sum()).collect()
    };
    a.chunks(k).flat_map(row).collect()
}

/// Numbers as f64, in which the examples are checked.
pub(crate) fn wide(numbers: &[f32]) -> Vec<f64> {
    numbers.iter().map(|&number| f64::from(number)).collect()
}

/// A matrix with rows of length `columns`, transposed.
pub(crate) fn transposed(matrix: &[f64], columns: usize) -> Vec<f64> {
    (0..columns).flat_map(|column| matrix.iter().skip(column).step_by(columns).copied()).collect()
}
