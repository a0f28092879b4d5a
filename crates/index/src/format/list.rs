//! How one list lies in its section; `build::list` writes it, `open::list` reads it.
//!
//! *Short* lists have fewer than [`BLOCK`] postings. They are packed byte after byte:
//! ```text
//! u8      postings, 1 to 127; the high bit is set when every frequency is 1 (the frequency stream is then left out)
//! varint  first document
//! u8 + .. directory byte and stream of the other documents, if there are any
//! u8 + .. directory byte and stream of the frequencies, if stored and not all 1
//! u8 + .. directory byte and stream of the impacts, if stored
//! ```
//! *Long* lists start at multiples of 16 bytes with a fixed header, then flat arrays (the directory), then, from a
//! multiple of 16 bytes, the blocks: documents, frequencies, impacts, each block filled up to 16 bytes. What a codec
//! keeps for all blocks together follows: a row of [`SHARED_HEADER_BYTES`], and a part for each stream.

use crate::codec::BLOCK;

/// Long lists and their blocks start at multiples of this many bytes.
pub const UNIT: usize = 16;
/// Bytes of a long list's fixed header.
pub const LONG_HEADER_BYTES: usize = 32;
/// Where the header of a long list says, in units, where its shared part starts; 0 for a list without.
pub const SHARED_START: usize = 28;
/// Bytes before the shared parts: a u32 for each stream, its units, and a zero.
pub const SHARED_HEADER_BYTES: usize = 16;
/// The k for which k-th weights are stored.
pub const STORED_K: [usize; 3] = [10, 100, 1000];
/// A list carries a table of windows when it has at least this many blocks for each.
pub const BLOCKS_IN_WINDOW: usize = 4;
/// In the first byte of a short list: every frequency is 1.
pub const ALL_ONES: u8 = 0x80;

/// Which arrays a long list has, and where: all follow from three numbers and the streams of the segment.
///
/// In order: `last[blocks]` u32, `offset[blocks]` u32 (in units of 16 bytes from the first block),
/// `first_block[windows]` u32, frequency bounds `[blocks]` and `[windows]` u16, impact bounds `[blocks]` and
/// `[windows]` u8, then a directory byte of each block for documents, frequencies and impacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongLayout {
    /// Blocks of up to 128 postings.
    pub blocks: usize,
    /// Windows with a row of their own: all of the collection, or none.
    pub windows: usize,
    /// Whether there is a frequency stream.
    pub has_frequencies: bool,
    /// Whether there is an impact stream.
    pub has_impacts: bool,
}

impl LongLayout {
    /// Start of `last[blocks]`, the last document of each block.
    pub fn last(&self) -> usize {
        LONG_HEADER_BYTES
    }

    /// Start of `offset[blocks]`.
    pub fn offset(&self) -> usize {
        self.last() + 4 * self.blocks
    }

    /// Start of `first_block[windows]`: the first block that can hold a document of the window.
    pub fn first_block(&self) -> usize {
        self.offset() + 4 * self.blocks
    }

    /// Start of the blocks' largest saturations, as codes.
    pub fn frequency_bound(&self) -> usize {
        self.first_block() + 4 * self.windows
    }

    /// Start of the windows' largest saturations, as codes.
    pub fn frequency_window_bound(&self) -> usize {
        self.frequency_bound() + 2 * self.if_frequencies(self.blocks)
    }

    /// Start of the blocks' largest impacts.
    pub fn impact_bound(&self) -> usize {
        self.frequency_window_bound() + 2 * self.if_frequencies(self.windows)
    }

    /// Start of the windows' largest impacts.
    pub fn impact_window_bound(&self) -> usize {
        self.impact_bound() + self.if_impacts(self.blocks)
    }

    /// Start of the documents' directory bytes.
    pub fn document_byte(&self) -> usize {
        self.impact_window_bound() + self.if_impacts(self.windows)
    }

    /// Start of the frequencies' directory bytes.
    pub fn frequency_byte(&self) -> usize {
        self.document_byte() + self.blocks
    }

    /// Start of the impacts' directory bytes.
    pub fn impact_byte(&self) -> usize {
        self.frequency_byte() + self.if_frequencies(self.blocks)
    }

    /// Start of the first block.
    pub fn payload(&self) -> usize {
        (self.impact_byte() + self.if_impacts(self.blocks)).next_multiple_of(UNIT)
    }

    fn if_frequencies(&self, count: usize) -> usize {
        if self.has_frequencies { count } else { 0 }
    }

    fn if_impacts(&self, count: usize) -> usize {
        if self.has_impacts { count } else { 0 }
    }
}

/// How many windows a list of `blocks` blocks carries in a collection of `windows`.
pub fn windows_of(blocks: usize, windows: usize) -> usize {
    if blocks >= BLOCKS_IN_WINDOW * windows { windows } else { 0 }
}

/// Blocks of a list of that many postings.
pub fn blocks_of(postings: u32) -> usize {
    (postings as usize).div_ceil(BLOCK)
}

/// Postings in a block of a list.
pub fn postings_in_block(postings: u32, block: usize) -> usize {
    (postings as usize).saturating_sub(block * BLOCK).min(BLOCK)
}
