//! Encoding of a list: blocks, directory, bounds and k-th weights.

use super::invert::{learned_frequency, unpack_pieces};
use super::numbering::Numbering;
use crate::codec::{BLOCK, Codec};
use crate::format::dense::is_dense;
use crate::format::list::{
    ALL_ONES, LONG_HEADER_BYTES, LongLayout, SHARED_HEADER_BYTES, SHARED_START, STORED_K, UNIT, largest_and_kth,
    windows_of,
};
use crate::format::segment::WINDOW;
use crate::format::varint;
use crate::open::ListContext;
use crate::weight::{Norms, idf, saturation, saturation_code};

/// Capacity of the buffer of postings that is kept between lists.
const KEPT_POSTINGS: usize = 1 << 18;

/// What the weights of postings are computed from.
#[derive(Clone)]
pub struct Weighing<'a> {
    /// The norm of each length code.
    pub norms: &'a Norms,
    /// The length code of each document.
    pub length_codes: &'a [u8],
    /// Whether postings have learned weights instead of frequencies.
    pub learned: bool,
    /// An impact is a weight times this, rounded; unused without impacts.
    pub impact_scale: f64,
}

/// A posting with its number in the segment.
#[derive(Clone, Copy)]
pub(super) struct Posting {
    document: u32,
    pub(super) frequency: u32,
    /// The learned weight or the saturation.
    strength: f32,
}

/// Encodes one list after the other and reuses its memory.
pub struct ListEncoder<'a> {
    pub(super) context: ListContext,
    weighing: Weighing<'a>,
    numbering: Numbering<'a>,
    pub(super) postings: Vec<Posting>,
}

/// The kind and size of an encoded list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoded {
    /// All its documents were dropped.
    Empty,
    /// A short list, in bytes.
    Short(usize),
    /// A long list, in units of 16 bytes.
    Long(usize),
}

/// Lists encoded so far, by section.
#[derive(Default)]
pub struct Lists {
    /// Short lists, unaligned.
    pub short: Vec<u8>,
    /// Long lists, aligned to 16 bytes.
    pub long: Vec<u8>,
}

