//! How rows are shared among experts.

use std::fmt;
use std::str::FromStr;

/// How the rows of a grouped product are shared among experts: `e64` evenly among 64, `zipf64` as
/// the law of Zipf has it, the i-th having 1/i of the first's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experts {
    /// How many there are.
    pub count: usize,
    /// Whether they have shares by Zipf's law.
    pub zipf: bool,
}

impl FromStr for Experts {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (zipf, count) = match text.strip_prefix("zipf") {
            Some(count) => (true, count),
            None => (false, text.strip_prefix('e').ok_or(())?),
        };
        let count = count.parse().ok().filter(|count| (1..1 << 20).contains(count)).ok_or(())?;
        Ok(Experts { count, zipf })
    }
}

impl fmt::Display for Experts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.zipf { "zipf" } else { "e" }, self.count)
    }
}

impl Experts {
    /// The ends of their rows, of `m` in all.
    pub fn ends(self, m: usize) -> Vec<u32> {
        let share = |i: usize| if self.zipf { 1.0 / (i + 1) as f64 } else { 1.0 };
        let all: f64 = (0..self.count).map(share).sum();
        let mut sum = 0.0;
        let end = |i| {
            sum += share(i);
            (sum / all * m as f64 + 1e-9) as u32
        };
        let mut ends: Vec<u32> = (0..self.count).map(end).collect();
        if let Some(last) = ends.last_mut() {
            *last = m as u32;
        }
        ends
    }

    /// How many of them have rows.
    pub(super) fn met(self, m: usize) -> usize {
        let mut ends = self.ends(m);
        ends.insert(0, 0);
        ends.windows(2).filter(|pair| pair[0] < pair[1]).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_rows() {
        let of = |name: &str, m| name.parse::<Experts>().unwrap().ends(m);
        assert_eq!(of("e4", 10), [2, 5, 7, 10]);
        assert_eq!(of("zipf3", 11), [6, 9, 11]);
        assert_eq!("e64".parse::<Experts>().unwrap().met(8), 8);
        assert_eq!("zipf64".parse::<Experts>().unwrap().to_string(), "zipf64");
        assert!(
            ["e0", "e", "zipf", "x8", "e-1"].iter().all(|name| name.parse::<Experts>().is_err())
        );
    }
}
