//! The writer of a segment file, which computes checksums on the way, and temporary files (spools).

use super::BuildError;
use crate::format::segment::{ALIGNMENT, CHUNK_BYTES, Entry, HEADER_BYTES, Header, Section};
use crate::format::varint;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const BUFFER_BYTES: usize = 256 * 1024;

/// A segment file being written, under a temporary name.
pub struct SegmentWriter {
    path: PathBuf,
    file: BufWriter<File>,
    position: u64,
    table: Vec<Entry>,
    /// Of the current section.
    checksum: crc32fast::Hasher,
    /// Of the current chunk of the file, and of those before it.
    chunk: crc32fast::Hasher,
    chunks: Vec<u8>,
}

impl SegmentWriter {
    /// Creates the file and reserves space for the header.
    pub fn create(path: &Path) -> Result<SegmentWriter, BuildError> {
        let file = File::create(path).map_err(BuildError::io(path))?;
        let mut writer = SegmentWriter {
            path: path.to_owned(),
            file: BufWriter::with_capacity(BUFFER_BYTES, file),
            position: 0,
            table: Vec::new(),
            checksum: crc32fast::Hasher::new(),
            chunk: crc32fast::Hasher::new(),
            chunks: Vec::new(),
        };
        writer.put(&[0; HEADER_BYTES])?;
        // The header is not known yet.
        writer.chunk.reset();
        Ok(writer)
    }

    /// Starts a section.
    pub fn begin(&mut self, section: Section) -> Result<(), BuildError> {
        self.end();
        let aligned = self.position.next_multiple_of(ALIGNMENT);
        self.put(&[0; ALIGNMENT as usize][..(aligned - self.position) as usize])?;
        self.checksum = crc32fast::Hasher::new();
        self.table.push(Entry { tag: section as u32, checksum: 0, offset: self.position, length: 0 });
        Ok(())
    }

    /// Appends to the current section.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), BuildError> {
        self.checksum.update(bytes);
        self.put(bytes)
    }

    /// Writes a whole section.
    pub fn section(&mut self, section: Section, bytes: &[u8]) -> Result<(), BuildError> {
        self.begin(section)?;
        self.write(bytes)
    }

    /// Appends a whole spool to the current section.
    pub fn copy(&mut self, spool: &mut Spool) -> Result<(), BuildError> {
        let mut reader = spool.reader()?;
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            match reader.some(&mut buffer)? {
                0 => return Ok(()),
                count => self.write(&buffer[..count])?,
            }
        }
    }

    /// Writes the checksums of chunks, fills in the table and size of the header, writes it, and syncs the file to disk.
    pub fn finish(mut self, mut header: Header) -> Result<Header, BuildError> {
        self.begin(Section::Checksums)?;
        if !self.position.is_multiple_of(CHUNK_BYTES as u64) {
            self.end_chunk();
        }
        let chunks = std::mem::take(&mut self.chunks);
        self.write(&chunks)?;
        self.end();
        header.table = std::mem::take(&mut self.table);
        header.file_bytes = self.position;
        let result = self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.write_all(&header.encode()));
        let result = result.and_then(|()| self.file.flush()).and_then(|()| self.file.get_ref().sync_all());
        result.map_err(BuildError::io(&self.path))?;
        Ok(header)
    }

    fn end(&mut self) {
        if let Some(entry) = self.table.last_mut().filter(|entry| entry.length == 0) {
            entry.length = self.position - entry.offset;
            entry.checksum = self.checksum.clone().finalize();
        }
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), BuildError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let left = CHUNK_BYTES - (self.position % CHUNK_BYTES as u64) as usize;
            let (now, later) = rest.split_at(left.min(rest.len()));
            self.chunk.update(now);
            self.position += now.len() as u64;
            if now.len() == left {
                self.end_chunk();
            }
            rest = later;
        }
        self.file.write_all(bytes).map_err(BuildError::io(&self.path))
    }

    fn end_chunk(&mut self) {
        let checksum = std::mem::take(&mut self.chunk).finalize();
        self.chunks.extend(checksum.to_le_bytes());
    }
}

/// A temporary file that is written once and then read any number of times.
pub struct Spool {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Spool {
    /// Creates the file.
    pub fn create(path: PathBuf) -> Result<Spool, BuildError> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.map_err(BuildError::io(&path))?;
        Ok(Spool { path, file: BufWriter::with_capacity(BUFFER_BYTES, file) })
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), BuildError> {
        self.file.write_all(bytes).map_err(BuildError::io(&self.path))
    }

    /// Reads the whole file and removes it.
    pub fn into_bytes(mut self) -> Result<Vec<u8>, BuildError> {
        let result = self.file.flush().and_then(|()| std::fs::read(&self.path));
        let bytes = result.map_err(BuildError::io(&self.path))?;
        self.remove()?;
        Ok(bytes)
    }

    /// Removes the file.
    pub fn remove(self) -> Result<(), BuildError> {
        std::fs::remove_file(&self.path).map_err(BuildError::io(&self.path))
    }

    /// Writes out what is buffered.
    pub fn flush(&mut self) -> Result<(), BuildError> {
        self.file.flush().map_err(BuildError::io(&self.path))
    }

    /// Reads from the start.
    pub fn reader(&mut self) -> Result<SpoolReader, BuildError> {
        self.flush()?;
        SpoolReader::open(&self.path)
    }
}

/// Reads a spool.
pub struct SpoolReader {
    path: PathBuf,
    file: BufReader<File>,
}

impl SpoolReader {
    /// Opens a spool that was flushed.
    pub fn open(path: &Path) -> Result<SpoolReader, BuildError> {
        let file = File::open(path).map_err(BuildError::io(path))?;
        Ok(SpoolReader { path: path.to_owned(), file: BufReader::with_capacity(BUFFER_BYTES, file) })
    }

    /// Whether all was read.
    pub fn is_at_end(&mut self) -> Result<bool, BuildError> {
        self.file.fill_buf().map(<[u8]>::is_empty).map_err(BuildError::io(&self.path))
    }

    /// Reads a varint.
    pub fn varint(&mut self) -> Result<u64, BuildError> {
        varint::read_from(&mut self.file).map_err(BuildError::io(&self.path))
    }

    /// Replaces `out` by the next `count` bytes.
    pub fn bytes(&mut self, count: usize, out: &mut Vec<u8>) -> Result<(), BuildError> {
        out.clear();
        out.resize(count, 0);
        self.file.read_exact(out).map_err(BuildError::io(&self.path))
    }

    /// Reads up to `buffer.len()` bytes; 0 at the end.
    pub fn some(&mut self, buffer: &mut [u8]) -> Result<usize, BuildError> {
        self.file.read(buffer).map_err(BuildError::io(&self.path))
    }
}
