//! A suite: one TOML file, one experiment.

use crate::error::BenchError;
use crate::result::Measurement;
use lanner::{Mode, ScoreModel};
use lanner_index::codec::Codecs;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// The suites that the program carries; others are given by path.
const BUILT_IN: [(&str, &str); 7] = [
    ("codecs", include_str!("../suites/codecs.toml")),
    ("foundation", include_str!("../suites/foundation.toml")),
    ("gpu", include_str!("../suites/gpu.toml")),
    ("memory", include_str!("../suites/memory.toml")),
    ("peers-cpu", include_str!("../suites/peers-cpu.toml")),
    ("tiny", include_str!("../suites/tiny.toml")),
    ("tiny-gpu", include_str!("../suites/tiny-gpu.toml")),
];

/// One experiment.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Its name, which its result has too.
    #[serde(skip)]
    pub name: String,
    /// What it is about.
    pub title: String,
    /// What a reader must know to judge it.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The folder of its results among those of all suites, if it is for one machine.
    pub results: Option<String>,
    /// The documents.
    pub collection: CollectionPart,
    /// How fast indexes are built, and how large they are.
    pub build: Option<BuildPart>,
    /// How fast they are opened.
    pub open: Option<OpenPart>,
    /// How fast queries are answered.
    pub query: Option<QueryPart>,
    /// How fast the best engines answer, each with its own index.
    pub peers: Option<PeersPart>,
    /// How small lists become, and how fast they are decoded.
    pub codecs: Option<CodecsPart>,
    /// How fast a GPU answers, beside the CPU.
    pub gpu: Option<GpuPart>,
    /// What is claimed.
    #[serde(default)]
    pub targets: Vec<Target>,
}

/// The documents of a suite, and how all engines see them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectionPart {
    /// A file below the data folder.
    pub file: Option<String>,
    /// So many made-up documents instead.
    pub synthetic: Option<usize>,
    /// Makes a larger collection of them first.
    pub scale: Option<ScalePart>,
    /// What turns text into terms, for every engine.
    pub analyzer: String,
    /// BM25: how soon repeated terms stop to count. Tantivy's is fixed at 1.2.
    pub k1: f64,
    /// BM25: how much the length of a document counts. Tantivy's is fixed at 0.75.
    pub b: f64,
}

/// A larger collection made of a real one.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScalePart {
    /// Documents.
    pub documents: u64,
    /// Another seed gives other documents.
    pub seed: u64,
}

/// Builds to measure.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildPart {
    /// How often each is repeated, in turns.
    pub repetitions: usize,
    /// Memory that each may use, such as `1GiB`.
    pub memory: String,
    /// Codecs that pack all lists of ours, none of them dense; the default index if absent.
    pub codecs: Option<Codecs>,
    /// Who builds; ratios are to the one that is the baseline.
    pub engines: Vec<Builder>,
}

/// Who builds an index.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Builder {
    /// The engine and its way of building.
    pub engine: BuildEngine,
    /// Threads.
    pub threads: usize,
    /// Whether the process is kept on one processor.
    #[serde(default)]
    pub pinned: bool,
    /// Whether the others are compared with it.
    #[serde(default)]
    pub baseline: bool,
}

/// Ways to build an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum BuildEngine {
    /// Lanner.
    Lanner,
    /// Tantivy's writer of a single segment, which works in the calling thread.
    TantivySingle,
    /// Tantivy's ordinary writer, whose workers run beside the thread that reads documents.
    TantivyWriter,
}

/// Engines that answer queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueryEngine {
    /// Lanner.
    Lanner,
    /// Tantivy.
    Tantivy,
    /// Tantivy with the external ids of all documents kept in an array by whoever uses it: the least it can take.
    TantivyIdsInMemory,
}

impl QueryEngine {
    /// Whose index it reads.
    pub fn index(self) -> QueryEngine {
        match self {
            QueryEngine::Lanner => QueryEngine::Lanner,
            QueryEngine::Tantivy | QueryEngine::TantivyIdsInMemory => QueryEngine::Tantivy,
        }
    }
}

/// Openings to measure.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenPart {
    /// How often.
    pub repetitions: usize,
}

/// Queries to measure.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryPart {
    /// Who answers; ratios are to the last one.
    pub engines: Vec<QueryEngine>,
    /// The query logs.
    pub logs: Vec<LogPart>,
    /// How terms combine.
    pub modes: Vec<Mode>,
    /// How many hits.
    pub k: Vec<usize>,
    /// Runs over a log before those that count.
    pub warm_up: usize,
    /// Runs over a log that count, the engines in turns.
    pub repetitions: usize,
    /// How many queries of each log the oracle checks; all if absent.
    pub checked: Option<usize>,
    /// Numbers of threads that answer at the same time, for throughput.
    #[serde(default)]
    pub threads: Vec<usize>,
}

