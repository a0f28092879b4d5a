//! Inverted batches held in memory: one dictionary for all of them, and the pieces of the list of each term.

use super::dictionary::Dictionary;
use super::invert::Inverted;
use crate::format::varint;

/// Ends a chain of pieces.
const END: u32 = u32::MAX;

/// Inverted batches that will become a run.
#[derive(Default)]
pub struct Accumulator {
    dictionary: Dictionary,
    /// A row for each term.
    terms: Vec<Term>,
    pieces: Vec<Piece>,
    batches: Vec<Held>,
    held_bytes: usize,
}

/// The chain of pieces of a term.
struct Term {
    count: u32,
    first: u32,
    last: u32,
}

/// The postings of a term in one batch.
struct Piece {
    next: u32,
    batch: u32,
    start: u32,
    length: u32,
}

struct Held {
    /// Number of the batch's first document.
    base: u32,
    postings: Vec<u8>,
}

impl Accumulator {
    /// Adds the postings of the next batch, whose first document has the number `base`.
    pub fn add(&mut self, base: u32, inverted: &mut Inverted) {
        let batch = self.batches.len() as u32;
        let mut start = 0;
        for (number, row) in inverted.terms.iter().enumerate() {
            let term = self.dictionary.number_of(&inverted.dictionary, number as u32) as usize;
            let piece = self.pieces.len() as u32;
            match self.terms.get_mut(term) {
                Some(term) => {
                    self.pieces[term.last as usize].next = piece;
                    term.last = piece;
                    term.count += row.count;
                }
                None => self.terms.push(Term { count: row.count, first: piece, last: piece }),
            }
            self.pieces.push(Piece { next: END, batch, start, length: row.postings_end - start });
            start = row.postings_end;
        }
        let postings = std::mem::take(&mut inverted.postings);
        self.held_bytes += postings.capacity();
        self.batches.push(Held { base, postings });
    }

    /// Bytes of memory in use, including the spare capacity of vectors.
    pub fn bytes(&self) -> usize {
        self.held_bytes
            + self.dictionary.bytes()
            + self.terms.capacity() * size_of::<Term>()
            + self.pieces.capacity() * size_of::<Piece>()
    }

    /// Whether the next batch could exceed the number of pieces that 32 bits can count.
    pub fn is_full(&self) -> bool {
        self.pieces.len() >= (END / 2) as usize
    }

    /// Whether there are no batches.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Sorts the terms by their bytes.
    pub fn sorted(self) -> Sorted {
        Sorted { numbers: self.dictionary.sorted().into_iter(), accumulator: self }
    }
}

/// The terms of an accumulator, sorted by their bytes.
pub struct Sorted {
    /// The numbers of the terms still to come.
    numbers: std::vec::IntoIter<u32>,
    accumulator: Accumulator,
}

impl Sorted {
    /// Puts the next term into `text`, appends its pieces to `pieces` and returns its number of documents.
    ///
    /// A piece is its first possible document (varint), its length in bytes (varint), and packed postings.
    pub fn next(&mut self, text: &mut Vec<u8>, pieces: &mut Vec<u8>) -> Option<u32> {
        let number = self.numbers.next()?;
        let term = &self.accumulator.terms[number as usize];
        text.clear();
        text.extend_from_slice(self.accumulator.dictionary.text(number));
        let mut next = term.first;
        while next != END {
            let piece = &self.accumulator.pieces[next as usize];
            let batch = &self.accumulator.batches[piece.batch as usize];
            varint::write(u64::from(batch.base), pieces);
            varint::write(u64::from(piece.length), pieces);
            pieces.extend_from_slice(&batch.postings[piece.start as usize..][..piece.length as usize]);
            next = piece.next;
        }
        Some(term.count)
    }
}
