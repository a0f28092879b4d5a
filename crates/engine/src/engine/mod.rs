//! The engine: owns an index, the workers that answer plans over it, and what stands in front of them.
//!
//! A query is planned by the thread that asks, or by one of the engine's own; its policy decides which worker answers
//! the plan; what the GPU leaves unanswered, the CPU answers. There are three ways to ask: [`Engine::search`] answers on
//! the calling thread, [`Engine::submit`] returns a future, and [`Engine::stream`] answers any number of queries in
//! order, with as many threads as the engine has. docs/scheduling.md has the protocol between the threads.

mod admission;
mod error;
mod integrator;
mod parts;
mod pending;
mod pool;
mod stream;

pub use error::SearchError;
pub use integrator::CacheCounters;
pub use pending::Pending;
pub use stream::Stream;

use crate::device::submission::{Offer, Outcome, Submission, Why};
use crate::executors::{Counters, Cpu, Executor, GpuOptions, GpuWorker};
use crate::query::Query;
use crate::query::answer::{Answer, Hit, Place, Scored, Step};
use crate::query::cost::{Costs, Features, Modelled, Route};
use crate::query::plan::Plan;
use crate::query::planner::{PlanError, Planner};
use crate::schedule::{Aim, CpuLoad, Decision, Policy, View};
use admission::Admission;
use integrator::Integrator;
use lanner_gpu::error::GpuError;
use lanner_index::format::IndexError;
use lanner_index::open::Index;
use pending::Ticket;
use pool::Pool;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use stream::Calls;

/// Plans that one thread submits together: few enough that the device starts early, and many enough for a batch that
/// uses all of an H200.
const SUBMITTED_TOGETHER: usize = 256;
/// The default of [`Engine::queue`].
const QUEUE: usize = 65_536;

/// Answers queries over one index on the CPU and on a GPU, wherever each finishes first. Any number of threads may ask.
///
/// ```
/// # use lanner::{Document, Engine, IndexBuilder, Query};
/// # let folder = tempfile::tempdir()?;
/// # let document = |id: &str, text: &str| Document::new(id).field("text", text);
/// # IndexBuilder::new(folder.path()).documents([document("a", "falcons in pairs"), document("b", "one falcon")])?;
/// let engine = Engine::open(folder.path())?.threads(4).cache(64 << 20);
/// let pending = engine.submit(Query::new("falcon"))?; // a future; `wait` blocks instead
/// assert_eq!(pending.wait()?.hits.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Engine {
    /// Started with the first query that needs it. Dropping it answers what was accepted, and ends its threads.
    pool: OnceLock<Pool>,
    shared: Arc<Shared>,
}

/// What all threads of an engine share.
pub(crate) struct Shared {
    index: Arc<Index>,
    cpu: Cpu,
    gpu: Option<GpuWorker>,
    threads: usize,
    policy: Policy,
    costs: Arc<Costs>,
    admission: Admission,
    integrator: Integrator,
    /// Plans that the CPU is answering.
    running: AtomicUsize,
    /// Submitted queries that no thread has taken yet.
    queued: AtomicUsize,
    /// Plans that the CPU has answered, and the predicted time of those that it answered while the GPU was not open.
    answered_by_cpu: AtomicU64,
    cold_nanoseconds: AtomicU64,
}

impl Engine {
    /// Opens the index in a folder. Queries are answered by the calling thread until [`Engine::threads`] and
    /// [`Engine::gpu`] say otherwise.
    pub fn open(folder: impl AsRef<std::path::Path>) -> Result<Engine, IndexError> {
        Ok(Engine::new(Arc::new(Index::open(folder)?)))
    }

    /// An engine for an index that is already open.
    pub fn new(index: Arc<Index>) -> Engine {
        let shared = Shared {
            cpu: Cpu::new(Arc::clone(&index), 1),
            index,
            gpu: None,
            threads: 1,
            policy: Policy::default(),
            costs: Arc::new(Costs::default()),
            admission: Admission::new(QUEUE),
            integrator: Integrator::default(),
            running: AtomicUsize::new(0),
            queued: AtomicUsize::new(0),
            answered_by_cpu: AtomicU64::new(0),
            cold_nanoseconds: AtomicU64::new(0),
        };
        Engine { shared: Arc::new(shared), pool: OnceLock::new() }
    }

    /// Changes the options of an engine that has not been asked anything.
    fn configure(self, change: impl FnOnce(Shared) -> Shared) -> Engine {
        let shared = Arc::into_inner(self.shared).expect("options are set before the first query");
        Engine { shared: Arc::new(change(shared)), pool: OnceLock::new() }
    }

