//! Where one batch ends and the next begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::batch::{Content, Part, PartKind};
use super::error::CorpusError;
use super::files::{self, FoundFile};
use super::format::Format;
use super::stream::Stream;
use super::{lines, text, trec};

/// Where batches end. Part of the meaning of an index, hence constant outside of tests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// A batch ends at the first record border at or after this many bytes.
    pub(super) batch_bytes: usize,
    /// A batch of the text format ends after this many files, however small they are.
    pub(super) batch_files: usize,
    /// A longer record means that the input is not what it was said to be.
    pub(super) record_bytes: usize,
}

pub(super) const LIMITS: Limits = Limits { batch_bytes: 1 << 20, batch_files: 1 << 14, record_bytes: 1 << 30 };

/// How much is read at a time in search of a record border.
pub(super) const CHUNK_BYTES: usize = 1 << 16;

/// The file that is being read.
pub(super) struct OpenFile {
    stream: Stream,
    /// The file's path below the input.
    relative: Vec<u8>,
    /// The line that the next byte lies on.
    line: u64,
}

impl OpenFile {
    pub(super) fn new(stream: Stream, relative: Vec<u8>) -> OpenFile {
        OpenFile { stream, relative, line: 1 }
    }
}

/// Takes one batch of documents that are in memory already.
pub(super) fn batch_from_memory(
    documents: &mut dyn Iterator<Item = (String, String, String)>,
    handed_out: &mut u64,
    limits: Limits,
    bytes_read: &AtomicU64,
) -> Content {
    let first_number = *handed_out + 1;
    let mut taken = Vec::new();
    let mut bytes = 0;
    while bytes < limits.batch_bytes && taken.len() < limits.batch_files {
        let Some(document) = documents.next() else {
            break;
        };
        bytes += document.0.len() + document.1.len() + document.2.len();
        taken.push(document);
    }
    *handed_out += taken.len() as u64;
    bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
    Content::Memory { first_number, documents: taken }
}

/// Cuts one batch from the files that are left.
pub(super) struct FileCutter<'c> {
    pub(super) open: &'c mut Option<OpenFile>,
    pub(super) waiting: &'c mut std::vec::IntoIter<FoundFile>,
    pub(super) format: Format,
    pub(super) limits: Limits,
    pub(super) bytes_read: &'c Arc<AtomicU64>,
}

impl FileCutter<'_> {
    pub(super) fn cut(mut self) -> Result<Content, CorpusError> {
        let mut bytes = Vec::with_capacity(self.limits.batch_bytes + CHUNK_BYTES);
        let mut parts = Vec::new();
        while bytes.len() < self.limits.batch_bytes && parts.len() < self.limits.batch_files {
            let part = match self.format {
                Format::Text => self.whole_file(&mut bytes)?,
                Format::Jsonl | Format::Beir | Format::Tsv | Format::Trec => self.records(&mut bytes)?,
            };
            match part {
                // A file can end where the batch before ended.
                Some(part) if part.range.is_empty() && self.format != Format::Text => {}
                Some(part) => parts.push(part),
                None => break,
            }
        }
        Ok(Content::Bytes { bytes, parts })
    }

    /// Appends records of the current file, or of the next one.
    fn records(&mut self, bytes: &mut Vec<u8>) -> Result<Option<Part>, CorpusError> {
        let mut file = match self.open.take() {
            Some(file) => file,
            None => match self.waiting.next() {
                Some(found) => OpenFile::new(Stream::open(&found.path, self.bytes_read)?, found.relative),
                None => return Ok(None),
            },
        };
        let start = bytes.len();
        let ended = self.fill(&mut file, bytes)?;
        let part = Part {
            source: file.stream.source(),
            range: start..bytes.len(),
            kind: PartKind::Records { first_line: file.line },
        };
        file.line += lines::count(&bytes[start..]);
        if !ended {
            *self.open = Some(file);
        }
        Ok(Some(part))
    }

    /// Reads up to the first record border at or after the size of a batch; true at the end of the file.
    fn fill(&self, file: &mut OpenFile, bytes: &mut Vec<u8>) -> Result<bool, CorpusError> {
        let start = bytes.len();
        let target = self.limits.batch_bytes;
        if file.stream.read_into(bytes, target - start)? < target - start {
            return Ok(true);
        }
        let border = match self.format {
            Format::Trec => trec::document_end,
            _ => lines::line_end,
        };
        let width = match self.format {
            Format::Trec => trec::DOCUMENT_END.len(),
            _ => 1,
        };
        let mut searched = start.max(target.saturating_sub(width));
        loop {
            if let Some(end) = border(&bytes[searched..]) {
                file.stream.give_back(bytes.split_off(searched + end));
                return Ok(false);
            }
            searched = searched.max((bytes.len() + 1).saturating_sub(width));
            if bytes.len() - target > self.limits.record_bytes {
                return Err(CorpusError::RecordTooLong {
                    path: file.stream.source().to_string(),
                    line: file.line + lines::count(&bytes[start..]),
                    limit: self.limits.record_bytes,
                    format: self.format,
                });
            }
            if file.stream.read_into(bytes, CHUNK_BYTES)? == 0 {
                return Ok(true);
            }
        }
    }

    /// Appends the next file as one document; what is wrong with its content is a problem of that document.
    fn whole_file(&mut self, bytes: &mut Vec<u8>) -> Result<Option<Part>, CorpusError> {
        let start = bytes.len();
        let limit = self.limits.record_bytes;
        let (source, relative, read) = match self.open.take() {
            Some(mut file) => {
                let read = text::read_whole(&mut file.stream, bytes, limit);
                (file.stream.source(), file.relative, read)
            }
            None => {
                let Some(found) = self.waiting.next() else {
                    return Ok(None);
                };
                let bytes_read_before = self.bytes_read.load(Ordering::Relaxed);
                let read = Stream::open(&found.path, self.bytes_read)
                    .and_then(|mut stream| text::read_whole(&mut stream, bytes, limit));
                // What is left of a file that was given up counts as read, so that progress ends at the total.
                self.bytes_read.fetch_max(bytes_read_before + found.size, Ordering::Relaxed);
                (files::name_of(&found.path), found.relative, read)
            }
        };
        let kind = match read {
            Ok(outcome) => text::identified(outcome, relative),
            Err(CorpusError::Damaged { damage, .. }) => PartKind::Unusable { line: 1, what: damage.to_string() },
            Err(error) => return Err(error),
        };
        if matches!(kind, PartKind::Unusable { .. }) {
            bytes.truncate(start);
        }
        Ok(Some(Part { source, range: start..bytes.len(), kind }))
    }
}
