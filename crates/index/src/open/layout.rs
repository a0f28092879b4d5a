//! Where the arrays and columns of a list lie within its bytes: for a reader that has the bytes elsewhere, as a GPU has.

use super::list::{ListContext, read_packed};
use crate::format::dense::{DENSE_MARK, DenseLayout, EXCEPTIONS_AT, MARK_AT, is_marked_dense};
use crate::format::list::{
    ALL_ONES, LONG_HEADER_BYTES, LongLayout, SHARED_HEADER_BYTES, SHARED_START, UNIT, blocks_of,
};
use crate::format::segment::u32_at;
use crate::format::varint;
use std::ops::Range;

/// The parts of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListLayout {
    /// A list of fewer than 128 postings.
    Short {
        /// Its first document.
        first: u32,
        /// The other documents, if there are any.
        documents: Option<ColumnPart>,
        /// The frequencies; left out where all are 1.
        frequencies: Option<ColumnPart>,
        /// The impacts, where they are stored.
        impacts: Option<ColumnPart>,
    },
    /// A list in blocks.
    Long {
        /// Its arrays.
        layout: LongLayout,
        /// What codecs keep for all blocks together, of documents, frequencies and impacts.
        shared: [Range<usize>; 3],
    },
    /// A bitmap.
    Dense {
        /// Its arrays.
        layout: DenseLayout,
    },
}

/// A column of a short list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnPart {
    /// The directory byte.
    pub byte: u8,
    /// Its first byte within the list.
    pub start: usize,
}

impl ListLayout {
    /// Takes the header of a list apart, and a short list as a whole; `None` where the bytes cannot be one.
    pub fn new(context: &ListContext, is_long: bool, bytes: &[u8]) -> Option<ListLayout> {
        if !is_long {
            return ListLayout::short(context, bytes);
        }
        let header = bytes.get(..LONG_HEADER_BYTES)?;
        if is_marked_dense(header) {
            let frequency_bits = (u32_at(header, MARK_AT) - DENSE_MARK) as usize;
            let layout = DenseLayout {
                postings: u32_at(header, 0) as usize,
                documents: context.documents as usize,
                exceptions: u32_at(header, EXCEPTIONS_AT) as usize,
                frequency_bits,
                has_impacts: context.has_impacts,
            };
            return (layout.end() == bytes.len() && frequency_bits <= 8).then_some(ListLayout::Dense { layout });
        }
        let layout = LongLayout {
            blocks: blocks_of(u32_at(header, 0)),
            windows: u32_at(header, 4) as usize,
            has_frequencies: context.has_frequencies,
            has_impacts: context.has_impacts,
        };
        let shared = shared_parts(bytes)?;
        (layout.payload() <= bytes.len()).then_some(ListLayout::Long { layout, shared })
    }

    fn short(context: &ListContext, bytes: &[u8]) -> Option<ListLayout> {
        let (&head, mut rest) = bytes.split_first()?;
        let count = usize::from(head & !ALL_ONES);
        let (documents, weights) = (context.codecs.documents.codec(), context.codecs.weights.codec());
        let first = varint::read_u32(&mut rest)?;
        let mut take = |is_there: bool, codec, count| {
            if !is_there {
                return Some(None);
            }
            let start = bytes.len() - rest.len() + 1;
            read_packed(&mut rest, codec, count).map(|packed| Some(ColumnPart { byte: packed.byte, start }))
        };
        let documents = take(count > 1, documents, count.saturating_sub(1))?;
        let frequencies = take(context.has_frequencies && head & ALL_ONES == 0, weights, count)?;
        let impacts = take(context.has_impacts, weights, count)?;
        Some(ListLayout::Short { first, documents, frequencies, impacts })
    }
}

/// Where a long list keeps what its blocks share; empty ranges where it keeps nothing.
fn shared_parts(bytes: &[u8]) -> Option<[Range<usize>; 3]> {
    let start = u32_at(bytes, SHARED_START) as usize * UNIT;
    if start == 0 {
        return Some([0..0, 0..0, 0..0]);
    }
    let header = bytes.get(start..start + SHARED_HEADER_BYTES)?;
    let mut next = start + SHARED_HEADER_BYTES;
    let parts = std::array::from_fn(|column| {
        let part = next..next + u32_at(header, 4 * column) as usize * UNIT;
        next = part.end;
        part
    });
    (next <= bytes.len()).then_some(parts)
}
