//! The engine: owns an index, the workers that answer plans over it, and what stands in front of them.
//!
//! A query is planned by the thread that asks, or by one of the engine's own; its policy decides which worker answers
//! the plan; what the GPU leaves unanswered, the CPU answers. There are three ways to ask: [`Engine::search`] answers
//! on the calling thread, [`Engine::submit`] returns a future, and [`Engine::stream`] answers any number of queries in
//! order, with as many threads as the engine has. docs/scheduling.md has the protocol between the threads.

mod admission;
mod error;
mod integrator;
mod parts;
mod pending;
mod pool;
mod shared;
mod stream;

pub use error::SearchError;
pub use integrator::CacheCounters;
pub use pending::Pending;
pub use stream::Stream;

use crate::device::residency::ResidencyReport;
use crate::device::submission::Offer;
use crate::executors::{Counters, Cpu, Executor, GpuOptions, GpuWorker};
use crate::query::Query;
use crate::query::answer::{Answer, Hit, Place, Scored, Step};
use crate::query::cost::Costs;
use crate::query::plan::Plan;
use crate::query::planner::{PlanError, Planner};
use crate::schedule::Policy;
use admission::Admission;
use integrator::Integrator;
use lanner_gpu::error::GpuError;
use lanner_index::format::IndexError;
use lanner_index::open::Index;
use pending::Ticket;
use pool::Pool;
use shared::Shared;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Instant;
use stream::Callbacks;

/// Plans that one thread submits together: few enough that the device starts early, and many enough for a batch that
/// uses all of an H200.
const SUBMITTED_TOGETHER: usize = 256;

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
    pool: Arc<OnceLock<Pool>>,
    shared: Arc<Shared>,
}

impl Engine {
    /// Opens the index in a folder. Queries are answered by the calling thread until [`Engine::threads`] and
    /// [`Engine::gpu`] say otherwise.
    pub fn open(folder: impl AsRef<std::path::Path>) -> Result<Engine, IndexError> {
        Ok(Engine::new(Arc::new(Index::open(folder)?)))
    }

    /// An engine for an index that is already open.
    pub fn new(index: Arc<Index>) -> Engine {
        Engine { shared: Arc::new(Shared::new(index)), pool: Arc::default() }
    }

