//! Inversion of a batch: from documents to the postings of each term, in document order.
//!
//! A batch is small enough for its dictionary and postings to stay in the cache. A posting is packed as the varint
//! `2 · gap + 1` if its frequency is 1, else as the varint `2 · gap` and the frequency as a varint.

use super::dictionary::Dictionary;
use super::documents::{DocumentRows, StoredBlocks};
use super::{BuildError, BuildOptions};
use crate::corpus::{Batch, ParsedDocument, Problem, is_separator};
use crate::format::varint;
use crate::text::{Analyzer, Scratch};

/// The largest weight of a term in a vector; larger ones are cut to it.
const MAX_LEARNED: f32 = 16_777_216.0;

/// The postings of a batch and the data of its documents.
#[derive(Default)]
pub struct Inverted {
    /// Documents of the batch.
    pub documents: u32,
    /// Ids and lengths.
    pub rows: DocumentRows,
    /// Stored fields.
    pub stored: StoredBlocks,
    /// The terms.
    pub dictionary: Dictionary,
    /// A row for each term.
    pub terms: Vec<TermRow>,
    /// The packed postings of the terms, in the order of `terms`.
    pub postings: Vec<u8>,
    /// Records that were skipped.
    pub problems: Vec<Problem>,
    /// In a strict build, the first id that a run cannot hold as it is.
    pub separated_id: Option<Problem>,
    /// Documents without any of the indexed fields.
    pub without_fields: u32,
    /// The fields that the first of them have instead.
    pub other_fields: Vec<String>,
}

/// The postings of a term of a batch.
#[derive(Clone, Copy)]
pub struct TermRow {
    /// Documents of the batch that contain it.
    pub count: u32,
    /// The end of its packed postings.
    pub postings_end: u32,
}

/// The distinct terms of each document with their frequencies.
#[derive(Default)]
struct Pairs {
    /// Term and frequency, document after document.
    rows: Vec<(u32, u32)>,
    /// `latest[term]`: the last document with the term, plus one, and its position in `rows`.
    latest: Vec<(u32, u32)>,
}

impl Pairs {
    /// The frequency of a term in the current document, initially 0. A new term must have the next number.
    #[inline]
    fn value(&mut self, term: u32, document: u32) -> &mut u32 {
        if term as usize == self.latest.len() {
            self.latest.push((0, 0));
        }
        let (seen, position) = &mut self.latest[term as usize];
        if *seen != document + 1 {
            (*seen, *position) = (document + 1, self.rows.len() as u32);
            self.rows.push((term, 0));
        }
        &mut self.rows[*position as usize].1
    }
}

/// Inverts one batch after the other and reuses its memory.
pub struct Inverter {
    analyzer: Analyzer,
    /// Whether documents are vectors of learned weights instead of text.
    learned: bool,
    strict: bool,
    scratch: Scratch,
    pairs: Pairs,
    /// `ends[document]`: the end of its pairs.
    ends: Vec<u32>,
    grouped: Vec<(u32, u32)>,
}

impl Inverter {
    /// An inverter of texts, or of vectors if `learned`.
    pub fn new(options: &BuildOptions, learned: bool) -> Inverter {
        Inverter {
            analyzer: options.analyzer.clone(),
            learned,
            strict: options.strict,
            scratch: Scratch::default(),
            pairs: Pairs::default(),
            ends: Vec::new(),
            grouped: Vec::new(),
        }
    }

    /// Inverts a batch.
    pub fn invert(&mut self, batch: &Batch) -> Result<Inverted, BuildError> {
        // Batches are alike: expect as many terms as in the last one.
        let dictionary = Dictionary::with_capacity(self.pairs.latest.len());
        let mut inverted = Inverted { dictionary, ..Default::default() };
        self.pairs.latest.clear();
        self.pairs.rows.clear();
        self.ends.clear();
        let mut added = Ok(());
        batch.documents(&mut |record| match record {
            Ok(_) if added.is_err() => {}
            Ok(document) => added = self.add(document, &mut inverted),
            Err(problem) => inverted.problems.push(problem),
        });
        added?;
        inverted.stored.finish()?;
        self.group(&mut inverted);
        Ok(inverted)
    }

    fn add(&mut self, document: &ParsedDocument<'_>, inverted: &mut Inverted) -> Result<(), BuildError> {
        if self.strict && document.id.contains(is_separator) {
            inverted.separated_id.get_or_insert_with(|| separated_id(document.source, document.line, document.id));
        }
        if document.indexed.is_empty() && !self.learned {
            inverted.without_fields += 1;
            let new = document.other_fields.iter().filter(|name| !inverted.other_fields.contains(name));
            let new: Vec<String> = new.cloned().collect();
            inverted.other_fields.extend(new);
        }
        let number = inverted.documents;
        let length = if self.learned {
            self.add_vector(document, number, inverted)
        } else {
            self.add_text(document, number, inverted)
        };
        self.ends.push(self.pairs.rows.len() as u32);
        inverted.documents += 1;
        inverted.rows.push(document.id, length);
        inverted.stored.push(&document.stored)
    }

