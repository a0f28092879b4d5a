//! Cuts the input into batches at record boundaries.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::batch::{Content, Part, PartKind};
use super::decompress::{BUFFER_BYTES, Decompressed};
use super::detect;
use super::document::Document;
use super::ends::Ends;
use super::error::CorpusError;
use super::files::name_of;
use super::format::Format;
use super::left_out::{LeftOutCounts, Reason};
use super::schema::{Schema, Schemas};
use super::walk::FoundFile;
use super::{csv, lines, text};

/// Where batches end. The limits decide the bytes of an index, so they are constant outside of tests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// A batch ends at the first record boundary at or after this many bytes.
    pub(super) batch_bytes: usize,
    /// A batch has at most this many files, however small they are.
    pub(super) batch_files: usize,
    /// A longer record is taken as a sign that the input has another format.
    pub(super) record_bytes: usize,
}

pub(super) const LIMITS: Limits = Limits { batch_bytes: 1 << 20, batch_files: 1 << 14, record_bytes: 1 << 30 };

/// Documents that are in memory already.
pub(super) struct MemoryCutter {
    pub(super) documents: Box<dyn Iterator<Item = Document> + Send>,
    pub(super) schema: Arc<Schema>,
    pub(super) documents_cut: u64,
}

impl MemoryCutter {
    /// Takes one batch of documents.
    pub(super) fn cut(&mut self, limits: Limits, bytes_read: &AtomicU64) -> Content {
        let first_number = self.documents_cut + 1;
        let mut taken = Vec::new();
        let mut bytes = 0;
        while bytes < limits.batch_bytes && taken.len() < limits.batch_files {
            let Some(document) = self.documents.next() else {
                break;
            };
            bytes += document.bytes();
            taken.push(document);
        }
        self.documents_cut += taken.len() as u64;
        bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
        Content::Memory { schema: Arc::clone(&self.schema), first_number, documents: taken }
    }
}

/// The file that is being read.
pub(super) struct OpenFile {
    file: Decompressed,
    pub(super) schema: Arc<Schema>,
    ends: Ends,
    /// The file's path below the input.
    relative: Vec<u8>,
    /// The line of the next byte.
    line: u64,
    /// The value of `bytes_read` after this file; `None` if it is the whole input.
    bytes_read_after: Option<u64>,
}

impl OpenFile {
    /// Reads what comes before the first record.
    fn open(
        mut file: Decompressed,
        mut schema: Arc<Schema>,
        relative: Vec<u8>,
        bytes_read_after: Option<u64>,
    ) -> Result<OpenFile, CorpusError> {
        let mut line = 1;
        if schema.format == Format::Csv {
            line += csv::open(&mut file, Arc::make_mut(&mut schema))?;
        }
        let ends = Ends::new(&schema);
        Ok(OpenFile { file, schema, ends, relative, line, bytes_read_after })
    }

    /// The only file of the input.
    pub(super) fn single(file: Decompressed, schema: Arc<Schema>, relative: Vec<u8>) -> Result<OpenFile, CorpusError> {
        OpenFile::open(file, schema, relative, None)
    }

    fn is_in_folder(&self) -> bool {
        self.bytes_read_after.is_some()
    }
}

/// Files on disk, or a pipe.
pub(super) struct FileCutter {
    pub(super) open: Option<OpenFile>,
    pub(super) waiting: std::vec::IntoIter<FoundFile>,
    pub(super) schemas: Schemas,
    pub(super) left_out: LeftOutCounts,
    /// Bytes read from the input files, as they are on disk.
    pub(super) bytes_read: Arc<AtomicU64>,
}

