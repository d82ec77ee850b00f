//! A map of bounded size that forgets what was not used lately.

use foldhash::fast::RandomState;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// A map with at most `most` entries. When it is full, a new entry takes the place of one that was
/// not used lately ("second chance"): a hand walks around the entries, passes those used since it
/// passed last, and stops at the first that was not. So entries that every step uses stay, however
/// many others are met once.
pub(crate) struct Recent<K, V> {
    most: usize,
    /// The place of each key among the entries. With std's hasher, warm calls take a third more
    /// time.
    places: HashMap<K, usize, RandomState>,
    entries: Vec<Entry<K, V>>,
    hand: usize,
}

struct Entry<K, V> {
    key: K,
    value: V,
    /// Whether it was used since the hand passed.
    used: bool,
}

impl<K: Clone + Hash + Eq, V> Recent<K, V> {
    /// An empty map; `most` is at least 1.
    pub(crate) fn new(most: usize) -> Self {
        Recent { most, places: HashMap::default(), entries: Vec::new(), hand: 0 }
    }

    /// The value of a key, which counts as used now.
    pub(crate) fn get<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let entry = &mut self.entries[*self.places.get(key)?];
        entry.used = true;
        Some(&entry.value)
    }

    /// Inserts a value. Gives the entry that it replaces: that of the same key, or of another if
    /// the map was full.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<(K, V)> {
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None if self.entries.len() < self.most => {
                self.places.insert(key.clone(), self.entries.len());
                self.entries.push(Entry { key, value, used: false });
                return None;
            }
            None => {
                let place = self.unused();
                self.places.remove(&self.entries[place].key);
                self.places.insert(key.clone(), place);
                place
            }
        };
        let entry = Entry { key, value, used: false };
        let Entry { key, value, .. } = std::mem::replace(&mut self.entries[place], entry);
        Some((key, value))
    }

    /// The place of the next entry that was not used since the hand passed it.
    fn unused(&mut self) -> usize {
        loop {
            let place = self.hand % self.entries.len();
            self.hand = place + 1;
            if !std::mem::take(&mut self.entries[place].used) {
                return place;
            }
        }
    }

    /// Removes an entry, and gives its value.
    pub(crate) fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let place = self.places.remove(key)?;
        let removed = self.entries.swap_remove(place);
        if let Some(moved) = self.entries.get(place) {
            self.places.insert(moved.key.clone(), place);
        }
        Some(removed.value)
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.places.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program of 300 calls whose bindings stay and 20 whose bindings are new in each step. No
    /// step loses more than it adds, and nothing that stays is lost.
    #[test]
    fn what_every_step_uses_stays() {
        for most in [512, 1024, 4096] {
            let mut map = Recent::new(most);
            (0..300u32).for_each(|key| assert!(map.insert(key, key).is_none()));
            for step in 0..10_000 {
                (0..300).for_each(|key| assert_eq!(map.get(&key), Some(&key), "step {step}"));
                let new = 1000 + 20 * step..1020 + 20 * step;
                let dropped: Vec<_> = new.filter_map(|key| map.insert(key, key)).collect();
                assert!(dropped.len() <= 20 && dropped.iter().all(|(key, _)| *key >= 1000));
                assert!(map.entries.len() <= most && map.places.len() == map.entries.len());
            }
            assert_eq!(map.entries.len(), most);
        }
    }

    #[test]
    fn each_key_has_its_last_value() {
        let mut map = Recent::new(3);
        for (key, value, replaced) in [
            ("a", 1, None),
            ("b", 2, None),
            ("a", 3, Some(("a", 1))),
            ("c", 4, None),
            // The hand stands before the first entry, and none was used.
            ("d", 5, Some(("a", 3))),
        ] {
            assert_eq!(map.insert(key, value), replaced);
        }
        assert_eq!(["a", "b"].map(|key| map.get(key).copied()), [None, Some(2)]);
        assert_eq!(
            [map.remove("d"), map.remove("d"), map.get("c").copied()],
            [Some(5), None, Some(4)]
        );
        assert_eq!(map.insert("e", 6), None);
        // All were used but the last: the hand passes the others.
        assert_eq!(map.insert("f", 7), Some(("e", 6)));
        // "c" was used, and "b" was not since the hand passed it.
        assert_eq!(map.insert("g", 8), Some(("b", 2)));
        // If all were used, the hand goes round once.
        assert_eq!(["c", "f", "g"].map(|key| map.get(key).copied()), [4, 7, 8].map(Some));
        assert_eq!(map.insert("h", 9), Some(("f", 7)));
        assert_eq!(map.entries.len(), 3);
    }
}
