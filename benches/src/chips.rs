//! Published rates of chips that name themselves. WebGPU reports neither cores nor clocks.

/// The rates of a chip, as its maker publishes them or others have measured them.
#[derive(Clone, Debug, PartialEq)]
pub struct Chip {
    /// Its name: `Apple M1 Max`.
    pub name: String,
    /// f32 and f16 operations per second, 10^12, with the most cores that are sold under the name.
    pub tflops: f64,
    /// 10^9 bytes per second between chip and memory.
    pub gbs: f64,
}

/// Apple's chips by generation: the plain chip, Pro and Max, each (TFLOP/s, GB/s). The numbers of
/// M4 are not Apple's own, and are rounded.
const APPLE: [(&str, [(f64, f64); 3]); 4] = [
    ("M1", [(2.6, 68.0), (5.3, 200.0), (10.6, 400.0)]),
    ("M2", [(3.6, 100.0), (6.8, 200.0), (13.6, 400.0)]),
    ("M3", [(3.6, 100.0), (6.4, 150.0), (14.3, 400.0)]),
    ("M4", [(4.0, 120.0), (8.0, 273.0), (17.0, 546.0)]),
];

/// The chip that an adapter's name names. An Ultra counts as two of Max.
pub fn find(adapter: &str) -> Option<Chip> {
    let mut words = adapter.split_whitespace();
    words.find(|word| *word == "Apple")?;
    let (generation, rates) = APPLE.into_iter().find({
        let named = words.next()?;
        move |(generation, _)| *generation == named
    })?;
    let (size, (tflops, gbs), dies) = match words.next() {
        Some("Pro") => (" Pro", rates[1], 1.0),
        Some("Max") => (" Max", rates[2], 1.0),
        Some("Ultra") => (" Ultra", rates[2], 2.0),
        _ => ("", rates[0], 1.0),
    };
    Some(Chip { name: format!("Apple {generation}{size}"), tflops: dies * tflops, gbs: dies * gbs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_word_by_word() {
        let rates = |adapter: &str| find(adapter).map(|chip| (chip.name, chip.tflops, chip.gbs));
        assert_eq!(rates("Apple M1"), Some(("Apple M1".into(), 2.6, 68.0)));
        assert_eq!(rates("Apple M3 Pro"), Some(("Apple M3 Pro".into(), 6.4, 150.0)));
        assert_eq!(rates("Apple M4 Max (40 cores)"), Some(("Apple M4 Max".into(), 17.0, 546.0)));
        assert_eq!(rates("Apple M2 Ultra"), Some(("Apple M2 Ultra".into(), 27.2, 800.0)));
        for other in ["Apple M10", "Apple Paravirtual device", "Apple", "NVIDIA H200", "M1"] {
            assert_eq!(rates(other), None, "{other}");
        }
    }
}
