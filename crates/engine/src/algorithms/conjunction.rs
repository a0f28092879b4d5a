//! AND: the shortest list, the driver, proposes its documents a block at a time.
//!
//! The documents of a block are the candidates; each other list, from rare to frequent, keeps those that it contains.
//! In a dense list that is a bit test, without a branch. In a sparse one the directory is searched first, so only
//! blocks that can contain a candidate are decoded; many candidates are merged with a block, few are searched for in it.
//! The remaining candidates are weighed a list at a time, with SIMD, and dropped as soon as they cannot enter. Blocks
//! of the driver whose bounds are too low for a hit are not decoded. In the others, a posting is a candidate only if its
//! value (frequency or impact) could reach the threshold in the shortest possible document. When all lists are dense,
//! their words are intersected instead.

mod candidates;

pub use candidates::Candidates;

use super::dense_list::DenseList;
use super::lanes::{self, CHUNK, CHUNKS, GROUPS, Lanes, MERGED, WithLanes, bits, lasts_of};
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

/// With at least this many candidates left of a block, its weights are decoded together. Like the other constants here,
/// measured in decision 17.
const DECODE_TOGETHER: usize = 8;
/// At least this many documents of a chunk are scored together, where all lists are dense.
const SCORE_TOGETHER: u32 = 4;

/// Answers an AND.
pub fn cpu<W: Weigher>(task: &Task<'_>, weigher: W, workspace: &mut Workspace) -> Result<Work, IndexError> {
    let mut planned: Vec<&PlannedList> = task.plan.lists.iter().collect();
    planned.sort_by_key(|planned| planned.postings);
    let Workspace { top, blocks, positions, candidates, simd_level, .. } = workspace;
    positions.resize(BLOCK * planned.len(), 0);
    let buffers = block_buffers(blocks, planned.len());
    let mut unopened =
        Unopened { index: task.index, planned: planned.into_iter(), buffers, rest: task.plan.largest_score };
    let Some(driver) = unopened.open_next()? else {
        return Ok(Work::default());
    };
    let others = Vec::with_capacity(unopened.planned.len());
    let mut conjunction = Conjunction {
        task,
        weigher,
        driver,
        others,
        unopened,
        positions,
        top,
        values: [1; BLOCK],
        are_values_decoded: false,
        least_weight: 0,
        least_value: 1,
        work: Work::default(),
    };
    lanes::run(*simd_level, (&mut conjunction, &mut **candidates))?;
    Ok(conjunction.work())
}

/// The lists that no candidate has reached yet, the shortest first: most lists of a long query are never opened.
struct Unopened<'a> {
    index: &'a Index,
    planned: std::vec::IntoIter<&'a PlannedList>,
    buffers: std::slice::IterMut<'a, BlockBuffer>,
    /// The most that these lists and the static rank can add.
    rest: u32,
}

impl<'a> Unopened<'a> {
    fn open_next(&mut self) -> Result<Option<Probed<'a>>, IndexError> {
        let Some(&PlannedList { span, multiplier, bound, .. }) = self.planned.next() else {
            return Ok(None);
        };
        self.rest = self.rest.saturating_sub(bound);
        let list = self.index.list_at(span)?;
        let documents = self.buffers.next().expect("there is a buffer for each list");
        Ok(Some(Probed {
            list,
            multiplier,
            bound,
            rest: self.rest,
            block: 0,
            last: None,
            documents,
            lasts: [0; GROUPS],
        }))
    }
}

/// A list in which documents are looked for.
struct Probed<'a> {
    list: List<'a>,
    multiplier: f32,
    bound: u32,
    /// The most that the lists after this one and the static rank can add.
    rest: u32,
    /// The decoded block, if any, and the last document that it can have; not used in a dense list.
    block: usize,
    last: Option<u32>,
    /// The documents of the block, padded with numbers greater than any document.
    documents: &'a mut BlockBuffer,
    /// The last document of each group of the block.
    lasts: [u32; GROUPS],
}