    /// Uses a GPU.
    pub fn gpu(self, options: GpuOptions) -> Engine {
        self.configure(|shared| {
            let gpu = GpuWorker::start(Arc::clone(&shared.index), options, Arc::clone(&shared.costs));
            Shared { gpu: Some(gpu), ..shared }
        })
    }

    /// Uses up to this many threads of the CPU for queries that are submitted, streamed or long.
    pub fn threads(self, threads: usize) -> Engine {
        let threads = threads.max(1);
        self.configure(|shared| Shared { threads, cpu: Cpu::new(Arc::clone(&shared.index), threads), ..shared })
    }

    /// Chooses who answers a query. The default is [`Policy::Auto`].
    pub fn policy(self, policy: Policy) -> Engine {
        self.configure(|shared| Shared { policy, ..shared })
    }

    /// Uses costs that were calibrated on this machine. To be called before [`Engine::gpu`].
    #[doc(hidden)]
    pub fn costs(self, costs: Costs) -> Engine {
        self.configure(|shared| Shared { costs: Arc::new(costs), ..shared })
    }

    /// Accepts at most this many submitted queries that are not answered yet. The default is 65,536.
    pub fn queue(self, limit: usize) -> Engine {
        self.configure(|shared| Shared { admission: Admission::new(limit), ..shared })
    }

    /// Keeps answers in up to this many bytes of memory, and answers equal queries that are asked at the same time
    /// once. Neither is done by default. An index does not change while it is open, so answers stay right; an engine
    /// for a newer index starts with an empty cache.
    pub fn cache(self, bytes: u64) -> Engine {
        self.configure(|shared| Shared { integrator: Integrator::new(bytes), ..shared })
    }

    /// The index.
    pub fn index(&self) -> &Arc<Index> {
        &self.shared.index
    }

    /// Opens the GPU now instead of when it pays, and waits until it is ready.
    pub fn connect(&self) -> Result<(), GpuError> {
        self.shared.gpu.as_ref().map_or(Ok(()), GpuWorker::connect)
    }

    /// Starts to open the GPU, and returns at once. Until it is ready, [`Policy::Auto`] uses the CPU.
    pub fn warm_up(&self) {
        self.shared.gpu.iter().for_each(GpuWorker::warm_up);
    }

    /// The name of the GPU, once it is open.
    pub fn device_name(&self) -> Option<String> {
        self.shared.gpu.as_ref().and_then(GpuWorker::device_name)
    }

    /// What the GPU has done so far, if there is one.
    pub fn counters(&self) -> Option<&Counters> {
        self.shared.gpu.as_ref().map(GpuWorker::counters)
    }

    /// How many plans the CPU has answered; not counted without a GPU, which there is then nothing to compare with.
    pub fn answered_by_cpu(&self) -> u64 {
        self.shared.answered_by_cpu.load(Ordering::Relaxed)
    }

    /// What the cache has done so far.
    pub fn cache_counters(&self) -> CacheCounters {
        self.shared.integrator.counters()
    }

    /// Plans a query.
    pub fn plan(&self, query: &Query) -> Result<Plan, PlanError> {
        Planner::new(self.index()).plan(query)
    }

    /// Answers a query on the calling thread, or waits there for the GPU.
    pub fn search(&self, query: &Query) -> Result<Answer, SearchError> {
        self.shared.integrator.answer(query, || self.answer(query, Instant::now()))
    }

    /// Answers a query that arrived at a moment. A long one that is for the CPU is split among the engine's threads.
    fn answer(&self, query: &Query, arrived: Instant) -> Result<Answer, SearchError> {
        let (shared, start) = (&self.shared, Instant::now());
        let plan = shared.plan(query, arrived)?;
        let planned = Step { name: "plan", place: Place::Cpu, started: start, duration: start.elapsed() };
        let mut answer = match shared.answer_on_gpu(&plan) {
            Some(answer) => answer,
            None if shared.cpu.is_split(&plan) => {
                let answer_all = |plans| parts::answer(shared, &self.pool().helpers(), plans);
                shared.cpu.answer_in_parts(&plan, answer_all)?.into_hits(plan.score)
            }
            None => shared.answer_on_cpu(&plan, |cpu| cpu.answer_one(&plan, Hit::maker(plan.score)))?,
        };
        answer.trace.steps.insert(0, planned);
        answer.trace.arrived = Some(arrived);
        shared.in_time(query, answer)
    }

