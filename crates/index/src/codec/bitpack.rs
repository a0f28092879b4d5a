//! `bitpack`: gaps and values less one, each in as many bits as the largest of the block needs.
//!
//! The directory byte is the width; `lanes.rs` has the layout and the papers.

use super::lanes::{Kernels, number_of_bits, number_of_full, pack, packed_bytes, width_of};
use super::{BLOCK, Codec, gaps_of, less_one};

/// Gaps in the fewest bits.
pub struct Bitpack {
    kernels: &'static Kernels,
}

impl Bitpack {
    /// Decodes with these kernels.
    pub const fn new(kernels: &'static Kernels) -> Bitpack {
        Bitpack { kernels }
    }
}

impl Codec for Bitpack {
    fn encode_documents(&self, base: u32, documents: &[u32], out: &mut Vec<u8>) -> u8 {
        let gaps = &gaps_of(base, documents)[..documents.len()];
        let width = width_of(gaps);
        pack(gaps, width, out);
        width as u8
    }

    fn decode_documents(&self, byte: u8, bytes: &[u8], base: u32, documents: &mut [u32]) {
        self.kernels.unpack_sums(usize::from(byte), bytes, base, documents);
    }

    fn encode_values(&self, values: &[u32], out: &mut Vec<u8>) -> u8 {
        let numbers = &less_one(values)[..values.len()];
        let width = width_of(numbers);
        pack(numbers, width, out);
        width as u8
    }

    fn decode_values(&self, byte: u8, bytes: &[u8], values: &mut [u32]) {
        self.kernels.unpack(usize::from(byte), bytes, 1, values);
    }

    fn value_at(&self, byte: u8, bytes: &[u8], count: usize, index: usize) -> u32 {
        let width = usize::from(byte);
        if width > 32 || bytes.len() < packed_bytes(width, count) {
            return 1;
        }
        let number =
            if count == BLOCK { number_of_full(bytes, width, index) } else { number_of_bits(bytes, width, index) };
        number.wrapping_add(1)
    }

    fn length(&self, byte: u8, count: usize) -> usize {
        packed_bytes(usize::from(byte), count)
    }
}
