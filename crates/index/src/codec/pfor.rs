//! `pfor`: most gaps in few bits, one width for the whole list; the high bits of exceptions are stored in a shared
//! part.
//!
//! Ding et al., *Using graphics processors for high performance IR query processing*, 2009, section 6.2: with one
//! width, the position of every number in a block is known. The low bits of exceptions stay there; their positions and
//! high parts are coded in the same way: one width each for the whole list, and a word for every number that does not
//! fit. (The paper recurses; one level is enough.) A position is coded as the distance from the previous exception of
//! the block. Distances and high parts are at least 1; 0 means that a word has the number. The distance and the high
//! part of an exception form an *entry*, and the entries of a block are contiguous, so that they are read together. The
//! directory byte is the number of exceptions in the block; the shared part says where their entries are, so that a
//! block, or a single value, can be read by itself.
//!
//! The shared part, little-endian:
//! ```text
//! u8 width, u8 width of distances, u8 width of high parts, u8 0
//! for each group of 32 blocks: u32, the offset of the entries of its first block; u16 × blocks of the group: the
//!     distance of each block's entries from there, in bytes; padded to four bytes
//! for each block: entries, with the distance in the lowest bits, one after the other, padded to a byte;
//!     u32 × numbers that do not fit, in the order of exceptions, a distance before its high part
//! ```
//! It is padded with zeros to four bytes. A list of one partial block has no shared part: it is coded as `pfor-block`.

use super::lanes::{Kernels, number_at, pack, pack_bits, packed_bytes, width_of};
use super::pfor_block::PforBlock;
use super::{
    BLOCK, Codec, PFOR_GROUP as GROUP, PFOR_GROUP_BYTES as GROUP_BYTES, PFOR_WIDEST_DISTANCE as WIDEST_DISTANCE,
    PFOR_WIDEST_HIGH as WIDEST_HIGH, PFOR_WIDTH_BYTES as WIDTH_BYTES, Packed, gaps_of, less_one,
};

/// The cost of reading an exception, in bits, when the width is chosen.
const EXCEPTION_BITS: u64 = 4;
/// The cost, in bits, of a word for a number that does not fit in its entry.
const WORD_BITS: u64 = 48;
/// Exceptions are read up to this many at a time; most blocks have no more.
const READ_AT_ONCE: usize = 16;

/// Most gaps in few bits, with one width for the list.
pub struct Pfor {
    pub(super) kernels: &'static Kernels,
}

/// The widths of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Widths {
    number: usize,
    distance: usize,
    high: usize,
}

/// The exceptions of one block.
struct Exceptions<'a> {
    widths: Widths,
    count: usize,
    /// From their first entry on.
    entries: &'a [u8],
    /// The numbers that do not fit into the entries.
    words: &'a [[u8; 4]],
}

impl<'a> Exceptions<'a> {
    /// Finds them in the shared part; `None` where it is damaged.
    fn of(packed: Packed<'a>) -> Option<Exceptions<'a>> {
        let (&[number, distance, high, _], groups) = packed.shared.split_first_chunk::<WIDTH_BYTES>()?;
        let widths = Widths { number: number.into(), distance: distance.into(), high: high.into() };
        if !(1..=WIDEST_DISTANCE).contains(&widths.distance) || widths.high > WIDEST_HIGH {
            return None;
        }
        let (start, further) = groups.get(packed.block / GROUP * GROUP_BYTES..)?.split_first_chunk()?;
        let further = further.as_chunks().0.get(packed.block % GROUP)?;
        let start = u32::from_le_bytes(*start) as usize + usize::from(u16::from_le_bytes(*further));
        let (entries, count) = (packed.shared.get(start..)?, usize::from(packed.byte));
        let words = entries.get(packed_bytes(widths.entry(), count)..)?.as_chunks().0;
        Some(Exceptions { widths, count, entries, words })
    }

    /// Calls `visit` with the position of each exception and the number to add there, until it returns false.
    #[inline]
    fn visit(&self, kernels: &Kernels, mut visit: impl FnMut(usize, u32) -> bool) {
        let Widths { number, distance, .. } = self.widths;
        let (mut words, mut next, mut entries) = (self.words.iter(), 0u32, [0; READ_AT_ONCE]);
        let entry_width = self.widths.entry();
        let mut or_word = |part| match part {
            0 => words.next().map_or(0, |word| u32::from_le_bytes(*word)),
            _ => part,
        };
        for start in (0..self.count).step_by(READ_AT_ONCE) {
            // Fills the whole buffer: a full store is faster than a partial one.
            (kernels.unpack_bits)(&self.entries[start / 8 * entry_width..], entry_width, 0, &mut entries);
            for entry in &entries[..READ_AT_ONCE.min(self.count - start)] {
                next = next.wrapping_add(or_word(entry & ((1 << distance) - 1)));
                let addition = or_word(entry >> distance).wrapping_shl(number as u32);
                if !visit(next.wrapping_sub(1) as usize, addition) {
                    return;
                }
            }
        }
    }
}

impl Pfor {
    /// The codec of lists of one partial block.
    fn alone(&self) -> PforBlock {
        PforBlock { kernels: self.kernels }
    }

