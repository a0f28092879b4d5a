//! Build time, peak memory and index size.

use super::{Context, Findings};
use crate::child::{ChildReport, ChildTask, build_in_child, can_pin};
use crate::engines::{parts, reader_of};
use crate::error::{BenchError, Result};
use crate::plot::{Bar, Chart, Group};
use crate::result::Measurement;
use crate::statistics::Spread;
use crate::suite::{BuildPart, Builder, QueryEngine};
use crate::table::{Table, bytes, count};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

/// Builds to measure.
pub struct Builds<'a> {
    pub context: Context<'a>,
    pub part: &'a BuildPart,
    /// The documents.
    pub input: &'a Path,
    /// The folder for indexes.
    pub temporary: &'a Path,
}

/// One index for each engine that reads it.
pub type Indexes = BTreeMap<QueryEngine, PathBuf>;

struct Built<'a> {
    builder: &'a Builder,
    folder: PathBuf,
    runs: Vec<ChildReport>,
    parts: Vec<(String, u64)>,
}

impl Built<'_> {
    fn reader(&self) -> QueryEngine {
        reader_of(self.builder.engine)
    }

    fn bytes(&self) -> u64 {
        self.parts.iter().map(|(_, bytes)| bytes).sum()
    }

    fn spread(&self, value: fn(&ChildReport) -> f64) -> Spread {
        Spread::of(self.runs.iter().map(value))
    }

    fn wall_s(&self) -> Spread {
        self.spread(|run| run.wall_s)
    }

    fn cpu_s(&self) -> Spread {
        self.spread(|run| run.usage.user_s + run.usage.system_s)
    }
}

impl Builds<'_> {
    /// Builds with every engine as often as the suite says, and keeps one index for each reader.
    pub fn run(&self) -> Result<(Findings, Indexes)> {
        let builders = &self.part.engines;
        let folder = |at: usize| self.temporary.join(format!("index-{at}"));
        let mut built: Vec<Built<'_>> = (0..builders.len())
            .map(|at| Built { builder: &builders[at], folder: folder(at), runs: Vec::new(), parts: Vec::new() })
            .collect();
        for repetition in 0..self.part.repetitions {
            // The engines alternate, and another one starts each time, so that other load affects all of them.
            for turn in 0..built.len() {
                let at = (turn + repetition) % built.len();
                let report = self.build(&built[at])?;
                built[at].runs.push(report);
            }
        }
        let mut indexes = Indexes::new();
        for one in &mut built {
            one.parts = parts(one.reader(), &one.folder)?;
            indexes.entry(one.reader()).or_insert_with(|| one.folder.clone());
        }
        Ok((self.findings(&built), indexes))
    }

    fn build(&self, one: &Built<'_>) -> Result<ChildReport> {
        if one.folder.exists() {
            std::fs::remove_dir_all(&one.folder).map_err(BenchError::io(&one.folder))?;
        }
        let collection = &self.context.suite.collection;
        let task = ChildTask {
            engine: one.builder.engine,
            input: self.input.to_owned(),
            folder: one.folder.clone(),
            analyzer: collection.analyzer.clone(),
            bm25: collection.bm25(),
            threads: one.builder.threads,
            memory_bytes: self.part.memory_bytes(),
            codecs: self.part.codecs,
        };
        build_in_child(&self.context.options.program, one.builder.pinned, &task)
    }

    fn findings(&self, built: &[Built<'_>]) -> Findings {
        let baseline = built.iter().find(|one| one.builder.baseline);
        let times: Vec<Measurement> = built.iter().map(|one| self.measurement(one, baseline)).collect();
        let sizes = built.iter().flat_map(|one| {
            let engine = one.reader();
            one.parts.iter().map(move |(part, bytes)| {
                Measurement::new("size", &[("engine", &engine), ("part", part)]).with("bytes", *bytes as f64)
            })
        });
        let mut seen = HashSet::new();
        let sizes = sizes.filter(|size| seen.insert(size.labels.clone()));
        let mut findings = Findings::new(times.iter().cloned().chain(sizes).collect());
        findings = findings.table(self.time_table(&times)).table(size_table(built)).chart("build", time_chart(&times));
        if built.len() > 1 { findings.chart("size", size_chart(built)) } else { findings }
    }

    fn measurement(&self, one: &Built<'_>, baseline: Option<&Built<'_>>) -> Measurement {
        let (wall_s, cpu_s) = (one.wall_s(), one.cpu_s());
        let peak_bytes = one.spread(|run| run.usage.peak_bytes as f64).most;
        let Builder { engine, threads, pinned, .. } = one.builder;
        let is_pinned = *pinned && can_pin();
        let documents = one.runs.last().map_or(0, |run| run.documents) as f64;
        Measurement::new("build", &[("engine", engine), ("threads", threads), ("pinned", &is_pinned)])
            .with("runs", one.runs.len() as f64)
            .with("documents", documents)
            .with_spread(["wall_s", "wall_least_s", "wall_most_s"], wall_s)
            .with("processor_s", cpu_s.median)
            .with("documents_a_second", documents / wall_s.median)
            .with("peak_bytes", peak_bytes)
            .with("peak_ratio", peak_bytes / self.part.memory_bytes() as f64)
            .with("index_bytes", one.bytes() as f64)
            .with("ratio", baseline.map(|baseline| wall_s.median / baseline.wall_s().median))
            .with("processor_ratio", baseline.map(|baseline| cpu_s.median / baseline.cpu_s().median))
            .with("size_ratio", baseline.map(|baseline| one.bytes() as f64 / baseline.bytes() as f64))
    }

    fn time_table(&self, rows: &[Measurement]) -> Table {
        let labels = ["engine", "threads", "pinned"];
        let figures = ["median s", "least", "most", "x baseline", "CPU s", "documents/s", "peak memory", "index"];
        let mut table = Table::new("Building the index", 3, &[&labels[..], &figures].concat());
        for row in rows {
            let values = ["wall_s", "wall_least_s", "wall_most_s", "ratio", "processor_s", "documents_a_second"];
            let sizes = ["peak_bytes", "index_bytes"].map(|name| bytes(row.value(name) as u64));
            let mut cells = row.cells(&labels, &values);
            cells[2] = if row.label("pinned") == "true" { "yes" } else { "no" }.to_owned();
            table.row(cells.into_iter().chain(sizes));
        }
        let baseline = self.part.engines.iter().find(|builder| builder.baseline);
        let baseline = baseline.map_or("none".to_owned(), |builder| builder.engine.to_string());
        let (documents, analyzer) = (rows[0].count("documents"), &self.context.suite.collection.analyzer);
        let BuildPart { memory, repetitions, .. } = self.part;
        table.notes(&[&format!(
            "{documents} documents, analyzer {analyzer}, {memory} of memory, {repetitions} alternating runs each; \
             baseline: {baseline}."
        )])
    }
}