/// Engines to race on one thread, each on its own index, all with the same terms.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeersPart {
    /// The collection of the suite, as it is or scaled.
    pub collections: Vec<NamedCollection>,
    /// Who answers.
    pub engines: Vec<RaceEngine>,
    /// The query logs.
    pub logs: Vec<LogPart>,
    /// How terms combine.
    pub modes: Vec<Mode>,
    /// How many hits.
    pub k: Vec<usize>,
    /// Runs over a log that count, at most.
    pub repetitions: usize,
    /// An engine that has spent so long on a log, mode and k is not run there again, once it has run twice.
    pub seconds: f64,
    /// How many queries of each log the oracle checks.
    pub checked: usize,
    /// The codecs of the index whose lists are the smallest, for the comparison of sizes.
    pub smallest_codecs: Codecs,
    /// Numbers of threads whose throughput is measured.
    #[serde(default)]
    pub threads: Vec<usize>,
}

/// A collection with the name that results give it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedCollection {
    /// Its name.
    pub name: String,
    /// Makes a larger one of it.
    pub scale: Option<ScalePart>,
}

/// Engines of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RaceEngine {
    /// Lanner with the default index.
    Lanner,
    /// Lanner with documents ordered by recursive graph bisection.
    LannerBisected,
    /// Tantivy with ids from a fast field.
    Tantivy,
    /// Tantivy with the ids of all documents in an array.
    TantivyIdsInMemory,
    /// PISA, the best of its algorithms.
    Pisa,
    /// bm25s.
    Bm25s,
}

/// Codecs to measure on the lists of the collection.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodecsPart {
    /// Lists of each length class that are decoded, spread over all; sizes are those of all lists.
    pub lists: usize,
    /// How often each class is timed.
    pub repetitions: usize,
    /// A timed run decodes the lists again until it has decoded so many numbers.
    pub numbers: u64,
}

/// The GPU engine to measure beside the CPU engine, on an index of the collection with frequencies and impacts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuPart {
    /// The queries. Those with the most postings are left out until the others have `postings` on average.
    pub log: LogPart,
    /// Postings of a query on average, where there are `of_documents` documents; in proportion where there are others.
    pub postings: f64,
    /// See `postings`.
    pub of_documents: u64,
    /// How hits are scored.
    pub scores: Vec<ScoreModel>,
    /// How terms combine.
    pub modes: Vec<Mode>,
    /// How many hits.
    pub k: Vec<usize>,
    /// Runs that count, at most.
    pub repetitions: usize,
    /// What has taken so long is not run again, once it has run three times.
    pub seconds: f64,
    /// Queries that are asked one at a time.
    pub alone: usize,
    /// Queries that the CPU answers on one thread, spread over short and long ones.
    pub one_thread: usize,
    /// Sizes of batches, for OR and the least k.
    pub batches: Vec<usize>,
    /// Sizes of small batches whose commands are given together and otherwise, for OR and AND+OR and the least k.
    pub small: Vec<usize>,
    /// Queries of a batch whose lists are sent with it, for OR and AND and the least k.
    pub sent: usize,
    /// Full blocks that are decoded, at least, where the collection has as many.
    pub decoded_blocks: usize,
}

/// A sample of a query log.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogPart {
    /// Its name in results.
    pub name: String,
    /// A file below the data folder; absent for queries made up from a synthetic collection.
    pub file: Option<String>,
    /// How many queries, spread over the half of the log that is kept for reporting.
    pub sample: usize,
    /// Joins queries until they have so many different terms together.
    pub terms: Option<usize>,
}

/// A claim about measured values.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The claim in words.
    pub what: String,
    /// The kind of measurement.
    pub kind: String,
    /// Labels that the measurements have; each that fits must keep the claim.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The name of the value.
    pub value: String,
    /// The value may be this large.
    pub at_most: f64,
}

impl Suite {
    /// The names and titles of the suites that the program carries.
    pub fn list() -> Vec<(String, String)> {
        BUILT_IN
            .iter()
            .map(|(name, text)| (*name, Suite::parse(name, text).map_or_else(|error| error.to_string(), |s| s.title)))
            .map(|(name, title)| (name.to_owned(), title))
            .collect()
    }

