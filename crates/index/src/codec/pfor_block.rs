//! `pfor-block`: most gaps in few bits, a width for each block; the high bits of exceptions follow the block.
//!
//! Zukowski et al., *Super-scalar RAM-CPU cache compression*, 2006, in the form of Yan, Ding and Suel, *Inverted index
//! compression and query processing with optimized document ordering*, 2009: low bits of exceptions stay in their
//! place, positions and high bits are stored apart (NewPFD), and the width is the one that takes the fewest bytes
//! (OptPFD). It is the baseline of gpu-ir's `pfor`.
//!
//! The directory byte is the width, plus [`PATCHED`] if there are exceptions. The exceptions follow the packed numbers:
//! ```text
//! u8              number of exceptions
//! u8              width of the high parts
//! u8 × exceptions positions
//! bits            high parts minus 1, one after the other
//! ```
//! In a full block the column is padded with zeros to a multiple of four bytes.

use super::lanes::{Kernels, number_at, number_of_bits, pack, pack_bits, packed_bytes, width_of};
use super::{Codec, PFOR_BLOCK_PATCHED as PATCHED, Packed, gaps_of, less_one, unary::filled};

/// Most gaps in few bits.
pub struct PforBlock {
    pub(super) kernels: &'static Kernels,
}

/// The exceptions of a block, which follow its numbers.
struct Exceptions<'a> {
    positions: &'a [u8],
    high_width: usize,
    highs: &'a [u8],
    bytes: usize,
}

impl<'a> Exceptions<'a> {
    /// Reads the bytes after the numbers of a block; `None` if they are damaged.
    fn read(bytes: &'a [u8]) -> Option<Exceptions<'a>> {
        let (&[count, high_width], rest) = bytes.split_first_chunk()?;
        let (positions, rest) = rest.split_at_checked(usize::from(count))?;
        let high_width = usize::from(high_width);
        let highs = rest.get(..packed_bytes(high_width, positions.len())).filter(|_| high_width <= 32)?;
        Some(Exceptions { positions, high_width, highs, bytes: 2 + positions.len() + highs.len() })
    }

    /// The high bits of exception `number`, to add to its low bits of a width.
    fn addend(&self, number: usize, width: usize) -> u32 {
        number_of_bits(self.highs, self.high_width, number).wrapping_add(1).wrapping_shl(width as u32)
    }
}

impl PforBlock {
    /// Fills `numbers`, each plus `add`.
    fn unpack_patched(&self, packed: Packed, add: u32, numbers: &mut [u32]) {
        let width = usize::from(packed.byte & !PATCHED);
        self.kernels.unpack(width, packed.bytes, add, numbers);
        let Some(exceptions) = exceptions(packed, numbers.len()) else {
            return;
        };
        for (exception, &position) in exceptions.positions.iter().enumerate() {
            if let Some(number) = numbers.get_mut(usize::from(position)) {
                *number = number.wrapping_add(exceptions.addend(exception, width));
            }
        }
    }
}

/// The exceptions of a column of `count`, if it has any.
fn exceptions<'a>(packed: Packed<'a>, count: usize) -> Option<Exceptions<'a>> {
    let start = packed_bytes(usize::from(packed.byte & !PATCHED), count);
    (packed.byte & PATCHED != 0).then(|| Exceptions::read(packed.bytes.get(start..)?))?
}

impl Codec for PforBlock {
    fn encode_documents(&self, _shared: &[u8], base: u32, documents: &[u32], out: &mut Vec<u8>) -> u8 {
        encode(&gaps_of(base, documents)[..documents.len()], out)
    }

    fn decode_documents(&self, packed: Packed, base: u32, documents: &mut [u32]) {
        if packed.byte & PATCHED == 0 {
            self.kernels.unpack_sums(usize::from(packed.byte), packed.bytes, base, documents);
        } else {
            self.unpack_patched(packed, 0, documents);
            (self.kernels.sum)(base, documents);
        }
    }

    fn encode_values(&self, _shared: &[u8], values: &[u32], out: &mut Vec<u8>) -> u8 {
        encode(&less_one(values)[..values.len()], out)
    }

    fn decode_values(&self, packed: Packed, values: &mut [u32]) {
        self.unpack_patched(packed, 1, values);
    }

    fn value_at(&self, packed: Packed, count: usize, index: usize) -> u32 {
        let width = usize::from(packed.byte & !PATCHED);
        if width > 32 {
            return 1;
        }
        let low = number_at(packed.bytes, width, count, index);
        let high = exceptions(packed, count).map_or(0, |exceptions| {
            let found = exceptions.positions.iter().position(|&position| usize::from(position) == index);
            found.map_or(0, |number| exceptions.addend(number, width))
        });
        low.wrapping_add(high).wrapping_add(1)
    }

    fn length(&self, packed: Packed, count: usize) -> usize {
        let numbers = packed_bytes(usize::from(packed.byte & !PATCHED), count);
        // Damaged exceptions: a length beyond the end.
        let patches = match exceptions(packed, count) {
            Some(exceptions) => exceptions.bytes,
            None if packed.byte & PATCHED == 0 => 0,
            None => packed.bytes.len() + 1,
        };
        filled(numbers + patches, count)
    }
}

/// Appends numbers with the width that takes the fewest bytes, and returns the directory byte.
fn encode(numbers: &[u32], out: &mut Vec<u8>) -> u8 {
    let largest = width_of(numbers);
    let mut with_bits = [0usize; 33];
    numbers.iter().for_each(|&number| with_bits[width_of(&[number])] += 1);
    let bytes = |&width: &usize| {
        let exceptions: usize = with_bits[width + 1..].iter().sum();
        let patches = if exceptions > 0 { 2 + exceptions + packed_bytes(largest - width, exceptions) } else { 0 };
        packed_bytes(width, numbers.len()) + patches
    };
    // Among equal sizes the largest width, which has the fewest exceptions.
    let width = (0..=largest).rev().min_by_key(bytes).unwrap_or(largest);
    let start = out.len();
    pack(numbers, width, out);
    if width == largest {
        return width as u8;
    }
    append_exceptions(numbers, width, out);
    out.resize(start + filled(out.len() - start, numbers.len()), 0);
    width as u8 | PATCHED
}

fn append_exceptions(numbers: &[u32], width: usize, out: &mut Vec<u8>) {
    let is_exception = |&(_, number): &(u8, &u32)| number >> width != 0;
    let exceptions = || (0..).zip(numbers).filter(is_exception);
    let less_one = || exceptions().map(|(_, number)| (number >> width) - 1);
    let high_width = less_one().map(|high| width_of(&[high])).max().unwrap_or(0);
    out.extend([exceptions().count() as u8, high_width as u8]);
    out.extend(exceptions().map(|(position, _)| position));
    pack_bits(less_one(), high_width, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::BLOCK;

    #[test]
    fn a_large_number_among_small_ones_is_an_exception() {
        let mut values = [2; BLOCK];
        values[77] = 1 + 0b1101;
        let codec = PforBlock { kernels: Kernels::best() };
        let mut bytes = Vec::new();
        let byte = codec.encode_values(&[], &values, &mut bytes);
        assert_eq!(byte, 1 | PATCHED);
        // Sixteen bytes of low bits, then one exception at 77 whose high part less 1 is 0b101; filled up to four bytes.
        assert_eq!(bytes[..16], [0xFF; 16]);
        assert_eq!(bytes[16..], [1, 3, 77, 0b101]);
        let packed = Packed::alone(byte, &bytes);
        assert_eq!([76, 77].map(|index| codec.value_at(packed, BLOCK, index)), [2, 14]);
    }
}