    /// Adds the high parts of the exceptions of a block.
    fn patch(&self, packed: Packed, numbers: &mut [u32]) {
        let patch = |position: usize, addition| {
            let number = numbers.get_mut(position);
            number.map(|number| *number = number.wrapping_add(addition)).is_some()
        };
        if let Some(exceptions) = Exceptions::of(packed) {
            exceptions.visit(self.kernels, patch);
        }
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
            None => self.alone().encode_documents(shared, base, documents, out),
        }
    }

    fn decode_documents(&self, packed: Packed, base: u32, documents: &mut [u32]) {
        match packed.shared.first() {
            Some(&width) if packed.byte == 0 => {
                self.kernels.unpack_sums(usize::from(width), packed.bytes, base, documents);
            }
            Some(&width) => {
                self.kernels.unpack(usize::from(width), packed.bytes, 0, documents);
                self.patch(packed, documents);
                (self.kernels.sum)(base, documents);
            }
            None => self.alone().decode_documents(packed, base, documents),
        }
    }

    fn encode_values(&self, shared: &[u8], values: &[u32], out: &mut Vec<u8>) -> u8 {
        match shared.first() {
            Some(&width) => encode(&less_one(values)[..values.len()], width, out),
            None => self.alone().encode_values(shared, values, out),
        }
    }

    fn decode_values(&self, packed: Packed, values: &mut [u32]) {
        let Some(&width) = packed.shared.first() else {
            return self.alone().decode_values(packed, values);
        };
        self.kernels.unpack(usize::from(width), packed.bytes, 1, values);
        if packed.byte > 0 {
            self.patch(packed, values);
        }
    }

    fn value_at(&self, packed: Packed, count: usize, index: usize) -> u32 {
        let Some(width) = packed.shared.first().map(|&width| usize::from(width)) else {
            return self.alone().value_at(packed, count, index);
        };
        if width > 32 {
            return 1;
        }
        let low = number_at(packed.bytes, width, count, index);
        if packed.byte == 0 {
            return low.wrapping_add(1);
        }
        let mut high = 0;
        let find = |position, addition| {
            if position == index {
                high = addition;
            }
            position < index
        };
        if let Some(exceptions) = Exceptions::of(packed) {
            exceptions.visit(self.kernels, find);
        }
        low.wrapping_add(high).wrapping_add(1)
    }

    fn length(&self, packed: Packed, count: usize) -> usize {
        match packed.shared.first() {
            Some(&width) => packed_bytes(usize::from(width), count),
            None => self.alone().length(packed, count),
        }
    }
}

/// Appends the low bits of a block and returns the number of exceptions.
fn encode(numbers: &[u32], width: u8, out: &mut Vec<u8>) -> u8 {
    pack(numbers, usize::from(width), out);
    numbers.iter().filter(|&&number| u64::from(number) >> width != 0).count() as u8
}

