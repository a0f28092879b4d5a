//! The engine's own threads: they answer submitted queries, and help with streams and long queries.
//!
//! A thread takes, in this order: submissions that the GPU has answered, submitted queries, and a stream or a long
//! query to help with. It leaves a stream for either of the others between two groups of queries. A thread without work
//! spins for [`SPIN`] before it sleeps, and is woken only if it sleeps: under load nobody pays for a wake-up.
//!
//! The core of the device's thread is not left unused while the device has nothing to do: a *spare* thread takes
//! submitted queries then, if all others are busy.
//!
//! A submitted query whose equal is being answered is parked: it belongs to the flight until that lands, and no thread
//! waits. If the flight ends without an answer, which is also what a cancelled leader causes, the query comes back.

use super::admission::Admission;
use super::integrator::{Asker, Boarded, Follower, Landed, from_cache};
use super::pending::{Pending, Ticket};
use super::{SearchError, Shared};
use crate::device::submission::{Backlog, Finished, Offer, Submission, spin_until};
use crate::executors::panic_text;
use crate::query::answer::{Answer, Place, Step};
use crate::schedule::Aim;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Wake, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a thread without work spins before it sleeps.
const SPIN: Duration = Duration::from_micros(50);
/// The most queries that a thread takes at once.
const TAKEN_TOGETHER: usize = 16;

/// Work that several threads do together: a stream, or the parts of a long query.
pub trait Help: Send + Sync {
    /// Does a share of the work until none is left; calls `between` between two parts of it. If that returns `false`,
    /// the thread is to finish what it has begun, and leave.
    fn help(&self, between: &dyn Fn() -> bool);
}

/// The engine's own threads and their tasks. They know no index: tasks bring their own.
pub struct Pool {
    tasks: Arc<Tasks>,
    admission: Admission,
    threads: Vec<JoinHandle<()>>,
    /// How many of them help with streams and long queries.
    helpers: usize,
}

struct Tasks {
    state: Mutex<State>,
    arrived: Condvar,
    /// Wakes the spare thread.
    spare: Condvar,
    /// Submitted queries and answered submissions, to be read without the lock.
    urgent: AtomicUsize,
    /// As `urgent`, with the streams and long queries to help with.
    all: AtomicUsize,
    /// Groups that the GPU has, and parked queries. They may come back, so the threads do not end before.
    away: AtomicUsize,
    /// That of [`Shared`].
    queued: Arc<AtomicUsize>,
    is_closed: AtomicBool,
    /// Threads of the engine.
    threads: usize,
    /// The device's.
    backlog: Option<Arc<Backlog>>,
}

#[derive(Default)]
struct State {
    answered: VecDeque<Group>,
    tickets: VecDeque<Ticket>,
    /// Work to help with, once for each thread that may help.
    helps: Vec<Arc<dyn Help>>,
    /// Threads that sleep, and whether the spare one does.
    sleeping: usize,
    spare_sleeps: bool,
}

/// Queries that went to the GPU together.
struct Group {
    shared: Arc<Shared>,
    submission: Arc<Submission>,
    /// `tickets[i]` belongs to plan `i` of the submission, with the step that planned it.
    tickets: Vec<(Ticket, Step)>,
}

/// What a thread has taken.
enum Task {
    Answered(Group),
    Tickets(Vec<Ticket>),
    Help(Arc<dyn Help>),
}

impl Pool {
    /// Starts the threads: as many as the engine may use, less the one that asks and that of a device, and as many of
    /// them as the system starts.
    pub fn start(shared: &Arc<Shared>) -> Pool {
        let tasks = Arc::new(Tasks {
            state: Mutex::default(),
            arrived: Condvar::new(),
            spare: Condvar::new(),
            urgent: AtomicUsize::new(0),
            all: AtomicUsize::new(0),
            away: AtomicUsize::new(0),
            queued: Arc::clone(&shared.queued),
            is_closed: AtomicBool::new(false),
            threads: shared.threads,
            backlog: shared.gpu.as_ref().map(|gpu| Arc::clone(gpu.backlog())),
        });
        let spawn = |name: String, run: fn(&Arc<Tasks>)| {
            let tasks = Arc::clone(&tasks);
            std::thread::Builder::new().name(name).spawn(move || run(&tasks)).ok()
        };
        let helpers = (0..shared.helpers().max(1)).filter_map(|number| spawn(format!("lanner-{number}"), run));
        let mut threads: Vec<JoinHandle<()>> = helpers.collect();
        let helpers = threads.len();
        if shared.leaves_core_to_device() {
            threads.extend(spawn("lanner-spare".to_owned(), run_spare));
        }
        Pool { tasks, admission: shared.admission.clone(), threads, helpers }
    }

