//! Trotman and Crane, *Micro and Macro Optimization of SaaT Search*: Tables 1 to 3 and Figure 2, theirs beside ours.
//!
//! The index has impact-ordered lists, the queries are ORs by impact. Only answering is timed: the plans are made
//! before. Every variant must give the hits of the exhaustive document-at-a-time algorithm before any is timed.

mod variants;
mod workload;

pub use workload::Workload;

use super::{Entry, Reproduction, Side};
use crate::cache::{Cache, fingerprint};
use crate::collection::data_file;
use crate::engines::{self, BuildTask, LannerVariant};
use crate::error::BenchError;
use crate::experiments::Findings;
use crate::plot::{Line, LineChart, Picture};
use crate::query_log;
use crate::result::Measurement;
use crate::statistics::Spread;
use crate::suite::Target;
use crate::table::{Table, bytes, count, number};
use lanner::Index;
use lanner::internals::papers::accumulator_heap::ClauseCounts;
use lanner::internals::papers::saat_variants::{Accumulators, Heap, Options};
use lanner_index::text::Analyzer;
use lanner_index::weight::Bm25;
use std::path::Path;
use variants::{
    BEST, BEST_FUSED, DEFAULT, EXHAUSTIVE, How, PAPER_CLAUSES, Variant, of_paper, paper_postings, variants,
};
use workload::Phase;

/// Memory that the build may use.
const MEMORY_BYTES: usize = 1 << 30;
/// The collection and the queries of the data folder, unless others are named.
const DEFAULTS: [&str; 2] = ["wiki-passages.jsonl.zst", "queries/tb05_efficiency.50k.txt"];

/// What of this paper can be reproduced.
pub fn entries() -> Vec<Entry> {
    let claim = |what: &str, to: &str, of: &str| Target {
        what: what.to_owned(),
        kind: "ratio".to_owned(),
        labels: [("variant", of), ("to", to)].map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        value: "x".to_owned(),
        at_most: 1.0,
    };
    let claims = vec![
        claim("score at a time, x document at a time, exhaustive", EXHAUSTIVE, DEFAULT),
        claim("the default, fused, x the fastest row of the paper", "paper", DEFAULT),
        claim("the paper's best, fused, x the fastest row of the paper", "paper", BEST_FUSED),
    ];
    let entry = |name, title, run| Entry { name, title, side: Side::Cpu, targets: Vec::new(), run };
    vec![
        Entry { targets: claims, ..entry("saat/table1", "milliseconds a query of each variant", table_1) },
        entry("saat/table2", "how often each clause of Algorithm 1 is executed", table_2),
        entry("saat/table3", "how often each clause of Algorithm 2 is executed", table_3),
        entry("saat/figure2", "total time as threads are added", figure_2),
    ]
}

/// Builds the index, plans the queries and checks the answers.
pub fn prepare(reproduction: &Reproduction<'_>) -> Result<Workload, BenchError> {
    let (options, choice) = (reproduction.options, reproduction.choice);
    let of_data = |named: &Option<_>, file| named.clone().map_or_else(|| data_file(&options.data, file), Ok);
    let (input, log) = (of_data(&choice.input, DEFAULTS[0])?, of_data(&choice.queries, DEFAULTS[1])?);
    let queries = query_log::sample(&query_log::read(&log)?, choice.count);
    let name = input.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let source_bytes = input.metadata().map_err(BenchError::io(&input))?.len();
    let stamp = format!("{name}, {source_bytes} bytes\n{}", fingerprint(&options.program)?);
    (reproduction.say)("building the index with impact-ordered lists");
    let build = |folder: &Path| {
        let (analyzer, bm25) = (Analyzer::parse("simple")?, Bm25 { k1: 0.9, b: 0.4 });
        let (threads, memory_bytes) = (choice.threads, MEMORY_BYTES);
        let task = BuildTask { input: &input, folder, analyzer, bm25, threads, memory_bytes };
        engines::build_lanner(&task, &LannerVariant::ImpactOrdered).map(|_| ())
    };
    let folder = Cache::new(&options.cache).within("saat").folder(&name, &stamp, build)?;
    let workload = Workload::new(Index::open(&folder)?, queries)?;
    (reproduction.say)(&format!("checking the answers of {}", workload.note()));
    workload.check(choice.threads)?;
    Ok(workload)
}