/// The exceptions of a block: the distance from the one before, and the high part.
fn exceptions_of(block: &[u32], width: usize) -> impl Iterator<Item = (u32, u32)> {
    let mut next = 0;
    (1..).zip(block).filter_map(move |(end, &number)| {
        let high = (u64::from(number) >> width) as u32;
        let distance = end - next;
        next = if high > 0 { end } else { next };
        (high > 0).then_some((distance, high))
    })
}

impl Widths {
    /// The widths with the lowest cost: their bits, plus penalties for the time to read exceptions and words.
    fn of(numbers: &[u32]) -> Widths {
        let (mut sizes, distances) = ([0; 33], distance_sizes(numbers));
        numbers.iter().for_each(|&number| sizes[width_of(&[number])] += 1);
        let widths = |number: usize| {
            let exceptions: u64 = sizes[number + 1..].iter().sum();
            // A number that fits is no exception.
            let mut highs = sizes;
            highs[..=number].fill(0);
            let (distance_bits, distance) = best_entries(&distances[number], WIDEST_DISTANCE);
            let (high_bits, high) = best_entries(&highs[number..], WIDEST_HIGH);
            let bits = numbers.len() as u64 * number as u64 + exceptions * EXCEPTION_BITS + distance_bits + high_bits;
            (bits, Widths { number, distance, high })
        };
        let least = (0..=32).rev().map(widths).min_by_key(|&(bits, _)| bits);
        least.map_or(Widths { number: 32, distance: 0, high: 0 }, |(_, widths)| widths)
    }

    /// The width of an entry.
    fn entry(self) -> usize {
        self.distance + self.high
    }
}

/// `[width][bits]`: how many distances between the exceptions of a width have that many bits.
fn distance_sizes(numbers: &[u32]) -> [[u64; WIDEST_DISTANCE + 1]; 33] {
    let mut sizes = [[0; WIDEST_DISTANCE + 1]; 33];
    for block in numbers.chunks(BLOCK) {
        let mut next = [0; 32];
        for (end, number) in (1u32..).zip(block) {
            let widths = next.iter_mut().zip(&mut sizes).take(width_of(&[*number]));
            for (next, sizes) in widths {
                sizes[width_of(&[end - *next])] += 1;
                *next = end;
            }
        }
    }
    sizes
}

/// The cost and the width of the cheapest entries, with words for numbers that do not fit; `sizes[b]` numbers have `b`
/// bits.
fn best_entries(sizes: &[u64], widest: usize) -> (u64, usize) {
    let all: u64 = sizes.iter().sum();
    let cost = |width: usize| {
        let words: u64 = sizes.iter().skip(width + 1).sum();
        (all * width as u64 + words * WORD_BITS, width)
    };
    (0..=widest).map(cost).min().unwrap_or((0, 0))
}

fn encode_shared(numbers: &[u32], shared: &mut Vec<u8>) {
    let (widths, blocks) = (Widths::of(numbers), numbers.len().div_ceil(BLOCK));
    let groups_end = WIDTH_BYTES + (4 * blocks.div_ceil(GROUP) + 2 * blocks).next_multiple_of(4);
    let mut exceptions = Vec::new();
    shared.extend([widths.number as u8, widths.distance as u8, widths.high as u8, 0]);
    for group in numbers.chunks(GROUP * BLOCK) {
        let start = exceptions.len();
        shared.extend(((groups_end + start) as u32).to_le_bytes());
        for block in group.chunks(BLOCK) {
            shared.extend(((exceptions.len() - start) as u16).to_le_bytes());
            append_exceptions(block, widths, &mut exceptions);
        }
    }
    shared.resize(groups_end, 0);
    shared.extend(exceptions);
    shared.resize(shared.len().next_multiple_of(4), 0);
}

