//! A cursor walks a list in document order and decodes only the blocks that it is moved to.
//!
//! Documents are decoded when a block is entered, weights when the first posting of the block is scored. In a damaged
//! file documents may not ascend; a cursor still advances with each call, stays inside the plan's range and ends.

use super::weigher::Weigher;
use crate::query::answer::Work;
use crate::query::plan::PlannedList;
use lanner_index::codec::BLOCK;
use lanner_index::format::IndexError;
use lanner_index::open::{BlockBuffer, Index, List};
use std::ops::Range;

/// The document of a cursor after its last posting: greater than any.
pub const END: u32 = u32::MAX;

/// A position in a list.
pub struct Cursor<'a, W> {
    list: List<'a>,
    weigher: W,
    multiplier: f32,
    /// The largest weight of the list.
    bound: u32,
    /// Blocks that can have documents of the plan's range.
    blocks: Range<usize>,
    /// The end of the plan's range.
    end: u32,
    /// The current block, and whether its documents and its weights are decoded.
    block: usize,
    has_documents: bool,
    has_weights: bool,
    /// The largest weight of the block.
    block_bound: u32,
    /// The current posting in the block, and its document.
    position: usize,
    document: u32,
    /// `documents[..count]` and `weights[..count]`: the block, decoded.
    count: usize,
    documents: BlockBuffer,
    weights: BlockBuffer,
    postings_decoded: u64,
    blocks_decoded: u64,
}

