//! Plans for an index with impact-ordered lists, and the times of the variants that answer them.

use super::variants::{How, variants};
use crate::agreement::Asked;
use crate::error::{BenchError, Result};
use crate::table::count;
use lanner::error::PlanError;
use lanner::internals::algorithms::{EarlierHits, Task, Workspace};
use lanner::internals::papers::accumulator_heap::{ClauseCounts, NoCounts};
use lanner::internals::papers::saat_variants::{self, Options};
use lanner::internals::query::answer::Scored;
use lanner::internals::query::plan::{PlannedList, Stage};
use lanner::internals::query::planner::Planner;
use lanner::{Algorithm, Index, Plan, Query, ScoreModel, SearchError};
use lanner_index::codec::qmx;
use lanner_index::format::IndexError;
use rayon::prelude::*;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Number of hits in the paper.
pub const K: usize = 10;
/// Minimal duration of a run; shorter ones repeat the queries.
const MIN_SECONDS: f64 = 0.1;

/// Plans for an index with impact-ordered lists.
pub struct Workload {
    index: Index,
    texts: Vec<String>,
    plans: Vec<Plan>,
}

/// A part of the work on impact-ordered lists.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Decodes segments.
    Decode,
    /// Decodes segments and adds each posting to its accumulator; accumulators are not reset, hits are not selected.
    DecodeAndAdd,
}

/// The state of a thread.
struct Runner<'a> {
    index: &'a Index,
    workspace: Workspace,
    memory: saat_variants::Memory,
}

impl Workload {
    /// Plans queries for the best [`K`] documents; queries without known terms are left out.
    pub fn new(index: Index, queries: Vec<String>) -> Result<Workload> {
        let planner = Planner::new(&index);
        let plan = |text: &String| {
            let query = Query::new(text).k(K).score(ScoreModel::Impact).algorithm(Algorithm::ScoreAtATime);
            planner.plan(&query)
        };
        let plans = queries.iter().map(plan).collect::<Result<Vec<Plan>, PlanError>>().map_err(SearchError::from)?;
        let planned = queries.into_iter().zip(plans).filter(|(_, plan)| !plan.stages.is_empty());
        let (texts, plans): (Vec<String>, Vec<Plan>) = planned.unzip();
        if plans.is_empty() {
            let what = "no query has a term of the collection; give another log with --queries";
            return Err(BenchError::Usage(what.to_owned()));
        }
        Ok(Workload { index, texts, plans })
    }

    /// Number of queries.
    pub fn queries(&self) -> usize {
        self.plans.len()
    }

    /// Number of documents.
    pub fn documents(&self) -> u32 {
        self.index.documents()
    }

    /// Mean postings of a query.
    pub fn postings(&self) -> f64 {
        let postings = self.plans.iter().flat_map(|plan| plan.lists.iter()).map(|list| u64::from(list.postings));
        postings.sum::<u64>() as f64 / self.plans.len() as f64
    }

    /// Describes queries and collection, for the notes of tables.
    pub fn note(&self) -> String {
        let (queries, documents) = (count(self.queries() as u64), count(u64::from(self.documents())));
        format!("{queries} queries, k {K}, {documents} documents, {} postings per query", count(self.postings() as u64))
    }

    /// The index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The terms of each query that the index has, as often as the query has them.
    pub fn terms(&self) -> Vec<String> {
        let repeated = |list: &PlannedList| std::iter::repeat_n(list.term.clone(), list.query_weight as usize);
        let terms = |plan: &Plan| plan.lists.iter().flat_map(repeated).collect::<Vec<_>>().join(" ");
        self.plans.iter().map(terms).collect()
    }

    /// Answers queries by one of the engine's algorithms: the microseconds from the terms of each to its hits, and the
    /// hits.
    pub fn answer(&self, queries: &[String], algorithm: Algorithm) -> Result<Vec<(f64, Vec<Scored>)>> {
        let (mut runner, planner) = (self.runner(), Planner::new(&self.index));
        let mut answer = |text: &String| {
            let start = Instant::now();
            let query = Query::new(text).k(K).score(ScoreModel::Impact).algorithm(algorithm);
            let plan = planner.plan(&query).map_err(SearchError::from)?;
            let task =
                Task { plan: &plan, stage: &plan.stages[0], index: &self.index, earlier: &EarlierHits::default() };
            task.run(&mut runner.workspace)?;
            let hits = runner.workspace.top.take(|hit| hit);
            Ok((start.elapsed().as_secs_f64() * 1e6, hits))
        };
        queries.iter().map(&mut answer).collect()
    }

