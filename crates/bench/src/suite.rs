//! A suite: one TOML file that describes what to measure.

mod lists;
mod peers;

use crate::error::{BenchError, Result};
use crate::result::Measurement;
use clap::ValueEnum;
use lanner::{Mode, ScoreModel};
use lanner_index::codec::Codecs;
use lanner_index::text::Analyzer;
use lanner_index::weight::Bm25;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

pub use lists::{Lists, ListsPart};
pub use peers::{AnswerKind, GrowthPart, NamedCollection, PeersPart, RaceEngine};

/// The suites that are part of the program; others are given by path.
const BUILT_IN: [(&str, &str); 11] = [
    ("codecs", include_str!("../suites/codecs.toml")),
    ("foundation", include_str!("../suites/foundation.toml")),
    ("gpu", include_str!("../suites/gpu.toml")),
    ("lists", include_str!("../suites/lists.toml")),
    ("load", include_str!("../suites/load.toml")),
    ("memory", include_str!("../suites/memory.toml")),
    ("peers-cpu", include_str!("../suites/peers-cpu.toml")),
    ("tiny", include_str!("../suites/tiny.toml")),
    ("tiny-gpu", include_str!("../suites/tiny-gpu.toml")),
    ("tiny-lists", include_str!("../suites/tiny-lists.toml")),
    ("tiny-load", include_str!("../suites/tiny-load.toml")),
];

/// A suite. Each of its optional sections is one experiment.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// The name of the suite and of its result.
    #[serde(skip)]
    pub name: String,
    pub title: String,
    /// How the measurement is done, for the reader of the result.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Folder of the results within the folder of all results, for suites of one machine.
    pub results: Option<String>,
    pub collection: CollectionPart,
    /// Build time and index size.
    pub build: Option<BuildPart>,
    /// Time to open an index.
    pub open: Option<OpenPart>,
    /// Query time and throughput.
    pub query: Option<QueryPart>,
    /// Query time, list size and scaling against other engines.
    pub peers: Option<PeersPart>,
    /// Compression and decode speed of every codec.
    pub codecs: Option<CodecsPart>,
    /// The GPU against the CPU.
    pub gpu: Option<GpuPart>,
    /// The engine under load.
    pub load: Option<LoadPart>,
    /// The GPU with lists that lie elsewhere.
    pub lists: Option<ListsPart>,
    #[serde(default)]
    pub targets: Vec<Target>,
}

/// The documents of a suite, and how all engines analyze and score them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectionPart {
    /// A file in the data folder.
    pub file: Option<String>,
    /// Instead of a file: the number of synthetic documents.
    pub synthetic: Option<usize>,
    /// Scales the documents to a larger collection.
    pub scale: Option<ScalePart>,
    pub analyzer: String,
    /// Tantivy's k1 is fixed at 1.2.
    pub k1: f64,
    /// Tantivy's b is fixed at 0.75.
    pub b: f64,
}

/// A larger collection generated from a real one.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScalePart {
    pub documents: u64,
    pub seed: u64,
}

/// Section `[build]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildPart {
    /// Builds of each engine; the engines alternate.
    pub repetitions: usize,
    /// Memory budget of a build, such as `1GiB`.
    pub memory: String,
    /// Codecs for all lists of Lanner's index, without dense lists; the default index if absent.
    pub codecs: Option<Codecs>,
    pub engines: Vec<Builder>,
}

/// An engine that builds an index.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Builder {
    pub engine: BuildEngine,
    pub threads: usize,
    /// Whether the process is pinned to one core.
    #[serde(default)]
    pub pinned: bool,
    /// Whether ratios are relative to this builder.
    #[serde(default)]
    pub baseline: bool,
}

/// Ways to build an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum BuildEngine {
    Lanner,
    /// Tantivy's writer of a single segment, which works in the calling thread.
    TantivySingle,
    /// Tantivy's ordinary writer, whose workers run beside the thread that reads documents.
    TantivyWriter,
}

/// Engines that answer queries in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum QueryEngine {
    Lanner,
    /// Tantivy with external ids from a fast field.
    Tantivy,
    /// Tantivy with the external ids of all documents in an array: a lower bound of its time.
    TantivyIdsInMemory,
}

impl QueryEngine {
    /// The engine whose index it reads.
    pub fn index(self) -> QueryEngine {
        match self {
            QueryEngine::Lanner => QueryEngine::Lanner,
            QueryEngine::Tantivy | QueryEngine::TantivyIdsInMemory => QueryEngine::Tantivy,
        }
    }
}

/// Section `[open]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenPart {
    pub repetitions: usize,
}

