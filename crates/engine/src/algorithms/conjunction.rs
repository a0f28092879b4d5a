//! AND: the rarest list drives, a block of its documents at a time.
//!
//! The documents of a block are candidates; each other list, from rare to frequent, keeps those that it has too. In a
//! dense list that is a bit test, without a branch; in a sparse one the directory of its blocks is searched first, so
//! only blocks that may hold a candidate are decoded, and the place inside is found by comparing lanes, which takes
//! the same time wherever it is. Those that are left are weighed a list at a time, in lanes, and dropped as soon as they
//! cannot enter; blocks of the driver that are too light to enter are not even decoded. When all lists are dense, their
//! words are combined instead.

use super::dense_list::DenseList;
use super::lanes::{self, CHUNK, CHUNKS, Lanes, WithLanes};
use super::weigher::{Postings, Weigher};
use super::{Task, Workspace, block_buffers};
use crate::algorithms::topk::TopK;
use crate::query::answer::Work;
use crate::query::plan::PlannedList;
use lanner_index::DocId;
use lanner_index::codec::BLOCK;
use lanner_index::format::IndexError;
use lanner_index::open::{BlockBuffer, Dense, Index, List};
use std::cmp::Reverse;
use std::ops::Range;

/// From so many candidates left of a block on, its weights are decoded together.
const DECODE_TOGETHER: usize = 12;

/// From so many documents of a chunk on, their scores are added up together; all lists are dense then.
const SCORE_TOGETHER: u32 = 4;
/// From so many candidates for a block on, its documents are spread over a table, in which each candidate is found at
/// once; fewer are searched for one by one. This is the crossover between merging two lists and searching the longer.
const MERGE_FROM: usize = 24;
/// Documents that a block may span to be spread over the table.
const TABLE: usize = 8192;

/// Answers an AND.
pub fn cpu<W: Weigher>(task: &Task<'_>, weigher: W, workspace: &mut Workspace) -> Result<Work, IndexError> {
    let mut planned: Vec<&PlannedList> = task.plan.lists.iter().collect();
    planned.sort_by_key(|planned| planned.postings);
    let Workspace { top, blocks, places, simd_level, .. } = workspace;
    places.resize(BLOCK * planned.len(), 0);
    let buffers = block_buffers(blocks, planned.len());
    let mut unopened =
        Unopened { index: task.index, planned: planned.into_iter(), buffers, rest: task.plan.largest_score };
    let Some(driver) = unopened.open_next()? else {
        return Ok(Work::default());
    };
    let others = Vec::with_capacity(unopened.planned.len());
    let (work, failure) = (Work::default(), None);
    let mut conjunction = Conjunction { task, weigher, driver, others, unopened, places, top, work, failure };
    lanes::run(*simd_level, &mut conjunction);
    conjunction.failure.map_or(Ok(conjunction.work), Err)
}

/// The lists that no candidate has come to yet, the rarest first: few of a long query are ever opened.
struct Unopened<'a> {
    index: &'a Index,
    planned: std::vec::IntoIter<&'a PlannedList>,
    buffers: std::slice::IterMut<'a, BlockBuffer>,
    /// The most that these lists and the static rank can add.
    rest: u32,
}

impl<'a> Unopened<'a> {
    fn open_next(&mut self) -> Result<Option<Probed<'a>>, IndexError> {
        let (Some(planned), Some(documents)) = (self.planned.next(), self.buffers.next()) else {
            return Ok(None);
        };
        let PlannedList { span, multiplier, bound, .. } = *planned;
        self.rest = self.rest.saturating_sub(bound);
        let list = self.index.list_at(span)?;
        Ok(Some(Probed { list, multiplier, bound, rest: self.rest, block: 0, last: None, documents }))
    }
}

/// A list in which documents are looked for.
struct Probed<'a> {
    list: List<'a>,
    multiplier: f32,
    bound: u32,
    /// The most that the lists after this one and the static rank can add.
    rest: u32,
    /// The block that is decoded, if any, and the last document that it can have; not used in a dense list.
    block: usize,
    last: Option<u32>,
    /// The documents of the block; what stands after them is greater than any.
    documents: &'a mut BlockBuffer,
}

