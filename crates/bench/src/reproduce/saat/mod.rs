//! Trotman and Crane, *Micro and Macro Optimization of SaaT Search*: Tables 1 to 3 and Figure 2, and their engine JASSv2.
//!
//! The index has impact-ordered lists; the queries are ORs scored by impact. Planning is not timed. All variants must
//! return the hits of the exhaustive document-at-a-time algorithm before any of them is timed.

mod jass;
mod phases;
mod variants;
mod workload;

pub use jass::NAME as JASS;
pub use workload::Workload;

use super::{Choice, Entry, Reproduction, Run};
use crate::cache::Cache;
use crate::collection::data_file;
use crate::engines::{self, BuildTask, LannerVariant};
use crate::error::{BenchError, Result};
use crate::experiments::Findings;
use crate::plot::{Line, LineChart};
use crate::query_log;
use crate::result::Measurement;
use crate::statistics::Spread;
use crate::suite::Target;
use crate::table::{DASH, Table, count, number};
use lanner::Index;
use lanner::internals::papers::accumulator_heap::ClauseCounts;
use lanner::internals::papers::saat_variants::{Accumulators, Heap, Options};
use lanner_index::text::Analyzer;
use lanner_index::weight::Bm25;
use phases::Phases;
use std::path::Path;
use variants::{
    BEST, BEST_FUSED, DEFAULT, EXHAUSTIVE, How, PAPER_CLAUSES, Variant, of_paper, paper_postings, variants,
};

/// The default collection and query log, in the data folder.
const DEFAULTS: [&str; 2] = ["wiki-passages.jsonl.zst", "queries/tb05_efficiency.50k.txt"];

/// Stands for the fastest row of the paper.
const PAPER: &str = "paper";
/// The targets, ratios of at most 1: what is compared, the variant, and what its time is divided by.
const RATIOS: [(&str, &str, &str); 3] = [
    ("score at a time, x document at a time, exhaustive", DEFAULT, EXHAUSTIVE),
    ("the default, fused, x the fastest row of the paper", DEFAULT, PAPER),
    ("the paper's best, fused, x the fastest row of the paper", BEST_FUSED, PAPER),
];

pub fn entries() -> Vec<Entry> {
    let target = |(what, variant, to): (&str, &str, &str)| Target {
        what: what.to_owned(),
        kind: "ratio".to_owned(),
        labels: [("variant", variant), ("to", to)].map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        value: "x".to_owned(),
        at_most: 1.0,
    };
    let targets = RATIOS.map(target).to_vec();
    let new = |name, title, run| Entry::new(name, title, Run::Saat(run));
    vec![
        Entry {
            targets,
            ..new("saat/table1", "milliseconds per query of each variant", |work, choice| table_1(work, choice.runs))
        },
        new("saat/table2", "how often each clause of Algorithm 1 is executed", table_2),
        new("saat/table3", "how often each clause of Algorithm 2 is executed", table_3),
        new("saat/figure2", "total time by number of threads", |work, choice| {
            figure_2(work, choice.threads, choice.runs)
        }),
        new(JASS, "JASSv2 over the same impacts, microseconds per query", jass::table),
    ]
}

/// Builds the index, plans the queries, and checks the answers.
pub fn prepare(reproduction: &Reproduction<'_>) -> Result<Workload> {
    let (options, choice) = (reproduction.options, reproduction.choice);
    let of_data = |named: &Option<_>, file| named.clone().map_or_else(|| data_file(&options.data, file), Ok);
    let (input, log) = (of_data(&choice.input, DEFAULTS[0])?, of_data(&choice.queries, DEFAULTS[1])?);
    let queries = query_log::sample(&query_log::read(&log)?, choice.count);
    let name = input.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let source_bytes = input.metadata().map_err(BenchError::io(&input))?.len();
    let stamp = format!("{name}, {source_bytes} bytes");
    (reproduction.say)("building the index with impact-ordered lists");
    let cache = Cache::new(options.cache.join("saat"));
    let folder = cache.index((&name, &stamp), &options.program, |folder| build(&input, folder))?;
    let workload = Workload::new(Index::open(&folder)?, queries)?;
    (reproduction.say)(&format!("checking the answers of {}", workload.note()));
    workload.check()?;
    Ok(workload)
}

