//! `raw`: every number as four little-endian bytes; the baseline of the other codecs.

use super::lanes::number_of_bits;
use super::{Codec, Packed};

/// Four bytes per number.
pub struct Raw;

impl Codec for Raw {
    fn encode_documents(&self, _shared: &[u8], _base: u32, documents: &[u32], out: &mut Vec<u8>) -> u8 {
        encode(documents, out)
    }

    fn decode_documents(&self, packed: Packed, _base: u32, documents: &mut [u32]) {
        decode(packed.bytes, documents);
    }

    fn encode_values(&self, _shared: &[u8], values: &[u32], out: &mut Vec<u8>) -> u8 {
        encode(values, out)
    }

    fn decode_values(&self, packed: Packed, values: &mut [u32]) {
        decode(packed.bytes, values);
    }

    fn value_at(&self, packed: Packed, _count: usize, index: usize) -> u32 {
        value_at(packed.bytes, index)
    }

    fn length(&self, _packed: Packed, count: usize) -> usize {
        4 * count
    }
}

/// Appends the numbers; the directory byte is 0.
pub fn encode(numbers: &[u32], out: &mut Vec<u8>) -> u8 {
    out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    0
}

/// Fills `numbers` as far as there are bytes.
pub fn decode(bytes: &[u8], numbers: &mut [u32]) {
    for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *number = u32::from_le_bytes(*bytes);
    }
}

/// Number `index`; missing bytes count as zeros.
pub fn value_at(bytes: &[u8], index: usize) -> u32 {
    number_of_bits(bytes, 32, index)
}
