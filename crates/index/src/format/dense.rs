//! The layout of a dense list; `build::dense` writes it, `open::dense` reads it.
//!
//! A list with at least one in [`DENSE_SHARE`] documents is a bitmap: one 64-bit word for each *chunk* of 64 documents,
//! with the rank and the largest weight of the chunk, and the weights in rank order. Membership is then a bit test, the
//! position of a weight is a population count, and every chunk has its own bound. The rank of a document is the number
//! of postings before it; that of a chunk is counted from the start of its window.

use super::list::{LONG_HEADER_BYTES, UNIT, arrays};
use super::segment::{WINDOW, u32_at};

crate::codec::constants! {
    /// Documents in a chunk, one for each bit of a word.
    pub CHUNK: u32 = 64;
}
/// A list is dense if it has at least one in this many documents of the segment. Decision 9 has the measurements.
pub const DENSE_SHARE: u32 = 28;
/// The header field that holds [`DENSE_MARK`] plus the bits of a frequency; in a sparse list it holds the windows.
pub const MARK_AT: usize = 4;
/// Marks a dense list; larger than any number of windows.
pub const DENSE_MARK: u32 = 0xFFFF_FF00;
/// The header field with the number of exceptions.
pub const EXCEPTIONS_AT: usize = 28;
/// The possible widths of a frequency, in bits. A frequency that does not fit is an exception and is stored as 0.
pub const FREQUENCY_BITS: [u8; 3] = [2, 4, 8];

/// Which arrays a dense list has, and where they start, computed from its header and that of the segment.
///
/// In order: ranks at the windows' starts u32, ranks of chunks within their window u16, windows' largest saturations
/// u16 (codes), chunks' largest saturations u8 (codes), chunks' and windows' largest impacts u8, then, each from a
/// multiple of 16 bytes, the words, the frequencies, the impacts, and the exceptions' ranks and frequencies u32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DenseLayout {
    /// Postings of the list.
    pub postings: usize,
    /// Documents of the segment.
    pub documents: usize,
    /// Frequencies that do not fit in their bits.
    pub exceptions: usize,
    /// Bits of a frequency; 0 without frequencies.
    pub frequency_bits: usize,
    /// Whether there are impacts.
    pub has_impacts: bool,
}

impl DenseLayout {
    /// Chunks of the segment, each of which has a word.
    pub fn chunks(&self) -> usize {
        self.documents.div_ceil(CHUNK as usize)
    }

    /// Windows of the segment.
    pub fn windows(&self) -> usize {
        self.documents.div_ceil(WINDOW as usize)
    }

    arrays! {
        self from LONG_HEADER_BYTES;
        /// the ranks of the windows.
        window_rank: 4 * self.windows();
        /// the ranks of the chunks.
        chunk_rank: 2 * self.chunks();
        /// the windows' largest saturations, as codes of 16 bits.
        window_saturation: 2 * self.if_frequencies(self.windows());
        /// the chunks' largest saturations, as codes of 8 bits.
        chunk_saturation: self.if_frequencies(self.chunks());
        /// the chunks' largest impacts.
        chunk_impact: self.if_impacts(self.chunks());
        /// the windows' largest impacts.
        window_impact: self.if_impacts(self.windows());
        /// the words.
        align words: 8 * self.chunks();
        /// the frequencies.
        align frequencies: (self.postings * self.frequency_bits).div_ceil(8);
        /// the impacts.
        align impacts: self.if_impacts(self.postings);
        /// the exceptions' ranks.
        align exception_rank: 4 * self.exceptions;
        /// the exceptions' frequencies.
        exception_frequency: 4 * self.exceptions;
        /// what follows the list.
        align end
    }

    fn if_frequencies(&self, count: usize) -> usize {
        if self.frequency_bits > 0 { count } else { 0 }
    }

    fn if_impacts(&self, count: usize) -> usize {
        if self.has_impacts { count } else { 0 }
    }
}

/// Whether a long list with this header is dense.
pub fn is_marked_dense(header: &[u8]) -> bool {
    u32_at(header, MARK_AT) >= DENSE_MARK
}

/// Whether a list of `postings` postings is dense in a segment of `documents` documents.
pub fn is_dense(postings: usize, documents: u32) -> bool {
    postings as u64 * u64::from(DENSE_SHARE) >= u64::from(documents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_dense_from_one_document_in_28_on() {
        for (postings, documents) in [(128, 128), (128, 3584), (129, 3612), (153_391_690, u32::MAX)] {
            assert!(is_dense(postings, documents), "{postings} of {documents}");
        }
        for (postings, documents) in [(128, 3585), (129, 3613), (153_391_689, u32::MAX)] {
            assert!(!is_dense(postings, documents), "{postings} of {documents}");
        }
    }

    #[test]
    fn no_number_of_windows_is_the_mark() {
        assert!(u32::MAX.div_ceil(WINDOW) < DENSE_MARK);
        let header = |windows: u32| [0u32.to_le_bytes(), windows.to_le_bytes()].concat();
        assert!(!is_marked_dense(&header(u32::MAX.div_ceil(WINDOW))));
        assert!(is_marked_dense(&header(DENSE_MARK)) && is_marked_dense(&header(DENSE_MARK + 8)));
    }
}
