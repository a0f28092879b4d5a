//! The documents of a block of the driver that can still be hits.

use crate::algorithms::lanes::CHUNK;
use lanner_index::codec::BLOCK;
use lanner_index::open::{BlockBuffer, Dense};

/// Documents of a block of the driver that all lists so far have.
pub struct Candidates {
    /// How many there are.
    pub count: usize,
    /// Their numbers, ascending.
    pub documents: [u32; BLOCK],
    /// The position of each in the driver's block.
    pub origins: [u8; BLOCK],
}

impl Default for Candidates {
    fn default() -> Self {
        Candidates { count: 0, documents: [0; BLOCK], origins: [0; BLOCK] }
    }
}

/// The positions of a block in order.
const POSITIONS: [u8; BLOCK] = {
    let mut positions = [0; BLOCK];
    let mut position = 0;
    while position < BLOCK {
        positions[position] = position as u8;
        position += 1;
    }
    positions
};

impl Candidates {
    /// Writes a candidate behind those that are kept so far, with the position of its posting.
    #[inline(always)]
    pub fn keep(&mut self, candidate: usize, kept: &mut usize, position: u32, positions: &mut [u32; BLOCK]) {
        let (document, origin) = (self.documents[candidate % BLOCK], self.origins[candidate % BLOCK]);
        positions[usize::from(origin) % BLOCK] = position;
        self.documents[*kept % BLOCK] = document;
        self.origins[*kept % BLOCK] = origin;
        *kept += 1;
    }

    /// Takes some documents of a block.
    #[inline(always)]
    pub fn take(&mut self, documents: &BlockBuffer, mut members: u128) {
        if members & members.wrapping_add(1) == 0 {
            self.count = members.count_ones() as usize;
            self.documents[..self.count].copy_from_slice(&documents[..self.count]);
            self.origins[..self.count].copy_from_slice(&POSITIONS[..self.count]);
            return;
        }
        self.count = 0;
        while members != 0 {
            let position = members.trailing_zeros() as usize % BLOCK;
            members &= members - 1;
            self.documents[self.count % BLOCK] = documents[position];
            self.origins[self.count % BLOCK] = position as u8;
            self.count += 1;
        }
    }

    /// Keeps the candidates that a dense list has.
    #[inline(always)]
    pub fn keep_dense(&mut self, dense: &Dense<'_>) {
        let mut kept = 0;
        for i in 0..self.count.min(BLOCK) {
            let (document, origin) = (self.documents[i], self.origins[i]);
            let word = dense.word(document as usize / CHUNK);
            self.documents[kept] = document;
            self.origins[kept] = origin;
            kept += (word >> (document % CHUNK as u32) & 1) as usize;
        }
        self.count = kept;
    }

    /// Keeps the candidates that can reach the threshold with the most that later lists can add.
    #[inline(always)]
    pub fn keep_strong(&mut self, scores: &mut BlockBuffer, rest: u32, threshold: u32) {
        if threshold == 0 {
            return;
        }
        let mut kept = 0;
        for i in 0..self.count.min(BLOCK) {
            let (document, origin, score) = (self.documents[i], self.origins[i], scores[i]);
            (self.documents[kept], self.origins[kept], scores[kept]) = (document, origin, score);
            kept += usize::from(score.saturating_add(rest) >= threshold);
        }
        self.count = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::lanes::bits;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn candidates_are_the_documents_whose_bits_are_set(members in prop_oneof![0u128.., Just(u128::MAX)], end in 0..=BLOCK) {
            let documents: BlockBuffer = std::array::from_fn(|position| 3 * position as u32 + 7);
            for members in [members, bits(0..end)] {
                let mut candidates = Candidates::default();
                candidates.take(&documents, members);
                let expected: Vec<usize> = (0..BLOCK).filter(|position| members >> position & 1 == 1).collect();
                let origins: Vec<usize> = candidates.origins[..candidates.count].iter().map(|&at| at.into()).collect();
                prop_assert_eq!(&origins, &expected);
                let taken: Vec<u32> = expected.iter().map(|&position| documents[position]).collect();
                prop_assert_eq!(&candidates.documents[..candidates.count], &taken[..]);
            }
        }
    }
}
