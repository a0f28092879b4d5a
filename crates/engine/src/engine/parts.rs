//! One long query on several threads: its parts are answered by the engine's threads and by the one that asks.

use super::Shared;
use super::pool::{Help, Helpers};
use crate::query::answer::{Answer, Scored};
use crate::query::plan::Plan;
use lanner_index::format::IndexError;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The answer to a part, or what its thread panicked with.
type Outcome = std::thread::Result<Result<Answer<Scored>, IndexError>>;

/// Parts of a plan that threads answer together.
struct Parts {
    shared: Arc<Shared>,
    plans: Vec<Plan>,
    /// The next part to be taken.
    next: AtomicUsize,
    answers: Mutex<Vec<Option<Outcome>>>,
    /// Signalled when all answers are there.
    is_done: Condvar,
}

impl Parts {
    fn lock(&self) -> MutexGuard<'_, Vec<Option<Outcome>>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Help for Parts {
    fn help(&self, _between: &dyn Fn() -> bool) {
        while let number = self.next.fetch_add(1, Ordering::Relaxed)
            && let Some(plan) = self.plans.get(number)
        {
            // The thread that asks passes a panic on; without an outcome it would wait forever.
            let answer = catch_unwind(AssertUnwindSafe(|| self.shared.cpu.answer_one(plan, |hit| hit)));
            let mut answers = self.lock();
            answers[number] = Some(answer);
            if answers.iter().all(Option::is_some) {
                self.is_done.notify_all();
            }
        }
    }
}

/// Answers plans on this thread and on those of the pool that have time for it: `answers[i]` belongs to `plans[i]`.
pub fn answer(shared: &Arc<Shared>, helpers: &Helpers, plans: Vec<Plan>) -> Result<Vec<Answer<Scored>>, IndexError> {
    let answers = Mutex::new(plans.iter().map(|_| None).collect());
    let (shared, threads, next) = (Arc::clone(shared), plans.len() - 1, AtomicUsize::new(0));
    let parts = Arc::new(Parts { shared, plans, next, answers, is_done: Condvar::new() });
    helpers.ask(&parts, threads);
    parts.help(&|| true);
    helpers.withdraw(&parts);
    let mut answers = parts.lock();
    while answers.iter().any(Option::is_none) {
        answers = parts.is_done.wait(answers).unwrap_or_else(PoisonError::into_inner);
    }
    answers.drain(..).flatten().map(|outcome| outcome.unwrap_or_else(|panic| resume_unwind(panic))).collect()
}
