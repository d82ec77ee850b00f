//! Calls whose errors come later, as in a browser. A read of a buffer that a failed call wrote
//! gives the error of the call. Outside browsers errors come at once, and nothing is kept.

#[cfg(any(test, all(target_family = "wasm", feature = "webgpu")))]
mod question;
#[cfg(test)]
mod tests;

use super::bind::SharedBuffer;
use crate::host::cache::lock;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};
use tilewise_core::{Error, Result};

/// The calls on a device whose errors come later; empty if errors come at once.
#[derive(Clone, Default)]
pub(super) struct Calls(Option<Arc<Mutex<State>>>);

#[derive(Default)]
struct State {
    /// Calls that run, each within the one before.
    running: Vec<Progress>,
    /// Calls that are over, from the first one on that is not answered. They are settled in their
    /// order: what a call used is settled before it.
    awaited: VecDeque<Progress>,
    /// Failures that nobody has been told of.
    untold: Vec<Arc<Failure>>,
    /// Tasks that wait for a call to be settled.
    waiting: Vec<Waker>,
}

/// The most untold failures that are kept. The first are kept, because later ones may be their
/// consequences.
const MOST_UNTOLD: usize = 16;

/// A call that is not settled.
struct Progress {
    outcome: Arc<Settled>,
    /// Answers that are to come.
    answers: usize,
    failure: Option<Arc<Failure>>,
    /// Unsettled calls that made or wrote what this call uses.
    used: Vec<Outcome>,
}

/// The failure of a settled call, or none.
type Settled = OnceLock<Option<Arc<Failure>>>;

#[derive(Debug)]
struct Failure {
    error: Error,
    told: AtomicBool,
}

impl Failure {
    fn new(error: Error, told: bool) -> Arc<Self> {
        Arc::new(Failure { error, told: told.into() })
    }

    fn tell(&self) -> Error {
        self.told.store(true, Ordering::Relaxed);
        self.error.clone()
    }

    fn is_told(&self) -> bool {
        self.told.load(Ordering::Relaxed)
    }
}

/// The result of a call, which may be known only later. By default nothing went wrong.
#[derive(Clone, Default)]
pub(crate) struct Outcome(Option<Arc<Settled>>);

impl Outcome {
    /// `None` while the call is not settled.
    fn known(&self) -> Option<Option<&Arc<Failure>>> {
        match &self.0 {
            Some(settled) => settled.get().map(Option::as_ref),
            None => Some(None),
        }
    }

    /// Whether the call is known to have failed.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.known(), Some(Some(_)))
    }

    fn is(&self, other: &Arc<Settled>) -> bool {
        self.0.as_ref().is_some_and(|own| Arc::ptr_eq(own, other))
    }
}

impl Calls {
    pub(super) fn new(later: bool) -> Self {
        Calls(later.then(Arc::default))
    }

    /// Whether errors come later.
    pub(super) fn later(&self) -> bool {
        self.0.is_some()
    }

    /// Joins the call that runs, or begins one.
    pub(super) fn join(&self) -> Call {
        let running = self.0.as_ref().and_then(|state| {
            let state = lock(state);
            state.running.last().map(|running| running.outcome.clone())
        });
        match running {
            Some(outcome) => {
                Call { calls: self.clone(), outcome: Outcome(Some(outcome)), own: false }
            }
            None => self.begin(),
        }
    }

    /// Begins a call, perhaps within another: a call that makes what other calls will use, too.
    pub(super) fn begin(&self) -> Call {
        let outcome = self.0.as_ref().map(|state| {
            let outcome: Arc<Settled> = Arc::default();
            let (own, used) = (outcome.clone(), Vec::new());
            lock(state).running.push(Progress { outcome: own, answers: 0, failure: None, used });
            outcome
        });
        Call { calls: self.clone(), outcome: Outcome(outcome), own: true }
    }

    /// Waits until a call is settled.
    ///
    /// # Errors
    /// The error of the call, or of a call that made or wrote what it used.
    pub(super) async fn settled(&self, outcome: &Outcome) -> Result<()> {
        std::future::poll_fn(|context| self.poll(outcome, context)).await
    }

    fn poll(&self, outcome: &Outcome, context: &Context<'_>) -> Poll<Result<()>> {
        let state = self.0.as_ref().map(|state| lock(state));
        match (outcome.known(), state) {
            (Some(None), _) => Poll::Ready(Ok(())),
            (Some(Some(failure)), _) => Poll::Ready(Err(failure.tell())),
            (None, Some(mut state)) => {
                state.waiting.push(context.waker().clone());
                Poll::Pending
            }
            (None, None) => Poll::Ready(Ok(())),
        }
    }

    /// The first error of a settled call that nobody has been told of.
    pub(super) fn untold(&self) -> Result<()> {
        let Some(state) = &self.0 else { return Ok(()) };
        let first = lock(state).untold.iter().find(|failure| !failure.is_told()).cloned();
        first.map_or(Ok(()), |failure| Err(failure.tell()))
    }

