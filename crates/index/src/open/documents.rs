//! The data of each document: its external id, length, static rank and stored fields.

use super::map::prefetch;
use super::segment::Segment;
use crate::codec::{BLOCK, CodecName, Packed};
use crate::format::segment::{Section, u32_at, u64_at};
use crate::format::{IndexError, varint};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::io::Read;
use zstd::zstd_safe::{DCtx, ResetDirective};

thread_local! {
    /// Kept from block to block: making one takes about as long as decompressing with it.
    static CONTEXT: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
}

/// External ids in a group, which has one row in the id table and stores their common prefix once.
pub const IDS_IN_GROUP: u32 = 8;

/// External ids, such as those of the hits of an answer, in one allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ids {
    text: String,
    ends: Vec<usize>,
}

impl Ids {
    /// The number of ids.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The ids in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.text[std::mem::replace(&mut start, end)..end])
    }
}

impl<T: AsRef<str>> FromIterator<T> for Ids {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Ids {
        let mut ids = Ids::default();
        for text in texts {
            ids.text.push_str(text.as_ref());
            ids.ends.push(ids.text.len());
        }
        ids
    }
}

impl Segment {
    /// The external ids of documents. As with terms, all lookups go step by step together, so that cache misses
    /// overlap.
    pub fn ids(&self, documents: impl ExactSizeIterator<Item = u32> + Clone) -> Result<Ids, IndexError> {
        let (groups, section) = (self.section(Section::IdGroups), self.section(Section::Ids));
        for document in documents.clone() {
            prefetch(groups, (document / IDS_IN_GROUP) as usize * 8);
        }
        for document in documents.clone() {
            if let Some(row) = groups.get((document / IDS_IN_GROUP) as usize * 8..).and_then(|rows| rows.get(..8)) {
                prefetch(section, u64_at(row, 0) as usize);
            }
        }
        let (mut text, mut ends) = (Vec::with_capacity(16 * documents.len()), Vec::with_capacity(documents.len()));
        for document in documents {
            self.check_id(document)?;
            let (shared, own) = self.read_id(document).ok_or_else(|| self.damaged_id(document))?;
            text.extend_from_slice(shared);
            text.extend_from_slice(own);
            ends.push(text.len());
        }
        match String::from_utf8(text) {
            Ok(text) if ends.iter().all(|&end| text.is_char_boundary(end)) => Ok(Ids { text, ends }),
            _ => Err(self.damaged(Section::Ids, "an id is not valid UTF-8")),
        }
    }

    fn damaged_id(&self, document: u32) -> IndexError {
        self.damaged(Section::Ids, format!("the id of document {document} cannot be read"))
    }

    /// The external id of a document.
    pub fn id(&self, document: u32) -> Result<String, IndexError> {
        let damaged = || self.damaged_id(document);
        self.check_id(document)?;
        let (shared, own) = self.read_id(document).ok_or_else(damaged)?;
        let mut id = Vec::with_capacity(shared.len() + own.len());
        id.extend_from_slice(shared);
        id.extend_from_slice(own);
        String::from_utf8(id).map_err(|_| damaged())
    }

    /// Checks the bytes of a document's id, unless they were checked before.
    #[inline]
    fn check_id(&self, document: u32) -> Result<(), IndexError> {
        // The row of its group, and the next one, where the group ends.
        let row = (document / IDS_IN_GROUP) as usize * 8;
        self.check(Section::IdGroups, row..row + 16)?;
        let start = |at: usize| {
            let row = self.section(Section::IdGroups).get(at..)?.get(..8)?;
            usize::try_from(u64_at(row, 0)).ok()
        };
        let end = start(row + 8).unwrap_or(usize::MAX);
        self.check(Section::Ids, start(row).unwrap_or(usize::MAX)..end)
    }

    /// The id of a document: the prefix that its group shares, and the rest.
    fn read_id(&self, document: u32) -> Option<(&[u8], &[u8])> {
        let (group, position) = (document / IDS_IN_GROUP, document % IDS_IN_GROUP);
        let ids = self.documents().checked_sub(group * IDS_IN_GROUP)?.min(IDS_IN_GROUP);
        let groups = self.section(Section::IdGroups);
        let start = u64_at(groups.get(group as usize * 8..)?.get(..8)?, 0);
        let mut bytes = self.section(Section::Ids).get(usize::try_from(start).ok()?..)?;
        let length = varint::read(&mut bytes)? as usize;
        let shared = varint::take(&mut bytes, length)?;
        let (before, length) = read_lengths(&mut bytes, ids as usize, position as usize)?;
        varint::take(&mut bytes, before)?;
        Some((shared, varint::take(&mut bytes, length)?))
    }

    /// The document with an external id, found by a scan over all ids.
    pub fn find(&self, id: &str) -> Result<Option<u32>, IndexError> {
        self.check_section(Section::IdGroups)?;
        self.check_section(Section::Ids)?;
        for document in 0..self.documents() {
            let (shared, own) = self.read_id(document).ok_or_else(|| self.damaged_id(document))?;
            if id.as_bytes().strip_prefix(shared) == Some(own) {
                return Ok(Some(document));
            }
        }
        Ok(None)
    }

    /// The exact length of a document in tokens; 0 for a document outside the segment.
    pub fn length(&self, document: u32) -> u32 {
        let mut lengths = [0; BLOCK];
        let count = self.decode_lengths(document as usize / BLOCK, &mut lengths);
        lengths[..count].get(document as usize % BLOCK).copied().unwrap_or(0)
    }

