//! Questions whether a call went wrong, which the driver answers after the call.

use super::{Calls, Failure, Settled};
use crate::host::cache::lock;
use std::sync::Arc;
use tilewise_core::Error;

/// An unanswered question about a call. If it is dropped without an error, nothing went wrong.
pub(in crate::gpu) struct Question {
    calls: Calls,
    about: Option<Arc<Settled>>,
    error: Option<Error>,
}

impl Calls {
    /// Asks about the call that runs.
    pub(in crate::gpu) fn ask(&self) -> Question {
        let about = self.0.as_ref().and_then(|state| {
            let mut state = lock(state);
            let running = state.running.last_mut()?;
            running.answers += 1;
            Some(running.outcome.clone())
        });
        Question { calls: self.clone(), about, error: None }
    }

    /// Settles all calls with an error, because the device is lost: no more answers will come.
    pub(in crate::gpu) fn lose(&self, error: Error) {
        let failure = Failure::new(error, true);
        self.change(|state| {
            let given_up = state.awaited.drain(..);
            given_up.for_each(|progress| drop(progress.outcome.set(Some(failure.clone()))));
            true
        });
    }
}

impl Question {
    /// Answers the question: with the error of the call, or with none.
    pub(in crate::gpu) fn answer(mut self, error: Option<Error>) {
        self.error = error;
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        let Some(about) = &self.about else { return };
        let failure = self.error.take().map(|error| Failure::new(error, false));
        self.calls.change(|state| {
            let mut all = state.awaited.iter_mut().chain(&mut state.running);
            if let Some(progress) = all.find(|progress| Arc::ptr_eq(&progress.outcome, about)) {
                progress.answers -= 1;
                progress.failure = progress.failure.take().or(failure);
            }
            false
        });
    }
}
