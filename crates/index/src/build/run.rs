//! Sorted runs on disk: postings that did not fit in memory, written and read term by term.
//!
//! A record is the length of the term (varint), the term, its number of documents (varint), the length of its pieces
//! (varint), and the pieces as [`super::accumulate::Sorted`] returns them.

use super::BuildError;
use super::write::{Spool, SpoolReader};
use crate::format::varint;
use std::path::Path;

/// Writes a run; terms come sorted by their bytes.
pub struct RunWriter {
    file: Spool,
    head: Vec<u8>,
}

impl RunWriter {
    /// Creates the file.
    pub fn create(path: &Path) -> Result<RunWriter, BuildError> {
        Ok(RunWriter { file: Spool::create(path.to_owned())?, head: Vec::new() })
    }

    /// Appends a term with its number of documents and its pieces.
    pub fn write(&mut self, text: &[u8], count: u32, pieces: &[u8]) -> Result<(), BuildError> {
        self.head.clear();
        varint::write(text.len() as u64, &mut self.head);
        self.head.extend_from_slice(text);
        varint::write(u64::from(count), &mut self.head);
        varint::write(pieces.len() as u64, &mut self.head);
        self.file.write(&self.head)?;
        self.file.write(pieces)
    }

    /// Flushes the file.
    pub fn finish(mut self) -> Result<(), BuildError> {
        self.file.flush()
    }
}

/// Reads a run.
pub struct RunReader(SpoolReader);

impl RunReader {
    /// Opens a run.
    pub fn open(path: &Path) -> Result<RunReader, BuildError> {
        SpoolReader::open(path).map(RunReader)
    }

    /// Puts the next term into `text` and its pieces into `pieces`, and returns its number of documents.
    pub fn next(&mut self, text: &mut Vec<u8>, pieces: &mut Vec<u8>) -> Result<Option<u32>, BuildError> {
        if self.0.is_at_end()? {
            return Ok(None);
        }
        let length = self.0.varint()?;
        self.0.bytes(length as usize, text)?;
        let count = self.0.varint()?;
        let length = self.0.varint()?;
        self.0.bytes(length as usize, pieces)?;
        Ok(Some(count as u32))
    }
}