/// Returns the first index of each reader.
fn one_of_each<'a, 'b>(built: &'a [Built<'b>]) -> Vec<&'a Built<'b>> {
    let mut seen = BTreeSet::new();
    built.iter().filter(|one| seen.insert(one.reader())).collect()
}

fn size_table(built: &[Built<'_>]) -> Table {
    let mut table = Table::new("Parts of the index", 2, &["engine", "part", "bytes"]);
    for one in one_of_each(built) {
        for (part, bytes) in one.parts.iter().chain([&("all".to_owned(), one.bytes())]) {
            table.row([one.reader().to_string(), part.clone(), count(*bytes)]);
        }
    }
    table
}

fn time_chart(rows: &[Measurement]) -> Chart {
    let group = |row: &Measurement| {
        let (engine, threads) = (row.label("engine"), row.label("threads"));
        let series = usize::from(!engine.starts_with("lanner"));
        let bar = Bar::with_range(series, row, ["wall_s", "wall_least_s", "wall_most_s"]);
        Group::new(format!("{engine}, {threads} thread{}", if threads == "1" { "" } else { "s" }), [bar])
    };
    let chart = Chart::new("Building the index", "median seconds, minimum to maximum; shorter is better", "s");
    chart.series(&["lanner", "tantivy"]).groups(rows.iter().map(group))
}

fn size_chart(built: &[Built<'_>]) -> Chart {
    let group = |one: &Built<'_>| {
        let series = usize::from(one.reader() != QueryEngine::Lanner);
        Group::new(one.reader().to_string(), [Bar::new(series, one.bytes() as f64 / 1e6)])
    };
    let chart = Chart::new("Size of the index", "megabytes of the whole folder; shorter is better", "MB");
    chart.series(&["lanner", "tantivy"]).groups(one_of_each(built).into_iter().map(group))
}
