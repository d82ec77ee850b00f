//! The last buffers of the caller's, so that a tensor made anew on one of them finds its bind
//! groups.

use super::bind::SharedBuffer;
use crate::cache::lock;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// How many are kept alive. They are compared one by one, which is quicker than binding.
const MOST: usize = 64;

/// From the one that was asked for last to the one that goes first.
#[derive(Default)]
pub(super) struct Callers(Mutex<VecDeque<Arc<SharedBuffer>>>);

impl Callers {
    /// The buffer as before, or as `share` makes it.
    pub(super) fn share(
        &self,
        buffer: wgpu::Buffer,
        share: impl FnOnce(wgpu::Buffer) -> Arc<SharedBuffer>,
    ) -> Arc<SharedBuffer> {
        let mut last = lock(&self.0);
        let found = last.iter().position(|shared| ***shared == buffer);
        let shared = found.and_then(|at| last.remove(at)).unwrap_or_else(|| share(buffer));
        last.push_front(shared.clone());
        let outdated = if last.len() > MOST { last.pop_back() } else { None };
        drop(last);
        // Without the lock, whatever a driver does when its objects go.
        drop(outdated);
        shared
    }

    /// Lets go of all.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *lock(&self.0));
        drop(all);
    }
}
