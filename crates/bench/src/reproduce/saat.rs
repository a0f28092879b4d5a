//! Trotman and Crane, *Micro and Macro Optimization of SaaT Search*: Tables 1 to 3 and Figure 2, theirs beside ours.
//!
//! The index has impact-ordered lists, the queries are ORs by impact. Only answering is timed: the plans are made
//! before. Every variant must give the hits of the exhaustive document-at-a-time algorithm before any is timed.

use crate::plot::{Bar, Chart, Group};
use crate::statistics::Spread;
use crate::table::{Table, count, number};
use lanner::algorithms::accumulator_heap::{ClauseCounts, NoCounts};
use lanner::algorithms::score_at_a_time::{self, Accumulators, Decoding, Heap, Options};
use lanner::algorithms::{Known, Task, Workspace};
use lanner::plan::Stage;
use lanner::planner::{PlanError, Planner};
use lanner::{Algorithm, Hit, Index, Plan, Query, ScoreModel};
use lanner_index::format::IndexError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The hits of a query in the paper's experiments.
pub const K: usize = 10;

/// One row of Table 1.
struct Variant {
    label: &'static str,
    how: How,
    /// Milliseconds a query in the paper.
    paper_ms: Option<f64>,
}

/// How a query is answered.
#[derive(Clone, Copy)]
enum How {
    /// Document at a time: every posting, in windows.
    Exhaustive,
    ScoreAtATime(Options),
}

/// Score-at-a-time as the paper describes it: a segment is decoded, then processed, with a heap that starts empty.
fn of_paper(accumulators: Accumulators, heap: Heap, is_inlined: bool) -> How {
    let (decoding, is_seeded) = (Decoding::Separate, false);
    How::ScoreAtATime(Options { accumulators, heap, is_inlined, decoding, is_seeded })
}

/// The rows of Table 1 in the paper's order, then what the paper does not have.
fn variants() -> Vec<Variant> {
    use Accumulators::{Array, Dynamic};
    use Heap::{Algorithm1, Algorithm2, Never};
    let paper = |label, accumulators, heap, is_inlined, ms| Variant {
        label,
        how: of_paper(accumulators, heap, is_inlined),
        paper_ms: Some(ms),
    };
    let beyond = |label, accumulators, heap, decoding, is_seeded| {
        let options = Options { accumulators, heap, is_inlined: true, decoding, is_seeded };
        Variant { label, how: How::ScoreAtATime(options), paper_ms: None }
    };
    vec![
        paper("Dynamic, Algorithm 1", Dynamic, Algorithm1, false, 177.0),
        paper("Array, Algorithm 1", Array, Algorithm1, false, 166.0),
        paper("Dynamic, Algorithm 2", Dynamic, Algorithm2, false, 164.0),
        paper("Array, Algorithm 2", Array, Algorithm2, false, 152.0),
        paper("JASS: Dynamic, Algorithm 1, inline", Dynamic, Algorithm1, true, 143.0),
        paper("Array, Algorithm 2, inline", Array, Algorithm2, true, 112.0),
        Variant { label: "document at a time, exhaustive", how: How::Exhaustive, paper_ms: None },
        beyond("Dynamic, Algorithm 2, inline", Dynamic, Algorithm2, Decoding::Separate, false),
        beyond("Array, Algorithm 2, inline, fused", Array, Algorithm2, Decoding::Fused, false),
        beyond("the same, seeded", Array, Algorithm2, Decoding::Fused, true),
        beyond("no heap, one sweep", Dynamic, Never, Decoding::Separate, true),
        beyond("no heap, one sweep, fused: the default", Dynamic, Never, Decoding::Fused, true),
    ]
}

/// What is measured: plans for an index with impact-ordered lists.
pub struct Workload<'a> {
    index: &'a Index,
    plans: Vec<Plan>,
    /// Postings of all queries.
    postings: u64,
}

/// A variant whose answer is not the one of document-at-a-time.
#[derive(Debug)]
pub struct Disagreement {
    /// The variant.
    pub variant: &'static str,
    /// The first query, counting from 0.
    pub query: usize,
}

/// What a thread keeps, and what is being run.
struct Runner<'a> {
    workload: &'a Workload<'a>,
    workspace: Workspace,
}

impl<'a> Workload<'a> {
    /// Plans the queries for the best [`K`] documents; those without a known term are left out.
    pub fn new(index: &'a Index, queries: &[String]) -> Result<Workload<'a>, PlanError> {
        let planner = Planner::new(index);
        let plan = |text: &String| {
            let query = Query::new(text).k(K).score(ScoreModel::Impact).algorithm(Algorithm::ScoreAtATime);
            planner.plan(&query)
        };
        let mut plans = queries.iter().map(plan).collect::<Result<Vec<Plan>, PlanError>>()?;
        plans.retain(|plan| !plan.stages.is_empty());
        let postings = plans.iter().flat_map(|plan| plan.lists.iter()).map(|list| u64::from(list.postings)).sum();
        Ok(Workload { index, plans, postings })
    }

    fn runner(&self) -> Runner<'_> {
        Runner { workload: self, workspace: Workspace::default() }
    }

