//! An engine: one way to answer queries, and the ways in which its answers are compared with the oracle's.

use crate::collection::{Collection, Lists};
use crate::device;
use lanner::internals::algorithms::lanes::SimdLevel;
use lanner::internals::algorithms::topk::TopK;
use lanner::internals::algorithms::{EarlierHits, Task, Workspace};
use lanner::internals::executors::{Cpu, Executor, Keep};
use lanner::internals::query::answer::Scored;
use lanner::internals::query::planner::Planner;
use lanner::{Algorithm, Answer, Engine as LannerEngine, GpuOptions, Index, Mode, Plan, Query, ScoreModel};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The memory of a cache, in bytes, and what is read of lists that are small for it.
const CACHE_BYTES: usize = 8 << 10;
const SMALL_BYTES: u64 = 32 << 10;

/// One way to answer queries.
pub struct Engine {
    pub algorithm: Algorithm,
    pub lists: Lists,
    pub runs: Runs,
    /// How many answers were compared with the oracle's.
    compared: AtomicUsize,
    /// Bytes of lists that a device read in host memory, and pieces of lists that became resident.
    from_host: AtomicU64,
    admitted: AtomicU64,
    /// Whether it was asked for a list that has pieces: short ones have none.
    has_pieces: AtomicBool,
}

/// Where an engine runs.
#[derive(Clone, Copy, Debug)]
pub enum Runs {
    /// On the CPU, with this number of threads.
    Threads(usize),
    /// On the simulator, with resident lists; with `LANNER_REQUIRE_GPU=1` on the GPU instead.
    Device,
    /// On the same device, asked before its lists are loaded.
    Loading,
    /// On the same device, with the lists uploaded in each batch.
    Uploading,
    /// On the same device, which reads the lists in host memory.
    Host,
    /// On the same device, with memory for some pieces of lists: kernels read the others in host memory, and plans that
    /// run step by step upload their lists.
    Cached,
}

impl Runs {
    pub fn is_on_device(self) -> bool {
        !matches!(self, Runs::Threads(_))
    }
}

/// The executor of an engine. It checks that a device leaves no plan to the CPU that it should answer itself.
pub struct Answering<'a> {
    executor: Answerer,
    engine: &'a Engine,
}

enum Answerer {
    Cpu(Cpu),
    Device(Box<LannerEngine>),
}

impl Answering<'_> {
    pub fn run(&self, plans: &[Plan]) -> Vec<Answer<Scored>> {
        let device = match &self.executor {
            Answerer::Cpu(cpu) => return cpu.run(plans).unwrap(),
            Answerer::Device(device) => device,
        };
        if matches!(self.engine.runs, Runs::Cached) {
            // Then pieces of what they read are resident, and the others are not.
            device.run(plans).unwrap();
            device.connect().unwrap();
        }
        let counters = device.counters().unwrap();
        let count = || [&counters.answered, &counters.unsupported].map(|counter| counter.load(Ordering::Relaxed));
        let [answered, unsupported] = count();
        let answers = device.run(plans).unwrap();
        assert_eq!(count(), [answered + plans.len() as u64, unsupported]);
        assert_eq!(counters.failures.load(Ordering::Relaxed), 0);
        let from_host = answers.iter().map(|answer| answer.work.bytes_from_host).sum();
        self.engine.from_host.fetch_add(from_host, Ordering::Relaxed);
        let admitted = device.residency().map_or(0, |residency| residency.cache.admitted);
        self.engine.admitted.fetch_add(admitted, Ordering::Relaxed);
        let has_pieces = plans.iter().flat_map(|plan| plan.lists.iter()).any(|list| list.span.is_long);
        self.engine.has_pieces.fetch_or(has_pieces, Ordering::Relaxed);
        answers
    }
}

/// One question to an engine.
#[derive(Clone, Copy, Debug)]
struct Case {
    ask: usize,
    mode: Mode,
    k: usize,
    score: ScoreModel,
}

impl Engine {
    pub fn new(algorithm: Algorithm, lists: Lists, runs: Runs) -> Engine {
        let [from_host, admitted] = [const { AtomicU64::new(0) }; 2];
        let has_pieces = AtomicBool::new(false);
        Engine { algorithm, lists, runs, compared: AtomicUsize::new(0), from_host, admitted, has_pieces }
    }

