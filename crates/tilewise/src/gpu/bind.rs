//! Bind groups, kept for as long as all of their buffers are in use elsewhere.

use super::outcome::{Outcome, Writers};
use crate::cache::lock;
#[cfg(feature = "custom-kernels")]
use smallvec::SmallVec;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tilewise_core::Epilogue;
use tilewise_core::kernel::Role;

/// The most products whose bind groups are kept; then all are forgotten at once. A product with
/// other factors counts as another product.
const MAX_GROUPS: usize = 4096;

/// The most pairs of factors for which the bind groups of one plan and its buffers are kept. The
/// last pairs are kept, so factors that change from call to call leave the bind groups of other
/// products alone.
const MAX_FACTORS: usize = 16;

/// The identity of a buffer or of a compiled plan: a number that no other in this process has, nor
/// ever had. Dropping it drops the cached bind groups that mention the number. Otherwise a bind
/// group, which keeps its buffers alive, would outlive what it was made for.
pub(super) struct Identity {
    number: u64,
    groups: Arc<BindGroups>,
}

#[cfg(feature = "custom-kernels")]
impl Identity {
    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        self.groups.forget(self.number);
    }
}

/// A buffer, shared by the storage that lies in it.
pub(crate) struct SharedBuffer {
    buffer: wgpu::Buffer,
    identity: Identity,
    pub(super) writers: Writers,
}

impl std::ops::Deref for SharedBuffer {
    type Target = wgpu::Buffer;

    fn deref(&self) -> &wgpu::Buffer {
        &self.buffer
    }
}

impl std::fmt::Debug for SharedBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.buffer.fmt(f)
    }
}

/// The number of binding numbers in the shaders of products.
pub(crate) const ROLES: usize = Role::COUNT;

/// A buffer for each role, and the byte from which it is bound.
pub(crate) type Places<'a> = [Option<(&'a SharedBuffer, u64)>; ROLES];

/// Alpha and beta by their bits, and which of them the device writes. A plan depends only on
/// whether beta is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Factors {
    pub(super) alpha: u32,
    pub(super) beta: u32,
    pub(super) written: [bool; 2],
}

impl Factors {
    pub(crate) fn of(epilogue: &Epilogue) -> Self {
        let [alpha, beta] = [epilogue.alpha, epilogue.beta].map(f32::to_bits);
        Factors { alpha, beta, written: [false; 2] }
    }

    /// Whether a product with these factors reads the C that it writes.
    pub(super) fn reads_c(&self) -> bool {
        f32::from_bits(self.beta) != 0.0 || self.written[1]
    }
}

/// A key of bind groups.
trait Mentions: Clone + Default + Eq + Hash + Ord {
    /// The identities that the key mentions.
    fn mentioned(&self) -> impl Iterator<Item = u64>;
}

/// A plan and the places of its operands: identities of the plan and of the buffers, and the bytes
/// from which the buffers are bound. A role that is not there has zeros.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    plan: u64,
    bound: [(u64, u64); ROLES],
}

impl Key {
    pub(super) fn new(plan: &Identity, places: &Places<'_>) -> Self {
        let place = |place: Option<(&SharedBuffer, u64)>| {
            place.map_or((0, 0), |(b, start)| (b.identity.number, start))
        };
        Key { plan: plan.number, bound: places.map(place) }
    }
}

impl Mentions for Key {
    fn mentioned(&self) -> impl Iterator<Item = u64> {
        std::iter::once(self.plan)
            .chain(self.bound.map(|(buffer, _)| buffer))
            .filter(|number| *number != 0)
    }
}

/// The key of a custom kernel's bind group. It has the identity of the kernel and, for each
/// binding, the identity of the buffer, the first byte and the number of bytes.
#[cfg(feature = "custom-kernels")]
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct CustomKey(SmallVec<[(u64, u64, u64); 8]>);

#[cfg(feature = "custom-kernels")]
impl CustomKey {
    pub(super) fn new<'a>(
        kernel: &Identity,
        bound: impl IntoIterator<Item = &'a (&'a SharedBuffer, u64, u64)>,
    ) -> Self {
        let bound = bound.into_iter().map(|&(b, start, bytes)| (b.identity.number, start, bytes));
        CustomKey(std::iter::once((kernel.number, 0, 0)).chain(bound).collect())
    }
}

#[cfg(feature = "custom-kernels")]
impl Mentions for CustomKey {
    fn mentioned(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|(number, ..)| *number)
    }
}

/// One bind group per pass.
type Groups = Arc<[wgpu::BindGroup]>;

/// The bind groups of products, by [`Key`] and [`Factors`], and of custom kernels.
#[derive(Default)]
pub(crate) struct BindGroups {
    products: Mutex<Table<Key, Groups>>,
    #[cfg(feature = "custom-kernels")]
    customs: Mutex<Table<CustomKey, wgpu::BindGroup>>,
}

struct Table<K, V> {
    values: HashMap<K, Vec<(Factors, V)>>,
    /// How many values there are.
    count: usize,
    /// Each identity with each key that mentions it.
    uses: BTreeSet<(u64, K)>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Table { values: HashMap::new(), count: 0, uses: BTreeSet::new() }
    }
}

impl<K: Mentions, V: Clone> Table<K, V> {
    fn get(&self, key: &K, factors: Factors) -> Option<V> {
        self.values
            .get(key)?
            .iter()
            .find(|(those, _)| *those == factors)
            .map(|(_, value)| value.clone())
    }

