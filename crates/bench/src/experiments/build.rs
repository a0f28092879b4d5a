//! How fast indexes are built, how much memory that takes, how large they are.

use super::Findings;
use crate::child::{ChildArguments, ChildReport, build_in_child, can_pin};
use crate::engines::{parts, reader_of};
use crate::error::BenchError;
use crate::plot::{Bar, Chart, Group, Picture};
use crate::result::Measurement;
use crate::statistics::Spread;
use crate::suite::{BuildPart, Builder, CollectionPart, QueryEngine};
use crate::table::{Table, bytes, number};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Builds to measure.
pub struct Builds<'a> {
    /// How its engines see the documents.
    pub collection: &'a CollectionPart,
    /// What to build.
    pub part: &'a BuildPart,
    /// The documents.
    pub input: &'a Path,
    /// Where indexes go.
    pub temporary: &'a Path,
    /// This program, which builds in processes of its own.
    pub program: &'a Path,
}

/// The folder of one index for each engine that can read it.
pub type Indexes = BTreeMap<QueryEngine, PathBuf>;

struct Built<'a> {
    builder: &'a Builder,
    folder: PathBuf,
    runs: Vec<ChildReport>,
    parts: Vec<(String, u64)>,
}

impl Builds<'_> {
    /// Builds everything as often as the suite says, the engines in turns, and keeps one index for each reader.
    pub fn run(&self) -> Result<(Findings, Indexes), BenchError> {
        let builders = &self.part.engines;
        let place = |at: usize| self.temporary.join(format!("index-{at}"));
        let mut built: Vec<Built<'_>> = (0..builders.len())
            .map(|at| Built { builder: &builders[at], folder: place(at), runs: Vec::new(), parts: Vec::new() })
            .collect();
        for repetition in 0..self.part.repetitions {
            // Another one begins each time, so that what the machine does meanwhile hits all alike.
            for turn in 0..built.len() {
                let at = (turn + repetition) % built.len();
                let report = self.build(&built[at])?;
                built[at].runs.push(report);
            }
        }
        for one in &mut built {
            one.parts = parts(reader_of(one.builder.engine), &one.folder)?;
        }
        let mut indexes = Indexes::new();
        for one in &built {
            indexes.entry(reader_of(one.builder.engine)).or_insert_with(|| one.folder.clone());
        }
        Ok((self.findings(&built), indexes))
    }

    fn build(&self, one: &Built<'_>) -> Result<ChildReport, BenchError> {
        if one.folder.exists() {
            std::fs::remove_dir_all(&one.folder).map_err(BenchError::io(&one.folder))?;
        }
        let collection = self.collection;
        let arguments = ChildArguments {
            engine: one.builder.engine,
            input: self.input.to_owned(),
            folder: one.folder.clone(),
            analyzer: collection.analyzer.clone(),
            k1: collection.k1,
            b: collection.b,
            threads: one.builder.threads,
            memory_bytes: self.part.memory_bytes(),
            codecs: self.part.codecs,
        };
        build_in_child(self.program, one.builder, &arguments)
    }

    fn findings(&self, built: &[Built<'_>]) -> Findings {
        let baseline = built.iter().find(|one| one.builder.baseline);
        let measurements: Vec<Measurement> = built.iter().map(|one| self.measurement(one, baseline)).collect();
        let tables = vec![self.time_table(&measurements), size_table(built)];
        let mut charts = vec![("build".to_owned(), Picture::Bars(time_chart(&measurements)))];
        if built.len() > 1 {
            charts.push(("size".to_owned(), Picture::Bars(size_chart(built))));
        }
        let sizes = built.iter().flat_map(|one| {
            let engine = reader_of(one.builder.engine).to_string();
            one.parts.iter().map(move |(part, bytes)| {
                Measurement::new("size", &[("engine", &engine), ("part", part)]).with("bytes", *bytes as f64)
            })
        });
        let mut seen = std::collections::HashSet::new();
        let sizes: Vec<Measurement> = sizes.filter(|size| seen.insert(size.labels.clone())).collect();
        Findings { measurements: measurements.into_iter().chain(sizes).collect(), tables, charts }
    }

    fn measurement(&self, one: &Built<'_>, baseline: Option<&Built<'_>>) -> Measurement {
        let of = |one: &Built<'_>, value: fn(&ChildReport) -> f64| {
            Spread::of(&one.runs.iter().map(value).collect::<Vec<_>>())
        };
        let wall = of(one, |run| run.wall_s);
        let processor = of(one, |run| run.usage.user_s + run.usage.system_s);
        let peak = of(one, |run| run.usage.peak_bytes as f64);
        let size = |one: &Built<'_>| one.parts.iter().map(|(_, bytes)| *bytes as f64).sum::<f64>();
        let pinned = one.builder.pinned && can_pin();
        let labels = [
            ("engine", one.builder.engine.to_string()),
            ("threads", one.builder.threads.to_string()),
            ("pinned", pinned.to_string()),
        ];
        let labels: Vec<(&str, &str)> = labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let documents = one.runs.last().map_or(0, |run| run.documents) as f64;
        let measurement = Measurement::new("build", &labels)
            .with("runs", one.runs.len() as f64)
            .with("documents", documents)
            .with("wall_s", wall.median)
            .with("wall_least_s", wall.least)
            .with("wall_most_s", wall.most)
            .with("processor_s", processor.median)
            .with("documents_a_second", documents / wall.median)
            .with("peak_bytes", peak.most)
            .with("peak_ratio", peak.most / self.part.memory_bytes() as f64)
            .with("index_bytes", size(one));
        match baseline {
            None => measurement,
            Some(baseline) => measurement
                .with("ratio", wall.median / of(baseline, |run| run.wall_s).median)
                .with("processor_ratio", {
                    processor.median / of(baseline, |run| run.usage.user_s + run.usage.system_s).median
                })
                .with("size_ratio", size(one) / size(baseline)),
        }
    }

    fn time_table(&self, measurements: &[Measurement]) -> Table {
        let columns = [
            "engine",
            "threads",
            "pinned",
            "median s",
            "least",
            "most",
            "x baseline",
            "processor s",
            "documents/s",
            "peak memory",
            "index",
        ];
        let mut table = Table::new("Building the index", 3, &columns);
        for row in measurements {
            table.row(vec![
                row.label("engine").to_owned(),
                row.label("threads").to_owned(),
                if row.label("pinned") == "true" { "yes" } else { "no" }.to_owned(),
                number(row.value("wall_s")),
                number(row.value("wall_least_s")),
                number(row.value("wall_most_s")),
                number(row.value("ratio")),
                number(row.value("processor_s")),
                number(row.value("documents_a_second")),
                bytes(row.value("peak_bytes") as u64),
                bytes(row.value("index_bytes") as u64),
            ]);
        }
        let baseline = self.part.engines.iter().find(|builder| builder.baseline);
        let baseline = baseline.map_or("none".to_owned(), |builder| builder.engine.to_string());
        let documents = measurements.first().map_or(0.0, |row| row.value("documents"));
        table.notes = vec![format!(
            "{} documents, analyzer {}, {} of memory, {} runs each, the engines in turns; baseline: {baseline}.",
            crate::table::count(documents as u64),
            self.collection.analyzer,
            self.part.memory,
            self.part.repetitions
        )];
        table
    }
}

