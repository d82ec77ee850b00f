//! The threads that share the work of the CPU executor.
//!
//! Work is cut by its shape alone, never by the number of threads, so every number gives the same
//! bits.

use std::num::NonZeroUsize;
use tilewise_core::Result;

#[cfg(not(target_family = "wasm"))]
use {rayon::prelude::*, tilewise_core::Error};

/// Threads of a context, at most: thousands take seconds to start.
#[cfg(not(target_family = "wasm"))]
const MOST: usize = 1024;

/// The threads of a context. They are rayon's global pool, or a pool that the context owns. On wasm
/// the calling thread does all work.
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
            if count.get() > MOST {
                return Err(Error::Misuse(format!("{count} threads: at most {MOST}")));
            }
            let pool = rayon::ThreadPoolBuilder::new().num_threads(count.get());
            let pool = pool.thread_name(|number| format!("tilewise {number}")).build();
            let own = pool.map_err(|why| Error::OutOfMemory(format!("{count} threads: {why}")))?;
            return Ok(Threads { own: Some(own) });
        }
        let _ = count;
        Ok(Threads::default())
    }

    /// Calls `work` for each number below `count`, in any order and many at a time.
    pub(crate) fn each(&self, count: usize, work: impl Fn(usize) + Send + Sync) {
        #[cfg(not(target_family = "wasm"))]
        if count > 1 && !on_rayon() {
            return self.within(|| (0..count).into_par_iter().with_max_len(1).for_each(work));
        }
        (0..count).for_each(work);
    }

    /// Calls `work` for each of `all`, with its number, in any order and many at a time.
    #[cfg(feature = "custom-kernels")]
    pub(crate) fn each_of<T: Send>(
        &self,
        all: &mut [T],
        work: impl Fn(usize, &mut T) + Send + Sync,
    ) {
        #[cfg(not(target_family = "wasm"))]
        if all.len() > 1 && !on_rayon() {
            return self.within(|| {
                let all = all.par_iter_mut().with_max_len(1).enumerate();
                all.for_each(|(number, one)| work(number, one));
            });
        }
        all.iter_mut().enumerate().for_each(|(number, one)| work(number, one));
    }

    #[cfg(not(target_family = "wasm"))]
    fn within(&self, work: impl FnOnce() + Send) {
        match &self.own {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }
}

/// Whether the caller is a thread of rayon. While it waits it may take up other work of its pool,
/// which may wait for a lock that the caller holds. So it works alone.
#[cfg(not(target_family = "wasm"))]
fn on_rayon() -> bool {
    rayon::current_thread_index().is_some()
}