    /// Inserts a value, and returns the value that it replaces.
    fn insert(&mut self, key: K, factors: Factors, value: V) -> Option<(Factors, V)> {
        let values = self.values.entry(key.clone()).or_insert_with(|| {
            self.uses.extend(key.mentioned().map(|number| (number, key.clone())));
            Vec::new()
        });
        let same = values.iter().position(|(those, _)| *those == factors);
        let oldest = (values.len() == MAX_FACTORS).then_some(0);
        let replaced = same.or(oldest).map(|at| values.remove(at));
        values.push((factors, value));
        self.count += usize::from(replaced.is_none());
        replaced
    }

    /// Removes the values whose keys mention an identity.
    fn forget(&mut self, number: u64) -> Vec<Vec<(Factors, V)>> {
        let mentions = (number, K::default())..(number + 1, K::default());
        let keys: Vec<K> = self.uses.range(mentions).map(|(_, key)| key.clone()).collect();
        let mut forgotten = Vec::with_capacity(keys.len());
        for key in keys {
            for number in key.mentioned() {
                self.uses.remove(&(number, key.clone()));
            }
            forgotten.extend(self.values.remove(&key));
        }
        self.count -= forgotten.iter().map(Vec::len).sum::<usize>();
        forgotten
    }
}

impl BindGroups {
    pub(super) fn identity(self: &Arc<Self>) -> Identity {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Identity { number: NEXT.fetch_add(1, Ordering::Relaxed), groups: self.clone() }
    }

    /// A shared buffer; `made` is the outcome of the call that made it.
    pub(super) fn share(
        self: &Arc<Self>,
        buffer: wgpu::Buffer,
        made: Outcome,
    ) -> Arc<SharedBuffer> {
        let writers = Writers::made(made);
        Arc::new(SharedBuffer { buffer, identity: self.identity(), writers })
    }

    pub(super) fn get(&self, key: &Key, factors: Factors) -> Option<Groups> {
        lock(&self.products).get(key, factors)
    }

    #[cfg(feature = "custom-kernels")]
    pub(super) fn get_custom(&self, key: &CustomKey) -> Option<wgpu::BindGroup> {
        lock(&self.customs).get(key, Factors::default())
    }

    /// Keeps bind groups. The caller must hold their plan and buffers, so none of these is gone
    /// already.
    pub(super) fn insert(&self, key: Key, factors: Factors, groups: Groups) {
        insert(&self.products, key, factors, groups);
    }

    /// Like [`insert`](Self::insert), for a custom kernel.
    #[cfg(feature = "custom-kernels")]
    pub(super) fn insert_custom(&self, key: CustomKey, group: wgpu::BindGroup) {
        insert(&self.customs, key, Factors::default(), group);
    }

    /// Forgets the bind groups that mention an identity.
    fn forget(&self, number: u64) {
        let forgotten = lock(&self.products).forget(number);
        drop(forgotten);
        #[cfg(feature = "custom-kernels")]
        {
            let forgotten = lock(&self.customs).forget(number);
            drop(forgotten);
        }
    }
}

fn insert<K: Mentions, V: Clone>(table: &Mutex<Table<K, V>>, key: K, factors: Factors, value: V) {
    let mut table = lock(table);
    let full =
        if table.count >= MAX_GROUPS { std::mem::take(&mut *table) } else { Table::default() };
    let replaced = table.insert(key, factors, value);
    drop(table);
    // Dropped without the lock, because a driver may do anything when its objects go.
    drop((full, replaced));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(plan: u64, buffer: u64) -> Key {
        let mut bound = [(0, 0); ROLES];
        (bound[1], bound[3]) = ((buffer, 64), (9, 0));
        Key { plan, bound }
    }

    fn factors(alpha: usize) -> Factors {
        Factors { alpha: alpha as u32, ..Factors::default() }
    }

    #[test]
    fn an_identity_takes_along_whatever_mentions_it() {
        let mut table = Table::default();
        for (number, (plan, buffer)) in [(1, 4), (1, 5), (2, 5), (2, 5)].into_iter().enumerate() {
            table.insert(key(plan, buffer), factors(number), number);
        }
        assert_eq!((table.count, table.get(&key(2, 5), factors(2))), (4, Some(2)));
        assert_eq!(table.forget(5).concat().len(), 3);
        assert_eq!((table.count, table.get(&key(2, 5), factors(2))), (1, None));
        assert!(table.forget(5).is_empty() && table.forget(2).is_empty());
        assert_eq!(table.forget(9).len(), 1);
        assert!(table.count == 0 && table.uses.is_empty() && table.values.is_empty());
    }

    #[test]
    fn factors_replace_those_of_the_same_product_alone() {
        let mut table = Table::default();
        table.insert(key(1, 4), factors(0), 0);
        for alpha in 0..1000 {
            let replaced = table.insert(key(1, 5), factors(alpha), alpha);
            assert_eq!(replaced.map(|(_, value)| value), alpha.checked_sub(MAX_FACTORS));
        }
        assert_eq!(table.count, 1 + MAX_FACTORS);
        assert_eq!(table.get(&key(1, 4), factors(0)), Some(0));
        assert_eq!(table.get(&key(1, 5), factors(1000 - MAX_FACTORS)), Some(1000 - MAX_FACTORS));
        assert_eq!(table.insert(key(1, 5), factors(999), 7), Some((factors(999), 999)));
        assert_eq!(table.get(&key(1, 5), factors(999)), Some(7));
    }
}
