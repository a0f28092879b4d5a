//! Streams: many queries, answered in order by several threads.
//!
//! Threads take groups of queries from the source, plan them, give most of them to the GPU, and go on to the next group
//! while the GPU works; each thread has a number of groups in flight. What the policy leaves to the CPU is answered
//! right away by the thread that planned it. The thread that reads the stream works too, whenever the group that it
//! needs next is not ready: an engine of one thread starts no other.
//!
//! Answers are looked up in the engine's cache before a query is planned, and kept there; flights are not for streams
//! (integrator.rs says why).
//!
//! No group is taken too far ahead of the reader ([`AHEAD`]), so memory is bounded, however long the stream is.

use super::integrator::Leader;
use super::pool::{Help, Helpers};
use super::{SearchError, Shared};
use crate::algorithms::Workspace;
use crate::device::submission::{Finished, Offer, Submission};
use crate::query::answer::{Answer, Hit, Place, Step};
use crate::query::plan::Plan;
use crate::schedule::Aim;
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// The queries of a group: planning them takes less than 100 us, so that the GPU starts early.
const GROUP: usize = 32;
/// The most groups that a thread has in flight on the GPU. Four threads keep two large batches running and a third
/// waiting.
const IN_FLIGHT: usize = 24;
/// The most groups that are taken ahead of the reader.
const AHEAD: usize = 2048;

/// How long a thread waits for another that reads the source.
const PATIENCE: Duration = Duration::from_micros(500);
/// The most pauses between two tries to get it: about a microsecond, as long as reading a group takes.
const MOST_PAUSES: u32 = 32;

/// What was made of the answers to a stream of queries, in their order. Dropping it ends the stream early.
pub struct Stream<T> {
    reader: Box<dyn Read<T> + Send>,
    /// What is left of the last group.
    group: std::vec::IntoIter<T>,
}

/// Reads groups of what was made of the answers; hides the type of the queries.
trait Read<T> {
    /// The next group; meanwhile the reader does a share of the work.
    fn read(&mut self) -> Option<Vec<T>>;
}

struct Reader<Q: Send + 'static, T: Send + 'static> {
    run: Arc<Run<Q, T>>,
    thread: ThreadState<Q>,
    /// Whether a panic has ended the stream.
    has_panicked: bool,
    /// `None` for an engine of one thread.
    helpers: Option<Helpers>,
}

/// What a thread keeps while it works for a stream.
struct ThreadState<Q> {
    workspace: Workspace,
    /// Groups that the GPU has, oldest first.
    in_flight: VecDeque<Group<Q>>,
    finished: Finished,
}

/// A stream as seen by the threads that answer it: `Q` are its queries, `T` is made of the answers.
struct Run<Q, T> {
    shared: Arc<Shared>,
    source: Mutex<Source<Q>>,
    done: Mutex<Done<T>>,
    /// Signalled when a group is done, or one was read.
    changed: Condvar,
    callbacks: Callbacks<Q, T>,
    is_over: AtomicBool,
    /// As [`Done::read`], to be read without its lock.
    groups_read: AtomicUsize,
    /// Helpers that left because the reader was behind.
    left: AtomicUsize,
}

/// What a stream does with a query before and after it is answered.
pub(super) struct Callbacks<Q, T> {
    /// The answer that is kept for it, or else who keeps the one that is made.
    pub look_up: Box<LookUpCall<Q>>,
    pub plan: Box<PlanCall<Q>>,
    pub make: Box<MakeCall<Q, T>>,
}

type LookUpCall<Q> = dyn Fn(&Q) -> Result<Answer, Option<Leader>> + Send + Sync;
type PlanCall<Q> = dyn Fn(&Q) -> Result<Plan, SearchError> + Send + Sync;
type MakeCall<Q, T> = dyn Fn(Q, Result<Answer, SearchError>) -> T + Send + Sync;

struct Source<Q> {
    queries: Box<dyn Iterator<Item = Q> + Send>,
    /// Groups taken so far.
    taken: usize,
    is_empty: bool,
}

struct Done<T> {
    /// `groups[i]` is group `read + i`, once it is done.
    groups: VecDeque<Option<Vec<T>>>,
    /// Groups that the reader has taken.
    read: usize,
    /// How many groups there are, once that is known.
    all: Option<usize>,
    /// What a thread panicked with.
    panic: Option<Box<dyn Any + Send>>,
    /// Threads that wait for a change.
    sleeping: usize,
}

