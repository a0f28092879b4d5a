//! The engine's own threads: they answer submitted queries, and help with streams and long queries.
//!
//! A thread takes, in this order: submissions that the GPU has answered, submitted queries, and a stream or a long
//! query to help with. It leaves a stream for either of the others between two groups of queries. A thread without work
//! spins for [`SPIN`] before it sleeps, and is woken only if it sleeps: under load nobody pays for a wake-up.

use super::pending::{Pending, Ticket};
use super::{SearchError, Shared};
use crate::device::submission::{Finished, Offer, Submission, spin_until};
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

/// The engine's own threads and their tasks.
pub struct Pool {
    shared: Arc<Shared>,
    tasks: Arc<Tasks>,
    threads: Vec<JoinHandle<()>>,
}

struct Tasks {
    state: Mutex<State>,
    arrived: Condvar,
    /// Submitted queries and answered submissions, to be read without the lock.
    urgent: AtomicUsize,
    /// As `urgent`, with the streams and long queries to help with.
    all: AtomicUsize,
    /// Groups that the GPU has.
    on_gpu: AtomicUsize,
    is_closed: AtomicBool,
}

#[derive(Default)]
struct State {
    answered: VecDeque<Group>,
    tickets: VecDeque<Ticket>,
    /// Work to help with, once for each thread that may help.
    helps: Vec<Arc<dyn Help>>,
    sleeping: usize,
}

/// Queries that went to the GPU together.
struct Group {
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
    /// Starts the threads: as many as the engine may use, less the one that asks and that of a device.
    pub fn start(shared: &Arc<Shared>) -> Pool {
        let tasks = Arc::new(Tasks {
            state: Mutex::default(),
            arrived: Condvar::new(),
            urgent: AtomicUsize::new(0),
            all: AtomicUsize::new(0),
            on_gpu: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
        });
        let spawn = |number: usize| {
            let (shared, tasks) = (Arc::clone(shared), Arc::clone(&tasks));
            let name = format!("lanner-{number}");
            std::thread::Builder::new().name(name).spawn(move || run(&shared, &tasks)).ok()
        };
        let threads: Vec<JoinHandle<()>> = (0..shared.helpers().max(1)).filter_map(spawn).collect();
        assert!(!threads.is_empty(), "the system has no thread for the engine");
        Pool { shared: Arc::clone(shared), tasks, threads }
    }

    /// Queues a query.
    pub fn submit(&self, ticket: Ticket) -> Pending {
        let pending = ticket.pending();
        self.shared.queued.fetch_add(1, Ordering::Relaxed);
        self.tasks.put(true, |state| state.tickets.push_back(ticket));
        self.forget_cancelled();
        pending
    }

    /// Drops cancelled queries once the queue holds more than twice the limit: they have freed their permits, so the
    /// limit does not bound them.
    fn forget_cancelled(&self) {
        if self.shared.queued.load(Ordering::Relaxed) <= 2 * self.shared.admission.limit() {
            return;
        }
        let mut state = self.tasks.lock();
        let is_cancelled = |ticket: &Ticket| ticket.cancelled().load(Ordering::Relaxed);
        let (cancelled, tickets): (Vec<Ticket>, Vec<Ticket>) = state.tickets.drain(..).partition(is_cancelled);
        state.tickets = tickets.into();
        self.tasks.urgent.fetch_sub(cancelled.len(), Ordering::Relaxed);
        self.tasks.all.fetch_sub(cancelled.len(), Ordering::Relaxed);
        self.shared.queued.fetch_sub(cancelled.len(), Ordering::Relaxed);
    }

    /// Who can be asked for help.
    pub fn helpers(&self) -> Helpers {
        Helpers { tasks: Arc::downgrade(&self.tasks), threads: self.threads.len() }
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
        let has_sleepers = state.sleeping > 0;
        drop(state);
        if has_sleepers {
            self.arrived.notify_one();
        }
    }