impl Probed<'_> {
    /// Keeps the candidates that a sparse list has, and the places of their postings.
    #[inline(always)]
    fn keep_sparse<L: Lanes>(
        &mut self,
        lanes: L,
        candidates: &mut Candidates,
        places: &mut [u32; BLOCK],
        table: &mut [u8; TABLE],
        work: &mut Work,
    ) {
        let (mut i, mut kept, count) = (0, 0, candidates.count.min(BLOCK));
        while i < count {
            let document = candidates.documents[i];
            if self.last.is_none_or(|last| last < document) && !self.enter(document, work) {
                break;
            }
            let last = self.last.unwrap_or(u32::MAX);
            let has_many = i + MERGE_FROM < count && candidates.documents[i + MERGE_FROM] <= last;
            let is_merged = has_many && self.spread(table);
            // Those of the block, which all lie before its end, or just the one.
            let mut end = i + 1;
            while end < count && is_merged && candidates.documents[end] <= last {
                end += 1;
            }
            while i < end {
                let (document, origin) = (candidates.documents[i % BLOCK], candidates.origins[i % BLOCK]);
                let place = match is_merged {
                    true => usize::from(table[document as usize % TABLE]),
                    false => lanes.count_below(self.documents, document),
                } % BLOCK;
                places[usize::from(origin) % BLOCK] = (self.block * BLOCK + place) as u32;
                candidates.documents[kept % BLOCK] = document;
                candidates.origins[kept % BLOCK] = origin;
                kept += usize::from(self.documents[place] == document);
                i += 1;
            }
        }
        candidates.count = kept;
    }

    /// Spreads the documents of the block over the table, if that is possible; whether it was.
    #[inline(always)]
    fn spread(&self, table: &mut [u8; TABLE]) -> bool {
        let last = self.last.unwrap_or(u32::MAX);
        let fits = (last.wrapping_sub(self.documents[0]) as usize) < TABLE;
        if fits {
            spread(self.documents, table);
        }
        fits
    }

    /// Decodes the block that can have a document after those of the current one; whether there is one.
    fn enter(&mut self, document: u32, work: &mut Work) -> bool {
        let from = self.block + usize::from(self.last.is_some());
        self.block = self.list.find_block(from, document);
        if self.block >= self.list.blocks() {
            self.last = None;
            return false;
        }
        let count = self.list.decode_documents(self.block, self.documents);
        self.documents[count..].fill(u32::MAX);
        self.last = Some(self.list.last_document(self.block));
        work.postings_decoded += count as u64;
        work.blocks_decoded += 1;
        true
    }
}

/// Writes the place of each document into the table. They span less than the table, so no two fall on each other; but
/// what follows them in an unfinished block may fall on one, and so comes first. Where no document falls, there stands
/// the place of some other.
#[inline(always)]
fn spread(documents: &BlockBuffer, table: &mut [u8; TABLE]) {
    for (&document, &place) in documents.iter().zip(&PLACES).rev() {
        table[document as usize % TABLE] = place;
    }
}

/// Documents of a block of the driver that all lists so far have.
struct Candidates {
    count: usize,
    documents: [u32; BLOCK],
    /// The place in the block that each had at first.
    origins: [u8; BLOCK],
}

/// The places of a block in order.
const PLACES: [u8; BLOCK] = {
    let mut places = [0; BLOCK];
    let mut place = 0;
    while place < BLOCK {
        places[place] = place as u8;
        place += 1;
    }
    places
};

impl Candidates {
    /// Takes the documents of a block that lie in the range.
    #[inline(always)]
    fn take(&mut self, documents: &[u32], range: &Range<u32>) {
        let start = documents.iter().take_while(|&&document| document < range.start).count();
        let mut end = documents.len();
        while end > start && documents[end - 1] >= range.end {
            end -= 1;
        }
        self.count = end - start;
        self.documents[..self.count].copy_from_slice(&documents[start..end]);
        self.origins[..self.count].copy_from_slice(&PLACES[start..end]);
    }

