//! A submitted query on its way through the engine, and the future of its answer.

use super::admission::Permit;
use super::integrator::{Asker, Leader};
use super::{SearchError, Shared};
use crate::device::submission::Unpark;
use crate::query::Query;
use crate::query::answer::Answer;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// A query that the engine has accepted. If it is dropped without an answer and was not cancelled, which only a panic
/// causes, its future gets [`SearchError::Panicked`].
#[derive(Debug)]
pub struct Ticket {
    pub query: Query,
    pub arrived: Instant,
    /// Whether it takes part in flights.
    pub asker: Asker,
    /// Makes the answer for others too. Dropped with the ticket, so that its followers go on if it gets no answer.
    pub leader: Option<Leader>,
    /// The index that it asks, with the workers.
    pub shared: Arc<Shared>,
    promise: Arc<Promise>,
}

/// Where an answer is put and taken.
#[derive(Debug)]
struct Promise {
    state: Mutex<State>,
    is_cancelled: Arc<AtomicBool>,
}

#[derive(Debug)]
struct State {
    /// `None` before there is an answer, and after it was taken.
    answer: Option<Result<Answer, SearchError>>,
    waker: Option<Waker>,
    /// The query's permit to be in the bounded queue; freed with its answer, or when it is cancelled.
    permit: Option<Permit>,
}

impl Promise {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, answer: Result<Answer, SearchError>) {
        let mut state = self.lock();
        state.answer = Some(answer);
        let (waker, permit) = (state.waker.take(), state.permit.take());
        drop(state);
        drop(permit);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Ticket {
    pub fn new(shared: &Arc<Shared>, query: Query, permit: Permit) -> Ticket {
        let state = Mutex::new(State { answer: None, waker: None, permit: Some(permit) });
        let promise = Arc::new(Promise { state, is_cancelled: Arc::new(AtomicBool::new(false)) });
        let (arrived, shared) = (Instant::now(), Arc::clone(shared));
        Ticket { query, arrived, asker: Asker::Ticket, leader: None, shared, promise }
    }

    /// The future of its answer.
    pub fn pending(&self) -> Pending {
        Pending { promise: Arc::clone(&self.promise), is_taken: false }
    }

    /// Set when nobody wants the answer any more.
    pub fn cancelled(&self) -> &Arc<AtomicBool> {
        &self.promise.is_cancelled
    }

    /// Delivers the answer.
    pub fn end(self, answer: Result<Answer, SearchError>) {
        self.promise.put(answer);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // Only the ticket puts answers: one that was ended has no permit any more.
        if self.promise.lock().permit.is_some() && !self.promise.is_cancelled.load(Ordering::Relaxed) {
            self.promise.put(Err(SearchError::Panicked { reason: "its thread ended".to_owned() }));
        }
    }
}

/// The answer to a query that was submitted to an [`Engine`](crate::Engine): a future, or [`Pending::wait`]. Dropping
/// it cancels the query, unless it is being answered already.
#[derive(Debug)]
pub struct Pending {
    promise: Arc<Promise>,
    is_taken: bool,
}

impl Pending {
    /// Waits for the answer on this thread.
    pub fn wait(mut self) -> Result<Answer, SearchError> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        loop {
            match Pin::new(&mut self).poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(answer) => return answer,
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

impl Future for Pending {
    type Output = Result<Answer, SearchError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.promise.lock();
        match state.answer.take() {
            Some(answer) => {
                drop(state);
                self.is_taken = true;
                Poll::Ready(answer)
            }
            None => {
                assert!(!self.is_taken, "a future is not polled after it was ready");
                match &mut state.waker {
                    Some(waker) => waker.clone_from(context.waker()),
                    None => state.waker = Some(context.waker().clone()),
                }
                Poll::Pending
            }
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.is_taken {
            self.promise.is_cancelled.store(true, Ordering::Relaxed);
            let permit = self.promise.lock().permit.take();
            drop(permit);
        }
    }
}