fn build(input: &Path, folder: &Path) -> Result<u64> {
    let task = BuildTask::new(input, folder, Analyzer::parse("simple")?, Bm25 { k1: 0.9, b: 0.4 });
    engines::build_lanner(&task, &LannerVariant::ImpactOrdered)
}

/// Table 1: the time of a query of each variant, in the paper and here, and where the time goes.
fn table_1(workload: &Workload, runs: usize) -> Result<Findings> {
    let variants = variants();
    let ways: Vec<How> = variants.iter().map(|variant| variant.how).collect();
    let spreads: Vec<Spread> = workload.times(&ways, runs)?.into_iter().map(Spread::of).collect();
    let rows: Vec<(&Variant, Spread)> = variants.iter().zip(spreads).collect();
    let ms = |label: &str| rows.iter().find(|(variant, _)| variant.label == label).map_or(f64::NAN, |row| row.1.median);
    let phases = Phases::measure(workload, runs, [rows[0].1.median, ms(BEST), ms(DEFAULT)])?;
    let mut measurements: Vec<Measurement> = rows.iter().map(|row| time_measurement(workload, row)).collect();
    let of_paper = rows.iter().filter(|(variant, _)| variant.paper.is_some());
    let fastest = of_paper.map(|(_, spread)| spread.median).fold(f64::INFINITY, f64::min);
    for (_, label, to) in RATIOS {
        let x = ms(label) / if to == PAPER { fastest } else { ms(to) };
        measurements.push(Measurement::new("ratio", &[("variant", &label), ("to", &to)]).with("x", x));
    }
    measurements.push(phases.measurement());
    let postings = count(paper_postings() as u64);
    let table = time_table(workload, &rows).notes(&[
        &format!("{}; median, minimum and maximum of {runs} alternating runs.", workload.note()),
        &format!(
            "The paper: 20,000 queries on .GOV2 (25,205,179 documents, {postings} postings per query by its Table 2), \
             a Core i5 with 3.2 GHz. Its row of JASS is measured here as an inlined Algorithm 1."
        ),
        &phases.reason(workload),
    ]);
    Ok(Findings::new(measurements).table(table).table(phases.table()))
}

fn time_measurement(workload: &Workload, (variant, spread): &(&Variant, Spread)) -> Measurement {
    Measurement::new("time", &[("variant", &variant.label)])
        .with("queries", workload.queries() as f64)
        .with("documents", f64::from(workload.documents()))
        .with("postings_a_query", workload.postings())
        .with_spread(["ms", "least_ms", "most_ms"], *spread)
        .with("ns_a_posting", spread.median * 1e6 / workload.postings())
        .with("paper_ms", variant.paper.as_ref().map(|paper| paper.ms))
}

fn time_table(workload: &Workload, rows: &[(&Variant, Spread)]) -> Table {
    let derived = ["ns per posting", "reduction", "on JASS"];
    let columns = [&["variant", "paper ms"], &derived[..], &["ours ms", "least", "most"], &derived].concat();
    let mut table = Table::new("saat/table1: milliseconds per query", 1, &columns);
    let reduction =
        |row: usize, spread: &Spread| format!("{:.0} %", 100.0 * (1.0 - spread.median / rows[row].1.median));
    for (variant, spread) in rows {
        let paper = variant.paper.as_ref().map_or(vec![DASH.to_owned(); 4], |paper| {
            let reductions = paper.reductions.map(|percent| format!("{percent} %"));
            [number(paper.ms), number(paper.ns_per_posting())].into_iter().chain(reductions).collect()
        });
        let ns = spread.median * 1e6 / workload.postings();
        let times = spread.values().into_iter().chain([ns]).map(number);
        let reductions = [reduction(0, spread), reduction(4, spread)];
        table.row([variant.label.to_owned()].into_iter().chain(paper).chain(times).chain(reductions));
    }
    table
}

