//! The file format of an index, which `build` writes and `open` reads; `docs/format.md` specifies it.

pub mod dense;
pub mod folder;
pub mod impact_ordered;
pub mod lexicon;
pub mod list;
pub mod manifest;
pub mod segment;
pub mod varint;

use std::io;
use std::path::{Path, PathBuf};

/// The oldest format this version reads.
pub const OLDEST: u32 = 1;
/// The format this version writes. The files in `tests/golden` pin its bytes: a change that an older reader would
/// misread needs a higher number, and files of all formats from `OLDEST` on stay readable.
pub const NEWEST: u32 = 1;

/// The formats this version reads, for a message.
fn formats() -> String {
    if OLDEST == NEWEST { format!("format {NEWEST}") } else { format!("formats {OLDEST} to {NEWEST}") }
}

/// What to do about an index with another format.
fn advice(found: u32) -> &'static str {
    if found > NEWEST { "use a newer lanner, or rebuild it" } else { "rebuild it" }
}

/// What can be wrong with an index. Every message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// There is no index in the folder.
    #[error("{}: no index here; build one in this folder first", path.display())]
    Missing {
        /// The folder.
        path: PathBuf,
    },
    /// There is a file where the folder of an index is wanted.
    #[error("{}: not a folder; an index is a folder, so give the one in which it is or shall be", path.display())]
    NotFolder {
        /// The path.
        path: PathBuf,
    },
    /// The file has a format that this version does not read.
    #[error("{}: index format {found}, this version reads {}; {}", path.display(), formats(), advice(*found))]
    Version {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        found: u32,
    },
    /// A file does not hold what was written.
    #[error(
        "{}: section '{section}' is damaged: {what}; restore the file from a copy or rebuild the index",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first damaged section.
        section: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// Another process is writing this index.
    #[error(
        "{}: another process is writing this index; wait until it has finished, or choose another folder",
        path.display()
    )]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds files, but no index.
    #[error("{}: the folder is not empty and holds no index; choose an empty or a new folder", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
    },
    /// An I/O error.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Its cause.
        source: io::Error,
    },
}

impl IndexError {
    /// Adds the path to an I/O error.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> IndexError {
        move |source| IndexError::Io { path: path.to_owned(), source }
    }

    /// A damaged section of a file.
    pub fn damaged(path: &Path, section: &'static str, what: impl Into<String>) -> IndexError {
        IndexError::Damaged { path: path.to_owned(), section, what: what.into() }
    }
}
