//! What is measured: plans for an index with impact-ordered lists, the variants that answer them, and their times.

use super::variants::{How, variants};
use crate::agreement::first_difference;
use crate::error::BenchError;
use crate::table::count;
use lanner::SearchError;
use lanner::internals::algorithms::{EarlierHits, Task, Workspace};
use lanner::internals::papers::accumulator_heap::{ClauseCounts, NoCounts};
use lanner::internals::papers::saat_variants::{self, Options};
use lanner::internals::query::plan::Stage;
use lanner::internals::query::planner::{PlanError, Planner};
use lanner::{Algorithm, Hit, Index, Plan, Query, ScoreModel};
use lanner_index::codec::qmx;
use lanner_index::format::IndexError;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The hits of a query in the paper's experiments.
pub const K: usize = 10;
/// A run goes over the queries again until it has lasted so long: shorter ones say little.
const LEAST_SECONDS: f64 = 0.1;

/// Plans for an index with impact-ordered lists.
pub struct Workload {
    index: Index,
    texts: Vec<String>,
    plans: Vec<Plan>,
}

/// A part of the work done alone, for lists that are stored by impact.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Segments are decoded.
    Decode,
    /// Segments are decoded, and each posting is added; nothing is set back, nothing is selected.
    DecodeAndAdd,
}

/// What a thread keeps.
struct Runner<'a> {
    index: &'a Index,
    workspace: Workspace,
    memory: saat_variants::Memory,
}

impl Workload {
    /// Plans queries for the best [`K`] documents; those without a known term are left out.
    pub fn new(index: Index, queries: Vec<String>) -> Result<Workload, BenchError> {
        let planner = Planner::new(&index);
        let plan = |text: &String| {
            let query = Query::new(text).k(K).score(ScoreModel::Impact).algorithm(Algorithm::ScoreAtATime);
            planner.plan(&query)
        };
        let plans = queries.iter().map(plan).collect::<Result<Vec<Plan>, PlanError>>().map_err(SearchError::from)?;
        let planned = queries.into_iter().zip(plans).filter(|(_, plan)| !plan.stages.is_empty());
        let (texts, plans): (Vec<String>, Vec<Plan>) = planned.unzip();
        if plans.is_empty() {
            return Err(BenchError::Usage(
                "no query has a word of the collection; give others with --queries".to_owned(),
            ));
        }
        Ok(Workload { index, texts, plans })
    }

    /// Queries that are asked.
    pub fn queries(&self) -> usize {
        self.plans.len()
    }

    /// Documents of the index.
    pub fn documents(&self) -> u32 {
        self.index.documents()
    }

    /// Postings of a query on average.
    pub fn postings(&self) -> f64 {
        let postings = self.plans.iter().flat_map(|plan| plan.lists.iter()).map(|list| u64::from(list.postings));
        postings.sum::<u64>() as f64 / self.plans.len() as f64
    }

    /// Bytes of the impact-ordered lists of a query on average.
    pub fn stream_bytes(&self) -> Result<f64, IndexError> {
        let mut bytes = 0;
        self.for_each_segment(|_, stream, _| bytes += stream.len())?;
        Ok(bytes as f64 / self.plans.len() as f64)
    }

    /// Queries, documents and postings, for the notes of a table.
    pub fn note(&self) -> String {
        let (queries, documents) = (count(self.queries() as u64), count(u64::from(self.documents())));
        format!("{queries} queries, k {K}, {documents} documents, {} postings a query", count(self.postings() as u64))
    }

    /// Compares all variants with document-at-a-time, so that no time is printed for a wrong answer.
    pub fn check(&self, threads: usize) -> Result<(), BenchError> {
        let next = AtomicUsize::new(0);
        let work = || -> Result<(), BenchError> {
            let mut runner = self.runner();
            while let Some((plan, text)) = self.query(next.fetch_add(1, Ordering::Relaxed)) {
                let expected = runner.answer(plan, How::Exhaustive)?;
                for variant in variants() {
                    let found = runner.answer(plan, variant.how)?;
                    if found != expected {
                        return Err(disagreement(variant.label, text, &found, &expected));
                    }
                }
            }
            Ok(())
        };
        on_threads(threads, work)
    }

    fn query(&self, at: usize) -> Option<(&Plan, &String)> {
        Some((self.plans.get(at)?, &self.texts[at]))
    }

