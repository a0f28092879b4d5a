//! The engines that must agree, and the macro that runs one test body for each of them.

use crate::collection::{Collection, Lists};
use crate::device;
use lanner::internals::algorithms::lanes::SimdLevel;
use lanner::internals::algorithms::{EarlierHits, Task, Workspace};
use lanner::internals::executors::{Cpu, Executor, GpuExecutor};
use lanner::internals::query::planner::Planner;
use lanner::{Algorithm, Answer, Hit, Index, Mode, Plan, Query, ScoreModel, TopK};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// One way to answer queries.
#[derive(Clone, Copy, Debug)]
pub struct Engine {
    pub algorithm: Algorithm,
    pub lists: Lists,
    pub runs: Runs,
}

/// Where an engine runs.
#[derive(Clone, Copy, Debug)]
pub enum Runs {
    /// On so many threads.
    Threads(usize),
    /// On the simulator; with `LANNER_REQUIRE_GPU=1` on the driver instead.
    Device,
    /// Likewise, with lists sent in each batch.
    Sending,
}

/// Answers as an engine does, and sees that a device leaves no answer to the processor that it should give itself.
pub struct Answering {
    executor: Answerer,
}

enum Answerer {
    Cpu(Cpu),
    Device(Box<GpuExecutor>),
}

impl Answering {
    pub fn run(&self, plans: &[Plan]) -> Vec<Answer> {
        let device = match &self.executor {
            Answerer::Cpu(cpu) => return cpu.run(plans).unwrap(),
            Answerer::Device(device) => device,
        };
        let counters = device.counters();
        let count = || [&counters.answered, &counters.unsupported].map(|counter| counter.load(Ordering::Relaxed));
        let [answered, unsupported] = count();
        let answers = device.run(plans).unwrap();
        let is_known =
            |plan: &&Plan| plan.filter.is_none() && matches!(plan.score, ScoreModel::Bm25 | ScoreModel::Impact);
        let known = plans.iter().filter(is_known).count() as u64;
        let [answered_now, unsupported_now] = count();
        assert_eq!([answered_now - answered, unsupported_now - unsupported], [known, plans.len() as u64 - known]);
        assert_eq!(counters.failures.load(Ordering::Relaxed), 0);
        answers
    }
}

