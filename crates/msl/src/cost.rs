//! What each mainloop is expected to cost, as data by GPU family and size. None of it is measured here: the shares are those that others have published for
//! kernels of the same shape (`SHARES`), put into the models that the WGSL kernels' costs were fitted with.

use crate::mainloops::{SIMD, constant};
use tilewise_core::kernel::Variant;
use tilewise_core::{Caps, DType, Format, Problem};
use tilewise_shaders::cost::{Shares, few, tiled};

/// What matters of a GPU's family to kernels of simdgroup matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// M1 and M2, A14 to A16 (families Apple7 and Apple8): operands want to pass through threadgroup memory.
    Early,
    /// M3 and A17 and later (Apple9 on): caches and registers share one memory, and matrices may come straight from device memory.
    Late,
}

impl Generation {
    /// By the chip's name, `Apple M…` of Macs or `Apple A…` of phones; later where there is no number to read, as all chips to come will be.
    pub fn of(caps: &Caps) -> Generation {
        let number = |series: &str| {
            let (_, rest) = caps.name.split_once(series)?;
            rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()
        };
        match (number("Apple M"), number("Apple A")) {
            (Some(..=2), _) | (_, Some(..=16)) => Generation::Early,
            _ => Generation::Late,
        }
    }
}

/// Cores up to which a chip counts as small: the plain chips and Pro.
const SMALL: f64 = 20.0;

/// Of the f32 peak: on early generations' small chips with f32 and with 16-bit elements, on their large chips, and on late generations. After MLX's choice of
/// tiles by chip, and metal-flash-attention's figures of 87% (f32) and 93% of the peak for its best tiles on either generation.
#[rustfmt::skip]
const SHARES: &[(&str, [f64; 4])] = &[
    ("64x64x16",     [0.87, 0.88, 0.88, 0.84]),
    ("64x64x16-1x2", [0.80, 0.91, 0.84, 0.82]),
    ("64x32x32",     [0.86, 0.86, 0.84, 0.83]),
    ("32x32x16",     [0.76, 0.78, 0.76, 0.76]),
    ("32x32x8",      [0.60, 0.62, 0.60, 0.91]),
];

pub(crate) fn tile_cost(problem: &Problem, caps: &Caps, variant: &Variant, splits: u64) -> f64 {
    let half = |format| matches!(format, Format::Dense(DType::F16 | DType::BF16));
    let column = match Generation::of(caps) {
        Generation::Late => 3,
        Generation::Early if caps.rates().cores > SMALL => 2,
        Generation::Early => usize::from(half(problem.a.format) && half(problem.b.format)),
    };
    let shares = SHARES.iter().find(|(name, _)| *name == variant.name).map_or([0.5; 4], |(_, shares)| *shares);
    // What a late generation's only simdgroup of a threadgroup reads again comes from its core's own cache.
    let passed = if column == 3 && variant.threads == SIMD { 0.2 } else { 0.6 };
    let (arithmetic, invocations) = (shares[column], 256.0);
    let shares = Shares { arithmetic, invocations, latency: 1.0, bandwidth: 0.95, start: 30.0, passed };
    tiled(problem, caps, variant, splits, shares)
}

/// Of the time that the model gives to WGSL kernels of few rows: an assumption, that `simd_sum` in place of a tree through memory is worth a little.
const BY_HAND: f64 = 0.93;

/// Each thread sums FEW × LINES.
pub(crate) fn gemv_cost(problem: &Problem, caps: &Caps, variant: &Variant, splits: u64) -> f64 {
    BY_HAND * few(problem, caps, variant, splits, sums(variant, constant(variant, "LINES")))
}

/// Each thread sums FEW × 8.
pub(crate) fn gevm_cost(problem: &Problem, caps: &Caps, variant: &Variant, splits: u64) -> f64 {
    BY_HAND * few(problem, caps, variant, splits, sums(variant, 8))
}

/// Rows and columns of a thread's sums.
fn sums(variant: &Variant, lines: u32) -> [f64; 2] {
    let (few, lines) = (f64::from(constant(variant, "FEW")), f64::from(lines));
    if constant(variant, "MANY_ROWS") == 1 { [lines, few] } else { [few, lines] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_by_name() {
        let of = |name: &str| Generation::of(&Caps { name: name.into(), ..Caps::webgpu_default() });
        for (name, generation) in [
            ("Apple M1", Generation::Early),
            ("Apple M2 Max", Generation::Early),
            ("Apple M3 Pro", Generation::Late),
            ("Apple M4 Max (from documentation)", Generation::Late),
            ("Apple M10", Generation::Late),
            ("Apple A14 GPU", Generation::Early),
            ("Apple A16 GPU", Generation::Early),
            ("Apple A17 Pro GPU", Generation::Late),
            ("Apple Paravirtual device", Generation::Late),
        ] {
            assert_eq!(of(name), generation, "{name}");
        }
    }

    #[test]
    fn every_tile_has_its_shares() {
        let tiles = crate::KERNELS[..2].iter().flat_map(|kernel| kernel.variants);
        for variant in tiles {
            assert!(SHARES.iter().any(|(name, _)| *name == variant.name), "{}", variant.name);
        }
    }
}
