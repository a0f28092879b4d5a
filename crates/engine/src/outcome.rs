//! What became of plans that were given to a worker, on its way back to the thread that waits for it.
//!
//! The thread that submits plans makes [`Outcomes`] for them, with a [`Reply`] for each. The replies go to a worker, whose
//! thread fulfils them in any order; the last one wakes whoever waits. A reply that is dropped unfulfilled, because a
//! batch failed or a worker's thread panicked, delivers [`Why::Failed`]. So every accepted plan has an outcome, and no
//! caller waits forever.

use crate::query::answer::{Answer, Scored};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// A blocked caller spins for this long before it parks: a single query takes some tens of microseconds on a GPU, and
/// waking a parked thread takes about ten more.
const SPIN: Duration = Duration::from_micros(100);

/// What became of a plan.
#[derive(Debug)]
pub enum Outcome {
    /// The worker answered it.
    Answered(Answer<Scored>),
    /// It did not; another worker can.
    Unanswered(Why),
}

/// Why a worker did not answer a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It never answers plans of this kind.
    Unsupported,
    /// The plan does not fit in the memory of its device.
    TooLarge,
    /// It could not read the lists. The CPU reports which file is damaged.
    Unreadable,
    /// Its device failed, or is not used for a while after a failure.
    Failed,
}

/// The duty to deliver the outcome of one plan.
#[derive(Debug)]
pub struct Reply {
    /// `None` once the outcome is delivered.
    outcomes: Option<Arc<Outcomes>>,
    position: usize,
}

impl Reply {
    /// Delivers the outcome.
    pub fn fulfil(mut self, outcome: Outcome) {
        self.deliver(outcome);
    }

    fn deliver(&mut self, outcome: Outcome) {
        if let Some(outcomes) = self.outcomes.take() {
            outcomes.put(self.position, outcome);
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.deliver(Outcome::Unanswered(Why::Failed));
    }
}

/// The outcomes of plans that were submitted together.
#[derive(Debug)]
pub struct Outcomes {
    /// How many are missing.
    missing: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    outcomes: Vec<Option<Outcome>>,
    /// Woken with the last outcome.
    waker: Option<Waker>,
}

impl Outcomes {
    /// Expects the outcomes of this many plans, and makes their replies.
    pub fn expect(count: usize) -> (Arc<Outcomes>, impl Iterator<Item = Reply>) {
        let state = State { outcomes: (0..count).map(|_| None).collect(), waker: None };
        let outcomes = Arc::new(Outcomes { missing: AtomicUsize::new(count), state: Mutex::new(state) });
        let expected = Arc::clone(&outcomes);
        let reply = move |position| Reply { outcomes: Some(Arc::clone(&expected)), position };
        (outcomes, (0..count).map(reply))
    }

    fn put(&self, position: usize, outcome: Outcome) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.outcomes[position] = Some(outcome);
        // Within the lock: whoever registers a waker has either seen this outcome, or is woken.
        if self.missing.fetch_sub(1, Ordering::Release) == 1
            && let Some(waker) = state.waker.take()
        {
            drop(state);
            waker.wake();
        }
    }

    /// Whether all outcomes are there.
    fn are_complete(&self) -> bool {
        self.missing.load(Ordering::Acquire) == 0
    }

    /// Takes the outcomes if all are there; otherwise the task is woken when they are.
    pub fn poll(&self, context: &Context<'_>) -> Poll<Vec<Outcome>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.are_complete() {
            state.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        let outcomes = std::mem::take(&mut state.outcomes);
        Poll::Ready(outcomes.into_iter().map(|outcome| outcome.expect("none is missing")).collect())
    }

    /// Waits for all outcomes.
    pub fn wait(&self) -> Vec<Outcome> {
        let start = Instant::now();
        while !self.are_complete() && start.elapsed() < SPIN {
            std::hint::spin_loop();
        }
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        loop {
            match self.poll(&Context::from_waker(&waker)) {
                Poll::Ready(outcomes) => return outcomes,
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

/// Wakes a thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
