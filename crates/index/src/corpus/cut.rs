//! Cuts the input into batches at record boundaries.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::batch::{Content, Part, PartKind};
use super::decompress::{BUFFER_BYTES, Decompressed};
use super::document::Document;
use super::error::CorpusError;
use super::files::{self, FoundFile};
use super::format::Format;
use super::left_out::{LeftOutCounts, Reason};
use super::schema::{Schema, Schemas};
use super::{lines, text, trec};

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
    /// The file's path below the input.
    relative: Vec<u8>,
    /// The line of the next byte.
    line: u64,
    /// The value of `bytes_read` after this file, where its size is known.
    bytes_read_after: u64,
}

impl OpenFile {
    /// The only file of the input.
    pub(super) fn single(file: Decompressed, schema: Arc<Schema>, relative: Vec<u8>) -> OpenFile {
        OpenFile { file, schema, relative, line: 1, bytes_read_after: 0 }
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
                let part = match file.schema.format {
                    Format::Text => self.whole_file(file, &mut bytes, limits)?,
                    Format::Jsonl | Format::Beir | Format::Tsv | Format::Trec => {
                        self.records(file, &mut bytes, limits)?
                    }
                };
                parts.extend(part);
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
        let opened = Decompressed::open(&found.path, &self.bytes_read).and_then(|mut file| {
            let format = files::format_in_folder(&found.path, &mut file, &self.schemas.options)?;
            Ok((file, format))
        });
        let mut part = None;
        match opened {
            Ok((file, Ok(format))) => match self.schemas.of(format) {
                Ok(schema) => {
                    let FoundFile { relative, .. } = found;
                    self.open = Some(OpenFile { file, schema, relative, line: 1, bytes_read_after });
                    return Ok(None);
                }
                Err(_) if self.schemas.options.format.is_none() => self.left_out.add(Reason::NoSuchField, &found.path),
                Err(error) => return Err(error),
            },
            Ok((_, Err(reason))) => self.left_out.add(reason, &found.path),
            Err(CorpusError::Damaged { damage, .. }) if files::is_one_document(&found.path, &self.schemas.options) => {
                match self.schemas.of(Format::Text) {
                    Ok(schema) => {
                        let (source, kind) = (files::name_of(&found.path), PartKind::Unusable(damage.to_string()));
                        part = Some(Part { source, schema, range: 0..0, kind });
                    }
                    Err(_) => self.left_out.add(Reason::NoSuchField, &found.path),
                }
            }
            Err(error) => return Err(error),
        }
        self.count_as_read(bytes_read_after);
        Ok(part)
    }

    /// Counts the unread rest of a file as read, so that progress ends at the total.
    fn count_as_read(&self, bytes_read_after: u64) {
        self.bytes_read.fetch_max(bytes_read_after, Ordering::Relaxed);
    }

    /// Appends records of a file, which stays open unless it has ended.
    fn records(
        &mut self,
        mut file: OpenFile,
        bytes: &mut Vec<u8>,
        limits: Limits,
    ) -> Result<Option<Part>, CorpusError> {
        let start = bytes.len();
        let ended = file.fill(bytes, limits)?;
        let part = Part {
            source: file.file.source(),
            schema: Arc::clone(&file.schema),
            range: start..bytes.len(),
            kind: PartKind::Records { first_line: file.line },
        };
        file.line += lines::count(&bytes[start..]);
        if !ended {
            self.open = Some(file);
        }
        // A file may end exactly where the batch before ended.
        Ok(Some(part).filter(|part| !part.range.is_empty()))
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
                PartKind::Unusable(format!("longer than {} bytes; split the file", limits.record_bytes))
            }
            Ok(text::Outcome::Binary) => {
                self.left_out.add(Reason::Binary, Path::new(&*source));
                bytes.truncate(start);
                return Ok(None);
            }
            Err(CorpusError::Damaged { damage, .. }) => PartKind::Unusable(damage.to_string()),
            Err(error) => return Err(error),
        };
        if matches!(kind, PartKind::Unusable(_)) {
            bytes.truncate(start);
        }
        Ok(Some(Part { source, schema: file.schema, range: start..bytes.len(), kind }))
    }
}

impl OpenFile {
    /// Reads up to the first record boundary at or after the size of a batch; true at the end of the file.
    fn fill(&mut self, bytes: &mut Vec<u8>, limits: Limits) -> Result<bool, CorpusError> {
        let start = bytes.len();
        let target = limits.batch_bytes;
        if self.file.read_into(bytes, target - start)? < target - start {
            return Ok(true);
        }
        let is_trec = self.schema.format == Format::Trec;
        let boundary = if is_trec { trec::document_end } else { lines::line_end };
        let width = if is_trec { trec::DOCUMENT_END.len() } else { 1 };
        let mut searched = start.max(target.saturating_sub(width));
        loop {
            if let Some(end) = boundary(&bytes[searched..]) {
                self.file.give_back(bytes.split_off(searched + end));
                return Ok(false);
            }
            searched = searched.max((bytes.len() + 1).saturating_sub(width));
            if bytes.len() - target > limits.record_bytes {
                return Err(CorpusError::RecordTooLong {
                    path: self.file.source().to_string(),
                    line: self.line + lines::count(&bytes[start..]),
                    limit: limits.record_bytes,
                    format: self.schema.format,
                });
            }
            if self.file.read_into(bytes, BUFFER_BYTES)? == 0 {
                return Ok(true);
            }
        }
    }
}
