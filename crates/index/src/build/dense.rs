//! Encoding of a dense list: words, ranks, bounds of chunks, and weights in the order of the documents.

use super::list::{ListEncoder, Streams, Strongest};
use crate::codec::BLOCK;
use crate::format::dense::{CHUNK, DENSE_MARK, DenseLayout, EXCEPTIONS_AT, FREQUENCY_BITS, MARK_AT};
use crate::format::segment::WINDOW;
use crate::weight::{chunk_saturation_code, saturation_code};

impl ListEncoder<'_> {
    /// Appends the list that was read last as a dense one.
    pub(super) fn encode_dense(&self, out: &mut Vec<u8>) {
        let bits = if self.context.has_frequencies { self.frequency_bits() } else { 0 };
        let layout = DenseLayout {
            postings: self.postings.len(),
            documents: self.context.documents as usize,
            exceptions: if bits > 0 { self.exceptions(bits) } else { 0 },
            frequency_bits: usize::from(bits),
            has_impacts: self.context.has_impacts,
        };
        let mut list =
            DenseList { layout, bytes: vec![0; layout.end()], exceptions: 0, strongest: Strongest::default() };
        list.put_u32(0, layout.postings as u32);
        list.put_u32(MARK_AT, DENSE_MARK + u32::from(bits));
        list.put_u32(EXCEPTIONS_AT, layout.exceptions as u32);
        for (number, postings) in self.postings.chunks(BLOCK).enumerate() {
            let streams = self.streams(postings);
            let saturations = self.saturations(postings);
            for (i, saturation) in saturations[..postings.len()].iter().enumerate() {
                list.put((number * BLOCK + i) as u32, &streams, i, *saturation);
            }
            list.strongest.add(&self.context, &streams, &saturations, postings.len());
        }
        list.put_ranks();
        list.strongest.write(&mut list.bytes);
        out.append(&mut list.bytes);
    }

    /// The bits of a frequency that make the list smallest.
    fn frequency_bits(&self) -> u8 {
        let bytes = |bits: &u8| self.postings.len() * usize::from(*bits) / 8 + 8 * self.exceptions(*bits);
        FREQUENCY_BITS.into_iter().min_by_key(bytes).unwrap_or(FREQUENCY_BITS[0])
    }

    /// Frequencies that so many bits do not hold.
    fn exceptions(&self, bits: u8) -> usize {
        self.postings.iter().filter(|posting| posting.frequency >> bits > 0).count()
    }
}

/// A dense list in the making.
struct DenseList {
    layout: DenseLayout,
    bytes: Vec<u8>,
    /// Exceptions so far.
    exceptions: usize,
    strongest: Strongest,
}

impl DenseList {
    fn put_u32(&mut self, at: usize, number: u32) {
        self.bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }

    fn raise_u8(&mut self, at: usize, bound: u8) {
        self.bytes[at] = self.bytes[at].max(bound);
    }

    /// Puts the posting with that rank, number `i` of its block.
    fn put(&mut self, rank: u32, streams: &Streams, i: usize, saturation: f32) {
        let layout = self.layout;
        let document = streams.documents[i];
        let (chunk, window) = ((document / CHUNK) as usize, (document / WINDOW) as usize);
        self.bytes[layout.words() + (document / 8) as usize] |= 1 << (document % 8);
        if layout.frequency_bits > 0 {
            self.put_frequency(rank, streams.frequencies[i]);
            self.raise_u8(layout.chunk_saturation() + chunk, chunk_saturation_code(saturation));
            let at = layout.window_saturation() + 2 * window;
            let bound = u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]).max(saturation_code(saturation));
            self.bytes[at..at + 2].copy_from_slice(&bound.to_le_bytes());
        }
        if layout.has_impacts {
            let impact = streams.impacts[i] as u8;
            self.bytes[layout.impacts() + rank as usize] = impact;
            self.raise_u8(layout.chunk_impact() + chunk, impact);
            self.raise_u8(layout.window_impact() + window, impact);
        }
    }

    fn put_frequency(&mut self, rank: u32, frequency: u32) {
        let layout = self.layout;
        if frequency >> layout.frequency_bits > 0 {
            self.put_u32(layout.exception_rank() + 4 * self.exceptions, rank);
            self.put_u32(layout.exception_frequency() + 4 * self.exceptions, frequency);
            self.exceptions += 1;
            return;
        }
        let bit = rank as usize * layout.frequency_bits;
        self.bytes[layout.frequencies() + bit / 8] |= (frequency << (bit % 8)) as u8;
    }

    /// The ranks of windows and of chunks within them.
    fn put_ranks(&mut self) {
        let layout = self.layout;
        let (mut rank, mut window_rank) = (0u32, 0u32);
        for chunk in 0..layout.chunks() {
            if (chunk as u32 * CHUNK).is_multiple_of(WINDOW) {
                window_rank = rank;
                self.put_u32(layout.window_rank() + 4 * (chunk as u32 * CHUNK / WINDOW) as usize, rank);
            }
            let at = layout.chunk_rank() + 2 * chunk;
            self.bytes[at..at + 2].copy_from_slice(&((rank - window_rank) as u16).to_le_bytes());
            let word = &self.bytes[layout.words() + 8 * chunk..][..8];
            rank += word.iter().map(|byte| byte.count_ones()).sum::<u32>();
        }
    }
}
