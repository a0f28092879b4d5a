//! Query time and throughput, after the answers were checked.

use super::Findings;
use super::build::Indexes;
use crate::agreement::{self, Check, EQUALS_ORACLE};
use crate::engines::{self, Engine};
use crate::error::{BenchError, Result};
use crate::plot::{Bar, Chart, Group};
use crate::query_log::spread;
use crate::result::{Label, Measurement};
use crate::statistics::{Spread, Summary, timed};
use crate::suite::{QueryEngine, QueryPart, Suite};
use crate::table::Table;
use lanner::{Mode, Searcher};
use lanner_index::text::Analyzer;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// A sample of a query log.
pub struct Log {
    pub name: String,
    pub queries: Vec<String>,
}

/// Queries to measure.
pub struct Queries<'a> {
    pub suite: &'a Suite,
    pub part: &'a QueryPart,
    /// The documents.
    pub input: &'a Path,
    pub indexes: &'a Indexes,
    pub logs: &'a [Log],
    pub analyzer: &'a Analyzer,
}

type Opened = Vec<(QueryEngine, Box<dyn Engine>)>;

/// A mode and a number of hits.
type Cell = (Mode, usize);

impl Queries<'_> {
    /// Checks the answers, then measures.
    pub fn run(&self) -> Result<Findings> {
        let engines: Opened = self.part.engines.iter().map(|&engine| self.open(engine)).collect::<Result<_, _>>()?;
        let mut findings = self.check(&engines)?;
        findings.extend(self.single_queries(&engines)?);
        if !self.part.threads.is_empty() {
            findings.extend(self.concurrent_queries(&engines)?);
        }
        Ok(findings)
    }

    fn open(&self, engine: QueryEngine) -> Result<(QueryEngine, Box<dyn Engine>)> {
        let missing = || BenchError::Suite {
            name: self.suite.name.clone(),
            what: format!("[query] has the engine {engine}, but [build] does not build its index"),
        };
        let folder = self.indexes.get(&engine.index()).ok_or_else(missing)?;
        Ok((engine, engines::open(engine, folder, self.analyzer)?))
    }

    /// Compares Lanner's answers with the oracle's, then those of the peers with Lanner's.
    fn check(&self, engines: &Opened) -> Result<Findings> {
        let (mut findings, mut table) = (Findings::default(), agreement::table("Agreement of the answers"));
        if let Some(folder) = self.indexes.get(&QueryEngine::Lanner) {
            let oracle = agreement::oracle_of(self.input, self.analyzer, self.suite.collection.bm25(), None)?;
            let searcher = Searcher::open(folder)?;
            let check = Check { searcher: &searcher, oracle: &oracle, modes: &self.part.modes, k: &self.part.k };
            for Log { name, queries } in self.logs {
                let checked = spread(queries, self.part.checked.unwrap_or(queries.len()));
                check.run(&checked)?;
                agreement::equal_row(&mut table, name, EQUALS_ORACLE, (checked.len(), queries.len()));
                let labels: [Label<'_>; 3] = [("log", name), ("engine", &"lanner"), ("with", &"oracle")];
                findings.measurements.push(Measurement::new("agreement", &labels).with("share", 1.0));
            }
        }
        self.overlaps(engines, &mut findings, &mut table)?;
        Ok(findings.table(table))
    }

    fn overlaps(&self, engines: &Opened, findings: &mut Findings, table: &mut Table) -> Result<()> {
        let Some((_, lanner)) = engines.iter().find(|(engine, _)| *engine == QueryEngine::Lanner) else {
            return Ok(());
        };
        for (peer_name, peer) in engines.iter().filter(|(engine, _)| *engine == QueryEngine::Tantivy) {
            for (log, (mode, k)) in self.logs.iter().flat_map(|log| self.cells().map(move |cell| (log, cell))) {
                let share = agreement::overlap(&**lanner, &**peer, &log.queries, (mode, k))?;
                let labels: [Label<'_>; 5] =
                    [("log", &log.name), ("engine", peer_name), ("with", &"lanner"), ("mode", &mode), ("k", &k)];
                let row = Measurement::new("agreement", &labels).with("share", share);
                agreement::peer_row(table, &row, log.queries.len());
                findings.measurements.push(row);
            }
        }
        Ok(())
    }

    fn cells(&self) -> impl Iterator<Item = Cell> {
        self.part.modes.iter().flat_map(|&mode| self.part.k.iter().map(move |&k| (mode, k)))
    }

    fn single_queries(&self, engines: &Opened) -> Result<Findings> {
        let mut findings = Findings::default();
        for log in self.logs {
            let mut rows = Vec::new();
            for cell in self.cells() {
                let runs = self.timed_runs(engines, log, cell)?;
                let baseline = runs.last().map_or(&[][..], Vec::as_slice);
                for ((engine, _), runs) in engines.iter().zip(&runs) {
                    rows.push(query_measurement((log, cell, *engine), runs, baseline));
                }
            }
            findings = findings
                .table(self.time_table(log, &rows))
                .chart(format!("query-{}", log.name), self.time_chart(log, &rows));
            findings.measurements.extend(rows);
        }
        Ok(findings)
    }

    /// Returns a summary, in microseconds, of each run of each engine; the engines alternate.
    fn timed_runs(&self, engines: &Opened, log: &Log, (mode, k): Cell) -> Result<Vec<Vec<Summary>>> {
        let mut runs = vec![Vec::new(); engines.len()];
        for repetition in 0..self.part.warm_up + self.part.repetitions {
            for turn in 0..engines.len() {
                let at = (turn + repetition) % engines.len();
                let time = |text: &String| Ok(timed(|| engines[at].1.answer(text, mode, k))?.1 * 1e6);
                let times = log.queries.iter().map(time).collect::<Result<Vec<f64>>>()?;
                if repetition >= self.part.warm_up {
                    runs[at].push(Summary::of(times));
                }
            }
        }
        Ok(runs)
    }

    fn time_table(&self, log: &Log, rows: &[Measurement]) -> Table {
        let title = format!("{}: time of a query in microseconds, one thread", log.name);
        let columns =
            ["mode", "k", "engine", "mean", "least run", "most", "p50", "p95", "p99", "queries/s", "x mean", "x p99"];
        let mut table = Table::new(title, 3, &columns);
        let times = ["mean_us", "mean_least_us", "mean_most_us", "p50_us", "p95_us", "p99_us"];
        let values = [&times[..], &["queries_a_second", "ratio", "p99_ratio"]].concat();
        rows.iter().for_each(|row| table.row(row.cells(&columns[..3], &values)));
        let last = self.part.engines.last().map_or(String::new(), QueryEngine::to_string);
        let (queries, QueryPart { repetitions, warm_up, .. }) = (log.queries.len(), self.part);
        table.notes(&[&format!(
            "{queries} queries, from text to external ids, exact; medians of {repetitions} runs, after {warm_up} for \
             warm-up, engines alternating; x: ratio to {last}."
        )])
    }

    fn time_chart(&self, log: &Log, rows: &[Measurement]) -> Chart {
        let engines: Vec<String> = self.part.engines.iter().map(QueryEngine::to_string).collect();
        let groups = self.cells().map(|(mode, k)| {
            let is_cell = |row: &&Measurement| row.label("mode") == mode.to_string() && row.label("k") == k.to_string();
            let bar = |row: &Measurement| {
                let series = engines.iter().position(|engine| engine == row.label("engine")).unwrap_or(0);
                Bar::with_range(series, row, ["mean_us", "mean_least_us", "mean_most_us"])
            };
            Group::new(format!("{} k {k}", mode.to_string().to_uppercase()), rows.iter().filter(is_cell).map(bar))
        });
        let subtitle = "mean microseconds, one thread, from text to ids; shorter is better";
        Chart::new(format!("Time of a query, {} log", log.name), subtitle, "us").series(&engines).groups(groups)
    }

    /// Measures the throughput of several threads for the smallest k.
    fn concurrent_queries(&self, engines: &Opened) -> Result<Findings> {
        let k = self.part.k.iter().copied().min().unwrap_or(10);
        const RATE: [&str; 3] = ["queries_a_second", "least", "most"];
        let columns = ["log", "mode", "engine", "threads", "queries/s", "least", "most"];
        let title = format!("Queries per second of concurrent threads, k {k}");
        let (mut rows, mut table) = (Vec::new(), Table::new(title, 4, &columns));
        for (log, &mode) in self.logs.iter().flat_map(|log| self.part.modes.iter().map(move |mode| (log, mode))) {
            for &threads in &self.part.threads {
                let spreads = self.throughputs(engines, log, (mode, k), threads)?;
                for ((engine, _), spread) in engines.iter().zip(spreads) {
                    let labels: [Label<'_>; 4] =
                        [("log", &log.name), ("mode", &mode), ("engine", engine), ("threads", &threads)];
                    let row = Measurement::new("throughput", &labels).with("k", k as f64);
                    let row = row.with_spread(RATE, spread);
                    table.row(row.cells(&columns[..4], &RATE));
                    rows.push(row);
                }
            }
        }
        Ok(Findings::new(rows).table(table))
    }

    /// Returns the queries per second of each engine; the engines alternate.
    fn throughputs(&self, engines: &Opened, log: &Log, cell: Cell, threads: usize) -> Result<Vec<Spread>> {
        let mut runs = vec![Vec::new(); engines.len()];
        for _ in 0..self.part.repetitions {
            for ((_, engine), runs) in engines.iter().zip(&mut runs) {
                runs.push(throughput(&**engine, &log.queries, cell, threads)?);
            }
        }
        Ok(runs.into_iter().map(Spread::of).collect())
    }
}

fn median_of(runs: &[Summary], value: fn(&Summary) -> f64) -> f64 {
    Spread::of(runs.iter().map(value)).median
}

fn query_measurement(
    (log, (mode, k), engine): (&Log, Cell, QueryEngine),
    runs: &[Summary],
    baseline: &[Summary],
) -> Measurement {
    let mean = Spread::of(runs.iter().map(|run| run.mean));
    let labels: [Label<'_>; 4] = [("log", &log.name), ("mode", &mode), ("k", &k), ("engine", &engine)];
    let p99 = median_of(runs, |run| run.p99);
    let p999 = runs.iter().map(|run| run.p999).collect::<Option<Vec<f64>>>();
    Measurement::new("query", &labels)
        .with("queries", log.queries.len() as f64)
        .with_spread(["mean_us", "mean_least_us", "mean_most_us"], mean)
        .with("p50_us", median_of(runs, |run| run.p50))
        .with("p95_us", median_of(runs, |run| run.p95))
        .with("p99_us", p99)
        .with("queries_a_second", 1e6 / mean.median)
        .with("ratio", mean.median / median_of(baseline, |run| run.mean))
        .with("p99_ratio", p99 / median_of(baseline, |run| run.p99))
        .with("p999_us", p999.map(|values| Spread::of(values).median))
}

/// Returns the queries per second of threads that take queries from one log. The threads are started here, not taken
/// from a pool, so that their number is exact.
fn throughput(engine: &dyn Engine, queries: &[String], (mode, k): Cell, threads: usize) -> Result<f64> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<()> {
        while let Some(text) = queries.get(next.fetch_add(1, Ordering::Relaxed)) {
            std::hint::black_box(engine.answer(text, mode, k)?);
        }
        Ok(())
    };
    let start = Instant::now();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })?;
    Ok(queries.len() as f64 / start.elapsed().as_secs_f64())
}
