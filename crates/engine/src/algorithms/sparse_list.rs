//! A sparse list of an OR, as windows of documents pass over it: the blocks that reach into a window, the most that
//! they can add there, and their postings.

use super::lanes::{Lanes, bits, lasts_of};
use super::weigher::{Postings, Weigher};
use crate::query::answer::Work;
use crate::query::plan::{Plan, PlannedList};
use lanner_index::codec::BLOCK;
use lanner_index::open::{BlockBuffer, List};
use std::ops::Range;

/// No block.
const NONE: usize = usize::MAX;
/// With more than this many matches in a block, all of its postings are weighed together.
const WEIGH_TOGETHER: u32 = 12;

/// A sparse list of a query. Windows come in order.
pub struct SparseList<'a> {
    /// The list.
    pub list: List<'a>,
    multiplier: f32,
    /// Postings for each document of the collection.
    share_of_documents: f32,
    /// Its largest weight.
    pub bound: u32,
    /// The most that it can add in the window.
    pub window_bound: u32,
    /// `window_bound` is known to hold for documents of the window and after it, before this one.
    holds_before: u32,
    /// The blocks that can have documents of the window, and the end of those in the plan's range.
    blocks: Range<usize>,
    end_block: usize,
    /// No posting that is still to be scattered lies before this document.
    next_document: u32,
    /// The blocks whose documents and whose weights are decoded.
    decoded: usize,
    weighed: usize,
    /// The postings of the decoded block, and a position before which all documents lie before the window; documents
    /// are padded with the largest number.
    count: usize,
    position: usize,
    documents: &'a mut BlockBuffer,
    weights: &'a mut BlockBuffer,
}

impl<'a> SparseList<'a> {
    /// Takes the blocks of a list that lie in a range of documents.
    pub fn new(
        list: List<'a>,
        plan: &Plan,
        planned: &PlannedList,
        [documents, weights]: [&'a mut BlockBuffer; 2],
    ) -> SparseList<'a> {
        let range = &plan.range;
        let block = list.find_block(0, range.start);
        let end_block = (list.find_block(block, range.end - 1) + 1).min(list.blocks());
        SparseList {
            list,
            multiplier: planned.multiplier,
            share_of_documents: planned.postings as f32 / plan.documents.max(1) as f32,
            bound: planned.bound,
            window_bound: 0,
            holds_before: 0,
            blocks: block..block,
            end_block,
            next_document: 0,
            decoded: NONE,
            weighed: NONE,
            count: 0,
            position: 0,
            documents,
            weights,
        }
    }

    /// The blocks that are left.
    pub fn blocks_left(&self) -> u64 {
        self.end_block.saturating_sub(self.blocks.start) as u64
    }

    /// A document before which no posting is left; the largest number if none is left at all.
    #[inline(always)]
    pub fn next_document(&self) -> u32 {
        if self.blocks.start >= self.end_block { u32::MAX } else { self.next_document }
    }

    /// Moves to a window of documents and bounds what the list can add there.
    #[inline(always)]
    pub fn enter<W: Weigher>(&mut self, weigher: W, window: &Range<u32>) {
        if window.end <= self.holds_before {
            return;
        }
        // The last block of the window before may reach into this one.
        let mut start = self.blocks.start.max(self.blocks.end.saturating_sub(1));
        if start < self.end_block && self.list.last_document(start) < window.start {
            start = self.list.find_block(start + 1, window.start);
        }
        let mut end = start;
        self.holds_before = u32::MAX;
        while end < self.end_block {
            end += 1;
            let after_block = self.list.last_document(end - 1).saturating_add(1);
            if after_block >= window.end {
                self.holds_before = if end == start + 1 { after_block } else { window.end };
                break;
            }
            self.holds_before = window.end;
        }
        self.blocks = start..end;
        self.window_bound = match end > start {
            true => weigher.largest_bound(&self.list, start..end, self.multiplier).min(self.bound),
            false => 0,
        };
    }

    /// The blocks that can have documents of the window.
    #[inline(always)]
    pub fn blocks(&self) -> Range<usize> {
        self.blocks.clone()
    }

    /// Whether the bound of a block of the window reaches `least`, given that the largest one does.
    #[inline(always)]
    pub fn reaches<W: Weigher>(&self, weigher: W, block: usize, least: u32) -> bool {
        self.blocks.len() == 1 || weigher.largest_bound(&self.list, block..block + 1, self.multiplier) >= least
    }

    /// Decodes the documents of a block, and returns the positions of those in the window.
    #[inline(always)]
    pub fn open_block<L: Lanes>(
        &mut self,
        lanes: L,
        block: usize,
        window: &Range<u32>,
        work: &mut Work,
    ) -> Range<usize> {
        self.decode(block, work);
        let positions = self.positions(lanes, window);
        self.leave_block(block, positions.end);
        positions
    }

