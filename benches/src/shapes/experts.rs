//! How a product is shared among experts, or other groups.

use std::fmt;
use std::str::FromStr;

/// The groups of a grouped product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experts {
    /// How many there are.
    pub count: usize,
    /// How rows, or elements of K, are shared among them.
    pub sharing: Sharing,
}

/// The share of each group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// An equal share of the rows: `e64`.
    Even,
    /// A share of the rows; the i-th group has 1/i of the first's: `zipf64`.
    Zipf,
    /// Rows that name their groups. Neighbours name groups far apart, and all are named before one
    /// is named twice: `indexed64`.
    Indexed,
    /// A matrix of A of which this many rows count: `masked64-32`; all of them in `masked64`.
    Masked(Option<usize>),
    /// A range of K; all are equally long: `ragged-k64`.
    AlongK,
    /// A product by itself, with sides half as long as those of the one before, down to a
    /// sixteenth: `list4`.
    Halves,
}

/// How often the sides of a list are halved.
pub(super) const HALVINGS: usize = 4;

/// Each kind of sharing with its name. No name begins with another.
const NAMES: [(&str, Sharing); 6] = [
    ("e", Sharing::Even),
    ("zipf", Sharing::Zipf),
    ("indexed", Sharing::Indexed),
    ("masked", Sharing::Masked(None)),
    ("ragged-k", Sharing::AlongK),
    ("list", Sharing::Halves),
];

impl FromStr for Experts {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut named =
            NAMES.iter().filter_map(|&(name, own)| Some((text.strip_prefix(name)?, own)));
        let (numbers, sharing) = named.next().ok_or(())?;
        let (count, sharing) = match (numbers.split_once('-'), sharing) {
            (Some((count, rows)), Sharing::Masked(_)) => {
                (count, Sharing::Masked(Some(rows.parse().map_err(|_| ())?)))
            }
            _ => (numbers, sharing),
        };
        let count = count.parse().ok().filter(|count| (1..1 << 20).contains(count)).ok_or(())?;
        Ok(Experts { count, sharing })
    }
}

impl fmt::Display for Experts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = std::mem::discriminant(&self.sharing);
        let mut names = NAMES.iter().filter(|(_, own)| std::mem::discriminant(own) == kind);
        write!(f, "{}{}", names.next().map_or("", |(name, _)| name), self.count)?;
        match self.sharing {
            Sharing::Masked(Some(rows)) => write!(f, "-{rows}"),
            _ => Ok(()),
        }
    }
}

impl Experts {
    /// The numbers of the groups in a product of these sizes: the ends of their rows or of their
    /// ranges of K, the group of each row, or the counts of their rows. A list has none.
    pub fn numbers(self, [m, _, k]: [usize; 3]) -> Vec<u32> {
        let even = |_| 1.0;
        match self.sharing {
            Sharing::Even => self.ends(m, even),
            Sharing::Zipf => self.ends(m, |i| 1.0 / (i + 1) as f64),
            Sharing::AlongK => self.ends(k, even),
            Sharing::Indexed => {
                let all = shuffled(self.count);
                (0..m).map(|row| all[row % self.count]).collect()
            }
            Sharing::Masked(rows) => vec![rows.unwrap_or(m) as u32; self.count],
            Sharing::Halves => Vec::new(),
        }
    }

    /// The ends of shares of `size`.
    fn ends(self, size: usize, share: impl Fn(usize) -> f64) -> Vec<u32> {
        let all: f64 = (0..self.count).map(&share).sum();
        let mut sum = 0.0;
        let end = |i| {
            sum += share(i);
            (sum / all * size as f64 + 1e-9) as u32
        };
        let mut ends: Vec<u32> = (0..self.count).map(end).collect();
        if let Some(last) = ends.last_mut() {
            *last = size as u32;
        }
        ends
    }

    /// Why a product of these sizes cannot have these groups.
    pub(super) fn misfit(self, [m, n, k]: [usize; 3]) -> Option<String> {
        match self.sharing {
            Sharing::Masked(Some(rows)) if rows > m => {
                Some(format!("{rows} rows count of the {m} of an entry"))
            }
            Sharing::Halves if m.min(n).min(k) >> (self.count - 1).min(HALVINGS) == 0 => {
                let (least, times) = (m.min(n).min(k), (self.count - 1).min(HALVINGS));
                Some(format!("a side of {least} cannot be halved {times} times"))
            }
            _ => None,
        }
    }
}

/// The numbers below `count`, each once; neighbours are far apart.
pub(crate) fn shuffled(count: usize) -> Vec<u32> {
    let shares = |step: usize| {
        let (mut one, mut other) = (count, step);
        while other > 0 {
            (one, other) = (other, one % other);
        }
        one > 1
    };
    let mut step = count * 5 / 8;
    while step > 1 && shares(step) {
        step -= 1;
    }
    (0..count).map(|i| (i * step.max(1) % count) as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_rows() {
        let of = |name: &str, m, k| name.parse::<Experts>().unwrap().numbers([m, 1, k]);
        assert_eq!(of("e4", 10, 1), [2, 5, 7, 10]);
        assert_eq!(of("zipf3", 11, 1), [6, 9, 11]);
        assert_eq!(of("indexed5", 7, 1), [0, 3, 1, 4, 2, 0, 3]);
        assert_eq!(of("ragged-k2", 1, 9), [4, 9]);
        assert_eq!(of("masked3", 7, 1), [7, 7, 7]);
        assert_eq!(of("masked2-5", 7, 1), [5, 5]);
        assert_eq!(of("list4", 8, 8), [0; 0]);
        for name in ["e64", "zipf64", "masked64", "masked64-32", "masked1-0", "ragged-k64", "list4"]
        {
            assert_eq!(name.parse::<Experts>().unwrap().to_string(), name);
        }
        for wrong in [
            "e0",
            "e",
            "zipf",
            "x8",
            "e-1",
            "e4-2",
            "masked",
            "masked-3",
            "masked4-",
            "masked4-x",
            "ragged-k",
            "ragged-k0",
            "ragged64",
            "list",
            "list0",
        ] {
            assert!(wrong.parse::<Experts>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_may_not_suit() {
        let misfit = |name: &str, mnk| name.parse::<Experts>().unwrap().misfit(mnk);
        assert_eq!(misfit("masked4-9", [9, 1, 1]), None);
        assert_eq!(misfit("masked4-9", [8, 9, 9]).unwrap(), "9 rows count of the 8 of an entry");
        assert_eq!(misfit("list4", [8, 9, 10]), None);
        assert!(
            misfit("list5", [80, 8, 80]).unwrap().starts_with("a side of 8 cannot be halved 4")
        );
        assert!(misfit("list999", [80, 8, 80]).is_some());
    }
}