    /// Queues a query, which fails at once if there is no thread that could answer it.
    pub fn submit(&self, ticket: Ticket) -> Pending {
        let pending = ticket.pending();
        if self.threads.is_empty() {
            land(ticket, Err(SearchError::NoThread));
            return pending;
        }
        self.tasks.queue(ticket);
        self.forget_cancelled();
        pending
    }

    /// Drops cancelled queries once the queue holds more than twice the limit: they have freed their permits, so the
    /// limit does not bound them.
    fn forget_cancelled(&self) {
        if self.tasks.queued.load(Ordering::Relaxed) <= 2 * self.admission.limit() {
            return;
        }
        let mut state = self.tasks.lock();
        let is_cancelled = |ticket: &Ticket| ticket.cancelled().load(Ordering::Relaxed);
        let (cancelled, tickets): (Vec<Ticket>, Vec<Ticket>) = state.tickets.drain(..).partition(is_cancelled);
        state.tickets = tickets.into();
        self.tasks.urgent.fetch_sub(cancelled.len(), Ordering::Relaxed);
        self.tasks.all.fetch_sub(cancelled.len(), Ordering::Relaxed);
        self.tasks.queued.fetch_sub(cancelled.len(), Ordering::Relaxed);
    }

    /// Who can be asked for help.
    pub fn helpers(&self) -> Helpers {
        Helpers { tasks: Arc::downgrade(&self.tasks), threads: self.helpers }
    }
}

/// The threads of a pool, for work that needs their help. None come once the pool is gone.
#[derive(Clone)]
pub struct Helpers {
    tasks: Weak<Tasks>,
    threads: usize,
}

impl Helpers {
    /// Asks up to `threads` threads for help.
    pub fn ask(&self, help: &Arc<impl Help + 'static>, threads: usize) {
        let Some(tasks) = self.tasks.upgrade() else {
            return;
        };
        for _ in 0..threads.min(self.threads) {
            tasks.put(false, |state| state.helps.push(Arc::clone(help) as Arc<dyn Help>));
        }
    }

    /// Says that no more help is needed, for threads that have not come yet.
    pub fn withdraw(&self, help: &Arc<impl Help + 'static>) {
        let Some(tasks) = self.tasks.upgrade() else {
            return;
        };
        let mut state = tasks.lock();
        let is_it = |asked: &mut Arc<dyn Help>| std::ptr::addr_eq(Arc::as_ptr(asked), Arc::as_ptr(help));
        let withdrawn: Vec<Arc<dyn Help>> = state.helps.extract_if(.., is_it).collect();
        tasks.all.fetch_sub(withdrawn.len(), Ordering::Relaxed);
        drop(state);
        drop(withdrawn);
    }
}

impl Drop for Pool {
    /// Answers what was accepted, then ends the threads.
    fn drop(&mut self) {
        let mut state = self.tasks.lock();
        self.tasks.is_closed.store(true, Ordering::Relaxed);
        // The threads that asked for help do the work alone.
        self.tasks.all.fetch_sub(state.helps.len(), Ordering::Relaxed);
        let helps = std::mem::take(&mut state.helps);
        drop(state);
        drop(helps);
        self.tasks.arrived.notify_all();
        self.tasks.spare.notify_all();
        self.threads.drain(..).for_each(|thread| _ = thread.join());
    }
}