/// Section `[query]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryPart {
    /// Ratios are relative to the last engine.
    pub engines: Vec<QueryEngine>,
    pub logs: Vec<LogPart>,
    pub modes: Vec<Mode>,
    pub k: Vec<usize>,
    /// Runs over a log that are not counted.
    pub warm_up: usize,
    /// Runs over a log that are counted; the engines alternate.
    pub repetitions: usize,
    /// Queries of each log that are checked against the oracle; all if absent.
    pub checked: Option<usize>,
    /// Numbers of threads for the throughput.
    #[serde(default)]
    pub threads: Vec<usize>,
}

/// Section `[codecs]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodecsPart {
    /// Lists of each length class that are decoded; sizes are those of all lists.
    pub lists: usize,
    /// Timed runs of each length class.
    pub repetitions: usize,
    /// A timed run decodes its lists repeatedly until it has decoded this many numbers.
    pub numbers: u64,
}

/// Section `[gpu]`: the GPU and the CPU on an index with frequencies and impacts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuPart {
    /// Queries with the most postings are left out until the others have `postings` on average.
    pub log: LogPart,
    /// Mean postings of a query in a collection of `of_documents` documents; proportional in others.
    pub postings: f64,
    /// See `postings`.
    pub of_documents: u64,
    pub scores: Vec<ScoreModel>,
    pub modes: Vec<Mode>,
    pub k: Vec<usize>,
    /// Maximal number of runs.
    pub repetitions: usize,
    /// After three runs, a measurement that has taken this long is not repeated.
    pub seconds: f64,
    /// Number of queries for the latency of single queries.
    pub single: usize,
    /// Number of queries for the CPU on one thread, with short and long ones.
    pub one_thread: usize,
    /// Batch sizes for OR with the smallest k.
    pub batches: Vec<usize>,
    /// Batch sizes for the comparison of ways to submit small batches, for OR and AND+OR with the smallest k.
    pub small: Vec<usize>,
    /// Number of queries in a batch whose lists are uploaded with it, for OR and AND with the smallest k.
    pub uploaded: usize,
    /// Minimal number of full blocks to decode, if the collection has as many.
    pub decoded_blocks: usize,
}

/// Section `[load]`: the engine under load, on an index as that of `[gpu]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadPart {
    /// Queries are chosen as in `[gpu]`. Parts that do not compare logs use the first.
    pub logs: Vec<LogPart>,
    /// See [`GpuPart::postings`].
    pub postings: f64,
    /// See `postings`.
    pub of_documents: u64,
    pub modes: Vec<Mode>,
    pub k: usize,
    /// Time to calibrate costs, if they are not cached.
    pub calibration_s: f64,
    /// Threads that send queries; the engine has the other cores.
    pub senders: usize,
    /// Queries under way in the closed loop that measures capacity.
    pub clients: usize,
    /// How long a stream or a closed loop lasts.
    pub seconds: f64,
    /// In part `stream`, until this many queries were asked, …
    pub queries: usize,
    /// … but not longer than this.
    pub longest_s: f64,
    /// Runs of each stream in part `stream`.
    pub repetitions: usize,
    /// Where lists lie in parts `policies`, `together` and `cold`; the last two leave out those that are uploaded.
    pub lists: Vec<Lists>,
    /// Queries of the first log's half for tuning that fill a cache of lists before anything is measured.
    pub warm_up: usize,
    /// Turns of part `together`.
    pub turns: usize,
    /// How long queries arrive in the open loops of part `open`, …
    pub open_s: f64,
    /// … and in those of part `policies`; …
    pub run_s: f64,
    /// … in both at least until this many have arrived.
    pub fewest: usize,
    /// Rates of part `open`, as shares of the capacity; for those above 1 the engine accepts `queue` queries.
    pub rates: Vec<f64>,
    /// The most queries that an engine accepts above its capacity, and in part `policies`.
    pub queue: usize,
    /// Light, medium and heavy load in part `policies`.
    pub loads: [f64; 3],
    /// How long queries arrive after a cold start.
    pub cold_s: f64,
    /// The loads of part `step`, and how long each lasts.
    pub steps: Vec<[f64; 2]>,
    /// The interval of its percentiles.
    pub interval_ms: f64,
    /// Number of queries in part `overhead`.
    pub overhead: usize,
    /// Number of queries of each log whose times are predicted in part `costs`.
    pub predicted: usize,
}

/// A sample of a query log.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogPart {
    /// The name in results.
    pub name: String,
    /// A file in the data folder; absent for synthetic queries.
    pub file: Option<String>,
    /// Number of queries, spread over the half of the log that is kept for reporting.
    pub sample: usize,
    /// Joins consecutive queries until they have this many different terms.
    pub terms: Option<usize>,
}

