//! What all threads share that answer queries over an index: the index, the workers, and how a plan is planned, given to
//! one of them and answered.

use super::SearchError;
use super::admission::Admission;
use super::integrator::Integrator;
use crate::device::submission::{Offer, Outcome, Submission, Unanswered};
use crate::executors::{Cpu, Executor, GpuWorker};
use crate::query::Query;
use crate::query::answer::{Answer, Hit, Scored};
use crate::query::cost::{Costs, Features, Modelled, Route, Together};
use crate::query::plan::Plan;
use crate::query::planner::{PlanError, Planner};
use crate::schedule::{Aim, CpuLoad, Decision, Policy, View, is_surely_short};
use lanner_index::format::IndexError;
use lanner_index::open::Index;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The default of [`Engine::queue`](super::Engine::queue).
const QUEUE: usize = 65_536;

/// What all threads share that answer queries over an index. Indexes that share an engine have one each. On cache lines of
/// its own: every submitted query counts a reference to it, and every query reads it.
#[repr(align(128))]
pub struct Shared {
    pub index: Arc<Index>,
    pub cpu: Cpu,
    pub gpu: Option<GpuWorker>,
    pub threads: usize,
    pub policy: Policy,
    pub costs: Arc<Costs>,
    pub admission: Admission,
    pub integrator: Integrator,
    /// Plans that the CPU is answering, over all indexes of the engine.
    pub running: Arc<AtomicUsize>,
    /// Submitted queries that no thread has taken yet.
    pub queued: Arc<AtomicUsize>,
    /// Plans that the CPU has answered, and the predicted time of those that it answered while the GPU was not open.
    pub answered_by_cpu: AtomicU64,
    pub cold_nanoseconds: AtomicU64,
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    /// For an engine that is asked on the calling thread only.
    pub fn new(index: Arc<Index>) -> Shared {
        Shared {
            cpu: Cpu::new(Arc::clone(&index), 1),
            index,
            gpu: None,
            threads: 1,
            policy: Policy::default(),
            costs: Arc::new(Costs::default()),
            admission: Admission::new(QUEUE),
            integrator: Integrator::default(),
            running: Arc::default(),
            queued: Arc::default(),
            answered_by_cpu: AtomicU64::new(0),
            cold_nanoseconds: AtomicU64::new(0),
        }
    }

    /// The same workers, queue and cache for another index, with its costs.
    pub fn share(&self, index: Arc<Index>, costs: Costs) -> Shared {
        let costs = Arc::new(costs);
        Shared {
            cpu: Cpu::new(Arc::clone(&index), self.threads),
            gpu: self.gpu.as_ref().map(|gpu| gpu.share(Arc::clone(&index), Arc::clone(&costs))),
            threads: self.threads,
            policy: self.policy,
            admission: self.admission.clone(),
            integrator: self.integrator.share(),
            running: Arc::clone(&self.running),
            queued: Arc::clone(&self.queued),
            costs,
            ..Shared::new(index)
        }
    }

    /// Threads of the engine's own that answer queries: not the one that asks, and not that of a device.
    pub fn helpers(&self) -> usize {
        match self.threads {
            1 => 0,
            threads => threads.saturating_sub(1 + usize::from(self.may_use_gpu())).max(1),
        }
    }

    /// Whether the threads are one less because of that of a device.
    pub fn leaves_core_to_device(&self) -> bool {
        self.may_use_gpu() && self.threads > 2
    }

    fn may_use_gpu(&self) -> bool {
        self.gpu.is_some() && self.policy != Policy::Cpu
    }

    /// Plans a query that arrived at a moment.
    pub fn plan(&self, query: &Query, arrived: Instant) -> Result<Plan, PlanError> {
        let plan = Planner::new(&self.index).plan(query)?;
        // A moment that the clock cannot count to never comes.
        Ok(Plan { deadline: query.deadline.and_then(|deadline| arrived.checked_add(deadline)), ..plan })
    }

