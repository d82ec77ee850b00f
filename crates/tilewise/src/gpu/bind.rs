//! Bind groups, kept for as long as all of their buffers are in use elsewhere.

use crate::cache::lock;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tilewise_core::kernel::Role;

/// Products whose bind groups are kept before all are forgotten at once.
const MAX_GROUPS: usize = 4096;

/// Who a buffer or a prepared plan is: a number that no other in this process has, nor ever had. A bind group keeps its buffers alive; so that no cached one
/// outlives what it was made for, those that mention this number go with it.
pub(super) struct Identity {
    number: u64,
    groups: Arc<BindGroups>,
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

/// Binding numbers in the shaders of products.
pub(crate) const ROLES: usize = Role::Packed as usize + 1;

/// A buffer for each role, and the byte from which it is bound.
pub(crate) type Places<'a> = [Option<(&'a SharedBuffer, u64)>; ROLES];

/// What the bind groups of a product are made of: identities of the plan and of the buffers, and where these are bound; zeros for a role that is not
/// there.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    plan: u64,
    bound: [(u64, u64); ROLES],
}

impl Key {
    pub(super) fn new(plan: &Identity, bound: &Places<'_>) -> Self {
        let place = |bound: Option<(&SharedBuffer, u64)>| bound.map_or((0, 0), |(b, start)| (b.identity.number, start));
        Key { plan: plan.number, bound: bound.map(place) }
    }

    /// Whose identities it mentions.
    fn mentioned(&self) -> impl Iterator<Item = u64> {
        std::iter::once(self.plan).chain(self.bound.map(|(buffer, _)| buffer)).filter(|number| *number != 0)
    }
}

/// One bind group per pass, by [`Key`].
#[derive(Default)]
pub(crate) struct BindGroups(Mutex<Table>);

#[derive(Default)]
struct Table {
    groups: HashMap<Key, Arc<[wgpu::BindGroup]>>,
    /// Each identity with each key that mentions it.
    uses: BTreeSet<(u64, Key)>,
}

impl BindGroups {
    pub(super) fn identity(self: &Arc<Self>) -> Identity {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Identity { number: NEXT.fetch_add(1, Ordering::Relaxed), groups: self.clone() }
    }

    pub(super) fn share(self: &Arc<Self>, buffer: wgpu::Buffer) -> Arc<SharedBuffer> {
        Arc::new(SharedBuffer { buffer, identity: self.identity() })
    }

    pub(super) fn get(&self, key: &Key) -> Option<Arc<[wgpu::BindGroup]>> {
        lock(&self.0).groups.get(key).cloned()
    }

    /// Keeps bind groups whose plan and buffers the caller holds, so that none of them is gone already.
    pub(super) fn insert(&self, key: Key, groups: Arc<[wgpu::BindGroup]>) {
        let mut table = lock(&self.0);
        let full = if table.groups.len() >= MAX_GROUPS { std::mem::take(&mut *table) } else { Table::default() };
        table.uses.extend(key.mentioned().map(|number| (number, key)));
        let replaced = table.groups.insert(key, groups);
        drop(table);
        // Without the lock, whatever a driver does when its objects go.
        drop((full, replaced));
    }

    /// Forgets the bind groups that mention an identity.
    fn forget(&self, number: u64) {
        let mut table = lock(&self.0);
        let mentions = (number, Key::default())..(number + 1, Key::default());
        let keys: Vec<Key> = table.uses.range(mentions).map(|(_, key)| *key).collect();
        let mut forgotten = Vec::with_capacity(keys.len());
        for key in keys {
            for number in key.mentioned() {
                table.uses.remove(&(number, key));
            }
            forgotten.extend(table.groups.remove(&key));
        }
        drop(table);
        drop(forgotten);
    }
}