/// An upper limit for measured values.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    pub what: String,
    /// The kind of the measurements.
    pub kind: String,
    /// Labels of the measurements; every measurement with these labels must meet the target.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The name of the value.
    pub value: String,
    pub at_most: f64,
}

impl CollectionPart {
    pub fn analyzer(&self) -> Result<Analyzer> {
        Ok(Analyzer::parse(&self.analyzer)?)
    }

    pub fn bm25(&self) -> Bm25 {
        Bm25 { k1: self.k1, b: self.b }
    }
}

impl Suite {
    /// Names and titles of the built-in suites.
    pub fn list() -> Vec<(String, String)> {
        let title = |(name, text)| Suite::parse(name, text).map_or_else(|error| error.to_string(), |suite| suite.title);
        BUILT_IN.into_iter().map(|suite| (suite.0.to_owned(), title(suite))).collect()
    }

    /// Loads a built-in suite by name, or a TOML file.
    pub fn load(name_or_path: &str) -> Result<Suite> {
        if let Some((name, text)) = BUILT_IN.iter().find(|(name, _)| *name == name_or_path) {
            return Suite::parse(name, text);
        }
        let path = Path::new(name_or_path);
        if path.extension().is_none_or(|extension| extension != "toml") {
            let known: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
            let what = format!("unknown; give one of {}, or a TOML file", known.join(", "));
            return Err(BenchError::Suite { name: name_or_path.to_owned(), what });
        }
        let text = std::fs::read_to_string(path).map_err(BenchError::io(path))?;
        Suite::parse(&path.file_stem().unwrap_or_default().to_string_lossy(), &text)
    }

    /// Parses a suite and checks it.
    pub fn parse(name: &str, text: &str) -> Result<Suite> {
        let wrong = |what: String| BenchError::Suite { name: name.to_owned(), what };
        let mut suite: Suite = toml::from_str(text).map_err(|error| wrong(error.to_string().trim().to_owned()))?;
        name.clone_into(&mut suite.name);
        match suite.fault() {
            Some(what) => Err(wrong(what.to_owned())),
            None => Ok(suite),
        }
    }

    /// Returns the limit for a value of a measurement, if there is a target for it.
    pub fn limit(&self, measurement: &Measurement, value: &str) -> Option<f64> {
        let targets = self.targets.iter().filter(|target| target.value == value);
        targets.filter(|target| measurement.is(&target.kind, &target.labels)).map(|target| target.at_most).next()
    }

    /// Returns what contradicts itself in the suite.
    fn fault(&self) -> Option<&'static str> {
        let collection = &self.collection;
        let logs = self.query.iter().flat_map(|query| &query.logs);
        let logs = logs.chain(self.peers.iter().flat_map(|peers| &peers.logs));
        let logs = logs.chain(self.gpu.iter().map(|gpu| &gpu.log));
        let logs = logs.chain(self.lists.iter().map(|lists| &lists.log));
        let mut logs = logs.chain(self.load.iter().flat_map(|load| &load.logs));
        if collection.file.is_some() == collection.synthetic.is_some() {
            Some("[collection] needs either `file` or `synthetic`")
        } else if let Some(fault) = self.build.as_ref().and_then(BuildPart::fault) {
            Some(fault)
        } else if self.build.is_none() && (self.open.is_some() || self.query.is_some()) {
            Some("[open] and [query] need indexes: add [build]")
        } else if self.peers.as_ref().is_some_and(PeersPart::is_empty) {
            Some("[peers] needs at least one collection, one k, one kind of answers and one repetition")
        } else if self.query.as_ref().is_some_and(|q| q.repetitions == 0 || q.k.is_empty() || q.engines.is_empty()) {
            Some("[query] needs at least one repetition, one k and one engine")
        } else if self.gpu.as_ref().is_some_and(GpuPart::is_empty) {
            Some("[gpu] needs at least one score, one mode, one k, one query of each kind and one repetition")
        } else if self.load.as_ref().is_some_and(LoadPart::is_empty) {
            Some("[load] needs at least one log, one mode, one step and one of everything that it counts")
        } else if self.lists.as_ref().is_some_and(ListsPart::is_empty) {
            Some("[lists] needs at least one mode, lists in each part, and one of everything that it counts")
        } else if collection.synthetic.is_none() && logs.any(|log| log.file.is_none()) {
            Some("[[query.logs]] needs `file`, except for a synthetic collection")
        } else {
            None
        }
    }
}