impl<'a> ListEncoder<'a> {
    /// An encoder for the lists of one segment.
    pub fn new(context: ListContext, weighing: Weighing<'a>, numbering: Numbering<'a>) -> ListEncoder<'a> {
        ListEncoder { context, weighing, numbering, postings: Vec::new() }
    }

    /// The number of postings of the list that was read last.
    pub fn count(&self) -> usize {
        self.postings.len()
    }

    /// Reads the pieces of a term that has up to `postings` postings; `None` if they are malformed.
    pub fn read(&mut self, postings: u32, pieces: &[u8]) -> Option<()> {
        self.postings.clear();
        // Give back the memory of a long list, and reserve exactly: growing by doubling would exceed the memory budget.
        self.postings.shrink_to(KEPT_POSTINGS);
        self.postings.reserve_exact(postings as usize);
        let Weighing { norms, length_codes, learned, .. } = self.weighing;
        let (numbering, postings) = (self.numbering, &mut self.postings);
        unpack_pieces(pieces, |document, frequency| {
            let Some(document) = numbering.number(document) else {
                return;
            };
            let code = length_codes.get(document as usize).copied().unwrap_or(0);
            let posting = if learned {
                let strength = f32::from_bits(frequency);
                Posting { document, frequency: learned_frequency(strength), strength }
            } else {
                Posting { document, frequency, strength: saturation(frequency, norms.of(code)) }
            };
            postings.push(posting);
        })?;
        if !numbering.keeps_order() {
            postings.sort_unstable_by_key(|posting| posting.document);
        }
        Some(())
    }

    /// The largest weight of the list before scaling, and whether all weights are integers from 1 to 255.
    pub fn strongest(&self) -> (f64, bool) {
        let factor = self.factor();
        let largest = self.postings.iter().map(|posting| factor * f64::from(posting.strength)).fold(0.0, f64::max);
        let is_whole = |posting: &Posting| posting.strength.fract() == 0.0 && (1.0..=255.0).contains(&posting.strength);
        (largest, self.weighing.learned && self.postings.iter().all(is_whole))
    }

    /// The documents and impacts of the list.
    pub fn impacts(&self) -> impl ExactSizeIterator<Item = (u32, u32)> + '_ {
        let (factor, scale) = (self.factor(), self.weighing.impact_scale);
        let impact = move |posting: &Posting| impact_of((factor * f64::from(posting.strength)) * scale);
        self.postings.iter().map(move |posting| (posting.document, impact(posting)))
    }

    /// The factor between strength and weight.
    fn factor(&self) -> f64 {
        if self.weighing.learned {
            1.0
        } else {
            idf(self.weighing.length_codes.len() as u64, self.postings.len() as u64)
        }
    }

    /// Appends the list to `lists`.
    pub fn encode(&self, lists: &mut Lists) -> Encoded {
        match self.postings.len() {
            0 => Encoded::Empty,
            count if count < BLOCK => {
                let start = lists.short.len();
                self.encode_short(&mut lists.short);
                Encoded::Short(lists.short.len() - start)
            }
            _ => {
                let start = lists.long.len();
                match self.context.has_dense && is_dense(self.postings.len(), self.context.documents) {
                    true => self.encode_dense(&mut lists.long),
                    false => self.encode_long(&mut lists.long),
                }
                Encoded::Long((lists.long.len() - start) / UNIT)
            }
        }
    }

    fn encode_short(&self, out: &mut Vec<u8>) {
        let block = self.columns(&self.postings);
        let count = self.postings.len();
        let all_ones = block.frequencies[..count].iter().all(|&frequency| frequency == 1);
        out.push(count as u8 | if all_ones { ALL_ONES } else { 0 });
        let first = block.documents[0];
        varint::write(u64::from(first), out);
        let (documents, weights) = self.codecs();
        if count > 1 {
            with_byte(out, |out| documents.encode_documents(&[], first + 1, &block.documents[1..count], out));
        }
        if self.context.has_frequencies && !all_ones {
            with_byte(out, |out| weights.encode_values(&[], &block.frequencies[..count], out));
        }
        if self.context.has_impacts {
            with_byte(out, |out| weights.encode_values(&[], &block.impacts[..count], out));
        }
    }

    fn encode_long(&self, out: &mut Vec<u8>) {
        let blocks = self.postings.len().div_ceil(BLOCK);
        let layout = LongLayout {
            blocks,
            windows: windows_of(blocks, self.context.windows()),
            has_frequencies: self.context.has_frequencies,
            has_impacts: self.context.has_impacts,
        };
        let start = out.len();
        out.resize(start + layout.payload(), 0);
        let mut directory = Directory { layout, bytes: vec![0; layout.payload()], strongest: Strongest::default() };
        directory.put_u32(0, self.postings.len() as u32);
        directory.put_u32(4, layout.windows as u32);
        let (documents, weights) = self.codecs();
        let shared = self.shared();
        let mut base = 0;
        for (number, postings) in self.postings.chunks(BLOCK).enumerate() {
            let block = self.columns(postings);
            let count = postings.len();
            let offset = (out.len() - start - layout.payload()) / UNIT;
            directory.put_u32(layout.offset() + 4 * number, offset as u32);
            directory.bytes[layout.document_byte() + number] =
                documents.encode_documents(&shared[0], base, &block.documents[..count], out);
            if layout.has_frequencies {
                directory.bytes[layout.frequency_byte() + number] =
                    weights.encode_values(&shared[1], &block.frequencies[..count], out);
            }
            if layout.has_impacts {
                directory.bytes[layout.impact_byte() + number] =
                    weights.encode_values(&shared[2], &block.impacts[..count], out);
            }
            out.resize(start + (out.len() - start).next_multiple_of(UNIT), 0);
            let last = block.documents[count - 1];
            directory.put_u32(layout.last() + 4 * number, last);
            let saturations = self.saturations(postings);
            directory.bound_block(number, &block, &saturations, count);
            directory.strongest.add(&self.context, &block, &saturations, count);
            base = last + 1;
        }
        directory.finish();
        if shared.iter().any(|part| !part.is_empty()) {
            directory.put_u32(SHARED_START, ((out.len() - start) / UNIT) as u32);
            append_shared(&shared, out);
        }
        out[start..start + layout.payload()].copy_from_slice(&directory.bytes);
    }

    /// The shared parts of documents, frequencies and impacts, which codecs store once for all blocks.
    fn shared(&self) -> [Vec<u8>; 3] {
        let mut shared = [const { Vec::new() }; 3];
        let (documents, weights) = self.codecs();
        let mut next = 0;
        let mut gaps = self.postings.iter().map(|posting| {
            let gap = posting.document - next;
            next = posting.document + 1;
            gap
        });
        documents.encode_shared(&mut gaps, &mut shared[0]);
        if self.context.has_frequencies {
            let mut numbers = self.postings.iter().map(|posting| posting.frequency - 1);
            weights.encode_shared(&mut numbers, &mut shared[1]);
        }
        if self.context.has_impacts {
            let factor = self.factor();
            let mut numbers = self.postings.iter().map(|posting| self.impact(factor, posting) - 1);
            weights.encode_shared(&mut numbers, &mut shared[2]);
        }
        shared
    }

    fn impact(&self, factor: f64, posting: &Posting) -> u32 {
        impact_of((factor * f64::from(posting.strength)) * self.weighing.impact_scale)
    }

    /// The postings of a block as columns.
    pub(super) fn columns(&self, postings: &[Posting]) -> BlockColumns {
        let mut block = BlockColumns { documents: [0; BLOCK], frequencies: [0; BLOCK], impacts: [0; BLOCK] };
        for (i, posting) in postings.iter().enumerate() {
            block.documents[i] = posting.document;
            block.frequencies[i] = posting.frequency;
        }
        if self.context.has_impacts {
            let factor = self.factor();
            for (impact, posting) in block.impacts.iter_mut().zip(postings) {
                *impact = self.impact(factor, posting);
            }
        }
        block
    }

    /// The saturations of a block; computed here for postings with learned weights.
    pub(super) fn saturations(&self, postings: &[Posting]) -> [f32; BLOCK] {
        let mut saturations = [0.0; BLOCK];
        for (own, posting) in saturations.iter_mut().zip(postings) {
            *own = if self.weighing.learned {
                let code = self.weighing.length_codes.get(posting.document as usize).copied().unwrap_or(0);
                saturation(posting.frequency, self.weighing.norms.of(code))
            } else {
                posting.strength
            };
        }
        saturations
    }

    fn codecs(&self) -> (&'static dyn Codec, &'static dyn Codec) {
        (self.context.codecs.documents.codec(), self.context.codecs.weights.codec())
    }
}

