//! What stops the reading of a collection. A malformed record does not: it is a [`super::Problem`].

use std::fmt;
use std::io;

use super::format::Format;
use super::stream::Compression;

/// Why a collection cannot be read, or not any further.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// A file or folder cannot be opened.
    #[error("{path}: cannot be opened: {source}")]
    Open {
        /// The file or folder.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// Reading failed in the middle.
    #[error("{path}: reading failed after {position} bytes: {source}")]
    Read {
        /// The file.
        path: String,
        /// Bytes of the file that had been used.
        position: u64,
        /// What the system said.
        source: io::Error,
    },
    /// Compressed data is broken or ends too early.
    #[error("{path}: {damage}")]
    Damaged {
        /// The file.
        path: String,
        /// What is broken, and where.
        damage: Damage,
    },
    /// Neither name nor content tells the format.
    #[error("{path}: cannot tell the format; name it with --format jsonl|tsv|trec|beir|text|ciff")]
    UnclearFormat {
        /// The input.
        path: String,
    },
    /// A folder holds files of more than one format.
    #[error("{path}: the folder holds {found} files; choose with --format, or give one file as input")]
    SeveralFormats {
        /// The folder.
        path: String,
        /// The formats, joined by "and".
        found: String,
    },
    /// A folder has no file of the format.
    #[error("{path}: no {format} files in this folder; {expected}")]
    NoFiles {
        /// The folder.
        path: String,
        /// The format that was asked for.
        format: Format,
        /// Which files would have been read.
        expected: String,
    },
    /// No record border for too long.
    #[error("{path}:{line}: a record of more than {limit} bytes; is the file really {format}? choose with --format")]
    RecordTooLong {
        /// The file.
        path: String,
        /// The line that was reached.
        line: u64,
        /// The longest record that is accepted.
        limit: usize,
        /// The format in which it was read.
        format: Format,
    },
    /// A field was asked for that the format cannot have.
    #[error("{format} input has no field \"{field}\"; its fields are {known}")]
    UnknownField {
        /// The format.
        format: Format,
        /// The name that was asked for.
        field: String,
        /// The names there are.
        known: String,
    },
    /// Term weights were asked for from a format that has none.
    #[error("{format} input has no term weights; give them as JSON lines (--format jsonl)")]
    NoVectors {
        /// The format.
        format: Format,
    },
    /// The field of the weights has a second role.
    #[error("field \"{field}\" holds term weights; it cannot be the id, indexed or stored as well")]
    VectorFieldTaken {
        /// The field.
        field: String,
    },
}

/// Broken or truncated compressed data.
#[derive(Debug)]
pub struct Damage {
    pub(super) compression: Compression,
    pub(super) position: u64,
    pub(super) error: io::Error,
}

impl fmt::Display for Damage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage { compression, position, error } = self;
        if error.kind() == io::ErrorKind::UnexpectedEof {
            write!(
                formatter,
                "the {compression} data ends too early, at byte {position}; get a complete copy of the file"
            )
        } else {
            write!(
                formatter,
                "the {compression} data is damaged at byte {position} ({error}); get a sound copy of the file"
            )
        }
    }
}