impl Tasks {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, is_urgent: bool, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        self.urgent.fetch_add(usize::from(is_urgent), Ordering::Release);
        self.all.fetch_add(1, Ordering::Release);
        let (has_sleepers, spare_sleeps) = (state.sleeping > 0, state.spare_sleeps);
        drop(state);
        if has_sleepers {
            self.arrived.notify_one();
        } else if spare_sleeps && is_urgent {
            self.spare.notify_one();
        }
    }

    fn queue(&self, ticket: Ticket) {
        self.queued.fetch_add(1, Ordering::Relaxed);
        self.put(true, |state| state.tickets.push_back(ticket));
    }

    /// Waits for something to do; `None` if the pool is closed and nothing is left.
    fn wait(&self) -> Option<Task> {
        loop {
            spin_until(SPIN, || self.all.load(Ordering::Acquire) > 0);
            let mut state = self.lock();
            if let Some(task) = self.take(&mut state, true) {
                return Some(task);
            }
            // What the GPU has not answered yet will come back, and what is parked may.
            if self.is_closed.load(Ordering::Relaxed) && self.away.load(Ordering::Acquire) == 0 {
                return None;
            }
            state.sleeping += 1;
            let (mut state, _) =
                self.arrived.wait_timeout(state, Duration::from_millis(100)).unwrap_or_else(PoisonError::into_inner);
            state.sleeping -= 1;
        }
    }

    /// Waits until submitted queries wait that no other thread is about to take, and the device is idle; `None` if the
    /// pool is closed. What is left then, the other threads do.
    fn wait_as_spare(&self) -> Option<Task> {
        let device_is_idle = || self.backlog.as_ref().is_none_or(|backlog| backlog.jobs() == 0);
        let mut state = self.lock();
        while !self.is_closed.load(Ordering::Relaxed) {
            if state.sleeping == 0 && !state.tickets.is_empty() && device_is_idle() {
                return self.take(&mut state, false);
            }
            state.spare_sleeps = true;
            state = self.spare.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.spare_sleeps = false;
        }
        None
    }

    fn take(&self, state: &mut State, may_help: bool) -> Option<Task> {
        let (task, urgent) = if let Some(group) = state.answered.pop_front() {
            (Task::Answered(group), 1)
        } else if !state.tickets.is_empty() {
            let count = state.tickets.len().div_ceil(self.threads.max(1)).min(TAKEN_TOGETHER);
            (Task::Tickets(state.tickets.drain(..count).collect()), count)
        } else if may_help {
            (Task::Help(state.helps.pop()?), 0)
        } else {
            return None;
        };
        self.urgent.fetch_sub(urgent, Ordering::Relaxed);
        self.all.fetch_sub(urgent.max(1), Ordering::Relaxed);
        Some(task)
    }

    /// Does one thing that is urgent, if there is anything; `false` if the pool is closed.
    fn do_urgent(self: &Arc<Tasks>, finished: &RefCell<Finished>) -> bool {
        if self.urgent.load(Ordering::Acquire) > 0 {
            let task = self.take(&mut self.lock(), false);
            task.into_iter().for_each(|task| perform(self, task, finished));
        }
        !self.is_closed.load(Ordering::Relaxed)
    }
}

/// A thread of the pool.
fn run(tasks: &Arc<Tasks>) {
    let finished = RefCell::default();
    while let Some(task) = tasks.wait() {
        perform(tasks, task, &finished);
    }
}

/// The spare thread of the pool.
fn run_spare(tasks: &Arc<Tasks>) {
    let finished = RefCell::default();
    while let Some(task) = tasks.wait_as_spare() {
        perform(tasks, task, &finished);
    }
}

/// Does a task. A panic ends only the task: its tickets end with an error when they are dropped.
fn perform(tasks: &Arc<Tasks>, task: Task, finished: &RefCell<Finished>) {
    _ = catch_unwind(AssertUnwindSafe(|| match task {
        Task::Answered(group) => finish(group, finished),
        Task::Tickets(tickets) => start_all(tasks, tickets),
        Task::Help(help) => help.help(&|| tasks.do_urgent(finished)),
    }));
}

/// Starts queries, those over one index together.
fn start_all(tasks: &Arc<Tasks>, tickets: Vec<Ticket>) {
    tasks.queued.fetch_sub(tickets.len(), Ordering::Relaxed);
    let mut tickets = tickets.into_iter().peekable();
    while let Some(first) = tickets.next() {
        let shared = Arc::clone(&first.shared);
        let others = std::iter::from_fn(|| tickets.next_if(|ticket| Arc::ptr_eq(&ticket.shared, &shared)));
        let together = std::iter::once(first).chain(others).collect();
        start(&shared, tasks, together);
    }
}

