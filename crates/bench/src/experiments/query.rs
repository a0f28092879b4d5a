//! How fast queries are answered, one at a time and many at once, after the answers were found to be right.

use super::Findings;
use super::build::Indexes;
use crate::agreement;
use crate::engines::{self, Engine};
use crate::error::BenchError;
use crate::plot::{Bar, Chart, Group, Picture};
use crate::result::Measurement;
use crate::statistics::{Spread, Summary};
use crate::suite::{QueryEngine, QueryPart, Suite};
use crate::table::{Table, number};
use lanner::{Mode, Searcher};
use lanner_index::text::Analyzer;
use lanner_index::weight::Bm25;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// A sample of a query log.
pub struct Log {
    /// Its name.
    pub name: String,
    /// Its queries.
    pub queries: Vec<String>,
}

/// Queries to measure.
pub struct Queries<'a> {
    /// The suite.
    pub suite: &'a Suite,
    /// Its part about queries.
    pub part: &'a QueryPart,
    /// Its documents.
    pub input: &'a Path,
    /// The indexes.
    pub indexes: &'a Indexes,
    /// The query logs.
    pub logs: &'a [Log],
    /// What turns text into terms.
    pub analyzer: &'a Analyzer,
}

type Opened = Vec<(QueryEngine, Box<dyn Engine>)>;

