//! `qmx`: gaps in 128-bit words, each word with its own width; widths are run-length coded and stored apart.
//!
//! Trotman, *Compression, SIMD, and Postings Lists*, ADCS 2014. A *group* is one or two words of 16 bytes that hold
//! numbers of one width in four interleaved lanes: number `i` is in lane `i % 4`, at bit `(i / 4) · width` of it. The
//! lane of a group of two words is 64 bits long, the first word's below the second's. A *selector* is a byte: the low
//! four bits are a row of [`PACKINGS`], the high four the number of consecutive groups with this packing, minus 1. Row
//! 15 is not in the paper: the last numbers as varints, since a word for one or two numbers would be a waste.
//!
//! A *sequence* is its words, the varints, zeros up to a multiple of 4 bytes, and the selectors, which are read
//! backwards from the end: a decoder finds the first word and the first selector without knowing how many there are.
//! The paper stores a gap of 1 in no bits; our gaps are one less, so that a gap of 0 takes no bits.
//!
//! A sequence may have any length: blocks of up to 128 for the document-ordered lists, whole segments for the
//! impact-ordered ones. [`for_each_slice`] decodes a few words at a time and passes on their documents before the next.

#[cfg(target_arch = "x86_64")]
use super::qmx_simd;
use super::{Codec, Packed, less_one};

/// How one group packs its numbers.
#[derive(Clone, Copy, Debug)]
pub struct Packing {
    /// Bits of a number.
    pub width: u32,
    /// Numbers in a group.
    pub numbers: usize,
    /// Words of 16 bytes in a group.
    pub words: usize,
}

/// `PACKINGS[selector % 16]`; the widths are those of the paper.
pub const PACKINGS: [Packing; 15] = [
    Packing { width: 0, numbers: 256, words: 0 },
    Packing { width: 1, numbers: 128, words: 1 },
    Packing { width: 2, numbers: 64, words: 1 },
    Packing { width: 3, numbers: 40, words: 1 },
    Packing { width: 4, numbers: 32, words: 1 },
    Packing { width: 5, numbers: 24, words: 1 },
    Packing { width: 6, numbers: 20, words: 1 },
    Packing { width: 7, numbers: 36, words: 2 },
    Packing { width: 8, numbers: 16, words: 1 },
    Packing { width: 9, numbers: 28, words: 2 },
    Packing { width: 10, numbers: 12, words: 1 },
    Packing { width: 12, numbers: 20, words: 2 },
    Packing { width: 16, numbers: 8, words: 1 },
    Packing { width: 21, numbers: 12, words: 2 },
    Packing { width: 32, numbers: 4, words: 1 },
];

/// The row of selectors for varints.
const TAIL: u8 = 15;
/// The most groups or varints that one selector can name.
const LONGEST_RUN: usize = 16;
/// The encoder chooses the best packings of this many numbers at a time, with the numbers of the largest group as
/// lookahead.
const CHOSEN_AT_ONCE: usize = 4096;

/// Which instructions decode; the numbers are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Instructions {
    /// For every CPU.
    Scalar,
    /// Eight numbers at a time.
    Avx2,
    /// Sixteen numbers at a time.
    Avx512,
}

impl Instructions {
    /// The best that this CPU supports.
    #[inline]
    pub fn detect() -> Instructions {
        #[cfg(target_arch = "x86_64")]
        {
            // BMI2 shifts by a register without touching flags; every CPU with AVX2 has it.
            let has_shifts = is_x86_feature_detected!("bmi2");
            if has_shifts && is_x86_feature_detected!("avx512f") {
                return Instructions::Avx512;
            }
            if has_shifts && is_x86_feature_detected!("avx2") {
                return Instructions::Avx2;
            }
        }
        Instructions::Scalar
    }
}

/// Gaps in words of 128 bits.
pub struct Qmx;

impl Codec for Qmx {
    fn encode_documents(&self, _shared: &[u8], base: u32, documents: &[u32], out: &mut Vec<u8>) -> u8 {
        (encode(base, documents, out) / 4) as u8
    }

    fn decode_documents(&self, packed: Packed, base: u32, documents: &mut [u32]) {
        decode(sequence_of(packed), base, documents);
    }

    fn encode_values(&self, _shared: &[u8], values: &[u32], out: &mut Vec<u8>) -> u8 {
        (pack(&less_one(values)[..values.len()], out) / 4) as u8
    }