/// Plans queries, gives some to the GPU together, and answers the others.
fn start(shared: &Arc<Shared>, tasks: &Arc<Tasks>, tickets: Vec<Ticket>) {
    let (mut offered, mut offers, mut own) = (Vec::new(), Vec::new(), Vec::new());
    for ticket in tickets {
        if ticket.cancelled().load(Ordering::Relaxed) {
            continue;
        }
        let Some(ticket) = board(shared, tasks, ticket) else {
            continue;
        };
        let start = Instant::now();
        let plan = match guarded(|| Ok(shared.plan(&ticket.query, ticket.arrived)?)) {
            Ok(plan) => plan,
            Err(error) => {
                land(ticket, Err(error));
                continue;
            }
        };
        let planned = Step { name: "plan", place: Place::Cpu, started: start, duration: start.elapsed() };
        match shared.choose_gpu(&plan, Aim::Latency) {
            Some((_, predicted)) => {
                let is_cancelled = Some(Arc::clone(ticket.cancelled()));
                offers.push(Offer { is_cancelled, ..predicted.into_offer(plan) });
                offered.push((ticket, planned));
            }
            None => own.push((ticket, plan, planned)),
        }
    }
    if let Some(gpu) = shared.gpu.as_ref().filter(|_| !offers.is_empty()) {
        let submission = shared.prepare(gpu, offers.into_iter());
        let group = Group { shared: Arc::clone(shared), submission: Arc::clone(&submission), tickets: offered };
        let waiting = Arc::new(ReturnToPool { tasks: Arc::clone(tasks), group: Mutex::new(Some(group)) });
        tasks.away.fetch_add(1, Ordering::AcqRel);
        submission.when_complete(&Waker::from(waiting));
        gpu.submit(&submission);
    }
    for (ticket, plan, planned) in own {
        if ticket.cancelled().load(Ordering::Relaxed) {
            continue;
        }
        let answer = guarded(|| shared.hits_or_answer(&plan, None));
        end(shared, ticket, planned, answer);
    }
}

/// Ends a query whose answer is kept, parks one whose equal is being answered, and returns any other.
fn board(shared: &Shared, tasks: &Arc<Tasks>, mut ticket: Ticket) -> Option<Ticket> {
    match shared.integrator.board(&ticket.query, ticket.asker) {
        Boarded::Passed => {}
        Boarded::Leader(leader) => ticket.leader = Some(leader),
        Boarded::Kept(answer) => {
            end_from_cache(ticket, answer);
            return None;
        }
        Boarded::Follower(boarding) => {
            boarding.join(park(tasks, ticket));
            return None;
        }
    }
    Some(ticket)
}

/// A ticket as a follower of a flight.
fn park(tasks: &Arc<Tasks>, mut ticket: Ticket) -> Follower {
    let (away, start) = (Away::new(tasks), Instant::now());
    Box::new(move |landed| {
        match landed {
            Landed::Answered(answer) => end_from_cache(ticket, from_cache(&answer, start)),
            Landed::Abandoned => away.tasks.queue(ticket),
            Landed::Failed => {
                ticket.asker = Asker::Alone;
                away.tasks.queue(ticket);
            }
        }
        // Only now, so that a pool that is being closed waits for what was queued.
        drop(away);
    })
}

fn end_from_cache(ticket: Ticket, mut answer: Answer) {
    answer.trace.arrived = Some(ticket.arrived);
    ticket.end(Ok(answer));
}

/// Counts a parked query, also if its follower is dropped.
struct Away {
    tasks: Arc<Tasks>,
}

impl Away {
    fn new(tasks: &Arc<Tasks>) -> Away {
        tasks.away.fetch_add(1, Ordering::AcqRel);
        Away { tasks: Arc::clone(tasks) }
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        self.tasks.away.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A panic as an error, so that it costs one query and no others.
fn guarded<T>(work: impl FnOnce() -> Result<T, SearchError>) -> Result<T, SearchError> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(SearchError::Panicked { reason: panic_text(&*panic) }))
}

