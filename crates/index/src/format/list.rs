//! The layout of a sparse list; `build::list` writes it, `open::list` reads it.
//!
//! *Short* lists have fewer than [`BLOCK`] postings. They are packed without alignment:
//! ```text
//! u8      postings, 1 to 127; the high bit is set if every frequency is 1 (frequencies are then omitted)
//! varint  first document
//! u8 + .. directory byte and payload of the other documents, if there are any
//! u8 + .. directory byte and payload of the frequencies, if stored and not all 1
//! u8 + .. directory byte and payload of the impacts, if stored
//! ```
//! *Long* lists start at multiples of 16 bytes. They have a fixed header, then flat arrays (the directory), then the
//! blocks: documents, frequencies, impacts. Every block is aligned to 16 bytes. The shared parts, which a codec stores
//! once for all blocks of a column, follow after a header of [`SHARED_HEADER_BYTES`].

use crate::codec::BLOCK;
use std::cmp::Ordering;

crate::codec::constants! {
    /// Long lists and their blocks start at multiples of this many bytes.
    pub UNIT: usize = 16;
}
/// Bytes of a long list's fixed header.
pub const LONG_HEADER_BYTES: usize = 32;
/// The header field with the start of the shared part, in units; 0 for a list without one.
pub const SHARED_START: usize = 28;
/// Bytes before the shared parts: a u32 for each of the three columns, its length in units, and a zero.
pub const SHARED_HEADER_BYTES: usize = 16;
/// The values of k for which the k-th weight is stored.
pub const STORED_K: [usize; 3] = [10, 100, 1000];
/// A list has a table of windows if it has at least this many blocks per window.
pub const BLOCKS_IN_WINDOW: usize = 4;
/// The bit of the first byte of a short list that says that every frequency is 1.
pub const ALL_ONES: u8 = 0x80;

/// Defines methods that say where arrays start, one after the other, from a table with the bytes of each. `align`
/// rounds a start up to a multiple of [`UNIT`].
macro_rules! arrays {
    ($self:ident from $start:expr; #[doc = $doc:literal] align $name:ident $($rest:tt)*) => {
        $crate::format::list::arrays! { $self from ($start).next_multiple_of(UNIT); #[doc = $doc] $name $($rest)* }
    };
    ($self:ident from $start:expr; #[doc = $doc:literal] $name:ident $(: $bytes:expr; $($rest:tt)+)?) => {
        #[doc = concat!("Start of", $doc)]
        pub fn $name(&$self) -> usize {
            $start
        }

        $($crate::format::list::arrays! { $self from $self.$name() + $bytes; $($rest)+ })?
    };
}
pub(super) use arrays;

/// Which arrays a long list has, and where they start, computed from the four fields.
///
/// In order: `last[blocks]` u32, `offset[blocks]` u32 (in units of 16 bytes from the first block),
/// `first_block[windows]` u32, frequency bounds `[blocks]` and `[windows]` u16, impact bounds `[blocks]` and
/// `[windows]` u8, then the directory bytes of documents, frequencies and impacts, `[blocks]` u8 each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongLayout {
    /// Blocks of up to 128 postings.
    pub blocks: usize,
    /// Windows in its directory: all windows of the segment, or none.
    pub windows: usize,
    /// Whether there are frequencies.
    pub has_frequencies: bool,
    /// Whether there are impacts.
    pub has_impacts: bool,
}

impl LongLayout {
    arrays! {
        self from LONG_HEADER_BYTES;
        /// `last[blocks]`, the last document of each block.
        last: 4 * self.blocks;
        /// `offset[blocks]`.
        offset: 4 * self.blocks;
        /// `first_block[windows]`: the first block that can hold a document of the window.
        first_block: 4 * self.windows;
        /// the blocks' largest saturations, as codes.
        frequency_bound: 2 * self.if_frequencies(self.blocks);
        /// the windows' largest saturations, as codes.
        frequency_window_bound: 2 * self.if_frequencies(self.windows);
        /// the blocks' largest impacts.
        impact_bound: self.if_impacts(self.blocks);
        /// the windows' largest impacts.
        impact_window_bound: self.if_impacts(self.windows);
        /// the documents' directory bytes.
        document_byte: self.blocks;
        /// the frequencies' directory bytes.
        frequency_byte: self.if_frequencies(self.blocks);
        /// the impacts' directory bytes.
        impact_byte: self.if_impacts(self.blocks);
        /// the first block.
        align payload
    }

    fn if_frequencies(&self, count: usize) -> usize {
        if self.has_frequencies { count } else { 0 }
    }

    fn if_impacts(&self, count: usize) -> usize {
        if self.has_impacts { count } else { 0 }
    }
}

/// The windows in the directory of a list of `blocks` blocks, in a segment of `windows` windows.
pub fn windows_of(blocks: usize, windows: usize) -> usize {
    if blocks >= BLOCKS_IN_WINDOW * windows { windows } else { 0 }
}

/// The number of blocks of a list of `postings` postings.
pub fn blocks_of(postings: u32) -> usize {
    (postings as usize).div_ceil(BLOCK)
}

/// The number of postings in a block of a list of `postings` postings.
pub fn postings_in_block(postings: u32, block: usize) -> usize {
    (postings as usize).saturating_sub(block * BLOCK).min(BLOCK)
}

/// The largest number, and the k-th largest for each k of [`STORED_K`]; 0 if there are fewer. Numbers are reordered.
pub fn largest_and_kth<T: Copy + Default>(
    numbers: &mut [T],
    compare: impl Fn(&T, &T) -> Ordering,
) -> (T, [T; STORED_K.len()]) {
    // From the largest k down: each among the numbers that the one before has left.
    let (mut left, mut kth) = (numbers, [T::default(); STORED_K.len()]);
    for (kth, k) in kth.iter_mut().zip(STORED_K).rev() {
        if k <= left.len() {
            *kth = *left.select_nth_unstable_by(k - 1, |a, b| compare(b, a)).1;
            left = &mut left[..k];
        }
    }
    (left.iter().copied().max_by(compare).unwrap_or_default(), kth)
}
