//! `elias-fano`: prefix sums of gaps, with low bits and unary high bits stored apart; a partition for each block.
//!
//! Elias, *Efficient storage and retrieval by content and address of static files*, 1974; in partitions of fixed size,
//! as in Ottaviano and Venturini, *Partitioned Elias-Fano indexes*, 2014, and in Liu et al., *Griffin*, 2018, whose
//! Algorithm 1 decodes this layout with a warp: the low bits of any number can be read directly, and the high bits are
//! counted word by word.
//!
//! Document `i` is coded as its distance from `base + i`, which is the sum of the gaps up to its own. Without low bits,
//! as in dense blocks, the high bits are the bitmap of the block; a block without gaps takes no bytes. Values are coded
//! by the prefix sums of the values less 1.
//!
//! The directory byte: 0 to 31, the number of low bits; [`RUN`], all gaps are 0 and there are no bytes; [`WIDE`], the
//! sums of the values do not fit in 32 bits and the values are stored as four bytes each.

use super::lanes::{Kernels, number_at, pack, packed_bytes};
use super::{BLOCK, Codec, ELIAS_FANO_WIDE as WIDE, Packed, gaps_of, less_one, raw, unary};

/// Directory byte of a block whose gaps are all 0.
pub const RUN: u8 = 64;

/// Low bits and high bits stored apart.
pub struct EliasFano {
    pub(super) kernels: &'static Kernels,
}

impl EliasFano {
    /// Fills `sums` with the sums of the gaps plus `base`, plus `step` for each number before.
    fn decode_sums(&self, packed: Packed, base: u32, step: u32, sums: &mut [u32]) {
        if packed.byte > 31 {
            sums.fill(base);
            sums.iter_mut().zip(0..).for_each(|(sum, i): (_, u32)| *sum = sum.wrapping_add(step * i));
            return;
        }
        let width = usize::from(packed.byte);
        self.kernels.unpack(width, packed.bytes, base, sums);
        let bits = unary::bits_of(packed.bytes, packed_bytes(width, sums.len()));
        (self.kernels.add_unary)(bits, width as u32, step, sums);
    }

    /// The sum of the gaps up to and including `index`.
    fn sum_to(&self, packed: Packed, count: usize, index: usize) -> u32 {
        let width = usize::from(packed.byte);
        let high = unary::sum_to(unary::bits_of(packed.bytes, packed_bytes(width, count)), index);
        (high << width) | number_at(packed.bytes, width, count, index)
    }
}

impl Codec for EliasFano {
    fn encode_documents(&self, _shared: &[u8], base: u32, documents: &[u32], out: &mut Vec<u8>) -> u8 {
        let mut sums = gaps_of(base, documents);
        let sums = &mut sums[..documents.len()];
        sum_up(sums).map_or(RUN, |largest| encode(sums, largest, out))
    }

    fn decode_documents(&self, packed: Packed, base: u32, documents: &mut [u32]) {
        self.decode_sums(packed, base, 1, documents);
    }

    fn encode_values(&self, _shared: &[u8], values: &[u32], out: &mut Vec<u8>) -> u8 {
        if values.iter().map(|&value| u64::from(value - 1)).sum::<u64>() > u64::from(u32::MAX) {
            raw::encode(values, out);
            return WIDE;
        }
        let mut sums = less_one(values);
        let sums = &mut sums[..values.len()];
        sum_up(sums).map_or(RUN, |largest| encode(sums, largest, out))
    }

    fn decode_values(&self, packed: Packed, values: &mut [u32]) {
        if packed.byte == WIDE {
            return raw::decode(packed.bytes, values);
        }
        let mut sums = [0; BLOCK];
        let sums = &mut sums[..values.len()];
        self.decode_sums(packed, 0, 0, sums);
        values[0] = sums[0].wrapping_add(1);
        for (value, pair) in values[1..].iter_mut().zip(sums.array_windows()) {
            let [before, sum]: &[u32; 2] = pair;
            *value = sum.wrapping_sub(*before).wrapping_add(1);
        }
    }

    fn value_at(&self, packed: Packed, count: usize, index: usize) -> u32 {
        match packed.byte {
            0..32 => {
                let before = if index == 0 { 0 } else { self.sum_to(packed, count, index - 1) };
                self.sum_to(packed, count, index).wrapping_sub(before).wrapping_add(1)
            }
            WIDE => raw::value_at(packed.bytes, index),
            _ => 1,
        }
    }

    fn length(&self, packed: Packed, count: usize) -> usize {
        match packed.byte {
            0..32 => {
                let low = packed_bytes(usize::from(packed.byte), count);
                low + unary::length(unary::bits_of(packed.bytes, low), count)
            }
            WIDE => 4 * count,
            _ => 0,
        }
    }
}

/// Turns numbers into their prefix sums and returns the largest, unless all are 0.
fn sum_up(numbers: &mut [u32]) -> Option<u32> {
    let mut sum = 0;
    for number in numbers {
        sum += *number;
        *number = sum;
    }
    (sum > 0).then_some(sum)
}

/// Appends sums with the number of low bits that takes the fewest bytes, and returns it.
fn encode(sums: &[u32], largest: u32, out: &mut Vec<u8>) -> u8 {
    let bits = |width: &u32| sums.len() as u64 * u64::from(*width) + u64::from(largest >> width);
    let width = (0..32).min_by_key(bits).unwrap_or(0);
    pack(sums, width as usize, out);
    unary::append(sums.iter().map(|sum| sum >> width), out);
    width as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::lanes::SCALAR;

    #[test]
    fn the_example_of_griffin_comes_out_as_drawn() {
        // Figure 4 codes 5, 6, 8, 15, 18, 33 with two low bits.
        let sums = [5, 6, 8, 15, 18, 33];
        let mut bytes = Vec::new();
        assert_eq!(encode(&sums, 33, &mut bytes), 2);
        // Low bits 01 10 00 11 10 01, the first in the lowest bits; high bits 1, 1, 2, 3, 4, 8 as gaps in unary.
        assert_eq!(bytes, [0b1100_1001, 0b0110, 0b0101_0110, 0b10_0001]);
    }

    #[test]
    fn a_dense_block_is_its_bitmap_and_one_without_gaps_takes_nothing() {
        let codec = EliasFano { kernels: &SCALAR };
        let mut bytes = Vec::new();
        assert_eq!(codec.encode_documents(&[], 10, &[10, 12, 13, 14, 17], &mut bytes), 0);
        assert_eq!(bytes, [0b1001_1101]);
        let run: Vec<u32> = (10..138).collect();
        bytes.clear();
        assert_eq!(codec.encode_documents(&[], 10, &run, &mut bytes), RUN);
        assert!(bytes.is_empty());
        let mut decoded = [0; BLOCK];
        codec.decode_documents(Packed::alone(RUN, &[]), 10, &mut decoded);
        assert_eq!(decoded[..], run);
    }

    #[test]
    fn values_whose_sum_is_too_large_are_stored_as_they_are() {
        let codec = EliasFano { kernels: &SCALAR };
        let mut bytes = Vec::new();
        assert_eq!(codec.encode_values(&[], &[u32::MAX, 3], &mut bytes), WIDE);
        assert_eq!(bytes, [255, 255, 255, 255, 3, 0, 0, 0]);
        assert_eq!(codec.value_at(Packed::alone(WIDE, &bytes), 2, 1), 3);
    }
}