    /// Algorithm, lists, and where it runs if that is not one thread: `auto_pfor_uploading_device`.
    pub fn name(&self) -> String {
        let lists = match self.lists {
            Lists::Dense => "dense".to_owned(),
            Lists::Sparse(codec) => codec.to_string(),
        };
        let runs = match self.runs {
            Runs::Threads(1) => "",
            Runs::Threads(_) => "_threads",
            Runs::Device => "_device",
            Runs::Loading => "_loading_device",
            Runs::Uploading => "_uploading_device",
            Runs::Host => "_host_device",
            Runs::Cached if self.algorithm.needs_device() => "_uploading_beside_pieces_device",
            Runs::Cached => "_cached_device",
        };
        format!("{}_{lists}{runs}", self.algorithm).replace('-', "_")
    }

    /// How many answers were compared with the oracle's.
    pub fn compared(&self) -> usize {
        self.compared.load(Ordering::Relaxed)
    }

    /// Checks that lists were where it reads them.
    pub fn check_places(&self) {
        let [from_host, admitted] = [&self.from_host, &self.admitted].map(|count| count.load(Ordering::Relaxed));
        match self.runs {
            // Plans that run step by step upload their lists.
            Runs::Host if !self.algorithm.needs_device() => assert!(from_host > 0, "nothing was read in host memory"),
            Runs::Cached if !self.algorithm.needs_device() => {
                // Of few small lists every piece may take more than a quarter of the cache.
                let has_pieces = self.has_pieces.load(Ordering::Relaxed) && from_host >= SMALL_BYTES;
                assert!(from_host > 0 && (admitted > 0 || !has_pieces), "{admitted} pieces");
            }
            _ => assert_eq!((from_host, admitted), (0, 0)),
        }
    }