    fn decode_values(&self, packed: Packed, values: &mut [u32]) {
        decode(sequence_of(packed), 0, values);
        // The decoded numbers are the prefix sums of values, less one.
        let mut before = u32::MAX;
        for value in values {
            let sum = *value;
            *value = sum.wrapping_sub(before);
            before = sum;
        }
    }

    fn length(&self, packed: Packed, _count: usize) -> usize {
        4 * usize::from(packed.byte)
    }
}

/// The bytes of a sequence, four times the directory byte; empty if there are fewer.
fn sequence_of(packed: Packed<'_>) -> &[u8] {
    packed.bytes.get(..4 * usize::from(packed.byte)).unwrap_or(&[])
}

/// Appends increasing documents, none below `base`, and returns the bytes they take, a multiple of 4.
pub fn encode(base: u32, documents: &[u32], out: &mut Vec<u8>) -> usize {
    let mut next = base;
    let gaps = documents.iter().map(|&document| {
        let gap = document - next;
        next = document.wrapping_add(1);
        gap
    });
    pack(&gaps.collect::<Vec<u32>>(), out)
}

/// Fills `documents` from a whole sequence; if the bytes end early, the rest is 0.
pub fn decode(sequence: &[u8], base: u32, documents: &mut [u32]) {
    let count = documents.len();
    let mut filled = 0;
    let sequence = Sequence { bytes: sequence, base, count };
    read(Instructions::detect(), sequence, Filling { documents, filled: &mut filled });
    documents[filled..].fill(0);
}

/// A whole sequence of `count` documents, none below `base`.
#[derive(Clone, Copy)]
pub struct Sequence<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// No document is smaller.
    pub base: u32,
    /// How many documents it has.
    pub count: usize,
}

/// Documents that [`for_each_slice`] passes on together: 2 KiB, a small part of the L1 cache.
pub type Buffer = [u32; 512];

/// Passes the documents of a sequence to `process`, in order and one buffer at a time; fewer if the bytes end early.
///
/// Damaged bytes give wrong documents; nothing outside them is read, and nothing panics.
pub fn for_each_slice(
    instructions: Instructions,
    sequence: Sequence<'_>,
    buffer: &mut Buffer,
    process: &mut dyn FnMut(&[u32]),
) {
    read(instructions, sequence, Buffering { buffer, filled: 0, process });
}

/// Receives decoded documents.
pub(super) trait Sink {
    /// Receives the next documents.
    fn some(&mut self, documents: &[u32]);
    /// Called after the last documents.
    fn end(&mut self);
}

/// Buffers documents and processes them while they are in the L1 cache.
struct Buffering<'a> {
    buffer: &'a mut Buffer,
    filled: usize,
    process: &'a mut dyn FnMut(&[u32]),
}

impl Sink for Buffering<'_> {
    #[inline(always)]
    fn some(&mut self, documents: &[u32]) {
        if self.filled + documents.len() > self.buffer.len() {
            self.end();
        }
        let end = self.filled + documents.len();
        self.buffer[self.filled..end].copy_from_slice(documents);
        self.filled = end;
    }

    #[inline(never)]
    fn end(&mut self) {
        (self.process)(&self.buffer[..self.filled]);
        self.filled = 0;
    }
}

/// Fills a slice that is long enough for all documents.
struct Filling<'a> {
    documents: &'a mut [u32],
    filled: &'a mut usize,
}

impl Sink for Filling<'_> {
    #[inline(always)]
    fn some(&mut self, documents: &[u32]) {
        let end = *self.filled + documents.len();
        self.documents[*self.filled..end].copy_from_slice(documents);
        *self.filled = end;
    }

    fn end(&mut self) {}
}

fn read(instructions: Instructions, Sequence { bytes, base, count }: Sequence<'_>, mut visit: impl Sink) {
    let mut reader = Reader { words: bytes, selectors: bytes, left: count, last: base.wrapping_sub(1) };
    match instructions.min(Instructions::detect()) {
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx512 => qmx_simd::for_each_avx512(reader, visit),
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx2 => qmx_simd::for_each_avx2(reader, visit),
        _ => {
            while let Some(run) = reader.next_run() {
                dispatch_scalar(run, &mut reader, &mut visit);
            }
            visit.end();
        }
    }
}

