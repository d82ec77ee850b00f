//! Storage on the host that is locked for a call.
//!
//! Each storage is locked once, in the order of addresses: calls on several threads then do not
//! wait for each other in a circle.

use crate::tensor::storage::Storage;
use std::sync::{RwLockReadGuard, RwLockWriteGuard};
use tilewise_core::Result;

/// The locks of a call.
pub(crate) struct Locks<'t>(Vec<(usize, Guard<'t>)>);

enum Guard<'t> {
    Read(RwLockReadGuard<'t, Vec<u32>>),
    Write(RwLockWriteGuard<'t, Vec<u32>>),
}

/// The words of locked storage, by its address.
#[derive(Default)]
pub(crate) struct Words<'w> {
    read: Vec<(usize, &'w [u32])>,
    written: Vec<(usize, &'w mut [u32])>,
}

impl<'t> Locks<'t> {
    /// Locks storage. What is both read and written is locked for writing.
    pub(crate) fn of(
        read: impl Iterator<Item = &'t Storage>,
        written: impl Iterator<Item = &'t Storage>,
    ) -> Result<Self> {
        let read = read.map(|storage| (storage, false));
        let written = written.map(|storage| (storage, true));
        let mut all: Vec<_> = read.chain(written).collect();
        all.sort_unstable_by_key(|(storage, writes)| (storage.address(), !writes));
        all.dedup_by_key(|(storage, _)| storage.address());
        let lock = |(storage, writes): (&'t Storage, bool)| {
            let guard = match writes {
                true => Guard::Write(storage.host_mut()?),
                false => Guard::Read(storage.host()?),
            };
            Ok((storage.address(), guard))
        };
        Ok(Locks(all.into_iter().map(lock).collect::<Result<_>>()?))
    }

    pub(crate) fn words(&mut self) -> Words<'_> {
        let mut words = Words::default();
        for (address, guard) in &mut self.0 {
            match guard {
                Guard::Read(own) => words.read.push((*address, own)),
                Guard::Write(own) => words.written.push((*address, own)),
            }
        }
        words
    }
}

impl<'w> Words<'w> {
    /// The words of storage that is only read.
    pub(crate) fn read(&self, storage: &Storage) -> &'w [u32] {
        let address = storage.address();
        let own = self.read.iter().find(|(own, _)| *own == address);
        own.map_or(&[], |(_, words)| *words)
    }

    /// The words of storage that is written. Only the first call gets them.
    pub(crate) fn written(&mut self, storage: &Storage) -> &'w mut [u32] {
        let address = storage.address();
        let own = self.written.iter_mut().find(|(own, _)| *own == address);
        own.map_or(&mut [], |(_, words)| std::mem::take(words))
    }
}