impl FileCutter {
    /// Reads one batch from the files that are left.
    pub(super) fn cut(&mut self, limits: Limits) -> Result<Content, CorpusError> {
        let mut bytes = Vec::with_capacity(limits.batch_bytes + BUFFER_BYTES);
        let mut parts = Vec::new();
        while bytes.len() < limits.batch_bytes && parts.len() < limits.batch_files {
            if let Some(file) = self.open.take() {
                match file.schema.format {
                    Format::Text => parts.extend(self.whole_file(file, &mut bytes, limits)?),
                    _ => self.records(file, &mut bytes, &mut parts, limits)?,
                }
            } else if let Some(found) = self.waiting.next() {
                parts.extend(self.open_next(found)?);
            } else {
                break;
            }
        }
        Ok(Content::Bytes { bytes, parts })
    }

    /// Opens a file of a folder, unless it is left out; returns a part if it is a document that cannot be read.
    fn open_next(&mut self, found: FoundFile) -> Result<Option<Part>, CorpusError> {
        let bytes_read_after = self.bytes_read.load(Ordering::Relaxed) + found.size;
        let opened = self.open_found(&found, bytes_read_after);
        let mut part = None;
        match opened {
            Ok(Ok(file)) => {
                self.open = Some(file);
                return Ok(None);
            }
            Ok(Err(reason)) => self.left_out.add(reason, &found.path),
            Err(CorpusError::Damaged { damage, .. }) if detect::is_one_document(&found.path, &self.schemas.options) => {
                match self.schemas.of(Format::Text) {
                    Ok(schema) => {
                        let kind = PartKind::Problem { line: 1, what: damage.to_string() };
                        part = Some(Part { source: name_of(&found.path), schema, range: 0..0, kind });
                    }
                    Err(_) => self.left_out.add(Reason::NoSuchField, &found.path),
                }
            }
            Err(error) => self.unreadable(error)?,
        }
        self.count_as_read(Some(bytes_read_after));
        Ok(part)
    }

    /// Opens a file in the format that it has, or says why it is left out.
    fn open_found(
        &mut self,
        found: &FoundFile,
        bytes_read_after: u64,
    ) -> Result<Result<OpenFile, Reason>, CorpusError> {
        let mut file = Decompressed::open(&found.path, &self.bytes_read)?;
        let format = match detect::format_in_folder(&found.path, &mut file, &self.schemas.options)? {
            Ok(format) => format,
            Err(reason) => return Ok(Err(reason)),
        };
        match self.schemas.of(format) {
            Ok(schema) => OpenFile::open(file, schema, found.relative.clone(), Some(bytes_read_after)).map(Ok),
            Err(_) if self.schemas.options.format.is_none() => Ok(Err(Reason::NoSuchField)),
            Err(error) => Err(error),
        }
    }

    /// Leaves out a file of a folder, or the rest of it, that cannot be read; other errors stop the reading.
    fn unreadable(&mut self, error: CorpusError) -> Result<(), CorpusError> {
        if !error.is_of_one_file() {
            return Err(error);
        }
        self.left_out.add_unreadable(Reason::UnreadableFile, &error);
        Ok(())
    }

    /// Counts the unread rest of a file as read, so that progress ends at the total.
    fn count_as_read(&self, bytes_read_after: Option<u64>) {
        self.bytes_read.fetch_max(bytes_read_after.unwrap_or(0), Ordering::Relaxed);
    }

    /// Appends records of a file, which stays open unless it has ended.
    fn records(
        &mut self,
        mut file: OpenFile,
        bytes: &mut Vec<u8>,
        parts: &mut Vec<Part>,
        limits: Limits,
    ) -> Result<(), CorpusError> {
        let start = bytes.len();
        let ends = file.ends.clone();
        let ended = match file.fill(bytes, limits) {
            Ok(ended) => ended,
            Err(error) if file.is_in_folder() => {
                // The records before the damage are whole.
                bytes.truncate(last_end(ends, bytes, start));
                self.unreadable(error)?;
                self.count_as_read(file.bytes_read_after);
                // That it ends too early is said.
                file.ends = Ends::Lines;
                true
            }
            Err(error) => return Err(error),
        };
        let (source, schema) = (file.file.source(), Arc::clone(&file.schema));
        let kind = PartKind::Records { first_line: file.line };
        file.line += lines::count(&bytes[start..]);
        // A file may end exactly where the batch before ended.
        if bytes.len() > start {
            parts.push(Part {
                source: Arc::clone(&source),
                schema: Arc::clone(&schema),
                range: start..bytes.len(),
                kind,
            });
        }
        if !ended {
            self.open = Some(file);
        } else if let Some(what) = file.ends.complaint() {
            let kind = PartKind::Problem { line: file.line, what: what.to_owned() };
            parts.push(Part { source, schema, range: 0..0, kind });
        }
        Ok(())
    }

