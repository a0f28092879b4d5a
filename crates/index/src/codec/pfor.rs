//! `pfor`: most gaps in few bits, one width for the whole list; what does not fit gets its high bits beside the blocks.
//!
//! Ding et al., *Using graphics processors for high performance IR query processing*, 2009, section 6.2: with one width
//! every slot of a list has its place, whoever reads it. Low bits of exceptions stay in their slots; their offsets and
//! their high bits are two arrays, which are coded in the same way again: one width, low bits in slots, and, since one
//! level of recursion is enough, plain words for what does not fit. Offsets are gaps between the exceptions of a block.
//! The directory byte is the number of exceptions in the block; the shared part says which is its first, so that a
//! block, or one value, is read alone.
//!
//! The shared part, all of it little-endian:
//! ```text
//! u8 width, u8 width of offsets, u8 width of high parts, u8 0
//! u32 exceptions, u32 offsets that do not fit, u32 high parts that do not fit
//! the offsets' low bits, the low bits of the high parts less 1: bit after bit, each filled up to four bytes
//! of the offsets, then of the high parts, that do not fit: u32 numbers of their exceptions, u32 high bits
//! u32 × blocks: the first exception of each block
//! ```
//! A list of one unfinished block has no shared part: it is coded as `pfor-block`.

use super::lanes::{Kernels, number_at, pack, pack_bits, packed_bytes, width_of};
use super::pfor_block::{PforBlock, addend};
use super::{BLOCK, Codec, Packed, gaps_of, less_one};

/// Bytes before the arrays of the shared part.
const HEADER_BYTES: usize = 16;

/// Most gaps in few bits, as many in the whole list.
pub struct Pfor {
    kernels: &'static Kernels,
    /// What lists of one unfinished block are coded with.
    alone: PforBlock,
}

/// Numbers in slots of one width, with words for what does not fit: an array of the shared part.
struct Slots<'a> {
    width: usize,
    low: &'a [u8],
    /// Which slots do not fit, in order.
    far: &'a [[u8; 4]],
    /// What those add, above their slots.
    high: &'a [[u8; 4]],
}

/// Exceptions are read this many at a time, or fewer; most blocks have no more.
const CHUNK: usize = 40;
/// Room for them and for what shares a byte with the first.
type Room = [u32; CHUNK + 8];

impl Slots<'_> {
    /// Reads up to [`CHUNK`] numbers from slot `first` on.
    #[inline]
    fn read<'r>(&self, kernels: &Kernels, first: usize, count: usize, room: &'r mut Room) -> &'r [u32] {
        // Eight slots end with a byte. All the room is filled: a full store is faster than one that is cut.
        let skip = first % 8;
        let bytes = self.low.get(first / 8 * self.width..).unwrap_or(&[]);
        (kernels.unpack_bits)(bytes, self.width, 0, room);
        let numbers = &mut room[skip..skip + count];
        if !self.far.is_empty() {
            self.add_far(first, numbers);
        }
        numbers
    }

    /// Adds what does not fit into the slots from `first` on.
    fn add_far(&self, first: usize, numbers: &mut [u32]) {
        let slot_of = |far: &[u8; 4]| u32::from_le_bytes(*far) as usize;
        let from = self.far.partition_point(|far| slot_of(far) < first);
        for (far, high) in self.far.iter().zip(self.high).skip(from) {
            let Some(number) = slot_of(far).checked_sub(first).and_then(|slot| numbers.get_mut(slot)) else {
                return;
            };
            *number = number.wrapping_add(u32::from_le_bytes(*high).wrapping_shl(self.width as u32));
        }
    }
}

/// The exceptions of a list.
struct Exceptions<'a> {
    offsets: Slots<'a>,
    highs: Slots<'a>,
    /// The first exception of each block.
    first: &'a [[u8; 4]],
}