    /// Notes that the postings of the decoded block before a position are done with.
    #[inline(always)]
    fn leave_block(&mut self, block: usize, position: usize) {
        self.position = position.min(BLOCK - 1);
        self.next_document = match position < self.count {
            true => self.documents[position % BLOCK],
            false => self.list.last_document(block).saturating_add(1),
        };
    }

    /// Passes the documents and weights of a block's postings in the window to `add`.
    #[inline(always)]
    pub fn add_block<L: Lanes, W: Weigher>(
        &mut self,
        lanes: L,
        weigher: W,
        (block, window): (usize, &Range<u32>),
        work: &mut Work,
        mut add: impl FnMut(u32, u32),
    ) {
        self.decode(block, work);
        let mut position = self.first_position(lanes, window);
        if self.documents[position % BLOCK] < window.end {
            self.weigh(lanes, weigher);
            while position < self.count && self.documents[position % BLOCK] < window.end {
                add(self.documents[position % BLOCK], self.weights[position % BLOCK]);
                position += 1;
            }
        }
        self.leave_block(block, position);
    }

    /// The documents and weights of the decoded block, as far as it is weighed.
    #[inline(always)]
    pub fn postings(&self) -> (&BlockBuffer, &BlockBuffer) {
        (self.documents, self.weights)
    }

    /// A value below which no weight reaches `least`, whatever the length of the document.
    #[inline(always)]
    pub fn least_value<W: Weigher>(&self, weigher: W, least: u32) -> u32 {
        weigher.least_value(self.multiplier, least)
    }

    /// Weighs postings of the decoded block among some positions, and returns the positions of those whose weight is at
    /// least `least`. Values below `least_value` weigh less in any document.
    #[inline(always)]
    pub fn weigh_strong<L: Lanes, W: Weigher>(
        &mut self,
        lanes: L,
        weigher: W,
        positions: Range<usize>,
        (least, least_value): (u32, u32),
    ) -> u128 {
        let mut strong = bits(positions);
        if self.weighed != self.decoded {
            let mut values = [1; BLOCK];
            self.list.decode_values(W::COLUMN, self.decoded, &mut values);
            if least_value > 1 {
                strong &= lanes.chunks_at_least(&values, least_value);
            }
            if strong.count_ones() <= WEIGH_TOGETHER {
                let mut left = strong;
                while left != 0 {
                    let position = left.trailing_zeros() as usize % BLOCK;
                    left &= left - 1;
                    let weight = weigher.weigh(self.multiplier, values[position], self.documents[position]);
                    self.weights[position] = weight;
                    strong &= !(u128::from(weight < least) << position);
                }
                return strong;
            }
            self.weigh_values(lanes, weigher, &values);
        }
        lanes.chunks_at_least(self.weights, least) & strong
    }

    /// Postings for each document of the collection.
    #[inline(always)]
    pub fn share_of_documents(&self) -> f32 {
        self.share_of_documents
    }

    /// Whether a window of this many documents has at most `limit` postings, if they are evenly spread.
    #[inline(always)]
    pub fn are_few(&self, width: usize, limit: usize) -> bool {
        self.share_of_documents * width as f32 <= limit as f32
    }

    /// Decodes the documents of a block, unless they are.
    #[inline(always)]
    fn decode(&mut self, block: usize, work: &mut Work) {
        if self.decoded == block {
            return;
        }
        self.count = self.list.decode_documents(block, self.documents);
        self.documents[self.count..].fill(u32::MAX);
        (self.decoded, self.position) = (block, 0);
        work.postings_decoded += self.count as u64;
        work.blocks_decoded += 1;
        // At first all blocks are counted as skipped.
        work.blocks_skipped = work.blocks_skipped.saturating_sub(1);
    }

    /// Weighs the decoded block, unless it is weighed.
    #[inline(always)]
    pub fn weigh<L: Lanes, W: Weigher>(&mut self, lanes: L, weigher: W) {
        if self.weighed != self.decoded {
            let mut values = [1; BLOCK];
            self.list.decode_values(W::COLUMN, self.decoded, &mut values);
            self.weigh_values(lanes, weigher, &values);
        }
    }

    #[inline(always)]
    fn weigh_values<L: Lanes, W: Weigher>(&mut self, lanes: L, weigher: W, values: &BlockBuffer) {
        let postings = Postings { values, documents: self.documents, count: self.count };
        weigher.weigh_block(lanes, self.multiplier, &postings, self.weights);
        self.weighed = self.decoded;
    }

    /// The position of the first decoded document that is in the window or after it.
    #[inline(always)]
    fn first_position<L: Lanes>(&self, lanes: L, window: &Range<u32>) -> usize {
        match self.documents[self.position % BLOCK] < window.start {
            true => lanes.count_below(self.documents, window.start).min(self.count),
            false => self.position,
        }
    }

