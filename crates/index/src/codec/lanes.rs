//! Numbers of one width: the layout of `bitpack` and its relatives, and how it is read.
//!
//! A full block of 128 numbers of `width` bits takes `16 · width` bytes in four interleaved lanes (Lemire and Boytsov,
//! *Decoding billions of integers per second through vectorization*, 2015): number `i` is in lane `i % 4`, at bit
//! `(i / 4) · width` of it, and word `j` of lane `l` is word `4 j + l` of the block. Four consecutive numbers are
//! thus at the same shift of four consecutive words: one SIMD register on the CPU, one 16-byte load of a lane on a GPU.
//! Fewer numbers are packed one after the other.
//!
//! A full block is read by one of a table of functions, one for each width, so that every shift is a constant. There is
//! a table for each instruction set; [`Kernels::best`] picks one.

#[cfg(target_arch = "x86_64")]
use super::simd;
use super::{BLOCK, unary};

/// Fills a full block with its numbers, each plus `add`, from `16 · width` bytes or more.
pub type UnpackFull = fn(bytes: &[u8], add: u32, numbers: &mut [u32; BLOCK]);
/// The same for gaps, summed up: number `i` is `base` plus `i` plus the sum of the gaps up to its own.
pub type SumFull = fn(bytes: &[u8], base: u32, numbers: &mut [u32; BLOCK]);

/// The functions that read packed numbers with one instruction set.
pub struct Kernels {
    /// By width.
    pub unpack_full: [UnpackFull; 33],
    /// By width.
    pub sum_full: [SumFull; 33],
    /// Reads numbers packed one after the other, each plus `add`; missing bytes count as zeros.
    pub unpack_bits: fn(bytes: &[u8], width: usize, add: u32, numbers: &mut [u32]),
    /// The same for gaps, summed up as by `sum_full`.
    pub sum_bits: fn(bytes: &[u8], width: usize, base: u32, numbers: &mut [u32]),
    /// Turns gaps into the sums of `sum_full`.
    pub sum: fn(base: u32, numbers: &mut [u32]),
    /// [`unary::add_sums`].
    pub add_unary: fn(bits: &[u8], shift: u32, step: u32, numbers: &mut [u32]),
}

/// For every CPU.
pub static SCALAR: Kernels = Kernels {
    unpack_full: per_width!(unpack_full as UnpackFull),
    sum_full: per_width!(sum_full as SumFull),
    unpack_bits,
    sum_bits,
    sum,
    add_unary: unary::add_sums,
};

/// `[f::<0>, f::<1>, .., f::<32>]`
macro_rules! per_width {
    ($function:ident as $type:ty) => {
        per_width!(
            @ $function $type,
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
        )
    };
    (@ $function:ident $type:ty, $($width:literal)*) => { [$($function::<$width> as $type),*] };
}
pub(super) use per_width;

impl Kernels {
    /// The fastest that this CPU supports.
    pub fn best() -> &'static Kernels {
        #[cfg(target_arch = "x86_64")]
        if let Some(kernels) = simd::kernels().last() {
            return kernels;
        }
        &SCALAR
    }

    /// All that this CPU supports, the fastest last.
    #[cfg(test)]
    pub fn all() -> Vec<&'static Kernels> {
        let mut all = vec![&SCALAR];
        #[cfg(target_arch = "x86_64")]
        all.extend(simd::kernels());
        all
    }

    /// Fills `numbers`, each plus `add`, from bytes packed by [`pack`]; zeros plus `add` where there are too few.
    #[inline]
    pub fn unpack(&self, width: usize, bytes: &[u8], add: u32, numbers: &mut [u32]) {
        if width > 32 || bytes.len() < packed_bytes(width, numbers.len()) {
            numbers.fill(add);
            return;
        }
        match numbers.as_mut_array::<BLOCK>() {
            Some(block) => self.unpack_full[width](bytes, add, block),
            None => (self.unpack_bits)(bytes, width, add, numbers),
        }
    }

    /// Fills `numbers` with the sums of gaps packed by [`pack`]; as if all gaps were zero where there are too few
    /// bytes.
    #[inline]
    pub fn unpack_sums(&self, width: usize, bytes: &[u8], base: u32, numbers: &mut [u32]) {
        if width > 32 || bytes.len() < packed_bytes(width, numbers.len()) {
            numbers.fill(0);
            (self.sum)(base, numbers);
            return;
        }
        match numbers.as_mut_array::<BLOCK>() {
            Some(block) => self.sum_full[width](bytes, base, block),
            None => (self.sum_bits)(bytes, width, base, numbers),
        }
    }
}

/// Bytes of `count` numbers of a width.
#[inline]
pub fn packed_bytes(width: usize, count: usize) -> usize {
    (width * count).div_ceil(8)
}

