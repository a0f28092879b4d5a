//! `bitpack`: gaps and values less one, each in as many bits as the largest of the block needs.
//!
//! A full block of 128 numbers of `width` bits takes `16 · width` bytes in four interleaved lanes (Lemire and Boytsov,
//! *Decoding billions of integers per second through vectorization*, 2015): number `i` lies in lane `i % 4`, at bit
//! `(i / 4) · width` of it, and word `j` of lane `l` is word `4 j + l` of the block. Four neighbours thus lie at the
//! same shift of four neighbouring words: one SIMD register on the CPU, one 16-byte load of a GPU's lane.
//! A shorter block, the last of its list, is packed bit after bit.

use super::{BLOCK, Codec};

/// Gaps in the fewest bits.
pub struct Bitpack;

impl Codec for Bitpack {
    fn encode_documents(&self, base: u32, documents: &[u32], out: &mut Vec<u8>) -> u8 {
        let mut gaps = [0; BLOCK];
        let mut next = base;
        for (gap, &document) in gaps.iter_mut().zip(documents) {
            *gap = document - next;
            next = document.wrapping_add(1);
        }
        pack(&gaps[..documents.len()], out)
    }

    fn decode_documents(&self, byte: u8, bytes: &[u8], base: u32, documents: &mut [u32]) {
        unpack(byte, bytes, documents);
        let mut next = base;
        for document in documents {
            *document = document.wrapping_add(next);
            next = document.wrapping_add(1);
        }
    }

    fn encode_values(&self, values: &[u32], out: &mut Vec<u8>) -> u8 {
        let mut less_one = [0; BLOCK];
        for (slot, &value) in less_one.iter_mut().zip(values) {
            *slot = value - 1;
        }
        pack(&less_one[..values.len()], out)
    }

    fn decode_values(&self, byte: u8, bytes: &[u8], values: &mut [u32]) {
        unpack(byte, bytes, values);
        for value in values {
            *value = value.wrapping_add(1);
        }
    }

    fn length(&self, byte: u8, count: usize) -> usize {
        (usize::from(byte) * count).div_ceil(8)
    }
}

/// Appends the numbers and returns their width.
fn pack(numbers: &[u32], out: &mut Vec<u8>) -> u8 {
    let width = 32 - numbers.iter().fold(0, |all, number| all | number).leading_zeros();
    match numbers.as_array::<BLOCK>() {
        Some(block) => pack_lanes(block, width, out),
        None => pack_bits(numbers, width, out),
    }
    width as u8
}

/// Fills `numbers` from as many bytes as their width asks for; leaves zeros where there are too few.
fn unpack(byte: u8, bytes: &[u8], numbers: &mut [u32]) {
    let width = usize::from(byte);
    let length = (width * numbers.len()).div_ceil(8);
    let Some(bytes) = bytes.get(..length).filter(|_| width <= 32) else {
        numbers.fill(0);
        return;
    };
    match numbers.as_mut_array::<BLOCK>() {
        Some(block) => UNPACK_LANES[width](bytes, block),
        None => unpack_bits(bytes, width, numbers),
    }
}

fn pack_lanes(numbers: &[u32; BLOCK], width: u32, out: &mut Vec<u8>) {
    let mut words = [0u32; BLOCK];
    for (i, &number) in numbers.iter().enumerate() {
        let (lane, bit) = (i % 4, i as u32 / 4 * width);
        let (word, shift) = (4 * (bit / 32) as usize + lane, bit % 32);
        let spread = u64::from(number) << shift;
        // A width of 0 packs nothing; the words are cut below.
        words[word] |= spread as u32;
        if shift + width > 32 {
            words[word + 4] |= (spread >> 32) as u32;
        }
    }
    out.extend(words[..4 * width as usize].iter().flat_map(|word| word.to_le_bytes()));
}

/// Unpacks a full block whose bytes are exactly as many as its width asks for.
fn unpack_lanes<const WIDTH: usize>(bytes: &[u8], numbers: &mut [u32; BLOCK]) {
    let (rows, _) = bytes.as_chunks::<16>();
    let rows: &[[u8; 16]] = &rows[..WIDTH];
    let mask = ((1u64 << WIDTH) - 1) as u32;
    for (row, four) in numbers.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let bit = row * WIDTH;
        let (word, shift) = (bit / 32, bit % 32);
        if WIDTH == 0 {
            *four = [0; 4];
        } else if shift + WIDTH <= 32 {
            let words = words_of(&rows[word]);
            *four = words.map(|word| (word >> shift) & mask);
        } else {
            let (low, high) = (words_of(&rows[word]), words_of(&rows[word + 1]));
            for lane in 0..4 {
                four[lane] = ((low[lane] >> shift) | (high[lane] << (32 - shift))) & mask;
            }
        }
    }
}

fn words_of(row: &[u8; 16]) -> [u32; 4] {
    let (words, _) = row.as_chunks::<4>();
    std::array::from_fn(|lane| u32::from_le_bytes(words[lane]))
}

fn pack_bits(numbers: &[u32], width: u32, out: &mut Vec<u8>) {
    let (mut waiting, mut bits) = (0u64, 0);
    for &number in numbers {
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

fn unpack_bits(bytes: &[u8], width: usize, numbers: &mut [u32]) {
    let mask = (1u64 << width) - 1;
    let (mut waiting, mut bits) = (0u64, 0);
    let mut bytes = bytes.iter();
    for number in numbers {
        while bits < width {
            waiting |= u64::from(*bytes.next().unwrap_or(&0)) << bits;
            bits += 8;
        }
        *number = (waiting & mask) as u32;
        waiting >>= width;
        bits -= width;
    }
}

type UnpackLanes = fn(&[u8], &mut [u32; BLOCK]);

/// `UNPACK_LANES[width]`: the loop with the width known, so that every shift is a constant.
const UNPACK_LANES: [UnpackLanes; 33] = {
    macro_rules! widths {
        ($($width:literal)*) => { [$(unpack_lanes::<$width> as UnpackLanes),*] };
    }
    widths!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32)
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_block_takes_sixteen_bytes_for_each_bit_of_width() {
        for width in 0..=32u32 {
            let largest = ((1u64 << width) - 1) as u32;
            let numbers: [u32; BLOCK] =
                std::array::from_fn(|i| (u64::from(largest) >> (i as u32 % (width + 1))) as u32);
            let mut bytes = Vec::new();
            assert_eq!(u32::from(pack(&numbers, &mut bytes)), width);
            assert_eq!(bytes.len(), 16 * width as usize);
            let mut unpacked = [7; BLOCK];
            unpack(width as u8, &bytes, &mut unpacked);
            assert_eq!(unpacked, numbers, "width {width}");
        }
    }

    #[test]
    fn four_neighbours_lie_in_neighbouring_words() {
        let mut numbers = [0; BLOCK];
        numbers[4..8].copy_from_slice(&[1, 2, 3, 4]);
        numbers[127] = 0x7FFF_FFFF;
        let mut bytes = Vec::new();
        assert_eq!(pack(&numbers, &mut bytes), 31);
        let word = |i: usize| u32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().unwrap());
        // Row 1 starts at bit 31 of each lane: the lowest bit in word 0, the rest in word 1.
        assert_eq!([0, 1, 2, 3].map(word), [1 << 31, 0, 1 << 31, 0]);
        assert_eq!([4, 5, 6, 7].map(word), [0, 1, 1, 2]);
    }
}
