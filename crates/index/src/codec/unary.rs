//! Unary codes, stored apart from low bits, as `elias-fano` and `rice` use them.
//!
//! A number n is n zeros, then a one; the lowest bit of the first byte comes first. The number of zeros before the
//! `i`-th one is thus the sum of the numbers up to the `i`-th, so that a block is read by counting ones in words
//! (popcount), summing up the counts, and picking ones. Griffin's Para-EF and gpu-ir's bit-wise prefix sum with
//! compaction do this, 32 words of 32 bits at a time. In a full block the bits are padded with zeros to a multiple of
//! four bytes.

use super::lanes::eight_bytes;
use super::{BLOCK, LONGEST_UNARY_BYTES};

/// Appends numbers given by their prefix sums.
pub fn append(sums: impl ExactSizeIterator<Item = u32>, out: &mut Vec<u8>) {
    let (start, count) = (out.len(), sums.len());
    for (i, sum) in sums.enumerate() {
        let position = sum as usize + i;
        out.resize(out.len().max(start + position / 8 + 1), 0);
        out[start + position / 8] |= 1 << (position % 8);
    }
    out.resize(start + filled(out.len() - start, count), 0);
}

/// The bits at the end of a column: all after its first `skip` bytes, up to the most that a decoder needs.
pub fn bits_of(bytes: &[u8], skip: usize) -> &[u8] {
    let rest = bytes.get(skip..).unwrap_or(&[]);
    &rest[..rest.len().min(LONGEST_UNARY_BYTES)]
}

/// Bytes of `count` numbers; `bits.len() + 1` if ones are missing.
pub fn length(bits: &[u8], count: usize) -> usize {
    match position(bits, count - 1) {
        Some(position) => filled(position / 8 + 1, count),
        None => bits.len() + 1,
    }
}

/// Bytes of a column that is padded with zeros in a full block.
pub fn filled(bytes: usize, count: usize) -> usize {
    if count == BLOCK { bytes.next_multiple_of(4) } else { bytes }
}

/// The sum of the numbers up to and including `index`; 0 if its one is missing.
pub fn sum_to(bits: &[u8], index: usize) -> u32 {
    position(bits, index).map_or(0, |position| (position - index) as u32)
}

/// The position of the one that ends number `index`.
fn position(bits: &[u8], index: usize) -> Option<usize> {
    let mut left = index as u32;
    for at in (0..bits.len()).step_by(8) {
        let mut word = eight_bytes(bits, at);
        if word.count_ones() <= left {
            left -= word.count_ones();
            continue;
        }
        for _ in 0..left {
            word &= word - 1;
        }
        return Some(8 * at + word.trailing_zeros() as usize);
    }
    None
}

/// Adds to each number its sum from the bits, shifted, and `step` for each number before it.
/// Numbers without a one in the bits do not change.
pub fn add_sums(bits: &[u8], shift: u32, step: u32, numbers: &mut [u32]) {
    let mut numbers = numbers.iter_mut().enumerate();
    for at in (0..bits.len()).step_by(8) {
        let mut word = eight_bytes(bits, at);
        while word != 0 {
            let Some((i, number)) = numbers.next() else {
                return;
            };
            let sum = 8 * at as u32 + word.trailing_zeros() - i as u32;
            *number = number.wrapping_add(sum << shift).wrapping_add(step * i as u32);
            word &= word - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lanes::Kernels;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_instruction_set_adds_the_same(
            gaps in prop::collection::vec(prop_oneof![5 => 0u32..3, 1 => 0u32..100], 1..=BLOCK),
            shift in 0u32..32, step in 0u32..2, start: u32, behind in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let sums = gaps.iter().scan(0, |sum, gap| { *sum += gap; Some(*sum) });
            let sums: Vec<u32> = sums.collect();
            let mut bits = Vec::new();
            append(sums.iter().copied(), &mut bits);
            prop_assert_eq!(length(&bits, gaps.len()), bits.len());
            bits.extend(&behind);
            let limited = bits_of(&bits, 0);
            let wanted = (0..).zip(&sums).map(|(i, sum)| start.wrapping_add(sum << shift).wrapping_add(step * i));
            let wanted: Vec<u32> = wanted.collect();
            for kernels in Kernels::all() {
                let mut numbers = vec![start; gaps.len()];
                (kernels.add_unary)(limited, shift, step, &mut numbers);
                // No encoder writes longer codes.
                let whole = sums.iter().zip(0..).filter(|&(&sum, i)| sum + i < 8 * limited.len() as u32).count();
                prop_assert_eq!(&numbers[..whole], &wanted[..whole]);
            }
            for (index, &sum) in sums.iter().enumerate() {
                prop_assert_eq!(sum_to(&bits, index), sum);
            }
        }

        #[test]
        fn every_instruction_set_stands_any_bits(
            bits in prop::collection::vec(prop_oneof![2 => Just(0u8), 1 => any::<u8>()], 0..600), count in 1..=BLOCK,
        ) {
            let mut wanted = vec![5; count];
            add_sums(bits_of(&bits, 0), 3, 1, &mut wanted);
            for kernels in Kernels::all() {
                let mut numbers = vec![5; count];
                (kernels.add_unary)(bits_of(&bits, 0), 3, 1, &mut numbers);
                prop_assert_eq!(&numbers, &wanted);
            }
            length(&bits, count);
        }
    }

    #[test]
    fn a_number_is_zeros_and_a_one() {
        let mut bits = Vec::new();
        append([0, 2, 2, 9].into_iter(), &mut bits);
        assert_eq!(bits, [0b0001_1001, 0b0001_0000]);
        assert_eq!(length(&bits, 4), 2);
        assert_eq!(length(&bits, 5), 3);
    }
}
