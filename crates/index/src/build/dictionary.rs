//! The terms of a batch or a run, numbered by first occurrence.

use crate::format::lexicon::hash;
use hashbrown::HashTable;

/// Terms of up to this many bytes are identified by their key and length alone.
const KEY_BYTES: usize = 8;

/// A map from terms to numbers and back.
#[derive(Default)]
pub struct Dictionary {
    table: HashTable<u32>,
    rows: Vec<Row>,
    text: Vec<u8>,
}

/// A term of the dictionary.
#[derive(Clone, Copy)]
struct Row {
    /// The bytes of a short term, or a hash of a long one.
    key: u64,
    start: usize,
    length: u32,
}

impl Dictionary {
    /// An empty dictionary with capacity for `terms` terms.
    pub fn with_capacity(terms: usize) -> Dictionary {
        Dictionary { table: HashTable::with_capacity(terms), rows: Vec::with_capacity(terms), text: Vec::new() }
    }

    /// The number of a term; a new term gets the next number.
    #[inline]
    pub fn number(&mut self, term: &[u8]) -> u32 {
        self.number_with_key(key(term), term)
    }

    /// The number of a term of another dictionary.
    pub fn number_of(&mut self, other: &Dictionary, number: u32) -> u32 {
        let row = &other.rows[number as usize];
        self.number_with_key(row.key, other.text_of(row))
    }

    #[inline]
    fn number_with_key(&mut self, key: u64, term: &[u8]) -> u32 {
        let Dictionary { table, rows, text } = self;
        let is_same = |&number: &u32| {
            let row = &rows[number as usize];
            row.key == key
                && row.length as usize == term.len()
                && (term.len() <= KEY_BYTES || text[row.start..][..term.len()] == *term)
        };
        let spread_key = spread(key, term.len() as u32);
        if let Some(&number) = table.find(spread_key, is_same) {
            return number;
        }
        let number = rows.len() as u32;
        rows.push(Row { key, start: text.len(), length: term.len() as u32 });
        text.extend_from_slice(term);
        table.insert_unique(spread_key, number, |&number| {
            let row = &rows[number as usize];
            spread(row.key, row.length)
        });
        number
    }

    /// The text of a term.
    pub fn text(&self, number: u32) -> &[u8] {
        self.text_of(&self.rows[number as usize])
    }

    fn text_of(&self, row: &Row) -> &[u8] {
        &self.text[row.start..][..row.length as usize]
    }

    /// The number of terms.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Bytes of memory in use, including the spare capacity of vectors.
    pub fn bytes(&self) -> usize {
        self.text.capacity() + self.rows.capacity() * size_of::<Row>() + self.table.allocation_size()
    }

    /// The numbers of the terms, sorted by the bytes of the terms.
    pub fn sorted(&self) -> Vec<u32> {
        let prefixed = |(number, row): (usize, &Row)| (prefix(self.text_of(row)), number as u32);
        let mut sorted: Vec<(u64, u32)> = self.rows.iter().enumerate().map(prefixed).collect();
        // The first eight bytes decide most comparisons.
        sorted.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.text(a.1).cmp(self.text(b.1))));
        sorted.into_iter().map(|(_, number)| number).collect()
    }
}

/// The first eight bytes as a big-endian number.
fn prefix(text: &[u8]) -> u64 {
    let mut first = [0; 8];
    let length = text.len().min(8);
    first[..length].copy_from_slice(&text[..length]);
    u64::from_be_bytes(first)
}

/// The bytes of a term of up to eight bytes, which identify it together with its length; a hash of a longer one.
#[inline]
fn key(term: &[u8]) -> u64 {
    let four = |at: usize| u64::from(u32::from_le_bytes([term[at], term[at + 1], term[at + 2], term[at + 3]]));
    match term.len() {
        0 => 0,
        length @ 1..=3 => u64::from(term[0]) | u64::from(term[length / 2]) << 8 | u64::from(term[length - 1]) << 16,
        length @ 4..=8 => four(0) | four(length - 4) << 32,
        _ => hash(term),
    }
}

/// Hashes a key and a length to 64 bits.
#[inline]
fn spread(key: u64, length: u32) -> u64 {
    let mixed = key ^ u64::from(length).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    let product = u128::from(mixed) * 0x9E37_79B9_7F4A_7C15;
    (product as u64) ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn terms_keep_their_numbers_and_come_out_sorted(terms in prop::collection::vec("[a-c\u{0}é]{0,12}", 0..200)) {
            let [mut dictionary, mut copy] = [Dictionary::default(), Dictionary::default()];
            let mut expected = BTreeMap::new();
            for term in &terms {
                let next = expected.len() as u32;
                let number = *expected.entry(term.as_bytes()).or_insert(next);
                prop_assert_eq!(dictionary.number(term.as_bytes()), number);
                prop_assert_eq!(copy.number_of(&dictionary, number), number);
            }
            prop_assert_eq!(dictionary.len(), expected.len());
            let sorted: Vec<&[u8]> = dictionary.sorted().into_iter().map(|number| dictionary.text(number)).collect();
            prop_assert_eq!(sorted, expected.into_keys().collect::<Vec<_>>());
        }
    }
}