    /// Keeps the candidates that a dense list has, and the ranks of their postings.
    #[inline(always)]
    fn keep_dense(&mut self, dense: &Dense<'_>, places: &mut [u32; BLOCK]) {
        let mut kept = 0;
        for i in 0..self.count.min(BLOCK) {
            let (document, origin) = (self.documents[i], self.origins[i]);
            let (chunk, bit) = (document as usize / CHUNK, document as usize % CHUNK);
            let word = dense.word(chunk);
            let before = (word & ((1 << bit) - 1)).count_ones();
            places[usize::from(origin) % BLOCK] = dense.rank(chunk).wrapping_add(before);
            self.documents[kept] = document;
            self.origins[kept] = origin;
            kept += (word >> bit & 1) as usize;
        }
        self.count = kept;
    }
}

impl Candidates {
    /// Keeps the candidates that can reach the threshold with what later lists can add.
    #[inline(always)]
    fn keep_strong(&mut self, scores: &mut BlockBuffer, rest: u32, threshold: u32) {
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

struct Conjunction<'a, W> {
    task: &'a Task<'a>,
    weigher: W,
    driver: Probed<'a>,
    /// The lists that candidates have come to.
    others: Vec<Probed<'a>>,
    unopened: Unopened<'a>,
    /// For each other list and each posting of the driver's block: where the list has the document.
    places: &'a mut [u32],
    top: &'a mut TopK,
    work: Work,
    /// Why a list could not be opened.
    failure: Option<IndexError>,
}

impl<W: Weigher> WithLanes for &mut Conjunction<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        // The rarest list is dense only if all are.
        match self.driver.list.dense().copied() {
            Some(driver) => self.run_dense(lanes, driver),
            None => self.run_sparse(lanes),
        }
        let all = |list: &List<'_>| if list.dense().is_some() { 0 } else { list.blocks() as u64 };
        let blocks = all(&self.driver.list) + self.others.iter().map(|other| all(&other.list)).sum::<u64>();
        self.work.blocks_skipped = blocks.saturating_sub(self.work.blocks_decoded);
    }
}