    /// An engine for another index that shares this one's threads, queue, cache, policy and GPU, whose memory is one
    /// budget for both. It answers for its own index; whichever engine is dropped, the other goes on. So a new version
    /// of an index can be opened beside the old one, which answers until the new one is ready.
    ///
    /// ```
    /// # use lanner::{Document, Engine, Index, IndexBuilder, Query};
    /// # let (birds, fish) = (tempfile::tempdir()?, tempfile::tempdir()?);
    /// # let document = |id: &str, text: &str| Document::new(id).field("text", text);
    /// # IndexBuilder::new(birds.path()).documents([document("a", "falcons in pairs")])?;
    /// # IndexBuilder::new(fish.path()).documents([document("b", "a pair of pike")])?;
    /// let birds = Engine::open(birds.path())?.threads(4);
    /// let fish = birds.share(Index::open(fish.path())?.into());
    /// let [one, other] = [&birds, &fish].map(|engine| engine.submit(Query::new("pair")));
    /// assert_eq!((one?.wait()?.hits.len(), other?.wait()?.hits.len()), (1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn share(&self, index: Arc<Index>) -> Engine {
        self.share_with_costs(index, Costs::default())
    }

    /// As [`Engine::share`], with costs that were calibrated for the index on this machine.
    #[doc(hidden)]
    pub fn share_with_costs(&self, index: Arc<Index>, costs: Costs) -> Engine {
        Engine { shared: Arc::new(self.shared.share(index, costs)), pool: Arc::clone(&self.pool) }
    }

    /// Changes the options of an engine that has not been asked anything, and that no other shares.
    fn configure(self, change: impl FnOnce(Shared) -> Shared) -> Engine {
        let pool = Arc::into_inner(self.pool).expect("options are set before an engine is shared");
        assert!(pool.get().is_none(), "options are set before the first query");
        let shared = Arc::into_inner(self.shared).expect("options are set before the first query");
        Engine { shared: Arc::new(change(shared)), pool: Arc::default() }
    }

    /// Uses a GPU.
    ///
    /// # Panics
    ///
    /// If a query was asked before, or the engine is [shared](Engine::share): others use the options then.
    pub fn gpu(self, options: GpuOptions) -> Engine {
        self.configure(|shared| {
            let gpu = GpuWorker::start(Arc::clone(&shared.index), options, Arc::clone(&shared.costs));
            Shared { gpu: Some(gpu), ..shared }
        })
    }

    /// Uses up to this many threads of the CPU for queries that are submitted, streamed or long.
    ///
    /// # Panics
    ///
    /// If a query was asked before, or the engine is [shared](Engine::share): others use the options then.
    pub fn threads(self, threads: usize) -> Engine {
        let threads = threads.max(1);
        self.configure(|shared| Shared { threads, cpu: Cpu::new(Arc::clone(&shared.index), threads), ..shared })
    }

    /// Chooses who answers a query. The default is [`Policy::Auto`].
    ///
    /// # Panics
    ///
    /// If a query was asked before, or the engine is [shared](Engine::share): others use the options then.
    pub fn policy(self, policy: Policy) -> Engine {
        self.configure(|shared| Shared { policy, ..shared })
    }

    /// Uses costs that were calibrated on this machine. To be called before [`Engine::gpu`].
    ///
    /// # Panics
    ///
    /// If a query was asked before, or the engine is [shared](Engine::share): others use the options then.
    #[doc(hidden)]
    pub fn costs(self, costs: Costs) -> Engine {
        self.configure(|shared| Shared { costs: Arc::new(costs), ..shared })
    }

    /// Accepts at most this many submitted queries that are not answered yet. The default is 65,536.
    ///
    /// # Panics
    ///
    /// If a query was asked before, or the engine is [shared](Engine::share): others use the options then.
    pub fn queue(self, limit: usize) -> Engine {
        self.configure(|shared| Shared { admission: Admission::new(limit), ..shared })
    }

    /// Keeps answers in up to this many bytes of memory, for all ways of asking, and answers equal queries that are
    /// searched or submitted at the same time once. Neither is done by default. Equal queries that a stream has on the
    /// GPU at the same time are each answered; a search does not wait for a submitted query, but answers for both.
    /// Queries with a filter or a deadline are neither kept nor joined. An index does not change while it is open, so
    /// answers stay right; an engine for a newer index starts with an empty cache.
    ///
    /// # Panics
    ///
    /// If a query was asked before, or the engine is [shared](Engine::share): others use the options then.
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
    #[doc(hidden)]
    pub fn counters(&self) -> Option<&Counters> {
        self.shared.gpu.as_ref().map(GpuWorker::counters)
    }

    /// Where the lists of the index lie on the GPU, as of the last batch; `None` without a GPU or before it is open.
    #[doc(hidden)]
    pub fn residency(&self) -> Option<ResidencyReport> {
        let served = self.shared.gpu.as_ref()?.served();
        let is_open = served.is_open.load(Ordering::Relaxed);
        is_open.then(|| *served.residency.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many plans the CPU has answered. Not counted without a GPU, because there is nothing to compare it with.
    pub fn answered_by_cpu(&self) -> u64 {
        self.shared.answered_by_cpu.load(Ordering::Relaxed)
    }

    /// What the cache has done so far.
    #[doc(hidden)]
    pub fn cache_counters(&self) -> CacheCounters {
        self.shared.integrator.counters()
    }

    /// Plans a query.
    pub fn plan(&self, query: &Query) -> Result<Plan, PlanError> {
        Planner::new(self.index()).plan(query)
    }

    /// Answers a query on the calling thread, or waits there for the GPU.
    pub fn search(&self, query: &Query) -> Result<Answer, SearchError> {
        self.shared.integrator.answer(query, || self.answer(query))
    }

    /// Answers a query that arrives now. A long one that is for the CPU is split among the engine's threads.
    fn answer(&self, query: &Query) -> Result<Answer, SearchError> {
        let (shared, arrived) = (&self.shared, Instant::now());
        let plan = shared.plan(query, arrived)?;
        let planned = Step { name: "plan", place: Place::Cpu, started: arrived, duration: arrived.elapsed() };
        let mut answer = match shared.answer_on_gpu(&plan) {
            Some(answer) => answer,
            None if shared.cpu.is_split(&plan) => {
                let answer_all = |plans| parts::answer(shared, &self.pool().helpers(), plans);
                // Not for `costs`, which predict the time on one thread.
                shared.count_on_cpu(|cpu| cpu.answer_in_parts(&plan, answer_all))?.into_hits(plan.score)
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
        let permit = self.shared.admission.enter().ok_or(SearchError::Busy { limit })?;
        Ok(self.pool().submit(Ticket::new(&self.shared, query, permit)))
    }

    /// As [`Engine::submit`], but waits while the engine has too many unanswered queries.
    pub fn submit_waiting(&self, query: Query) -> Pending {
        let permit = self.shared.admission.wait();
        self.pool().submit(Ticket::new(&self.shared, query, permit))
    }

    /// Answers queries as they come from an iterator; the answers are in the order of the queries. The engine's threads
    /// read the iterator, 32 queries at a time: one that blocks keeps one of them, and one that waits for an answer of
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
        let look_up = move |query: &Query| shared.integrator.look_up(query);
        let shared = Arc::clone(&self.shared);
        let plan = move |query: &Query| Ok(shared.plan(query, Instant::now())?);
        let shared = Arc::clone(&self.shared);
        let make = move |query: Query, answer: Result<Answer, SearchError>| {
            let answer = answer.and_then(|answer| shared.in_time(&query, answer));
            make(query, answer)
        };
        self.start_stream(
            Box::new(queries.into_iter().fuse()),
            Callbacks { look_up: Box::new(look_up), plan: Box::new(plan), make: Box::new(make) },
        )
    }

    /// As [`Engine::stream_map`], for plans that were made elsewhere: the threads that answer get them by their numbers.
    /// If the iterator gave the plans themselves, it would count references to them while all other threads wait for
    /// it. The cache is for queries.
    #[doc(hidden)]
    pub fn stream_plans<I, T: Send + 'static>(
        &self,
        numbers: I,
        plan: impl Fn(usize) -> Plan + Send + Sync + 'static,
        make: impl Fn(usize, Result<Answer, SearchError>) -> T + Send + Sync + 'static,
    ) -> Stream<T>
    where
        I: IntoIterator<Item = usize>,
        I::IntoIter: Send + 'static,
    {
        let callbacks = Callbacks {
            look_up: Box::new(|_| Err(None)),
            plan: Box::new(move |&number: &usize| Ok(plan(number))),
            make: Box::new(make),
        };
        self.start_stream(Box::new(numbers.into_iter().fuse()), callbacks)
    }

    fn start_stream<Q, T>(&self, queries: Box<dyn Iterator<Item = Q> + Send>, callbacks: Callbacks<Q, T>) -> Stream<T>
    where
        Q: Send + 'static,
        T: Send + 'static,
    {
        let helpers = Some(self.shared.helpers()).filter(|&threads| threads > 0);
        let helpers = helpers.map(|threads| (self.pool().helpers(), threads));
        Stream::start(Arc::clone(&self.shared), helpers, queries, callbacks)
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

impl Executor for Engine {
    /// Answers plans that were made elsewhere, driving the GPU from the calling thread: all that it supports, unless
    /// the policy is `cpu`. For tests and benchmarks; no cost is predicted.
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
