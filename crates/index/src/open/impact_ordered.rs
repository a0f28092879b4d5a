//! An opened impact-ordered list: its segments, highest impact first.
//!
//! As with other lists, opening checks that the directory lies inside the bytes of the list; in a damaged file decoding
//! may give wrong documents.

use super::{Column, List, Segment};
use crate::codec::{BLOCK, qmx};
use crate::format::impact_ordered::{HEADER_BYTES, ImpactOrderedLayout, ROW_BYTES, SEGMENT_UNIT};
use crate::format::lexicon::TERMS_IN_GROUP;
use crate::format::list::UNIT;
use crate::format::segment::{Section, u16_at, u32_at, u64_at};
use crate::format::{IndexError, varint};

/// The postings of one term in segments of equal impact.
#[derive(Clone, Copy)]
pub struct ImpactOrdered<'a> {
    postings: u32,
    layout: ImpactOrderedLayout,
    bytes: &'a [u8],
}

/// Postings of one term that share an impact.
#[derive(Clone, Copy, Debug)]
pub struct ImpactSegment<'a> {
    /// The impact.
    pub impact: u32,
    /// The number of postings.
    pub postings: u32,
    /// The documents, packed by `qmx` with base 0.
    pub documents: &'a [u8],
}

impl<'a> ImpactOrdered<'a> {
    /// Opens a list; `None` if the bytes are no such list.
    pub fn new(bytes: &'a [u8]) -> Option<ImpactOrdered<'a>> {
        let header = bytes.get(..HEADER_BYTES)?;
        let layout = ImpactOrderedLayout { segments: usize::from(u16_at(header, 4)), is_wide: header[6] == 1 };
        let is_sane = header[6] <= 1 && layout.segments <= 255 && layout.payload() <= bytes.len();
        is_sane.then_some(ImpactOrdered { postings: u32_at(header, 0), layout, bytes })
    }

    /// Documents that hold the term.
    pub fn postings(&self) -> u32 {
        self.postings
    }

    /// The segments, highest impact first.
    pub fn segments(self) -> impl Iterator<Item = ImpactSegment<'a>> {
        let payload = &self.bytes[self.layout.payload()..];
        let mut start = 0;
        (0..self.layout.segments).map(move |number| {
            let end = SEGMENT_UNIT * self.number(self.layout.end(), number) as usize;
            let documents = payload.get(start..end).unwrap_or(&[]);
            start = end;
            ImpactSegment {
                impact: u32::from(self.bytes[self.layout.impact() + number]),
                postings: self.number(self.layout.postings(), number).min(self.postings),
                documents,
            }
        })
    }

    fn number(&self, array: usize, at: usize) -> u32 {
        match self.layout.is_wide {
            true => u32_at(self.bytes, array + 4 * at),
            false => u32::from(u16_at(self.bytes, array + 2 * at)),
        }
    }
}

impl Segment {
    /// Whether there are impact-ordered lists.
    pub fn has_impact_ordered(&self) -> bool {
        self.header().entry(Section::ImpactDirectory).is_some()
    }

    /// The impact-ordered list of a term; `None` if its list is short or the segment has no impact-ordered lists.
    pub fn impact_ordered(&self, term: u64) -> Result<Option<ImpactOrdered<'_>>, IndexError> {
        if !self.has_impact_ordered() || term >= self.header().terms {
            return Ok(None);
        }
        let damaged = |section| move || self.damaged(section, format!("the list of term {term} cannot be read"));
        self.check_section(Section::ImpactDirectory)?;
        let (start, end) = self.impact_ordered_span(term).ok_or_else(damaged(Section::ImpactDirectory))?;
        if start == end {
            return Ok(None);
        }
        self.check(Section::ImpactLists, start..end)?;
        let list = self.section(Section::ImpactLists).get(start..end).and_then(ImpactOrdered::new);
        let list = list.filter(|list| list.postings() <= self.documents());
        list.map(Some).ok_or_else(damaged(Section::ImpactLists))
    }

    /// The first byte of the impact-ordered list of a term, and the byte after its last.
    fn impact_ordered_span(&self, term: u64) -> Option<(usize, usize)> {
        let bytes = self.section(Section::ImpactDirectory);
        let rows = usize::try_from(self.header().terms.div_ceil(TERMS_IN_GROUP)).ok()?;
        let row = bytes.get(usize::try_from(term / TERMS_IN_GROUP).ok()? * ROW_BYTES..)?.get(..ROW_BYTES)?;
        let mut sizes = bytes.get(ROW_BYTES * rows..)?.get(usize::try_from(u64_at(row, 0)).ok()?..)?;
        let mut start = u64_at(row, 8);
        for _ in 0..term % TERMS_IN_GROUP {
            start = start.checked_add(varint::read(&mut sizes)?)?;
        }
        let end = start.checked_add(varint::read(&mut sizes)?)?;
        let bytes = |units: u64| usize::try_from(units.checked_mul(UNIT as u64)?).ok();
        Some((bytes(start)?, bytes(end)?))
    }
}

/// Checks that the impact-ordered list of a term has the same postings as the document-ordered one.
pub fn verify_impact_ordered(segment: &Segment, term: u64, list: &List<'_>) -> Result<(), IndexError> {
    if !segment.has_impact_ordered() {
        return Ok(());
    }
    let wrong = |what: &str| segment.damaged(Section::ImpactLists, format!("list of term {term}: {what}"));
    let Some(ordered) = segment.impact_ordered(term)? else {
        return if (list.postings() as usize) < BLOCK { Ok(()) } else { Err(wrong("it is missing")) };
    };
    let mut expected: Vec<Vec<u32>> = vec![Vec::new(); 256];
    let (mut documents, mut impacts) = ([0; BLOCK], [0; BLOCK]);
    for block in 0..list.blocks() {
        let count = list.decode_documents(block, &mut documents);
        list.decode_values(Column::Impact, block, &mut impacts);
        for (&document, &impact) in documents[..count].iter().zip(&impacts) {
            expected[impact.min(255) as usize].push(document);
        }
    }
    let mut last = 256;
    for found in ordered.segments() {
        let mut documents = vec![0; found.postings as usize];
        qmx::decode(found.documents, 0, &mut documents);
        if found.impact >= last || documents != expected[found.impact as usize] {
            return Err(wrong("a segment does not hold the documents of its impact"));
        }
        last = found.impact;
        expected[found.impact as usize].clear();
    }
    let is_complete = expected.iter().all(Vec::is_empty) && ordered.postings() == list.postings();
    if is_complete { Ok(()) } else { Err(wrong("postings are missing")) }
}