/// Delivers the answers of queries that went to the GPU; what it left unanswered, this thread answers.
fn finish(group: Group, finished: &RefCell<Finished>) {
    let shared = &group.shared;
    let gpu = shared.gpu.as_ref().expect("a submission went to a GPU");
    let answers = shared.finish(gpu, group.submission.wait());
    for (position, ((ticket, planned), answer)) in group.tickets.into_iter().zip(answers).enumerate() {
        // Nobody waits for the CPU to answer what was cancelled before it became part of a batch.
        if answer.is_none() && ticket.cancelled().load(Ordering::Relaxed) {
            continue;
        }
        let plan = group.submission.plan(position);
        let answer = guarded(|| shared.hits_or_answer(plan, answer));
        end(shared, ticket, planned, answer);
    }
    finished.borrow_mut().push(group.submission);
}

fn end(shared: &Shared, ticket: Ticket, planned: Step, answer: Result<Answer, SearchError>) {
    let answer = answer.and_then(|mut answer| {
        answer.trace.steps.insert(0, planned);
        answer.trace.arrived = Some(ticket.arrived);
        shared.in_time(&ticket.query, answer)
    });
    land(ticket, answer);
}

/// Delivers an answer to all that wait for it. It is kept before its own future has it: who asks again finds it.
fn land(mut ticket: Ticket, answer: Result<Answer, SearchError>) {
    if let Some(leader) = ticket.leader.take() {
        leader.land(answer.as_ref().ok());
    }
    ticket.end(answer);
}

/// Gives a group back to the pool when the GPU has answered it.
struct ReturnToPool {
    tasks: Arc<Tasks>,
    group: Mutex<Option<Group>>,
}

