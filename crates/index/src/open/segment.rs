//! A memory-mapped segment file: its sections and its lists.

use super::checks::{Checks, Unsound};
use super::layout::ListLayout;
use super::list::{List, ListContext};
use super::map::Bytes;
use super::summary::Summary;
use super::terms::ListSpan;
use crate::format::IndexError;
use crate::format::lexicon::{GROUP_ROW_BYTES, LexiconLayout, MAX_TERMS, TERMS_IN_GROUP};
use crate::format::segment::{CHECKSUM, CHUNK_BYTES, HEADER_BYTES, Header, Section, u32_at};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A memory-mapped segment. Opening it reads only the header.
pub struct Segment {
    path: PathBuf,
    header: Header,
    file: Bytes,
    /// `sections[tag - 1]`: the bytes of each known section; empty if the segment lacks it.
    sections: [Bytes; Section::ALL.len()],
    lexicon: LexiconLayout,
    /// What is checked when it is first read; `None` if nothing is.
    checks: Option<Checks>,
}

impl Segment {
    /// Maps a file and checks its header and section table. With `is_lazy`, the rest is checked when it is first read.
    pub fn open(path: &Path, is_lazy: bool) -> Result<Segment, IndexError> {
        let length = std::fs::metadata(path).map_err(IndexError::io(path))?.len();
        if length < HEADER_BYTES as u64 {
            return Err(IndexError::damaged(path, "header", format!("the file has only {length} bytes")));
        }
        let file = Bytes::map(path)?;
        let header = Header::decode(path, &file, file.len() as u64)?;
        let sections = Section::ALL.map(|section| match header.entry(section) {
            Some(entry) => file.slice(entry.offset as usize..(entry.offset + entry.length) as usize),
            None => file.slice(0..0),
        });
        let lexicon = LexiconLayout::new(header.terms);
        let mut segment = Segment { path: path.to_owned(), header, file, sections, lexicon, checks: None };
        segment.check_sizes()?;
        let table = segment.header.entry(Section::Checksums).filter(|_| is_lazy);
        segment.checks = table.map(|entry| Checks::new(segment.section_range(Section::Checksums), entry.checksum));
        Ok(segment)
    }