    /// Decodes the lengths of the 128 documents from `128 · block` on, and returns how many there are.
    pub fn decode_lengths(&self, block: usize, out: &mut [u32; BLOCK]) -> usize {
        let bytes = self.section(Section::Lengths);
        let blocks = (self.documents() as usize).div_ceil(BLOCK);
        let count = (self.documents() as usize).saturating_sub(block * BLOCK).min(BLOCK);
        let Some(row) = bytes.get(block * 8..block * 8 + 8).filter(|_| block < blocks) else {
            return 0;
        };
        // A row: the directory byte, then seven bytes with the start of the block after the rows.
        let (offset, byte) = ((u64_at(row, 0) >> 8) as usize, row[0]);
        let payload = bytes.get(blocks * 8 + offset..).unwrap_or(&[]);
        CodecName::Bitpack.codec().decode_values(Packed::alone(byte, payload), &mut out[..count]);
        // Codecs store values of at least 1, and a length may be 0: lengths are stored plus one.
        out[..count].iter_mut().for_each(|length| *length = length.wrapping_sub(1));
        count
    }

    /// The length codes of all documents.
    pub fn length_codes(&self) -> &[u8] {
        self.section(Section::LengthCodes)
    }

    /// The static rank of a document, from 0 to 1, if the index has ranks.
    pub fn rank(&self, document: u32) -> Option<f32> {
        let at = document as usize * 4;
        self.section(Section::Ranks).get(at..at + 4).map(|bytes| f32::from_bits(u32_at(bytes, 0)))
    }

    /// The stored fields of a document, in the order of the manifest; empty if nothing is stored.
    pub fn stored(&self, document: u32) -> Result<Vec<String>, IndexError> {
        let what = || format!("the stored fields of document {document} cannot be read");
        let damaged = || self.damaged(Section::Stored, what());
        let table = self.section(Section::StoredBlocks);
        if table.is_empty() || document >= self.documents() {
            return Ok(Vec::new());
        }
        self.check_section(Section::StoredBlocks)?;
        // A row: the first document of the block, its bytes when decompressed, its start.
        let (rows, _) = table.as_chunks::<16>();
        let row = rows.partition_point(|row| u32_at(row, 0) <= document).checked_sub(1).ok_or_else(damaged)?;
        let start = u64_at(&rows[row], 8) as usize;
        let end = rows.get(row + 1).map_or(self.section(Section::Stored).len(), |next| u64_at(next, 8) as usize);
        self.check(Section::Stored, start..end)?;
        let compressed = self.section(Section::Stored).get(start..end).ok_or_else(damaged)?;
        let size = u32_at(&rows[row], 4) as usize;
        let block = decompress(compressed, size).ok_or_else(damaged)?;
        read_stored(&block, document - u32_at(&rows[row], 0)).ok_or_else(damaged)
    }
}

/// Reads `count` lengths and returns the sum of those before `position` and the one there.
#[inline]
fn read_lengths(bytes: &mut &[u8], count: usize, position: usize) -> Option<(usize, usize)> {
    let lengths = bytes.get(..count)?;
    if lengths.iter().all(|&byte| byte < 0x80) {
        *bytes = &bytes[count..];
        let before = lengths.get(..position)?.iter().map(|&length| usize::from(length)).sum();
        return Some((before, usize::from(*lengths.get(position)?)));
    }
    let (mut before, mut own) = (0usize, None);
    for i in 0..count {
        let length = varint::read(bytes)? as usize;
        match i.cmp(&position) {
            Ordering::Less => before = before.checked_add(length)?,
            Ordering::Equal => own = Some(length),
            Ordering::Greater => {}
        }
    }
    Some((before, own?))
}

/// Decompresses a block that must have exactly `size` bytes. Memory grows with the data, not with `size`.
fn decompress(compressed: &[u8], size: usize) -> Option<Vec<u8>> {
    CONTEXT.with_borrow_mut(|context| {
        let context = match context {
            Some(context) => context,
            None => context.insert(DCtx::try_create()?),
        };
        // The block before may have been damaged.
        context.reset(ResetDirective::SessionOnly).ok()?;
        let mut block = Vec::new();
        let decoder = zstd::Decoder::with_context(compressed, context);
        decoder.take(size as u64 + 1).read_to_end(&mut block).ok()?;
        (block.len() == size).then_some(block)
    })
}

/// Reads the fields of a document in a block: the length of all fields together, then each field after its length.
fn read_stored(block: &[u8], position: u32) -> Option<Vec<String>> {
    let mut rest = block;
    for _ in 0..position {
        let skipped = varint::read(&mut rest)? as usize;
        varint::take(&mut rest, skipped)?;
    }
    let length = varint::read(&mut rest)? as usize;
    let mut fields = varint::take(&mut rest, length)?;
    let mut stored = Vec::new();
    while !fields.is_empty() {
        let length = varint::read(&mut fields)? as usize;
        let field = varint::take(&mut fields, length)?;
        stored.push(String::from_utf8(field.to_vec()).ok()?);
    }
    Some(stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_block_does_not_disturb_the_next() {
        let text = b"lanner falcons hunt in pairs; ".repeat(40);
        let compressed = zstd::bulk::compress(&text, 3).unwrap();
        assert_eq!(decompress(&compressed, text.len()).as_ref(), Some(&text));
        for end in 0..compressed.len() {
            assert_eq!(decompress(&compressed[..end], text.len()), None, "{end} bytes");
            assert_eq!(decompress(&compressed, text.len()).as_ref(), Some(&text), "after {end} bytes");
        }
        assert_eq!(decompress(&compressed, text.len() - 1), None);
        assert_eq!(decompress(&compressed, text.len() + 1), None);
    }
}