fn table_1(reproduction: &Reproduction<'_>) -> Result<Findings, BenchError> {
    time_findings(reproduction.saat()?, reproduction.choice.runs)
}

/// Table 1: the time of a query of each variant, the paper's beside ours, and where ours goes.
fn time_findings(workload: &Workload, runs: usize) -> Result<Findings, BenchError> {
    let variants = variants();
    let ways: Vec<How> = variants.iter().map(|variant| variant.how).collect();
    let spreads: Vec<Spread> = workload.times(&ways, runs)?.iter().map(|times| Spread::of(times)).collect();
    let rows: Vec<(&Variant, Spread)> = variants.iter().zip(spreads).collect();
    let ms = |label: &str| rows.iter().find(|(variant, _)| variant.label == label).map_or(f64::NAN, |row| row.1.median);
    let phases = Phases::measure(workload, runs, [rows[0].1.median, ms(BEST), ms(DEFAULT)])?;
    let mut measurements: Vec<Measurement> = rows.iter().map(|row| time_measurement(workload, row)).collect();
    let of_paper = rows.iter().filter(|(variant, _)| variant.paper.is_some());
    let fastest = of_paper.map(|(_, spread)| spread.median).fold(f64::INFINITY, f64::min);
    for (label, to, x) in [
        (DEFAULT, EXHAUSTIVE, ms(DEFAULT) / ms(EXHAUSTIVE)),
        (DEFAULT, "paper", ms(DEFAULT) / fastest),
        (BEST_FUSED, "paper", ms(BEST_FUSED) / fastest),
    ] {
        measurements.push(Measurement::new("ratio", &[("variant", label), ("to", to)]).with("x", x));
    }
    measurements.push(phases.measurement());
    let mut table = time_table(workload, &rows);
    table.notes.insert(0, format!("{}; median, least and most of {runs} runs in turns.", workload.note()));
    table.notes.push(phases.reason(workload));
    Ok(Findings { measurements, tables: vec![table, phases.table()], charts: Vec::new() })
}

fn time_measurement(workload: &Workload, (variant, spread): &(&Variant, Spread)) -> Measurement {
    let row = Measurement::new("time", &[("variant", variant.label)])
        .with("queries", workload.queries() as f64)
        .with("documents", f64::from(workload.documents()))
        .with("postings_a_query", workload.postings())
        .with("ms", spread.median)
        .with("least_ms", spread.least)
        .with("most_ms", spread.most)
        .with("ns_a_posting", spread.median * 1e6 / workload.postings());
    variant.paper.as_ref().map_or(row.clone(), |paper| row.with("paper_ms", paper.ms))
}

fn time_table(workload: &Workload, rows: &[(&Variant, Spread)]) -> Table {
    let columns = [
        "variant",
        "paper ms",
        "ns a posting",
        "reduction",
        "on JASS",
        "ours ms",
        "least",
        "most",
        "ns a posting",
        "reduction",
        "on JASS",
    ];
    let mut table = Table::new("saat/table1: milliseconds a query", 1, &columns);
    let reduction =
        |row: usize, spread: &Spread| format!("{:.0} %", 100.0 * (1.0 - spread.median / rows[row].1.median));
    for (variant, spread) in rows {
        let paper = variant.paper.as_ref().map_or(vec!["–".to_owned(); 4], |paper| {
            let reductions = paper.reductions.map(|percent| format!("{percent} %"));
            [number(paper.ms), number(paper.ns_a_posting())].into_iter().chain(reductions).collect()
        });
        let times = [spread.median, spread.least, spread.most, spread.median * 1e6 / workload.postings()].map(number);
        let reductions = [reduction(0, spread), reduction(4, spread)];
        table.row([variant.label.to_owned()].into_iter().chain(paper).chain(times).chain(reductions).collect());
    }
    table.notes = vec![format!(
        "The paper: 20,000 queries on .GOV2 (25,205,179 documents, {} postings a query by its Table 2), a Core i5 of \
         3.2 GHz. An inlined Algorithm 1 stands for its row of JASS.",
        count(paper_postings() as u64)
    )];
    table
}

