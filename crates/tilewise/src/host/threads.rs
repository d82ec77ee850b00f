//! The threads that share the work of the CPU executor.
//!
//! Work is cut by its shape alone, never by the number of threads, so every number gives the same
//! bits.

use std::num::NonZeroUsize;
use tilewise_core::Result;

#[cfg(not(target_family = "wasm"))]
use {rayon::prelude::*, tilewise_core::Error};

/// The threads of a context: rayon's pool for the whole process, or a pool of its own. On wasm, the
/// calling thread.
#[derive(Default)]
pub(crate) struct Threads {
    #[cfg(not(target_family = "wasm"))]
    own: Option<rayon::ThreadPool>,
}

impl Threads {
    /// That many threads, or those of the process.
    pub(crate) fn new(count: Option<NonZeroUsize>) -> Result<Self> {
        #[cfg(not(target_family = "wasm"))]
        if let Some(count) = count {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(count.get());
            let pool = pool.thread_name(|number| format!("tilewise {number}")).build();
            let own = pool.map_err(|why| Error::OutOfMemory(format!("{count} threads: {why}")))?;
            return Ok(Threads { own: Some(own) });
        }
        let _ = count;
        Ok(Threads::default())
    }

    /// Whether the caller is a thread of rayon. While it waits it may take up other work of its
    /// pool, which may wait for a lock that the caller holds.
    #[cfg(feature = "custom-kernels")]
    pub(crate) fn has_caller(&self) -> bool {
        #[cfg(not(target_family = "wasm"))]
        return rayon::current_thread_index().is_some();
        #[cfg(target_family = "wasm")]
        return false;
    }

    /// Calls `work` for each number below `count`, in any order and many at a time.
    pub(crate) fn each(&self, count: usize, work: impl Fn(usize) + Send + Sync) {
        match count {
            0 => {}
            1 => work(0),
            #[cfg(not(target_family = "wasm"))]
            _ => self.within(|| (0..count).into_par_iter().with_max_len(1).for_each(work)),
            #[cfg(target_family = "wasm")]
            _ => (0..count).for_each(work),
        }
    }

    /// Calls `work` for pieces of `size` elements, each with the number of its first element. The
    /// last piece may be shorter.
    pub(crate) fn pieces<T: Send>(
        &self,
        all: &mut [T],
        size: usize,
        work: impl Fn(usize, &mut [T]) + Send + Sync,
    ) {
        let size = size.max(1);
        if all.len() <= size {
            return work(0, all);
        }
        #[cfg(not(target_family = "wasm"))]
        self.within(|| {
            let pieces = all.par_chunks_mut(size).with_max_len(1).enumerate();
            pieces.for_each(|(number, piece)| work(number * size, piece));
        });
        #[cfg(target_family = "wasm")]
        all.chunks_mut(size).enumerate().for_each(|(number, piece)| work(number * size, piece));
    }

    #[cfg(not(target_family = "wasm"))]
    fn within(&self, work: impl FnOnce() + Send) {
        match &self.own {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }
}