impl Probed<'_> {
    /// Keeps the candidates that a sparse list has, with the positions of their postings.
    #[inline(always)]
    fn keep_sparse<L: Lanes>(
        &mut self,
        lanes: L,
        candidates: &mut Candidates,
        positions: &mut [u32; BLOCK],
        work: &mut Work,
    ) {
        let (mut i, mut kept, count) = (0, 0, candidates.count.min(BLOCK));
        candidates.documents[count..].fill(u32::MAX);
        while i < count {
            let document = candidates.documents[i];
            let last = match self.last {
                Some(last) if last >= document => last,
                _ => match self.move_to_block_of(document, work) {
                    Some(last) => last,
                    None => break,
                },
            };
            if candidates.documents.get(i + MERGED).is_some_and(|&document| document <= last) {
                // What was kept is in front of `i`, and not above what follows.
                let end = lanes.count_below(&candidates.documents, last.saturating_add(1)).clamp(i + 1, count);
                let mut found = lanes.common(self.documents, &self.lasts, &candidates.documents, i..end);
                while found != 0 {
                    let candidate = found.trailing_zeros() as usize % BLOCK;
                    found &= found - 1;
                    let (position, _) = lanes.find(self.documents, &self.lasts, candidates.documents[candidate]);
                    candidates.keep(candidate, &mut kept, (self.block * BLOCK + position) as u32, positions);
                }
                i = end;
            }
            while i < count && candidates.documents[i] <= last {
                let (position, is_found) = lanes.find(self.documents, &self.lasts, candidates.documents[i]);
                candidates.keep(i, &mut kept, (self.block * BLOCK + position) as u32, positions);
                kept -= usize::from(!is_found);
                i += 1;
            }
        }
        candidates.count = kept;
    }

    /// Decodes the block after the current one that can have a document, and returns the last document that it can
    /// have; `None` if there is no such block.
    fn move_to_block_of(&mut self, document: u32, work: &mut Work) -> Option<u32> {
        let from = self.block + usize::from(self.last.is_some());
        self.block = self.list.find_block(from, document);
        if self.block >= self.list.blocks() {
            self.last = None;
            return None;
        }
        let count = self.list.decode_documents(self.block, self.documents);
        self.documents[count..].fill(u32::MAX);
        self.lasts = lasts_of(self.documents);
        self.last = Some(self.list.last_document(self.block));
        work.postings_decoded += count as u64;
        work.blocks_decoded += 1;
        self.last
    }
}

/// The positions of a block's documents that are in the range.
#[inline(always)]
fn inside(documents: &[u32], range: &Range<u32>) -> u128 {
    let start = documents.iter().take_while(|&&document| document < range.start).count();
    let mut end = documents.len();
    while end > start && documents[end - 1] >= range.end {
        end -= 1;
    }
    bits(start..end)
}

/// An AND that is being answered.
struct Conjunction<'a, W> {
    task: &'a Task<'a>,
    weigher: W,
    driver: Probed<'a>,
    /// The lists that candidates have reached.
    others: Vec<Probed<'a>>,
    unopened: Unopened<'a>,
    /// For each other sparse list and each posting of the driver's block: where the list has the document.
    positions: &'a mut [u32],
    top: &'a mut TopK,
    /// The values of the driver's block, if they are decoded.
    values: BlockBuffer,
    are_values_decoded: bool,
    /// The least weight of the driver that can enter, and a value below which no posting of it weighs that much.
    least_weight: u32,
    least_value: u32,
    work: Work,
}

impl<W: Weigher> WithLanes for (&mut Conjunction<'_, W>, &mut Candidates) {
    type Output = Result<(), IndexError>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Result<(), IndexError> {
        let (conjunction, candidates) = self;
        // The shortest list is dense only if all are.
        match conjunction.driver.list.dense().copied() {
            Some(driver) => conjunction.run_dense(lanes, driver),
            None => conjunction.run_sparse(lanes, candidates),
        }
    }
}

