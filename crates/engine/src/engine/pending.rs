//! A submitted query on its way through the engine, and the future of its answer.

use super::SearchError;
use super::admission::Admitted;
use crate::device::submission::Unpark;
use crate::query::Query;
use crate::query::answer::Answer;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// A query that the engine has accepted. Dropping it without an answer, which only a panic does, is an answer too: an
/// error.
#[derive(Debug)]
pub struct Ticket {
    pub query: Query,
    pub arrived: Instant,
    cell: Arc<Cell>,
}

/// Where an answer is put and taken.
#[derive(Debug)]
struct Cell {
    state: Mutex<State>,
    is_cancelled: Arc<AtomicBool>,
}

#[derive(Debug)]
struct State {
    /// `None` before there is an answer, and after it was taken.
    answer: Option<Result<Answer, SearchError>>,
    waker: Option<Waker>,
    /// The query's place in the bounded queue; freed with its answer, or when it is cancelled.
    place: Option<Admitted>,
}

impl Cell {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, answer: Result<Answer, SearchError>) {
        let mut state = self.lock();
        state.answer = Some(answer);
        let (waker, place) = (state.waker.take(), state.place.take());
        drop(state);
        drop(place);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Ticket {
    pub fn new(query: Query, place: Admitted) -> Ticket {
        let state = Mutex::new(State { answer: None, waker: None, place: Some(place) });
        let cell = Arc::new(Cell { state, is_cancelled: Arc::new(AtomicBool::new(false)) });
        Ticket { query, arrived: Instant::now(), cell }
    }

    /// The future of its answer.
    pub fn pending(&self) -> Pending {
        Pending { cell: Arc::clone(&self.cell), is_taken: false }
    }

    /// Set when nobody wants the answer any more.
    pub fn cancelled(&self) -> &Arc<AtomicBool> {
        &self.cell.is_cancelled
    }

    /// Delivers the answer.
    pub fn end(self, answer: Result<Answer, SearchError>) {
        self.cell.put(answer);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // Only the ticket puts answers: one that was ended has no place any more.
        if self.cell.lock().place.is_some() && !self.cell.is_cancelled.load(Ordering::Relaxed) {
            self.cell.put(Err(SearchError::Panicked { reason: "its thread ended".to_owned() }));
        }
    }
}

/// The answer to a query that was submitted to an [`Engine`](crate::Engine): a future, or [`Pending::wait`]. Dropping it
/// cancels the query, unless it is being answered already.
#[derive(Debug)]
pub struct Pending {
    cell: Arc<Cell>,
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
        let mut state = self.cell.lock();
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
            self.cell.is_cancelled.store(true, Ordering::Relaxed);
            let place = self.cell.lock().place.take();
            drop(place);
        }
    }
}