    /// An answer that misses documents because the deadline passed is an error, unless the query allows it.
    pub fn in_time(&self, query: &Query, answer: Answer) -> Result<Answer, SearchError> {
        match query.deadline {
            Some(deadline) if answer.coverage < 1.0 && !query.allow_partial => Err(SearchError::Deadline { deadline }),
            _ => Ok(answer),
        }
    }

    /// Answers a plan on the GPU if the policy says so; `None` if it is for the CPU, or the GPU did not answer it.
    pub fn answer_on_gpu(&self, plan: &Plan) -> Option<Answer> {
        let (gpu, predicted) = self.choose_gpu(plan, Aim::Latency)?;
        let offers = std::iter::once(predicted.into_offer(plan.clone()));
        let submissions = gpu.drive(std::iter::once(self.prepare(gpu, offers)));
        let answer = self.finish(gpu, submissions[0].wait()).pop().flatten();
        answer.map(|answer| answer.into_hits(plan.score))
    }

    /// The GPU and what the plan costs there, if the policy decides for it; `None` if the plan is for the CPU.
    pub fn choose_gpu(&self, plan: &Plan, aim: Aim) -> Option<(&GpuWorker, Predicted)> {
        let gpu = self.gpu.as_ref().filter(|_| self.policy != Policy::Cpu)?;
        let cpu = self.cpu_load();
        // First of all, without a look at the GPU, whose state other cores change: that would take as long as the plan.
        if self.policy.keeps_short(plan, &cpu, aim) {
            return None;
        }
        if !gpu.supports(plan) {
            gpu.counters().unsupported.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let load = gpu.load(plan);
        let features = Features::of(plan);
        let missing = gpu.served().missing_share(plan);
        let view = View { costs: &self.costs, cpu, gpu: load, missing, aim };
        match self.policy.decide(&features, &view) {
            Decision::Cpu => {
                if !load.is_open {
                    self.count_cold(gpu, self.costs.predict(&features, Route::Cpu));
                }
                None
            }
            Decision::Gpu => {
                let (modelled, route) = self.costs.modelled_on_gpu(&features, missing, Together::InBatch);
                Some((gpu, Predicted { cost: self.costs.corrected(modelled, route), modelled, route }))
            }
        }
    }

    fn cpu_load(&self) -> CpuLoad {
        CpuLoad {
            cores: cores(),
            threads: self.threads,
            running: self.running.load(Ordering::Relaxed),
            queued: self.queued.load(Ordering::Relaxed),
        }
    }

    /// Opens the GPU once the CPU has worked for as long as opening takes: then at most twice the time is spent that
    /// the better of both choices would have taken.
    pub fn count_cold(&self, gpu: &GpuWorker, cost: Duration) {
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
    pub fn answer_on_cpu<H>(
        &self,
        plan: &Plan,
        answer: impl FnOnce(&Cpu) -> Result<Answer<H>, IndexError>,
    ) -> Result<Answer<H>, IndexError> {
        // Of an AND+OR that stopped after its AND only a part of the prediction ran.
        let is_predicted = plan.stages.len() == 1 && plan.deadline.is_none() && !is_surely_short(plan);
        if self.gpu.is_none() || !is_predicted {
            return self.count_on_cpu(answer);
        }
        let load = self.cpu_load();
        let (answered, time) = self.count_on_cpu(|cpu| {
            let start = Instant::now();
            (answer(cpu), start.elapsed())
        });
        // Threads that share cores take longer than the model says.
        if load.running < load.cores {
            let modelled = self.costs.modelled(&Features::of(plan), Route::Cpu);
            self.costs.observe_on_cpu(modelled, load.is_busy(), time);
        }
        answered
    }

    /// Answers a plan with the CPU, and counts it; not without a GPU, because there is nothing to compare it with.
    pub fn count_on_cpu<R>(&self, answer: impl FnOnce(&Cpu) -> R) -> R {
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
        self.running.fetch_add(1, Ordering::Relaxed);
        let running = Running(&self.running);
        let answered = answer(&self.cpu);
        drop(running);
        self.answered_by_cpu.fetch_add(1, Ordering::Relaxed);
        answered
    }

    /// Makes the rows of plans for the GPU, on the calling thread.
    pub fn prepare(&self, gpu: &GpuWorker, offers: impl Iterator<Item = Offer>) -> Arc<Submission> {
        Submission::new(gpu.served(), offers, |plan| gpu.supports(plan), gpu.backlog())
    }

    /// What became of the plans of a submission: `answers[i]` belongs to plan `i`; those that the GPU did not answer
    /// are missing.
    pub fn finish(&self, gpu: &GpuWorker, outcomes: Vec<Outcome>) -> Vec<Option<Answer<Scored>>> {
        let (mut answered, mut unsupported, mut fallen_back) = (0, 0, 0);
        let mut answer = |outcome: Outcome| {
            match &outcome {
                Ok(_) => answered += 1,
                Err(Unanswered::Unsupported) => unsupported += 1,
                Err(Unanswered::Cancelled) => {}
                Err(Unanswered::TooLarge | Unanswered::Unreadable | Unanswered::Failed) => fallen_back += 1,
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

    /// Answers on the CPU the plans whose answers are missing.
    pub fn answer_missing(
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

    /// The answer of the GPU, or else the CPU's.
    pub fn hits_or_answer(&self, plan: &Plan, answer: Option<Answer<Scored>>) -> Result<Answer, SearchError> {
        match answer {
            Some(answer) => Ok(answer.into_hits(plan.score)),
            None => Ok(self.answer_on_cpu(plan, |cpu| cpu.answer_one(plan, Hit::maker(plan.score)))?),
        }
    }
}

/// What a plan is predicted to cost on the GPU.
pub struct Predicted {
    cost: Duration,
    modelled: Modelled,
    route: Route,
}

impl Predicted {
    pub fn into_offer(self, plan: Plan) -> Offer {
        let Predicted { cost, modelled, route } = self;
        Offer { plan, cost, modelled, route, is_cancelled: None }
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
    use crate::engine::Engine;
    use crate::executors::{GpuOptions, Open};
    use lanner_gpu::error::GpuError;
    use lanner_index::build::{BuildOptions, Quiet, build};
    use lanner_index::corpus::{Corpus, CorpusOptions};

    /// An engine over one document, with a device that does not open.
    fn engine_with(open: Open) -> (tempfile::TempDir, Engine) {
        let folder = tempfile::tempdir().unwrap();
        let documents = [("a".to_owned(), String::new(), "falcon".to_owned())];
        let corpus = Corpus::from_documents(documents, CorpusOptions::default()).unwrap();
        build(folder.path(), corpus, &BuildOptions::default(), &Quiet).unwrap();
        let engine = Engine::open(folder.path()).unwrap().gpu(GpuOptions::new(open).pause(Duration::ZERO));
        (folder, engine)
    }

    fn failure() -> GpuError {
        GpuError::Failed { at: "opening a device", reason: "on command".to_owned() }
    }

    #[test]
    fn a_query_that_is_answered_in_parts_counts_as_one_of_the_cpu_and_teaches_no_costs() {
        let (_folder, engine) = engine_with(Box::new(|| Err(failure())));
        let cpu = Cpu::new(Arc::clone(engine.index()), 2).split_from(Duration::ZERO);
        let engine = engine.threads(2).configure(|shared| Shared { cpu, ..shared });
        let query = Query::new("falcon");
        let features = Features::of(&engine.plan(&query).unwrap());
        let before = engine.shared.costs.predict(&features, Route::Cpu);
        (0..20).for_each(|_| assert_eq!(engine.search(&query).unwrap().hits.len(), 1));
        assert!(engine.shared.cpu.is_split(&engine.plan(&query).unwrap()));
        assert_eq!((engine.answered_by_cpu(), engine.shared.running.load(Ordering::Relaxed)), (20, 0));
        assert_eq!(engine.shared.costs.predict(&features, Route::Cpu), before);
    }

    /// The device does not open: it is tried again each time that the CPU has worked for as long as opening takes.
    #[test]
    fn the_gpu_is_opened_once_the_cpu_has_worked_long_enough_and_again_after_a_failure() {
        let tries = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&tries);
        let (_folder, engine) = engine_with(Box::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
            Err(failure())
        }));
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
