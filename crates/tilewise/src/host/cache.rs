//! Things made once and used again.

use super::recent::Recent;
use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tilewise_core::Result;

/// Values by what they were made from. At most `most` are kept, as [`Recent`] chooses.
pub(crate) struct Cache<K, V> {
    most: usize,
    table: Mutex<Table<K, V>>,
}

struct Table<K, V> {
    /// How often all was forgotten.
    clears: u64,
    made: Recent<K, V>,
}

impl<K: Clone + Hash + Eq, V: Clone> Cache<K, V> {
    pub(crate) fn new(most: usize) -> Self {
        Cache { most, table: Mutex::new(Table { clears: 0, made: Recent::new(most) }) }
    }

    pub(crate) fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        lock(&self.table).made.get(key).cloned()
    }

    /// The value for `key`, made on the first call. No lock is held while it is made: threads that
    /// ask at once each make a value, and all get the first. A value is not kept if
    /// [`clear`](Self::clear) was called while it was made.
    pub(crate) fn get_or_make<Q>(&self, key: &Q, make: impl FnOnce() -> Result<V>) -> Result<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let clears = {
            let mut table = lock(&self.table);
            if let Some(value) = table.made.get(key) {
                return Ok(value.clone());
            }
            table.clears
        };
        let value = make()?;
        let mut table = lock(&self.table);
        if table.clears != clears {
            return Ok(value);
        }
        if let Some(first) = table.made.get(key) {
            return Ok(first.clone());
        }
        let forgotten = table.made.insert(key.to_owned(), value.clone());
        drop(table);
        // Dropped without the lock, because a driver may do anything when its objects go.
        drop(forgotten);
        Ok(value)
    }

    /// Forgets all values, also those that are being made now.
    pub(crate) fn clear(&self) {
        let mut table = lock(&self.table);
        table.clears += 1;
        let made = std::mem::replace(&mut table.made, Recent::new(self.most));
        drop(table);
        // Dropped without the lock, because a driver may do anything when its objects go.
        drop(made);
    }
}

/// Locks a mutex. A lock poisoned by a panic elsewhere still guards a whole value.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Barrier};
    use tilewise_core::Error;

    #[test]
    fn makes_once_and_keeps_no_errors() {
        let cache = Cache::<String, u32>::new(2);
        assert!(cache.get_or_make("a", || Err(Error::Misuse("no".into()))).is_err());
        assert_eq!(cache.get("a"), None);
        assert_eq!(cache.get_or_make("a", || Ok(1)).unwrap(), 1);
        assert_eq!(cache.get_or_make("a", || panic!("it is there")).unwrap(), 1);
        // The third takes the place of the second, because the first was used.
        for (key, value) in [("b", 2), ("c", 3)] {
            cache.get_or_make(key, || Ok(value)).unwrap();
        }
        assert_eq!(["a", "b", "c"].map(|key| cache.get(key)), [Some(1), None, Some(3)]);
    }

    #[test]
    fn forgets_what_was_being_made() {
        let cache = Cache::<String, u32>::new(9);
        let make = || {
            cache.clear();
            Ok(1)
        };
        assert_eq!(cache.get_or_make("a", make).unwrap(), 1);
        assert_eq!(cache.get("a"), None);
    }

    #[test]
    fn threads_that_meet_get_one_value() {
        let (cache, both) = (Cache::<u32, Arc<usize>>::new(9), Barrier::new(2));
        let ask = |number| {
            let make = || {
                both.wait();
                Ok(Arc::new(number))
            };
            cache.get_or_make(&7, make).unwrap()
        };
        let [first, second] = std::thread::scope(|scope| {
            [1, 2]
                .map(|number| scope.spawn(move || ask(number)))
                .map(|thread| thread.join().unwrap())
        });
        assert!(Arc::ptr_eq(&first, &second));
    }
}
