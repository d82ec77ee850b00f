//! Waiting for the device without work for the processor.

use super::device::Device;
use super::readback::{Mapped, Owed};
use crate::host::cache::lock;
use std::collections::VecDeque;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use wgpu::{PollError, PollStatus, PollType, SubmissionIndex};

/// The shortest and the longest time that a thread waits inside wgpu before it looks up. wgpu holds
/// a lock meanwhile, for which threads wait that destroy a buffer or present a frame.
const SLICE: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(100)];

/// How long to wait inside wgpu now: half of the time waited so far. With NVIDIA's driver each look
/// took half a millisecond of a processor, so long waits look up less often.
fn slice(begun: Instant) -> Option<Duration> {
    let [least, most] = SLICE;
    Some((begun.elapsed() / 2).clamp(least, most))
}

/// How long a future asks the device by itself before it leaves the waiting to the thread. The
/// thread takes longer to wake up than a small product takes.
const BRIEFLY: Duration = Duration::from_micros(100);

/// The shortest and the longest time for which a future on OpenGL sleeps before it asks again.
const PAUSE: [Duration; 2] = [Duration::from_micros(200), Duration::from_millis(50)];

/// How long to sleep now: an eighth of the time waited so far. The answer may be late by as much.
fn pause(begun: Instant) -> Duration {
    let [least, most] = PAUSE;
    (begun.elapsed() / 8).clamp(least, most)
}

/// How long the thread stays when there is nothing to wait for.
const IDLE: Duration = Duration::from_secs(1);

/// A future's part in waiting for a submission.
pub(super) struct Asking {
    submission: SubmissionIndex,
    owed: Weak<Owed>,
    begun: Instant,
    /// When the future next turns to the thread; `None` once the thread waits for the answer.
    next: Option<Instant>,
}

impl Asking {
    pub(super) fn new(submission: SubmissionIndex, owed: Weak<Owed>) -> Self {
        let begun = Instant::now();
        Asking { submission, owed, begun, next: Some(begun) }
    }

    /// Asks the device for news. If the answer is not there, the future will be polled again: at
    /// once to begin with. Does not block.
    pub(super) fn poll(
        &mut self,
        device: &Device,
        mut answer: Pin<&mut impl Future<Output = Option<Mapped>>>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Mapped>> {
        let polled = answer.as_mut().poll(context);
        if polled.is_ready() {
            return polled;
        }
        if let Err(error) = device.poll(PollType::Poll) {
            log::debug!("poll: {error}");
        }
        let polled = answer.poll(context);
        let now = Instant::now();
        if polled.is_pending() && self.next.is_some_and(|next| next <= now) {
            let (task, next) = if device.waiter.gl {
                let at = now + pause(self.begun);
                (Task::Wake(at, context.waker().clone()), Some(at))
            } else {
                let (device, submission) = (device.deref().clone(), self.submission.clone());
                (Task::Wait(device, submission, now, self.owed.clone()), None)
            };
            if now - self.begun > BRIEFLY && device.waiter.take_over(task) {
                self.next = next;
            } else {
                std::thread::yield_now();
                context.waker().wake_by_ref();
            }
        }
        polled
    }
}

/// Waits inside wgpu for a slice of time. `None` if wgpu panics. It does when the device is lost
/// meanwhile. wgpu 30 also does when another thread polls between the end of the slice and the last
/// look at the queue; then that thread gives all answers, and nothing is lost.
fn waited(
    device: &wgpu::Device,
    submission_index: Option<SubmissionIndex>,
    begun: Instant,
) -> Option<Result<PollStatus, PollError>> {
    let timeout = slice(begun);
    let wait = || device.poll(PollType::Wait { submission_index, timeout });
    catch_unwind(AssertUnwindSafe(wait)).ok()
}

/// Tasks of the thread for a future.
enum Task {
    /// Waits for the end of a submission, after which wgpu gives the answer that it owes.
    Wait(wgpu::Device, SubmissionIndex, Instant, Weak<Owed>),
    /// Wakes it at a time, for it to ask by itself. wgpu gives OpenGL to one thread at a time, and
    /// panics in one that wants it while another has it for 6 s. This thread, of which the user
    /// does not know, never wants it.
    Wake(Instant, Waker),
}

impl Task {
    /// Waits for a slice of time. Returns whether there is nothing left to do.
    fn wait(&self) -> bool {
        let (device, submission, begun, owed) = match self {
            Task::Wait(device, submission, begun, owed) => (device, submission, *begun, owed),
            Task::Wake(at, waker) => {
                std::thread::sleep(at.saturating_duration_since(Instant::now()));
                waker.wake_by_ref();
                return true;
            }
        };
        let wait = || waited(device, Some(submission.clone()), begun);
        match wait().or_else(wait) {
            Some(Err(PollError::Timeout)) => false,
            // A thread that polled at the same time may be about to give the answer.
            Some(Ok(_)) => true,
            // There will be none.
            Some(Err(PollError::WrongSubmissionIndex(..))) | None => {
                drop(owed.upgrade().and_then(|owed| lock(&owed).take()));
                true
            }
        }
    }
}

/// A thread that waits for submissions on behalf of futures. It starts with the first task, and
/// ends when there was none for a while.
pub(super) struct Waiter {
    shared: Arc<Shared>,
    gl: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Default)]
