//! One segment file, mapped: its sections, its terms and their lists.

use super::list::{List, ListContext};
use super::map::Bytes;
use crate::format::list::{TERMS_IN_GROUP, UNIT};
use crate::format::segment::{CHECKSUM, HEADER_BYTES, Header, Section, u32_at, u64_at};
use crate::format::{IndexError, varint};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A mapped segment. Opening it reads the header alone.
pub struct Segment {
    path: PathBuf,
    header: Header,
    file: Bytes,
    /// `sections[tag - 1]`: the bytes of each known section; empty where the segment lacks it.
    sections: [Bytes; Section::ALL.len()],
    /// The lexicon, once its checksum has been seen to match.
    lexicon: OnceLock<Option<fst::Map<Bytes>>>,
}

/// Where the list of a term lies.
struct Place {
    is_long: bool,
    start: usize,
    end: usize,
}

impl Segment {
    /// Maps a file and checks its header and section table.
    pub fn open(path: &Path) -> Result<Segment, IndexError> {
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
        let segment = Segment { path: path.to_owned(), header, file, sections, lexicon: OnceLock::new() };
        segment.check_sizes()?;
        Ok(segment)
    }

    /// Tables with a row for each document or group must have just as many bytes.
    fn check_sizes(&self) -> Result<(), IndexError> {
        let documents = self.header.documents as usize;
        let groups = documents.div_ceil(super::documents::IDS_IN_GROUP as usize);
        let terms = self.header.terms.div_ceil(TERMS_IN_GROUP) as usize;
        let ranks = self.section(Section::Ranks).len();
        let is_sane = |section: Section| match section {
            Section::LengthCodes => self.section(section).len() == documents,
            Section::IdGroups => self.section(section).len() == 8 * groups,
            Section::Terms => self.section(section).len() >= 24 * terms,
            Section::Ranks => ranks == 0 || ranks == 4 * documents,
            Section::ImpactDirectory => !self.has_impact_ordered() || self.section(section).len() >= 16 * terms,
            _ => true,
        };
        match Section::ALL.into_iter().find(|&section| !is_sane(section)) {
            Some(section) => Err(self.damaged(section, "its size does not fit the number of documents or terms")),
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

    /// The checksum in the header, which covers those of all sections.
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

    /// The bytes of a section; empty where the segment lacks it.
    pub fn section(&self, section: Section) -> &[u8] {
        &self.sections[section as usize - 1]
    }

    /// An error that names this file and a section of it.
    pub fn damaged(&self, section: Section, what: impl Into<String>) -> IndexError {
        IndexError::damaged(&self.path, section.name(), what)
    }

    /// The number of a term, if it occurs.
    pub fn lookup(&self, term: &str) -> Result<Option<u64>, IndexError> {
        let lexicon = self.lexicon()?;
        Ok(lexicon.get(term).filter(|&number| number < self.header.terms))
    }

    /// The lexicon from term to number, in the order of the terms' bytes.
    ///
    /// The FST's reader trusts its bytes, so they are summed up before the first use: about a tenth of a millisecond
    /// a megabyte, once.
    pub fn lexicon(&self) -> Result<&fst::Map<Bytes>, IndexError> {
        let opened = self.lexicon.get_or_init(|| {
            let bytes = &self.sections[Section::Lexicon as usize - 1];
            let is_intact = self.header.entry(Section::Lexicon).is_some_and(|e| e.checksum == crc32fast::hash(bytes));
            if is_intact { fst::Map::new(bytes.clone()).ok() } else { None }
        });
        opened.as_ref().ok_or_else(|| self.damaged(Section::Lexicon, "its checksum does not match"))
    }

    /// The list of a term.
    pub fn list(&self, term: u64) -> Result<List<'_>, IndexError> {
        let place =
            self.place(term).ok_or_else(|| self.damaged(Section::Terms, format!("term {term} has no place")))?;
        let section = if place.is_long { Section::LongLists } else { Section::ShortLists };
        let damaged = || self.damaged(section, format!("the list of term {term} cannot be read"));
        let bytes = self.section(section).get(place.start..place.end).ok_or_else(damaged)?;
        let context = self.list_context();
        let list = if place.is_long { List::long(&context, bytes) } else { List::short(&context, bytes) };
        list.filter(|list| list.postings() <= self.header.documents).ok_or_else(damaged)
    }

    /// Bytes of the list of a term, directory included.
    pub fn list_bytes(&self, term: u64) -> Option<usize> {
        self.place(term).map(|place| place.end.saturating_sub(place.start))
    }

    /// What all lists of the segment have in common.
    pub fn list_context(&self) -> ListContext {
        ListContext {
            codecs: self.header.codecs,
            has_frequencies: self.header.has_frequencies,
            has_impacts: self.header.has_impacts,
            has_dense: self.header.has_dense,
            documents: self.header.documents,
        }
    }

    /// Finds a list in the term table: rows of 24 bytes (where the group's sizes, short and long lists start), then
    /// for each term a varint of its list's size: `2 · bytes` if short, `2 · units + 1` if long.
    fn place(&self, term: u64) -> Option<Place> {
        if term >= self.header.terms {
            return None;
        }
        let bytes = self.section(Section::Terms);
        let rows = self.header.terms.div_ceil(TERMS_IN_GROUP) as usize;
        let row = bytes.get((term / TERMS_IN_GROUP) as usize * 24..)?.get(..24)?;
        let mut sizes = bytes.get(24 * rows..)?.get(usize::try_from(u64_at(row, 0)).ok()?..)?;
        let (mut short, mut long) = (u64_at(row, 8), u64_at(row, 16));
        for _ in 0..term % TERMS_IN_GROUP {
            let size = varint::read(&mut sizes)?;
            let start = if size & 1 == 0 { &mut short } else { &mut long };
            *start = start.checked_add(size >> 1)?;
        }
        let size = varint::read(&mut sizes)?;
        let is_long = size & 1 == 1;
        let (start, unit) = if is_long { (long, UNIT as u64) } else { (short, 1) };
        let end = start.checked_add(size >> 1)?.checked_mul(unit)?;
        Some(Place { is_long, start: usize::try_from(start * unit).ok()?, end: usize::try_from(end).ok()? })
    }
}