/// The state of a decoder.
pub(super) struct Reader<'a> {
    /// The bytes after the words that were read. The last of them are selectors, which a damaged sequence may read as
    /// words.
    words: &'a [u8],
    /// The bytes before the selectors that were read.
    selectors: &'a [u8],
    /// Numbers still to come.
    pub(super) left: usize,
    /// The document before the next one.
    pub(super) last: u32,
}

/// Some groups of one packing.
pub(super) struct Run<'a> {
    pub(super) packing: u8,
    /// The groups, one after the other, as far as the sequence has them.
    pub(super) words: &'a [[u8; 16]],
    /// The number of groups, or of varints.
    pub(super) groups: usize,
}

impl<'a> Reader<'a> {
    /// Takes the next selector with its groups; `None` at the end. A run of varints has no words.
    #[inline]
    pub(super) fn next_run(&mut self) -> Option<Run<'a>> {
        if self.left == 0 {
            return None;
        }
        let (&selector, before) = self.selectors.split_last()?;
        self.selectors = before;
        let (packing, groups) = (selector & 15, usize::from(selector >> 4) + 1);
        if packing == TAIL {
            return Some(Run { packing, words: &[], groups });
        }
        let (all, _) = self.words.as_chunks::<16>();
        let words = &all[..all.len().min(groups * PACKINGS[usize::from(packing)].words)];
        self.words = &self.words[16 * words.len()..];
        Some(Run { packing, words, groups })
    }

    /// Reads the varints that end a sequence.
    pub(super) fn tail(&mut self, count: usize, visit: &mut impl Sink) {
        for _ in 0..count.min(self.left) {
            let (mut gap, mut shift) = (0u32, 0);
            while let Some((&byte, rest)) = self.words.split_first() {
                self.words = rest;
                gap |= u32::from(byte & 0x7F).wrapping_shl(shift);
                shift += 7;
                if byte < 0x80 {
                    break;
                }
            }
            self.last = self.last.wrapping_add(gap).wrapping_add(1);
            visit.some(&[self.last]);
            self.left -= 1;
        }
    }

    /// Decodes groups of width 0: all gaps are 0, so the documents are consecutive.
    #[inline]
    pub(super) fn neighbours(&mut self, groups: usize, visit: &mut impl Sink) {
        let count = (groups * PACKINGS[0].numbers).min(self.left);
        for done in (0..count).step_by(16) {
            let documents: [u32; 16] = std::array::from_fn(|i| self.last.wrapping_add(i as u32 + 1));
            visit.some(&documents[..(count - done).min(16)]);
            self.last = documents[15];
        }
        self.left -= count;
    }
}

/// Calls `$function::<PACKING>` with the packing of a run known, so that every shift is a constant.
macro_rules! dispatch {
    ($packing:expr, $function:ident $arguments:tt) => {
        dispatch!(@ $packing, $function $arguments, 1 2 3 4 5 6 7 8 9 10 11 12 13)
    };
    (@ $packing:expr, $function:ident $arguments:tt, $($row:literal)*) => {
        match $packing {
            $($row => $function::<$row, _> $arguments,)*
            _ => $function::<14, _> $arguments,
        }
    };
}
pub(super) use dispatch;

fn dispatch_scalar<F: Sink>(run: Run<'_>, reader: &mut Reader<'_>, visit: &mut F) {
    match run.packing {
        0 => reader.neighbours(run.groups, visit),
        TAIL => reader.tail(run.groups, visit),
        packing => dispatch!(packing, groups_scalar(run.words, reader, visit)),
    }
}

/// The groups of one packing, number after number.
fn groups_scalar<const PACKING: usize, F: Sink>(words: &[[u8; 16]], reader: &mut Reader<'_>, visit: &mut F) {
    let Packing { width, numbers, words: words_in_group } = const { PACKINGS[PACKING] };
    let mask = (1u64 << width) - 1;
    for group in words.chunks_exact(words_in_group) {
        let first = u128::from_le_bytes(group[0]);
        let second = if words_in_group == 2 { u128::from_le_bytes(group[1]) } else { 0 };
        let word = |word: u128, lane: usize| u64::from((word >> (32 * lane)) as u32);
        let lanes: [u64; 4] = std::array::from_fn(|lane| word(first, lane) | word(second, lane) << 32);
        let count = numbers.min(reader.left);
        let mut last = reader.last;
        for i in 0..count {
            let gap = (lanes[i % 4] >> (i as u32 / 4 * width)) & mask;
            last = last.wrapping_add(gap as u32).wrapping_add(1);
            visit.some(&[last]);
        }
        reader.last = last;
        reader.left -= count;
        if reader.left == 0 {
            return;
        }
    }
}