/// A group of queries on its way.
struct Group<Q> {
    number: usize,
    queries: Vec<StreamedQuery<Q>>,
    /// The positions of those that are in submissions, in their order.
    submissions: Vec<(Arc<Submission>, Vec<usize>)>,
}

/// A query on its way.
struct StreamedQuery<Q> {
    query: Q,
    /// When a thread turned to it.
    arrived: Instant,
    /// How long planning took.
    planning: Duration,
    /// Keeps the answer; `None` without a cache.
    leader: Option<Leader>,
    state: State,
}

/// What is known of a query.
enum State {
    OnGpu,
    /// From the cache.
    Kept(Answer),
    Answered(Result<Answer, SearchError>),
}

/// What a thread gets when it asks for a group.
enum Taken<Q> {
    Group(Group<Q>),
    /// The reader is too far behind.
    Later,
    None,
}

impl<T: Send + 'static> Stream<T> {
    /// Starts a stream, with the help of up to `helpers.1` threads.
    pub(super) fn start<Q: Send + 'static>(
        shared: Arc<Shared>,
        helpers: Option<(Helpers, usize)>,
        queries: Box<dyn Iterator<Item = Q> + Send>,
        callbacks: Callbacks<Q, T>,
    ) -> Stream<T> {
        let done = Done { groups: VecDeque::new(), read: 0, all: None, panic: None, sleeping: 0 };
        let run = Arc::new(Run {
            shared,
            source: Mutex::new(Source { queries, taken: 0, is_empty: false }),
            done: Mutex::new(done),
            changed: Condvar::new(),
            callbacks,
            is_over: AtomicBool::new(false),
            groups_read: AtomicUsize::new(0),
            left: AtomicUsize::new(0),
        });
        if let Some((helpers, threads)) = &helpers {
            helpers.ask(&run, *threads);
        }
        let helpers = helpers.map(|(helpers, _)| helpers);
        Stream {
            reader: Box::new(Reader { run, thread: ThreadState::new(), has_panicked: false, helpers }),
            group: Vec::new().into_iter(),
        }
    }
}

impl<T> Iterator for Stream<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        loop {
            if let Some(next) = self.group.next() {
                return Some(next);
            }
            self.group = self.reader.read()?.into_iter();
        }
    }
}

impl<Q: Send + 'static, T: Send + 'static> Drop for Reader<Q, T> {
    fn drop(&mut self) {
        self.run.is_over.store(true, Ordering::Relaxed);
        self.helpers.iter().for_each(|helpers| helpers.withdraw(&self.run));
    }
}

impl<Q> StreamedQuery<Q> {
    fn new(query: Q, arrived: Instant) -> StreamedQuery<Q> {
        StreamedQuery { query, arrived, planning: Duration::ZERO, leader: None, state: State::OnGpu }
    }

    /// Keeps an answer at once: the next query of the group may be equal.
    fn end(&mut self, answer: Result<Answer, SearchError>) {
        if let Some(leader) = self.leader.take() {
            leader.land(answer.as_ref().ok());
        }
        self.state = State::Answered(answer);
    }
}

impl<Q> ThreadState<Q> {
    fn new() -> ThreadState<Q> {
        ThreadState { workspace: Workspace::default(), in_flight: VecDeque::new(), finished: Finished::default() }
    }
}

