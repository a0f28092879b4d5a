//! What the bytes of an index's lists are spent on, and how long the lists are.

use crate::failure::Failure;
use lanner::Index;
use lanner_index::codec::BLOCK;
use lanner_index::format::dense::{DenseLayout, FREQUENCY_BITS_AT};
use lanner_index::format::list::{ALL_ONES, LONG_HEADER_BYTES, LongLayout, postings_in_block};
use lanner_index::format::segment::{Section, u32_at};
use lanner_index::format::varint;
use lanner_index::open::ListContext;
use serde::Serialize;
use std::ops::AddAssign;

/// Sizes of all lists of an index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ListSizes {
    /// Lists of less than a block.
    pub short: KindSizes,
    /// Lists of at least a block.
    pub long: KindSizes,
    /// Lists that are bitmaps.
    pub dense: KindSizes,
    /// How many lists there are of each length, by powers of two.
    pub lengths: Vec<LengthRow>,
}

/// Sizes of the lists of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KindSizes {
    /// Lists.
    pub lists: u64,
    /// Their postings.
    pub postings: u64,
    /// Their bytes.
    pub bytes: StreamBytes,
}

/// Bytes of lists, by what they are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamBytes {
    /// Packed document numbers.
    pub documents: u64,
    /// Packed frequencies.
    pub frequencies: u64,
    /// Packed impacts.
    pub impacts: u64,
    /// Headers, bounds, places of blocks.
    pub directory: u64,
    /// What fills blocks up to multiples of 16 bytes.
    pub filling: u64,
}

/// Lists of `from` to `to` postings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LengthRow {
    /// The least length.
    pub from: u64,
    /// The greatest length.
    pub to: u64,
    /// Lists.
    pub lists: u64,
    /// Their postings.
    pub postings: u64,
}

impl StreamBytes {
    /// All of them.
    pub fn all(&self) -> u64 {
        self.documents + self.frequencies + self.impacts + self.directory + self.filling
    }
}

impl AddAssign for KindSizes {
    fn add_assign(&mut self, other: KindSizes) {
        self.lists += other.lists;
        self.postings += other.postings;
        self.bytes.documents += other.bytes.documents;
        self.bytes.frequencies += other.bytes.frequencies;
        self.bytes.impacts += other.bytes.impacts;
        self.bytes.directory += other.bytes.directory;
        self.bytes.filling += other.bytes.filling;
    }
}

impl ListSizes {
    /// Looks at every list of an index; decodes none.
    pub fn of(index: &Index) -> Result<ListSizes, Failure> {
        let segment = index.segment();
        let context = segment.list_context();
        let mut sizes = ListSizes::default();
        // Lists of a kind lie one after the other in the order of their terms.
        let (mut short, mut long) = (segment.section(Section::ShortLists), segment.section(Section::LongLists));
        for term in 0..segment.header().terms {
            let list = segment.list(term)?;
            let (postings, is_dense) = (list.postings(), list.dense().is_some());
            let length = segment.list_bytes(term).unwrap_or(0);
            let is_long = postings as usize >= BLOCK;
            let section = if is_long { Section::LongLists } else { Section::ShortLists };
            let rest = if is_long { &mut long } else { &mut short };
            let bytes = varint::take(rest, length);
            let (kind, bytes) = match bytes {
                Some(bytes) if !is_long => (&mut sizes.short, short_bytes(&context, bytes)),
                Some(bytes) if is_dense => (&mut sizes.dense, dense_bytes(&context, bytes)),
                Some(bytes) => (&mut sizes.long, long_bytes(&context, bytes)),
                None => (&mut sizes.long, None),
            };
            let bytes =
                bytes.ok_or_else(|| segment.damaged(section, format!("the list of term {term} cannot be read")))?;
            *kind += KindSizes { lists: 1, postings: u64::from(postings), bytes };
            sizes.count_length(u64::from(postings));
        }
        Ok(sizes)
    }

    /// All kinds together.
    pub fn all(&self) -> KindSizes {
        let mut all = self.short;
        all += self.long;
        all += self.dense;
        all
    }