    /// Accepts a query, and returns a future of its answer at once. A future that is dropped cancels its query. If the
    /// engine has as many unanswered queries as it may, this is [`SearchError::Busy`].
    pub fn submit(&self, query: Query) -> Result<Pending, SearchError> {
        let limit = self.shared.admission.limit();
        let place = self.shared.admission.enter().ok_or(SearchError::Busy { limit })?;
        Ok(self.pool().submit(Ticket::new(query, place)))
    }

    /// As [`Engine::submit`], but waits while the engine has too many unanswered queries.
    pub fn submit_waiting(&self, query: Query) -> Pending {
        let place = self.shared.admission.wait();
        self.pool().submit(Ticket::new(query, place))
    }

    /// Answers queries as they come from an iterator; the answers are in the order of the queries. The engine's threads
    /// read the iterator, 16 queries at a time: one that blocks keeps one of them, and one that waits for an answer of
    /// this stream never ends. Dropping the stream ends it.
    pub fn stream<I>(&self, queries: I) -> Stream<Result<Answer, SearchError>>
    where
        I: IntoIterator<Item = Query>,
        I::IntoIter: Send + 'static,
    {
        self.stream_map(queries, |_, answer| answer)
    }

    /// As [`Engine::stream`], with something made of each answer by the thread that answered.
    pub fn stream_map<I, T: Send + 'static>(
        &self,
        queries: I,
        make: impl Fn(Query, Result<Answer, SearchError>) -> T + Send + Sync + 'static,
    ) -> Stream<T>
    where
        I: IntoIterator<Item = Query>,
        I::IntoIter: Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        let plan = move |query: &Query| Ok(shared.plan(query, Instant::now())?);
        let shared = Arc::clone(&self.shared);
        let make = move |query: Query, answer: Result<Answer, SearchError>| {
            let answer = answer.and_then(|answer| shared.in_time(&query, answer));
            make(query, answer)
        };
        self.start_stream(Box::new(queries.into_iter().fuse()), Calls { plan: Box::new(plan), make: Box::new(make) })
    }

    /// As [`Engine::stream`], for plans that were made elsewhere.
    #[doc(hidden)]
    pub fn stream_plans<I>(&self, plans: I) -> Stream<Result<Answer, SearchError>>
    where
        I: IntoIterator<Item = Plan>,
        I::IntoIter: Send + 'static,
    {
        let calls = Calls { plan: Box::new(|plan: &Plan| Ok(plan.clone())), make: Box::new(|_, answer| answer) };
        self.start_stream(Box::new(plans.into_iter().fuse()), calls)
    }

    fn start_stream<Q, T>(&self, queries: Box<dyn Iterator<Item = Q> + Send>, calls: Calls<Q, T>) -> Stream<T>
    where
        Q: Send + 'static,
        T: Send + 'static,
    {
        let helpers = Some(self.shared.helpers()).filter(|&threads| threads > 0);
        let helpers = helpers.map(|threads| (self.pool().helpers(), threads));
        Stream::start(Arc::clone(&self.shared), helpers, queries, calls)
    }

    /// Answers many queries: `answers[i]` belongs to `queries[i]`. The first query that fails is the error of all.
    pub fn search_batch(&self, queries: &[Query]) -> Result<Vec<Answer>, SearchError> {
        let answers: Vec<Result<Answer, SearchError>> = self.stream(queries.to_vec()).collect();
        let number = |(answer, number): (Result<Answer, SearchError>, usize)| match answer {
            Err(SearchError::Plan(error)) => Err(SearchError::Query { number, error }),
            answer => answer,
        };
        answers.into_iter().zip(1..).map(number).collect()
    }

    fn pool(&self) -> &Pool {
        self.pool.get_or_init(|| Pool::start(&self.shared))
    }
}

impl Shared {
    /// Threads of the engine's own that answer queries: not the one that asks, and not that of a device.
    fn helpers(&self) -> usize {
        let others = 1 + usize::from(self.gpu.is_some() && self.policy != Policy::Cpu);
        match self.threads {
            1 => 0,
            threads => threads.saturating_sub(others).max(1),
        }
    }

    /// Plans a query that arrived at a moment.
    fn plan(&self, query: &Query, arrived: Instant) -> Result<Plan, PlanError> {
        let plan = Planner::new(&self.index).plan(query)?;
        // A moment that the clock cannot count to never comes.
        Ok(Plan { deadline: query.deadline.and_then(|deadline| arrived.checked_add(deadline)), ..plan })
    }