    /// Waits for something to do; `None` if the pool is closed and nothing is left.
    fn wait(&self, threads: usize) -> Option<Task> {
        loop {
            spin_until(SPIN, || self.all.load(Ordering::Acquire) > 0);
            let mut state = self.lock();
            if let Some(task) = self.take(&mut state, threads, true) {
                return Some(task);
            }
            // What the GPU has not answered yet will come back.
            if self.is_closed.load(Ordering::Relaxed) && self.on_gpu.load(Ordering::Acquire) == 0 {
                return None;
            }
            state.sleeping += 1;
            let (mut state, _) =
                self.arrived.wait_timeout(state, Duration::from_millis(100)).unwrap_or_else(PoisonError::into_inner);
            state.sleeping -= 1;
        }
    }

    fn take(&self, state: &mut State, threads: usize, may_help: bool) -> Option<Task> {
        let (task, urgent) = if let Some(group) = state.answered.pop_front() {
            (Task::Answered(group), 1)
        } else if !state.tickets.is_empty() {
            let count = state.tickets.len().div_ceil(threads.max(1)).min(TAKEN_TOGETHER);
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
    fn do_urgent(self: &Arc<Tasks>, shared: &Shared, finished: &RefCell<Finished>) -> bool {
        if self.urgent.load(Ordering::Acquire) > 0 {
            let task = self.take(&mut self.lock(), shared.threads, false);
            task.into_iter().for_each(|task| perform(shared, self, task, finished));
        }
        !self.is_closed.load(Ordering::Relaxed)
    }
}

/// A thread of the pool.
fn run(shared: &Arc<Shared>, tasks: &Arc<Tasks>) {
    let finished = RefCell::default();
    while let Some(task) = tasks.wait(shared.threads) {
        perform(shared, tasks, task, &finished);
    }
}

/// Does a task. A panic ends only the task: its tickets end with an error when they are dropped.
fn perform(shared: &Shared, tasks: &Arc<Tasks>, task: Task, finished: &RefCell<Finished>) {
    _ = catch_unwind(AssertUnwindSafe(|| match task {
        Task::Answered(group) => finish(shared, group, finished),
        Task::Tickets(tickets) => start(shared, tasks, tickets),
        Task::Help(help) => help.help(&|| tasks.do_urgent(shared, finished)),
    }));
}

/// Plans queries, gives some to the GPU together, and answers the others.
fn start(shared: &Shared, tasks: &Arc<Tasks>, tickets: Vec<Ticket>) {
    shared.queued.fetch_sub(tickets.len(), Ordering::Relaxed);
    let (mut offered, mut offers, mut own) = (Vec::new(), Vec::new(), Vec::new());
    for ticket in tickets {
        if ticket.cancelled().load(Ordering::Relaxed) {
            continue;
        }
        if let Some(answer) = shared.integrator.kept(&ticket.query) {
            ticket.end(Ok(answer));
            continue;
        }
        let start = Instant::now();
        let plan = match guarded(|| Ok(shared.plan(&ticket.query, ticket.arrived)?)) {
            Ok(plan) => plan,
            Err(error) => {
                ticket.end(Err(error));
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
        let group = Group { submission: Arc::clone(&submission), tickets: offered };
        let waiting = Arc::new(ReturnToPool { tasks: Arc::clone(tasks), group: Mutex::new(Some(group)) });
        tasks.on_gpu.fetch_add(1, Ordering::AcqRel);
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

/// A panic as an error, so that it costs one query and no others.
fn guarded<T>(work: impl FnOnce() -> Result<T, SearchError>) -> Result<T, SearchError> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(SearchError::Panicked { reason: panic_text(&*panic) }))
}

/// Delivers the answers of queries that went to the GPU; what it left unanswered, this thread answers.
fn finish(shared: &Shared, group: Group, finished: &RefCell<Finished>) {
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
    if let Ok(answer) = &answer {
        shared.integrator.keep(&ticket.query, answer);
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
            self.tasks.on_gpu.fetch_sub(1, Ordering::AcqRel);
        }
    }
}