/// Where the time of a query goes, in milliseconds.
struct Phases {
    decode: f64,
    decode_and_add: f64,
    baseline: f64,
    best: f64,
    default: f64,
    /// Postings of a query.
    postings: f64,
    /// Postings of a query in lists stored by impact, which are what is decoded.
    ordered_postings: f64,
    stream_bytes: f64,
}

impl Phases {
    fn measure(workload: &Workload, runs: usize, [baseline, best, default]: [f64; 3]) -> Result<Phases, BenchError> {
        let median = |phase| -> Result<f64, BenchError> {
            let times = (0..runs).map(|_| workload.phase_ms(phase)).collect::<Result<Vec<f64>, _>>()?;
            Ok(Spread::of(&times).median)
        };
        Ok(Phases {
            decode: median(Phase::Decode)?,
            decode_and_add: median(Phase::DecodeAndAdd)?,
            baseline,
            best,
            default,
            postings: workload.postings(),
            ordered_postings: workload.ordered_postings()?,
            stream_bytes: workload.stream_bytes()?,
        })
    }

    fn ns(&self, ms: f64) -> f64 {
        ms * 1e6 / self.postings
    }

    fn measurement(&self) -> Measurement {
        Measurement::new("phases", &[])
            .with("decode_ms", self.decode)
            .with("decode_and_add_ms", self.decode_and_add)
            .with("postings_a_query", self.postings)
            .with("ordered_postings_a_query", self.ordered_postings)
            .with("stream_bytes_a_query", self.stream_bytes)
    }

    fn table(&self) -> Table {
        let columns = ["part", "ms", "ns a posting", "million postings/s", "lists read, MB/s"];
        let mut table = Table::new("Where the time goes", 1, &columns);
        for (part, ms) in [
            ("decoding alone", self.decode),
            ("decoding, and adding each posting to its accumulator", self.decode_and_add),
            ("the default: the same, fused, with the sweep for the best", self.default),
            ("the paper's best: pages, Algorithm 2, inline", self.best),
            ("the paper's baseline: pages, Algorithm 1, a call for each posting", self.baseline),
        ] {
            let rates = [self.postings / ms / 1e3, self.stream_bytes / ms / 1e3];
            let cells = [ms, self.ns(ms), rates[0], rates[1]].map(number);
            table.row([part.to_owned()].into_iter().chain(cells).collect());
        }
        table.notes = vec![format!(
            "Lists stored by impact hold {:.1} % of the postings at {} bits a posting; the first two rows leave the \
             others out, set nothing back and select nothing.",
            100.0 * self.ordered_postings / self.postings,
            number(8.0 * self.stream_bytes / self.ordered_postings)
        )];
        table
    }

    /// Why the reduction is not the paper's 37 %, from what was measured.
    fn reason(&self, workload: &Workload) -> String {
        let paper = |row: usize| variants()[row].paper.as_ref().map_or(f64::NAN, variants::PaperRow::ns_a_posting);
        let (saved, left) = (self.ns(self.baseline - self.best), self.ns(self.best));
        let (paper_saved, paper_left) = (paper(0) - paper(5), paper(5));
        let accumulators = bytes(2 * u64::from(workload.documents()));
        let caches = caches().map_or(String::new(), |caches| format!("; the processor's caches: {caches}"));
        format!(
            "From the first row to the paper's best: 37 % there, {:.0} % here. The changes save {} ns a posting of {} there and \
             {} of {} here, so they save {} x as much and leave {} x as much. Of the {} ns left here decoding takes {} \
             and adding {}, the rest is the flags of the pages, the heap and what a query sets up. The accumulators take {accumulators}{caches}.",
            100.0 * saved / (saved + left),
            number(paper_saved),
            number(paper_saved + paper_left),
            number(saved),
            number(saved + left),
            number(saved / paper_saved),
            number(left / paper_left),
            number(left),
            number(self.ns(self.decode)),
            number(self.ns(self.decode_and_add - self.decode)),
        )
    }
}

