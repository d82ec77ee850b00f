//! Values that callbacks of wgpu owe to futures.

use crate::cache::lock;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// A value that a callback of wgpu owes to a future.
pub(crate) struct Answer<T>(Arc<Mutex<State<T>>>);

/// The answer to a request to map a buffer.
pub(super) type Mapped = Result<(), wgpu::BufferAsyncError>;

/// The pending answer to a request to map a buffer.
pub(super) type Mapping = Answer<Mapped>;

enum State<T> {
    /// Not there yet, with the task that waits for it.
    Awaited(Option<Waker>),
    Given(T),
    /// The callback was dropped without a call, or the answer has been taken.
    Gone,
}

impl<T> Default for Answer<T> {
    fn default() -> Self {
        Answer(Arc::new(Mutex::new(State::Awaited(None))))
    }
}

impl<T> Clone for Answer<T> {
    fn clone(&self) -> Self {
        Answer(self.0.clone())
    }
}

impl<T> Answer<T> {
    /// The answer, once; `None` when there will be none.
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<Option<T>> {
        let mut state = lock(&self.0);
        match std::mem::replace(&mut *state, State::Gone) {
            State::Awaited(_) => {
                *state = State::Awaited(Some(context.waker().clone()));
                Poll::Pending
            }
            State::Given(value) => Poll::Ready(Some(value)),
            State::Gone => Poll::Ready(None),
        }
    }

    /// Gives up an answer that will not come.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn abandon(&self) {
        self.settle(State::Gone);
    }

    /// Wakes the waiting task, without an answer.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn wake(&self) {
        let waker = match &mut *lock(&self.0) {
            State::Awaited(waker) => waker.take(),
            State::Given(_) | State::Gone => None,
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Settles an answer that is still awaited, and wakes the waiting task.
    fn settle(&self, settled: State<T>) {
        let mut state = lock(&self.0);
        if let State::Awaited(waker) = &mut *state {
            let waker = waker.take();
            *state = settled;
            drop(state);
            waker.into_iter().for_each(Waker::wake);
        }
    }
}

/// The callback's end of an [`Answer`].
pub(crate) struct Sender<T>(pub(crate) Answer<T>);

impl<T> Sender<T> {
    pub(crate) fn send(self, value: T) {
        self.0.settle(State::Given(value));
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.settle(State::Gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn an_answer_wakes_its_future_once_whether_it_is_given_or_not() {
        for (given, abandoned) in [(Some(7), false), (None, false), (None, true)] {
            let wakes = Arc::new(Wakes::default());
            let waker = Waker::from(wakes.clone());
            let context = Context::from_waker(&waker);
            let answer = Answer::default();
            let sender = Sender(answer.clone());
            for _ in 0..2 {
                assert_eq!(answer.poll(&context), Poll::Pending);
            }
            assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
            match given {
                Some(value) => sender.send(value),
                None if abandoned => {
                    answer.abandon();
                    sender.send(8);
                }
                None => drop(sender),
            }
            assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
            assert_eq!(answer.poll(&context), Poll::Ready(given));
        }
    }
}
