//! Accumulators of score-at-a-time: one for each document, in pages that are zeroed on first touch.
//!
//! Jia, Trotman and O'Keefe, *Efficient Accumulator Initialisation*, ADCS 2010: zeroing all accumulators for each query
//! costs more than the query, so a flag for each page says whether it still has the sums of an earlier query. Trotman
//! and Crane keep both in arrays of a size known to the compiler ([`Array`]) instead of allocated ones ([`Dynamic`]),
//! which saves loading their addresses for each posting.

use crate::algorithms::sweep::Score;

/// The most documents of an [`Array`]: enough for GOV2.
pub const LARGEST_ARRAY: usize = 1 << 25;
/// The most flags of an [`Array`]: a page has at least half the square root of the documents.
const LARGEST_FLAGS: usize = 1 << 14;
/// The positions of an [`Array`]'s flags and of the shift from document to page.
const FLAGS: usize = LARGEST_ARRAY;
const SHIFT: usize = LARGEST_ARRAY + LARGEST_FLAGS;
const ARRAY: usize = SHIFT + 1;

/// Accumulators with flags.
pub trait Pages<S> {
    /// Marks all pages dirty, for a collection of `documents`.
    fn reset(&mut self, documents: usize);

    /// Returns the accumulator of a document, after zeroing its page on the first touch; `None` for a document that
    /// does not exist, from a damaged list.
    fn touch(&mut self, document: u32) -> Option<&mut S>;

    /// Returns the score of a document that was touched.
    fn score(&self, document: u32) -> S;
}

/// Returns `floor(log2(sqrt(documents)))`, the binary logarithm of the documents in a page.
pub fn page_shift(documents: usize) -> u32 {
    documents.max(1).ilog2() / 2
}

/// Accumulators and flags allocated for the collection.
#[derive(Default)]
pub struct Dynamic<S> {
    scores: Vec<S>,
    /// `dirty[page]`: 1 until the page is touched.
    dirty: Vec<u8>,
    shift: u32,
}

impl<S: Score> Pages<S> for Dynamic<S> {
    fn reset(&mut self, documents: usize) {
        self.shift = page_shift(documents);
        self.scores.resize(documents, S::default());
        self.dirty.clear();
        self.dirty.resize((documents >> self.shift) + 1, 1);
    }

    #[inline(always)]
    fn touch(&mut self, document: u32) -> Option<&mut S> {
        let page = (document >> self.shift) as usize;
        let flag = self.dirty.get_mut(page)?;
        if *flag != 0 {
            *flag = 0;
            zero_page(&mut self.scores, page, self.shift);
        }
        self.scores.get_mut(document as usize)
    }

    #[inline(always)]
    fn score(&self, document: u32) -> S {
        self.scores.get(document as usize).copied().unwrap_or_default()
    }
}

/// Accumulators, then flags, then the shift, in one array of a size known to the compiler: an access is an offset from
/// one address in a register. The part that a collection does not use is never touched and so takes no memory.
pub type Array<S> = [S; ARRAY];

/// Allocates an array of zeros.
pub fn new_array<S: Score>() -> Box<Array<S>> {
    let zeros = vec![S::default(); ARRAY].into_boxed_slice();
    zeros.try_into().unwrap_or_else(|_| unreachable!("the slice has the size of the array"))
}

impl<S: Score> Pages<S> for Array<S> {
    fn reset(&mut self, documents: usize) {
        let shift = page_shift(documents);
        self[SHIFT] = S::of(shift);
        self[FLAGS..=FLAGS + (documents >> shift).min(LARGEST_FLAGS - 1)].fill(S::of(1));
    }

    #[inline(always)]
    fn touch(&mut self, document: u32) -> Option<&mut S> {
        let shift = self[SHIFT].units();
        let page = (document >> shift) as usize;
        if page >= LARGEST_FLAGS || document as usize >= LARGEST_ARRAY {
            return None;
        }
        if self[FLAGS + page] != S::default() {
            self[FLAGS + page] = S::default();
            zero_page(&mut self[..LARGEST_ARRAY], page, shift);
        }
        Some(&mut self[document as usize])
    }

    #[inline(always)]
    fn score(&self, document: u32) -> S {
        self[document as usize & (LARGEST_ARRAY - 1)]
    }
}

#[cold]
#[inline(never)]
fn zero_page<S: Score>(scores: &mut [S], page: usize, shift: u32) {
    let start = (page << shift).min(scores.len());
    let end = ((page + 1) << shift).min(scores.len());
    scores[start..end].fill(S::default());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums_of_two_queries<P: Pages<u16> + ?Sized>(pages: &mut P, documents: u32) {
        for query in 0..2u16 {
            pages.reset(documents as usize);
            for document in (0..documents).step_by(7) {
                for weight in [3, query] {
                    let sum = pages.touch(document).unwrap();
                    *sum = sum.plus(weight);
                }
            }
            assert!((0..documents).step_by(7).all(|document| pages.score(document) == 3 + query));
        }
    }

    #[test]
    fn a_page_is_zeroed_before_the_second_query_adds_to_it() {
        for documents in [1, 2, 3, 100, 65_537] {
            sums_of_two_queries(&mut Dynamic::default(), documents);
            sums_of_two_queries(&mut *new_array(), documents);
        }
    }

    #[test]
    fn pages_have_the_size_of_the_paper() {
        let shifts = [1, 15, 16, 146_410, 25_205_179].map(page_shift);
        assert_eq!(shifts, [0, 1, 2, 8, 12]);
        for documents in [1, 2, 3, 5, 1 << 24, (1 << 24) - 1, LARGEST_ARRAY] {
            assert!(documents >> page_shift(documents) < LARGEST_FLAGS, "{documents}");
        }
    }

    #[test]
    fn a_document_that_is_not_there_has_no_accumulator() {
        let mut pages = Dynamic::<u16>::default();
        pages.reset(10);
        assert_eq!(pages.touch(10), None);
        assert_eq!(pages.touch(u32::MAX), None);
        let mut pages = new_array::<u16>();
        pages.reset(10);
        assert_eq!(pages.touch(u32::MAX), None);
    }
}
