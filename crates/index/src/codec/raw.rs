//! `raw`: every number as four little-endian bytes; what the other codecs are measured against.

use super::Codec;

/// Four bytes a number.
pub struct Raw;

impl Codec for Raw {
    fn encode_documents(&self, _base: u32, documents: &[u32], out: &mut Vec<u8>) -> u8 {
        self.encode_values(documents, out)
    }

    fn decode_documents(&self, byte: u8, bytes: &[u8], _base: u32, documents: &mut [u32]) {
        self.decode_values(byte, bytes, documents);
    }

    fn encode_values(&self, values: &[u32], out: &mut Vec<u8>) -> u8 {
        out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        0
    }

    fn decode_values(&self, _byte: u8, bytes: &[u8], values: &mut [u32]) {
        for (value, bytes) in values.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *value = u32::from_le_bytes(*bytes);
        }
    }

    fn length(&self, _byte: u8, count: usize) -> usize {
        4 * count
    }
}
