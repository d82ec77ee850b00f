//! Loops for the vector units of the CPU. They are plain Rust on arrays of 16 numbers, which the
//! compiler turns into vectors. A sum has the same order in every instruction set, and no product
//! is fused with it: the bits do not depend on the machine.

/// Numbers that a loop takes at once.
pub const LANES: usize = 16;

/// One vector of them.
pub type Lanes = [f32; LANES];

/// Calls `work` in the widest instruction set that this machine has. Code gains from it only if the
/// compiler inlines it into `work`. Mark the closure, and each function that it calls, with
/// `#[inline(always)]`.
#[inline(always)]
pub fn widest<T>(work: impl FnOnce() -> T) -> T {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("avx512dq")
            && std::arch::is_x86_feature_detected!("avx512vl")
        {
            // SAFETY: the machine has the instructions that the function is compiled for.
            return unsafe { avx512(work) };
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the machine has the instructions that the function is compiled for.
            return unsafe { avx2(work) };
        }
    }
    work()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2")]
fn avx512<T>(work: impl FnOnce() -> T) -> T {
    work()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2<T>(work: impl FnOnce() -> T) -> T {
    work()
}

/// An array of what `number` gives for each place, as [`std::array::from_fn`] makes it. Unlike that
/// function, it is always inlined.
#[inline(always)]
pub fn array<T: Copy + Default, const N: usize>(number: impl Fn(usize) -> T) -> [T; N] {
    let mut all = [T::default(); N];
    for (i, own) in all.iter_mut().enumerate() {
        *own = number(i);
    }
    all
}

/// The scalar product of two rows. The second may be shorter than the first.
#[inline(always)]
pub fn dot(row: &[f32], weights: &[f32]) -> f32 {
    // Sums that do not wait for each other: the latency of an addition is four cycles.
    const AT_ONCE: usize = 4;
    let row = &row[..weights.len()];
    let mut sums = [[0f32; LANES]; AT_ONCE];
    let (blocks, rest) = weights.as_chunks::<{ AT_ONCE * LANES }>();
    for (own, block) in row.as_chunks::<{ AT_ONCE * LANES }>().0.iter().zip(blocks) {
        let lanes = own.as_chunks::<LANES>().0.iter().zip(block.as_chunks::<LANES>().0);
        for (sums, (own, block)) in sums.iter_mut().zip(lanes) {
            *sums = array(|i| sums[i] + own[i] * block[i]);
        }
    }
    let [a, b, c, d] = sums;
    let four: Lanes = array(|i| (a[i] + b[i]) + (c[i] + d[i]));
    let pairs: [f32; 8] = array(|i| four[i] + four[i + 8]);
    let tail = &row[weights.len() - rest.len()..];
    tail.iter().zip(rest).fold(0.0, |sum, (a, b)| sum + a * b) + pairs.iter().sum::<f32>()
}

/// Adds four lines to `sums`, each times its factor, one after the other. Lines have the length of
/// `sums`.
#[inline(always)]
pub fn add_scaled(sums: &mut [f32], factors: [f32; 4], lines: [&[f32]; 4]) {
    let [a, b, c, d] = lines.map(|line| line.as_chunks::<LANES>());
    let (many, rest) = sums.as_chunks_mut::<LANES>();
    let [p, q, r, s] = factors;
    for (sums, (((a, b), c), d)) in many.iter_mut().zip(a.0.iter().zip(b.0).zip(c.0).zip(d.0)) {
        *sums = array(|i| sums[i] + p * a[i] + q * b[i] + r * c[i] + s * d[i]);
    }
    for (sum, (((a, b), c), d)) in rest.iter_mut().zip(a.1.iter().zip(b.1).zip(c.1).zip(d.1)) {
        *sum = *sum + p * a + q * b + r * c + s * d;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_right_and_the_same_in_every_instruction_set() {
        for len in [0, 1, 15, 16, 63, 64, 65, 200, 1023] {
            let number = |i: usize| ((i * 37 + 11) % 64) as f32 / 8.0 - 4.0;
            let row: Vec<f32> = (0..len).map(number).collect();
            let weights: Vec<f32> = (0..len).map(|i| number(i + 5) / 3.0).collect();
            let wanted: f64 = row.iter().zip(&weights).map(|(a, b)| f64::from(a * b)).sum();
            let plain = dot(&row, &weights);
            assert!((f64::from(plain) - wanted).abs() <= 1e-3, "{len}: {plain}, {wanted}");
            let wide = widest(
                #[inline(always)]
                || dot(&row, &weights),
            );
            assert_eq!(plain, wide, "{len}");
        }
    }
}
