//! Writing impact-ordered lists: the postings of long lists a second time, in segments of equal impact.

use super::BuildError;
use super::write::{SegmentWriter, Spool};
use crate::codec::{BLOCK, qmx};
use crate::format::impact_ordered::{ImpactOrderedLayout, SEGMENT_UNIT};
use crate::format::lexicon::TERMS_IN_GROUP;
use crate::format::list::UNIT;
use crate::format::segment::Section;
use crate::format::varint;
use std::path::Path;

/// The impact-ordered lists of some consecutive terms.
#[derive(Default)]
pub struct ImpactOrderedLists {
    /// The lists, aligned to 16 bytes.
    bytes: Vec<u8>,
    /// The size of the list of each term in units of 16 bytes; 0 for a short list.
    units: Vec<u64>,
}

impl ImpactOrderedLists {
    /// Appends the list of the next term, from its documents in ascending order and their impacts.
    pub fn push(&mut self, postings: impl ExactSizeIterator<Item = (u32, u32)>) {
        let start = self.bytes.len();
        if postings.len() >= BLOCK {
            encode(postings, &mut self.bytes);
        }
        self.units.push(((self.bytes.len() - start) / UNIT) as u64);
    }
}

/// Appends a list.
fn encode(postings: impl ExactSizeIterator<Item = (u32, u32)>, out: &mut Vec<u8>) {
    let count = postings.len();
    let mut documents: [Vec<u32>; 256] = std::array::from_fn(|_| Vec::new());
    for (document, impact) in postings {
        documents[impact.min(255) as usize].push(document);
    }
    let segments: Vec<(usize, &Vec<u32>)> =
        documents.iter().enumerate().rev().filter(|(_, documents)| !documents.is_empty()).collect();
    let mut payload = Vec::new();
    let mut ends = Vec::new();
    for (_, documents) in &segments {
        qmx::encode(0, documents, &mut payload);
        ends.push(payload.len() / SEGMENT_UNIT);
    }
    let is_wide = count > usize::from(u16::MAX) || payload.len() / SEGMENT_UNIT > usize::from(u16::MAX);
    let layout = ImpactOrderedLayout { segments: segments.len(), is_wide };
    let start = out.len();
    out.extend((count as u32).to_le_bytes());
    out.extend((segments.len() as u16).to_le_bytes());
    out.extend([u8::from(is_wide), 0]);
    for number in ends.into_iter().chain(segments.iter().map(|(_, documents)| documents.len())) {
        out.extend_from_slice(&(number as u32).to_le_bytes()[..layout.number_bytes()]);
    }
    out.extend(segments.iter().map(|&(impact, _)| impact as u8));
    out.resize(start + layout.payload(), 0);
    out.append(&mut payload);
    out.resize(start + (out.len() - start).next_multiple_of(UNIT), 0);
}

/// The two sections of impact-ordered lists, spooled while the document-ordered lists are written.
pub struct ImpactOrderedWriter {
    rows: Vec<u8>,
    sizes: Spool,
    sizes_written: u64,
    lists: Spool,
    units_written: u64,
    terms: u64,
}

impl ImpactOrderedWriter {
    /// Creates the spools in a folder.
    pub fn create(building: &Path) -> Result<ImpactOrderedWriter, BuildError> {
        Ok(ImpactOrderedWriter {
            rows: Vec::new(),
            sizes: Spool::create(building.join("impact-directory"))?,
            sizes_written: 0,
            lists: Spool::create(building.join("impact-lists"))?,
            units_written: 0,
            terms: 0,
        })
    }

    /// Adds the lists of the next terms.
    pub fn push(&mut self, lists: &ImpactOrderedLists) -> Result<(), BuildError> {
        let mut sizes = Vec::new();
        for &units in &lists.units {
            if self.terms.is_multiple_of(TERMS_IN_GROUP) {
                self.rows.extend((self.sizes_written + sizes.len() as u64).to_le_bytes());
                self.rows.extend(self.units_written.to_le_bytes());
            }
            varint::write(units, &mut sizes);
            self.units_written += units;
            self.terms += 1;
        }
        self.sizes_written += sizes.len() as u64;
        self.sizes.write(&sizes)?;
        self.lists.write(&lists.bytes)
    }

    /// Writes the two sections.
    pub fn finish(mut self, segment: &mut SegmentWriter) -> Result<(), BuildError> {
        segment.begin(Section::ImpactDirectory)?;
        segment.write(&self.rows)?;
        segment.copy(&mut self.sizes)?;
        segment.begin(Section::ImpactLists)?;
        segment.copy(&mut self.lists)
    }
}