    /// An answer that misses documents because the deadline passed is an error, unless the query allows it.
    fn in_time(&self, query: &Query, answer: Answer) -> Result<Answer, SearchError> {
        match query.deadline {
            Some(deadline) if answer.coverage < 1.0 && !query.allow_partial => Err(SearchError::Deadline { deadline }),
            _ => Ok(answer),
        }
    }

    /// Answers a plan on the GPU if the policy says so; `None` if it is for the CPU, or the GPU did not answer it.
    fn answer_on_gpu(&self, plan: &Plan) -> Option<Answer> {
        let (gpu, offer) = self.offer(plan, Aim::Latency)?;
        let offers = std::iter::once(offer.of(plan.clone()));
        let submissions = gpu.drive(std::iter::once(self.prepare(gpu, offers)));
        let answer = self.finish(gpu, submissions[0].wait()).pop().flatten();
        answer.map(|answer| answer.into_hits(plan.score))
    }

    /// The GPU and what the plan costs there, if the policy decides for it; `None` if the plan is for the CPU.
    fn offer(&self, plan: &Plan, aim: Aim) -> Option<(&GpuWorker, Predicted)> {
        let gpu = self.gpu.as_ref().filter(|_| self.policy != Policy::Cpu)?;
        if !gpu.supports(plan) {
            gpu.counters().unsupported.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let (features, load) = (Features::of(plan), gpu.load());
        let cpu = CpuLoad {
            cores: cores(),
            threads: self.threads,
            running: self.running.load(Ordering::Relaxed),
            queued: self.queued.load(Ordering::Relaxed),
        };
        let view = View { costs: &self.costs, cpu, gpu: load, aim };
        match self.policy.decide(&features, &view) {
            Decision::Cpu => {
                if !load.is_open {
                    self.count_cold(gpu, self.costs.predict(&features, Route::Cpu));
                }
                None
            }
            Decision::Gpu => {
                let route = if load.uploads_lists { Route::GpuUpload } else { Route::GpuBatch };
                let modelled = self.costs.modelled(&features, route);
                Some((gpu, Predicted { cost: self.costs.corrected(modelled, route), modelled }))
            }
        }
    }

    /// Opens the GPU once the CPU has worked for as long as opening takes: then at most twice the time is spent that
    /// the better of both choices would have taken.
    fn count_cold(&self, gpu: &GpuWorker, cost: Duration) {
        let cost = cost.as_nanos() as u64;
        let before = self.cold_nanoseconds.fetch_add(cost, Ordering::Relaxed);
        let opening = Costs::OPENING.as_nanos() as u64;
        if before < opening && before + cost >= opening {
            // Counted again from here, so that a GPU that failed is tried again.
            self.cold_nanoseconds.store(0, Ordering::Relaxed);
            gpu.warm_up();
        }
    }

    /// Answers a plan on this thread, and learns from the time that it takes.
    fn answer_on_cpu<H>(
        &self,
        plan: &Plan,
        answer: impl FnOnce(&Cpu) -> Result<Answer<H>, IndexError>,
    ) -> Result<Answer<H>, IndexError> {
        if self.gpu.is_none() {
            return answer(&self.cpu);
        }
        /// Counts also if answering panics.
        struct Running<'a>(&'a AtomicUsize);
        impl Drop for Running<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let others = self.running.fetch_add(1, Ordering::Relaxed);
        let running = Running(&self.running);
        let start = Instant::now();
        let answered = answer(&self.cpu);
        let time = start.elapsed();
        drop(running);
        self.answered_by_cpu.fetch_add(1, Ordering::Relaxed);
        // Of an AND+OR that stopped after its AND only a part of the prediction ran; threads that share cores take
        // longer than the model says.
        if plan.stages.len() == 1 && others < cores() && plan.deadline.is_none() {
            self.costs.observe(self.costs.modelled(&Features::of(plan), Route::Cpu), Route::Cpu, time);
        }
        answered
    }

    /// Makes the rows of plans for the GPU, on the calling thread.
    fn prepare(&self, gpu: &GpuWorker, offers: impl Iterator<Item = Offer>) -> Arc<Submission> {
        Submission::new(&self.index, offers, |plan| gpu.supports(plan), gpu.waiting())
    }

