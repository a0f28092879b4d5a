//! Why a build fails.

use super::pipeline::NoThread;
use crate::corpus::ciff::CiffError;
use crate::corpus::{CorpusError, LeftOut, Problem};
use crate::format::IndexError;
use crate::format::lexicon::MAX_TERMS;
use crate::format::segment::MAX_DOCUMENTS;
use std::io;
use std::path::{Path, PathBuf};

/// Why a build fails. The folder keeps its index.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// An error of the index folder.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// An error of the input.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// An error of the operating system.
    #[error("{}: {source}{}", path.display(), hint(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A malformed record in a strict build.
    #[error("{0}")]
    Malformed(Problem),
    /// An id that a TREC run cannot hold as it is, in a strict build.
    #[error("{0}")]
    SeparatedId(Problem),
    /// A file or folder of the input that cannot be read, in a strict build.
    #[error("{0}")]
    Unreadable(String),
    /// No record of the input was usable.
    #[error("no usable document: {}", why_empty(*skipped, first, left_out, unreadable))]
    Empty {
        /// Records that were skipped.
        skipped: u64,
        /// A description of the first of them.
        first: Option<String>,
        /// Files that were not read.
        left_out: Vec<LeftOut>,
        /// A description of the first of them that could not be read.
        unreadable: Option<String>,
    },
    /// More records were skipped than [`BuildOptions::max_skipped`](super::BuildOptions::max_skipped) allows.
    #[error("{skipped} of {records} records skipped, more than {}%, the first at {first}", percent(*max_skipped))]
    TooManySkipped {
        /// Records that were skipped.
        skipped: u64,
        /// All records.
        records: u64,
        /// The share that is allowed.
        max_skipped: f64,
        /// A description of the first of them.
        first: String,
    },
    /// An id that occurs twice in a strict build.
    #[error("document {document} repeats the id {id:?}")]
    Duplicate {
        /// The id.
        id: String,
        /// The document with the repeated id, counting from 1.
        document: u64,
    },
    /// More documents than an index can number.
    #[error("more than {MAX_DOCUMENTS} documents; divide the collection into several indexes")]
    TooManyDocuments,
    /// More terms than an index can number.
    #[error("more than {MAX_TERMS} different terms; divide the collection into several indexes")]
    TooManyTerms,
    /// More bytes of terms and lists than the term table can address.
    #[error("the terms or their short lists take more than 1 TiB; divide the collection into several indexes")]
    TermsTooLarge,
    /// Options that contradict each other or are out of range.
    #[error("{0}")]
    Options(String),
    /// A malformed line in the file of static ranks.
    #[error("{}:{line}: {what}; write an id and a non-negative number, separated by a tab", path.display())]
    Ranks {
        /// The file.
        path: PathBuf,
        /// The line, counting from 1.
        line: u64,
        /// What is wrong in it.
        what: String,
    },
    /// Not enough memory for the graph of documents and terms.
    #[error("ordering the documents needs about {} MiB beside the memory of the build, which are not available; \
             free memory, or keep the given order", bytes >> 20)]
    OrderMemory {
        /// About how many bytes are needed.
        bytes: u64,
    },
    /// The system starts no more threads.
    #[error("a thread of the build cannot be started: {0}; allow more threads (ulimit -u), or build with fewer")]
    Threads(io::Error),
    /// A compressor found no memory.
    #[error(
        "the build has run out of memory: {0}; allow more memory, or build with a smaller budget and fewer threads"
    )]
    Memory(io::Error),
    /// An error of a CIFF file.
    #[error("{}{source}", place(path, source))]
    Ciff {
        /// The file.
        path: PathBuf,
        /// The error.
        source: CiffError,
    },
    /// A CIFF file with a list that is too long to import.
    #[error(
        "{}: the list of the term {term:?} has more than 268,435,455 postings; index the documents instead",
        path.display()
    )]
    TooLongList {
        /// The file.
        path: PathBuf,
        /// The term.
        term: String,
    },
    /// Another process has changed a temporary file.
    #[error("a temporary file of the build was changed from outside; build again")]
    DamagedFile,
    /// A CIFF file with two lists of one term.
    #[error("{}: two lists for the term {term:?}; export it again with one list per term", path.display())]
    RepeatedTerm {
        /// The file.
        path: PathBuf,
        /// The term.
        term: String,
    },
}

impl BuildError {
    /// Names the file that an I/O error is about.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> BuildError {
        move |source| BuildError::Io { path: path.to_owned(), source }
    }
}

impl From<NoThread> for BuildError {
    fn from(NoThread(error): NoThread) -> BuildError {
        BuildError::Threads(error)
    }
}

/// The name of a CIFF file before an error that does not name it.
fn place(path: &Path, error: &CiffError) -> String {
    if matches!(error, CiffError::Open { .. }) { String::new() } else { format!("{}: ", path.display()) }
}

fn why_empty(skipped: u64, first: &Option<String>, left_out: &[LeftOut], unreadable: &Option<String>) -> String {
    let left_out: Vec<String> = left_out.iter().map(LeftOut::to_string).collect();
    let noun = if skipped == 1 { "record" } else { "records" };
    match (first, &left_out[..]) {
        (Some(first), _) => format!("{skipped} {noun} skipped, the first at {first}"),
        (None, []) => "the input is empty".to_owned(),
        (None, left_out) => {
            let cause = unreadable.as_ref().map_or(String::new(), |error| format!(" ({error})"));
            format!("left out {}{cause}", left_out.join(", "))
        }
    }
}

/// A share as a percentage without the noise of binary fractions.
fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "; free disk space or choose another folder: the build needs about three times the size of the index"
        }
        _ => "",
    }
}