    fn runner(&self) -> Runner<'_> {
        Runner { index: &self.index, workspace: Workspace::default(), memory: saat_variants::Memory::default() }
    }

    /// Milliseconds a query for each way, one query after the other, as often as there are runs. Ways take turns, so
    /// that what else the machine does falls on all of them alike.
    pub fn times(&self, ways: &[How], runs: usize) -> Result<Vec<Vec<f64>>, IndexError> {
        let (mut runner, mut times) = (self.runner(), vec![Vec::new(); ways.len()]);
        for _ in 0..runs {
            for (&how, times) in ways.iter().zip(&mut times) {
                // Accumulators that another way has driven out are paged in again by a query that does not count.
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

    /// Milliseconds a query of something done for all of them.
    fn ms_a_query(&self, mut all: impl FnMut() -> Result<(), IndexError>) -> Result<f64, IndexError> {
        let (start, mut rounds) = (Instant::now(), 0);
        while rounds == 0 || start.elapsed().as_secs_f64() < LEAST_SECONDS {
            all()?;
            rounds += 1;
        }
        Ok(start.elapsed().as_secs_f64() * 1e3 / (rounds * self.plans.len()) as f64)
    }

    /// Milliseconds a query for a part of the work alone.
    pub fn phase_ms(&self, phase: Phase) -> Result<f64, IndexError> {
        let (mut scores, mut documents) = (vec![0u16; self.index.documents() as usize], Vec::new());
        let mut segment = |impact: u32, stream: &[u8], count: usize| {
            documents.resize(documents.len().max(count), 0);
            qmx::decode(stream, 0, &mut documents[..count]);
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

    /// Postings of a query, on average, in lists that are stored by impact.
    pub fn ordered_postings(&self) -> Result<f64, IndexError> {
        let mut postings = 0;
        self.for_each_segment(|_, _, count| postings += count)?;
        Ok(postings as f64 / self.plans.len() as f64)
    }

    /// Impact, stream and postings of every segment of all queries.
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

    /// Seconds for all queries on `threads` threads, each taking the next query from a queue without locks.
    pub fn seconds(&self, threads: usize, how: How) -> Result<f64, BenchError> {
        let once = self.seconds_of(1, threads, how)?;
        let rounds = (LEAST_SECONDS / once).ceil() as usize;
        if rounds <= 1 { Ok(once) } else { Ok(self.seconds_of(rounds, threads, how)? / rounds as f64) }
    }

    /// Seconds for all queries several times over. The threads and their memory are there when the time begins.
    fn seconds_of(&self, rounds: usize, threads: usize, how: How) -> Result<f64, BenchError> {
        let queries = rounds * self.plans.len();
        let (next, ready) = (AtomicUsize::new(0), Barrier::new(threads + 1));
        let work = || -> Result<(), BenchError> {
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
            workers.into_iter().try_for_each(|worker| worker.join().expect("a worker that does not panic"))?;
            Ok(start.elapsed().as_secs_f64())
        })
    }

    /// How often each clause of a heap is executed.
    pub fn clauses(&self, options: &Options) -> Result<ClauseCounts, IndexError> {
        let (mut counts, mut memory) = (ClauseCounts::default(), saat_variants::Memory::default());
        for plan in &self.plans {
            let task = Task { plan, stage: &plan.stages[0], index: &self.index, earlier: &EarlierHits::default() };
            saat_variants::run(&task, options, &mut memory, &mut counts)?;
        }
        Ok(counts)
    }
}

/// Does the same work on several threads until all are done.
fn on_threads(threads: usize, work: impl Fn() -> Result<(), BenchError> + Sync) -> Result<(), BenchError> {
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker that does not panic"))
    })
}

fn disagreement(variant: &str, text: &str, found: &[Hit], expected: &[Hit]) -> BenchError {
    let (reference, difference) = ("the exhaustive algorithm", first_difference(found, expected));
    let (engine, query, mode) = (variant.to_owned(), text.to_owned(), "or".to_owned());
    BenchError::Disagreement { engine, reference, query, mode, k: K, difference }
}

impl Runner<'_> {
    fn answer(&mut self, plan: &Plan, how: How) -> Result<Vec<Hit>, IndexError> {
        let stage = match how {
            How::Exhaustive => Stage { algorithm: Algorithm::Exhaustive, ..plan.stages[0] },
            How::ScoreAtATime(_) => plan.stages[0],
        };
        let task = Task { plan, stage: &stage, index: self.index, earlier: &EarlierHits::default() };
        match how {
            How::Exhaustive => task.run(&mut self.workspace).map(|_| self.workspace.top.take(ScoreModel::Impact)),
            How::ScoreAtATime(options) => saat_variants::run(&task, &options, &mut self.memory, &mut NoCounts),
        }
    }
}