    /// Appends a file as one document; a file that cannot be one becomes a problem or is left out.
    fn whole_file(
        &mut self,
        mut file: OpenFile,
        bytes: &mut Vec<u8>,
        limits: Limits,
    ) -> Result<Option<Part>, CorpusError> {
        let start = bytes.len();
        let source = file.file.source();
        let read = text::read_whole(&mut file.file, bytes, limits.record_bytes);
        self.count_as_read(file.bytes_read_after);
        let kind = match read {
            Ok(text::Outcome::Read) => text::identified(file.relative),
            Ok(text::Outcome::TooLong) => {
                unusable(format!("longer than {} bytes; split the file", limits.record_bytes))
            }
            Ok(text::Outcome::Binary) => {
                self.left_out.add(Reason::Binary, Path::new(&*source));
                bytes.truncate(start);
                return Ok(None);
            }
            Err(CorpusError::Damaged { damage, .. }) => unusable(damage.to_string()),
            Err(error) if file.bytes_read_after.is_some() => {
                bytes.truncate(start);
                return self.unreadable(error).map(|()| None);
            }
            Err(error) => return Err(error),
        };
        if matches!(kind, PartKind::Problem { .. }) {
            bytes.truncate(start);
        }
        Ok(Some(Part { source, schema: file.schema, range: start..bytes.len(), kind }))
    }
}

/// A whole file that cannot be a document.
fn unusable(what: String) -> PartKind {
    PartKind::Problem { line: 1, what }
}

/// Returns the end of the last record at or after `start`, where the bytes after `start` begin with a record.
fn last_end(mut ends: Ends, bytes: &[u8], start: usize) -> usize {
    let mut end = start;
    while let Some(length) = ends.next(&bytes[end..]) {
        end += length;
    }
    end
}

impl OpenFile {
    /// Reads up to the first record boundary at or after the size of a batch; true at the end of the file.
    fn fill(&mut self, bytes: &mut Vec<u8>, limits: Limits) -> Result<bool, CorpusError> {
        let start = bytes.len();
        let target = limits.batch_bytes;
        let overlap = self.ends.overlap();
        let mut has_ended = self.file.read_into(bytes, target - start)? < target - start;
        let mut searched = overlap.map_or(start, |overlap| start.max(target.saturating_sub(overlap + 1)));
        loop {
            // What reads all bytes reads those after the last record, too.
            while !(has_ended && overlap.is_some())
                && let Some(length) = self.ends.next(&bytes[searched..])
            {
                searched += length;
                if !has_ended && searched >= target {
                    self.file.give_back(bytes.split_off(searched));
                    return Ok(false);
                }
            }
            if has_ended {
                return Ok(true);
            }
            searched = overlap.map_or(bytes.len(), |overlap| searched.max(bytes.len().saturating_sub(overlap)));
            if bytes.len() - target > limits.record_bytes {
                return Err(CorpusError::RecordTooLong {
                    path: self.file.source().to_string(),
                    line: self.line + lines::count(&bytes[start..]),
                    limit: limits.record_bytes,
                    format: self.schema.format,
                });
            }
            has_ended = self.file.read_into(bytes, BUFFER_BYTES)? == 0;
        }
    }
}
