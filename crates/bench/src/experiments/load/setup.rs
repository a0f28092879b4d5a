//! What all parts share: the index, the queries with their answers, calibrated costs, and engines.

use super::LoadRun;
use crate::error::{BenchError, Result};
use crate::experiments::Findings;
use crate::experiments::gpu::workload::{self, Wanted, Workload};
use crate::experiments::placement::{gpu_options, own_index};
use crate::load::{ClosedLoop, Pass, QuerySet, Questions, RunLength, StreamLoad};
use crate::machine::cores;
use crate::query_log;
use crate::result::{Label, Measurement};
use crate::suite::Lists;
use lanner::internals::calibrate::{Calibration, Folder};
use lanner::internals::query::cost::{Costs, Features, Route};
use lanner::{Engine, Index, Policy, ScoreModel};
use lanner_gpu::device::Device;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long an engine runs before it is measured, so that its buffers have grown.
const WARM_UP_S: f64 = 0.2;
/// Queries for calibration, of the first log's half that is for tuning.
const CALIBRATED: usize = 4096;

/// What is measured.
pub struct Setup<'a> {
    pub run: LoadRun<'a>,
    pub device: Arc<dyn Device>,
    pub folder: PathBuf,
    pub index: Arc<Index>,
    pub costs: Costs,
    /// Queries of the first log's half for tuning in each mode, which fill caches of lists.
    tuning: Vec<QuerySet>,
    /// For each log and mode; those of the first log first.
    pub sets: Vec<LogSet>,
}

/// The queries of a log in one mode.
pub struct LogSet {
    pub log: String,
    pub set: QuerySet,
    /// `is_short[number]`: whether the query is in the tenth that is predicted to take the CPU the least time.
    pub is_short: Vec<bool>,
}

/// How an engine is made.
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    pub policy: Policy,
    pub threads: usize,
    pub lists: Lists,
    /// The most queries that it accepts; `None` for its default.
    pub queue: Option<usize>,
}

impl EngineOptions {
    /// With resident lists and the default queue.
    pub fn new(policy: Policy, threads: usize) -> EngineOptions {
        EngineOptions { policy, threads, lists: Lists::Resident, queue: None }
    }
}

impl<'a> Setup<'a> {
    /// Opens the device and the index, chooses and answers the queries, and calibrates costs.
    pub fn prepare(run: LoadRun<'a>) -> Result<(Setup<'a>, Findings)> {
        let LoadRun { context, part } = run;
        let device = context.options.device.open()?;
        (context.say)(&format!("opened {}; preparing the index", device.properties().name));
        let folder = workload::index_folder(&context)?;
        let index = Arc::new(Index::open(&folder)?);
        (context.say)("choosing queries, and answering them on the CPU");
        let (mut sets, mut tuning, mut findings) = (Vec::new(), Vec::new(), Findings::default());
        let has_caches =
            part.lists.iter().any(|&lists| matches!(lists, Lists::Cached(_)) && context.keeps("lists", lists));
        for log in part.logs.iter().filter(|log| context.keeps("log", &log.name)) {
            let wanted = Wanted { log, postings: part.postings, of_documents: part.of_documents };
            let work = Workload::choose(&context, wanted, Arc::clone(&index))?;
            let (measurements, table) = work.describe(&log.name);
            findings.measurements.extend(measurements);
            findings.tables.push(table);
            for mode in context.kept("mode", &part.modes) {
                let questions = Questions { mode, k: part.k, score: ScoreModel::Bm25 };
                let set = QuerySet::new(&index, &work.texts, questions, cores())?;
                sets.push((log.name.clone(), set));
                if has_caches && sets[0].0 == log.name {
                    let texts = work.tuning(&context, log, part.warm_up)?;
                    tuning.push(QuerySet::new(&index, &texts, questions, cores())?);
                }
            }
        }
        if sets.is_empty() {
            return Err(BenchError::Usage("--only log= and mode= select nothing".to_owned()));
        }
        let mut setup = Setup { run, device, folder, index, costs: Costs::default(), tuning, sets: Vec::new() };
        setup.costs = setup.calibrate(&query_log::tuning_sample(&context.read_log(&part.logs[0])?, CALIBRATED))?;
        setup.sets = sets.into_iter().map(|(log, set)| LogSet::new(log, set, &setup.costs)).collect();
        Ok((setup, findings))
    }

    /// The folder of calibrated costs: in that of the index, with which it is removed when the program changes.
    pub fn costs_folder(&self) -> PathBuf {
        self.folder.join("costs")
    }