impl<'a> Exceptions<'a> {
    /// Takes the shared part apart; `None` where it cannot be one.
    fn read(shared: &'a [u8]) -> Option<Exceptions<'a>> {
        let (header, arrays) = shared.split_first_chunk::<HEADER_BYTES>()?;
        let (widths, counts) = header.split_at(4);
        let [count, far_offsets, far_highs] = std::array::from_fn(|i| word(counts, i));
        let [offset_width, high_width] = [usize::from(widths[1]), usize::from(widths[2])];
        if offset_width > 32 || high_width > 32 {
            return None;
        }
        let (offsets, rest) = arrays.split_at_checked(slot_bytes(offset_width, count))?;
        let (highs, rest) = rest.split_at_checked(slot_bytes(high_width, count))?;
        let words = rest.as_chunks().0;
        let (far_offset, words) = words.split_at_checked(far_offsets)?;
        let (offset_high, words) = words.split_at_checked(far_offsets)?;
        let (far_high, words) = words.split_at_checked(far_highs)?;
        let (high_high, first) = words.split_at_checked(far_highs)?;
        Some(Exceptions {
            offsets: Slots { width: offset_width, low: offsets, far: far_offset, high: offset_high },
            highs: Slots { width: high_width, low: highs, far: far_high, high: high_high },
            first,
        })
    }

    /// Calls `visit` with each exception of a block, its position and its high part less 1, until it returns false.
    #[inline]
    fn visit(&self, kernels: &Kernels, packed: Packed, mut visit: impl FnMut(usize, u32) -> bool) -> Option<()> {
        let mut first = u32::from_le_bytes(*self.first.get(packed.block)?) as usize;
        let end = first + usize::from(packed.byte);
        let (mut offsets, mut highs, mut next) = ([0; CHUNK + 8], [0; CHUNK + 8], 0);
        while first < end {
            let count = CHUNK.min(end - first);
            let offsets = self.offsets.read(kernels, first, count, &mut offsets);
            let highs = self.highs.read(kernels, first, count, &mut highs);
            for (&offset, &high) in offsets.iter().zip(highs) {
                let position = next + offset as usize;
                if !visit(position, high) {
                    return None;
                }
                next = position + 1;
            }
            first += count;
        }
        Some(())
    }
}

fn word(bytes: &[u8], number: usize) -> usize {
    bytes.as_chunks().0.get(number).map_or(0, |word| u32::from_le_bytes(*word) as usize)
}

fn slot_bytes(width: usize, count: usize) -> usize {
    packed_bytes(width, count).next_multiple_of(4)
}

impl Pfor {
    /// Decodes with these kernels.
    pub const fn new(kernels: &'static Kernels) -> Pfor {
        Pfor { kernels, alone: PforBlock::new(kernels) }
    }

    /// Adds the high parts of a block's exceptions to their slots.
    fn patch(&self, packed: Packed, width: usize, numbers: &mut [u32]) {
        let patch = |position: usize, high| {
            let slot = numbers.get_mut(position);
            slot.map(|slot| *slot = slot.wrapping_add(addend(high, width))).is_some()
        };
        Exceptions::read(packed.shared).and_then(|exceptions| exceptions.visit(self.kernels, packed, patch));
    }
}

impl Codec for Pfor {
    fn encode_shared(&self, numbers: &mut dyn Iterator<Item = u32>, shared: &mut Vec<u8>) {
        let numbers: Vec<u32> = numbers.collect();
        encode_shared(&numbers, shared);
    }

    fn encode_documents(&self, shared: &[u8], base: u32, documents: &[u32], out: &mut Vec<u8>) -> u8 {
        match shared.first() {
            Some(&width) => encode(&gaps_of(base, documents)[..documents.len()], width, out),
            None => self.alone.encode_documents(shared, base, documents, out),
        }
    }

    fn decode_documents(&self, packed: Packed, base: u32, documents: &mut [u32]) {
        match packed.shared.first() {
            Some(&width) if packed.byte == 0 => {
                self.kernels.unpack_sums(usize::from(width), packed.bytes, base, documents);
            }
            Some(&width) => {
                self.kernels.unpack(usize::from(width), packed.bytes, 0, documents);
                self.patch(packed, usize::from(width), documents);
                (self.kernels.sum)(base, documents);
            }
            None => self.alone.decode_documents(packed, base, documents),
        }
    }

    fn encode_values(&self, shared: &[u8], values: &[u32], out: &mut Vec<u8>) -> u8 {
        match shared.first() {
            Some(&width) => encode(&less_one(values)[..values.len()], width, out),
            None => self.alone.encode_values(shared, values, out),
        }
    }

