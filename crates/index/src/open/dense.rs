//! An opened dense list: bit tests, ranks, weights by rank, and the bounds of chunks.
//!
//! Readers that go block by block can read a dense list too: block `b` has the postings of the 128 documents from `128
//! b` on, at most 128 and possibly none.

use super::list::{BlockBuffer, Column, ListContext};
use crate::codec::BLOCK;
use crate::format::dense::{CHUNK, DENSE_MARK, DenseLayout, EXCEPTIONS_AT, FREQUENCY_BITS, MARK_AT};
use crate::format::segment::{WINDOW, u32_at};
use crate::weight::{chunk_saturation_of, saturation_of};

/// Chunks in a block of 128 documents.
const CHUNKS_IN_BLOCK: usize = BLOCK / CHUNK as usize;

/// A dense list. Every access stays inside its arrays, even in a damaged file.
#[derive(Clone, Copy)]
pub struct Dense<'a> {
    words: &'a [[u8; 8]],
    window_ranks: &'a [[u8; 4]],
    chunk_ranks: &'a [[u8; 2]],
    chunk_saturations: &'a [u8],
    window_saturations: &'a [[u8; 2]],
    chunk_impacts: &'a [u8],
    window_impacts: &'a [u8],
    frequencies: &'a [u8],
    impacts: &'a [u8],
    exception_ranks: &'a [[u8; 4]],
    exception_frequencies: &'a [[u8; 4]],
    layout: DenseLayout,
}

impl<'a> Dense<'a> {
    /// Opens a dense list whose bytes include a header; `None` if they are no such list.
    pub fn open(context: &ListContext, bytes: &'a [u8]) -> Option<Dense<'a>> {
        let frequency_bits = (u32_at(bytes, MARK_AT) - DENSE_MARK) as u8;
        let is_sane = match context.has_frequencies {
            true => FREQUENCY_BITS.contains(&frequency_bits),
            false => frequency_bits == 0,
        };
        let layout = DenseLayout {
            postings: u32_at(bytes, 0) as usize,
            documents: context.documents as usize,
            exceptions: u32_at(bytes, EXCEPTIONS_AT) as usize,
            frequency_bits: usize::from(frequency_bits),
            has_impacts: context.has_impacts,
        };
        if !is_sane || layout.postings > layout.documents || layout.end() != bytes.len() {
            return None;
        }
        let part = |start: usize, length: usize| &bytes[start..start + length];
        let has_frequencies = usize::from(context.has_frequencies);
        let has_impacts = usize::from(context.has_impacts);
        let (chunks, windows) = (layout.chunks(), layout.windows());
        Some(Dense {
            words: part(layout.words(), 8 * chunks).as_chunks().0,
            window_ranks: part(layout.window_rank(), 4 * windows).as_chunks().0,
            chunk_ranks: part(layout.chunk_rank(), 2 * chunks).as_chunks().0,
            chunk_saturations: part(layout.chunk_saturation(), chunks * has_frequencies),
            window_saturations: part(layout.window_saturation(), 2 * windows * has_frequencies).as_chunks().0,
            chunk_impacts: part(layout.chunk_impact(), chunks * has_impacts),
            window_impacts: part(layout.window_impact(), windows * has_impacts),
            frequencies: part(layout.frequencies(), (layout.postings * layout.frequency_bits).div_ceil(8)),
            impacts: part(layout.impacts(), layout.postings * has_impacts),
            exception_ranks: part(layout.exception_rank(), 4 * layout.exceptions).as_chunks().0,
            exception_frequencies: part(layout.exception_frequency(), 4 * layout.exceptions).as_chunks().0,
            layout,
        })
    }

    /// Chunks of 64 documents, each of which has a word.
    pub fn chunks(&self) -> usize {
        self.words.len()
    }

    /// Blocks of 128 documents.
    pub fn blocks(&self) -> usize {
        self.words.len().div_ceil(CHUNKS_IN_BLOCK)
    }

    /// The documents of a chunk: bit `i` is document `64 chunk + i`. 0 after the last chunk.
    #[inline]
    pub fn word(&self, chunk: usize) -> u64 {
        self.words.get(chunk).map_or(0, |&word| u64::from_le_bytes(word))
    }

    /// The number of postings before a chunk.
    #[inline]
    pub fn rank(&self, chunk: usize) -> u32 {
        let window = self.window_ranks.get(chunk / (WINDOW / CHUNK) as usize);
        let within = self.chunk_ranks.get(chunk);
        let window = window.map_or(0, |&rank| u32::from_le_bytes(rank));
        window.wrapping_add(within.map_or(0, |&rank| u32::from(u16::from_le_bytes(rank))))
    }

    /// The rank of a document, if it is in the list.
    #[inline]
    pub fn find(&self, document: u32) -> Option<u32> {
        let (chunk, bit) = ((document / CHUNK) as usize, document % CHUNK);
        let word = self.word(chunk);
        if word >> bit & 1 == 0 {
            return None;
        }
        Some(self.rank(chunk).wrapping_add((word & ((1 << bit) - 1)).count_ones()))
    }

    /// The frequency or impact of the posting with a rank; 1 if the column is not stored.
    #[inline]
    pub fn value(&self, column: Column, rank: u32) -> u32 {
        match column {
            Column::Frequency => self.frequency(rank),
            Column::Impact => self.impacts.get(rank as usize).map_or(1, |&impact| u32::from(impact)),
        }
    }

    /// Reads the values of some documents; that of a document that is not in the list is 1.
    #[inline]
    pub fn values_of(&self, column: Column, documents: &[u32], out: &mut [u32]) {
        for (value, &document) in out.iter_mut().zip(documents) {
            *value = self.find(document).map_or(1, |rank| self.value(column, rank));
        }
    }

    #[inline]
    fn frequency(&self, rank: u32) -> u32 {
        match self.packed_frequency(rank) {
            None => 1,
            Some(0) => self.exception(rank),
            Some(frequency) => frequency,
        }
    }

    /// The packed frequency of a posting; 0 for an exception.
    #[inline]
    fn packed_frequency(&self, rank: u32) -> Option<u32> {
        let bit = rank as usize * self.layout.frequency_bits;
        let byte = u32::from(*self.frequencies.get(bit / 8)?);
        Some(byte >> (bit % 8) & ((1 << self.layout.frequency_bits) - 1))
    }

    /// The frequency of an exception.
    #[cold]
    fn exception(&self, rank: u32) -> u32 {
        let found = self.exception_ranks.binary_search_by_key(&rank, |&rank| u32::from_le_bytes(rank));
        found.map_or(1, |position| u32::from_le_bytes(self.exception_frequencies[position]))
    }

    /// The packed frequencies, from the lowest bits of the first byte on, and the width of each in bits. 0 stands for
    /// an exception.
    pub fn packed_frequencies(&self) -> (&'a [u8], usize) {
        (self.frequencies, self.layout.frequency_bits)
    }

    /// The impacts by rank; empty if they are not stored.
    pub fn impacts(&self) -> &'a [u8] {
        self.impacts
    }