struct State {
    /// In the order of their submissions, or nearly so.
    awaited: VecDeque<Task>,
    /// Whether the thread is there.
    runs: bool,
    /// Whether the waiter is gone, and with it every future that gave it a task.
    closed: bool,
}

impl Waiter {
    pub(super) fn new(device: &wgpu::Device) -> Self {
        let gl = device.adapter_info().backend == wgpu::Backend::Gl;
        Waiter { shared: Arc::default(), gl }
    }

    /// Hands a task to the thread. Returns whether there is one.
    fn take_over(&self, task: Task) -> bool {
        let mut state = lock(&self.shared.state);
        if !state.runs {
            let shared = self.shared.clone();
            let thread = std::thread::Builder::new().name(THREAD.into());
            state.runs = match thread.spawn(move || shared.run()) {
                Ok(_) => true,
                Err(error) => {
                    log::debug!("no thread to wait on: {error}");
                    return false;
                }
            };
        }
        state.awaited.push_back(task);
        self.shared.news.notify_one();
        true
    }
}

/// The thread's name. Linux shows 15 letters of it.
const THREAD: &str = "tilewise waits";

impl Drop for Waiter {
    fn drop(&mut self) {
        lock(&self.shared.state).closed = true;
        self.shared.news.notify_one();
    }
}

impl Shared {
    fn run(&self) {
        let mut state = lock(&self.state);
        loop {
            let nothing = |state: &mut State| state.awaited.is_empty() && !state.closed;
            let waited = self.news.wait_timeout_while(state, IDLE, nothing);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if state.closed {
                break;
            }
            let Some(awaited) = state.awaited.pop_front() else { break };
            drop(state);
            let done = awaited.wait();
            // Dropped without the lock, because a driver may do anything when a device goes.
            let again = if done {
                drop(awaited);
                None
            } else {
                Some(awaited)
            };
            state = lock(&self.state);
            again.into_iter().for_each(|awaited| state.awaited.push_front(awaited));
        }
        state.runs = false;
        let given_up = std::mem::take(&mut state.awaited);
        drop(state);
        drop(given_up);
    }
}

impl Device {
    /// Waits until everything submitted so far is done.
    pub(crate) fn wait(&self) -> tilewise_core::Result<()> {
        self.alive()?;
        let done = Arc::new(AtomicBool::new(false));
        let tell = done.clone();
        // Each slice waits for the submission that is the last then, from any thread.
        self.queue.on_submitted_work_done(move || tell.store(true, Ordering::Release));
        let begun = Instant::now();
        let polled = loop {
            match waited(self, None, begun) {
                Some(Ok(_)) => break Ok(()),
                None | Some(Err(PollError::Timeout)) if done.load(Ordering::Acquire) => {
                    break Ok(());
                }
                Some(Err(PollError::Timeout)) => {}
                Some(Err(other)) => break Err(other),
                None => self.probe()?,
            }
        };
        self.alive()?;
        polled.map_err(|error| self.failed(error))
    }
}