impl<Q, T> Run<Q, T> {
    fn done(&self) -> MutexGuard<'_, Done<T>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The source, unless another thread has it for long: it may wait there for the caller's next query. Each failed
    /// try takes the cache line of the lock from the thread that has it, so tries become rarer.
    fn lock_source(&self) -> Option<MutexGuard<'_, Source<Q>>> {
        let (start, mut pauses) = (Instant::now(), 1);
        loop {
            match self.source.try_lock() {
                Ok(source) => return Some(source),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if start.elapsed() > PATIENCE => return None,
                Err(TryLockError::WouldBlock) => (0..pauses).for_each(|_| std::hint::spin_loop()),
            }
            pauses = (2 * pauses).min(MOST_PAUSES);
        }
    }

    /// Takes the next queries.
    fn take(&self) -> Taken<Q> {
        let Some(mut source) = self.lock_source() else {
            return Taken::Later;
        };
        if source.is_empty || self.is_over() {
            return Taken::None;
        }
        if source.taken >= self.groups_read.load(Ordering::Relaxed) + AHEAD {
            return Taken::Later;
        }
        let now = Instant::now();
        let take = |query| StreamedQuery::new(query, now);
        let queries: Vec<_> = source.queries.by_ref().take(GROUP).map(take).collect();
        if queries.is_empty() {
            source.is_empty = true;
            let taken = source.taken;
            drop(source);
            self.change(|done| done.all = Some(taken));
            return Taken::None;
        }
        source.taken += 1;
        Taken::Group(Group { number: source.taken - 1, queries, submissions: Vec::new() })
    }

    /// Changes what others wait for.
    fn change<R>(&self, change: impl FnOnce(&mut Done<T>) -> R) -> R {
        let mut done = self.done();
        let result = change(&mut done);
        let has_sleepers = done.sleeping > 0;
        drop(done);
        if has_sleepers {
            self.changed.notify_all();
        }
        result
    }

    /// Plans the queries of a group whose answers are not kept; gives some to the GPU, and answers the others.
    fn start(&self, group: &mut Group<Q>, workspace: &mut Workspace) {
        let (mut offers, mut positions): (Vec<Offer>, Vec<usize>) = (Vec::new(), Vec::new());
        for position in 0..group.queries.len() {
            let streamed = &mut group.queries[position];
            streamed.arrived = Instant::now();
            match (self.callbacks.look_up)(&streamed.query) {
                Ok(answer) => {
                    streamed.state = State::Kept(answer);
                    continue;
                }
                Err(leader) => streamed.leader = leader,
            }
            let planned = (self.callbacks.plan)(&streamed.query);
            streamed.planning = streamed.arrived.elapsed();
            let plan = match planned {
                Ok(plan) => plan,
                Err(error) => {
                    streamed.end(Err(error));
                    continue;
                }
            };
            if let Some((_, predicted)) = self.shared.choose_gpu(&plan, Aim::Throughput) {
                offers.push(predicted.into_offer(plan));
                positions.push(position);
                continue;
            }
            // The GPU gets what it is to have before this thread is busy for a while.
            self.submit(group, &mut offers, &mut positions);
            let answer = self.shared.answer_on_cpu(&plan, |cpu| cpu.answer(&plan, workspace, Hit::maker(plan.score)));
            group.queries[position].end(answer.map_err(SearchError::from));
        }
        self.submit(group, &mut offers, &mut positions);
    }

    fn submit(&self, group: &mut Group<Q>, offers: &mut Vec<Offer>, positions: &mut Vec<usize>) {
        if let Some(gpu) = self.shared.gpu.as_ref().filter(|_| !offers.is_empty()) {
            let submission = self.shared.prepare(gpu, offers.drain(..));
            gpu.submit(&submission);
            group.submissions.push((submission, std::mem::take(positions)));
        }
    }

    /// Waits for the GPU, answers what it left unanswered, and hands the group to the reader.
    fn finish(&self, mut group: Group<Q>, finished: &mut Finished) {
        for (submission, positions) in std::mem::take(&mut group.submissions) {
            let gpu = self.shared.gpu.as_ref().expect("a submission went to a GPU");
            let answers = self.shared.finish(gpu, submission.wait_polling());
            for (at, (position, answer)) in positions.into_iter().zip(answers).enumerate() {
                let answer = self.shared.hits_or_answer(submission.plan(at), answer);
                group.queries[position].end(answer);
            }
            finished.push(submission);
        }
        let made = group.queries.into_iter().map(|StreamedQuery { query, arrived, planning, state, .. }| match state {
            State::Kept(answer) => (self.callbacks.make)(query, Ok(answer)),
            State::Answered(Ok(mut answer)) => {
                let step = Step { name: "plan", place: Place::Cpu, started: arrived, duration: planning };
                answer.trace.steps.insert(0, step);
                answer.trace.arrived = Some(arrived);
                (self.callbacks.make)(query, Ok(answer))
            }
            State::Answered(error) => (self.callbacks.make)(query, error),
            State::OnGpu => unreachable!("every query was planned, and every submission finished"),
        });
        let made: Vec<T> = made.collect();
        self.change(|done| {
            let at = group.number - done.read;
            if done.groups.len() <= at {
                done.groups.resize_with(at + 1, || None);
            }
            done.groups[at] = Some(made);
        });
    }

    /// Takes a step: finishes a group that the GPU has answered, or starts one, or waits for the GPU. Returns whether
    /// there was anything to do.
    fn step(&self, thread: &mut ThreadState<Q>) -> bool {
        let is_complete = |group: &Group<Q>| group.submissions.iter().all(|(submission, _)| submission.is_complete());
        let is_ready = thread.in_flight.front().is_some_and(is_complete);
        let taken = if is_ready || thread.in_flight.len() >= IN_FLIGHT { Taken::Later } else { self.take() };
        match taken {
            Taken::Group(mut group) => {
                self.start(&mut group, &mut thread.workspace);
                thread.in_flight.push_back(group);
                true
            }
            Taken::Later | Taken::None => match thread.in_flight.pop_front() {
                Some(group) => {
                    self.finish(group, &mut thread.finished);
                    true
                }
                None => false,
            },
        }
    }

    /// Whether no query is left to be taken.
    fn is_empty(&self) -> bool {
        self.is_over() || self.done().all.is_some()
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

impl<Q: Send + 'static, T: Send + 'static> Read<T> for Reader<Q, T> {
    fn read(&mut self) -> Option<Vec<T>> {
        if self.has_panicked {
            return None;
        }
        // Assume a panic until this returns: after one, the missing answers never come.
        self.has_panicked = true;
        let group = loop {
            match self.run.read() {
                Ready::Group(group) => break Some(group),
                Ready::End => break None,
                Ready::No => {}
            }
            if !self.run.step(&mut self.thread) {
                self.run.wait_until(Done::is_ready);
            }
        };
        self.has_panicked = false;
        self.ask_again();
        group
    }
}

impl<Q: Send + 'static, T: Send + 'static> Reader<Q, T> {
    /// Asks the helpers that have left for help again, once the reader has caught up.
    fn ask_again(&self) {
        if self.run.left.load(Ordering::Relaxed) == 0 {
            return;
        }
        let Some(taken) = self.run.lock_source().map(|source| source.taken) else {
            return;
        };
        if let Some(helpers) =
            self.helpers.as_ref().filter(|_| taken < self.run.groups_read.load(Ordering::Relaxed) + AHEAD / 2)
        {
            helpers.ask(&self.run, self.run.left.swap(0, Ordering::Relaxed));
        }
    }
}

/// What there is for the reader.
enum Ready<T> {
    Group(Vec<T>),
    /// The next group is not done.
    No,
    End,
}

impl<T> Done<T> {
    fn is_ready(&self) -> bool {
        self.panic.is_some() || self.groups.front().is_some_and(Option::is_some) || self.all == Some(self.read)
    }
}

impl<Q, T> Run<Q, T> {
    /// Takes the next group, if it is done. A panic of another thread goes on here.
    fn read(&self) -> Ready<T> {
        let mut done = self.done();
        if let Some(panic) = done.panic.take() {
            drop(done);
            resume_unwind(panic);
        }
        if done.all == Some(done.read) {
            return Ready::End;
        }
        if done.groups.front().is_none_or(Option::is_none) {
            return Ready::No;
        }
        drop(done);
        let group = self.change(|done| {
            done.read += 1;
            self.groups_read.store(done.read, Ordering::Relaxed);
            done.groups.pop_front().flatten()
        });
        Ready::Group(group.expect("only the reader takes groups"))
    }

    fn wait_until(&self, is_so: impl Fn(&Done<T>) -> bool) {
        let mut done = self.done();
        while !is_so(&done) {
            done.sleeping += 1;
            done = self.changed.wait(done).unwrap_or_else(PoisonError::into_inner);
            done.sleeping -= 1;
        }
    }
}

impl<Q: Send, T: Send> Help for Run<Q, T> {
    fn help(&self, between: &dyn Fn() -> bool) {
        let mut thread = ThreadState::new();
        // A panic is passed on to the reader.
        let worked = catch_unwind(AssertUnwindSafe(|| {
            while between() {
                if !self.step(&mut thread) {
                    break;
                }
            }
            while let Some(group) = thread.in_flight.pop_front() {
                self.finish(group, &mut thread.finished);
            }
            // All queries were taken, or the reader is behind: others may need this thread meanwhile.
            if !self.is_empty() {
                self.left.fetch_add(1, Ordering::Relaxed);
            }
        }));
        if let Err(panic) = worked {
            self.is_over.store(true, Ordering::Relaxed);
            self.change(|done| done.panic = Some(panic));
        }
    }
}
