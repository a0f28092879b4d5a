//! `bitpack`: gaps and values less one, each in as many bits as the largest of the block needs.
//!
//! The directory byte is the width; `lanes.rs` has the layout and the papers.

use super::lanes::{Kernels, number_at, pack, packed_bytes, width_of};
use super::{Codec, Packed, gaps_of, less_one};

/// Gaps in the fewest bits.
pub struct Bitpack {
    pub(super) kernels: &'static Kernels,
}

impl Codec for Bitpack {
    fn encode_documents(&self, _shared: &[u8], base: u32, documents: &[u32], out: &mut Vec<u8>) -> u8 {
        encode(&gaps_of(base, documents)[..documents.len()], out)
    }

    fn decode_documents(&self, packed: Packed, base: u32, documents: &mut [u32]) {
        self.kernels.unpack_sums(usize::from(packed.byte), packed.bytes, base, documents);
    }

    fn encode_values(&self, _shared: &[u8], values: &[u32], out: &mut Vec<u8>) -> u8 {
        encode(&less_one(values)[..values.len()], out)
    }

    fn decode_values(&self, packed: Packed, values: &mut [u32]) {
        self.kernels.unpack(usize::from(packed.byte), packed.bytes, 1, values);
    }

    fn value_at(&self, packed: Packed, count: usize, index: usize) -> u32 {
        let width = usize::from(packed.byte);
        if width > 32 || packed.bytes.len() < packed_bytes(width, count) {
            return 1;
        }
        number_at(packed.bytes, width, count, index).wrapping_add(1)
    }

    fn length(&self, packed: Packed, count: usize) -> usize {
        packed_bytes(usize::from(packed.byte), count)
    }
}

fn encode(numbers: &[u32], out: &mut Vec<u8>) -> u8 {
    let width = width_of(numbers);
    pack(numbers, width, out);
    width as u8
}