    fn count_length(&mut self, postings: u64) {
        let power = postings.max(1).ilog2() as usize;
        while self.lengths.len() <= power {
            let from = 1 << self.lengths.len();
            self.lengths.push(LengthRow { from, to: 2 * from - 1, lists: 0, postings: 0 });
        }
        self.lengths[power].lists += 1;
        self.lengths[power].postings += postings;
    }
}

/// Takes a short list apart; its layout stands in `lanner_index::format::list`.
fn short_bytes(context: &ListContext, bytes: &[u8]) -> Option<StreamBytes> {
    let (&head, mut rest) = bytes.split_first()?;
    let count = usize::from(head & !ALL_ONES);
    varint::read_u32(&mut rest)?;
    let mut sizes = StreamBytes { directory: (bytes.len() - rest.len()) as u64, ..StreamBytes::default() };
    let (documents, weights) = (context.codecs.documents.codec(), context.codecs.weights.codec());
    if count > 1 {
        let byte = varint::take(&mut rest, 1)?[0];
        sizes.directory += 1;
        sizes.documents = varint::take(&mut rest, documents.length(byte, count - 1))?.len() as u64;
    }
    if context.has_frequencies && head & ALL_ONES == 0 {
        let byte = varint::take(&mut rest, 1)?[0];
        sizes.directory += 1;
        sizes.frequencies = varint::take(&mut rest, weights.length(byte, count))?.len() as u64;
    }
    if context.has_impacts {
        let byte = varint::take(&mut rest, 1)?[0];
        sizes.directory += 1;
        sizes.impacts = varint::take(&mut rest, weights.length(byte, count))?.len() as u64;
    }
    Some(sizes)
}

/// Takes a long list apart: its directory says how long each stream of each block is.
fn long_bytes(context: &ListContext, bytes: &[u8]) -> Option<StreamBytes> {
    let postings = u32_at(bytes.get(..8)?, 0);
    let layout = LongLayout {
        blocks: (postings as usize).div_ceil(BLOCK),
        windows: u32_at(bytes, 4) as usize,
        has_frequencies: context.has_frequencies,
        has_impacts: context.has_impacts,
    };
    let (documents, weights) = (context.codecs.documents.codec(), context.codecs.weights.codec());
    let mut sizes = StreamBytes { directory: layout.payload() as u64, ..StreamBytes::default() };
    for block in 0..layout.blocks {
        let count = postings_in_block(postings, block);
        sizes.documents += documents.length(*bytes.get(layout.document_byte() + block)?, count) as u64;
        if layout.has_frequencies {
            sizes.frequencies += weights.length(*bytes.get(layout.frequency_byte() + block)?, count) as u64;
        }
        if layout.has_impacts {
            sizes.impacts += weights.length(*bytes.get(layout.impact_byte() + block)?, count) as u64;
        }
    }
    sizes.filling = (bytes.len() as u64).checked_sub(sizes.all())?;
    Some(sizes)
}

/// Takes a dense list apart; exceptions count as frequencies.
fn dense_bytes(context: &ListContext, bytes: &[u8]) -> Option<StreamBytes> {
    let layout = DenseLayout {
        postings: u32_at(bytes.get(..LONG_HEADER_BYTES)?, 0) as usize,
        documents: context.documents as usize,
        exceptions: u32_at(bytes, 4) as usize,
        frequency_bits: usize::from(bytes[FREQUENCY_BITS_AT]),
        has_impacts: context.has_impacts,
    };
    let documents = 8 * layout.chunks() as u64;
    let frequencies = (layout.postings * layout.frequency_bits).div_ceil(8) + 8 * layout.exceptions;
    let impacts = if layout.has_impacts { layout.postings as u64 } else { 0 };
    let directory = layout.words() as u64;
    let mut sizes = StreamBytes { documents, frequencies: frequencies as u64, impacts, directory, filling: 0 };
    sizes.filling = (bytes.len() as u64).checked_sub(sizes.all())?;
    Some(sizes)
}
