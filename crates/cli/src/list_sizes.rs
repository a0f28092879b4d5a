//! How the bytes of an index's lists are used, and how long the lists are.

use crate::failure::Failure;
use lanner::Index;
use lanner_index::codec::BLOCK;
use lanner_index::format::segment::Section;
use lanner_index::open::List;
use serde::Serialize;
use std::ops::AddAssign;

/// Sizes of all lists of an index, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ListSizes {
    /// Lists shorter than a block.
    pub short: KindSizes,
    /// Sparse lists of at least a block.
    pub sparse: KindSizes,
    /// Dense lists, which are bitmaps.
    pub dense: KindSizes,
    /// The number of lists by length, in powers of two.
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
    pub bytes: ColumnBytes,
}

/// Bytes of lists by use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ColumnBytes {
    /// Packed document numbers.
    pub documents: u64,
    /// Packed frequencies.
    pub frequencies: u64,
    /// Packed impacts.
    pub impacts: u64,
    /// Headers, bounds and offsets of blocks.
    pub directory: u64,
    /// Padding of blocks to multiples of 16 bytes.
    pub padding: u64,
}

/// Lists of `from` to `to` postings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LengthRow {
    /// The smallest length.
    pub from: u64,
    /// The largest length.
    pub to: u64,
    /// Lists.
    pub lists: u64,
    /// Their postings.
    pub postings: u64,
}

impl ColumnBytes {
    /// Returns the sum.
    pub fn all(&self) -> u64 {
        self.documents + self.frequencies + self.impacts + self.directory + self.padding
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
        self.bytes.padding += other.bytes.padding;
    }
}

impl ListSizes {
    /// Measures every list of an index without decoding it.
    pub fn of(index: &Index) -> Result<ListSizes, Failure> {
        let segment = index.segment();
        let mut sizes = ListSizes::default();
        for term in 0..segment.header().terms {
            let list = segment.list(term)?;
            let is_long = list.postings() as usize >= BLOCK;
            let section = if is_long { Section::LongLists } else { Section::ShortLists };
            let bytes = column_bytes(&list, segment.list_bytes(term).unwrap_or(0) as u64);
            let bytes =
                bytes.ok_or_else(|| segment.damaged(section, format!("the list of term {term} cannot be read")))?;
            let kind = match is_long {
                true if list.dense().is_some() => &mut sizes.dense,
                true => &mut sizes.sparse,
                false => &mut sizes.short,
            };
            *kind += KindSizes { lists: 1, postings: u64::from(list.postings()), bytes };
            sizes.count_length(u64::from(list.postings()));
        }
        Ok(sizes)
    }

    /// Returns the sum over all kinds.
    pub fn all(&self) -> KindSizes {
        let mut all = self.short;
        all += self.sparse;
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

/// Splits the bytes of a list by use; `None` if its parts claim more than `length` bytes.
fn column_bytes(list: &List, length: u64) -> Option<ColumnBytes> {
    let mut parts = list.shared_bytes();
    for block in 0..list.blocks() {
        for (part, bytes) in parts.iter_mut().zip(list.column_bytes(block)) {
            *part += bytes;
        }
    }
    let [documents, frequencies, impacts] = parts.map(|part| part as u64);
    let sizes = ColumnBytes { documents, frequencies, impacts, ..ColumnBytes::default() };
    let rest = length.checked_sub(sizes.all())?;
    // A short list has no directory: the rest is its header.
    let directory = list.directory_bytes().map_or(rest, |bytes| bytes as u64);
    Some(ColumnBytes { directory, padding: rest.checked_sub(directory)?, ..sizes })
}
