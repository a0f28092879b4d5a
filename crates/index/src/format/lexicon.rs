//! The layout of the terms and of the hash table over them; `build::terms` writes both, `open::terms` reads them.
//!
//! The section `terms` has the terms sorted by their bytes, in groups of [`TERMS_IN_GROUP`]. A row for each group says
//! where the group and its first lists start. A group consists of
//! ```text
//! u8 per term      16 · length of the prefix shared with the group's first term + length of the rest, or LONG_TERM
//! varint per term  the size of its list: 2 · bytes if it is short, 2 · units + 1 if it is long
//! .. per term      the rest of its bytes; for LONG_TERM two varints come first, the two lengths
//! ```
//! The section `lexicon` is a hash table over the terms. The hash of a term gives its *bucket*; an entry of a bucket is
//! the number of a term and some more bits of its hash. A lookup reads the start of the bucket and
//! its entries to find a candidate, then compares the candidate's text in its group, which also has the span of
//! the list.

/// Terms that share one row of the term table.
pub const TERMS_IN_GROUP: u64 = 16;
/// Bytes of such a row.
pub const GROUP_ROW_BYTES: usize = 16;
/// The most terms of an index: the lexicon counts them in 32 bits.
pub const MAX_TERMS: u64 = u32::MAX as u64;
/// Means that the two lengths do not fit in a byte.
pub const LONG_TERM: u8 = 0xFF;

/// Terms in a bucket, on average.
const BUCKET_TERMS: u64 = 8;
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
const SEED: u64 = 0xD6E8_FEB8_6659_FD93;

/// The hash of a term: eight bytes at a time, little-endian and padded with zeros, multiplied and folded.
#[inline]
pub fn hash(term: &[u8]) -> u64 {
    let fold = |hash: u64, word: u64| {
        let product = u128::from(hash ^ word) * u128::from(MULTIPLIER);
        product as u64 ^ (product >> 64) as u64
    };
    let (words, rest) = term.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let hash = words.iter().fold(SEED ^ term.len() as u64, |hash, word| fold(hash, u64::from_le_bytes(*word)));
    fold(fold(hash, u64::from_le_bytes(last)), SEED)
}

/// The start of a group and of its first lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupRow {
    /// The group, in bytes after the rows.
    pub group: u64,
    /// Its first short list, in bytes.
    pub short: u64,
    /// Its first long list, in units.
    pub long: u64,
}

impl GroupRow {
    /// Encodes the row: 40 bits for the group, 40 for short lists, 48 for long ones. `None` if a number does not fit.
    pub fn encode(&self) -> Option<[u8; GROUP_ROW_BYTES]> {
        let fits = self.group >> 40 == 0 && self.short >> 40 == 0 && self.long >> 48 == 0;
        let row = u128::from(self.group) | u128::from(self.short) << 40 | u128::from(self.long) << 80;
        fits.then_some(row.to_le_bytes())
    }

    /// Decodes a row.
    #[inline]
    pub fn decode(row: [u8; GROUP_ROW_BYTES]) -> GroupRow {
        let row = u128::from_le_bytes(row);
        let low = |number: u128| number as u64 & ((1 << 40) - 1);
        GroupRow { group: low(row), short: low(row >> 40), long: (row >> 80) as u64 }
    }
}

/// The lengths of the shared prefix and of the rest of a term in one byte, if they fit.
pub fn short_lengths(shared: usize, added: usize) -> Option<u8> {
    let byte = (shared << 4 | added) as u8;
    (shared < 16 && added < 16 && byte != LONG_TERM).then_some(byte)
}

/// The layout of the hash table, which follows from the number of terms.
///
/// In order: `start[buckets + 1]` u32, the first entry of each bucket and the end of the last; then the entries, one
/// u32 for each term: its number in the low bits, the low bits of its hash in the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LexiconLayout {
    /// Buckets.
    pub buckets: u64,
    /// Bits of an entry that hold the number; the others are bits of the hash.
    number_bits: u32,
    terms: u64,
}

