//! The last given buffers, kept so that a new tensor on one of them finds its bind groups.

use super::bind::SharedBuffer;
use crate::host::cache::lock;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// How many buffers are kept alive. They are compared one by one, which is quicker than binding.
const MOST: usize = 64;

/// The buffers, from the most recently used to the one that goes next.
#[derive(Default)]
pub(super) struct Callers(Mutex<VecDeque<Arc<SharedBuffer>>>);

impl Callers {
    /// The kept object for this buffer, or a new one that `share` makes.
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
        // Dropped without the lock, because a driver may do anything when its objects go.
        drop(outdated);
        shared
    }

    /// Lets go of all buffers.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *lock(&self.0));
        drop(all);
    }
}