/// One index of each reader, the first that was built.
fn one_of_each<'a, 'b>(built: &'a [Built<'b>]) -> Vec<&'a Built<'b>> {
    let mut seen = std::collections::BTreeSet::new();
    built.iter().filter(|one| seen.insert(reader_of(one.builder.engine))).collect()
}

fn size_table(built: &[Built<'_>]) -> Table {
    let mut table = Table::new("What the index consists of", 2, &["engine", "part", "bytes"]);
    for one in one_of_each(built) {
        let engine = reader_of(one.builder.engine).to_string();
        for (part, size) in &one.parts {
            table.row(vec![engine.clone(), part.clone(), crate::table::count(*size)]);
        }
        let total = one.parts.iter().map(|(_, bytes)| bytes).sum();
        table.row(vec![engine, "all".to_owned(), crate::table::count(total)]);
    }
    table
}

fn time_chart(measurements: &[Measurement]) -> Chart {
    let bars = measurements.iter().map(|row| {
        let threads = row.label("threads");
        Group {
            label: format!("{}, {threads} thread{}", row.label("engine"), if threads == "1" { "" } else { "s" }),
            bars: vec![Bar {
                series: usize::from(!row.label("engine").starts_with("lanner")),
                value: row.value("wall_s"),
                range: Some((row.value("wall_least_s"), row.value("wall_most_s"))),
            }],
        }
    });
    Chart {
        title: "Building the index".to_owned(),
        subtitle: "median seconds, least to most; shorter is better".to_owned(),
        series: vec!["lanner".to_owned(), "tantivy".to_owned()],
        unit: "s".to_owned(),
        groups: bars.collect(),
    }
}

fn size_chart(built: &[Built<'_>]) -> Chart {
    let groups = one_of_each(built).into_iter().map(|one| {
        let reader = reader_of(one.builder.engine);
        let total: u64 = one.parts.iter().map(|(_, bytes)| bytes).sum();
        let series = usize::from(reader != QueryEngine::Lanner);
        Group { label: reader.to_string(), bars: vec![Bar { series, value: total as f64 / 1e6, range: None }] }
    });
    Chart {
        title: "Size of the index".to_owned(),
        subtitle: "megabytes of the whole folder; shorter is better".to_owned(),
        series: vec!["lanner".to_owned(), "tantivy".to_owned()],
        unit: "MB".to_owned(),
        groups: groups.collect(),
    }
}