/// The sizes of the second- and third-level caches, where the operating system tells.
fn caches() -> Option<String> {
    let size = |level: u32| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{level}/size");
        Some(format!("level {level} {}", std::fs::read_to_string(path).ok()?.trim()))
    };
    let known: Vec<String> = [2, 3].into_iter().filter_map(size).collect();
    (!known.is_empty()).then(|| known.join(", "))
}

/// A table of clauses: the name, and what the paper counts.
struct Clauses {
    title: &'static str,
    heap: Heap,
    labels: [&'static str; 4],
    paper: Option<[u64; 4]>,
}

fn table_2(reproduction: &Reproduction<'_>) -> Result<Findings, BenchError> {
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
    let note = "In the paper inserts outnumber updates 500 to 1. With (score, document) compared, a document is in the heap \
                exactly if it is not worse than its worst, which decides between the two clauses here.";
    clauses.findings(reproduction.saat()?, note)
}

fn table_3(reproduction: &Reproduction<'_>) -> Result<Findings, BenchError> {
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
    let note = "The numbers of the paper's Table 3 are illegible in the text at hand, hence the dashes; it says of them \
                that in over 99.9 % of cases a single comparison is made.";
    clauses.findings(reproduction.saat()?, note)
}

impl Clauses {
    fn findings(&self, workload: &Workload, note: &str) -> Result<Findings, BenchError> {
        let ClauseCounts(ours) = workload.clauses(&of_paper(Accumulators::Dynamic, self.heap, true))?;
        let mut table = Table::new(self.title, 1, &["clause", "paper", "share", "ours", "share"]);
        let share = |part: u64, all: &[u64]| format!("{:.4} %", 100.0 * part as f64 / all.iter().sum::<u64>() as f64);
        let mut measurements = Vec::new();
        for (at, label) in self.labels.into_iter().enumerate() {
            let paper =
                self.paper.map_or(["–".to_owned(), "–".to_owned()], |all| [count(all[at]), share(all[at], &all)]);
            let cells = [count(ours[at]), share(ours[at], &ours)];
            table.row([label.to_owned()].into_iter().chain(paper).chain(cells).collect());
            let row = Measurement::new("clause", &[("clause", label)]).with("ours", ours[at] as f64);
            measurements.push(self.paper.map_or(row.clone(), |all| row.with("paper", all[at] as f64)));
        }
        table.notes = vec![format!("{}.", workload.note()), note.to_owned()];
        Ok(Findings { measurements, tables: vec![table], charts: Vec::new() })
    }
}

fn figure_2(reproduction: &Reproduction<'_>) -> Result<Findings, BenchError> {
    thread_findings(reproduction.saat()?, reproduction.choice.threads, reproduction.choice.runs)
}

/// Figure 2: the time of all queries as threads are added, by the default, the paper's best and the paper's slowest.
fn thread_findings(workload: &Workload, threads: usize, runs: usize) -> Result<Findings, BenchError> {
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
            let spread = Spread::of(&(0..runs).map(run).collect::<Result<Vec<f64>, BenchError>>()?);
            points.push((threads as f64, spread.median));
            let speedup = points[0].1 / spread.median;
            let rate = workload.queries() as f64 / spread.median;
            let expected = points[0].1 / threads as f64;
            let times = [spread.median, spread.least, spread.most, expected];
            let cells = times.into_iter().chain([speedup, rate, rate * workload.postings() / 1e6]).map(number);
            table.row([label.to_owned(), threads.to_string()].into_iter().chain(cells).collect());
            let row = Measurement::new("threads", &[("variant", label), ("threads", &threads.to_string())]);
            findings.measurements.push(row.with("seconds", spread.median).with("speedup", speedup));
        }
        let single = points[0].1;
        speedups.push(line(label, points.iter().map(|&(threads, seconds)| (threads, single / seconds))));
        let expected = line("expected", points.iter().map(|&(threads, _)| (threads, single / threads)));
        let (ending, lines) = (label.replace("'s", "").replace(' ', "-"), vec![line("measured", points), expected]);
        findings.charts.push((ending, chart(&format!("Score-at-a-time, {label}: total time"), workload, "s", lines)));
    }
    let ideal = thread_counts(threads).into_iter().map(|threads| (threads as f64, threads as f64));
    speedups.push(line("expected", ideal));
    findings.charts.push(("speedup".to_owned(), chart("Score-at-a-time: speedup", workload, "x", speedups)));
    table.notes = vec![
        format!("{}; the median of {runs} runs; expected is one thread's time divided by the threads.", workload.note()),
        "The paper: with all optimizations 4 threads take 21 % less time than 1 where 75 % are expected, and 3 % less than \
         3; without them, 72 %. It concludes that memory cannot keep up."
            .to_owned(),
    ];
    findings.tables.push(table);
    Ok(findings)
}