/// A table of the clauses of an algorithm.
struct Clauses {
    title: &'static str,
    heap: Heap,
    labels: [&'static str; 4],
    paper: Option<[u64; 4]>,
}

fn table_2(workload: &Workload, _: &Choice) -> Result<Findings> {
    let clauses = Clauses {
        title: "saat/table2: clauses of Algorithm 1",
        heap: Heap::Algorithm1,
        labels: [
            "first clause (line 2): the heap is not full",
            "second clause (line 12): the document is in the heap",
            "third clause, in if (line 17): it enters",
            "third clause, else of if: nothing changes",
        ],
        paper: Some(PAPER_CLAUSES),
    };
    let note = "In the paper, inserts outnumber updates 500 to 1. Here pairs of score and document are compared, so a \
                document is in the heap if and only if it is not worse than the worst in it; this decides between the \
                two clauses.";
    clauses.findings(workload, note)
}

fn table_3(workload: &Workload, _: &Choice) -> Result<Findings> {
    let clauses = Clauses {
        title: "saat/table3: clauses of Algorithm 2",
        heap: Heap::Algorithm2,
        labels: [
            "line 3: the heap is not full",
            "line 15: the document is in the heap",
            "line 13: it enters",
            "line 2 is false (or a tie is lost): nothing changes",
        ],
        paper: None,
    };
    let note = "The numbers of the paper's Table 3 are not available to us, hence the dashes; its text says that in \
                over 99.9 % of cases a single comparison is made.";
    clauses.findings(workload, note)
}

impl Clauses {
    fn findings(&self, workload: &Workload, note: &str) -> Result<Findings> {
        let ClauseCounts(ours) = workload.clauses(&of_paper(Accumulators::Dynamic, self.heap, true))?;
        let mut table = Table::new(self.title, 1, &["clause", "paper", "share", "ours", "share"]);
        let share = |part: u64, all: &[u64]| format!("{:.4} %", 100.0 * part as f64 / all.iter().sum::<u64>() as f64);
        let mut measurements = Vec::new();
        for (at, label) in self.labels.into_iter().enumerate() {
            let paper = self.paper.map_or([DASH; 2].map(str::to_owned), |all| [count(all[at]), share(all[at], &all)]);
            let cells = [count(ours[at]), share(ours[at], &ours)];
            table.row([label.to_owned()].into_iter().chain(paper).chain(cells));
            let row = Measurement::new("clause", &[("clause", &label)]).with("ours", ours[at] as f64);
            measurements.push(row.with("paper", self.paper.map(|all| all[at] as f64)));
        }
        Ok(Findings::new(measurements).table(table.notes(&[&format!("{}.", workload.note()), note])))
    }
}

/// Figure 2: the time of all queries by the number of threads, for the default, the paper's best and the paper's
/// slowest.
fn figure_2(workload: &Workload, threads: usize, runs: usize) -> Result<Findings> {
    let ways = [
        ("all optimizations", Options::default()),
        ("the paper's best", of_paper(Accumulators::Array, Heap::Algorithm2, true)),
        ("the paper's baseline", of_paper(Accumulators::Dynamic, Heap::Algorithm1, false)),
    ];
    let columns = ["variant", "threads", "seconds", "least", "most", "expected", "speedup", "queries/s", "postings/us"];
    let mut table = Table::new("saat/figure2: seconds for all queries", 1, &columns);
    let (mut findings, mut speedups) = (Findings::default(), Vec::new());
    for (label, options) in ways {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for threads in thread_counts(threads) {
            let run = |_| workload.seconds(threads, How::ScoreAtATime(options));
            let spread = Spread::of((0..runs).map(run).collect::<Result<Vec<f64>>>()?);
            points.push((threads as f64, spread.median));
            let speedup = points[0].1 / spread.median;
            let rate = workload.queries() as f64 / spread.median;
            let expected = points[0].1 / threads as f64;
            let further = [expected, speedup, rate, rate * workload.postings() / 1e6];
            let cells = spread.values().into_iter().chain(further).map(number);
            table.row([label.to_owned(), threads.to_string()].into_iter().chain(cells));
            let row = Measurement::new("threads", &[("variant", &label), ("threads", &threads)]);
            findings.measurements.push(row.with("seconds", spread.median).with("speedup", speedup));
        }
        let single = points[0].1;
        speedups.push(Line::new(label, points.iter().map(|&(threads, seconds)| (threads, single / seconds))));
        let expected = Line::new("expected", points.iter().map(|&(threads, _)| (threads, single / threads)));
        let title = format!("Score-at-a-time, {label}: total time");
        let chart = LineChart::new(title, workload.note(), ["threads", "s"]);
        let suffix = label.replace("'s", "").replace(' ', "-");
        findings = findings.chart(suffix, chart.lines([Line::new("measured", points), expected]));
    }
    let ideal = thread_counts(threads).into_iter().map(|threads| (threads as f64, threads as f64));
    speedups.push(Line::new("expected", ideal));
    let chart = LineChart::new("Score-at-a-time: speedup", workload.note(), ["threads", "x"]).lines(speedups);
    let table = table.notes(&[
        &format!(
            "{}; median of {runs} runs; expected is the time of one thread divided by the number of threads.",
            workload.note()
        ),
        "The paper: with all optimizations, 4 threads take 21 % less time than 1, where 75 % are expected, and 3 % \
         less than 3; without them, 72 %. It concludes that memory is the bottleneck.",
    ]);
    Ok(findings.table(table).chart("speedup", chart))
}

/// Returns every number up to four, then every second one, and the largest.
fn thread_counts(most: usize) -> Vec<usize> {
    (1..=most).filter(|&threads| threads <= 4 || threads % 2 == 0 || threads == most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collection::{synthetic_queries, write_synthetic};

    /// Thousands of synthetic documents, so that frequent words have impact-ordered lists.
    fn workload(folder: &Path) -> Workload {
        let (input, index) = (folder.join("documents.jsonl"), folder.join("index"));
        write_synthetic(&input, 3000).unwrap();
        build(&input, &index).unwrap();
        let queries = [synthetic_queries(30), vec!["unknown".to_owned()]].concat();
        Workload::new(Index::open(&index).unwrap(), queries).unwrap()
    }

    #[test]
    fn every_table_is_made_of_checked_answers() {
        let folder = tempfile::tempdir().unwrap();
        let workload = workload(folder.path());
        workload.check().unwrap();
        assert_eq!(workload.queries(), 30, "a query without known terms is left out");
        assert!(workload.ordered_lists().unwrap()[0] > 0.0, "some lists are impact-ordered");

        let times = table_1(&workload, 1).unwrap();
        assert_eq!(times.tables[0].rows.len(), variants().len());
        assert_eq!(times.tables[0].rows[5][..5], [BEST, "112", "5.91", "37 %", "22 %"]);
        assert!(times.tables[0].notes.iter().any(|note| note.contains("37 % there")));
        let targets = entries().remove(0).targets;
        let is_measured = |target: &Target| times.measurements.iter().any(|row| row.is(&target.kind, &target.labels));
        assert!(targets.iter().all(is_measured));

        let threads = figure_2(&workload, 2, 1).unwrap();
        assert_eq!((threads.tables[0].rows.len(), threads.charts.len()), (6, 4));
    }

    #[test]
    fn every_posting_executes_one_clause() {
        let folder = tempfile::tempdir().unwrap();
        let workload = workload(folder.path());
        for heap in [Heap::Algorithm1, Heap::Algorithm2] {
            let ClauseCounts(counts) = workload.clauses(&of_paper(Accumulators::Dynamic, heap, true)).unwrap();
            let postings = workload.postings() * workload.queries() as f64;
            assert_eq!(counts.iter().sum::<u64>(), postings.round() as u64);
        }
    }

    #[test]
    fn threads_are_counted_by_ones_then_by_twos() {
        assert_eq!(thread_counts(2), [1, 2]);
        assert_eq!(thread_counts(9), [1, 2, 3, 4, 6, 8, 9]);
    }
}