    fn decode_values(&self, packed: Packed, values: &mut [u32]) {
        let Some(&width) = packed.shared.first() else {
            return self.alone.decode_values(packed, values);
        };
        self.kernels.unpack(usize::from(width), packed.bytes, 1, values);
        if packed.byte > 0 {
            self.patch(packed, usize::from(width), values);
        }
    }

    fn value_at(&self, packed: Packed, count: usize, index: usize) -> u32 {
        let Some(width) = packed.shared.first().map(|&width| usize::from(width)) else {
            return self.alone.value_at(packed, count, index);
        };
        if width > 32 {
            return 1;
        }
        let low = number_at(packed.bytes, width, count, index);
        if packed.byte == 0 {
            return low.wrapping_add(1);
        }
        let mut high = 0;
        let find = |position, here| {
            if position == index {
                high = addend(here, width);
            }
            position < index
        };
        Exceptions::read(packed.shared).and_then(|exceptions| exceptions.visit(self.kernels, packed, find));
        low.wrapping_add(high).wrapping_add(1)
    }

    fn length(&self, packed: Packed, count: usize) -> usize {
        match packed.shared.first() {
            Some(&width) => packed_bytes(usize::from(width), count),
            None => self.alone.length(packed, count),
        }
    }
}

/// Appends the low bits of a block and returns how many numbers have more.
fn encode(numbers: &[u32], width: u8, out: &mut Vec<u8>) -> u8 {
    pack(numbers, usize::from(width), out);
    numbers.iter().filter(|&&number| u64::from(number) >> width != 0).count() as u8
}

/// `sizes[bits]`: the numbers of so many bits.
fn sizes_of(numbers: &[u32]) -> [u64; 33] {
    let mut sizes = [0; 33];
    numbers.iter().for_each(|&number| sizes[width_of(&[number])] += 1);
    sizes
}

/// Bits that slots of a width take, with words for what does not fit.
fn slot_bits(sizes: &[u64], width: usize) -> u64 {
    let all: u64 = sizes.iter().sum();
    all * width as u64 + 64 * sizes.get(width + 1..).map_or(0, |far| far.iter().sum())
}

/// The width of slots that take the least.
fn best_slots(sizes: &[u64]) -> (u64, usize) {
    (0..sizes.len()).rev().map(|width| (slot_bits(sizes, width), width)).min().unwrap_or((0, 0))
}

/// The width of a list: about the one that makes the least bytes.
fn width_for(numbers: &[u32]) -> usize {
    let sizes = sizes_of(numbers);
    let bits = |&width: &usize| {
        let exceptions: u64 = sizes[width + 1..].iter().sum();
        let slots = numbers.len() as u64 * width as u64;
        if exceptions == 0 {
            return slots;
        }
        // An offset takes about a bit more than the logarithm of their mean.
        let offset = u64::from((numbers.len() as u64 / exceptions).ilog2() + 1).min(7);
        // What fits is no exception.
        let mut above = sizes;
        above[..=width].fill(0);
        slots + exceptions * offset + best_slots(&above[width..]).0
    };
    (0..=32).rev().min_by_key(bits).unwrap_or(32)
}

fn encode_shared(numbers: &[u32], shared: &mut Vec<u8>) {
    let width = width_for(numbers);
    let (mut offsets, mut highs, mut first) = (Vec::new(), Vec::new(), Vec::new());
    for block in numbers.chunks(BLOCK) {
        first.push(offsets.len() as u32);
        let mut next = 0;
        for (position, &number) in (0..).zip(block) {
            let high = (u64::from(number) >> width) as u32;
            if high > 0 {
                offsets.push(position - next);
                highs.push(high - 1);
                next = position + 1;
            }
        }
    }
    let slots = [&offsets, &highs].map(|numbers| best_slots(&sizes_of(numbers)).1);
    let far = |i: usize| [&offsets, &highs][i].iter().filter(|&&number| u64::from(number) >> slots[i] != 0).count();
    shared.extend([width as u8, slots[0] as u8, slots[1] as u8, 0]);
    shared.extend([offsets.len(), far(0), far(1)].iter().flat_map(|&count| (count as u32).to_le_bytes()));
    append_slots(&offsets, slots[0], shared);
    append_slots(&highs, slots[1], shared);
    append_far(&offsets, slots[0], shared);
    append_far(&highs, slots[1], shared);
    shared.extend(first.iter().flat_map(|first| first.to_le_bytes()));
}

fn append_slots(numbers: &[u32], width: usize, shared: &mut Vec<u8>) {
    let mask = ((1u64 << width) - 1) as u32;
    pack_bits(numbers.iter().map(|number| number & mask), width, shared);
    shared.resize(shared.len().next_multiple_of(4), 0);
}

fn append_far(numbers: &[u32], width: usize, shared: &mut Vec<u8>) {
    let highs = || (0u32..).zip(numbers.iter().map(|&number| (u64::from(number) >> width) as u32));
    let far = || highs().filter(|&(_, high)| high != 0);
    shared.extend(far().flat_map(|(slot, _)| slot.to_le_bytes()));
    shared.extend(far().flat_map(|(_, high)| high.to_le_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_damaged_shared_part_harms_nothing(
            numbers in prop::collection::vec(prop_oneof![9 => 0u32..4, 2 => 0u32..5000, 1 => any::<u32>()], 1..400),
            at: prop::sample::Index, flip in 1u8..,
        ) {
            let codec = Pfor::new(Kernels::best());
            let (mut shared, mut bytes) = (Vec::new(), Vec::new());
            codec.encode_shared(&mut numbers.iter().copied(), &mut shared);
            let block = &numbers[..numbers.len().min(BLOCK)];
            let byte = encode(block, shared[0], &mut bytes);
            let at = at.index(shared.len().min(64));
            shared[at] ^= flip;
            let packed = Packed { byte, bytes: &bytes, shared: &shared, block: 0 };
            let mut decoded = vec![0; block.len()];
            codec.decode_documents(packed, 9, &mut decoded);
            codec.decode_values(packed, &mut decoded);
            codec.value_at(packed, block.len(), block.len() - 1);
            codec.length(packed, block.len());
        }
    }

    #[test]
    fn a_list_has_one_width_and_two_arrays_of_exceptions() {
        let mut numbers = vec![1; 3 * BLOCK];
        numbers[BLOCK + 5] = 0b1101;
        numbers[BLOCK + 7] = 0b1001;
        numbers[2 * BLOCK] = 0b1111;
        let codec = Pfor::new(Kernels::best());
        let mut shared = Vec::new();
        codec.encode_shared(&mut numbers.iter().copied(), &mut shared);
        // Width 1, offsets 5, 1, 0 in three bits each, high parts less 1 are 5, 3, 6.
        assert_eq!(shared[..4], [1, 3, 3, 0]);
        assert_eq!(shared[4..16], [3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(shared[16..24], [0b00_001_101, 0, 0, 0, 0b10_011_101, 1, 0, 0]);
        assert_eq!(shared[24..], [0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]);
        let values: Vec<u32> = numbers.iter().map(|number| number + 1).collect();
        let mut bytes = Vec::new();
        let byte = codec.encode_values(&shared, &values[BLOCK..2 * BLOCK], &mut bytes);
        assert_eq!((byte, bytes), (2, vec![0xFF; 16]));
    }

    #[test]
    fn what_does_not_fit_twice_is_a_word() {
        let mut numbers: Vec<u32> = (0..100 * BLOCK as u32).map(|i| if i % 10 == 0 { 9 } else { 1 }).collect();
        numbers[50 * BLOCK] = u32::MAX;
        let codec = Pfor::new(Kernels::best());
        let mut shared = Vec::new();
        codec.encode_shared(&mut numbers.iter().copied(), &mut shared);
        let exceptions = Exceptions::read(&shared).unwrap();
        assert_eq!(shared[0], 1);
        assert_eq!((exceptions.highs.width, exceptions.highs.far.len()), (2, 1));
        for (block, values) in numbers.chunks(BLOCK).enumerate() {
            let mut bytes = Vec::new();
            let documents: Vec<u32> = values
                .iter()
                .take(3)
                .scan(0u32, |next, gap| {
                    let document = next.wrapping_add(*gap);
                    *next = document.wrapping_add(1);
                    Some(document)
                })
                .collect();
            let byte = encode(values, shared[0], &mut bytes);
            let mut decoded = [0; BLOCK];
            codec.decode_documents(Packed { byte, bytes: &bytes, shared: &shared, block }, 0, &mut decoded);
            assert_eq!(decoded[..3], documents);
        }
    }
}