/// Every count up to four, then every second one, and the most.
fn thread_counts(most: usize) -> Vec<usize> {
    (1..=most).filter(|&threads| threads <= 4 || threads % 2 == 0 || threads == most).collect()
}

fn line(label: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Line {
    Line { label: label.to_owned(), points: points.into_iter().collect() }
}

fn chart(title: &str, workload: &Workload, unit: &str, lines: Vec<Line>) -> Picture {
    let (title, subtitle) = (title.to_owned(), workload.note());
    let (x_label, unit, is_logarithmic) = ("threads".to_owned(), unit.to_owned(), false);
    Picture::Lines(LineChart { title, subtitle, x_label, unit, is_logarithmic, lines })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collection::{synthetic_documents, synthetic_queries};

    /// Thousands of made-up documents, so that frequent words have lists by impact.
    fn workload(folder: &Path) -> Workload {
        let input = folder.join("documents.jsonl");
        let line = |(id, title, text)| format!("{}\n", serde_json::json!({ "id": id, "title": title, "text": text }));
        std::fs::write(&input, synthetic_documents(3000).into_iter().map(line).collect::<String>()).unwrap();
        let (index, analyzer) = (folder.join("index"), Analyzer::parse("simple").unwrap());
        let bm25 = Bm25 { k1: 0.9, b: 0.4 };
        let task = BuildTask { input: &input, folder: &index, analyzer, bm25, threads: 1, memory_bytes: MEMORY_BYTES };
        engines::build_lanner(&task, &LannerVariant::ImpactOrdered).unwrap();
        let queries = [synthetic_queries(30), vec!["unknown".to_owned()]].concat();
        Workload::new(Index::open(&index).unwrap(), queries).unwrap()
    }

    #[test]
    fn every_table_is_made_of_checked_answers() {
        let folder = tempfile::tempdir().unwrap();
        let workload = workload(folder.path());
        workload.check(2).unwrap();
        assert_eq!(workload.queries(), 30, "a query without a known word is left out");
        assert!(workload.ordered_postings().unwrap() > 0.0, "some lists are stored by impact");

        let times = time_findings(&workload, 1).unwrap();
        assert_eq!(times.tables[0].rows.len(), variants().len());
        assert_eq!(times.tables[0].rows[5][..5], [BEST, "112", "5.91", "37 %", "22 %"]);
        assert!(times.tables[0].notes.iter().any(|note| note.contains("37 % there")));
        let claims = entries().remove(0).targets;
        let is_measured = |target: &Target| times.measurements.iter().any(|row| row.is(&target.kind, &target.labels));
        assert!(claims.iter().all(is_measured));

        let threads = thread_findings(&workload, 2, 1).unwrap();
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