impl<W: Weigher> Conjunction<'_, W> {
    #[inline(always)]
    fn run_sparse<L: Lanes>(&mut self, lanes: L) {
        let range = self.task.plan.range.clone();
        let first = self.driver.list.find_block(0, range.start);
        let mut candidates = Candidates { count: 0, documents: [0; BLOCK], origins: [0; BLOCK] };
        let mut table = [0; TABLE];
        for block in first..self.driver.list.blocks() {
            if block > first && self.driver.list.last_document(block - 1) >= range.end {
                return;
            }
            let bound = self.weigher.block_bound(&self.driver.list, block, self.driver.multiplier);
            if bound.saturating_add(self.driver.rest) < self.top.threshold_in_order() {
                continue;
            }
            let count = self.driver.list.decode_documents(block, self.driver.documents);
            self.work.postings_decoded += count as u64;
            self.work.blocks_decoded += 1;
            candidates.take(&self.driver.documents[..count], &range);
            self.keep_common(lanes, &mut candidates, &mut table);
            self.score(lanes, &mut candidates, block);
        }
    }

    /// Keeps the candidates that all lists have.
    #[inline(always)]
    fn keep_common<L: Lanes>(&mut self, lanes: L, candidates: &mut Candidates, table: &mut [u8; TABLE]) {
        let places = self.places.as_chunks_mut::<BLOCK>().0;
        for (number, places) in places.iter_mut().enumerate() {
            if candidates.count == 0 {
                return;
            }
            if number == self.others.len() {
                match self.unopened.open_next() {
                    Ok(Some(next)) => self.others.push(next),
                    Ok(None) => return,
                    Err(failure) => {
                        self.failure = Some(failure);
                        candidates.count = 0;
                        return;
                    }
                }
            }
            let other = &mut self.others[number];
            match other.list.dense().copied() {
                Some(dense) => candidates.keep_dense(&dense, places),
                None => other.keep_sparse(lanes, candidates, places, table, &mut self.work),
            }
        }
    }

    /// Scores the candidates that are left of a block of the driver, a list at a time.
    #[inline(always)]
    fn score<L: Lanes>(&mut self, lanes: L, candidates: &mut Candidates, block: usize) {
        if candidates.count == 0 {
            return;
        }
        let (mut values, mut weights, mut scores) = ([1; BLOCK], [0; BLOCK], [0; BLOCK]);
        self.driver_values(candidates, block, &mut values);
        let Candidates { documents, count, .. } = &*candidates;
        let postings = Postings { values: &values, documents, count: *count };
        self.weigher.weigh_block(lanes, self.driver.multiplier, &postings, &mut scores);
        candidates.keep_strong(&mut scores, self.driver.rest, self.top.threshold_in_order());
        for (other, places) in self.others.iter().zip(self.places.as_chunks::<BLOCK>().0) {
            let Candidates { documents, count, origins } = &*candidates;
            for (value, &origin) in values.iter_mut().zip(&origins[..*count]) {
                let place = places[usize::from(origin) % BLOCK];
                *value = match other.list.dense() {
                    Some(dense) => dense.value(W::COLUMN, place),
                    None => other.list.weight_at(W::COLUMN, place as usize / BLOCK, place as usize % BLOCK),
                };
            }
            let postings = Postings { values: &values, documents, count: *count };
            self.weigher.weigh_block(lanes, other.multiplier, &postings, &mut weights);
            for (score, &weight) in scores.iter_mut().zip(&weights[..*count]) {
                *score = score.wrapping_add(weight);
            }
            candidates.keep_strong(&mut scores, other.rest, self.top.threshold_in_order());
        }
        for (&document, &score) in candidates.documents.iter().zip(&scores[..candidates.count]) {
            self.push(document, score);
        }
    }

    /// The driver's values of the candidates: fetched, or decoded together if there are many.
    #[inline(always)]
    fn driver_values(&mut self, candidates: &Candidates, block: usize, values: &mut BlockBuffer) {
        let origins = &candidates.origins[..candidates.count];
        if candidates.count < DECODE_TOGETHER {
            for (value, &origin) in values.iter_mut().zip(origins) {
                *value = self.driver.list.weight_at(W::COLUMN, block, usize::from(origin));
            }
            return;
        }
        let mut all = [0; BLOCK];
        self.driver.list.decode_weights(W::COLUMN, block, &mut all);
        for (value, &origin) in values.iter_mut().zip(origins) {
            *value = all[usize::from(origin) % BLOCK];
        }
    }

    #[inline(always)]
    fn push(&mut self, document: u32, score: u32) {
        if self.task.passes(document) {
            self.work.documents_scored += 1;
            self.top.push(DocId(document), score.wrapping_add(self.task.static_part(document)));
        }
    }

    /// All lists are dense: their words are combined, in chunks whose bounds together reach the threshold.
    #[inline(always)]
    fn run_dense<L: Lanes>(&mut self, lanes: L, driver: Dense<'_>) {
        let range = self.task.plan.range.clone();
        let (first, end) = (range.start as usize / CHUNK, (range.end as usize).div_ceil(CHUNK));
        self.open_all();
        let others = std::mem::take(&mut self.others);
        let others = others.iter().filter_map(|other| Some((other.list.dense()?, other.multiplier, other.bound)));
        let lists = std::iter::once((&driver, self.driver.multiplier, self.driver.bound)).chain(others);
        let with_bounds = |(dense, multiplier, bound)| DenseList::new(self.weigher, dense, multiplier, bound);
        let mut lists: Vec<DenseList<'_>> = lists.map(with_bounds).collect();
        // What could not be added up in 32 bits is not compared.
        let bounds_fit = lists.iter().map(DenseList::largest_bound).sum::<u64>() < u64::from(u32::MAX);
        lists.sort_by_key(|list| Reverse(list.bound));
        let mut bounds = [0; CHUNKS];
        for start in (first..end).step_by(CHUNKS) {
            bounds.fill(if bounds_fit { 0 } else { u32::MAX });
            lists.iter().filter(|_| bounds_fit).for_each(|list| list.add_bounds(lanes, start, &mut bounds));
            let threshold = self.top.threshold_in_order().saturating_sub(self.task.plan.static_bound);
            let mut chunks = lanes.chunks_at_least(&bounds, threshold);
            if end - start < CHUNKS {
                chunks &= (1 << (end - start)) - 1;
            }
            while chunks != 0 {
                let chunk = start + chunks.trailing_zeros() as usize;
                chunks &= chunks - 1;
                let word = lists.iter().fold(u64::MAX, |word, list| word & list.dense.word(chunk));
                if word != 0 {
                    self.score_chunk(lanes, &lists, chunk, word);
                }
            }
        }
    }

    /// Scores the documents of a chunk that all lists have: together where they are many, else one by one.
    #[inline(always)]
    fn score_chunk<L: Lanes>(&mut self, lanes: L, lists: &[DenseList<'_>], chunk: usize, mut word: u64) {
        let least = self.top.threshold_in_order().saturating_sub(self.task.plan.static_bound);
        let mut scores = [0; CHUNK];
        if word.count_ones() >= SCORE_TOGETHER {
            for list in lists {
                self.work.postings_decoded += u64::from(list.add(lanes, self.weigher, chunk, &mut scores));
            }
            word &= lanes.at_least(&scores, least);
        } else {
            self.work.postings_decoded += u64::from(word.count_ones()) * lists.len() as u64;
            word = self.score_each(lists, chunk, word, least, &mut scores);
        }
        while word != 0 {
            let bit = word.trailing_zeros();
            word &= word - 1;
            let document = (chunk * CHUNK) as u32 + bit;
            if self.task.plan.range.contains(&document) {
                self.push(document, scores[bit as usize % CHUNK]);
            }
        }
    }

    /// Scores documents until they cannot enter; those that can are left.
    #[inline(always)]
    fn score_each(
        &self,
        lists: &[DenseList<'_>],
        chunk: usize,
        word: u64,
        least: u32,
        scores: &mut [u32; CHUNK],
    ) -> u64 {
        let (mut rest, mut strong) = (word, 0);
        while rest != 0 {
            let bit = rest.trailing_zeros();
            rest &= rest - 1;
            let (mut score, mut left) = (0u32, lists.iter().fold(0u32, |sum, list| sum.saturating_add(list.bound)));
            for list in lists {
                if score.saturating_add(left) < least {
                    break;
                }
                let weight = list.weigh(self.weigher, chunk, list.dense.word(chunk), bit);
                (score, left) = (score.wrapping_add(weight), left.saturating_sub(list.bound));
            }
            if score >= least {
                strong |= 1 << bit;
                scores[bit as usize % CHUNK] = score;
            }
        }
        strong
    }

    /// Opens the lists that are not open yet; none is left open if one cannot be.
    fn open_all(&mut self) {
        loop {
            match self.unopened.open_next() {
                Ok(Some(next)) => self.others.push(next),
                Ok(None) => return,
                Err(failure) => return self.failure = Some(failure),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_document_of_a_block_is_found_in_the_table(
            first in 0u32..1 << 20,
            gaps in prop::collection::vec(1u32..64, 0..BLOCK),
            before: u8,
        ) {
            let mut documents = [u32::MAX; BLOCK];
            documents[0] = first;
            for (i, gap) in gaps.iter().enumerate() {
                documents[i + 1] = documents[i] + gap;
            }
            let mut table = [before; TABLE];
            spread(&documents, &mut table);
            for (place, &document) in documents.iter().enumerate().take(gaps.len() + 1) {
                prop_assert_eq!(usize::from(table[document as usize % TABLE]), place);
            }
        }
    }

    #[test]
    fn what_follows_the_last_document_does_not_hide_one() {
        let mut documents = [u32::MAX; BLOCK];
        documents[..2].copy_from_slice(&[TABLE as u32 - 1, TABLE as u32]);
        let mut table = [0; TABLE];
        spread(&documents, &mut table);
        assert_eq!((table[TABLE - 1], table[0]), (0, 1));
    }
}