/// Appends numbers and returns the bytes they take.
fn pack(numbers: &[u32], out: &mut Vec<u8>) -> usize {
    let start = out.len();
    let mut selectors: Vec<u8> = Vec::new();
    let (mut chooser, mut tail) = (Chooser::default(), Vec::new());
    let mut done = 0;
    while done < numbers.len() {
        let ahead = (done + CHOSEN_AT_ONCE + PACKINGS[0].numbers).min(numbers.len());
        chooser.choose(&numbers[done..ahead], ahead == numbers.len());
        let chosen_from = done;
        while done < numbers.len() && done - chosen_from < CHOSEN_AT_ONCE {
            let packing = chooser.next(selectors.last().map(|selector| selector & 15), done - chosen_from);
            if packing == TAIL {
                selectors.push(TAIL | ((numbers.len() - done - 1) as u8) << 4);
                numbers[done..].iter().for_each(|&number| write_varint(number, &mut tail));
                done = numbers.len();
                break;
            }
            let count = PACKINGS[usize::from(packing)].numbers.min(numbers.len() - done);
            pack_group(PACKINGS[usize::from(packing)], &numbers[done..done + count], out);
            push_selector(packing, &mut selectors);
            done += count;
        }
    }
    out.extend_from_slice(&tail);
    let bytes = out.len() - start + selectors.len();
    out.resize(out.len() + (bytes.next_multiple_of(4) - bytes), 0);
    out.extend(selectors.iter().rev());
    out.len() - start
}

/// Adds a group to the last run, or starts another.
fn push_selector(packing: u8, selectors: &mut Vec<u8>) {
    match selectors.last_mut() {
        Some(last) if *last & 15 == packing && usize::from(*last >> 4) + 1 < LONGEST_RUN => *last += 16,
        _ => selectors.push(packing),
    }
}

fn pack_group(packing: Packing, numbers: &[u32], out: &mut Vec<u8>) {
    let mut lanes = [0u64; 4];
    for (i, &number) in numbers.iter().enumerate() {
        // A group of width 0 has more numbers than bits, all 0.
        lanes[i % 4] |= u64::from(number) << (i as u32 / 4 * packing.width);
    }
    for word in 0..packing.words {
        out.extend(lanes.iter().flat_map(|lane| ((lane >> (32 * word)) as u32).to_le_bytes()));
    }
}