    /// A suite by name, or from a TOML file.
    pub fn load(name_or_path: &str) -> Result<Suite, BenchError> {
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

    /// Reads a suite and checks that it makes sense.
    pub fn parse(name: &str, text: &str) -> Result<Suite, BenchError> {
        let wrong = |what: String| BenchError::Suite { name: name.to_owned(), what };
        let mut suite: Suite = toml::from_str(text).map_err(|error| wrong(error.to_string().trim().to_owned()))?;
        name.clone_into(&mut suite.name);
        match suite.fault() {
            Some(what) => Err(wrong(what.to_owned())),
            None => Ok(suite),
        }
    }

    /// How large a value of a measurement may be, if something is claimed about it.
    pub fn limit(&self, measurement: &Measurement, value: &str) -> Option<f64> {
        let claims = self.targets.iter().filter(|target| target.value == value);
        claims.filter(|target| measurement.is(&target.kind, &target.labels)).map(|target| target.at_most).next()
    }

    fn fault(&self) -> Option<&'static str> {
        let collection = &self.collection;
        let logs = self.query.iter().flat_map(|query| &query.logs);
        let logs = logs.chain(self.peers.iter().flat_map(|peers| &peers.logs));
        let mut logs = logs.chain(self.gpu.iter().map(|gpu| &gpu.log));
        if collection.file.is_some() == collection.synthetic.is_some() {
            Some("[collection] needs either `file` or `synthetic`")
        } else if let Some(fault) = self.build.as_ref().and_then(BuildPart::fault) {
            Some(fault)
        } else if self.build.is_none() && (self.open.is_some() || self.query.is_some()) {
            Some("[open] and [query] need indexes: add [build]")
        } else if self.peers.as_ref().is_some_and(|p| p.collections.is_empty() || p.k.is_empty() || p.repetitions == 0)
        {
            Some("[peers] needs at least one collection, one k and one repetition")
        } else if self.query.as_ref().is_some_and(|q| q.repetitions == 0 || q.k.is_empty() || q.engines.is_empty()) {
            Some("[query] needs at least one repetition, one k and one engine")
        } else if self.gpu.as_ref().is_some_and(GpuPart::is_empty) {
            Some("[gpu] needs at least one score, one mode, one k, one query of each kind and one repetition")
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
            Some("[build] compares with one baseline at most")
        } else {
            None
        }
    }

    /// Memory that a build may use.
    pub fn memory_bytes(&self) -> usize {
        parse_bytes(&self.memory).expect("checked when the suite was read")
    }
}

impl GpuPart {
    fn is_empty(&self) -> bool {
        let counts = [self.repetitions, self.log.sample, self.alone, self.one_thread, self.sent, self.decoded_blocks];
        self.scores.is_empty()
            || self.modes.is_empty()
            || self.k.is_empty()
            || counts.contains(&0)
            || self.batches.contains(&0)
            || self.small.contains(&0)
    }
}

impl RaceEngine {
    /// Whether it is a Python package that runs in a process of its own.
    pub fn is_python(self) -> bool {
        matches!(self, RaceEngine::Pisa | RaceEngine::Bm25s)
    }
}

impl fmt::Display for RaceEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RaceEngine::Lanner => "lanner",
            RaceEngine::LannerBisected => "lanner-bisected",
            RaceEngine::Tantivy => "tantivy",
            RaceEngine::TantivyIdsInMemory => "tantivy-ids-in-memory",
            RaceEngine::Pisa => "pisa",
            RaceEngine::Bm25s => "bm25s",
        })
    }
}

impl fmt::Display for BuildEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BuildEngine::Lanner => "lanner",
            BuildEngine::TantivySingle => "tantivy-single",
            BuildEngine::TantivyWriter => "tantivy-writer",
        })
    }
}

impl fmt::Display for QueryEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QueryEngine::Lanner => "lanner",
            QueryEngine::Tantivy => "tantivy",
            QueryEngine::TantivyIdsInMemory => "tantivy-ids-in-memory",
        })
    }
}

/// Bytes of a size such as `256MiB`.
pub fn parse_bytes(text: &str) -> Option<usize> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let (number, shift) = units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)))?;
    number.trim().parse::<usize>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_of_the_program_is_well_formed() {
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
        assert!(unknown.contains("foundation, gpu, memory, peers-cpu, tiny"), "{unknown}");
        let tiny = include_str!("../suites/tiny-gpu.toml");
        assert!(message(&tiny.replace("k = [3, 10]", "k = []")).contains("one k"));
    }

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(parse_bytes("256MiB"), Some(268_435_456));
        assert_eq!(parse_bytes("2 GiB"), Some(2 << 30));
        assert_eq!(parse_bytes("256"), None);
        assert_eq!(parse_bytes("99999999999999999GiB"), None);
    }
}