impl Queries<'_> {
    /// Checks the answers, then measures.
    pub fn run(&self) -> Result<Findings, BenchError> {
        let engines: Opened = self.part.engines.iter().map(|&engine| self.open(engine)).collect::<Result<_, _>>()?;
        let mut findings = self.agree(&engines)?;
        findings.extend(self.one_at_a_time(&engines)?);
        if !self.part.threads.is_empty() {
            findings.extend(self.many_at_once(&engines)?);
        }
        Ok(findings)
    }

    fn open(&self, engine: QueryEngine) -> Result<(QueryEngine, Box<dyn Engine>), BenchError> {
        let missing = || BenchError::Suite {
            name: self.suite.name.clone(),
            what: format!("[query] asks {engine}, but [build] builds no index of it"),
        };
        let folder = self.indexes.get(&engine.index()).ok_or_else(missing)?;
        Ok((engine, engines::open(engine, folder, self.analyzer)?))
    }

    /// Our answers against the oracle's, then the peers' against ours.
    fn agree(&self, engines: &Opened) -> Result<Findings, BenchError> {
        let mut findings = Findings::default();
        let mut table = Table::new("Agreement of the answers", 2, &["log", "claim", "queries", "share"]);
        if let Some(folder) = self.indexes.get(&QueryEngine::Lanner) {
            let collection = &self.suite.collection;
            let bm25 = Bm25 { k1: collection.k1, b: collection.b };
            let oracle = agreement::oracle_of(self.input, self.analyzer, bm25)?;
            let searcher = Searcher::open(folder)?;
            for log in self.logs {
                let checked = spread_over(&log.queries, self.part.checked.unwrap_or(log.queries.len()));
                agreement::check(&searcher, &oracle, &checked, &self.part.modes, &self.part.k)?;
                let claim = "lanner gives the oracle's hits, scores and order, every mode and k".to_owned();
                let queries = format!("{} of {}", checked.len(), log.queries.len());
                table.row(vec![log.name.clone(), claim, queries, "1".to_owned()]);
                let labels = [("log", log.name.as_str()), ("engine", "lanner"), ("with", "oracle")];
                findings.measurements.push(Measurement::new("agreement", &labels).with("share", 1.0));
            }
        }
        self.overlaps(engines, &mut findings, &mut table)?;
        table.notes = vec![
            "Peers break ties and round in their own way: what is stated for them is the mean share of \
                            documents that both answers hold."
                .to_owned(),
        ];
        findings.tables.push(table);
        Ok(findings)
    }

    fn overlaps(&self, engines: &Opened, findings: &mut Findings, table: &mut Table) -> Result<(), BenchError> {
        let Some((_, ours)) = engines.iter().find(|(engine, _)| *engine == QueryEngine::Lanner) else {
            return Ok(());
        };
        for (peer_name, peer) in engines.iter().filter(|(engine, _)| *engine == QueryEngine::Tantivy) {
            for log in self.logs {
                for (mode, k) in self.cells() {
                    let share = agreement::overlap(&**ours, &**peer, &log.queries, mode, k)?;
                    let (mode, k, peer) = (mode.to_string(), k.to_string(), peer_name.to_string());
                    let claim = format!("{peer} and lanner, {mode}, k {k}");
                    let queries = log.queries.len().to_string();
                    table.row(vec![log.name.clone(), claim, queries, format!("{share:.4}")]);
                    let labels =
                        [("log", &*log.name), ("engine", &peer), ("with", "lanner"), ("mode", &mode), ("k", &k)];
                    findings.measurements.push(Measurement::new("agreement", &labels).with("share", share));
                }
            }
        }
        Ok(())
    }

    fn cells(&self) -> impl Iterator<Item = (Mode, usize)> {
        self.part.modes.iter().flat_map(|&mode| self.part.k.iter().map(move |&k| (mode, k)))
    }

    fn one_at_a_time(&self, engines: &Opened) -> Result<Findings, BenchError> {
        let mut findings = Findings::default();
        for log in self.logs {
            let mut rows = Vec::new();
            for (mode, k) in self.cells() {
                let runs = self.timed_runs(engines, log, mode, k)?;
                let means: Vec<f64> = runs.iter().map(|runs| median_of(runs, |run| run.mean)).collect();
                let (peer, peer_p99) = (means.last().copied(), runs.last().map(|runs| median_of(runs, |run| run.p99)));
                for ((engine, _), runs) in engines.iter().zip(&runs) {
                    let baseline = (peer.unwrap_or(f64::NAN), peer_p99.unwrap_or(f64::NAN));
                    rows.push(query_measurement((log, mode, k, *engine), runs, baseline));
                }
            }
            findings.tables.push(self.time_table(log, &rows));
            let chart = Picture::Bars(self.time_chart(log, &rows));
            findings.charts.push((format!("query-{}", log.name), chart));
            findings.measurements.extend(rows);
        }
        Ok(findings)
    }

    /// The times of each engine's runs in microseconds, summed up run by run; the engines take turns.
    fn timed_runs(&self, engines: &Opened, log: &Log, mode: Mode, k: usize) -> Result<Vec<Vec<Summary>>, BenchError> {
        let mut runs = vec![Vec::new(); engines.len()];
        for repetition in 0..self.part.warm_up + self.part.repetitions {
            for turn in 0..engines.len() {
                let at = (turn + repetition) % engines.len();
                let mut times = Vec::with_capacity(log.queries.len());
                for text in &log.queries {
                    let start = Instant::now();
                    let answer = engines[at].1.answer(text, mode, k)?;
                    times.push(start.elapsed().as_nanos() as f64 / 1e3);
                    std::hint::black_box(answer);
                }
                if repetition >= self.part.warm_up {
                    runs[at].push(Summary::of(&times));
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
        for row in rows {
            let values = ["mean_us", "mean_least_us", "mean_most_us", "p50_us", "p95_us", "p99_us", "queries_a_second"];
            let labels = ["mode", "k", "engine"].map(|name| row.label(name).to_owned());
            let ratios = ["ratio", "p99_ratio"];
            let values = values.iter().chain(&ratios).map(|name| number(row.value(name)));
            table.row(labels.into_iter().chain(values).collect());
        }
        let last = self.part.engines.last().map_or(String::new(), QueryEngine::to_string);
        table.notes = vec![format!(
            "{} queries, from text to external ids, exact; medians of {} runs after {} to warm up, the engines in turns; \
             x: ratio to {last}.",
            log.queries.len(),
            self.part.repetitions,
            self.part.warm_up
        )];
        table
    }

    fn time_chart(&self, log: &Log, rows: &[Measurement]) -> Chart {
        let groups = self.cells().map(|(mode, k)| {
            let of_cell =
                rows.iter().filter(|row| row.label("mode") == mode.to_string() && row.label("k") == k.to_string());
            let bars = of_cell.map(|row| Bar {
                series: self.part.engines.iter().position(|e| e.to_string() == row.label("engine")).unwrap_or(0),
                value: row.value("mean_us"),
                range: Some((row.value("mean_least_us"), row.value("mean_most_us"))),
            });
            Group { label: format!("{} k {k}", mode.to_string().to_uppercase()), bars: bars.collect() }
        });
        Chart {
            title: format!("Time of a query, {} log", log.name),
            subtitle: "mean microseconds, one thread, from text to ids; shorter is better".to_owned(),
            series: self.part.engines.iter().map(QueryEngine::to_string).collect(),
            unit: "us".to_owned(),
            groups: groups.collect(),
        }
    }

    /// Throughput of several threads that answer at the same time, for the smallest k.
    fn many_at_once(&self, engines: &Opened) -> Result<Findings, BenchError> {
        let k = self.part.k.iter().copied().min().unwrap_or(10);
        let names = ["log", "mode", "engine", "threads"];
        let columns = [&names[..], &["queries/s", "least", "most"]].concat();
        let title = format!("Queries a second of threads that answer at the same time, k {k}");
        let mut findings = Findings::default();
        let mut table = Table::new(title, names.len(), &columns);
        let per_mode = |log| self.part.modes.iter().map(move |&mode| (log, mode));
        for (log, mode) in self.logs.iter().flat_map(per_mode) {
            for &threads in &self.part.threads {
                for (engine, spread) in self.throughputs(engines, log, (mode, k), threads)? {
                    let labels = [log.name.clone(), mode.to_string(), engine.to_string(), threads.to_string()];
                    let pairs: Vec<(&str, &str)> = names.into_iter().zip(labels.iter().map(String::as_str)).collect();
                    let measurement = Measurement::new("throughput", &pairs)
                        .with("k", k as f64)
                        .with("queries_a_second", spread.median)
                        .with("least", spread.least)
                        .with("most", spread.most);
                    findings.measurements.push(measurement);
                    let cells = [spread.median, spread.least, spread.most].map(number);
                    table.row(labels.into_iter().chain(cells).collect());
                }
            }
        }
        findings.tables.push(table);
        Ok(findings)
    }

    /// Queries a second of each engine with so many threads, over all repetitions; the engines take turns.
    fn throughputs(
        &self,
        engines: &Opened,
        log: &Log,
        question: (Mode, usize),
        threads: usize,
    ) -> Result<Vec<(QueryEngine, Spread)>, BenchError> {
        let mut runs = vec![Vec::new(); engines.len()];
        for _ in 0..self.part.repetitions {
            for ((_, engine), runs) in engines.iter().zip(&mut runs) {
                runs.push(throughput(&**engine, &log.queries, question, threads)?);
            }
        }
        Ok(engines.iter().zip(&runs).map(|((engine, _), runs)| (*engine, Spread::of(runs))).collect())
    }
}

/// Up to `count` queries spread evenly over all.
fn spread_over(queries: &[String], count: usize) -> Vec<String> {
    let count = count.min(queries.len());
    (0..count).map(|number| queries[number * queries.len() / count].clone()).collect()
}

fn median_of(runs: &[Summary], value: fn(&Summary) -> f64) -> f64 {
    Spread::of(&runs.iter().map(value).collect::<Vec<_>>()).median
}

fn query_measurement(
    (log, mode, k, engine): (&Log, Mode, usize, QueryEngine),
    runs: &[Summary],
    (peer_mean, peer_p99): (f64, f64),
) -> Measurement {
    let mean = Spread::of(&runs.iter().map(|run| run.mean).collect::<Vec<_>>());
    let (mode, k, engine) = (mode.to_string(), k.to_string(), engine.to_string());
    let labels = [("log", &*log.name), ("mode", &mode), ("k", &k), ("engine", &engine)];
    let p99 = median_of(runs, |run| run.p99);
    let measurement = Measurement::new("query", &labels)
        .with("queries", log.queries.len() as f64)
        .with("mean_us", mean.median)
        .with("mean_least_us", mean.least)
        .with("mean_most_us", mean.most)
        .with("p50_us", median_of(runs, |run| run.p50))
        .with("p95_us", median_of(runs, |run| run.p95))
        .with("p99_us", p99)
        .with("queries_a_second", 1e6 / mean.median)
        .with("ratio", mean.median / peer_mean)
        .with("p99_ratio", p99 / peer_p99);
    match runs.iter().map(|run| run.p999).collect::<Option<Vec<f64>>>() {
        Some(values) => measurement.with("p999_us", Spread::of(&values).median),
        None => measurement,
    }
}

/// Queries a second of so many threads that take them from one log.
fn throughput(
    engine: &dyn Engine,
    queries: &[String],
    (mode, k): (Mode, usize),
    threads: usize,
) -> Result<f64, BenchError> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<(), BenchError> {
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
