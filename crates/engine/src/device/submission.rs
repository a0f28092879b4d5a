//! Plans on their way to the thread of a device, and their outcomes on the way back.
//!
//! A thread submits plans together, with the rows that it has made for them, as one [`Submission`]. The thread of the
//! device takes them as [`Job`]s, which may end in any order and in different batches; the last one wakes the waiting
//! thread. Plans, rows and the answers made from what a device returned belong to the submitting thread: the device's
//! thread allocates and frees memory for batches, not for each of their queries.
//!
//! A job that is dropped without an outcome, because a batch failed or the thread panicked, ends with
//! [`Unanswered::Failed`]. So every accepted plan has an outcome, and no caller waits forever.

use super::answers::BatchAnswers;
use super::plan_rows::{ListRows, PlanRows, RowRanges, SubmittedRows};
use super::queue::runs_in_batches;
#[cfg(test)]
use super::served;
use super::served::Served;
use crate::query::answer::{Answer, Scored};
use crate::query::cost::{Modelled, Route};
use crate::query::document_set::DocumentSet;
use crate::query::plan::Plan;
use lanner_index::open::{Column, ListSpan, prefetch_all};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// A blocked caller spins for this long before it parks: a single query takes some tens of microseconds on a GPU, and
/// waking a parked thread takes about ten more.
const SPIN: Duration = Duration::from_micros(100);

/// How long a thread of a stream sleeps while it waits for a batch, which takes a millisecond or more. It has further
/// batches in flight, so nothing is lost if it sleeps longer than needed.
const SLEEP: Duration = Duration::from_micros(150);
/// The submissions that [`Finished`] keeps: more than a batch has.
const KEPT: usize = 128;

/// What became of a plan: the device's answer, or why there is none; then the CPU can answer.
pub type Outcome = Result<Answer<Scored>, Unanswered>;

/// Why a device did not answer a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// The device does not answer plans of this kind.
    Unsupported,
    /// The plan does not fit in device memory.
    TooLarge,
    /// The lists could not be read. The CPU reports which file is damaged.
    Unreadable,
    /// Nobody wants the answer any more, or could still get it in time.
    Cancelled,
    /// The device failed, or is not used for a while after a failure.
    Failed,
}

/// A plan for a device.
#[derive(Debug)]
pub struct Offer {
    pub plan: Plan,
    /// Its predicted time on the device.
    pub cost: Duration,
    /// The same without correction, to learn from the time that it takes, and whose correction that is.
    pub modelled: Modelled,
    pub route: Route,
    /// Set when nobody wants the answer any more.
    pub is_cancelled: Option<Arc<AtomicBool>>,
}

impl From<Plan> for Offer {
    fn from(plan: Plan) -> Offer {
        let (cost, modelled, route) = (Duration::ZERO, Modelled::default(), Route::GpuBatch);
        Offer { plan, cost, modelled, route, is_cancelled: None }
    }
}

/// What a device has been given and has not answered, and how much longer than predicted that took lately. A submission
/// is subtracted when none of its outcomes is missing.
#[derive(Debug, Default)]
pub struct Backlog {
    /// The predicted time, in nanoseconds.
    nanoseconds: AtomicU64,
    jobs: AtomicUsize,
    /// An exponential average, in nanoseconds.
    excess: AtomicU64,
}

/// Submissions whose outcomes are all there, to be subtracted from the backlog.
#[derive(Default)]
struct Completed {
    jobs: usize,
    cost: u64,
    /// By how much the last of them exceeded its predicted time.
    excess: Duration,
}

impl Completed {
    fn and(self, next: Completed) -> Completed {
        Completed { jobs: self.jobs + next.jobs, cost: self.cost + next.cost, excess: next.excess }
    }
}