fn write_varint(mut number: u32, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Finds the packings that take the fewest bytes, from the last number to the first.
#[derive(Default)]
struct Chooser {
    choices: Vec<u8>,
    /// `within[i][packing]`: bytes from number `i` on if it starts a group of this packing whose selector is paid for.
    within: Vec<[u32; PACKINGS.len()]>,
    /// `best[i]`: bytes from number `i` on if it starts a run.
    best: Vec<u32>,
}

impl Chooser {
    /// The packing of the group that starts at a number, after a group of packing `before`.
    fn next(&self, before: Option<u8>, at: usize) -> u8 {
        let continues = |packing: &u8| self.within[at].get(usize::from(*packing)).is_some_and(|&b| b <= self.best[at]);
        before.filter(continues).unwrap_or(self.choices[at])
    }

    /// Chooses the packings of some numbers; `is_end` tells whether the sequence ends with them.
    fn choose(&mut self, numbers: &[u32], is_end: bool) {
        let count = numbers.len();
        self.choices.clear();
        self.choices.resize(count, 0);
        self.best.clear();
        self.best.resize(count + 1, 0);
        self.within.clear();
        self.within.resize(count + 1, [0; PACKINGS.len()]);
        // reach[packing]: how many numbers from here on fit its width.
        let (mut reach, mut tail) = ([0usize; PACKINGS.len()], 1u32);
        for i in (0..count).rev() {
            let needed = 32 - numbers[i].leading_zeros();
            let mut choice = (u32::MAX, 0);
            for (number, packing) in PACKINGS.iter().enumerate() {
                reach[number] = if packing.width >= needed { reach[number] + 1 } else { 0 };
                let wanted = packing.numbers.min(count - i);
                self.within[i][number] = u32::MAX;
                if reach[number] >= wanted {
                    let after = i + wanted;
                    let rest = self.within[after][number].min(self.best[after]);
                    let bytes = 16 * packing.words as u32 + rest;
                    self.within[i][number] = bytes;
                    choice = choice.min((bytes + 1, number as u8));
                }
            }
            tail += needed.div_ceil(7).max(1);
            if is_end && count - i <= LONGEST_RUN {
                choice = choice.min((tail, TAIL));
            }
            (self.best[i], self.choices[i]) = choice;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Instructions; 3] = [Instructions::Scalar, Instructions::Avx2, Instructions::Avx512];

    fn collect(instructions: Instructions, sequence: &[u8], base: u32, count: usize) -> Vec<u32> {
        let mut documents = Vec::new();
        let mut buffer = [0; 512];
        let sequence = Sequence { bytes: sequence, base, count };
        for_each_slice(instructions, sequence, &mut buffer, &mut |some| documents.extend_from_slice(some));
        documents
    }

    /// Gaps in stretches of one size each, so that there are runs of every packing.
    fn gaps() -> impl Strategy<Value = Vec<u32>> {
        let stretch = (0u32..=32, 1usize..700, any::<u64>()).prop_map(|(bits, length, seed)| {
            let mut state = seed | 1;
            let draw = move |_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                ((state >> 32) & ((1 << bits) - 1)) as u32
            };
            (0..length).map(draw).collect::<Vec<u32>>()
        });
        prop::collection::vec(stretch, 1..6).prop_map(|stretches| stretches.concat())
    }

    proptest! {
        #[test]
        fn a_segment_of_any_length_returns_by_any_instructions(gaps in gaps()) {
            let mut bytes = vec![7];
            let length = pack(&gaps, &mut bytes);
            prop_assert_eq!(length, bytes.len() - 1);
            prop_assert_eq!(length % 4, 0);
            let mut next = 5u32;
            let documents: Vec<u32> = gaps.iter().map(|gap| {
                let document = next.wrapping_add(*gap);
                next = document.wrapping_add(1);
                document
            }).collect();
            for instructions in ALL {
                prop_assert_eq!(&collect(instructions, &bytes[1..], 5, gaps.len()), &documents, "{:?}", instructions);
            }
        }

        #[test]
        fn any_bytes_give_the_same_by_any_instructions(bytes: Vec<u8>, base: u32, count in 0usize..5000) {
            let scalar = collect(Instructions::Scalar, &bytes, base, count);
            prop_assert!(scalar.len() <= count);
            for instructions in ALL {
                prop_assert_eq!(&collect(instructions, &bytes, base, count), &scalar, "{:?}", instructions);
            }
        }
    }

    #[test]
    fn every_packing_fills_its_words() {
        for (number, packing) in PACKINGS.iter().enumerate().skip(1) {
            let largest = ((1u64 << packing.width) - 1) as u32;
            let numbers = vec![largest; packing.numbers * LONGEST_RUN];
            let mut bytes = Vec::new();
            assert_eq!(pack(&numbers, &mut bytes), 16 * packing.words * LONGEST_RUN + 4);
            assert_eq!(bytes.last(), Some(&(number as u8 | 0xF0)), "width {}", packing.width);
            assert_eq!(packing.numbers, 4 * (32 * packing.words / packing.width as usize));
        }
    }

    #[test]
    fn golden_bytes() {
        let mut bytes = Vec::new();
        assert_eq!(encode(0, &[3, 4, 200], &mut bytes), 8);
        assert_eq!(bytes, [3, 0, 0xC3, 1, 0, 0, 0, 0x2F], "three varints");
        bytes.clear();
        let documents: Vec<u32> = (0..256).chain((0..16).map(|i| 259 + 4 * i)).collect();
        encode(0, &documents, &mut bytes);
        let mut expected = [0x00; 16];
        expected[..4].copy_from_slice(&0xFFu32.to_le_bytes());
        for lane in 0..4 {
            expected[4 * lane..4 * lane + 4].copy_from_slice(&0xFFu32.to_le_bytes());
        }
        assert_eq!(bytes[..16], expected, "sixteen gaps of 3 in two bits each, four lanes of eight bits");
        assert_eq!(bytes[16..], [0, 0, 0x02, 0x00], "read from the end: zeros, then two bits");
    }
}