    /// The modes that the algorithm answers.
    pub fn modes(&self) -> &'static [Mode] {
        match self.algorithm {
            Algorithm::Auto | Algorithm::Exhaustive => &[Mode::And, Mode::Or, Mode::AndOr],
            Algorithm::Conjunction => &[Mode::And],
            Algorithm::Maxscore | Algorithm::BlockMaxMaxscore | Algorithm::Scatter => &[Mode::Or, Mode::AndOr],
            Algorithm::ScoreAtATime => &[Mode::Or],
            Algorithm::TermAtATime | Algorithm::MergePath | Algorithm::SkipSearch | Algorithm::ParallelMergeFind => {
                &[Mode::And, Mode::AndOr]
            }
            Algorithm::Accumulators => &[Mode::Or, Mode::AndOr],
        }
    }

    /// Whether [`Engine::check_shards`] has a question for it: shards have no impacts in common.
    pub fn answers_shards(&self) -> bool {
        self.algorithm != Algorithm::ScoreAtATime
    }

    /// Whether it runs on the simulator, which is slow and gets fewer questions. A real device gets all of them.
    pub fn is_simulated(&self) -> bool {
        self.runs.is_on_device() && !device::is_gpu_required()
    }

    /// Whether it answers step by step on the simulator, in many launches: it gets the fewest questions.
    pub fn is_slow(&self) -> bool {
        self.algorithm.needs_device() && self.is_simulated()
    }

    fn executor(&self, index: &Arc<Index>) -> Answering<'_> {
        // The simulator runs threads in an order that the seed decides: another one for each index.
        let seed = u64::from(index.documents()) * 31;
        let device = || GpuOptions::new(Box::new(move || Ok(device::open(seed))));
        let on = |options| Answerer::Device(Box::new(LannerEngine::new(Arc::clone(index)).gpu(options)));
        let executor = match self.runs {
            Runs::Threads(threads) => Answerer::Cpu(Cpu::new(Arc::clone(index), threads)),
            Runs::Device | Runs::Loading => on(device()),
            // A limit so low that lists of all but the smallest collections go in several batches and slabs.
            Runs::Uploading => on(device().upload_lists().upload_limit(16 << 10).threads(2)),
            Runs::Host => on(device().keep(Keep::Nothing)),
            Runs::Cached => on(device().cached(CACHE_BYTES)),
        };
        if let (Answerer::Device(device), Runs::Device | Runs::Host | Runs::Cached) = (&executor, self.runs) {
            // Otherwise it would upload its lists: the simulator executes a batch before it is asked to load more.
            device.connect().unwrap();
        }
        Answering { executor, engine: self }
    }

    /// Whether the algorithm supports a score model.
    fn supports(&self, model: ScoreModel) -> bool {
        self.algorithm != Algorithm::ScoreAtATime || model == ScoreModel::Impact
    }

    fn cases(&self, collection: &Collection, ks: &[usize]) -> Vec<Case> {
        let mut cases = Vec::new();
        for ask in 0..collection.asks.len() {
            for &score in collection.models.iter().filter(|model| self.supports(**model)) {
                for &mode in self.modes() {
                    cases.extend(ks.iter().map(|&k| Case { ask, mode, k, score }));
                }
            }
        }
        cases
    }

    fn query(&self, collection: &Collection, case: &Case) -> Query {
        let query = collection.asks[case.ask].query();
        query.mode(case.mode).k(case.k).score(case.score).algorithm(self.algorithm)
    }

    /// Asks everything in one batch and compares with the oracle.
    pub fn check(&self, collection: &Collection, ks: &[usize]) {
        let index = collection.index(self.lists);
        let cases = self.cases(collection, ks);
        let plan = |case| Planner::new(&index).plan(&self.query(collection, case)).unwrap();
        let plans: Vec<Plan> = cases.iter().map(plan).collect();
        let answers = self.executor(&index).run(&plans);
        assert_eq!(answers.len(), cases.len());
        for (case, answer) in cases.iter().zip(answers) {
            assert!(answer.exact);
            self.compare(collection, case, &answer.hits, "");
        }
    }

    /// Asks single queries, with the documents divided among the threads, or on the device.
    pub fn check_split(&self, collection: &Collection, ks: &[usize]) {
        let index = collection.index(self.lists);
        let executor = match self.runs {
            Runs::Threads(threads) => {
                let cpu = Cpu::new(Arc::clone(&index), threads.max(2)).split_from(Duration::ZERO);
                Answering { executor: Answerer::Cpu(cpu), engine: self }
            }
            Runs::Device | Runs::Loading | Runs::Uploading | Runs::Host | Runs::Cached => self.executor(&index),
        };
        for case in self.cases(collection, ks) {
            let plan = Planner::new(&index).plan(&self.query(collection, &case)).unwrap();
            let answer = executor.run(&[plan]).remove(0);
            self.compare(collection, &case, &answer.hits, "as a single query");
        }
    }

    /// Asks with each width of SIMD lanes, and compares with the oracle.
    pub fn check_lanes(&self, collection: &Collection, ks: &[usize]) {
        let index = collection.index(self.lists);
        for level in [SimdLevel::Portable, SimdLevel::Avx2, SimdLevel::Avx512] {
            let mut workspace = Workspace::default();
            workspace.simd_level = level;
            for case in self.cases(collection, ks) {
                let plan = Planner::new(&index).plan(&self.query(collection, &case)).unwrap();
                let mut hits = Vec::new();
                for stage in plan.stages.iter() {
                    let earlier = EarlierHits::new(std::mem::take(&mut hits));
                    Task { plan: &plan, stage, index: &index, earlier: &earlier }.run(&mut workspace).unwrap();
                    hits = workspace.top.take(|hit| hit);
                    if hits.len() >= case.k {
                        break;
                    }
                }
                self.compare(collection, &case, &hits, &format!("by lanes {level:?}"));
            }
        }
    }

    /// Divides the documents into parts at the given documents and merges the answers.
    pub fn check_parts(&self, collection: &Collection, ks: &[usize], cuts: &[u32]) {
        let index = collection.index(self.lists);
        let executor = self.executor(&index);
        let mut ends = cuts.to_vec();
        ends.push(index.documents());
        ends.sort_unstable();
        for case in self.cases(collection, ks) {
            let plan = Planner::new(&index).plan(&self.query(collection, &case)).unwrap();
            let mut hits = Vec::new();
            for staged in plan.staged() {
                let starts = [0].iter().chain(&ends);
                let parts: Vec<Plan> = starts.zip(&ends).map(|(&start, &end)| staged.over(start..end)).collect();
                let answers = executor.run(&parts);
                hits = TopK::merge(case.k, answers.iter().map(|answer| &answer.hits));
                if hits.len() >= case.k {
                    break;
                }
            }
            self.compare(collection, &case, &hits, "in parts");
        }
    }

    /// Divides the collection into two indexes that know the statistics of the whole, and merges their answers.
    pub fn check_shards(&self, collection: &Collection, ks: &[usize], cut: usize) {
        let statistics = collection.index(self.lists).statistics();
        let frequencies = collection.oracle.document_frequencies();
        let ranges = [0..cut, cut..collection.contents.len()];
        let shards = ranges.map(|range| {
            let mut index = collection.build(self.lists, range.clone());
            index.set_statistics(statistics);
            let index = Arc::new(index);
            (range.start as u32, self.executor(&index), index)
        });
        let run = |executor: &Answering<'_>, index: &Arc<Index>, case: &Case, stage| -> Answer<Scored> {
            let planner = Planner::new(index).with_document_frequencies(&frequencies);
            let plan = planner.plan(&self.query(collection, case)).unwrap();
            let staged: Vec<Plan> = plan.staged().filter(|plan| plan.stages[0].operation == stage).collect();
            executor.run(&staged).pop().unwrap_or_default()
        };
        // Impacts depend on the statistics of a shard, and filters on its document numbers.
        let is_shared = |case: &Case| case.score != ScoreModel::Impact && collection.asks[case.ask].filter.is_none();
        for case in self.cases(collection, ks).into_iter().filter(is_shared) {
            let mut hits = Vec::new();
            for &stage in operations(case.mode) {
                let answers = shards.iter().map(|(base, executor, index)| {
                    let answer = run(executor, index, &case, stage);
                    shifted(answer.hits, *base)
                });
                hits = TopK::merge(case.k, answers);
                if hits.len() >= case.k {
                    break;
                }
            }
            self.compare(collection, &case, &hits, "in shards");
        }
    }

    /// Asks an index in bisected order. Scores must be the same, and documents too except for ties at rank k.
    pub fn check_order(&self, collection: &Collection, ks: &[usize]) {
        let index = collection.bisected(self.lists);
        let executor = self.executor(&index);
        // Filters hold document numbers, which depend on the order.
        let is_shared = |case: &Case| collection.asks[case.ask].filter.is_none();
        let cases: Vec<Case> = self.cases(collection, ks).into_iter().filter(is_shared).collect();
        let plan = |case| Planner::new(&index).plan(&self.query(collection, case)).unwrap();
        let answers = executor.run(&cases.iter().map(plan).collect::<Vec<Plan>>());
        for (case, answer) in cases.iter().zip(answers) {
            let mut candidates = collection.candidates(case.ask, case.mode, case.k, case.score);
            let last = candidates.get(case.k.wrapping_sub(1)).map_or(0, |hit| hit.units);
            let number = |document| index.id(document).unwrap().parse().unwrap();
            let mut hits: Vec<Scored> = answer
                .hits
                .iter()
                .map(|hit| Scored { document: lanner::DocId(number(hit.document)), ..*hit })
                .collect();
            hits.sort_unstable_by_key(|hit| (std::cmp::Reverse(hit.units), hit.document));
            hits.dedup();
            assert_eq!(hits.len(), case.k.min(candidates.len()), "{} {case:?}", self.name());
            let is_free = |hit: &Scored| hit.units == last && candidates.contains(hit);
            hits.retain(|hit| !is_free(hit));
            candidates.retain(|hit| hit.units > last);
            candidates.truncate(case.k);
            self.assert_hits(collection, case, (&hits, &candidates), "in bisected order");
        }
    }

    fn compare(&self, collection: &Collection, case: &Case, hits: &[Scored], how: &str) {
        let expected = collection.expected(case.ask, case.mode, case.k, case.score);
        self.assert_hits(collection, case, (hits, &expected), how);
    }

    fn assert_hits(&self, collection: &Collection, case: &Case, (hits, expected): (&[Scored], &[Scored]), how: &str) {
        assert_eq!(hits, expected, "{} {how} {case:?} {:?}", self.name(), collection.asks[case.ask].query().text);
        self.compared.fetch_add(1, Ordering::Relaxed);
    }
}

fn operations(mode: Mode) -> &'static [lanner::internals::query::plan::Operation] {
    use lanner::internals::query::plan::Operation::{And, Or};
    match mode {
        Mode::And => &[And],
        Mode::Or => &[Or],
        Mode::AndOr => &[And, Or],
    }
}

fn shifted(hits: Vec<Scored>, base: u32) -> Vec<Scored> {
    let shift = |hit: Scored| Scored { document: lanner::DocId(hit.document.0 + base), ..hit };
    hits.into_iter().map(shift).collect()
}