    /// The positions of the decoded documents that lie in the window.
    #[inline(always)]
    fn positions<L: Lanes>(&self, lanes: L, window: &Range<u32>) -> Range<usize> {
        let start = self.first_position(lanes, window);
        if self.documents[start % BLOCK] >= window.end {
            return start..start;
        }
        let is_inside = self.documents[self.count.saturating_sub(1) % BLOCK] < window.end;
        let end = if is_inside { self.count } else { lanes.count_below(self.documents, window.end).min(self.count) };
        start.min(end)..end
    }

    /// Adds the weights of the window's postings to accumulators that have at least `least` with the list's bound in the
    /// window. `origin` is the document of the first accumulator.
    #[inline(always)]
    pub fn add_to_strong<L: Lanes, W: Weigher, const N: usize>(
        &mut self,
        lanes: L,
        weigher: W,
        (scores, origin): (&mut [u32; N], u32),
        (window, least): (&Range<u32>, u32),
        work: &mut Work,
    ) {
        let least = least.saturating_sub(self.window_bound).max(1);
        for block in self.blocks() {
            self.decode(block, work);
            let positions = self.positions(lanes, window);
            let mut strong = lanes.scores_at_least(scores, self.documents, origin, least) & bits(positions);
            if strong.count_ones() > WEIGH_TOGETHER {
                self.weigh(lanes, weigher);
            }
            while strong != 0 {
                let position = strong.trailing_zeros() as usize % BLOCK;
                strong &= strong - 1;
                let offset = self.documents[position].wrapping_sub(origin) as usize % N;
                scores[offset] = scores[offset].wrapping_add(self.weight_at(weigher, position));
            }
        }
    }

    /// Adds the weights of the window's postings to the accumulators of candidates, which are given by their offsets
    /// from `origin`, ascending.
    #[inline(always)]
    pub fn add_to_candidates<L: Lanes, W: Weigher, const N: usize>(
        &mut self,
        lanes: L,
        weigher: W,
        (scores, origin): (&mut [u32; N], u32),
        candidates: &[u32],
        work: &mut Work,
    ) {
        let Range { start: mut block, end } = self.blocks;
        let mut left = candidates;
        while let Some(&first) = left.first() {
            let document = origin.wrapping_add(first);
            while block < end && self.list.last_document(block) < document {
                block += 1;
            }
            if block >= end {
                break;
            }
            self.decode(block, work);
            let (last, lasts) = (self.list.last_document(block), lasts_of(self.documents));
            let (mut found, mut positions, mut count, mut taken) = ([0u8; BLOCK], [0u8; BLOCK], 0, 0);
            for &offset in left {
                let document = origin.wrapping_add(offset);
                if document > last || taken == BLOCK {
                    break;
                }
                let (position, is_found) = lanes.find(self.documents, &lasts, document);
                found[count % BLOCK] = taken as u8;
                positions[count % BLOCK] = position as u8;
                count += usize::from(is_found);
                taken += 1;
            }
            if count > WEIGH_TOGETHER as usize {
                self.weigh(lanes, weigher);
            }
            for (&taken, &position) in found[..count.min(BLOCK)].iter().zip(&positions) {
                let offset = left[usize::from(taken)] as usize % N;
                scores[offset] = scores[offset].wrapping_add(self.weight_at(weigher, usize::from(position) % BLOCK));
            }
            left = &left[taken..];
        }
    }

    /// The weight of a posting of the decoded block.
    #[inline(always)]
    fn weight_at<W: Weigher>(&self, weigher: W, position: usize) -> u32 {
        if self.weighed == self.decoded {
            return self.weights[position % BLOCK];
        }
        let value = self.list.value_at(W::COLUMN, self.decoded, position);
        weigher.weigh(self.multiplier, value, self.documents[position % BLOCK])
    }

    /// Returns the weight of a document, 0 if the list does not have it. Returns `None` if the weight is known to be
    /// below `least`: the list does not have the document, or the bound of its block is too low. Documents come in
    /// order.
    #[inline(always)]
    pub fn look_up<L: Lanes, W: Weigher>(
        &mut self,
        lanes: L,
        weigher: W,
        (document, least): (u32, u32),
        work: &mut Work,
    ) -> Option<u32> {
        let absent = (least == 0).then_some(0);
        while self.blocks.start < self.blocks.end && self.list.last_document(self.blocks.start) < document {
            self.blocks.start += 1;
        }
        let block = self.blocks.start;
        if block >= self.blocks.end {
            return absent;
        }
        if weigher.largest_bound(&self.list, block..block + 1, self.multiplier) < least {
            return None;
        }
        self.decode(block, work);
        let position = lanes.count_below(self.documents, document) % BLOCK;
        match self.documents[position] == document {
            true => Some(self.weight_at(weigher, position)),
            false => absent,
        }
    }
}