    /// Compares all variants with document-at-a-time, so that no time is printed for a wrong answer.
    pub fn check(&self) -> Result<Result<(), Disagreement>, IndexError> {
        let (mut runner, mut expected) = (self.runner(), Vec::new());
        for plan in &self.plans {
            expected.push(runner.answer(plan, How::Exhaustive)?);
        }
        for variant in variants() {
            for (query, (plan, expected)) in self.plans.iter().zip(&expected).enumerate() {
                if runner.answer(plan, variant.how)? != *expected {
                    return Ok(Err(Disagreement { variant: variant.label, query }));
                }
            }
        }
        Ok(Ok(()))
    }

    /// Queries, documents and postings, for the notes of a table.
    fn note(&self) -> String {
        let (queries, documents) = (count(self.plans.len() as u64), count(u64::from(self.index.documents())));
        let postings = count(self.postings / self.plans.len().max(1) as u64);
        format!("{queries} queries, k = {K}, {documents} documents, {postings} postings a query on average")
    }

    /// Milliseconds a query of all queries one after the other.
    fn time(&self, runner: &mut Runner<'_>, how: How) -> Result<f64, IndexError> {
        let start = Instant::now();
        for plan in &self.plans {
            std::hint::black_box(runner.answer(plan, how)?);
        }
        Ok(start.elapsed().as_secs_f64() * 1e3 / self.plans.len().max(1) as f64)
    }

    /// Seconds for all queries on `threads` threads, each taking the next query from a queue without locks.
    fn time_threads(&self, threads: usize, how: How) -> Result<f64, IndexError> {
        let start = Instant::now();
        let next = AtomicUsize::new(0);
        let work = || -> Result<(), IndexError> {
            let mut runner = self.runner();
            while let Some(plan) = self.plans.get(next.fetch_add(1, Ordering::Relaxed)) {
                std::hint::black_box(runner.answer(plan, how)?);
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("a worker that does not panic"))
        })?;
        Ok(start.elapsed().as_secs_f64())
    }
}

impl Runner<'_> {
    fn answer(&mut self, plan: &Plan, how: How) -> Result<Vec<Hit>, IndexError> {
        let stage = match how {
            How::Exhaustive => Stage { algorithm: Algorithm::Exhaustive, ..plan.stages[0] },
            How::ScoreAtATime(_) => plan.stages[0],
        };
        let task = Task { plan, stage: &stage, index: self.workload.index, known: &Known::default() };
        match how {
            How::Exhaustive => task.run(&mut self.workspace)?,
            How::ScoreAtATime(options) => score_at_a_time::run(&task, &options, &mut self.workspace, &mut NoCounts)?,
        };
        Ok(self.workspace.top.take())
    }
}

/// Table 1: milliseconds a query of each variant, the paper's beside ours.
pub fn table1(workload: &Workload<'_>, runs: usize) -> Result<Table, IndexError> {
    let variants = variants();
    let mut times = vec![Vec::new(); variants.len()];
    let mut runner = workload.runner();
    // Variants take turns, so that what else the machine does falls on all of them alike.
    for _ in 0..runs {
        for (variant, times) in variants.iter().zip(&mut times) {
            times.push(workload.time(&mut runner, variant.how)?);
        }
    }
    let spreads: Vec<Spread> = times.iter().map(|times| Spread::of(times)).collect();
    let columns = ["variant", "paper ms", "reduction", "ours ms", "least", "most", "reduction", "c.f. JASS row"];
    let mut table = Table::new("saat/table1: milliseconds a query", 1, &columns);
    let reduction = |from: f64, to: f64| format!("{:.0} %", 100.0 * (1.0 - to / from));
    for (variant, spread) in variants.iter().zip(&spreads) {
        let paper = variant.paper_ms.map_or("–".to_owned(), number);
        let paper_reduction = variant.paper_ms.map_or("–".to_owned(), |ms| reduction(177.0, ms));
        let ours = [spread.median, spread.least, spread.most].map(number);
        let mut row = vec![variant.label.to_owned(), paper, paper_reduction];
        row.extend(ours);
        row.push(reduction(spreads[0].median, spread.median));
        row.push(reduction(spreads[4].median, spread.median));
        table.row(row);
    }
    table.notes.push(format!("{}; median, least and most of {runs} runs", workload.note()));
    table.notes.push("The paper: 20,000 queries on .GOV2 (25,205,179 documents), a 3.2 GHz Core i5".to_owned());
    Ok(table)
}

