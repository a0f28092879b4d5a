//! Why a measurement was not made; each message says what to do.

use lanner::SearchError;
use lanner_gpu::error::GpuError;
use lanner_index::build::BuildError;
use lanner_index::corpus::CorpusError;
use lanner_index::format::IndexError;
use lanner_index::text::AnalyzerError;
use std::io;
use std::path::{Path, PathBuf};

/// Why a measurement was not made.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A suite that cannot be read or contradicts itself.
    #[error("suite {name}: {what}")]
    Suite {
        /// Its name.
        name: String,
        /// What is wrong, and what to write instead.
        what: String,
    },
    /// A file that the suite needs is not in the data folder.
    #[error("the suite needs {file} in the data folder; set LANNER_DATA or give --data")]
    MissingData {
        /// The file below the data folder.
        file: String,
    },
    /// A result that the report must not show.
    #[error("{}: {what}", path.display())]
    Result {
        /// The result file.
        path: PathBuf,
        /// What it lacks.
        what: String,
    },
    /// A wrong answer: no time is printed then.
    #[error("{engine} answers {query:?} ({mode}, k {k}) other than {reference}: {difference}; no time is printed")]
    Disagreement {
        /// Who answered.
        engine: String,
        /// Whose answers are right.
        reference: &'static str,
        /// The query.
        query: String,
        /// How its terms combine.
        mode: String,
        /// How many hits were asked for.
        k: usize,
        /// The first difference.
        difference: String,
    },
    /// A process that was started to measure a build has failed.
    #[error("the measuring process of {what} failed: {message}")]
    Child {
        /// What it measured.
        what: String,
        /// What it said.
        message: String,
    },
    /// The virtual environment of the peers cannot be made.
    #[error(
        "the peers cannot be installed: {message}; it takes python3 with venv and a package index, or leave them out (--only engine=lanner,tantivy)"
    )]
    Environment {
        /// What was said.
        message: String,
    },
    /// A peer that did not answer.
    #[error("{peer}: {message}")]
    Peer {
        /// The peer.
        peer: String,
        /// What it said.
        message: String,
    },
    /// A device that has not done what was to be measured.
    #[error("{what}; no time is printed")]
    Device {
        /// What it has done instead.
        what: String,
    },
    /// A plot that could not be drawn.
    #[error("{}: cannot draw: {message}", path.display())]
    Plot {
        /// The picture.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// Arguments that contradict each other or are out of range.
    #[error("{0}")]
    Usage(String),
    /// The collection.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// The analyzer.
    #[error(transparent)]
    Analyzer(#[from] AnalyzerError),
    /// A build.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// An index.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A query.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// A device.
    #[error(transparent)]
    Gpu(#[from] GpuError),
    /// Tantivy.
    #[error("tantivy: {0}")]
    Tantivy(#[from] tantivy::TantivyError),
}

impl BenchError {
    /// Names the file that an I/O error is about.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> BenchError {
        move |source| BenchError::Io { path: path.to_owned(), source }
    }
}