    /// Reads the costs of this device and index, or measures them with queries of a log.
    fn calibrate(&self, queries: &[String]) -> Result<Costs> {
        let (say, name) = (self.run.context.say, &self.device.properties().name);
        let folder = Folder::new(self.costs_folder());
        if let Some(costs) = folder.load(&self.index, name)? {
            say("costs are calibrated");
            return Ok(costs);
        }
        say("calibrating costs");
        let engine = || Engine::new(Arc::clone(&self.index));
        let [resident, in_host_memory] = [Lists::Resident, Lists::Host].map(|lists| self.on_gpu(engine(), lists));
        let (resident, in_host_memory) = (resident?, in_host_memory?);
        let (cpu, budget) = (engine(), Duration::from_secs_f64(self.run.part.calibration_s));
        let calibration = Calibration::new(&cpu, budget).simulated(self.device.properties().is_simulated);
        let (resident, in_host_memory) = (Some(&resident), Some(&in_host_memory));
        let calibration = Calibration { resident, in_host_memory, queries, ..calibration };
        let costs = calibration.run()?.costs;
        folder.save(&self.index, name, &costs)?;
        Ok(costs)
    }

    /// Gives an engine a GPU, and opens it.
    fn on_gpu(&self, engine: Engine, lists: Lists) -> Result<Engine> {
        let device = Arc::clone(&self.device);
        let engine = engine.gpu(gpu_options(Box::new(move || Ok(Arc::clone(&device))), &self.index, lists));
        engine.connect()?;
        Ok(engine)
    }

    /// Makes an engine whose device is open. The policy `cpu` has no device.
    pub fn engine(&self, options: EngineOptions) -> Result<Engine> {
        let lists = if options.policy == Policy::Cpu { Lists::Resident } else { options.lists };
        let engine = Engine::new(own_index(&self.index, &self.folder, lists)?).costs(self.costs.clone());
        let engine = engine.threads(options.threads).policy(options.policy);
        let engine = match options.queue {
            Some(queue) => engine.queue(queue),
            None => engine,
        };
        if options.policy == Policy::Cpu {
            return Ok(engine);
        }
        self.on_gpu(engine, options.lists)
    }

    /// Threads of an engine beside the senders. A sender is the thread that asks, which counts among the engine's.
    pub fn threads_beside_senders(&self) -> usize {
        (cores() + 1).saturating_sub(self.run.part.senders).max(2)
    }

    /// The queries of the first log.
    pub fn first_log(&self) -> impl Iterator<Item = &LogSet> {
        self.sets.iter().filter(|set| set.log == self.sets[0].log)
    }

    /// How long closed loops last.
    pub fn length(&self) -> RunLength {
        let seconds = self.run.part.seconds;
        RunLength { seconds, longest_s: seconds, queries: 0 }
    }

    /// How long streams last.
    pub fn stream_length(&self) -> RunLength {
        let seconds = self.run.part.seconds.min(self.run.part.longest_s);
        RunLength { seconds, longest_s: seconds, queries: 0 }
    }

    /// Where lists lie, as far as `--only` keeps it, unless they are uploaded.
    pub fn lists_on_device(&self) -> Vec<Lists> {
        let kept = self.run.context.kept("lists", &self.run.part.lists);
        kept.into_iter().filter(|&lists| lists != Lists::Uploaded).collect()
    }

    /// Fills the cache of an engine's lists, if it has one.
    fn fill_cache(&self, engine: &Engine, set: &QuerySet) -> Result<()> {
        let has_cache = engine.residency().is_some_and(|report| report.cache.memory_bytes > 0);
        let mut tuning = self.tuning.iter().filter(|tuning| has_cache && tuning.questions == set.questions);
        tuning.try_for_each(|tuning| Pass::over(engine, tuning).map(drop))
    }

    /// Fills the cache of an engine, and lets its buffers grow for queries that are submitted.
    pub fn warm_up(&self, engine: &Engine, set: &QuerySet) -> Result<()> {
        self.fill_cache(engine, set)?;
        let closed = ClosedLoop { engine, set, length: short(self.length()) };
        closed.submitted(1, self.run.part.clients).map(drop)
    }

    /// The same for streams.
    pub fn warm_up_stream(&self, engine: &Engine, set: &QuerySet) -> Result<()> {
        self.fill_cache(engine, set)?;
        StreamLoad { engine, set, length: short(self.stream_length()) }.texts_to_ids().map(drop)
    }
}

/// A length that is long enough for buffers to grow.
fn short(length: RunLength) -> RunLength {
    let seconds = length.seconds.min(WARM_UP_S);
    RunLength { seconds, longest_s: seconds, ..length }
}

impl LogSet {
    fn new(log: String, set: QuerySet, costs: &Costs) -> LogSet {
        let times: Vec<Duration> =
            set.plans.iter().map(|plan| costs.predict(&Features::of(plan), Route::Cpu)).collect();
        let mut sorted = times.clone();
        sorted.sort_unstable();
        let limit = sorted[sorted.len().div_ceil(10) - 1];
        LogSet { log, set, is_short: times.into_iter().map(|time| time <= limit).collect() }
    }

    /// A measurement with the labels of the log and the mode, and further ones.
    pub fn measurement(&self, kind: &str, further: &[Label<'_>]) -> Measurement {
        let questions = &self.set.questions;
        let labels: [Label<'_>; 3] = [("log", &self.log), ("mode", &questions.mode), ("k", &questions.k)];
        Measurement::new(kind, &[&labels, further].concat())
    }
}
