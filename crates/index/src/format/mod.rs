//! The bytes of an index: what the build writes and `open` reads, specified in `docs/format.md`.

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
/// The format this version writes. `tests/golden` pins its bytes: a change that an older reader would not notice needs a
/// greater number, and files of all numbers from `OLDEST` on stay readable.
pub const NEWEST: u32 = 1;

/// The formats this version reads, in words.
fn formats() -> String {
    if OLDEST == NEWEST { format!("format {NEWEST}") } else { format!("formats {OLDEST} to {NEWEST}") }
}

/// What to do about an index of another format.
fn advice(found: u32) -> &'static str {
    if found > NEWEST {
        "use a newer lanner, or rebuild it with 'lanner index'"
    } else {
        "rebuild it with 'lanner index'"
    }
}

/// What can be wrong with an index, each with what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// There is no index in the folder.
    #[error("{}: no index here; make one with 'lanner index --input PATH --index {}'", path.display(), path.display())]
    Missing {
        /// The folder.
        path: PathBuf,
    },
    /// The file was written by a version this one does not know.
    #[error("{}: index format {found}, this version reads {}; {}", path.display(), formats(), advice(*found))]
    Version {
        /// The file.
        path: PathBuf,
        /// The format the file states.
        found: u32,
    },
    /// Bytes are not what was written.
    #[error("{}: section '{section}' is damaged: {what}; restore the file from a copy or rebuild the index with 'lanner index'", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first broken section.
        section: &'static str,
        /// What does not hold.
        what: String,
    },
    /// Another process is writing this index.
    #[error("{}: another process is writing this index; wait until it has finished, or choose another folder", path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds files that are not ours.
    #[error("{}: the folder is not empty and holds no index; choose an empty or a new folder", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl IndexError {
    /// Names the file that an I/O error is about.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> IndexError {
        move |source| IndexError::Io { path: path.to_owned(), source }
    }

    /// States that a section of a file does not hold what it must.
    pub fn damaged(path: &Path, section: &'static str, what: impl Into<String>) -> IndexError {
        IndexError::Damaged { path: path.to_owned(), section, what: what.into() }
    }
}
