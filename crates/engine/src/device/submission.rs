//! Plans on their way to the thread of a device, and their outcomes on the way back.
//!
//! A thread submits plans together, with the rows that it has made for them, as one [`Submission`]. The thread of the
//! device takes them as [`Job`]s, which may end in any order and in different batches; the last one wakes the waiting
//! thread. Plans, rows and the answers made from what a device returned belong to the submitting thread: the device's
//! thread allocates and frees memory for batches, not for each of their queries.
//!
//! A job that is dropped without an outcome, because a batch failed or the thread panicked, ends with [`Why::Failed`].
//! So every accepted plan has an outcome, and no caller waits forever.

use super::answers::BatchAnswers;
use super::batch::{ListRows, PlanRows, RowRanges};
use super::queue::runs_in_batches;
use crate::query::answer::{Answer, Scored};
use crate::query::plan::Plan;
use lanner_index::open::Index;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// A blocked caller spins for this long before it parks: a single query takes some tens of microseconds on a GPU, and
/// waking a parked thread takes about ten more.
const SPIN: Duration = Duration::from_micros(100);

/// What became of a plan.
#[derive(Debug)]
pub enum Outcome {
    /// The device answered it.
    Answered(Answer<Scored>),
    /// A batch answered it: the position of its answer there.
    InBatch(Arc<BatchAnswers>, usize),
    /// The device did not answer it; the CPU can.
    Unanswered(Why),
}

impl Outcome {
    /// The answer, if there is one.
    pub fn answer(self) -> Option<Answer<Scored>> {
        match self {
            Outcome::Answered(answer) => Some(answer),
            Outcome::InBatch(batch, position) => Some(batch.answer(position)),
            Outcome::Unanswered(_) => None,
        }
    }
}

/// Why a device did not answer a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The device does not answer plans of this kind.
    Unsupported,
    /// The plan does not fit in device memory.
    TooLarge,
    /// The lists could not be read. The CPU reports which file is damaged.
    Unreadable,
    /// The device failed, or is not used for a while after a failure.
    Failed,
}

/// Plans that were submitted together.
#[derive(Debug)]
pub struct Submission {
    plans: Vec<Prepared>,
    /// In few pieces of memory, which the submitting thread frees: an allocation for each plan would cost as much as
    /// its rows.
    rows: ListRows,
    missing: Missing,
    /// Whether nobody wants the outcomes any more.
    is_cancelled: AtomicBool,
    state: Mutex<State>,
}

/// A plan, and the rows of its lists if it runs in batches; or why it is not for the device.
#[derive(Debug)]
struct Prepared {
    plan: Plan,
    rows: Result<RowRanges, Why>,
}

/// How many outcomes are missing. On a cache line of its own: the caller polls it while the device's thread reads the
/// rest.
#[derive(Debug)]
#[repr(align(128))]
struct Missing(AtomicUsize);

#[derive(Debug)]
struct State {
    outcomes: Vec<Option<Outcome>>,
    /// Woken with the last outcome.
    waker: Option<Waker>,
}

impl Submission {
    /// Makes the rows of the plans that the device supports; the others have their outcomes already.
    pub fn new(index: &Index, plans: impl Iterator<Item = Plan>, supports: impl Fn(&Plan) -> bool) -> Arc<Submission> {
        let mut rows = ListRows::default();
        let mut ranges_of = |plan: &Plan| match supports(plan) {
            true if runs_in_batches(plan) => rows.add(index, plan).map_err(|_| Why::Unreadable),
            true => Ok(RowRanges::default()),
            false => Err(Why::Unsupported),
        };
        let plans = plans.map(|plan| Prepared { rows: ranges_of(&plan), plan }).collect();
        Submission::prepared(plans, rows)
    }

    /// Plans without lists.
    #[cfg(test)]
    pub fn without_rows(plans: Vec<Plan>) -> Arc<Submission> {
        let prepare = |plan| Prepared { plan, rows: Ok(RowRanges::default()) };
        Submission::prepared(plans.into_iter().map(prepare).collect(), ListRows::default())
    }

    fn prepared(plans: Vec<Prepared>, rows: ListRows) -> Arc<Submission> {
        let outcomes: Vec<Option<Outcome>> =
            plans.iter().map(|prepared| prepared.rows.as_ref().err().map(|why| Outcome::Unanswered(*why))).collect();
        let missing = Missing(AtomicUsize::new(outcomes.iter().filter(|outcome| outcome.is_none()).count()));
        let (is_cancelled, state) = (AtomicBool::new(false), Mutex::new(State { outcomes, waker: None }));
        Arc::new(Submission { plans, rows, missing, is_cancelled, state })
    }

    /// The jobs of the plans that have no outcome yet, each to be ended once.
    pub fn jobs(self: &Arc<Submission>) -> impl Iterator<Item = Job> {
        let is_job = |position: &usize| self.plans[*position].rows.is_ok();
        let job = |position| Job { submission: Arc::clone(self), position, is_ended: false };
        (0..self.plans.len()).filter(is_job).map(job)
    }