    /// Changes the state and settles the calls that are answered then. Wakes the waiting tasks if a
    /// call was settled or `change` says so.
    fn change(&self, change: impl FnOnce(&mut State) -> bool) {
        let Some(state) = &self.0 else { return };
        let mut state = lock(state);
        let mut news = change(&mut state);
        while state.awaited.front().is_some_and(|first| first.answers == 0) {
            state.settle_first();
            news = true;
        }
        let woken = if news { std::mem::take(&mut state.waiting) } else { Vec::new() };
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl State {
    /// Settles the first call. If a call that it used has failed, that failure is the cause and
    /// counts.
    fn settle_first(&mut self) {
        let Some(progress) = self.awaited.pop_front() else { return };
        let earlier = progress.used.iter().find_map(|used| used.known().flatten().cloned());
        let failure = earlier.or(progress.failure);
        self.untold.retain(|failure| !failure.is_told());
        match &failure {
            Some(new) if !new.is_told() && !self.untold.iter().any(|it| Arc::ptr_eq(it, new)) => {
                match self.untold.len() < MOST_UNTOLD {
                    true => self.untold.push(new.clone()),
                    false => log::warn!("nobody has asked after a call that failed: {}", new.error),
                }
            }
            _ => {}
        }
        let _ = progress.outcome.set(failure);
    }
}

/// A running call; it ends when this is dropped.
#[must_use]
pub(crate) struct Call {
    calls: Calls,
    outcome: Outcome,
    /// Whether the call ends with this object, which did not join a running call.
    own: bool,
}

impl Call {
    pub(crate) fn outcome(&self) -> Outcome {
        self.outcome.clone()
    }

    /// Says that this call uses what another call made or wrote.
    ///
    /// # Errors
    /// The error of the other call, if it is known to have failed.
    pub(crate) fn uses(&self, other: &Outcome) -> Result<()> {
        match other.known() {
            Some(Some(failure)) => Err(failure.tell()),
            Some(None) => Ok(()),
            None => {
                self.progress(|own| {
                    if !other.is(&own.outcome) {
                        own.used.push(other.clone());
                    }
                });
                Ok(())
            }
        }
    }

    /// Says that this call has returned an error, and so has not written what it said it would.
    pub(super) fn fail(&self, error: &Error) {
        self.progress(|progress| progress.failure = Some(Failure::new(error.clone(), true)));
    }

    fn progress(&self, change: impl FnOnce(&mut Progress)) {
        let (Some(state), Some(own)) = (&self.calls.0, &self.outcome.0) else { return };
        let mut state = lock(state);
        let mut running = state.running.iter_mut();
        if let Some(progress) = running.rfind(|progress| Arc::ptr_eq(&progress.outcome, own)) {
            change(progress);
        }
    }

    /// Says that this call reads these bytes of a buffer.
    ///
    /// # Errors
    /// The error of a call that made or wrote them, if it is known to have failed.
    pub(crate) fn reads(&self, buffer: &SharedBuffer, bytes: Range<u64>) -> Result<()> {
        buffer.writers.read(self, bytes)
    }

    /// Says that this call writes these bytes of a buffer, or some of them.
    ///
    /// # Errors
    /// The error of the call that made the buffer, if it is known to have failed.
    pub(crate) fn writes(&self, buffer: &SharedBuffer, bytes: Range<u64>) -> Result<()> {
        buffer.writers.write(self, bytes)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.own {
            self.calls.change(|state| {
                state.awaited.extend(state.running.pop());
                false
            });
        }
    }
}

/// The calls that made and wrote a buffer. Calls that are known to have gone well are left out.
#[derive(Default)]
pub(super) struct Writers {
    made: Outcome,
    /// Calls that wrote, each with its bytes, from the first to the last.
    wrote: Mutex<Vec<(Range<u64>, Outcome)>>,
}

impl Writers {
    /// Starts with the call that makes the buffer.
    pub(super) fn made(made: Outcome) -> Self {
        Writers { made, wrote: Mutex::default() }
    }

    /// Whether making the buffer is known to have failed.
    pub(super) fn has_none(&self) -> bool {
        self.made.has_failed()
    }

    /// Forgets writers whose failure somebody was told of: the caller may have written the contents
    /// anew.
    pub(super) fn trust(&self) {
        let is_told = |outcome: &Outcome| outcome.known().flatten().is_some_and(|it| it.is_told());
        lock(&self.wrote).retain(|(_, outcome)| !is_told(outcome));
    }

    fn read(&self, call: &Call, bytes: Range<u64>) -> Result<()> {
        call.uses(&self.made)?;
        let wrote = lock(&self.wrote);
        let meets = |other: &Range<u64>| other.start < bytes.end && bytes.start < other.end;
        wrote.iter().filter(|(of, _)| meets(of)).try_for_each(|(_, outcome)| call.uses(outcome))
    }

    /// Notes a call that writes these bytes, and forgets the calls whose bytes it covers.
    fn write(&self, call: &Call, bytes: Range<u64>) -> Result<()> {
        call.uses(&self.made)?;
        if call.outcome.0.is_some() {
            let covers = |of: &Range<u64>| bytes.start <= of.start && of.end <= bytes.end;
            let mut wrote = lock(&self.wrote);
            wrote.retain(|(of, outcome)| !matches!(outcome.known(), Some(None)) && !covers(of));
            wrote.push((bytes, call.outcome()));
        }
        Ok(())
    }
}
