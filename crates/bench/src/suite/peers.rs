//! The section `[peers]` of a suite.

use super::{LogPart, ScalePart};
use clap::ValueEnum;
use lanner::Mode;
use lanner_index::codec::Codecs;
use serde::Deserialize;

/// Section `[peers]`: engines on one thread, each with its own index, all with the same terms.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeersPart {
    /// The collection of the suite, unchanged or scaled, and others.
    pub collections: Vec<NamedCollection>,
    pub engines: Vec<RaceEngine>,
    pub logs: Vec<LogPart>,
    pub modes: Vec<Mode>,
    pub k: Vec<usize>,
    /// What engines return; each kind has tables of its own.
    pub answers: Vec<AnswerKind>,
    /// Queries are split by these numbers of terms: by 2, into those of one or two terms and those of more. The times of
    /// the parts are those of document numbers.
    #[serde(default)]
    pub splits: Vec<usize>,
    /// The collections between which the growth of times is shown.
    pub growth: Option<GrowthPart>,
    /// Maximal number of runs over a log.
    pub repetitions: usize,
    /// After two runs, an engine that has spent this time on a log, mode and k is not run there again.
    pub seconds: f64,
    /// Queries of each log that are checked against the oracle.
    pub checked: usize,
    /// The codecs of the index with the smallest lists, for the comparison of sizes.
    pub smallest_codecs: Codecs,
    /// Numbers of threads for the throughput.
    #[serde(default)]
    pub threads: Vec<usize>,
}

/// A collection with its name in results.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedCollection {
    pub name: String,
    /// Instead of the collection of the suite: a file in the data folder or in that of large collections. The collection
    /// is left out if it is in neither.
    pub file: Option<String>,
    pub scale: Option<ScalePart>,
}

/// Two collections by name, the smaller first.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrowthPart {
    pub from: String,
    pub to: String,
}

/// What engines return for a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerKind {
    /// Document numbers, without looking up external ids.
    Documents,
    /// External ids.
    Ids,
}

/// Engines of `[peers]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum RaceEngine {
    /// Lanner with the default index.
    Lanner,
    /// Lanner with documents in the order of recursive graph bisection.
    LannerBisected,
    /// Tantivy with external ids from a fast field.
    Tantivy,
    /// Tantivy with the external ids of all documents in an array.
    TantivyIdsInMemory,
    /// PISA with the best of its algorithms.
    Pisa,
    /// Lucene on a Java virtual machine.
    Lucene,
    Bm25s,
}

impl PeersPart {
    pub(super) fn is_empty(&self) -> bool {
        self.collections.is_empty() || self.k.is_empty() || self.answers.is_empty() || self.repetitions == 0
    }
}

impl RaceEngine {
    /// Whether it is a Python package.
    pub fn is_python(self) -> bool {
        matches!(self, RaceEngine::Pisa | RaceEngine::Bm25s)
    }

    /// Whether it runs in its own process, on an index that it makes from the postings of Lanner's.
    pub fn is_process(self) -> bool {
        self.is_python() || self == RaceEngine::Lucene
    }
}