/// Makes a module of that name with a test of `body` for each algorithm, codec and number of threads. An algorithm, a
/// codec or an executor that is added to the engine is added here, and all bodies test it. What takes a simulator minutes
/// is ignored there, in the open: a real device is asked with `--include-ignored`.
macro_rules! agreement {
    ($name:ident, $body:expr) => {
        mod $name {
            use super::*;
            agreement!(@threads $body);
            agreement!(@batches [] $body);
            agreement!(@steps [] $body);
        }
    };
    ($name:ident, steps on a real device, $body:expr) => {
        mod $name {
            use super::*;
            agreement!(@threads $body);
            agreement!(@batches [] $body);
            agreement!(@steps [#[ignore = "takes minutes on a simulator"]] $body);
        }
    };
    ($name:ident, devices that are real, $body:expr) => {
        mod $name {
            use super::*;
            agreement!(@threads $body);
            agreement!(@batches [#[ignore = "takes minutes on a simulator"]] $body);
            agreement!(@steps [#[ignore = "takes minutes on a simulator"]] $body);
        }
    };
    (@threads $body:expr) => {
        agreement!(@engine exhaustive_bitpack, Exhaustive, Bitpack, 1, $body);
        agreement!(@engine exhaustive_dense_threads, Exhaustive, Dense, 2, $body);
        agreement!(@engine conjunction_bitpack, Conjunction, Bitpack, 1, $body);
        agreement!(@engine conjunction_rice, Conjunction, Rice, 1, $body);
        agreement!(@engine conjunction_dense, Conjunction, Dense, 1, $body);
        agreement!(@engine conjunction_dense_threads, Conjunction, Dense, 2, $body);
        agreement!(@engine maxscore_pfor, Maxscore, Pfor, 1, $body);
        agreement!(@engine maxscore_dense, Maxscore, Dense, 1, $body);
        agreement!(@engine block_max_maxscore_elias_fano, BlockMaxMaxscore, EliasFano, 1, $body);
        agreement!(@engine block_max_maxscore_dense_threads, BlockMaxMaxscore, Dense, 2, $body);
        agreement!(@engine scatter_raw, Scatter, Raw, 1, $body);
        agreement!(@engine scatter_bitpack_threads, Scatter, Bitpack, 2, $body);
        agreement!(@engine scatter_dense, Scatter, Dense, 1, $body);
        agreement!(@engine auto_pfor_block, Auto, PforBlock, 1, $body);
        agreement!(@engine auto_dense_threads, Auto, Dense, 3, $body);
        agreement!(@engine maxscore_qmx, Maxscore, Qmx, 1, $body);
        agreement!(@engine score_at_a_time_dense, ScoreAtATime, Dense, 1, $body);
        agreement!(@engine score_at_a_time_qmx_threads, ScoreAtATime, Qmx, 2, $body);
    };
    (@batches $attributes:tt $body:expr) => {
        agreement!(@device $attributes auto_dense_device, Auto, Dense, Device, $body);
        agreement!(@device $attributes auto_bitpack_device, Auto, Bitpack, Device, $body);
        agreement!(@device $attributes auto_elias_fano_device, Auto, EliasFano, Device, $body);
        agreement!(@device $attributes auto_pfor_sending_device, Auto, Pfor, Sending, $body);
        agreement!(@device $attributes auto_rice_device, Auto, Rice, Device, $body);
    };
    (@steps $attributes:tt $body:expr) => {
        agreement!(@device $attributes term_at_a_time_dense_device, TermAtATime, Dense, Device, $body);
        agreement!(@device $attributes term_at_a_time_bitpack_sending_device, TermAtATime, Bitpack, Sending, $body);
        agreement!(@device $attributes merge_path_elias_fano_device, MergePath, EliasFano, Device, $body);
        agreement!(@device $attributes binary_intersection_pfor_sending_device, BinaryIntersection, Pfor, Sending, $body);
        agreement!(@device $attributes parallel_merge_find_rice_device, ParallelMergeFind, Rice, Device, $body);
        agreement!(@device $attributes accumulators_bitpack_device, Accumulators, Bitpack, Device, $body);
        agreement!(@device $attributes accumulators_dense_sending_device, Accumulators, Dense, Sending, $body);
    };
    (@engine $test:ident, $algorithm:ident, $lists:ident, $threads:expr, $body:expr) => {
        #[test]
        fn $test() {
            let body: fn($crate::engine::Engine) = $body;
            let (algorithm, lists) = (lanner::Algorithm::$algorithm, agreement!(@lists $lists));
            body($crate::engine::Engine { algorithm, lists, runs: $crate::engine::Runs::Threads($threads) });
        }
    };
    (@device [$(#[$attribute:meta])*] $test:ident, $algorithm:ident, $lists:ident, $runs:ident, $body:expr) => {
        #[test]
        $(#[$attribute])*
        fn $test() {
            let body: fn($crate::engine::Engine) = $body;
            let (algorithm, lists) = (lanner::Algorithm::$algorithm, agreement!(@lists $lists));
            body($crate::engine::Engine { algorithm, lists, runs: $crate::engine::Runs::$runs });
        }
    };
    (@lists Dense) => {
        $crate::collection::Lists::Dense
    };
    (@lists $codec:ident) => {
        $crate::collection::Lists::Sparse(lanner_index::codec::CodecName::$codec)
    };
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
    /// The modes that the algorithm answers.
    pub fn modes(&self) -> &'static [Mode] {
        match self.algorithm {
            Algorithm::Auto | Algorithm::Exhaustive => &[Mode::And, Mode::Or, Mode::AndOr],
            Algorithm::Conjunction => &[Mode::And],
            Algorithm::Maxscore | Algorithm::BlockMaxMaxscore | Algorithm::Scatter => &[Mode::Or, Mode::AndOr],
            Algorithm::ScoreAtATime => &[Mode::Or],
            Algorithm::TermAtATime
            | Algorithm::MergePath
            | Algorithm::BinaryIntersection
            | Algorithm::ParallelMergeFind => &[Mode::And, Mode::AndOr],
            Algorithm::Accumulators => &[Mode::Or, Mode::AndOr],
        }
    }

    /// Whether a simulator answers, which takes its time: it is asked less. A real device is asked everything.
    pub fn is_simulated(&self) -> bool {
        !matches!(self.runs, Runs::Threads(_)) && !device::is_gpu_required()
    }

    /// Whether it answers step by step, in so many launches that it is asked less than others.
    pub fn is_slow(&self) -> bool {
        self.algorithm.needs_device() && self.is_simulated()
    }

    fn executor(&self, index: &Arc<Index>) -> Answering {
        // Some numbers that differ from index to index.
        let seed = u64::from(index.documents()) * 31;
        let device = || GpuExecutor::new(Arc::clone(index), Box::new(move || Ok(device::open(seed))));
        let executor = match self.runs {
            Runs::Threads(threads) => Answerer::Cpu(Cpu::new(Arc::clone(index), threads)),
            Runs::Device => Answerer::Device(Box::new(device())),
            // So little at once that lists of all but the smallest collections go in several batches and slabs.
            Runs::Sending => Answerer::Device(Box::new(device().send_lists().send_at_most(16 << 10).threads(2))),
        };
        Answering { executor }
    }

    /// The score models that the algorithm answers by.
    fn models(&self) -> Vec<ScoreModel> {
        let is_answered =
            |model: &ScoreModel| self.algorithm != Algorithm::ScoreAtATime || *model == ScoreModel::Impact;
        Collection::models().into_iter().filter(is_answered).collect()
    }

    fn cases(&self, collection: &Collection, ks: &[usize]) -> Vec<Case> {
        let mut cases = Vec::new();
        for ask in 0..collection.asks.len() {
            for score in self.models() {
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

    /// Asks everything alone, with the documents divided among the threads, or on the device.
    pub fn check_split(&self, collection: &Collection, ks: &[usize]) {
        let index = collection.index(self.lists);
        let executor = match self.runs {
            Runs::Threads(threads) => {
                let cpu = Cpu::new(Arc::clone(&index), threads.max(2)).split_from(Duration::ZERO);
                Answering { executor: Answerer::Cpu(cpu) }
            }
            Runs::Device | Runs::Sending => self.executor(&index),
        };
        for case in self.cases(collection, ks) {
            let plan = Planner::new(&index).plan(&self.query(collection, &case)).unwrap();
            let answer = executor.run(&[plan]).remove(0);
            self.compare(collection, &case, &answer.hits, "alone");
        }
    }

    /// Asks with each set of lanes, and compares with the oracle.
    pub fn check_lanes(&self, collection: &Collection, ks: &[usize]) {
        let index = collection.index(self.lists);
        for level in [SimdLevel::Portable, SimdLevel::Avx2, SimdLevel::Avx512] {
            let mut workspace = Workspace::default();
            workspace.simd_level = level;
            for case in self.cases(collection, ks) {
                let plan = Planner::new(&index).plan(&self.query(collection, &case)).unwrap();
                let mut hits = Vec::new();
                for stage in &plan.stages {
                    let earlier = EarlierHits::new(std::mem::take(&mut hits));
                    Task { plan: &plan, stage, index: &index, earlier: &earlier }.run(&mut workspace).unwrap();
                    hits = workspace.top.take();
                    if hits.len() >= case.k {
                        break;
                    }
                }
                self.compare(collection, &case, &hits, &format!("by lanes {level:?}"));
            }
        }
    }

    /// Divides the documents at the given places and merges the answers of the parts.
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

    /// Divides the collection into indexes of their own that know the statistics of the whole, and merges.
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
        let run = |executor: &Answering, index: &Arc<Index>, case: &Case, stage| -> Answer {
            let planner = Planner::new(index).with_document_frequencies(&frequencies);
            let plan = planner.plan(&self.query(collection, case)).unwrap();
            let staged: Vec<Plan> = plan.staged().filter(|plan| plan.stages[0].operation == stage).collect();
            executor.run(&staged).pop().unwrap_or_default()
        };
        // Impacts and filters are those of one index: shards do not share them.
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

    /// Asks an index with the documents in another order. Scores must be the same, and documents but for ties at k.
    pub fn check_order(&self, collection: &Collection, ks: &[usize]) {
        let index = collection.bisected(self.lists);
        let executor = self.executor(&index);
        // Filters are of document numbers, which are others here.
        let is_shared = |case: &Case| collection.asks[case.ask].filter.is_none();
        let cases: Vec<Case> = self.cases(collection, ks).into_iter().filter(is_shared).collect();
        let plan = |case| Planner::new(&index).plan(&self.query(collection, case)).unwrap();
        let answers = executor.run(&cases.iter().map(plan).collect::<Vec<Plan>>());
        for (case, answer) in cases.iter().zip(answers) {
            let mut candidates = collection.candidates(case.ask, case.mode, case.k, case.score);
            let last = candidates.get(case.k.wrapping_sub(1)).map_or(0, |hit| hit.score);
            let number = |document| index.id(document).unwrap().parse().unwrap();
            let mut hits: Vec<Hit> =
                answer.hits.iter().map(|hit| Hit { document: lanner::DocId(number(hit.document)), ..*hit }).collect();
            hits.sort_unstable_by_key(|hit| (std::cmp::Reverse(hit.score), hit.document));
            hits.dedup();
            assert_eq!(hits.len(), case.k.min(candidates.len()), "{self:?} {case:?}");
            let is_free = |hit: &Hit| hit.score == last && candidates.contains(hit);
            hits.retain(|hit| !is_free(hit));
            candidates.retain(|hit| hit.score > last);
            candidates.truncate(case.k);
            assert_eq!(hits, candidates, "{self:?} bisected {case:?} {:?}", collection.asks[case.ask].query().text);
        }
    }

    fn compare(&self, collection: &Collection, case: &Case, hits: &[Hit], how: &str) {
        let expected = collection.expected(case.ask, case.mode, case.k, case.score);
        assert_eq!(hits, expected, "{self:?} {how} {case:?} {:?}", collection.asks[case.ask].query().text);
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

fn shifted(hits: Vec<Hit>, base: u32) -> Vec<Hit> {
    let shift = |hit: Hit| Hit { document: lanner::DocId(hit.document.0 + base), ..hit };
    hits.into_iter().map(shift).collect()
}