    fn add_text(&mut self, document: &ParsedDocument<'_>, number: u32, inverted: &mut Inverted) -> u32 {
        let Inverter { analyzer, scratch, pairs, .. } = self;
        let mut length = 0u32;
        for text in &document.indexed {
            analyzer.analyze(text, scratch, &mut |term| {
                let term = inverted.dictionary.number(term.as_bytes());
                *pairs.value(term, number) += 1;
                length = length.saturating_add(1);
            });
        }
        length
    }

    /// A learned weight is stored in place of the frequency, as the bits of an `f32`; the initial 0 is 0.0.
    fn add_vector(&mut self, document: &ParsedDocument<'_>, number: u32, inverted: &mut Inverted) -> u32 {
        let mut length = 0u32;
        for (term, weight) in &document.vector {
            let weight = weight.min(MAX_LEARNED);
            let term = inverted.dictionary.number(term.as_bytes());
            let sum = self.pairs.value(term, number);
            *sum = (f32::from_bits(*sum) + weight).min(MAX_LEARNED).to_bits();
            length = length.saturating_add(learned_frequency(weight));
        }
        length
    }

    /// Sorts the pairs by term and document, and packs them.
    fn group(&mut self, inverted: &mut Inverted) {
        let terms = inverted.dictionary.len();
        let mut starts = vec![0u32; terms + 1];
        for &(term, _) in &self.pairs.rows {
            starts[term as usize + 1] += 1;
        }
        inverted.terms.reserve_exact(terms);
        for term in 0..terms {
            inverted.terms.push(TermRow { count: starts[term + 1], postings_end: 0 });
            starts[term + 1] += starts[term];
        }
        self.grouped.clear();
        self.grouped.resize(self.pairs.rows.len(), (0, 0));
        let mut at = 0;
        for (document, &end) in self.ends.iter().enumerate() {
            for &(term, frequency) in &self.pairs.rows[at..end as usize] {
                let next = &mut starts[term as usize];
                self.grouped[*next as usize] = (document as u32, frequency);
                *next += 1;
            }
            at = end as usize;
        }
        inverted.postings.reserve(self.pairs.rows.len() * 3 / 2);
        let mut postings = &self.grouped[..];
        for row in &mut inverted.terms {
            let (own, rest) = postings.split_at(row.count as usize);
            pack_postings(own, &mut inverted.postings);
            row.postings_end = inverted.postings.len() as u32;
            postings = rest;
        }
        inverted.postings.shrink_to_fit();
    }
}

/// The problem with an id that a run cannot hold as it is.
pub fn separated_id(source: &str, line: u64, id: &str) -> Problem {
    let what =
        format!("the id {id:?} has white space or control characters, which TREC runs and judgements cannot hold");
    Problem { source: source.to_owned(), line, what }
}

/// The frequency stored for a learned weight: the nearest integer, at least 1.
pub fn learned_frequency(weight: f32) -> u32 {
    (weight.round_ties_even() as u32).max(1)
}

/// Appends postings in the packed form of this module.
pub fn pack_postings(postings: &[(u32, u32)], out: &mut Vec<u8>) {
    let mut next = 0;
    for &(document, frequency) in postings {
        let gap = u64::from(document - next);
        next = document + 1;
        if frequency == 1 {
            varint::write(gap << 1 | 1, out);
        } else {
            varint::write(gap << 1, out);
            varint::write(u64::from(frequency), out);
        }
    }
}

/// Calls `visit` with each document and frequency of packed postings; `None` if they end in the middle of one.
#[inline]
pub fn unpack_postings(mut bytes: &[u8], base: u32, mut visit: impl FnMut(u32, u32)) -> Option<()> {
    let mut next = base;
    while !bytes.is_empty() {
        let head = varint::read(&mut bytes)?;
        let document = next.wrapping_add((head >> 1) as u32);
        let frequency = if head & 1 == 1 { 1 } else { varint::read(&mut bytes)? as u32 };
        visit(document, frequency);
        next = document.wrapping_add(1);
    }
    Some(())
}

/// Does the same for all pieces of a term (see [`super::accumulate::Sorted::next`]).
#[inline]
pub fn unpack_pieces(mut pieces: &[u8], mut visit: impl FnMut(u32, u32)) -> Option<()> {
    while !pieces.is_empty() {
        let base = varint::read_u32(&mut pieces)?;
        let length = varint::read(&mut pieces)? as usize;
        unpack_postings(varint::take(&mut pieces, length)?, base, &mut visit)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packed_postings_come_back(gaps in prop::collection::vec((0u32..5000, 1u32..), 0..300), base in 0u32..9999) {
            let mut next = 0;
            let postings: Vec<(u32, u32)> = gaps.iter().map(|&(gap, frequency)| {
                let document = next + gap;
                next = document + 1;
                (document, frequency)
            }).collect();
            let mut bytes = Vec::new();
            pack_postings(&postings, &mut bytes);
            let mut found = Vec::new();
            prop_assert_eq!(unpack_postings(&bytes, base, |d, f| found.push((d - base, f))), Some(()));
            prop_assert_eq!(found, postings);
        }
    }
}
