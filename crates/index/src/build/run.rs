//! Sorted runs on disk: postings that did not fit in memory, written and read term by term.
//!
//! A record is the length of the term (varint), the term, its number of documents (varint), the length of its pieces
//! (varint), and the pieces as [`super::accumulate::Sorted`] returns them.

use super::BuildError;
use crate::format::varint;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

const BUFFER_BYTES: usize = 256 * 1024;

/// Writes a run; terms come sorted by their bytes.
pub struct RunWriter {
    path: PathBuf,
    file: BufWriter<File>,
    head: Vec<u8>,
}

impl RunWriter {
    /// Creates the file.
    pub fn create(path: &Path) -> Result<RunWriter, BuildError> {
        let file = File::create(path).map_err(BuildError::io(path))?;
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(RunWriter { path: path.to_owned(), file, head: Vec::new() })
    }

    /// Appends a term with its number of documents and its pieces.
    pub fn write(&mut self, text: &[u8], count: u32, pieces: &[u8]) -> Result<(), BuildError> {
        self.head.clear();
        varint::write(text.len() as u64, &mut self.head);
        self.head.extend_from_slice(text);
        varint::write(u64::from(count), &mut self.head);
        varint::write(pieces.len() as u64, &mut self.head);
        let written = self.file.write_all(&self.head).and_then(|()| self.file.write_all(pieces));
        written.map_err(BuildError::io(&self.path))
    }

    /// Flushes the file.
    pub fn finish(mut self) -> Result<(), BuildError> {
        self.file.flush().map_err(BuildError::io(&self.path))
    }
}

/// Reads a run.
pub struct RunReader {
    path: PathBuf,
    file: BufReader<File>,
}

impl RunReader {
    /// Opens a run.
    pub fn open(path: &Path) -> Result<RunReader, BuildError> {
        let file = File::open(path).map_err(BuildError::io(path))?;
        Ok(RunReader { path: path.to_owned(), file: BufReader::with_capacity(BUFFER_BYTES, file) })
    }

    /// Puts the next term into `text` and its pieces into `pieces`, and returns its number of documents.
    pub fn next(&mut self, text: &mut Vec<u8>, pieces: &mut Vec<u8>) -> Result<Option<u32>, BuildError> {
        self.read(text, pieces).map_err(BuildError::io(&self.path))
    }

    fn read(&mut self, text: &mut Vec<u8>, pieces: &mut Vec<u8>) -> std::io::Result<Option<u32>> {
        if self.file.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let length = varint::read_from(&mut self.file)?;
        self.read_exactly(length, text)?;
        let count = varint::read_from(&mut self.file)?;
        let length = varint::read_from(&mut self.file)?;
        self.read_exactly(length, pieces)?;
        Ok(Some(count as u32))
    }

    fn read_exactly(&mut self, length: u64, out: &mut Vec<u8>) -> std::io::Result<()> {
        out.clear();
        out.resize(length as usize, 0);
        self.file.read_exact(out)
    }
}
