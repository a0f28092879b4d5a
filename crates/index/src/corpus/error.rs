//! Errors that stop the reading of a collection. A malformed record does not: it is a [`super::Problem`].

use std::fmt;
use std::io;

use super::decompress::Compression;
use super::format::Format;

/// Why a collection cannot be read, or cannot be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// A file or folder cannot be opened.
    #[error("{path}: cannot be opened: {source}")]
    Open {
        /// The file or folder.
        path: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A field is to be indexed or stored twice, which would count its words twice.
    #[error("field {field:?} is named twice; name it once")]
    RepeatedField {
        /// Its name.
        field: String,
    },
    /// Reading failed in the middle.
    #[error("{path}: reading failed after {position} bytes: {source}")]
    Read {
        /// The file.
        path: String,
        /// How many bytes of the file had been read.
        position: u64,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Compressed data is damaged or ends too early.
    #[error("{path}: {damage}")]
    Damaged {
        /// The file.
        path: String,
        /// What is damaged, and where.
        damage: Damage,
    },
    /// A CSV file does not begin with the names of its columns.
    #[error("{path}: no header; the first record of a CSV file must name its columns, in UTF-8 and in less than 1 MiB")]
    NoHeader {
        /// The file.
        path: String,
    },
    /// No column of a CSV file is the id.
    #[error("{path}:1: {what}")]
    NoIdColumn {
        /// The file.
        path: String,
        /// The names that the column may have, and those that the file has.
        what: String,
    },
    /// Neither the name nor the content tells the format.
    #[error("{path}: cannot tell the format")]
    UnclearFormat {
        /// The input.
        path: String,
    },
    /// A folder has no file that can be read.
    #[error("{path}: no files to read in this folder; {expected}")]
    NoFiles {
        /// The folder.
        path: String,
        /// Which files would have been read.
        expected: String,
    },
    /// The input is the folder of an index.
    #[error("{path}: this folder holds an index, not documents; give the folder or file of the documents")]
    IsIndex {
        /// The folder.
        path: String,
    },
    /// A NUL byte where text is expected.
    #[error("{path}: a NUL at byte {position}: a binary file where text is expected; check that it is the right file")]
    Binary {
        /// The file.
        path: String,
        /// The position of the NUL in the decompressed file.
        position: usize,
    },
    /// Text that is not UTF-8, in a file that is read as a whole.
    #[error("{path}:{line}: not valid UTF-8; convert the file to UTF-8")]
    InvalidUtf8 {
        /// The file.
        path: String,
        /// The line, from 1.
        line: u64,
    },
    /// A record is longer than any record should be.
    #[error("{path}:{line}: a record of more than {limit} bytes; the file is probably not {format}")]
    RecordTooLong {
        /// The file.
        path: String,
        /// The line at which reading stopped.
        line: u64,
        /// The length of the longest record that is accepted, in bytes.
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
        /// The names of the fields that the format has.
        known: String,
    },
    /// Term weights were asked for from a format that has none.
    #[error("{format} input has no term weights; give them as JSON lines")]
    NoVectors {
        /// The format.
        format: Format,
    },
    /// The field of the term weights is also named as another field.
    #[error("field \"{field}\" holds term weights; it cannot be the id, indexed or stored as well")]
    VectorFieldTaken {
        /// The field.
        field: String,
    },
}

impl CorpusError {
    /// Whether the file cannot be read, and nothing is said of the options or of other files.
    pub(super) fn is_of_one_file(&self) -> bool {
        matches!(self, CorpusError::Open { .. } | CorpusError::Read { .. } | CorpusError::Damaged { .. })
    }
}

/// Damaged or truncated compressed data.
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
