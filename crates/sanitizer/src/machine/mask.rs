//! Sets of invocations of a workgroup.

/// The most invocations that a workgroup may have.
pub(crate) const MAX_INVOCATIONS: usize = 1024;
const WORDS: usize = MAX_INVOCATIONS / 64;

/// A set of invocations of a workgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mask([u64; WORDS]);

impl Mask {
    pub(crate) const NONE: Mask = Mask([0; WORDS]);

    /// The first `count` invocations.
    pub(crate) fn first(count: usize) -> Mask {
        let mut mask = Mask::NONE;
        (0..count).for_each(|lane| mask.insert(lane));
        mask
    }

    pub(crate) fn insert(&mut self, lane: usize) {
        self.0[lane / 64] |= 1 << (lane % 64);
    }

    pub(crate) fn remove(&mut self, lane: usize) {
        self.0[lane / 64] &= !(1 << (lane % 64));
    }

    pub(crate) fn contains(&self, lane: usize) -> bool {
        self.0[lane / 64] >> (lane % 64) & 1 != 0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    pub(crate) fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    pub(crate) fn and(mut self, other: &Mask) -> Mask {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= b);
        self
    }

    pub(crate) fn or(mut self, other: &Mask) -> Mask {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
        self
    }

    /// The lanes of `self` that are not in `other`.
    pub(crate) fn without(mut self, other: &Mask) -> Mask {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= !b);
        self
    }

    /// The lanes whose value is not 0.
    pub(crate) fn where_true(values: &[u32]) -> Mask {
        let mut mask = Mask::NONE;
        for (word, values) in mask.0.iter_mut().zip(values.chunks(64)) {
            for (bit, &value) in values.iter().enumerate() {
                *word |= u64::from(value != 0) << bit;
            }
        }
        mask
    }

    /// The lanes from the first to the last.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = usize> + use<> {
        let words = self.0;
        words.into_iter().enumerate().flat_map(|(index, word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    index * 64 + bit
                })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets() {
        let mut mask = Mask::first(70);
        assert_eq!(mask.count(), 70);
        mask.remove(69);
        assert!(mask.contains(68) && !mask.contains(69));
        assert_eq!(mask.lanes().last(), Some(68));
        let odd = Mask::where_true(&(0..70).map(|lane| lane % 2).collect::<Vec<_>>());
        assert_eq!(mask.and(&odd).lanes().take(3).collect::<Vec<_>>(), [1, 3, 5]);
        assert_eq!(mask.without(&odd).count(), 35);
        assert_eq!(mask.or(&odd).count(), 70);
        assert!(Mask::NONE.is_empty());
    }
}
