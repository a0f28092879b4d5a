//! Why a measurement failed; each message says what to do about it.

use lanner::SearchError;
use lanner::eval::EvalError;
use lanner::internals::calibrate::CalibrationError;
use lanner_gpu::error::GpuError;
use lanner_index::build::BuildError;
use lanner_index::corpus::CorpusError;
use lanner_index::format::IndexError;
use lanner_index::text::AnalyzerError;
use std::io;
use std::path::{Path, PathBuf};

/// A result whose error is by default that of a measurement.
pub type Result<T, E = BenchError> = std::result::Result<T, E>;

/// Why a measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// A suite that cannot be parsed or contradicts itself.
    #[error("suite {name}: {what}")]
    Suite { name: String, what: String },
    /// A file that the suite needs is not in the data folder.
    #[error("the suite needs {file} in the data folder; set LANNER_DATA or give --data")]
    MissingData { file: String },
    /// A result that the report must not show, or a plot that cannot be drawn.
    #[error("{}: {what}", path.display())]
    File { path: PathBuf, what: String },
    /// A wrong answer: the run ends without printing times.
    #[error(
        "{engine} answers {query:?} ({mode}, k {k}) differently from {reference}: {difference}; no times are printed"
    )]
    Disagreement {
        engine: String,
        reference: &'static str,
        query: String,
        mode: String,
        k: usize,
        /// The first rank at which the answers differ.
        difference: String,
    },
    /// A child process that was started to measure a build.
    #[error("the process that builds with {engine} failed: {message}")]
    Child { engine: String, message: String },
    /// Packages of the peers cannot be installed.
    #[error(
        "cannot install {what}: {message}; python3 with venv and a package index are needed; leave peers out with \
         --only engine=lanner,tantivy"
    )]
    Environment { what: &'static str, message: String },
    /// A peer in its own process that does not answer.
    #[error("{peer}: {message}")]
    Peer { peer: String, message: String },
    /// A device that returned wrong numbers, or did not run what was to be measured.
    #[error("{what}; no times are printed")]
    Device { what: String },
    /// Arguments that contradict each other or are out of range.
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    #[error(transparent)]
    Analyzer(#[from] AnalyzerError),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error(transparent)]
    Search(#[from] SearchError),
    #[error(transparent)]
    Eval(#[from] EvalError),
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    #[error(transparent)]
    Gpu(#[from] GpuError),
    #[error("tantivy: {0}")]
    Tantivy(#[from] tantivy::TantivyError),
}

impl BenchError {
    /// Adds the path to an I/O error.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> BenchError {
        move |source| BenchError::Io { path: path.to_owned(), source }
    }
}
