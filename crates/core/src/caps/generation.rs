//! Generations of Apple's GPUs.

use super::Caps;

/// The difference between families of Apple's GPUs that matters to kernels of simdgroup matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// M1 and M2, A14 to A16 (families Apple7 and Apple8): operands want to pass through
    /// threadgroup memory.
    Early,
    /// M3, M4, A17 and A18 (Apple9): caches and registers share one memory, and matrices may come
    /// straight from device memory.
    Late,
    /// M5 and A19 and later (Apple10 on): as `Late`, and each core has a unit for products of
    /// matrices, which only tensors of Metal 4 reach. No kernel here does so yet.
    Neural,
}

impl Generation {
    /// The generation by the chip's name, `Apple M…` of Macs or `Apple A…` of phones. A name
    /// without a number there counts as late.
    pub fn of(caps: &Caps) -> Generation {
        let number = |series: &str| {
            let (_, rest) = caps.name.split_once(series)?;
            rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()
        };
        match (number("Apple M"), number("Apple A")) {
            (Some(..=2), _) | (_, Some(..=16)) => Generation::Early,
            (Some(5..), _) | (_, Some(19..)) => Generation::Neural,
            _ => Generation::Late,
        }
    }
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
            ("Apple M5 Max", Generation::Neural),
            ("Apple M10", Generation::Neural),
            ("Apple A14 GPU", Generation::Early),
            ("Apple A16 GPU", Generation::Early),
            ("Apple A17 Pro GPU", Generation::Late),
            ("Apple A19 Pro GPU", Generation::Neural),
            ("Apple Paravirtual device", Generation::Late),
        ] {
            assert_eq!(of(name), generation, "{name}");
        }
    }
}