impl<'a, W: Weigher> Cursor<'a, W> {
    /// Opens a list at its first posting in `range`.
    pub fn open(
        index: &'a Index,
        planned: &PlannedList,
        weigher: W,
        range: Range<u32>,
    ) -> Result<Cursor<'a, W>, IndexError> {
        let list = index.list_at(planned.span)?;
        let first = list.find_block(0, range.start);
        let last = list.find_block(first, range.end.saturating_sub(1));
        let mut cursor = Cursor {
            list,
            weigher,
            multiplier: planned.multiplier,
            bound: planned.bound,
            blocks: first..(last + 1).min(list.blocks()).max(first),
            end: range.end,
            block: first,
            has_documents: false,
            has_weights: false,
            block_bound: 0,
            position: 0,
            document: END,
            count: 0,
            documents: [0; BLOCK],
            weights: [0; BLOCK],
            postings_decoded: 0,
            blocks_decoded: 0,
        };
        cursor.move_to_block(first);
        cursor.seek_block(range.start);
        Ok(cursor)
    }

    /// The document of the current posting; [`END`] after the last one.
    #[inline]
    pub fn document(&self) -> u32 {
        self.document
    }

    /// The largest weight of the list.
    #[inline]
    pub fn bound(&self) -> u32 {
        self.bound
    }

    /// Moves to the next posting and returns its document.
    #[inline]
    pub fn advance(&mut self) -> u32 {
        if self.position + 1 < self.count {
            self.position += 1;
            return self.settle();
        }
        self.move_to_block(self.block.saturating_add(1));
        self.decode();
        self.settle()
    }

    /// Moves to the first posting whose document is at least `target`, which may be the current one, and returns its
    /// document.
    #[inline]
    pub fn seek(&mut self, target: u32) -> u32 {
        // In a block that is not decoded, `document` is stale and before the target.
        if self.document >= target || (self.has_documents && self.find_in_block(target)) {
            return self.document;
        }
        self.seek_block(target)
    }

    /// Searches the blocks after the current one, or from the current one on if it is not decoded yet.
    fn seek_block(&mut self, target: u32) -> u32 {
        loop {
            self.skip_to_block(target);
            self.decode();
            if self.count == 0 || self.find_in_block(target) {
                return self.settle();
            }
        }
    }

    /// An upper bound of the list's weight for `target`, which must not lie before the current posting. Decodes
    /// nothing. The cursor may be left in a block that is not decoded: only `bound_at` and `seek` may follow.
    #[inline]
    pub fn bound_at(&mut self, target: u32) -> u32 {
        if self.document > target {
            return 0;
        }
        let is_within = self.has_documents && self.documents[..self.count].last().is_some_and(|&last| last >= target);
        if !is_within {
            self.skip_to_block(target);
        }
        self.block_bound
    }

    /// Skips blocks whose bound is below `least`, and returns the document after them.
    #[inline]
    pub fn skip_light_blocks(&mut self, least: u32) -> u32 {
        if self.block_bound >= least || self.document == END {
            return self.document;
        }
        while self.block < self.blocks.end && self.block_bound < least {
            self.move_to_block(self.block + 1);
        }
        self.decode();
        self.settle()
    }

    /// Returns the weight of the current posting in units.
    #[inline]
    pub fn weight(&mut self) -> u32 {
        let value = self.value();
        self.weigher.weigh(self.multiplier, value, self.document)
    }

    /// Returns the frequency or impact of the current posting.
    #[inline]
    pub fn value(&mut self) -> u32 {
        if !self.has_weights {
            self.list.decode_values(W::COLUMN, self.block, &mut self.weights);
            self.has_weights = true;
        }
        self.weights[self.position]
    }

    /// Returns the work done since the cursor was opened.
    pub fn work(&self) -> Work {
        Work {
            postings_decoded: self.postings_decoded,
            blocks_decoded: self.blocks_decoded,
            blocks_skipped: (self.blocks.len() as u64).saturating_sub(self.blocks_decoded),
            ..Work::default()
        }
    }

    /// Moves, without decoding, to the first block that can have `target`: after the current one if that is decoded.
    fn skip_to_block(&mut self, target: u32) {
        let from = self.block.saturating_add(usize::from(self.has_documents));
        self.move_to_block(self.list.find_block(from.min(self.blocks.end), target));
    }

    fn move_to_block(&mut self, block: usize) {
        let is_inside = block < self.blocks.end;
        self.block = if is_inside { block } else { self.blocks.end };
        (self.has_documents, self.has_weights) = (false, false);
        let bound = || self.weigher.block_bound(&self.list, block, self.multiplier);
        self.block_bound = if is_inside { bound().min(self.bound) } else { 0 };
    }

    /// Decodes the documents of the current block, or of the first one after it that has postings.
    fn decode(&mut self) {
        self.position = 0;
        self.count = 0;
        while self.block < self.blocks.end {
            self.count = self.list.decode_documents(self.block, &mut self.documents);
            self.postings_decoded += self.count as u64;
            self.blocks_decoded += 1;
            self.has_documents = true;
            if self.count > 0 {
                return;
            }
            // A block of a dense list may be empty.
            self.move_to_block(self.block + 1);
        }
    }

    /// Moves within the block to the first posting at or after `target`; returns whether there is one.
    #[inline]
    fn find_in_block(&mut self, target: u32) -> bool {
        let rest = &self.documents[self.position..self.count];
        self.position += rest.partition_point(|&document| document < target);
        if self.position < self.count {
            self.settle();
            return true;
        }
        false
    }

    /// Updates `document` from the current posting. The first document outside the plan's range ends the list.
    #[inline]
    fn settle(&mut self) -> u32 {
        let document = if self.position < self.count { self.documents[self.position] } else { END };
        if document < self.end {
            self.document = document;
        } else {
            self.finish();
        }
        self.document
    }

    /// Moves to the end.
    #[cold]
    fn finish(&mut self) {
        self.move_to_block(self.blocks.end);
        self.count = 0;
        self.position = 0;
        self.document = END;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::weigher::Frequencies;
    use crate::query::Query;
    use crate::query::planner::Planner;
    use lanner_index::build::{BuildOptions, Quiet, build};
    use lanner_index::corpus::{Corpus, CorpusOptions};
    use proptest::prelude::*;

    /// An index with one list of these documents; the frequency in a document is its number modulo 5, plus 1.
    fn index_of(documents: &[u32], dense: bool) -> Index {
        let folder = tempfile::tempdir().unwrap();
        let last = documents.last().map_or(0, |last| last + 1);
        let is_in_list = |document: &u32| documents.binary_search(document).is_ok();
        let texts: Vec<_> = (0..last)
            .map(|document| {
                let times = if is_in_list(&document) { document as usize % 5 + 1 } else { 0 };
                (document.to_string(), String::new(), "term ".repeat(times))
            })
            .collect();
        let corpus = Corpus::from_documents(texts, CorpusOptions::default()).unwrap();
        let options = BuildOptions { threads: 1, dense, ..BuildOptions::default() };
        build(folder.path(), corpus, &options, &Quiet).unwrap();
        Index::open(folder.path()).unwrap()
    }

    /// A call of a cursor.
    #[derive(Clone, Debug)]
    enum Move {
        Next,
        Seek(u32),
        BoundThenSeek(u32),
    }

    fn moves() -> impl Strategy<Value = Vec<Move>> {
        let step = prop_oneof![3 => 0u32..3, 2 => 0u32..100, 1 => 0u32..900];
        let one = prop_oneof![Just(Move::Next), step.clone().prop_map(Move::Seek), step.prop_map(Move::BoundThenSeek)];
        prop::collection::vec(one, 1..60)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_cursor_stands_where_a_search_through_all_postings_says(
            gaps in prop::collection::vec(prop_oneof![50 => 1u32..6, 1 => 200u32..400], 1..700), dense: bool,
            moves in moves(), start in 0u32..500, length in 0u32..2000,
        ) {
            let sum = |last: &mut u32, gap: &u32| { *last += gap; Some(*last) };
            let documents: Vec<u32> = gaps.iter().scan(0, sum).collect();
            let index = index_of(&documents, dense);
            let plan = Planner::new(&index).plan(&Query::new("term")).unwrap();
            let range = start..(start + length).min(index.documents());
            let weigher = Frequencies::new(&plan, &index);
            let mut cursor = Cursor::open(&index, &plan.lists[0], weigher, range.clone()).unwrap();
            let from = |target: u32| {
                let found = documents.iter().copied().find(|document| *document >= target);
                found.filter(|document| *document < range.end).unwrap_or(END)
            };
            let mut expected = from(range.start);
            for step in moves {
                prop_assert_eq!(cursor.document(), expected);
                if expected == END {
                    break;
                }
                prop_assert_eq!(cursor.value(), expected % 5 + 1);
                let (weight, bound) = (cursor.weight(), cursor.bound_at(expected));
                prop_assert!(weight <= bound && bound <= cursor.bound());
                expected = match step {
                    Move::Next => from(expected + 1),
                    Move::Seek(step) | Move::BoundThenSeek(step) => from(expected + step),
                };
                match step {
                    Move::Next => prop_assert_eq!(cursor.advance(), expected),
                    Move::Seek(step) => prop_assert_eq!(cursor.seek(cursor.document() + step), expected),
                    Move::BoundThenSeek(step) => {
                        let target = cursor.document() + step;
                        let bound = cursor.bound_at(target);
                        prop_assert_eq!(cursor.seek(target), expected);
                        prop_assert!(expected != target || cursor.weight() <= bound);
                    }
                }
            }
            let work = cursor.work();
            prop_assert!(work.blocks_decoded + work.blocks_skipped <= cursor.list.blocks() as u64);
        }
    }
}