/// The bits of the largest number.
pub fn width_of(numbers: &[u32]) -> usize {
    32 - numbers.iter().fold(0, |all, number| all | number).leading_zeros() as usize
}

/// Appends the lowest `width` bits of the numbers: as a full block, or one after the other.
pub fn pack(numbers: &[u32], width: usize, out: &mut Vec<u8>) {
    let mask = ((1u64 << width) - 1) as u32;
    match numbers.as_array::<BLOCK>() {
        Some(block) => pack_full(&block.map(|number| number & mask), width as u32, out),
        None => pack_bits(numbers.iter().map(|number| number & mask), width, out),
    }
}

/// Number `index` of `count` packed by [`pack`], from at most two words; missing bytes count as zeros.
#[inline]
pub fn number_at(bytes: &[u8], width: usize, count: usize, index: usize) -> u32 {
    if count != BLOCK {
        return number_of_bits(bytes, width, index);
    }
    let bit = index / 4 * width;
    let (word, shift) = (4 * (bit / 32) + index % 4, bit % 32);
    let low = u64::from(word_at(bytes, word)) >> shift;
    let high = if shift + width > 32 { u64::from(word_at(bytes, word + 4)) << (32 - shift) } else { 0 };
    ((low | high) & ((1 << width) - 1)) as u32
}

fn word_at(bytes: &[u8], word: usize) -> u32 {
    bytes.get(4 * word..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_le_bytes(*word))
}

/// Number `index` of numbers packed one after the other; missing bytes count as zeros.
#[inline]
pub fn number_of_bits(bytes: &[u8], width: usize, index: usize) -> u32 {
    let bit = index * width;
    ((eight_bytes(bytes, bit / 8) >> (bit % 8)) & ((1 << width) - 1)) as u32
}

/// Eight bytes from `at` on; missing ones are zeros.
#[inline]
pub fn eight_bytes(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or(&[]);
    match rest.first_chunk::<8>() {
        Some(eight) => u64::from_le_bytes(*eight),
        None => rest.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte)),
    }
}

fn pack_full(numbers: &[u32; BLOCK], width: u32, out: &mut Vec<u8>) {
    let mut words = [0u32; BLOCK];
    for (i, &number) in numbers.iter().enumerate() {
        let (lane, bit) = (i % 4, i as u32 / 4 * width);
        let (word, shift) = (4 * (bit / 32) as usize + lane, bit % 32);
        let spread = u64::from(number) << shift;
        // A width of 0 packs nothing; the words are truncated below.
        words[word] |= spread as u32;
        if shift + width > 32 {
            words[word + 4] |= (spread >> 32) as u32;
        }
    }
    out.extend(words[..4 * width as usize].iter().flat_map(|word| word.to_le_bytes()));
}

/// Appends numbers below 2^width one after the other.
pub fn pack_bits(numbers: impl Iterator<Item = u32>, width: usize, out: &mut Vec<u8>) {
    let (mut waiting, mut bits) = (0u64, 0);
    for number in numbers {
        waiting |= u64::from(number) << bits;
        bits += width;
        while bits >= 8 {
            out.push(waiting as u8);
            waiting >>= 8;
            bits -= 8;
        }
    }
    if bits > 0 {
        out.push(waiting as u8);
    }
}

fn unpack_full<const WIDTH: usize>(bytes: &[u8], add: u32, numbers: &mut [u32; BLOCK]) {
    let (rows, _) = bytes.as_chunks::<16>();
    let rows: &[[u8; 16]] = &rows[..WIDTH];
    let mask = ((1u64 << WIDTH) - 1) as u32;
    for (row, four) in numbers.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let bit = row * WIDTH;
        let (word, shift) = (bit / 32, bit % 32);
        if WIDTH == 0 {
            *four = [add; 4];
        } else if shift + WIDTH <= 32 {
            let words = words_of(&rows[word]);
            *four = words.map(|word| ((word >> shift) & mask).wrapping_add(add));
        } else {
            let (low, high) = (words_of(&rows[word]), words_of(&rows[word + 1]));
            for lane in 0..4 {
                let number = ((low[lane] >> shift) | (high[lane] << (32 - shift))) & mask;
                four[lane] = number.wrapping_add(add);
            }
        }
    }
}

fn words_of(row: &[u8; 16]) -> [u32; 4] {
    let (words, _) = row.as_chunks::<4>();
    std::array::from_fn(|lane| u32::from_le_bytes(words[lane]))
}

fn sum_full<const WIDTH: usize>(bytes: &[u8], base: u32, numbers: &mut [u32; BLOCK]) {
    unpack_full::<WIDTH>(bytes, 0, numbers);
    sum(base, numbers);
}