    /// Compares the answers of all variants with document-at-a-time.
    pub fn check(&self) -> Result<()> {
        let check = |runner: &mut Runner<'_>, (plan, query): (&Plan, &String)| {
            let expected = runner.answer(plan, How::Exhaustive)?;
            variants().iter().try_for_each(|variant| {
                let (engine, reference, mode) = (variant.label, "the exhaustive algorithm", "or".to_owned());
                let asked = Asked { engine, reference, query, mode, k: K };
                asked.compare(&runner.answer(plan, variant.how)?, &expected)
            })
        };
        self.plans.par_iter().zip(&self.texts).try_for_each_init(|| self.runner(), check)
    }

    fn runner(&self) -> Runner<'_> {
        Runner { index: &self.index, workspace: Workspace::default(), memory: saat_variants::Memory::default() }
    }

    /// Returns the milliseconds per query of each way and run. The ways alternate, so that other load affects all of
    /// them.
    pub fn times(&self, ways: &[How], runs: usize) -> Result<Vec<Vec<f64>>, IndexError> {
        let (mut runner, mut times) = (self.runner(), vec![Vec::new(); ways.len()]);
        for _ in 0..runs {
            for (&how, times) in ways.iter().zip(&mut times) {
                // Warms up the accumulators, which another way may have evicted from the caches.
                runner.answer(&self.plans[0], how)?;
                times.push(self.ms_a_query(|| {
                    for plan in &self.plans {
                        std::hint::black_box(runner.answer(plan, how)?);
                    }
                    Ok(())
                })?);
            }
        }
        Ok(times)
    }

    /// Measures work on all queries, and returns milliseconds per query.
    fn ms_a_query(&self, mut all: impl FnMut() -> Result<(), IndexError>) -> Result<f64, IndexError> {
        let (start, mut rounds) = (Instant::now(), 0);
        while rounds == 0 || start.elapsed().as_secs_f64() < MIN_SECONDS {
            all()?;
            rounds += 1;
        }
        Ok(start.elapsed().as_secs_f64() * 1e3 / (rounds * self.plans.len()) as f64)
    }

    /// Returns the milliseconds per query of a part of the work.
    pub fn phase_ms(&self, phase: Phase) -> Result<f64, IndexError> {
        let (mut scores, mut documents) = (vec![0u16; self.index.documents() as usize], Vec::new());
        let mut segment = |impact: u32, payload: &[u8], count: usize| {
            documents.resize(documents.len().max(count), 0);
            qmx::decode(payload, 0, &mut documents[..count]);
            if phase == Phase::DecodeAndAdd {
                for &document in &documents[..count] {
                    if let Some(score) = scores.get_mut(document as usize) {
                        *score = score.wrapping_add(impact as u16);
                    }
                }
            }
            std::hint::black_box((&mut documents, &mut scores));
        };
        self.ms_a_query(|| self.for_each_segment(&mut segment))
    }

    /// Mean postings and bytes of the impact-ordered lists of a query.
    pub fn ordered_lists(&self) -> Result<[f64; 2], IndexError> {
        let mut sums = [0, 0];
        self.for_each_segment(|_, payload, count| sums = [sums[0] + count, sums[1] + payload.len()])?;
        Ok(sums.map(|sum| sum as f64 / self.plans.len() as f64))
    }

    /// Calls `process` with impact, payload and number of postings of every segment of all queries.
    fn for_each_segment(&self, mut process: impl FnMut(u32, &[u8], usize)) -> Result<(), IndexError> {
        for plan in &self.plans {
            for planned in plan.lists.iter() {
                for segment in self.index.impact_ordered(planned.id)?.into_iter().flat_map(|list| list.segments()) {
                    process(segment.impact, segment.documents, segment.postings as usize);
                }
            }
        }
        Ok(())
    }

    /// Returns the seconds for all queries on `threads` threads, which take queries from a lock-free queue.
    pub fn seconds(&self, threads: usize, how: How) -> Result<f64> {
        let once = self.seconds_of(1, threads, how)?;
        let rounds = (MIN_SECONDS / once).ceil() as usize;
        if rounds <= 1 { Ok(once) } else { Ok(self.seconds_of(rounds, threads, how)? / rounds as f64) }
    }

    /// Returns the seconds for all queries, `rounds` times. The threads are started here, not taken from a pool, so
    /// that their number is exact; a barrier starts the clock when all of them have their memory.
    fn seconds_of(&self, rounds: usize, threads: usize, how: How) -> Result<f64> {
        let queries = rounds * self.plans.len();
        let (next, ready) = (AtomicUsize::new(0), Barrier::new(threads + 1));
        let work = || -> Result<()> {
            let mut runner = self.runner();
            let first = runner.answer(&self.plans[0], how);
            ready.wait();
            first?;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= queries {
                    return Ok(());
                }
                std::hint::black_box(runner.answer(&self.plans[number % self.plans.len()], how)?);
            }
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            ready.wait();
            let start = Instant::now();
            workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))?;
            Ok(start.elapsed().as_secs_f64())
        })
    }

    /// Counts how often each clause of a heap is executed.
    pub fn clauses(&self, options: &Options) -> Result<ClauseCounts, IndexError> {
        let (mut counts, mut memory) = (ClauseCounts::default(), saat_variants::Memory::default());
        for plan in &self.plans {
            let task = Task { plan, stage: &plan.stages[0], index: &self.index, earlier: &EarlierHits::default() };
            saat_variants::run(&task, options, &mut memory, &mut counts)?;
        }
        Ok(counts)
    }
}

impl Runner<'_> {
    fn answer(&mut self, plan: &Plan, how: How) -> Result<Vec<Scored>, IndexError> {
        let stage = match how {
            How::Exhaustive => Stage { algorithm: Algorithm::Exhaustive, ..plan.stages[0] },
            How::ScoreAtATime(_) => plan.stages[0],
        };
        let task = Task { plan, stage: &stage, index: self.index, earlier: &EarlierHits::default() };
        match how {
            How::Exhaustive => task.run(&mut self.workspace).map(|_| self.workspace.top.take(|hit| hit)),
            How::ScoreAtATime(options) => saat_variants::run(&task, &options, &mut self.memory, &mut NoCounts),
        }
    }
}