/// Rounds a scaled weight half to even and limits it to 1..=255.
fn impact_of(scaled: f64) -> u32 {
    scaled.round_ties_even().clamp(1.0, 255.0) as u32
}

/// Appends a directory byte and the payload that `encode` writes, which returns the byte.
fn with_byte(out: &mut Vec<u8>, encode: impl FnOnce(&mut Vec<u8>) -> u8) {
    let at = out.len();
    out.push(0);
    out[at] = encode(out);
}

/// Appends the lengths of the shared parts in units, then the parts, each padded to a unit.
fn append_shared(shared: &[Vec<u8>; 3], out: &mut Vec<u8>) {
    let header = out.len();
    out.resize(header + SHARED_HEADER_BYTES, 0);
    for (column, part) in shared.iter().enumerate() {
        let units = part.len().div_ceil(UNIT);
        out[header + 4 * column..][..4].copy_from_slice(&(units as u32).to_le_bytes());
        out.extend(part);
        out.resize(out.len() + UNIT * units - part.len(), 0);
    }
}

/// The columns of a block.
pub(super) struct BlockColumns {
    pub(super) documents: [u32; BLOCK],
    pub(super) frequencies: [u32; BLOCK],
    pub(super) impacts: [u32; BLOCK],
}

/// Header and directory of a long list being encoded.
struct Directory {
    layout: LongLayout,
    bytes: Vec<u8>,
    strongest: Strongest,
}

impl Directory {
    fn put_u32(&mut self, at: usize, number: u32) {
        self.bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }

    /// Raises a 16-bit bound to at least `bound`.
    fn raise_u16(&mut self, at: usize, bound: u16) {
        let old = u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]);
        self.bytes[at..at + 2].copy_from_slice(&old.max(bound).to_le_bytes());
    }

    /// Raises the bounds of a block and of the windows that it reaches into.
    fn bound_block(&mut self, number: usize, block: &BlockColumns, saturations: &[f32; BLOCK], count: usize) {
        let layout = self.layout;
        let mut from = 0;
        while from < count {
            let window = block.documents[from] / WINDOW;
            let inside = block.documents[from..count].partition_point(|&document| document / WINDOW == window);
            let part = from..from + inside;
            if layout.has_frequencies {
                let largest = saturations[part.clone()].iter().copied().fold(0.0, f32::max);
                let code = saturation_code(largest);
                self.raise_u16(layout.frequency_bound() + 2 * number, code);
                if layout.windows > 0 {
                    self.raise_u16(layout.frequency_window_bound() + 2 * window as usize, code);
                }
            }
            if layout.has_impacts {
                let largest = block.impacts[part].iter().copied().max().unwrap_or(0) as u8;
                let own = &mut self.bytes[layout.impact_bound() + number];
                *own = largest.max(*own);
                if layout.windows > 0 {
                    let own = &mut self.bytes[layout.impact_window_bound() + window as usize];
                    *own = largest.max(*own);
                }
            }
            from += inside;
        }
    }

    /// Writes the largest and k-th weights, and the first block of each window.
    fn finish(&mut self) {
        self.strongest.write(&mut self.bytes);
        let layout = self.layout;
        let mut block = 0;
        for window in 0..layout.windows {
            let start = window as u32 * WINDOW;
            let last = |block: usize| crate::format::segment::u32_at(&self.bytes, layout.last() + 4 * block);
            while block < layout.blocks && last(block) < start {
                block += 1;
            }
            self.put_u32(layout.first_block() + 4 * window, block as u32);
        }
    }
}

/// The largest weights of the postings added so far.
pub(super) struct Strongest {
    /// The 1,000 largest saturations, possibly with smaller ones; saturations that are not here are at most `least`.
    saturations: Vec<f32>,
    least: f32,
    /// `impacts[i]`: postings with impact `i`.
    impacts: [u32; 256],
}

impl Default for Strongest {
    fn default() -> Self {
        Strongest { saturations: Vec::new(), least: 0.0, impacts: [0; 256] }
    }
}

impl Strongest {
    const KEPT: usize = STORED_K[2];

    /// Adds the first `count` postings of a block.
    pub(super) fn add(
        &mut self,
        context: &ListContext,
        block: &BlockColumns,
        saturations: &[f32; BLOCK],
        count: usize,
    ) {
        if context.has_frequencies {
            self.add_saturations(&saturations[..count]);
        }
        if context.has_impacts {
            block.impacts[..count].iter().for_each(|&impact| self.impacts[impact as usize] += 1);
        }
    }

    /// Writes the largest and the k-th weights into the header of a long list.
    pub(super) fn write(&mut self, header: &mut [u8]) {
        const { assert!(LONG_HEADER_BYTES == 32 && STORED_K.len() == 3) };
        let (largest, kth) = largest_and_kth(&mut self.saturations, f32::total_cmp);
        for (i, saturation) in [largest].into_iter().chain(kth).enumerate() {
            header[8 + 4 * i..12 + 4 * i].copy_from_slice(&saturation.to_le_bytes());
        }
        for (i, k) in [1].into_iter().chain(STORED_K).enumerate() {
            header[24 + i] = self.kth_impact(k);
        }
    }

    fn add_saturations(&mut self, saturations: &[f32]) {
        let least = self.least;
        self.saturations.extend(saturations.iter().filter(|&&saturation| saturation > least));
        if self.saturations.len() >= 4 * Self::KEPT {
            self.saturations.select_nth_unstable_by(Self::KEPT - 1, |a, b| b.total_cmp(a));
            self.saturations.truncate(Self::KEPT);
            self.least = self.saturations[Self::KEPT - 1];
        }
    }

    fn kth_impact(&self, k: usize) -> u8 {
        let mut found = 0;
        let is_kth = |&impact: &usize| {
            found += self.impacts[impact] as usize;
            found >= k
        };
        (1..256).rev().find(is_kth).unwrap_or(0) as u8
    }
}
