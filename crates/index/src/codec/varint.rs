//! `varint`: gaps in groups of seven bits, a byte each, the high bit set on all bytes of a number but the last.
//!
//! Only tests have this codec. It shows that a codec without a GPU decoder needs no more than its file and its row in
//! the table: queries of such an index are answered by the CPU.

use super::{BLOCK, Codec, Packed, gaps_of, less_one};

/// Seven bits a byte.
pub struct Varint;

impl Codec for Varint {
    fn encode_documents(&self, _shared: &[u8], base: u32, documents: &[u32], out: &mut Vec<u8>) -> u8 {
        encode(&gaps_of(base, documents)[..documents.len()], out)
    }

    fn decode_documents(&self, packed: Packed, base: u32, documents: &mut [u32]) {
        decode(packed.bytes, documents);
        let mut next = base;
        for document in documents {
            *document = document.wrapping_add(next);
            next = document.wrapping_add(1);
        }
    }

    fn encode_values(&self, _shared: &[u8], values: &[u32], out: &mut Vec<u8>) -> u8 {
        encode(&less_one(values)[..values.len()], out)
    }

    fn decode_values(&self, packed: Packed, values: &mut [u32]) {
        decode(packed.bytes, values);
        values.iter_mut().for_each(|value| *value = value.wrapping_add(1));
    }

    fn length(&self, packed: Packed, count: usize) -> usize {
        decode(packed.bytes, &mut [0; BLOCK][..count])
    }
}

/// Appends the numbers; the directory byte is 0.
fn encode(numbers: &[u32], out: &mut Vec<u8>) -> u8 {
    for &number in numbers {
        let groups = (38 - (number | 1).leading_zeros()) / 7;
        out.extend((0..groups).map(|group| (number >> (7 * group)) as u8 & 0x7F | u8::from(group + 1 < groups) << 7));
    }
    0
}

/// Fills `numbers`, with zeros where bytes are missing, and returns how many bytes they take.
fn decode(bytes: &[u8], numbers: &mut [u32]) -> usize {
    let mut rest = bytes.iter();
    for number in numbers {
        *number = 0;
        for group in 0..5 {
            let byte = rest.next().copied().unwrap_or(0);
            *number |= u32::from(byte & 0x7F) << (7 * group);
            if byte < 0x80 {
                break;
            }
        }
    }
    bytes.len() - rest.len()
}