impl ReturnToPool {
    fn lock(&self) -> MutexGuard<'_, Option<Group>> {
        self.group.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for ReturnToPool {
    fn wake(self: Arc<Self>) {
        if let Some(group) = self.lock().take() {
            self.tasks.put(true, |state| state.answered.push_back(group));
            // Only now, so that a pool that is being closed waits for it.
            self.tasks.away.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::integrator::Leader;
    use super::*;
    use crate::engine::Engine;
    use crate::executors::GpuOptions;
    use crate::query::Query;
    use crate::schedule::Policy;
    use lanner_gpu::error::GpuError;
    use lanner_index::build::{BuildOptions, Quiet, build};
    use lanner_index::corpus::{Corpus, CorpusOptions};
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::task::{Context, Poll};

    /// An engine with a cache that counts what its CPU answers, and has one thread of its own unless told otherwise.
    fn engine(threads: usize) -> (tempfile::TempDir, Engine) {
        engine_with(threads, Policy::Cpu)
    }

    fn engine_with(threads: usize, policy: Policy) -> (tempfile::TempDir, Engine) {
        let folder = tempfile::tempdir().unwrap();
        let document =
            |number: usize| (number.to_string(), String::new(), ["falcon", "heron falcon"][number % 2].into());
        let corpus = Corpus::from_documents((0..9).map(document), CorpusOptions::default()).unwrap();
        build(folder.path(), corpus, &BuildOptions::default(), &Quiet).unwrap();
        let failure = || GpuError::Failed { at: "opening a device", reason: "on command".to_owned() };
        let gpu = GpuOptions::new(Box::new(move || Err(failure())));
        let engine = Engine::open(folder.path()).unwrap().threads(threads).policy(policy).cache(1 << 20).gpu(gpu);
        (folder, engine)
    }

    fn lead(engine: &Engine, text: &str, asker: Asker) -> Leader {
        match engine.shared.integrator.board(&Query::new(text), asker) {
            Boarded::Leader(leader) => leader,
            _ => panic!("{asker:?} leads"),
        }
    }

    #[test]
    fn without_a_thread_what_is_submitted_fails_at_once_and_what_is_streamed_is_answered() {
        let (_folder, engine) = engine(4);
        let mut pool = Pool::start(&engine.shared);
        // As if the system had started none.
        let threads = std::mem::take(&mut pool.threads);
        pool.helpers = 0;
        let ticket = Ticket::new(&engine.shared, Query::new("heron"), engine.shared.admission.wait());
        assert!(matches!(pool.submit(ticket).wait(), Err(SearchError::NoThread)));
        assert_eq!(pool.tasks.queued.load(Ordering::Relaxed), 0);
        pool.threads = threads;
        assert!(engine.pool.set(pool).is_ok());
        let hits: Vec<usize> = engine.stream(vec![Query::new("heron"); 100]).map(|it| it.unwrap().hits.len()).collect();
        assert_eq!(hits, [4; 100]);
    }

    /// Submits equal queries to a flight that the caller leads, and waits until all are parked.
    fn park_many(engine: &Engine, text: &str, count: u64) -> Vec<Pending> {
        let before = engine.cache_counters().joined;
        let pending = (0..count).map(|_| engine.submit(Query::new(text)).unwrap()).collect();
        let start = Instant::now();
        while engine.cache_counters().joined < before + count {
            assert!(start.elapsed() < Duration::from_secs(20), "{:?}", engine.cache_counters());
            std::thread::yield_now();
        }
        pending
    }

    fn poll(pending: &mut Pending, waker: &Waker) -> Poll<Result<Answer, SearchError>> {
        Pin::new(pending).poll(&mut Context::from_waker(waker))
    }

    fn is_answered(mut pending: Pending) -> bool {
        matches!(poll(&mut pending, Waker::noop()), Poll::Ready(Ok(answer)) if answer.hits.len() == 9)
    }

    /// Calls a function when it is woken.
    struct Call<F>(F);

    impl<F: Fn() + Send + Sync> Wake for Call<F> {
        fn wake(self: Arc<Self>) {
            self.0();
        }
    }

    /// Keeps the only thread of an engine until the sender is dropped.
    fn hold(engine: &Engine) -> Sender<()> {
        let (sender, receiver): (Sender<()>, Receiver<()>) = channel();
        let (started, has_started) = channel();
        let (receiver, leader) = (Mutex::new(receiver), lead(engine, "heron", Asker::Ticket));
        let mut pending = park_many(engine, "heron", 1).remove(0);
        let wait = move || {
            started.send(()).unwrap();
            _ = receiver.lock().unwrap().recv();
        };
        assert!(poll(&mut pending, &Waker::from(Arc::new(Call(wait)))).is_pending());
        drop(leader);
        has_started.recv().unwrap();
        // Its answer is there.
        assert!(poll(&mut pending, Waker::noop()).is_ready());
        sender
    }

    #[test]
    fn submitted_queries_wait_for_an_equal_one_without_a_thread() {
        for asker in [Asker::Ticket, Asker::Search] {
            let (_folder, engine) = engine(1);
            let leader = lead(&engine, "falcon", asker);
            let pending = park_many(&engine, "falcon", 40);
            // The only thread goes on with others.
            assert_eq!(engine.submit(Query::new("heron")).unwrap().wait().unwrap().hits.len(), 4);
            assert_eq!(engine.answered_by_cpu(), 1);
            let answer = engine.answer(&Query::new("falcon")).unwrap();
            leader.land(Some(&answer));
            for pending in pending {
                let follower = pending.wait().unwrap();
                assert_eq!((follower.hits, follower.exact), (answer.hits.clone(), true));
                assert_eq!(follower.trace.steps.iter().map(|step| step.name).collect::<Vec<_>>(), ["cache"]);
            }
            let counters = engine.cache_counters();
            assert_eq!((engine.answered_by_cpu(), counters.joined, counters.misses), (2, 40, 42));
        }
    }

    /// Of three threads one is the caller's, and one the device's, which has nothing to do.
    #[test]
    fn the_spare_thread_answers_while_the_others_are_busy_and_the_device_is_idle() {
        let (_folder, engine) = engine_with(3, Policy::Auto);
        let held = hold(&engine);
        let queries = (1..50).map(|k| Query::new("falcon").k(k));
        let pending: Vec<Pending> = queries.map(|query| engine.submit(query).unwrap()).collect();
        for (pending, k) in pending.into_iter().zip(1..) {
            assert_eq!(pending.wait().unwrap().hits.len(), 9.min(k));
        }
        drop(held);
    }

    #[test]
    fn equal_queries_that_are_submitted_together_are_answered_once() {
        let (_folder, engine) = engine(1);
        let held = hold(&engine);
        let pending: Vec<Pending> = (0..50).map(|_| engine.submit(Query::new("falcon")).unwrap()).collect();
        drop(held);
        pending.into_iter().for_each(|pending| assert_eq!(pending.wait().unwrap().hits.len(), 9));
        // One for the query that held the thread. The thread took 16 at a time.
        let counters = engine.cache_counters();
        assert_eq!((engine.answered_by_cpu(), counters.joined, counters.hits), (2, 1 + 15, 34));
    }

    #[test]
    fn if_a_leader_is_abandoned_one_of_its_followers_leads() {
        for threads in [1, 4] {
            let (_folder, engine) = engine(threads);
            let leader = lead(&engine, "falcon", Asker::Ticket);
            let pending = park_many(&engine, "falcon", 40);
            drop(leader);
            pending.into_iter().for_each(|pending| assert_eq!(pending.wait().unwrap().hits.len(), 9));
            assert_eq!((engine.answered_by_cpu(), engine.shared.queued.load(Ordering::Relaxed)), (1, 0));
        }
    }

    #[test]
    fn if_a_leader_fails_each_follower_is_answered_for_itself() {
        let (_folder, engine) = engine(1);
        let leaders = ["falcon", "falcon^0"].map(|text| lead(&engine, text, Asker::Search));
        let pending = ["falcon", "falcon^0"].map(|text| park_many(&engine, text, 20));
        let joined = engine.cache_counters().joined;
        leaders.into_iter().for_each(|leader| leader.land(None));
        let [good, bad] = pending;
        good.into_iter().for_each(|pending| assert_eq!(pending.wait().unwrap().hits.len(), 9));
        bad.into_iter().for_each(|pending| assert!(matches!(pending.wait(), Err(SearchError::Plan(_)))));
        assert_eq!((engine.cache_counters().joined, engine.shared.queued.load(Ordering::Relaxed)), (joined, 0));
    }

    /// Queues a query whose waker cancels the one behind it, and equal ones behind. The thread takes them together,
    /// so the second leads the others, and is cancelled before it is answered.
    fn submit_behind_a_cancelled_leader(engine: &Engine) -> (Pending, Vec<Pending>) {
        let mut first = engine.submit(Query::new("heron").k(3)).unwrap();
        let cancelled = Mutex::new(Some(engine.submit(Query::new("falcon")).unwrap()));
        let cancel = move || drop(cancelled.lock().unwrap().take());
        assert!(poll(&mut first, &Waker::from(Arc::new(Call(cancel)))).is_pending());
        let followers = (0..10).map(|_| engine.submit(Query::new("falcon")).unwrap()).collect();
        (first, followers)
    }

    #[test]
    fn cancelling_a_leader_cancels_no_follower() {
        let (_folder, engine) = engine(1);
        let held = hold(&engine);
        let (first, followers) = submit_behind_a_cancelled_leader(&engine);
        let before = engine.cache_counters();
        drop(held);
        followers.into_iter().for_each(|pending| assert_eq!(pending.wait().unwrap().hits.len(), 9));
        assert_eq!(first.wait().unwrap().hits.len(), 3);
        // Ten joined the cancelled leader, and nine the first of them.
        let counters = engine.cache_counters();
        assert_eq!((engine.answered_by_cpu(), counters.joined - before.joined), (3, 19));
    }

    #[test]
    fn an_engine_that_is_dropped_answers_the_followers_of_a_cancelled_leader() {
        let (_folder, engine) = engine(1);
        let held = hold(&engine);
        let (_first, followers) = submit_behind_a_cancelled_leader(&engine);
        drop(held);
        drop(engine);
        assert!(followers.into_iter().all(is_answered));
    }

    #[test]
    fn an_engine_that_is_dropped_waits_for_the_flights_of_parked_queries() {
        let (_folder, engine) = engine(3);
        let leader = lead(&engine, "falcon", Asker::Ticket);
        let pending = park_many(&engine, "falcon", 20);
        std::thread::scope(|scope| {
            let dropping = scope.spawn(move || drop(engine));
            // Long enough for threads that do not wait to end.
            std::thread::sleep(Duration::from_millis(300));
            assert!(!dropping.is_finished());
            drop(leader);
        });
        assert!(pending.into_iter().all(is_answered));
    }

    #[test]
    fn a_search_does_not_wait_for_a_submitted_query_and_answers_its_followers() {
        let (_folder, engine) = engine(1);
        let leader = lead(&engine, "falcon", Asker::Ticket);
        let pending = park_many(&engine, "falcon", 20);
        assert_eq!(engine.search(&Query::new("falcon")).unwrap().hits.len(), 9);
        assert!(pending.into_iter().all(is_answered));
        drop(leader);
        assert_eq!(engine.answered_by_cpu(), 1);
    }
}
