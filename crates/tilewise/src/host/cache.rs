//! Things made once and used again.

use super::recent::Recent;
use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::Hash;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use tilewise_core::Result;

/// Values by what they were made from. At most `most` are kept, as [`Recent`] chooses.
pub(crate) struct Cache<K, V> {
    most: usize,
    table: Mutex<Table<K, V>>,
    /// Tells that something was made, or could not be.
    news: Condvar,
}

struct Table<K, V> {
    /// How often all was forgotten.
    clears: u64,
    made: Recent<K, V>,
    /// The keys whose values are being made.
    making: HashSet<K>,
}

impl<K: Clone + Hash + Eq, V: Clone> Cache<K, V> {
    pub(crate) fn new(most: usize) -> Self {
        let table = Table { clears: 0, made: Recent::new(most), making: HashSet::new() };
        Cache { most, table: Mutex::new(table), news: Condvar::new() }
    }

    pub(crate) fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        lock(&self.table).made.get(key).cloned()
    }

    /// The value for `key`, made on the first call. No lock is held while it is made, but threads
    /// that ask for the same key wait. `make` must not ask for its own key. A value is not kept if
    /// [`clear`](Self::clear) was called while it was made.
    pub(crate) fn get_or_make<Q>(&self, key: &Q, make: impl FnOnce() -> Result<V>) -> Result<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let mut table = lock(&self.table);
        loop {
            if let Some(value) = table.made.get(key) {
                return Ok(value.clone());
            }
            if !table.making.contains(key) {
                break;
            }
            table = self.news.wait(table).unwrap_or_else(PoisonError::into_inner);
        }
        let (key, clears) = (key.to_owned(), table.clears);
        table.making.insert(key.clone());
        drop(table);
        let making = Making { cache: self, key };
        let value = make()?;
        let mut table = lock(&self.table);
        let forgotten = match table.clears == clears {
            true => table.made.insert(making.key.clone(), value.clone()),
            false => None,
        };
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

/// The time in which a value is made, also if that fails or panics.
struct Making<'a, K: Hash + Eq, V> {
    cache: &'a Cache<K, V>,
    key: K,
}

impl<K: Hash + Eq, V> Drop for Making<'_, K, V> {
    fn drop(&mut self) {
        lock(&self.cache.table).making.remove(&self.key);
        self.cache.news.notify_all();
    }
}

/// Locks a mutex. A lock poisoned by a panic elsewhere still guards a whole value.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Barrier};
    use std::time::Duration;
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

    /// Four threads ask at once. The first to make the value fails, the second makes it for all.
    #[test]
    fn threads_that_meet_get_one_value() {
        let (cache, start) = (Cache::<u32, Arc<usize>>::new(9), Barrier::new(4));
        let makes = AtomicUsize::new(0);
        let ask = || {
            start.wait();
            cache.get_or_make(&7, || {
                let before = makes.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(20));
                if before == 0 { Err(Error::Misuse("no".into())) } else { Ok(Arc::new(before)) }
            })
        };
        let answers = std::thread::scope(|scope| {
            [(); 4].map(|()| scope.spawn(ask)).map(|thread| thread.join().unwrap())
        });
        let made: Vec<_> = answers.iter().flatten().collect();
        assert_eq!((makes.into_inner(), made.len()), (2, 3));
        assert!(made.iter().all(|value| Arc::ptr_eq(value, made[0])));
    }
}
