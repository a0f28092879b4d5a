//! `rice`: gaps divided by a power of two, quotients in unary, remainders in binary, stored apart.
//!
//! Golomb codes with Rice's parameter, in the layout of Ding et al., *Using graphics processors for high performance IR
//! query processing*, 2009, section 6.1. A decoder computes two prefix sums, one over the remainders of fixed width and
//! one over the bits of the quotients; a document is the base plus both. A quotient is zeros ended by a one (in the
//! paper, ones ended by a zero), so that counting ones counts numbers.
//!
//! The directory byte: 0 to 31, the bits of a remainder, chosen for the fewest bytes; [`RUN`], all gaps are 0 and there
//! are no bytes.

use super::elias_fano::RUN;
use super::lanes::{Kernels, number_at, pack, packed_bytes};
use super::{BLOCK, Codec, Packed, gaps_of, less_one, unary};

/// Quotients and remainders stored apart.
pub struct Rice {
    pub(super) kernels: &'static Kernels,
}

impl Codec for Rice {
    fn encode_documents(&self, _shared: &[u8], base: u32, documents: &[u32], out: &mut Vec<u8>) -> u8 {
        encode(&gaps_of(base, documents)[..documents.len()], out)
    }

    fn decode_documents(&self, packed: Packed, base: u32, documents: &mut [u32]) {
        let width = if packed.byte > 31 { 0 } else { usize::from(packed.byte) };
        self.kernels.unpack_sums(width, packed.bytes, base, documents);
        if packed.byte < 32 {
            let bits = unary::bits_of(packed.bytes, packed_bytes(width, documents.len()));
            (self.kernels.add_unary)(bits, width as u32, 0, documents);
        }
    }

    fn encode_values(&self, _shared: &[u8], values: &[u32], out: &mut Vec<u8>) -> u8 {
        encode(&less_one(values)[..values.len()], out)
    }

    fn decode_values(&self, packed: Packed, values: &mut [u32]) {
        if packed.byte > 31 {
            return values.fill(1);
        }
        let width = usize::from(packed.byte);
        self.kernels.unpack(width, packed.bytes, 1, values);
        let mut sums = [0; BLOCK];
        let sums = &mut sums[..values.len()];
        let bits = unary::bits_of(packed.bytes, packed_bytes(width, values.len()));
        (self.kernels.add_unary)(bits, width as u32, 0, sums);
        values[0] = values[0].wrapping_add(sums[0]);
        for (value, pair) in values[1..].iter_mut().zip(sums.array_windows()) {
            let [before, sum]: &[u32; 2] = pair;
            *value = value.wrapping_add(sum.wrapping_sub(*before));
        }
    }

    fn value_at(&self, packed: Packed, count: usize, index: usize) -> u32 {
        if packed.byte > 31 {
            return 1;
        }
        let width = usize::from(packed.byte);
        let bits = unary::bits_of(packed.bytes, packed_bytes(width, count));
        let before = if index == 0 { 0 } else { unary::sum_to(bits, index - 1) };
        let quotient = unary::sum_to(bits, index).wrapping_sub(before);
        ((quotient << width) | number_at(packed.bytes, width, count, index)).wrapping_add(1)
    }

    fn length(&self, packed: Packed, count: usize) -> usize {
        if packed.byte > 31 {
            return 0;
        }
        let binary = packed_bytes(usize::from(packed.byte), count);
        binary + unary::length(unary::bits_of(packed.bytes, binary), count)
    }
}

/// Appends numbers with the parameter that takes the fewest bytes, and returns it.
fn encode(numbers: &[u32], out: &mut Vec<u8>) -> u8 {
    if numbers.iter().all(|&number| number == 0) {
        return RUN;
    }
    let quotients = |width: u32| numbers.iter().map(move |&number| number >> width);
    let bits = |width: &u32| numbers.len() as u64 * u64::from(*width) + quotients(*width).map(u64::from).sum::<u64>();
    let width = (0..32).min_by_key(bits).unwrap_or(0);
    pack(numbers, width as usize, out);
    let sums: [u32; BLOCK] = {
        let mut sum = 0;
        let mut quotients = quotients(width);
        std::array::from_fn(|_| {
            sum += quotients.next().unwrap_or(0);
            sum
        })
    };
    unary::append(sums[..numbers.len()].iter().copied(), out);
    width as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::lanes::SCALAR;

    #[test]
    fn quotients_lie_behind_remainders() {
        let codec = Rice { kernels: &SCALAR };
        let mut bytes = Vec::new();
        // Gaps 5, 9, 2, 6: with two bits apart the remainders are 1, 1, 2, 2 and the quotients 1, 2, 0, 1.
        let documents = [5, 15, 18, 25];
        assert_eq!(codec.encode_documents(&[], 0, &documents, &mut bytes), 2);
        assert_eq!(bytes, [0b10_10_01_01, 0b1011_0010]);
        let mut decoded = [0; 4];
        codec.decode_documents(Packed::alone(2, &bytes), 0, &mut decoded);
        assert_eq!(decoded, documents);
    }
}