/// Appends the entries of a block's exceptions, and the words of numbers that do not fit.
fn append_exceptions(block: &[u32], widths: Widths, out: &mut Vec<u8>) {
    let fits = |number: u32, width: usize| width_of(&[number]) <= width;
    let or_zero = |number, width| if fits(number, width) { number } else { 0 };
    let exceptions = || exceptions_of(block, widths.number);
    let entry = |(distance, high)| or_zero(distance, widths.distance) | or_zero(high, widths.high) << widths.distance;
    pack_bits(exceptions().map(entry), widths.entry(), out);
    let parts = exceptions().flat_map(|(distance, high)| [(distance, widths.distance), (high, widths.high)]);
    out.extend(parts.filter(|&(part, width)| !fits(part, width)).flat_map(|(part, _)| part.to_le_bytes()));
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
            let codec = Pfor { kernels: Kernels::best() };
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
    fn a_list_has_one_width_and_entries_of_exceptions() {
        let mut numbers = vec![1; 3 * BLOCK];
        numbers[BLOCK + 5] = 0b1101;
        numbers[BLOCK + 7] = 0b1001;
        numbers[2 * BLOCK] = 0b1111;
        let codec = Pfor { kernels: Kernels::best() };
        let mut shared = Vec::new();
        codec.encode_shared(&mut numbers.iter().copied(), &mut shared);
        // Width 1, distances 6, 2, 1 in three bits each, high parts 6, 4, 7 too.
        assert_eq!(shared[..4], [1, 3, 3, 0]);
        assert_eq!(shared[4..16], [16, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(shared[16..], [0b10_110_110, 0b1000, 0b111_001, 0]);
        let values: Vec<u32> = numbers.iter().map(|number| number + 1).collect();
        let mut bytes = Vec::new();
        let byte = codec.encode_values(&shared, &values[BLOCK..2 * BLOCK], &mut bytes);
        assert_eq!((byte, bytes), (2, vec![0xFF; 16]));
    }

    /// All blocks of a list, decoded again as values and one by one.
    fn assert_read_again(numbers: &[u32], shared: &[u8]) {
        let codec = Pfor { kernels: Kernels::best() };
        for (block, numbers) in numbers.chunks(BLOCK).enumerate() {
            let (mut bytes, mut decoded) = (Vec::new(), vec![0; numbers.len()]);
            let byte = encode(numbers, shared[0], &mut bytes);
            let packed = Packed { byte, bytes: &bytes, shared, block };
            codec.decode_values(packed, &mut decoded);
            let values: Vec<u32> = numbers.iter().map(|number| number.wrapping_add(1)).collect();
            assert_eq!(decoded, values);
            let single = |index| codec.value_at(packed, numbers.len(), index);
            assert_eq!((0..numbers.len()).map(single).collect::<Vec<u32>>(), values);
        }
    }

    #[test]
    fn what_does_not_fit_twice_is_a_word() {
        let mut numbers: Vec<u32> = (0..100 * BLOCK as u32).map(|i| if i % 10 == 0 { 9 } else { 1 }).collect();
        numbers[50 * BLOCK] = u32::MAX;
        // The last exception of this block is far from the one before.
        numbers[70 * BLOCK + 1..70 * BLOCK + 120].fill(0);
        let mut shared = Vec::new();
        encode_shared(&numbers, &mut shared);
        assert_eq!(shared[..4], [1, 4, 3, 0]);
        let words = |block| {
            let byte = exceptions_of(&numbers[block * BLOCK..][..BLOCK], 1).count() as u8;
            let end = Exceptions::of(Packed { byte, bytes: &[], shared: &shared, block: block + 1 });
            let words = Exceptions::of(Packed { byte, bytes: &[], shared: &shared, block }).unwrap().words;
            words.len() - end.unwrap().entries.len() / 4
        };
        assert_eq!([words(49), words(50), words(70)], [0, 1, 1]);
        assert_read_again(&numbers, &shared);
    }

    #[test]
    fn the_largest_exceptions_do_not_leave_their_group() {
        // Few numbers of few bits, so that the width is small, then blocks in which nothing fits.
        let mut numbers = vec![0; 40_000 * BLOCK];
        numbers[..64 * BLOCK].fill(u32::MAX);
        let mut shared = Vec::new();
        encode_shared(&numbers, &mut shared);
        assert_eq!(shared[0], 0);
        assert_read_again(&numbers[..66 * BLOCK], &shared);
    }
}