    /// What became of the plans of a submission: `answers[i]` belongs to plan `i`; those that the GPU did not answer are
    /// missing.
    fn finish(&self, gpu: &GpuWorker, outcomes: Vec<Outcome>) -> Vec<Option<Answer<Scored>>> {
        let (mut answered, mut unsupported, mut fallen_back) = (0, 0, 0);
        let mut answer = |outcome: Outcome| {
            match &outcome {
                Ok(_) => answered += 1,
                Err(Why::Unsupported) => unsupported += 1,
                Err(Why::Cancelled) => {}
                Err(Why::TooLarge | Why::Unreadable | Why::Failed) => fallen_back += 1,
            }
            outcome.ok()
        };
        let answers: Vec<Option<Answer<Scored>>> = outcomes.into_iter().map(&mut answer).collect();
        let count = |counter: &AtomicU64, number: usize| _ = counter.fetch_add(number as u64, Ordering::Relaxed);
        count(&gpu.counters().answered, answered);
        count(&gpu.counters().unsupported, unsupported);
        count(&gpu.counters().fallen_back, fallen_back);
        answers
    }
}

impl Executor for Engine {
    /// Answers plans that were made elsewhere, driving the GPU from the calling thread: all that it supports, unless the
    /// policy is `cpu`. For tests and benchmarks; no cost is predicted.
    fn run(&self, plans: &[Plan]) -> Result<Vec<Answer<Scored>>, IndexError> {
        let shared = &self.shared;
        let Some(gpu) = shared.gpu.as_ref().filter(|_| shared.policy != Policy::Cpu) else {
            return shared.cpu.run(plans);
        };
        let offers = plans.chunks(SUBMITTED_TOGETHER).map(|plans| plans.iter().cloned().map(Offer::from));
        let submissions = gpu.drive(offers.map(|offers| shared.prepare(gpu, offers)));
        let mut answers = Vec::with_capacity(plans.len());
        submissions.iter().for_each(|submission| answers.extend(shared.finish(gpu, submission.wait())));
        shared.answer_missing(answers, plans)
    }
}

impl Shared {
    /// Answers on the CPU the plans whose answers are missing.
    fn answer_missing(
        &self,
        answers: Vec<Option<Answer<Scored>>>,
        plans: &[Plan],
    ) -> Result<Vec<Answer<Scored>>, IndexError> {
        let missing = (0..answers.len()).filter(|&number| answers[number].is_none());
        let missing: Vec<Plan> = missing.map(|number| plans[number].clone()).collect();
        let found = if missing.is_empty() { Vec::new() } else { self.cpu.run(&missing)? };
        let mut found = found.into_iter();
        let answer = |answer: Option<_>| answer.unwrap_or_else(|| found.next().expect("the CPU answers every plan"));
        Ok(answers.into_iter().map(answer).collect())
    }
}

/// What a plan is predicted to cost on the GPU.
struct Predicted {
    cost: Duration,
    modelled: Modelled,
}

impl Predicted {
    fn of(self, plan: Plan) -> Offer {
        Offer { plan, cost: self.cost, modelled: self.modelled, is_cancelled: None }
    }
}

/// Cores of the machine.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanner_index::build::{BuildOptions, Quiet, build};
    use lanner_index::corpus::{Corpus, CorpusOptions};

    /// The device does not open: it is tried again each time that the CPU has worked for as long as opening takes.
    #[test]
    fn the_gpu_is_opened_once_the_cpu_has_worked_long_enough_and_again_after_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let documents = [("a".to_owned(), String::new(), "falcon".to_owned())];
        let corpus = Corpus::from_documents(documents, CorpusOptions::default()).unwrap();
        build(folder.path(), corpus, &BuildOptions::default(), &Quiet).unwrap();
        let tries = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&tries);
        let options = GpuOptions::new(Box::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
            Err(GpuError::Failed { at: "opening a device", reason: "on command".to_owned() })
        }));
        let engine = Engine::open(folder.path()).unwrap().gpu(options.pause(Duration::ZERO));
        let gpu = engine.shared.gpu.as_ref().unwrap();
        let is_tried = |times: usize| {
            let start = Instant::now();
            while tries.load(Ordering::Relaxed) < times && start.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(1));
            }
            tries.load(Ordering::Relaxed) == times
        };
        for round in 0..3 {
            engine.shared.count_cold(gpu, Costs::OPENING / 2);
            std::thread::sleep(Duration::from_millis(20));
            assert!(is_tried(round), "not before the CPU has worked long enough");
            engine.shared.count_cold(gpu, Costs::OPENING / 2);
            assert!(is_tried(round + 1));
        }
    }
}