fn clause_counts(workload: &Workload<'_>, heap: Heap) -> Result<ClauseCounts, IndexError> {
    let How::ScoreAtATime(options) = of_paper(Accumulators::Dynamic, heap, true) else {
        unreachable!("the paper's variants are score-at-a-time");
    };
    let (mut counts, mut workspace) = (ClauseCounts::default(), Workspace::default());
    for plan in &workload.plans {
        let task = Task { plan, stage: &plan.stages[0], index: workload.index, known: &Known::default() };
        score_at_a_time::run(&task, &options, &mut workspace, &mut counts)?;
    }
    Ok(counts)
}

fn clause_table(title: &str, labels: [&str; 4], paper: [Option<u64>; 4], ours: ClauseCounts) -> Table {
    let mut table = Table::new(title, 1, &["clause", "paper", "share", "ours", "share"]);
    let share = |part: u64, all: u64| format!("{:.4} %", 100.0 * part as f64 / all.max(1) as f64);
    let (paper_all, ours_all) = (paper.iter().flatten().sum(), ours.0.iter().sum());
    for ((label, paper), ours) in labels.into_iter().zip(paper).zip(ours.0) {
        let theirs = paper.map_or("–".to_owned(), count);
        let their_share = paper.map_or("–".to_owned(), |paper| share(paper, paper_all));
        table.row(vec![label.to_owned(), theirs, their_share, count(ours), share(ours, ours_all)]);
    }
    table
}

/// Table 2: how often each clause of Algorithm 1 is executed.
pub fn table2(workload: &Workload<'_>) -> Result<Table, IndexError> {
    let labels = [
        "first clause (line 2): the heap is not full",
        "second clause (line 12): the document is in the heap",
        "third clause, in if (line 17): it enters",
        "third clause, else of if: nothing changes",
    ];
    let paper = [Some(199_965), Some(143_406), Some(73_733_775), Some(378_923_996_448)];
    let ours = clause_counts(workload, Heap::Algorithm1)?;
    let mut table = clause_table("saat/table2: clauses of Algorithm 1", labels, paper, ours);
    table.notes.push(workload.note());
    table.notes.push(
        "In the paper inserts outnumber updates 500 to 1. With (score, document) compared, a document is in the \
         heap exactly if it is not worse than its worst, which decides between the two clauses here."
            .to_owned(),
    );
    Ok(table)
}

/// Table 3: how often each clause of Algorithm 2 is executed.
pub fn table3(workload: &Workload<'_>) -> Result<Table, IndexError> {
    let labels = [
        "line 3: the heap is not full",
        "line 15: the document is in the heap",
        "line 13: it enters",
        "line 2 is false (or a tie is lost): nothing changes",
    ];
    let ours = clause_counts(workload, Heap::Algorithm2)?;
    let mut table = clause_table("saat/table3: clauses of Algorithm 2", labels, [None; 4], ours);
    table.notes.push(workload.note());
    table.notes.push("The paper states that only one comparison is made in over 99.9 % of cases.".to_owned());
    Ok(table)
}

/// Figure 2: seconds for all queries as threads are added; the default variant, and the paper's slowest.
pub fn figure2(workload: &Workload<'_>, threads: usize, runs: usize) -> Result<(Table, Chart), IndexError> {
    let ways = [
        ("all optimizations", How::ScoreAtATime(Options::default())),
        ("the paper's best", of_paper(Accumulators::Array, Heap::Algorithm2, true)),
        ("the paper's baseline", of_paper(Accumulators::Dynamic, Heap::Algorithm1, false)),
    ];
    let mut table = Table::new(
        "saat/figure2: seconds for all queries",
        1,
        &["variant", "threads", "seconds", "expected", "speedup", "queries/s"],
    );
    let mut chart = Chart {
        title: "Score-at-a-time: total time as threads are added".to_owned(),
        subtitle: workload.note(),
        series: vec!["measured".to_owned(), "expected: one thread's time divided by the threads".to_owned()],
        unit: "s".to_owned(),
        groups: Vec::new(),
    };
    for (label, how) in ways {
        let mut single = 0.0;
        for threads in 1..=threads {
            let times = (0..runs).map(|_| workload.time_threads(threads, how)).collect::<Result<Vec<f64>, _>>()?;
            let spread = Spread::of(&times);
            if threads == 1 {
                single = spread.median;
            }
            let expected = single / threads as f64;
            let rate = workload.plans.len() as f64 / spread.median;
            let numbers = [spread.median, expected, single / spread.median, rate].map(number);
            table.row([label.to_owned(), threads.to_string()].into_iter().chain(numbers).collect());
            let measured = Bar { series: 0, value: spread.median, range: Some((spread.least, spread.most)) };
            let bars = vec![measured, Bar { series: 1, value: expected, range: None }];
            chart.groups.push(Group { label: format!("{label}, {threads}"), bars });
        }
    }
    table.notes.push(format!("{}; the median of {runs} runs", workload.note()));
    table.notes.push("The paper: 21 % less time with 4 threads than with 1 where 75 % were expected.".to_owned());
    Ok((table, chart))
}
