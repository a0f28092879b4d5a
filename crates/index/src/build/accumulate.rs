//! Batches held in memory until the budget is spent: one dictionary over all of them, pieces of postings for each term.

use super::dictionary::Dictionary;
use super::invert::Inverted;
use crate::format::varint;

/// No further piece.
const END: u32 = u32::MAX;

/// The held batches of one run.
#[derive(Default)]
pub struct Accumulator {
    dictionary: Dictionary,
    /// A row for each term.
    terms: Vec<Term>,
    pieces: Vec<Piece>,
    batches: Vec<Held>,
    held_bytes: usize,
}

/// The pieces of a term, first to last.
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
    /// Takes the postings of the next batch, whose first document has the number `base`.
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

    /// Bytes of memory in use, counting what growing vectors hold in reserve.
    pub fn bytes(&self) -> usize {
        self.held_bytes
            + self.dictionary.bytes()
            + self.terms.capacity() * size_of::<Term>()
            + self.pieces.capacity() * size_of::<Piece>()
    }

    /// Whether the next batch could bring more pieces than can be numbered.
    pub fn is_full(&self) -> bool {
        self.pieces.len() >= (END / 2) as usize
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// The terms in the order of their bytes.
    pub fn sorted(self) -> Sorted {
        Sorted { order: self.dictionary.sorted().into_iter(), accumulator: self }
    }
}

/// An accumulator read term by term.
pub struct Sorted {
    order: std::vec::IntoIter<u32>,
    accumulator: Accumulator,
}

impl Sorted {
    /// Leaves the next term in `text`, appends its pieces to `pieces`, and returns its document count.
    ///
    /// A piece is a varint of its base, a varint of its bytes, and packed postings.
    pub fn next(&mut self, text: &mut Vec<u8>, pieces: &mut Vec<u8>) -> Option<u32> {
        let number = self.order.next()?;
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
