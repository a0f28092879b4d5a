//! AND: the rarest list drives, a block of its documents at a time.
//!
//! The documents of a block are candidates; each other list, from rare to frequent, keeps those that it has too. In a
//! dense list that is a bit test, without a branch; in a sparse one the directory of its blocks is searched first, so
//! only blocks that may hold a candidate are decoded, and the place inside is found by comparing lanes, which takes
//! the same time wherever it is. Those that are left are weighed a list at a time, in lanes, and dropped as soon as they
//! cannot enter; blocks of the driver that are too light to enter are not even decoded. When all lists are dense, their
//! words are combined instead.

use super::lanes::{self, CHUNK, Lanes, WithLanes};
use super::weigher::{Postings, Weigher};
use super::{Task, Workspace, block_buffers};
use crate::answer::Work;
use crate::plan::PlannedList;
use crate::topk::TopK;
use lanner_index::DocId;
use lanner_index::codec::BLOCK;
use lanner_index::format::IndexError;
use lanner_index::open::{BlockBuffer, Dense, Index, List};

/// From so many candidates left of a block on, its weights are decoded together.
const DECODE_TOGETHER: usize = 12;

/// Answers an AND.
pub fn cpu<W: Weigher>(task: &Task<'_>, weigher: W, workspace: &mut Workspace) -> Result<Work, IndexError> {
    let mut planned: Vec<&PlannedList> = task.plan.lists.iter().collect();
    planned.sort_by_key(|planned| planned.postings);
    let Workspace { top, blocks, places, widest, .. } = workspace;
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
    lanes::run(*widest, &mut conjunction);
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
        let PlannedList { place, multiplier, bound, .. } = *planned;
        self.rest = self.rest.saturating_sub(bound);
        let list = self.index.list_at(place)?;
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
        work: &mut Work,
    ) {
        let mut kept = 0;
        for i in 0..candidates.count.min(BLOCK) {
            let document = candidates.documents[i];
            if self.last.is_none_or(|last| last < document) && !self.enter(document, work) {
                break;
            }
            let place = lanes.count_below(self.documents, document) % BLOCK;
            let origin = candidates.origins[i];
            places[usize::from(origin) % BLOCK] = (self.block * BLOCK + place) as u32;
            candidates.documents[kept] = document;
            candidates.origins[kept] = origin;
            kept += usize::from(self.documents[place] == document);
        }
        candidates.count = kept;
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

/// Documents of a block of the driver that all lists so far have.
struct Candidates {
    count: usize,
    documents: [u32; BLOCK],
    /// The place in the block that each had at first.
    origins: [u8; BLOCK],
}

impl Candidates {
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
            Some(driver) => self.run_dense(&driver),
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
            candidates.count = 0;
            for (origin, &document) in (0u8..).zip(&self.driver.documents[..count]) {
                candidates.documents[candidates.count] = document;
                candidates.origins[candidates.count] = origin;
                candidates.count += usize::from(range.contains(&document));
            }
            self.keep_common(lanes, &mut candidates);
            self.score(lanes, &mut candidates, block);
        }
    }

    /// Keeps the candidates that all lists have.
    #[inline(always)]
    fn keep_common<L: Lanes>(&mut self, lanes: L, candidates: &mut Candidates) {
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
                None => other.keep_sparse(lanes, candidates, places, &mut self.work),
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
                    Some(dense) => dense.value(W::STREAM, place),
                    None => other.list.weight_at(W::STREAM, place as usize / BLOCK, place as usize % BLOCK),
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
                *value = self.driver.list.weight_at(W::STREAM, block, usize::from(origin));
            }
            return;
        }
        let mut all = [0; BLOCK];
        self.driver.list.decode_weights(W::STREAM, block, &mut all);
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

    /// All lists are dense: their words are combined.
    #[inline(always)]
    fn run_dense(&mut self, driver: &Dense<'_>) {
        let range = self.task.plan.range.clone();
        let (first, end) = (range.start as usize / CHUNK, (range.end as usize).div_ceil(CHUNK));
        self.open_all();
        for chunk in first..end {
            let mut word = driver.word(chunk);
            for other in self.others.iter() {
                word &= other.list.dense().map_or(0, |dense| dense.word(chunk));
            }
            if word == 0 || !self.can_enter(driver, chunk) {
                continue;
            }
            while word != 0 {
                let document = (chunk * CHUNK) as u32 + word.trailing_zeros();
                word &= word - 1;
                if range.contains(&document) {
                    self.score_dense(driver, document);
                }
            }
        }
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

    /// Whether the bounds of a chunk together reach the threshold.
    #[inline(always)]
    fn can_enter(&self, driver: &Dense<'_>, chunk: usize) -> bool {
        let bound = |dense: &Dense<'_>, multiplier: f32, bound: u32| {
            let (codes, factor) = self.weigher.chunk_bounds(dense, multiplier);
            codes.get(chunk).map_or(bound, |&code| u32::from(code).saturating_mul(factor))
        };
        let mut sum = self.task.plan.static_bound;
        sum = sum.saturating_add(bound(driver, self.driver.multiplier, self.driver.bound));
        for other in self.others.iter() {
            if let Some(dense) = other.list.dense() {
                sum = sum.saturating_add(bound(dense, other.multiplier, other.bound));
            }
        }
        sum >= self.top.threshold_in_order()
    }

    #[inline(always)]
    fn score_dense(&mut self, driver: &Dense<'_>, document: u32) {
        let threshold = self.top.threshold_in_order();
        let weight = |dense: &Dense<'_>, multiplier: f32| {
            let value = dense.find(document).map_or(1, |rank| dense.value(W::STREAM, rank));
            self.weigher.weigh(multiplier, value, document)
        };
        self.work.postings_decoded += 1 + self.others.len() as u64;
        let mut score = weight(driver, self.driver.multiplier);
        for other in self.others.iter() {
            if let Some(dense) = other.list.dense() {
                score = score.wrapping_add(weight(dense, other.multiplier));
            }
            if score.saturating_add(other.rest) < threshold {
                return;
            }
        }
        self.push(document, score);
    }
}