    pub fn plan(&self, position: usize) -> &Plan {
        &self.plans[position].plan
    }

    /// Says that nobody wants the outcomes: jobs that are in no batch yet end without one.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    fn put(&self, position: usize, outcome: Outcome) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.outcomes[position] = Some(outcome);
        // Within the lock: a task that registers a waker has either seen this outcome, or is woken.
        if self.missing.0.fetch_sub(1, Ordering::Release) == 1
            && let Some(waker) = state.waker.take()
        {
            drop(state);
            waker.wake();
        }
    }

    /// Whether all outcomes are there.
    pub fn is_complete(&self) -> bool {
        self.missing.0.load(Ordering::Acquire) == 0
    }

    /// Takes the outcomes if all are there; otherwise the task is woken when they are. One task at a time may wait, and
    /// outcomes are taken once.
    pub fn poll(&self, context: &Context<'_>) -> Poll<Vec<Outcome>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_complete() {
            state.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        let outcomes = std::mem::take(&mut state.outcomes);
        assert_eq!(outcomes.len(), self.plans.len(), "outcomes are taken once");
        Poll::Ready(outcomes.into_iter().map(|outcome| outcome.expect("none is missing")).collect())
    }

    /// Waits for all outcomes, and takes them; to be called once.
    pub fn wait(&self) -> Vec<Outcome> {
        spin_until(SPIN, || self.is_complete());
        if let Poll::Ready(outcomes) = self.poll(&Context::from_waker(Waker::noop())) {
            return outcomes;
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

/// One plan of a submission, to be ended once.
#[derive(Debug)]
pub struct Job {
    submission: Arc<Submission>,
    position: usize,
    is_ended: bool,
}

impl Job {
    pub fn plan(&self) -> &Plan {
        self.submission.plan(self.position)
    }

    /// The rows of its lists, if it runs in batches.
    pub fn rows(&self) -> PlanRows<'_> {
        self.submission.rows.of(self.submission.plans[self.position].rows.as_ref().expect("a job has rows"))
    }

    pub fn is_cancelled(&self) -> bool {
        self.submission.is_cancelled.load(Ordering::Relaxed)
    }

    /// Delivers the outcome.
    pub fn end(mut self, outcome: Outcome) {
        self.is_ended = true;
        self.submission.put(self.position, outcome);
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if !self.is_ended {
            self.submission.put(self.position, Outcome::Unanswered(Why::Failed));
        }
    }
}

/// Spins until something is so, or for some time at most; not at all on a single core, where nobody else could make it
/// so.
pub fn spin_until(longest: Duration, is_so: impl Fn() -> bool) {
    /// Reading the clock takes longer than looking.
    const LOOKS: u32 = 64;
    static HAS_OTHER_CORES: LazyLock<bool> =
        LazyLock::new(|| std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1));
    if !*HAS_OTHER_CORES {
        return;
    }
    let start = Instant::now();
    while start.elapsed() < longest {
        for _ in 0..LOOKS {
            if is_so() {
                return;
            }
            std::hint::spin_loop();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::plan::tests::plan_over;

    struct Flag(AtomicBool);

    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    fn why(outcome: &Outcome) -> Option<Why> {
        match outcome {
            Outcome::Unanswered(why) => Some(*why),
            Outcome::Answered(_) | Outcome::InBatch(..) => None,
        }
    }

    #[test]
    fn outcomes_are_in_the_order_of_the_plans_and_the_last_one_wakes() {
        let submission = Submission::without_rows(vec![plan_over(0..10); 3]);
        let mut jobs: Vec<Job> = submission.jobs().collect();
        let flag = Arc::new(Flag(AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&flag));
        let poll = || submission.poll(&Context::from_waker(&waker));
        jobs.pop().unwrap().end(Outcome::Unanswered(Why::TooLarge));
        assert!(poll().is_pending());
        jobs.pop().unwrap().end(Outcome::Answered(Answer::default()));
        assert!(poll().is_pending() && !flag.0.load(Ordering::Relaxed));
        jobs.pop().unwrap().end(Outcome::Unanswered(Why::Unreadable));
        assert!(flag.0.load(Ordering::Relaxed));
        let Poll::Ready(outcomes) = poll() else { panic!("all outcomes are there") };
        assert_eq!(outcomes.iter().map(why).collect::<Vec<_>>(), [Some(Why::Unreadable), None, Some(Why::TooLarge)]);
    }

    #[test]
    fn a_job_that_is_dropped_ends_unanswered_and_wakes_a_waiting_thread() {
        let submission = Submission::without_rows(vec![plan_over(0..10); 2]);
        let jobs: Vec<Job> = submission.jobs().collect();
        let outcomes = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| submission.wait());
            // Long enough for the other thread to park.
            std::thread::sleep(10 * SPIN);
            drop(jobs);
            waiting.join().unwrap()
        });
        assert_eq!(outcomes.iter().map(why).collect::<Vec<_>>(), [Some(Why::Failed); 2]);
    }

    #[test]
    fn a_submission_without_plans_is_complete() {
        assert!(Submission::without_rows(Vec::new()).wait().is_empty());
    }
}