impl Backlog {
    /// The predicted time.
    pub fn time(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed))
    }

    /// The number of jobs.
    pub fn jobs(&self) -> usize {
        self.jobs.load(Ordering::Relaxed)
    }

    /// How much longer submissions took lately than the predicted time of all that was before them, until their outcomes
    /// were there: waiting for a slot, and what is paid for each batch, which nobody predicts.
    pub fn excess(&self) -> Duration {
        Duration::from_nanos(self.excess.load(Ordering::Relaxed))
    }

    fn add(&self, jobs: usize, nanoseconds: u64) {
        self.jobs.fetch_add(jobs, Ordering::Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Subtracts what is complete, and averages its excess with a weight of 1/16. Threads may overwrite each other's
    /// average; it is an estimate.
    fn subtract(&self, Completed { jobs, cost, excess }: Completed) {
        self.jobs.fetch_sub(jobs, Ordering::Relaxed);
        self.nanoseconds.fetch_sub(cost, Ordering::Relaxed);
        let average = self.excess.load(Ordering::Relaxed);
        self.excess.store(average - average / 16 + excess.as_nanos() as u64 / 16, Ordering::Relaxed);
    }
}

/// Plans that were submitted together.
#[derive(Debug)]
pub struct Submission {
    /// The index that the plans are over.
    served: Arc<Served>,
    plans: Vec<Plan>,
    /// `prepared[i]` is what the device's thread needs of plan `i` beside its rows. It does not read the plan itself,
    /// which lies in the cache of another core.
    prepared: Vec<Prepared>,
    /// In few pieces of memory, which the submitting thread frees: an allocation for each plan would cost as much as
    /// its rows.
    rows: SubmittedRows,
    missing: Missing,
    /// The device's.
    backlog: Arc<Backlog>,
    /// How many jobs it has, and their predicted time in nanoseconds.
    jobs: usize,
    cost: u64,
    made: Instant,
    /// The predicted time of the backlog and its own.
    expected: Duration,
    state: Mutex<State>,
}

/// A plan as the device's thread sees it, in two cache lines.
#[derive(Debug)]
struct Prepared {
    /// The rows of its lists, empty unless it runs in batches; or why it is not for the device.
    rows: Result<RowRanges, Unanswered>,
    column: Column,
    launches: u32,
    cost_ns: u64,
    modelled: Modelled,
    route: Route,
    deadline: Option<Instant>,
    is_cancelled: Option<Arc<AtomicBool>>,
}

impl Prepared {
    fn new(offer: Offer, rows: Result<RowRanges, Unanswered>) -> (Plan, Prepared) {
        let Offer { plan, cost, modelled, route, is_cancelled } = offer;
        let (column, launches, deadline) = (plan.score.column(), plan.stages.len() as u32, plan.deadline);
        let cost_ns = cost.as_nanos() as u64;
        (plan, Prepared { rows, column, launches, cost_ns, modelled, route, deadline, is_cancelled })
    }
}

const _: () = assert!(size_of::<Prepared>() <= 128);

/// How many outcomes are missing. On a cache line of its own: the caller polls it while the device's thread reads the
/// rest.
#[derive(Debug)]
#[repr(align(128))]
struct Missing(AtomicUsize);

#[derive(Debug)]
struct State {
    /// What batches answered.
    delivered: Vec<Delivered>,
    /// All other outcomes, with the positions of their plans.
    others: Vec<(usize, Outcome)>,
    is_taken: bool,
    /// Woken with the last outcome.
    waker: Option<Waker>,
}

/// Answers of a batch to consecutive plans, for the submitting thread to make answers of.
#[derive(Debug)]
struct Delivered {
    plans: Range<usize>,
    batch: Arc<BatchAnswers>,
    /// The position of the first plan in the batch.
    first: usize,
}

impl State {
    /// Makes the outcomes of this many plans, and forgets them. None may be missing.
    fn take(&mut self, plans: usize) -> Vec<Outcome> {
        assert!(!std::mem::replace(&mut self.is_taken, true), "outcomes are taken once");
        let mut outcomes: Vec<Outcome> = Vec::with_capacity(plans);
        outcomes.resize_with(plans, || Err(Unanswered::Failed));
        for Delivered { plans, batch, first } in self.delivered.drain(..) {
            let answers = (first..).map(|position| Ok(batch.answer(position)));
            outcomes[plans].iter_mut().zip(answers).for_each(|(outcome, answer)| *outcome = answer);
        }
        self.others.drain(..).for_each(|(position, outcome)| outcomes[position] = outcome);
        outcomes
    }
}

impl Submission {
    /// Makes the rows of the plans that the device supports; the others have their outcomes already. The predicted time
    /// of its jobs is added to `backlog` until all have ended.
    pub fn new(
        served: &Arc<Served>,
        offers: impl Iterator<Item = Offer>,
        supports: impl Fn(&Plan) -> bool,
        backlog: &Arc<Backlog>,
    ) -> Arc<Submission> {
        let mut rows = SubmittedRows::default();
        let mut ranges_of = |plan: &Plan| match supports(plan) {
            true if runs_in_batches(plan) => {
                rows.add(&served.index, plan, served.list_map.is_partial()).map_err(|_| Unanswered::Unreadable)
            }
            true => Ok(RowRanges::default()),
            false => Err(Unanswered::Unsupported),
        };
        let (plans, prepared) = offers
            .map(|offer| {
                let rows = ranges_of(&offer.plan);
                Prepared::new(offer, rows)
            })
            .unzip();
        Submission::prepared(served, plans, (prepared, rows), backlog)
    }

    /// Plans without lists.
    #[cfg(test)]
    pub fn without_rows(offers: Vec<impl Into<Offer>>) -> Arc<Submission> {
        let with_cost = |offer: Offer| Offer { cost: Duration::from_nanos(1), ..offer };
        let prepare = |offer| Prepared::new(with_cost(offer), Ok(RowRanges::default()));
        let (plans, prepared) = offers.into_iter().map(Into::into).map(prepare).unzip();
        Submission::prepared(&served::tests::ANY, plans, (prepared, SubmittedRows::default()), &Arc::default())
    }

    fn prepared(
        served: &Arc<Served>,
        plans: Vec<Plan>,
        (prepared, rows): (Vec<Prepared>, SubmittedRows),
        backlog: &Arc<Backlog>,
    ) -> Arc<Submission> {
        let refused = |(position, prepared): (usize, &Prepared)| Some((position, Err(*prepared.rows.as_ref().err()?)));
        let others: Vec<(usize, Outcome)> = prepared.iter().enumerate().filter_map(refused).collect();
        let costs = prepared.iter().filter(|prepared| prepared.rows.is_ok()).map(|prepared| prepared.cost_ns);
        let (jobs, cost) = costs.fold((0, 0), |(jobs, sum), cost| (jobs + 1, sum + cost));
        let missing = Missing(AtomicUsize::new(jobs));
        backlog.add(jobs, cost);
        // Allocated here rather than by the device's thread; most submissions are answered by one batch or two.
        let state = Mutex::new(State { delivered: Vec::with_capacity(2), others, is_taken: false, waker: None });
        let (served, backlog) = (Arc::clone(served), Arc::clone(backlog));
        let (made, expected) = (Instant::now(), backlog.time());
        Arc::new(Submission { served, plans, prepared, rows, missing, backlog, jobs, cost, made, expected, state })
    }

    /// The jobs of the plans that have no outcome yet, each to be ended once.
    pub fn jobs(self: &Arc<Submission>) -> impl Iterator<Item = Job> {
        let is_job = |position: &usize| self.prepared[*position].rows.is_ok();
        let job = |position| Job { submission: Arc::clone(self), position, is_ended: false };
        (0..self.plans.len()).filter(is_job).map(job)
    }

    pub fn plan(&self, position: usize) -> &Plan {
        &self.plans[position]
    }

    /// Prefetches what the device's thread reads of submissions: it is in the caches of the cores that made it.
    pub fn prefetch(submissions: &[Arc<Submission>]) {
        submissions.iter().for_each(|submission| prefetch_all(std::slice::from_ref(&**submission)));
        for submission in submissions {
            prefetch_all(&submission.prepared);
            submission.rows.prefetch();
        }
    }

    /// Delivers `count` outcomes. If none is missing any more, the caller subtracts what is returned from the backlog:
    /// for a whole batch at once, since all threads change the backlog.
    fn put(&self, count: usize, deliver: impl FnOnce(&mut State)) -> Completed {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        deliver(&mut state);
        // Within the lock: a task that registers a waker has either seen these outcomes, or is woken.
        if self.missing.0.fetch_sub(count, Ordering::Release) > count {
            return Completed::default();
        }
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        let excess = self.made.elapsed().saturating_sub(self.expected);
        Completed { jobs: self.jobs, cost: self.cost, excess }
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
        Poll::Ready(state.take(self.plans.len()))
    }

    /// Wakes when all outcomes are there; to be called before the submission is given to a device.
    pub fn when_complete(&self, waker: &Waker) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_complete() {
            state.waker = Some(waker.clone());
            return;
        }
        drop(state);
        waker.wake_by_ref();
    }

    /// As [`Submission::wait`], but looks again after short sleeps instead of being woken. That spares the device's
    /// thread a system call, which takes it longer than a query; for threads that have given it a lot of work.
    pub fn wait_polling(&self) -> Vec<Outcome> {
        while !self.is_complete() {
            std::thread::sleep(SLEEP);
        }
        self.wait()
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

/// Submissions that a thread has the outcomes of, freed some time later. A thread of a device may still be about to
/// drop its jobs; if it were the last to know a submission, it would free the memory of all its plans, which takes it
/// longer than answering them.
#[derive(Debug, Default)]
pub struct Finished {
    kept: VecDeque<Arc<Submission>>,
}

impl Finished {
    pub fn push(&mut self, submission: Arc<Submission>) {
        self.kept.push_back(submission);
        if self.kept.len() > KEPT {
            self.kept.pop_front();
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
    fn prepared(&self) -> &Prepared {
        &self.submission.prepared[self.position]
    }

    /// The index that the plan is over.
    pub fn served(&self) -> &Arc<Served> {
        &self.submission.served
    }

    pub fn plan(&self) -> &Plan {
        self.submission.plan(self.position)
    }

    /// Where the lists of its plan lie in the file.
    pub fn spans(&self) -> impl Iterator<Item = ListSpan> {
        self.plan().lists.iter().map(|list| list.span)
    }

    /// Which rows are its own.
    pub fn row_ranges(&self) -> &RowRanges {
        self.prepared().rows.as_ref().expect("a job has rows")
    }

    /// The filter of its plan, if that runs in batches.
    pub fn filter(&self) -> Option<&Arc<DocumentSet>> {
        self.submission.rows.filter_of(self.row_ranges())
    }

    /// Its rows, if it runs in batches.
    pub fn rows(&self) -> PlanRows<'_> {
        self.submission.rows.of(self.row_ranges())
    }

    /// Whether another job is the next plan of the same submission.
    pub fn is_before(&self, other: &Job) -> bool {
        Arc::ptr_eq(&self.submission, &other.submission) && other.position == self.position + 1
    }

    /// The rows of the lists of consecutive plans of a submission.
    pub fn lists_of(jobs: &[Job]) -> ListRows<'_> {
        let [first, last] = [&jobs[0], &jobs[jobs.len() - 1]];
        first.submission.rows.lists_of(first.row_ranges(), last.row_ranges())
    }

    /// Whether the plan is answered in batches; those of the papers' algorithms run step by step.
    pub fn runs_in_batches(&self) -> bool {
        self.prepared().rows.as_ref().is_ok_and(|rows| !rows.is_empty())
    }

    /// The column that the plan reads.
    pub fn column(&self) -> Column {
        self.prepared().column
    }

    /// How many launches the plan needs by itself: one for each stage.
    pub fn launches(&self) -> usize {
        self.prepared().launches as usize
    }

    /// The predicted time of the plan on the device.
    pub fn cost(&self) -> Duration {
        Duration::from_nanos(self.prepared().cost_ns)
    }

    /// The same without correction.
    pub fn modelled(&self) -> Modelled {
        self.prepared().modelled
    }

    /// The route whose correction learns from its time in a batch.
    pub fn route(&self) -> Route {
        self.prepared().route
    }

    /// Whether nobody wants the answer any more, or could still get it in time.
    pub fn is_cancelled(&self) -> bool {
        let Prepared { is_cancelled, deadline, .. } = self.prepared();
        is_cancelled.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
            || deadline.is_some_and(|deadline| deadline <= Instant::now())
    }

    /// Delivers the outcome.
    pub fn end(mut self, outcome: Outcome) {
        self.is_ended = true;
        self.put(outcome);
    }

    fn put(&self, outcome: Outcome) {
        let completed = self.submission.put(1, |state| state.others.push((self.position, outcome)));
        if completed.jobs > 0 {
            self.submission.backlog.subtract(completed);
        }
    }

    /// Delivers the answers of a batch: `answers` has that of `jobs[i]` at position `i`. Those of consecutive plans are
    /// delivered together, since the memory of a submission is in the cache of another core.
    pub fn end_all(mut jobs: Vec<Job>, answers: &Arc<BatchAnswers>) {
        let (mut first, mut completed) = (0, Completed::default());
        for jobs in jobs.chunk_by_mut(Job::is_before) {
            let (start, count) = (jobs[0].position, jobs.len());
            let delivered = Delivered { plans: start..start + count, batch: Arc::clone(answers), first };
            let put = jobs[0].submission.put(count, |state| state.delivered.push(delivered));
            completed = if put.jobs > 0 { completed.and(put) } else { completed };
            jobs.iter_mut().for_each(|job| job.is_ended = true);
            first += count;
        }
        if let Some(job) = jobs.first().filter(|_| completed.jobs > 0) {
            job.submission.backlog.subtract(completed);
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if !self.is_ended {
            self.put(Err(Unanswered::Failed));
        }
    }
}

/// Spins until the condition holds, for at most `longest`; not on a single core, where no other thread could make it
/// hold.
pub fn spin_until(longest: Duration, holds: impl Fn() -> bool) {
    /// Reading the clock takes longer than a check.
    const CHECKS_PER_CLOCK_READ: u32 = 64;
    static HAS_OTHER_CORES: LazyLock<bool> =
        LazyLock::new(|| std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1));
    if !*HAS_OTHER_CORES {
        return;
    }
    let start = Instant::now();
    while start.elapsed() < longest {
        for _ in 0..CHECKS_PER_CLOCK_READ {
            if holds() {
                return;
            }
            std::hint::spin_loop();
        }
    }
}

/// Wakes a thread that waits.
pub struct Unpark(pub Thread);

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

    fn why(outcome: &Outcome) -> Option<Unanswered> {
        outcome.as_ref().err().copied()
    }

    #[test]
    fn outcomes_are_in_the_order_of_the_plans_and_the_last_one_wakes() {
        let submission = Submission::without_rows(vec![plan_over(0..10); 3]);
        let mut jobs: Vec<Job> = submission.jobs().collect();
        let flag = Arc::new(Flag(AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&flag));
        let poll = || submission.poll(&Context::from_waker(&waker));
        jobs.pop().unwrap().end(Err(Unanswered::TooLarge));
        assert!(poll().is_pending());
        jobs.pop().unwrap().end(Ok(Answer::default()));
        assert!(poll().is_pending() && !flag.0.load(Ordering::Relaxed));
        jobs.pop().unwrap().end(Err(Unanswered::Unreadable));
        assert!(flag.0.load(Ordering::Relaxed));
        let Poll::Ready(outcomes) = poll() else { panic!("all outcomes are there") };
        assert_eq!(
            outcomes.iter().map(why).collect::<Vec<_>>(),
            [Some(Unanswered::Unreadable), None, Some(Unanswered::TooLarge)]
        );
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
        assert_eq!(outcomes.iter().map(why).collect::<Vec<_>>(), [Some(Unanswered::Failed); 2]);
    }

    #[test]
    fn the_backlog_follows_what_is_submitted_and_how_much_longer_than_predicted_it_took() {
        let backlog = Backlog::default();
        let after = |count: usize, micros: u64| {
            for _ in 0..count {
                backlog.add(3, 500);
                assert_eq!((backlog.jobs(), backlog.time()), (3, Duration::from_nanos(500)));
                backlog.subtract(Completed { jobs: 3, cost: 500, excess: Duration::from_micros(micros) });
            }
            assert_eq!((backlog.jobs(), backlog.time()), (0, Duration::ZERO));
            backlog.excess().as_micros()
        };
        assert_eq!(after(1, 1600), 100);
        assert!((3900..=4000).contains(&after(100, 4000)));
        assert!((50..60).contains(&after(100, 50)));
    }

    #[test]
    fn a_submission_without_plans_is_complete() {
        assert!(Submission::without_rows(Vec::<Plan>::new()).wait().is_empty());
    }
}