impl LexiconLayout {
    /// The layout for `terms` terms.
    pub fn new(terms: u64) -> LexiconLayout {
        let number_bits = 64 - terms.saturating_sub(1).leading_zeros();
        LexiconLayout { buckets: terms.div_ceil(BUCKET_TERMS).max(1), number_bits, terms }
    }

    /// Where the entries start.
    pub fn entries(&self) -> usize {
        4 * (self.buckets as usize + 1)
    }

    /// Bytes of the whole section.
    pub fn bytes(&self) -> usize {
        self.entries() + 4 * self.terms as usize
    }

    /// The bucket of a hash, chosen by its high bits.
    #[inline]
    pub fn bucket(&self, hash: u64) -> usize {
        ((u128::from(hash) * u128::from(self.buckets)) >> 64) as usize
    }

    /// The entry of a term: the low bits of its hash above its number.
    #[inline]
    pub fn entry(&self, hash: u64, number: u64) -> u32 {
        (hash << self.number_bits | number) as u32
    }

    /// The number in an entry, if its bits of the hash match.
    #[inline]
    pub fn number(&self, entry: u32, hash: u64) -> Option<u64> {
        let number = u64::from(entry) & ((1 << self.number_bits) - 1);
        (self.entry(hash, number) == entry).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    /// The hash is part of the format: these never change.
    #[test]
    fn the_hash_of_a_term_is_fixed() {
        let hashes = ["", "a", "b", "lanner", "eight by", "eight byt", "übergroß"].map(|term| hash(term.as_bytes()));
        let expected = [
            0xB98B_148F_3731_BB98,
            0x187D_F854_9C08_AA0D,
            0x5708_6831_CFED_F538,
            0x1750_D804_12FC_B2B9,
            0x8876_4600_60CE_29F0,
            0xACC8_537A_D99D_FEB5,
            0x56AB_7083_83BF_B6A8,
        ];
        assert_eq!(hashes, expected);
    }

    #[test]
    fn terms_spread_over_buckets_and_hash_bits() {
        let layout = LexiconLayout::new(40_000);
        let hashes: Vec<u64> = (0..40_000).map(|i| hash(format!("t{i}").as_bytes())).collect();
        let mut counts = vec![0u32; layout.buckets as usize];
        hashes.iter().for_each(|&hash| counts[layout.bucket(hash)] += 1);
        assert!(counts.iter().all(|&count| count < 40), "the fullest has {:?}", counts.iter().max());
        let entries: HashSet<u32> = hashes.iter().map(|&hash| layout.entry(hash, 0)).collect();
        assert!(entries.len() > 28_000, "of 65,536 beside 16 bits of the number: {}", entries.len());
    }

    #[test]
    fn a_row_beyond_its_bits_is_refused() {
        let row = GroupRow { group: 1, short: 2, long: 3 };
        assert!(GroupRow { group: 1 << 40, ..row }.encode().is_none());
        assert!(GroupRow { short: 1 << 40, ..row }.encode().is_none());
        assert!(GroupRow { long: 1 << 48, ..row }.encode().is_none());
    }

    proptest! {
        #[test]
        fn a_row_is_read_as_written(group in 0u64..1 << 40, short in 0u64..1 << 40, long in 0u64..1 << 48) {
            let row = GroupRow { group, short, long };
            prop_assert_eq!(GroupRow::decode(row.encode().unwrap()), row);
        }

        #[test]
        fn an_entry_gives_its_number_back(terms in 1..=MAX_TERMS, number: u64, hash: u64, other: u64) {
            let (layout, number) = (LexiconLayout::new(terms), number % terms);
            let entry = layout.entry(hash, number);
            prop_assert_eq!(layout.number(entry, hash), Some(number));
            prop_assert!(layout.bucket(hash) < layout.buckets as usize);
            let is_alike = layout.entry(hash, 0) == layout.entry(other, 0);
            prop_assert_eq!(layout.number(entry, other), is_alike.then_some(number));
        }
    }
}