    /// Checks the size of every table with a row per document, term or group.
    fn check_sizes(&self) -> Result<(), IndexError> {
        if self.header.terms > MAX_TERMS {
            return Err(
                self.damaged(Section::Terms, format!("{} terms are more than an index can have", self.header.terms))
            );
        }
        let documents = self.header.documents as usize;
        let groups = documents.div_ceil(super::documents::IDS_IN_GROUP as usize);
        let terms = self.header.terms.div_ceil(TERMS_IN_GROUP) as usize;
        let ranks = self.section(Section::Ranks).len();
        let is_sane = |section: Section| match section {
            Section::LengthCodes => self.section(section).len() == documents,
            Section::IdGroups => self.section(section).len() == 8 * groups,
            Section::Terms => self.section(section).len() >= GROUP_ROW_BYTES * terms,
            Section::Lexicon => self.section(section).len() == self.lexicon.bytes(),
            Section::Ranks => ranks == 0 || ranks == 4 * documents,
            Section::Checksums => self.header.entry(section).is_none_or(|entry| {
                let is_last = self.header.table.iter().all(|other| other.offset <= entry.offset);
                is_last && entry.length == 4 * Checks::chunks(entry.offset as usize) as u64
            }),
            Section::ImpactDirectory => !self.has_impact_ordered() || self.section(section).len() >= 16 * terms,
            _ => true,
        };
        match Section::ALL.into_iter().find(|&section| !is_sane(section)) {
            Some(Section::Checksums) => {
                Err(self.damaged(Section::Checksums, "they are not those of the bytes before them"))
            }
            Some(section) => Err(self.damaged(section, "its size does not match the number of documents or terms")),
            None => Ok(()),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The checksum of the header, which covers the checksums of all sections.
    pub fn checksum(&self) -> u32 {
        u32_at(&self.file, CHECKSUM.start)
    }

    /// The bytes of the whole file.
    pub fn file(&self) -> &[u8] {
        &self.file
    }

    /// Documents.
    pub fn documents(&self) -> u32 {
        self.header.documents
    }

    /// The bytes of a section; empty if the segment lacks it.
    pub fn section(&self, section: Section) -> &[u8] {
        &self.sections[section as usize - 1]
    }

    /// The bytes of the file that a section has; empty if the segment lacks it.
    pub fn section_range(&self, section: Section) -> Range<usize> {
        let entry = self.header.entry(section).map(|entry| (entry.offset as usize, entry.length as usize));
        let (start, length) = entry.unwrap_or((0, 0));
        start..start + length
    }

    /// Checks bytes of a section that are going to be read, unless they were checked before. Terms, ids, stored fields and
    /// impact-ordered lists are checked by what reads them, and a list by [`Segment::list`]; before anything else is read,
    /// by its reader: before [`Segment::list_at`], length codes, lengths and ranks.
    #[inline]
    pub fn check(&self, section: Section, bytes: Range<usize>) -> Result<(), IndexError> {
        let Some(checks) = &self.checks else {
            return Ok(());
        };
        let Range { start, end } = self.sections[section as usize - 1].range();
        let bytes = start.saturating_add(bytes.start)..start.saturating_add(bytes.end).min(end);
        checks.check(&self.file, bytes).map_err(|unsound| self.unsound(section, unsound))
    }

    #[cold]
    fn unsound(&self, section: Section, unsound: Unsound) -> IndexError {
        match unsound {
            Unsound::Table => self.damaged(Section::Checksums, "their own checksum does not match"),
            Unsound::Chunk(chunk) => {
                let start = chunk * CHUNK_BYTES;
                self.damaged(section, format!("the checksum of the {CHUNK_BYTES} bytes from {start} on does not match"))
            }
        }
    }

    /// [`Segment::check`] for a whole section.
    pub fn check_section(&self, section: Section) -> Result<(), IndexError> {
        self.check(section, 0..self.section(section).len())
    }

    /// [`Segment::check`] for a list.
    pub fn check_list(&self, span: ListSpan) -> Result<(), IndexError> {
        self.check(span.section(), span.start..span.end)
    }

    /// An error about a section of this file.
    pub fn damaged(&self, section: Section, what: impl Into<String>) -> IndexError {
        IndexError::damaged(&self.path, section.name(), what)
    }

    /// The layout of the hash table over the terms.
    pub fn lexicon(&self) -> &LexiconLayout {
        &self.lexicon
    }

    /// The list of a term.
    pub fn list(&self, term: u64) -> Result<List<'_>, IndexError> {
        self.check_term(term)?;
        let span = self.span(term).ok_or_else(|| self.damaged(Section::Terms, format!("term {term} has no list")))?;
        self.check_list(span)?;
        self.list_at(span)
    }

    /// Opens the list at a span.
    pub fn list_at(&self, span: ListSpan) -> Result<List<'_>, IndexError> {
        let bytes = self.bytes_at(span)?;
        let context = self.list_context();
        let list = if span.is_long { List::long(&context, bytes) } else { List::short(&context, bytes) };
        match list {
            Some(list) if list.postings() <= self.header.documents => Ok(list),
            _ => Err(self.damaged_list(span)),
        }
    }

    /// Reads the header of the list at a span, without opening the list.
    pub fn summary_at(&self, span: ListSpan) -> Result<Summary<'_>, IndexError> {
        Summary::new(span.is_long, self.bytes_at(span)?).ok_or_else(|| self.damaged_list(span))
    }

    /// Where the arrays of the list at a span lie within its bytes.
    pub fn layout_at(&self, span: ListSpan) -> Result<ListLayout, IndexError> {
        Ok(self.list_at(span)?.layout(span.bytes()))
    }

    /// The bytes of the list at a span.
    pub fn bytes_at(&self, span: ListSpan) -> Result<&[u8], IndexError> {
        self.section(span.section()).get(span.start..span.end).ok_or_else(|| self.damaged_list(span))
    }

    fn damaged_list(&self, span: ListSpan) -> IndexError {
        let ListSpan { start, end, .. } = span;
        self.damaged(span.section(), format!("the list at bytes {start} to {end} cannot be read"))
    }

    /// The length of the list of a term in bytes, including its directory.
    pub fn list_bytes(&self, term: u64) -> Option<usize> {
        self.span(term).map(|span| span.bytes())
    }

    /// The settings that all lists of the segment share.
    pub fn list_context(&self) -> ListContext {
        ListContext {
            codecs: self.header.codecs,
            has_frequencies: self.header.has_frequencies,
            has_impacts: self.header.has_impacts,
            has_dense: self.header.has_dense,
            documents: self.header.documents,
        }
    }
}
