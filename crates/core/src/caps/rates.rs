//! Rough rates of devices, which order candidates: known for some by name, guessed by class for the
//! others. WebGPU reports neither the number of cores nor clocks.

use super::{Caps, DeviceClass};

/// Rough rates of a device. They order candidates and promise nothing.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Independent cores, each of which wants a workgroup or two.
    pub cores: f64,
    /// f32 operations per second of one core (a fused multiply-add counts two).
    pub core_flops: f64,
    /// Bytes per second from device memory.
    pub bandwidth: f64,
    /// Seconds to start a dispatch, barrier included.
    pub dispatch: f64,
    /// Seconds of a workgroup that finds no tile.
    pub idle: f64,
}

/// Share of the published memory bandwidth that a copy reaches, measured on an H200: 4.0 of 4.8
/// TB/s.
pub const COPIED: f64 = 0.83;

/// A known chip: part of its name, cores, f32 TFLOP/s of all of them, GB/s that a copy moves.
type Known = (&'static str, f64, f64, f64);

/// The figures of H200 and H100 are measured (benches/record/). Apple's are those of the largest
/// chip of a name, published by Apple or derived from its clock; an Ultra is two of Max. A core of
/// the M5 counts as one of the M4, because Apple published no rate for it. The first name that
/// fits counts, so longer names come first.
#[rustfmt::skip]
const KNOWN: &[Known] = &[
    ("NVIDIA H200", 132.0, 57.0, 4000.0),
    ("NVIDIA H100", 132.0, 57.4, 2880.0),
    ("Apple M1 Ultra", 64.0, 21.2, 800.0 * COPIED),
    ("Apple M1 Max", 32.0, 10.6, 400.0 * COPIED),
    ("Apple M1 Pro", 16.0, 5.3, 200.0 * COPIED),
    ("Apple M1", 8.0, 2.6, 68.0 * COPIED),
    ("Apple M2 Ultra", 76.0, 27.2, 800.0 * COPIED),
    ("Apple M2 Max", 38.0, 13.6, 400.0 * COPIED),
    ("Apple M2 Pro", 19.0, 6.8, 200.0 * COPIED),
    ("Apple M2", 10.0, 3.6, 100.0 * COPIED),
    ("Apple M3 Ultra", 80.0, 28.6, 800.0 * COPIED),
    ("Apple M3 Max", 40.0, 14.3, 400.0 * COPIED),
    ("Apple M3 Pro", 18.0, 6.4, 150.0 * COPIED),
    ("Apple M3", 10.0, 3.6, 100.0 * COPIED),
    ("Apple M4 Max", 40.0, 17.0, 546.0 * COPIED),
    ("Apple M4 Pro", 20.0, 8.0, 273.0 * COPIED),
    ("Apple M4", 10.0, 4.0, 120.0 * COPIED),
    ("Apple M5 Max", 40.0, 17.0, 614.0 * COPIED),
    ("Apple M5 Pro", 20.0, 8.0, 307.0 * COPIED),
    ("Apple M5", 10.0, 4.0, 153.0 * COPIED),
];

impl Caps {
    /// The rates of the chip if it is known, else a guess in the middle of what devices of its
    /// class reach.
    pub fn rates(&self) -> Rates {
        let guess = match self.class {
            DeviceClass::Discrete => Rates {
                cores: 100.0,
                core_flops: 0.4e12,
                bandwidth: 1.5e12,
                dispatch: 4e-6,
                idle: 1e-9,
            },
            DeviceClass::Integrated | DeviceClass::Unknown => Rates {
                cores: 16.0,
                core_flops: 0.3e12,
                bandwidth: 1.5e11,
                dispatch: 6e-6,
                idle: 6e-9,
            },
            DeviceClass::Cpu => {
                Rates { cores: 4.0, core_flops: 1e10, bandwidth: 1e10, dispatch: 2e-5, idle: 5e-6 }
            }
        };
        // An M10 is no M1.
        let ends = |rest: &str| !rest.starts_with(|next: char| next.is_ascii_alphanumeric());
        let named = |name: &str| self.name.split_once(name).is_some_and(|(_, rest)| ends(rest));
        match KNOWN.iter().find(|(name, ..)| named(name)) {
            Some(&(_, cores, tflops, gbs)) => {
                Rates { cores, core_flops: tflops * 1e12 / cores, bandwidth: gbs * 1e9, ..guess }
            }
            None => guess,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_to_their_end() {
        let cores = |name: &str| Caps { name: name.into(), ..Caps::webgpu_default() }.rates().cores;
        let guess = cores("another");
        assert_eq!(
            (cores("Apple M1"), cores("Apple M1 Pro"), cores("Apple M1 Ultra")),
            (8.0, 16.0, 64.0)
        );
        assert_eq!((cores("Apple M4 Max (40 cores)"), cores("NVIDIA H200 NVL")), (40.0, 132.0));
        assert_eq!((cores("Apple M10"), cores("Apple M5")), (guess, 10.0));
    }
}
