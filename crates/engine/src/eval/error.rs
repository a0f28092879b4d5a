//! Errors of reading judgements, runs and query logs, and of writing runs.

use std::io;
use std::path::PathBuf;

use lanner_index::corpus::CorpusError;

/// Why judgements, runs or queries cannot be read or written: one line that says where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// The file cannot be read, or is not text.
    #[error(transparent)]
    Input(#[from] CorpusError),
    /// A line does not have the form of its format.
    #[error("{}:{line}: {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it and what was expected.
        problem: String,
    },
    /// A file that must have content has none.
    #[error("{}: holds no {what}; check that it is the right file", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
    },
    /// A measure that is not known.
    #[error(
        "measure '{name}' is not known; use nDCG[@k], ERR[@k], AP[@k], RR[@k], P@k, R@k, Rprec, Bpref, Judged[@k] or Success@k, with k at least 1, and (rel=n) before @k in those of relevant documents"
    )]
    UnknownMeasure {
        /// The measure as it was given.
        name: String,
    },
    /// A topic format that is not known.
    #[error("topic format '{name}' is not known; use tsv, colon, lines, trec, trec-description or jsonl")]
    UnknownTopicFormat {
        /// The format as it was given.
        name: String,
    },
    /// An empty id, which would be a missing column.
    #[error("an empty {kind}, which a TREC run cannot hold; give it one")]
    EmptyId {
        /// Query id or document id.
        kind: &'static str,
    },
    /// The name of a run that is not one column.
    #[error("the tag '{}' is empty or has white space, which separates columns; change it", tag.escape_debug())]
    UnprintableTag {
        /// The name.
        tag: String,
    },
    /// A hit scores higher than the one before it.
    #[error(
        "query '{query}': document '{document}' at rank {rank} scores more than the hit before it; sort hits by score"
    )]
    NotInRankOrder {
        /// The query.
        query: String,
        /// The document with the higher score.
        document: String,
        /// Its rank, counted from 1.
        rank: usize,
    },
    /// With this value of one unit, scores overflow 32-bit floats.
    #[error("a score unit of {unit} is not usable; it must be above 0 and at most 7.9e28")]
    UnusableUnit {
        /// The value of one unit.
        unit: f64,
    },
    /// Two evaluations of other measures, or over other judgements.
    #[error(
        "these evaluations have other queries or measures; evaluate both runs with the same judgements and measures"
    )]
    NotComparable,
    /// The run could not be written.
    #[error("the run cannot be written: {0}; what was written so far is incomplete")]
    Write(#[source] io::Error),
}