fn sum(base: u32, numbers: &mut [u32]) {
    let mut next = base;
    for number in numbers {
        *number = number.wrapping_add(next);
        next = number.wrapping_add(1);
    }
}

fn unpack_bits(bytes: &[u8], width: usize, add: u32, numbers: &mut [u32]) {
    each_of_bits(bytes, width, numbers, |number| number.wrapping_add(add));
}

fn sum_bits(bytes: &[u8], width: usize, base: u32, numbers: &mut [u32]) {
    let mut next = base;
    each_of_bits(bytes, width, numbers, |gap| {
        let number = gap.wrapping_add(next);
        next = number.wrapping_add(1);
        number
    });
}

/// One load, one shift and one mask per number; near the end of the bytes from a copy padded with zeros.
#[inline]
fn each_of_bits(bytes: &[u8], width: usize, numbers: &mut [u32], mut keep: impl FnMut(u32) -> u32) {
    let mask = (1u64 << width) - 1;
    // Numbers whose eight bytes are inside.
    let whole = match bytes.len().checked_sub(8) {
        Some(last) if width > 0 => (8 * last / width + 1).min(numbers.len()),
        Some(_) => numbers.len(),
        None => 0,
    };
    let (inside, beyond) = numbers.split_at_mut(whole);
    let mut bit = 0;
    for number in inside {
        let eight = bytes[bit / 8..].first_chunk::<8>().map_or(0, |eight| u64::from_le_bytes(*eight));
        *number = keep(((eight >> (bit % 8)) & mask) as u32);
        bit += width;
    }
    for number in beyond {
        *number = keep(((eight_bytes(bytes, bit / 8) >> (bit % 8)) & mask) as u32);
        bit += width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_full_block_takes_sixteen_bytes_for_each_bit_of_width() {
        for width in 0..=32 {
            let largest = ((1u64 << width) - 1) as u32;
            let numbers: [u32; BLOCK] = std::array::from_fn(|i| (u64::from(largest) >> (i % (width + 1))) as u32);
            assert_eq!(width_of(&numbers), width);
            let mut bytes = Vec::new();
            pack(&numbers, width, &mut bytes);
            assert_eq!(bytes.len(), 16 * width);
            for kernels in Kernels::all() {
                let mut unpacked = [7; BLOCK];
                kernels.unpack(width, &bytes, 0, &mut unpacked);
                assert_eq!(unpacked, numbers, "width {width}");
            }
        }
    }

    #[test]
    fn four_neighbours_lie_in_neighbouring_words() {
        let mut numbers = [0; BLOCK];
        numbers[4..8].copy_from_slice(&[1, 2, 3, 4]);
        numbers[127] = 0x7FFF_FFFF;
        let mut bytes = Vec::new();
        pack(&numbers, 31, &mut bytes);
        // Row 1 starts at bit 31 of each lane: the lowest bit in word 0, the rest in word 1.
        assert_eq!([0, 1, 2, 3].map(|word| word_at(&bytes, word)), [1 << 31, 0, 1 << 31, 0]);
        assert_eq!([4, 5, 6, 7].map(|word| word_at(&bytes, word)), [0, 1, 1, 2]);
    }

    proptest! {
        #[test]
        fn every_instruction_set_reads_the_same(
            width in 0usize..=32, count in prop_oneof![1 => Just(BLOCK), 2 => 1..=BLOCK],
            seeds in prop::collection::vec(any::<u32>(), BLOCK), start: u32, behind in 0usize..80,
        ) {
            let mask = ((1u64 << width) - 1) as u32;
            let numbers: Vec<u32> = seeds[..count].iter().map(|seed| seed & mask).collect();
            let mut bytes = Vec::new();
            pack(&numbers, width, &mut bytes);
            prop_assert_eq!(bytes.len(), packed_bytes(width, count));
            bytes.resize(bytes.len() + behind, 0xEE);
            let plus: Vec<u32> = numbers.iter().map(|number| number.wrapping_add(start)).collect();
            let mut sums = numbers.clone();
            sum(start, &mut sums);
            for kernels in Kernels::all() {
                let mut unpacked = vec![0; count];
                kernels.unpack(width, &bytes, start, &mut unpacked);
                prop_assert_eq!(&unpacked, &plus);
                kernels.unpack_sums(width, &bytes, start, &mut unpacked);
                prop_assert_eq!(&unpacked, &sums);
                let mut summed = numbers.clone();
                (kernels.sum)(start, &mut summed);
                prop_assert_eq!(&summed, &sums);
            }
            for (index, &number) in numbers.iter().enumerate() {
                prop_assert_eq!(number_at(&bytes, width, count, index), number);
            }
        }
    }
}