impl<W: Weigher> Conjunction<'_, W> {
    /// Returns the work done; all blocks of the open lists that were not decoded count as skipped.
    fn work(&self) -> Work {
        let sparse = self.others.iter().chain([&self.driver]).filter(|probed| probed.list.dense().is_none());
        let blocks = sparse.map(|probed| probed.list.blocks() as u64).sum::<u64>();
        Work { blocks_skipped: blocks.saturating_sub(self.work.blocks_decoded), ..self.work }
    }

    #[inline(always)]
    fn run_sparse<L: Lanes>(&mut self, lanes: L, candidates: &mut Candidates) -> Result<(), IndexError> {
        let range = self.task.plan.range.clone();
        let first = self.driver.list.find_block(0, range.start);
        for block in first..self.driver.list.blocks() {
            if block > first && self.driver.list.last_document(block - 1) >= range.end {
                break;
            }
            let bound = self.weigher.block_bound(&self.driver.list, block, self.driver.multiplier);
            if bound.saturating_add(self.driver.rest) < self.top.threshold_in_order() {
                continue;
            }
            let count = self.driver.list.decode_documents(block, self.driver.documents);
            self.work.postings_decoded += count as u64;
            self.work.blocks_decoded += 1;
            let mut members = inside(&self.driver.documents[..count], &range);
            self.raise_least_value();
            self.are_values_decoded = self.least_value > 1;
            if self.are_values_decoded {
                self.driver.list.decode_values(W::COLUMN, block, &mut self.values);
                members &= lanes.chunks_at_least(&self.values, self.least_value);
            }
            candidates.take(self.driver.documents, members);
            self.keep_common(lanes, candidates)?;
            self.score(lanes, candidates, block);
        }
        Ok(())
    }

    /// Raises the least value that lets a posting of the driver enter, whatever the length of its document.
    #[inline(always)]
    fn raise_least_value(&mut self) {
        let least = self.top.threshold_in_order().saturating_sub(self.driver.rest);
        if least > self.least_weight {
            self.least_weight = least;
            self.least_value = self.weigher.least_value(self.driver.multiplier, least);
        }
    }

    /// Keeps the candidates that all lists have.
    #[inline(always)]
    fn keep_common<L: Lanes>(&mut self, lanes: L, candidates: &mut Candidates) -> Result<(), IndexError> {
        for (number, positions) in self.positions.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
            if candidates.count == 0 {
                break;
            }
            if number == self.others.len() {
                let Some(next) = self.unopened.open_next()? else { break };
                self.others.push(next);
            }
            let other = &mut self.others[number];
            match other.list.dense().copied() {
                Some(dense) => candidates.keep_dense(&dense),
                None => other.keep_sparse(lanes, candidates, positions, &mut self.work),
            }
        }
        Ok(())
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
        for (other, positions) in self.others.iter().zip(self.positions.as_chunks::<BLOCK>().0) {
            let Candidates { documents, count, origins, .. } = &*candidates;
            match other.list.dense() {
                Some(dense) => dense.values_of(W::COLUMN, &documents[..*count], &mut values),
                None => {
                    let position_of = |origin: &u8| positions[usize::from(*origin) % BLOCK] as usize;
                    let mut values = &mut values[..];
                    for run in origins[..*count].chunk_by(|a, b| position_of(a) / BLOCK == position_of(b) / BLOCK) {
                        let (some, rest) = values.split_at_mut(run.len());
                        let indexes = run.iter().map(|origin| position_of(origin) % BLOCK);
                        other.list.values_at(W::COLUMN, position_of(&run[0]) / BLOCK, indexes, some);
                        values = rest;
                    }
                }
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

    /// Reads the driver's values of the candidates: one by one, or decoded together if there are many.
    #[inline(always)]
    fn driver_values(&mut self, candidates: &Candidates, block: usize, values: &mut BlockBuffer) {
        let origins = &candidates.origins[..candidates.count];
        if candidates.count < DECODE_TOGETHER && !self.are_values_decoded {
            let positions = origins.iter().map(|&origin| usize::from(origin));
            return self.driver.list.values_at(W::COLUMN, block, positions, values);
        }
        if !self.are_values_decoded {
            self.driver.list.decode_values(W::COLUMN, block, &mut self.values);
        }
        for (value, &origin) in values.iter_mut().zip(origins) {
            *value = self.values[usize::from(origin) % BLOCK];
        }
    }

    #[inline(always)]
    fn push(&mut self, document: u32, score: u32) {
        if self.task.passes(document) {
            self.work.documents_scored += 1;
            self.top.push(DocId(document), score.wrapping_add(self.task.static_part(document)));
        }
    }

    /// Answers an AND of dense lists: intersects their words, in chunks whose bounds together reach the threshold.
    #[inline(always)]
    fn run_dense<L: Lanes>(&mut self, lanes: L, driver: Dense<'_>) -> Result<(), IndexError> {
        let range = self.task.plan.range.clone();
        let (first, end) = (range.start as usize / CHUNK, (range.end as usize).div_ceil(CHUNK));
        let mut lists = Vec::with_capacity(1 + self.unopened.planned.len());
        lists.push(DenseList::new(self.weigher, &driver, self.driver.multiplier, self.driver.bound));
        while let Some(Probed { list, multiplier, bound, .. }) = self.unopened.open_next()? {
            // Only in a damaged file is a list not dense.
            lists.extend(list.dense().map(|dense| DenseList::new(self.weigher, dense, multiplier, bound)));
        }
        // Sums of bounds that do not fit 32 bits are not compared.
        let bounds_fit = lists.iter().map(DenseList::largest_bound).sum::<u64>() < u64::from(u32::MAX);
        lists.sort_by_key(|list| Reverse(list.bound));
        let mut bounds = [0; CHUNKS];
        for start in (first..end).step_by(CHUNKS) {
            bounds.fill(if bounds_fit { 0 } else { u32::MAX });
            for list in lists.iter().filter(|_| bounds_fit) {
                list.add_bounds(lanes, start, &mut bounds);
            }
            let mut chunks = lanes.chunks_at_least(&bounds, self.least());
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
        Ok(())
    }

    /// The least score that can enter, without the most that the static rank can add.
    #[inline(always)]
    fn least(&self) -> u32 {
        self.top.threshold_in_order().saturating_sub(self.task.plan.static_bound)
    }

    /// Scores the documents of a chunk that all lists have: together where they are many, else one by one.
    #[inline(always)]
    fn score_chunk<L: Lanes>(&mut self, lanes: L, lists: &[DenseList<'_>], chunk: usize, mut word: u64) {
        let mut scores = [0; CHUNK];
        if word.count_ones() >= SCORE_TOGETHER {
            for list in lists {
                self.work.postings_decoded += u64::from(list.add(lanes, self.weigher, chunk, &mut scores));
            }
            word &= lanes.at_least(&scores, self.least());
        } else {
            self.work.postings_decoded += u64::from(word.count_ones()) * lists.len() as u64;
            word = self.score_each(lists, chunk, word, &mut scores);
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

    /// Scores each document until it cannot enter; returns the bits of those that can.
    #[inline(always)]
    fn score_each(&self, lists: &[DenseList<'_>], chunk: usize, word: u64, scores: &mut [u32; CHUNK]) -> u64 {
        let (least, mut rest, mut strong) = (self.least(), word, 0);
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_documents_of_a_block_that_are_in_a_range_are_found(start in 0u32..500, length in 0u32..500, count in 1..=BLOCK) {
            let documents: Vec<u32> = (0..count as u32).map(|position| 3 * position + 7).collect();
            let range = start..start + length;
            let expected = documents.iter().enumerate().filter(|(_, document)| range.contains(document));
            prop_assert_eq!(inside(&documents, &range), expected.map(|(position, _)| 1 << position).sum::<u128>());
        }
    }
}
