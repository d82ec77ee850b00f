//! Bind groups, kept for as long as all of their buffers are in use elsewhere.

use super::Gpu;
use super::outcome::{Outcome, Writers};
use super::pipeline::Pipeline;
use crate::host::cache::lock;
use crate::host::recent::Recent;
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tilewise_core::Result;
use tilewise_core::kernel::Role;

/// The most bind groups that are kept.
const MAX_GROUPS: usize = 4096;

/// A number for a buffer or a pipeline, which no other in this process has, nor ever had.
pub(super) fn number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A buffer, shared by the storage that lies in it. Dropping it drops the cached bind groups that
/// bind it. Otherwise a bind group, which keeps its buffers alive, would outlive what it was made
/// for.
pub(crate) struct SharedBuffer {
    buffer: wgpu::Buffer,
    number: u64,
    groups: Arc<BindGroups>,
    pub(super) writers: Writers,
}

impl Drop for SharedBuffer {
    fn drop(&mut self) {
        let forgotten = lock(&self.groups.0).forget(self.number);
        // Dropped without the lock, because a driver may do anything when its objects go.
        drop(forgotten);
    }
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

/// Bytes that are bound: their buffer, the first byte, and the number of bytes.
pub(crate) type Place<'a> = (&'a SharedBuffer, u64, u64);

/// The numbers of a bind group: that of its pipeline, then for each binding that of the buffer, the
/// first byte and the number of bytes.
type Key = [u64];

/// The buffers that a key mentions, by their numbers.
fn mentioned(key: &Key) -> impl Iterator<Item = u64> {
    key.iter().skip(1).step_by(3).copied()
}

/// Bind groups by what they bind.
#[derive(Default)]
pub(crate) struct BindGroups(Mutex<Table<wgpu::BindGroup>>);

struct Table<V> {
    values: Recent<Arc<Key>, V>,
    /// The number of each buffer with each key that mentions it.
    uses: BTreeSet<(u64, Arc<Key>)>,
}

impl<V> Default for Table<V> {
    fn default() -> Self {
        Table { values: Recent::new(MAX_GROUPS), uses: BTreeSet::new() }
    }
}

impl<V> Table<V> {
    /// Inserts a value, and returns the value that it replaces.
    fn insert(&mut self, key: &Key, value: V) -> Option<V> {
        let key: Arc<Key> = key.into();
        let replaced = self.values.insert(key.clone(), value).map(|(replaced, value)| {
            self.forget_uses(&replaced);
            value
        });
        self.uses.extend(mentioned(&key).map(|number| (number, key.clone())));
        replaced
    }

    /// Removes the values whose keys mention a buffer.
    fn forget(&mut self, number: u64) -> Vec<V> {
        let mentions = (number, Arc::default())..(number + 1, Arc::default());
        let keys: Vec<_> = self.uses.range(mentions).map(|(_, key)| key.clone()).collect();
        let mut forgotten = Vec::with_capacity(keys.len());
        for key in keys {
            self.forget_uses(&key);
            forgotten.extend(self.values.remove(&key));
        }
        forgotten
    }

    fn forget_uses(&mut self, key: &Arc<Key>) {
        for number in mentioned(key) {
            self.uses.remove(&(number, key.clone()));
        }
    }
}

impl BindGroups {
    /// A shared buffer; `made` is the outcome of the call that made it.
    pub(super) fn share(
        self: &Arc<Self>,
        buffer: wgpu::Buffer,
        made: Outcome,
    ) -> Arc<SharedBuffer> {
        let (number, groups, writers) = (number(), self.clone(), Writers::made(made));
        Arc::new(SharedBuffer { buffer, number, groups, writers })
    }
}

/// A bind group with its dynamic offsets.
#[derive(Clone)]
pub(crate) struct Bound {
    pub(super) group: wgpu::BindGroup,
    pub(super) offsets: SmallVec<[u32; 8]>,
}

/// The part of a binding's first byte that its bind group has, if the rest is a dynamic offset.
/// These have 32 bits.
const FIXED: u64 = !(u32::MAX as u64);

impl Gpu {
    /// Makes or finds the bind group of a pipeline. `bound` has the number and the bytes of each
    /// binding, in the order of the pipeline's layout.
    pub(crate) fn bind(
        &self,
        pipeline: &Pipeline,
        label: &str,
        bound: &[(u32, Place<'_>)],
    ) -> Result<Bound> {
        let mut key: SmallVec<[u64; 64]> = SmallVec::new();
        let mut offsets = SmallVec::new();
        key.push(pipeline.number);
        for ((_, (buffer, first, bytes)), moves) in bound.iter().zip(&pipeline.moves) {
            let fixed = if *moves { first & FIXED } else { *first };
            key.extend([buffer.number, fixed, *bytes]);
            if *moves {
                offsets.push(*first as u32);
            }
        }
        if let Some(group) = lock(&self.groups.0).values.get(&*key) {
            return Ok(Bound { group: group.clone(), offsets });
        }
        let fixed = key.iter().skip(2).step_by(3);
        let entries = bound.iter().zip(fixed).map(|(&(binding, (buffer, _, bytes)), &offset)| {
            let range = wgpu::BufferBinding { buffer, offset, size: NonZeroU64::new(bytes) };
            wgpu::BindGroupEntry { binding, resource: wgpu::BindingResource::Buffer(range) }
        });
        let entries: SmallVec<[_; 16]> = entries.collect();
        let (label, layout) = (Some(label), &pipeline.layout);
        let group = self.device.catch_invalid(|| {
            let entries = &entries;
            self.device.create_bind_group(&wgpu::BindGroupDescriptor { label, layout, entries })
        })?;
        // The caller holds the buffers, so none of them is gone already.
        let mut table = lock(&self.groups.0);
        let replaced = table.insert(&key, group.clone());
        drop(table);
        // Dropped without the lock, because a driver may do anything when its objects go.
        drop(replaced);
        Ok(Bound { group, offsets })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_takes_along_whatever_binds_it() {
        let mut table = Table::default();
        let key = |pipeline, buffer| [pipeline, buffer, 64, 16, 9, 0, 4];
        for (pipeline, buffer) in [(1, 4), (1, 5), (2, 5)] {
            assert_eq!(table.insert(&key(pipeline, buffer), 10 * pipeline + buffer), None);
        }
        assert_eq!(table.insert(&key(2, 5), 7), Some(25));
        assert_eq!(table.values.get(&key(2, 5)[..]), Some(&7));
        // Pipelines have other numbers than buffers, and no value goes with them.
        assert!(table.forget(2).is_empty() && table.forget(64).is_empty());
        let mut forgotten = table.forget(5);
        forgotten.sort_unstable();
        assert_eq!((forgotten, table.forget(5).len()), (vec![7, 15], 0));
        assert_eq!(table.values.get(&key(1, 4)[..]), Some(&14));
        assert_eq!(table.forget(9), [14]);
        assert!(table.uses.is_empty() && table.values.is_empty());
    }

    #[test]
    fn a_group_that_makes_room_leaves_no_uses() {
        let mut table = Table::default();
        let groups = 2 * MAX_GROUPS as u64;
        let replaced = (0..groups).filter_map(|at| table.insert(&[1, at, 0, 4], at)).count();
        assert_eq!((replaced, table.uses.len()), (MAX_GROUPS, MAX_GROUPS));
        let forgotten = (0..groups).flat_map(|at| table.forget(at)).count();
        assert!(forgotten == MAX_GROUPS && table.uses.is_empty());
    }
}
