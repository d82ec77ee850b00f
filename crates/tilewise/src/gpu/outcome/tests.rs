//! Tests of errors that come later, with answers that the test gives.

use super::*;
use std::sync::atomic::AtomicUsize;
use std::task::Wake;

fn error(text: &str) -> Error {
    Error::OutOfMemory(text.into())
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether a call is settled, and how.
fn known(calls: &Calls, outcome: &Outcome) -> Option<Result<()>> {
    match calls.poll(outcome, &Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

/// A call that reads bytes of one buffer, and writes bytes of another.
fn copy(
    calls: &Calls,
    (from, read): (&Writers, Range<u64>),
    (to, written): (&Writers, Range<u64>),
) -> Result<Outcome> {
    let call = calls.begin();
    from.read(&call, read)?;
    to.write(&call, written)?;
    Ok(call.outcome())
}

#[test]
fn an_error_is_that_of_whatever_follows_from_it_and_of_nothing_else() {
    let calls = Calls::new(true);
    let [a, b, c] = [(); 3].map(|()| Writers::default());
    let write = |writers: &Writers, bytes| {
        let call = calls.begin();
        writers.write(&call, bytes).unwrap();
        calls.ask()
    };
    let (wrong, right) = (write(&a, 0..8), write(&a, 8..16));
    let dependent = copy(&calls, (&a, 4..12), (&b, 0..8)).unwrap();
    let other = copy(&calls, (&a, 8..16), (&c, 0..8)).unwrap();
    // Answers may come in any order.
    right.answer(None);
    assert_eq!([&dependent, &other].map(|it| known(&calls, it)), [None, None]);
    wrong.answer(Some(error("a")));
    assert_eq!(known(&calls, &other), Some(Ok(())));
    assert_eq!(known(&calls, &dependent), Some(Err(error("a"))));
    // Once the failure is known, a new call fails at once.
    for (from, bytes) in [(&a, 0..1), (&a, 7..9), (&b, 0..8)] {
        assert_eq!(copy(&calls, (from, bytes), (&c, 0..8)).err(), Some(error("a")));
    }
    for (from, bytes) in [(&a, 8..16), (&b, 8..9), (&c, 0..8)] {
        assert_eq!(copy(&calls, (from, bytes), (&c, 8..9)).err(), None);
    }
    // The failure stays until all of its bytes are written over.
    for (bytes, left) in [(1..8, Some(error("a"))), (0..7, Some(error("a"))), (0..8, None)] {
        write(&a, bytes).answer(None);
        assert_eq!(copy(&calls, (&a, 0..16), (&c, 0..8)).err(), left);
    }
    assert_eq!(calls.untold(), Ok(()));
}

#[test]
fn what_a_call_makes_for_others_has_an_outcome_of_its_own() {
    let calls = Calls::new(true);
    let outer = calls.join();
    let inner = calls.begin();
    let made = calls.ask();
    let pipeline = inner.outcome();
    drop(inner);
    outer.uses(&pipeline).unwrap();
    let submitted = calls.ask();
    assert!(calls.join().outcome().is(outer.outcome().0.as_ref().unwrap()));
    let outcome = outer.outcome();
    drop(outer);
    made.answer(None);
    submitted.answer(Some(error("submitted")));
    assert_eq!(known(&calls, &pipeline), Some(Ok(())));
    assert_eq!(known(&calls, &outcome), Some(Err(error("submitted"))));
    // Making the buffer failed: nothing can be written to it, and its error is the cause.
    let making = calls.begin();
    let none = Writers::made(making.outcome());
    let question = calls.ask();
    drop(making);
    let use_it = |from| copy(&calls, (from, 0..4), (&Writers::default(), 0..4));
    let used = use_it(&none).unwrap();
    question.answer(Some(error("made")));
    assert_eq!(known(&calls, &used), Some(Err(error("made"))));
    assert!(none.has_none());
    assert_eq!(none.write(&calls.begin(), 0..99), Err(error("made")));
    assert_eq!(use_it(&none).err(), Some(error("made")));
}

#[test]
fn what_nobody_was_told_of_is_kept_up_to_a_number_of_errors() {
    let calls = Calls::new(true);
    let fail = |text: String| {
        let call = calls.begin();
        let question = calls.ask();
        let outcome = call.outcome();
        drop(call);
        question.answer(Some(error(&text)));
        outcome
    };
    let read = fail("read".into());
    for number in 0..100 {
        drop(fail(number.to_string()));
    }
    assert_eq!(known(&calls, &read), Some(Err(error("read"))));
    for number in 0..MOST_UNTOLD - 1 {
        assert_eq!(calls.untold(), Err(error(&number.to_string())));
    }
    assert_eq!(calls.untold(), Ok(()));
    // The caller knows of an error that a call returned. The call has not written its output.
    let (call, writers) = (calls.begin(), Writers::default());
    writers.write(&call, 0..4).unwrap();
    call.fail(&error("returned"));
    drop(call);
    assert_eq!(calls.untold(), Ok(()));
    let read = || copy(&calls, (&writers, 0..4), (&Writers::default(), 0..4)).err();
    assert_eq!(read(), Some(error("returned")));
    writers.trust();
    assert_eq!(read(), None);
}

#[test]
fn all_who_wait_are_woken_and_nothing_is_left() {
    let calls = Calls::new(true);
    for lost in [false, true] {
        let wakes = [(); 2].map(|()| Arc::new(Wakes::default()));
        let call = calls.begin();
        let questions = [calls.ask(), calls.ask()];
        let outcome = call.outcome();
        drop(call);
        for wakes in &wakes {
            let waker = Waker::from(wakes.clone());
            assert_eq!(calls.poll(&outcome, &Context::from_waker(&waker)), Poll::Pending);
        }
        if lost {
            calls.lose(error("lost"));
        }
        // A question that is dropped is answered.
        let [first, second] = questions;
        first.answer(None);
        drop(second);
        assert!(wakes.iter().all(|wakes| wakes.0.load(Ordering::Relaxed) == 1));
        assert_eq!(known(&calls, &outcome), Some(if lost { Err(error("lost")) } else { Ok(()) }));
        assert_eq!(calls.untold(), Ok(()));
        let state = lock(calls.0.as_ref().unwrap());
        let left = [state.running.len(), state.awaited.len(), state.untold.len()];
        assert_eq!((left, state.waiting.len()), ([0; 3], 0));
    }
}

#[test]
fn where_errors_come_at_once_nothing_is_kept() {
    let (calls, writers) = (Calls::new(false), Writers::default());
    let outcome = copy(&calls, (&writers, 0..4), (&writers, 0..4)).unwrap();
    assert!(outcome.0.is_none() && lock(&writers.wrote).is_empty());
    assert_eq!((known(&calls, &outcome), calls.untold()), (Some(Ok(())), Ok(())));
}