    /// The code of the largest saturation of each chunk ([`chunk_saturation_of`]); empty without frequencies.
    pub fn chunk_saturations(&self) -> &'a [u8] {
        self.chunk_saturations
    }

    /// The largest impact of each chunk; empty without impacts.
    pub fn chunk_impacts(&self) -> &'a [u8] {
        self.chunk_impacts
    }

    /// Decodes the documents of a block and returns how many there are.
    pub fn decode_documents(&self, block: usize, out: &mut BlockBuffer) -> usize {
        let mut count = 0;
        for chunk in CHUNKS_IN_BLOCK * block..CHUNKS_IN_BLOCK * (block + 1) {
            let mut word = self.word(chunk);
            while word != 0 {
                // Two words have at most 128 bits.
                out[count % BLOCK] = chunk as u32 * CHUNK + word.trailing_zeros();
                word &= word - 1;
                count += 1;
            }
        }
        count
    }

    /// Decodes a column of a block and returns how many values there are.
    pub fn decode_values(&self, column: Column, block: usize, out: &mut BlockBuffer) -> usize {
        let rank = self.rank(CHUNKS_IN_BLOCK * block);
        let words = CHUNKS_IN_BLOCK * block..CHUNKS_IN_BLOCK * (block + 1);
        let count = words.map(|chunk| self.word(chunk).count_ones()).sum::<u32>();
        for (i, weight) in out[..count as usize].iter_mut().enumerate() {
            *weight = self.value(column, rank.wrapping_add(i as u32));
        }
        count as usize
    }

    /// Decodes one value of a block.
    pub fn value_at(&self, column: Column, block: usize, index: usize) -> u32 {
        self.value(column, self.rank(CHUNKS_IN_BLOCK * block).wrapping_add(index as u32))
    }

    /// Bytes of the header, the ranks and the bounds.
    pub fn directory_bytes(&self) -> usize {
        self.layout.words()
    }

    pub(super) fn layout(&self) -> &DenseLayout {
        &self.layout
    }

    /// Bytes of the words, of the frequencies with their exceptions, and of the impacts.
    pub fn column_bytes(&self) -> [usize; 3] {
        [8 * self.words.len(), self.frequencies.len() + 8 * self.exception_ranks.len(), self.impacts.len()]
    }

    /// An upper bound of the saturations in a block.
    #[inline]
    pub fn saturation_bound(&self, block: usize) -> f32 {
        largest_of_block(self.chunk_saturations, block).map_or(1.0, chunk_saturation_of)
    }

    /// An upper bound of the impacts in a block.
    #[inline]
    pub fn impact_bound(&self, block: usize) -> u32 {
        largest_of_block(self.chunk_impacts, block).map_or(255, u32::from)
    }

    /// An upper bound of the saturations in a window.
    pub fn window_saturation_bound(&self, window: usize) -> f32 {
        self.window_saturations.get(window).map_or(1.0, |&code| saturation_of(u16::from_le_bytes(code)))
    }

    /// An upper bound of the impacts in a window.
    pub fn window_impact_bound(&self, window: usize) -> u32 {
        self.window_impacts.get(window).map_or(255, |&impact| u32::from(impact))
    }

    /// Checks what reading blocks does not show: that no document is outside the segment, that ranks count the bits
    /// before them, that the bound of every chunk is its largest weight, and that exceptions increase and belong to
    /// frequencies packed as 0. `code(column, document, value)` is the code of a weight; it is called with documents of
    /// the segment only.
    pub fn verify(
        &self,
        documents: u32,
        postings: u32,
        code: impl Fn(Column, u32, u32) -> u8,
    ) -> Result<(), &'static str> {
        let mut rank = 0;
        for chunk in 0..self.chunks() {
            if self.rank(chunk) != rank {
                return Err("the rank of a chunk does not count the documents before it");
            }
            let word = self.word(chunk);
            let inside = documents.saturating_sub(chunk as u32 * CHUNK);
            if word.checked_shr(inside).unwrap_or(0) != 0 {
                return Err("a document is outside the collection");
            }
            for (column, bounds) in [(Column::Frequency, self.chunk_saturations), (Column::Impact, self.chunk_impacts)]
            {
                let first = chunk as u32 * CHUNK;
                let bits = (0..CHUNK).filter(|bit| word >> bit & 1 == 1);
                let codes = bits.zip(rank..).map(|(bit, rank)| code(column, first + bit, self.value(column, rank)));
                if bounds.get(chunk).is_some_and(|&bound| codes.max().unwrap_or(0) != bound) {
                    return Err("the bound of a chunk is not its largest weight");
                }
            }
            rank += word.count_ones();
        }
        match rank == postings {
            true => self.verify_exceptions(postings),
            false => Err("its words and its header disagree on the number of postings"),
        }
    }

    /// Checks that exceptions increase and are exactly the postings whose frequency does not fit in its bits.
    fn verify_exceptions(&self, postings: u32) -> Result<(), &'static str> {
        let ranks = self.exception_ranks.iter().map(|&rank| u32::from_le_bytes(rank));
        let is_exception = |rank: u32| {
            let is_needed = self.value(Column::Frequency, rank) >> self.layout.frequency_bits > 0;
            rank < postings && is_needed && self.packed_frequency(rank) == Some(0)
        };
        let marked = (0..postings).filter(|&rank| self.packed_frequency(rank) == Some(0)).count();
        match ranks.clone().is_sorted_by(|a, b| a < b) && ranks.len() == marked && ranks.clone().all(is_exception) {
            true => Ok(()),
            false => Err("its exceptions are out of order, or do not match the packed frequencies"),
        }
    }
}

/// The largest of the bytes that belong to the chunks of a block; `None` if there are none.
#[inline]
fn largest_of_block(bytes: &[u8], block: usize) -> Option<u8> {
    let end = bytes.len().min(CHUNKS_IN_BLOCK * (block + 1));
    bytes.get(CHUNKS_IN_BLOCK * block..end)?.iter().copied().max()
}