impl BuildPart {
    fn fault(&self) -> Option<&'static str> {
        if parse_bytes(&self.memory).is_none() {
            Some("[build] memory must be a number with a unit, such as 256MiB or 1GiB")
        } else if self.repetitions == 0 || self.engines.is_empty() {
            Some("[build] needs at least one engine and one repetition")
        } else if self.engines.iter().filter(|engine| engine.baseline).count() > 1 {
            Some("[build] can have only one baseline")
        } else {
            None
        }
    }

    /// Memory budget of a build.
    pub fn memory_bytes(&self) -> usize {
        parse_bytes(&self.memory).expect("checked when the suite was parsed")
    }
}

impl GpuPart {
    fn is_empty(&self) -> bool {
        let counts =
            [self.repetitions, self.log.sample, self.single, self.one_thread, self.uploaded, self.decoded_blocks];
        let is_missing = self.scores.is_empty() || self.modes.is_empty() || self.k.is_empty();
        is_missing || [&counts[..], &self.batches, &self.small].concat().contains(&0)
    }
}

impl LoadPart {
    fn is_empty(&self) -> bool {
        let counts = [self.k, self.senders, self.clients, self.repetitions, self.turns, self.fewest, self.queue];
        let counts = [&counts[..], &[self.overhead, self.predicted, self.warm_up]].concat();
        let is_missing =
            self.logs.is_empty() || self.modes.is_empty() || self.steps.is_empty() || self.lists.is_empty();
        is_missing || counts.contains(&0) || self.interval_ms <= 0.0
    }
}

/// Displays enums by the names that they have on the command line and in suites.
macro_rules! display_by_name {
    ($($name:ty),*) => {$(
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(clap::ValueEnum::to_possible_value(self).expect("no value is skipped").get_name())
            }
        }
    )*};
}

pub(crate) use display_by_name;

display_by_name!(AnswerKind, BuildEngine, QueryEngine, RaceEngine);

/// Parses a size such as `256MiB`.
fn parse_bytes(text: &str) -> Option<usize> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let (number, shift) = units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)))?;
    number.trim().parse::<usize>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_suite_is_well_formed() {
        for (name, _) in BUILT_IN {
            let suite = Suite::load(name).unwrap();
            assert_eq!(suite.name, name);
            let is_fair = |build: &BuildPart| build.repetitions >= 5 || build.engines.len() == 1;
            assert!(suite.build.as_ref().is_none_or(is_fair), "{name} compares single builds");
        }
        assert_eq!(Suite::list().len(), BUILT_IN.len());
    }

    #[test]
    fn a_suite_is_read_in_full() {
        let suite = Suite::load("foundation").unwrap();
        let query = suite.query.unwrap();
        assert_eq!((query.modes, query.k), (vec![Mode::Or, Mode::And], vec![10, 100, 1000]));
        assert_eq!(suite.build.unwrap().engines.iter().filter(|builder| builder.baseline).count(), 1);
        assert_eq!(suite.collection.analyzer, "simple");
    }

    #[test]
    fn mistakes_in_a_suite_are_named() {
        let tiny = include_str!("../suites/tiny.toml");
        let message = |text: &str| Suite::parse("tiny", text).unwrap_err().to_string();
        assert!(message(&format!("colour = 1\n{tiny}")).contains("colour"));
        assert!(message(&tiny.replace("synthetic = 300", "")).contains("either `file` or `synthetic`"));
        assert!(message(&tiny.replace("64MiB", "64 megabytes")).contains("such as 256MiB"));
        let unknown = Suite::load("nonsense").unwrap_err().to_string();
        assert!(unknown.contains("foundation, gpu, lists, load, memory, peers-cpu, tiny"), "{unknown}");
        let tiny = include_str!("../suites/tiny-gpu.toml");
        assert!(message(&tiny.replace("k = [3, 10]", "k = []")).contains("one k"));
        let tiny = include_str!("../suites/tiny-load.toml");
        assert!(message(&tiny.replace("clients = 8", "clients = 0")).contains("[load]"));
        let tiny = include_str!("../suites/tiny-lists.toml");
        assert!(message(&tiny.replace("warm_up = 1", "warm_up = 0")).contains("[lists]"));
        assert!(message(&tiny.replace("40%", "40")).contains("or a percentage"));
    }

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(parse_bytes("256MiB"), Some(268_435_456));
        assert_eq!(parse_bytes("2 GiB"), Some(2 << 30));
        assert_eq!(parse_bytes("256"), None);
        assert_eq!(parse_bytes("99999999999999999GiB"), None);
    }
}
