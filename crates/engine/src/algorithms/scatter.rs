//! OR: scatter the sparse, look up the dense.
//!
//! The collection is passed once, a window of 8,192 documents at a time. Postings of sparse lists are added into
//! accumulators that stay in the L1 cache. Dense lists are not walked: the bounds of their chunks of 64 documents are
//! added up with the highest score there; where that reaches the threshold, one comparison of the chunk's accumulators
//! with `threshold - bounds` yields the documents that can still enter. Only these look the dense lists up, strongest
//! first, leaving as soon as they cannot enter any more. In a chunk whose bounds alone reach the threshold the strongest
//! dense lists are accumulated too, until the bounds of the others no longer do. And once the threshold is above what
//! some sparse lists can bring in together with the dense ones, long ones among them are looked up too. The threshold
//! starts at the plan's seed.
//!
//! Ours; the parts are MaxScore (Turtle and Flood 1995), windows of accumulators (Lucene's bulk scorer), bitmaps with
//! ranks (Jacobson 1989) and block-max bounds (Ding and Suel 2011).

use super::dense_list::DenseList;
use super::lanes::{self, CHUNK, CHUNKS, Lanes, WithLanes};
use super::weigher::{Postings, Weigher};
use super::{Task, Workspace, block_buffers};
use crate::algorithms::topk::TopK;
use crate::query::answer::Work;
use crate::query::plan::{Plan, PlannedList};
use lanner_index::DocId;
use lanner_index::codec::BLOCK;
use lanner_index::format::IndexError;
use lanner_index::open::{BlockBuffer, List};
use std::cmp::Reverse;
use std::ops::Range;

/// Documents of a window: 32 KiB of accumulators.
const WINDOW: usize = CHUNK * CHUNKS;

/// A sparse list that cannot bring a document in is looked up if it has so many times the postings of the lists that
/// can: looking up a document costs more than scattering a posting.
const LOOKED_UP_FROM: usize = 8;

/// The accumulators of a window, all zero between windows, and what is known of its chunks.
pub struct Window {
    scores: Box<[[u32; CHUNK]; CHUNKS]>,
    /// The highest score in each chunk.
    peaks: [u32; CHUNKS],
    /// The most that a document can have in each chunk: the peak, and the bounds of the lists that are looked up.
    bounds: [u32; CHUNKS],
}

impl Default for Window {
    fn default() -> Self {
        Window { scores: Box::new([[0; CHUNK]; CHUNKS]), peaks: [0; CHUNKS], bounds: [0; CHUNKS] }
    }
}

/// Answers an OR.
pub fn cpu<W: Weigher>(task: &Task<'_>, weigher: W, workspace: &mut Workspace) -> Result<Work, IndexError> {
    let level = workspace.simd_level;
    let mut scatter = Scatter::open(task, weigher, workspace)?;
    lanes::run(level, &mut scatter);
    Ok(scatter.work)
}

/// A list that is scattered, with the block that is being read; or, once the threshold is above what it can bring in,
/// one that is looked up too.
struct Sparse<'a> {
    list: List<'a>,
    multiplier: f32,
    bound: u32,
    /// The most that all other lists and the static rank can add.
    others: u32,
    /// The block to be decoded next, and the first after the plan's.
    next_block: usize,
    end_block: usize,
    /// `documents[position..count]` are still to be scattered.
    position: usize,
    count: usize,
    /// Of a list that is looked up: the block that can have the document looked up last, and whether it is decoded.
    block: usize,
    is_decoded: bool,
    documents: &'a mut BlockBuffer,
    weights: &'a mut BlockBuffer,
}

struct Scatter<'a, W> {
    task: &'a Task<'a>,
    weigher: W,
    /// Strongest first. The first `essential` of them are scattered: a document without any of these cannot enter.
    sparse: Vec<Sparse<'a>>,
    essential: usize,
    /// The most that the other sparse lists can add.
    rest: u32,
    /// Strongest first.
    dense: Vec<DenseList<'a>>,
    /// The most that they can add.
    dense_bound: u32,
    window: &'a mut Window,
    top: &'a mut TopK,
    /// The least score that can enter, less what the static rank can add.
    threshold: u32,
    work: Work,
}

impl<'a, W: Weigher> Scatter<'a, W> {
    fn open(task: &'a Task<'a>, weigher: W, workspace: &'a mut Workspace) -> Result<Scatter<'a, W>, IndexError> {
        let Plan { range, lists, largest_score, .. } = task.plan;
        let Workspace { top, window, blocks, .. } = workspace;
        let mut buffers = block_buffers(blocks, 2 * lists.len());
        let (mut sparse, mut dense) = (Vec::with_capacity(lists.len()), Vec::with_capacity(lists.len()));
        let mut work = Work::default();
        for planned in lists.iter() {
            let list = task.index.list_at(planned.span)?;
            let PlannedList { multiplier, bound, .. } = *planned;
            if let Some(found) = list.dense() {
                dense.push(DenseList::new(weigher, found, multiplier, bound));
                continue;
            }
            let next_block = list.find_block(0, range.start);
            let end_block = (list.find_block(next_block, range.end - 1) + 1).min(list.blocks());
            work.blocks_skipped += end_block.saturating_sub(next_block) as u64;
            let others = largest_score - bound.min(*largest_score);
            let (Some(documents), Some(weights)) = (buffers.next(), buffers.next()) else { break };
            sparse.push(Sparse {
                list,
                multiplier,
                bound,
                others,
                next_block,
                end_block,
                position: 0,
                count: 0,
                block: 0,
                is_decoded: false,
                documents,
                weights,
            });
        }
        sparse.sort_by_key(|sparse| Reverse(sparse.bound));
        dense.sort_by_key(|looked| Reverse(looked.bound));
        let dense_bound = dense.iter().fold(0u32, |sum, looked| sum.saturating_add(looked.bound));
        let essential = sparse.len();
        Ok(Scatter { task, weigher, sparse, essential, rest: 0, dense, dense_bound, window, top, threshold: 0, work })
    }
}

impl<W: Weigher> WithLanes for &mut Scatter<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        self.raise_threshold();
        let range = &self.task.plan.range;
        let (mut window, windows) = (range.start as usize / WINDOW, (range.end as usize).div_ceil(WINDOW));
        while window < windows {
            let start = (window * WINDOW) as u32;
            if !self.divide() {
                return;
            }
            let has_postings = self.scatter(lanes, start);
            self.add_bounds(lanes, window);
            let mut chunks = lanes.chunks_at_least(&self.window.bounds, self.threshold);
            // Documents after the last do not exist, and their bounds mean nothing.
            let count = (self.task.index.documents() as usize - window * WINDOW).div_ceil(CHUNK);
            if count < CHUNKS {
                chunks &= (1 << count) - 1;
            }
            if has_postings {
                self.empty(lanes.chunks_at_least(&self.window.peaks, 1) & !chunks);
            }
            while chunks != 0 {
                let chunk = chunks.trailing_zeros() as usize;
                chunks &= chunks - 1;
                self.collect(lanes, window * CHUNKS + chunk, chunk);
            }
            self.window.peaks = [0; CHUNKS];
            window += 1;
        }
    }
}

impl<W: Weigher> Scatter<'_, W> {
    /// Takes over the threshold of the hits so far. Documents come in order.
    #[inline(always)]
    fn raise_threshold(&mut self) {
        // A weight is at least 1, so a chunk whose bound is 0 has no posting, whatever the static rank adds.
        self.threshold = self.top.threshold_in_order().saturating_sub(self.task.plan.static_bound).max(1);
    }

    /// Sees which sparse lists cannot bring a document in any more, not even all of them together with the dense ones;
    /// whether there is a list that can.
    #[inline(always)]
    fn divide(&mut self) -> bool {
        while let Some((weakest, others)) = self.sparse[..self.essential].split_last_mut() {
            let rest = self.rest.saturating_add(weakest.bound);
            if self.dense_bound.saturating_add(rest) >= self.threshold {
                return true;
            }
            let candidates = others.iter().map(|other| other.list.postings() as usize).sum::<usize>();
            if (weakest.list.postings() as usize) < LOOKED_UP_FROM * candidates {
                return true;
            }
            weakest.block = weakest.next_block.saturating_sub(1);
            self.rest = rest;
            self.essential -= 1;
        }
        self.dense_bound >= self.threshold
    }

    /// Adds the postings of the sparse lists in the window; whether there were any.
    #[inline(always)]
    fn scatter<L: Lanes>(&mut self, lanes: L, start: u32) -> bool {
        let end = start.saturating_add(WINDOW as u32);
        let mut has_postings = false;
        let scores = self.window.scores.as_flattened_mut().as_mut_array::<WINDOW>();
        let Some(scores) = scores else { return false };
        for sparse in &mut self.sparse[..self.essential] {
            loop {
                if sparse.position == sparse.count
                    && !sparse.next(lanes, self.weigher, start..end, self.threshold, &mut self.work)
                {
                    break;
                }
                let mut position = sparse.position;
                while position < sparse.count {
                    let document = sparse.documents[position % BLOCK];
                    if document >= end {
                        break;
                    }
                    // Only in a damaged file does a document lie before the window.
                    let place = document.wrapping_sub(start) as usize % WINDOW;
                    let score = scores[place].wrapping_add(sparse.weights[position % BLOCK]);
                    scores[place] = score;
                    let peak = &mut self.window.peaks[place / CHUNK];
                    *peak = score.max(*peak);
                    position += 1;
                }
                has_postings |= position > sparse.position;
                sparse.position = position;
                if position < sparse.count {
                    break;
                }
            }
        }
        has_postings
    }

    /// Empties the accumulators of chunks in which no document can enter.
    #[inline(always)]
    fn empty(&mut self, mut chunks: u128) {
        while chunks != 0 {
            self.window.scores[chunks.trailing_zeros() as usize % CHUNKS] = [0; CHUNK];
            chunks &= chunks - 1;
        }
    }

    /// Adds up the peaks of the window's chunks and the bounds of the lists that are looked up.
    #[inline(always)]
    fn add_bounds<L: Lanes>(&mut self, lanes: L, window: usize) {
        let bounds = &mut self.window.bounds;
        *bounds = self.window.peaks.map(|peak| peak.wrapping_add(self.rest));
        for looked in &self.dense {
            looked.add_bounds(lanes, window * CHUNKS, bounds);
        }
    }

    /// Pushes the documents of a chunk that can enter, and empties its accumulators.
    #[inline(always)]
    fn collect<L: Lanes>(&mut self, lanes: L, chunk: usize, chunk_in_window: usize) {
        let mut bound = self.window.bounds[chunk_in_window].wrapping_sub(self.window.peaks[chunk_in_window]);
        let mut looked_from = 0;
        while bound >= self.threshold && looked_from < self.dense.len() {
            let strongest = &self.dense[looked_from];
            bound = bound.wrapping_sub(strongest.bound_in(chunk));
            let postings = strongest.add(lanes, self.weigher, chunk, &mut self.window.scores[chunk_in_window]);
            self.work.postings_decoded += u64::from(postings);
            looked_from += 1;
        }
        let inside = self.inside(chunk);
        let scores = &mut self.window.scores[chunk_in_window];
        // A document that has no posting so far cannot enter: all lists are accumulated, or the others do not suffice.
        let least = self.threshold.saturating_sub(bound).max(1);
        let mut candidates = lanes.at_least(scores, least) & inside;
        if candidates != 0 {
            let found = *scores;
            *scores = [0; CHUNK];
            while candidates != 0 {
                let bit = candidates.trailing_zeros();
                candidates &= candidates - 1;
                self.finish(lanes, (chunk, bit), found[bit as usize % CHUNK], bound, looked_from);
            }
        } else {
            *scores = [0; CHUNK];
        }
    }

    /// The documents of a chunk that the plan's range has.
    #[inline(always)]
    fn inside(&self, chunk: usize) -> u64 {
        let range = &self.task.plan.range;
        let first = (chunk * CHUNK) as u64;
        let mut mask = u64::MAX;
        if u64::from(range.start) > first {
            mask = u64::MAX.checked_shl((u64::from(range.start) - first) as u32).unwrap_or(0);
        }
        if u64::from(range.end) < first + CHUNK as u64 {
            mask &= (1 << (u64::from(range.end).saturating_sub(first))) - 1;
        }
        mask
    }

    /// Looks a document up in the lists that were not accumulated, whose bounds add up to `bound`, and pushes it if it
    /// can enter.
    #[inline(always)]
    fn finish<L: Lanes>(
        &mut self,
        lanes: L,
        (chunk, bit): (usize, u32),
        mut score: u32,
        mut bound: u32,
        looked_from: usize,
    ) {
        let document = (chunk * CHUNK) as u32 + bit;
        for looked in &self.dense[looked_from..] {
            if score.wrapping_add(bound) < self.threshold {
                return;
            }
            bound = bound.wrapping_sub(looked.bound_in(chunk));
            let word = looked.dense.word(chunk);
            if word >> bit & 1 == 1 {
                score = score.wrapping_add(looked.weigh(self.weigher, chunk, word, bit));
            }
        }
        for sparse in &mut self.sparse[self.essential..] {
            if score.wrapping_add(bound) < self.threshold {
                return;
            }
            bound = bound.wrapping_sub(sparse.bound);
            let least = self.threshold.saturating_sub(score.wrapping_add(bound));
            match sparse.look_up(lanes, self.weigher, document, least, &mut self.work) {
                Some(weight) => score = score.wrapping_add(weight),
                None => return,
            }
        }
        if score >= self.threshold && self.task.passes(document) {
            self.work.documents_scored += 1;
            if self.top.push(DocId(document), score.wrapping_add(self.task.static_part(document))) {
                self.raise_threshold();
            }
        }
    }
}

impl Sparse<'_> {
    /// The weight of a document, 0 if the list does not have it; `None` where no weight of its block is `least`.
    /// Documents come in order.
    #[inline(always)]
    fn look_up<L: Lanes, W: Weigher>(
        &mut self,
        lanes: L,
        weigher: W,
        document: u32,
        least: u32,
        work: &mut Work,
    ) -> Option<u32> {
        let absent = (least == 0).then_some(0);
        if self.block >= self.end_block {
            return absent;
        }
        if self.list.last_document(self.block) < document {
            self.block = self.list.find_block(self.block + 1, document);
            self.is_decoded = false;
            if self.block >= self.end_block {
                return absent;
            }
        }
        if weigher.block_bound(&self.list, self.block, self.multiplier) < least {
            return None;
        }
        if !self.is_decoded {
            let count = self.list.decode_documents(self.block, self.documents);
            self.documents[count..].fill(u32::MAX);
            self.is_decoded = true;
            work.postings_decoded += count as u64;
            work.blocks_decoded += 1;
            work.blocks_skipped = work.blocks_skipped.saturating_sub(1);
        }
        let place = lanes.count_below(self.documents, document) % BLOCK;
        if self.documents[place] != document {
            return absent;
        }
        let value = self.list.weight_at(W::COLUMN, self.block, place);
        Some(weigher.weigh(self.multiplier, value, document))
    }

    /// Decodes and weighs the next block that can have a document of the window and bring one into the answer; whether
    /// there is one.
    #[inline(always)]
    fn next<L: Lanes, W: Weigher>(
        &mut self,
        lanes: L,
        weigher: W,
        window: Range<u32>,
        threshold: u32,
        work: &mut Work,
    ) -> bool {
        let last = window.end - 1;
        loop {
            let block = self.next_block;
            if block >= self.end_block || (block > 0 && self.list.last_document(block - 1) >= last) {
                return false;
            }
            self.next_block += 1;
            // What the others can add includes the static rank, which is not in the threshold here: so much the safer.
            if weigher.block_bound(&self.list, block, self.multiplier).saturating_add(self.others) < threshold {
                continue;
            }
            self.count = self.list.decode_documents(block, self.documents);
            self.position = 0;
            if self.documents[0] < window.start {
                // The plan's first block may begin before its first window.
                self.position = self.documents[..self.count].partition_point(|&document| document < window.start);
            }
            let mut values = [1; BLOCK];
            self.list.decode_weights(W::COLUMN, block, &mut values);
            let postings = Postings { values: &values, documents: self.documents, count: self.count };
            weigher.weigh_block(lanes, self.multiplier, &postings, self.weights);
            work.postings_decoded += self.count as u64;
            work.blocks_decoded += 1;
            work.blocks_skipped = work.blocks_skipped.saturating_sub(1);
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Known;
    use super::super::lanes::{BlockToWeigh, Portable};
    use super::super::weigher::Frequencies;
    use super::*;
    use crate::query::Query;
    use crate::query::document_set::DocumentSet;
    use crate::query::planner::Planner;
    use lanner_index::build::{BuildOptions, Quiet, build};
    use lanner_index::corpus::{Corpus, CorpusOptions};
    use lanner_index::open::Index;
    use std::cell::Cell;
    use std::sync::Arc;

    /// Portable lanes that count the chunks whose scores are compared.
    #[derive(Clone, Copy)]
    struct CountingLanes<'a>(&'a Cell<usize>);

    impl Lanes for CountingLanes<'_> {
        fn at_least(self, values: &[u32; CHUNK], least: u32) -> u64 {
            self.0.update(|chunks| chunks + 1);
            Portable.at_least(values, least)
        }

        fn chunks_at_least(self, values: &[u32; CHUNKS], least: u32) -> u128 {
            Portable.chunks_at_least(values, least)
        }

        fn weigh_frequencies(self, from: &BlockToWeigh<'_>, count: usize, out: &mut BlockBuffer) {
            Portable.weigh_frequencies(from, count, out);
        }

        fn weigh_impacts(self, multiplier: f32, impacts: &BlockBuffer, count: usize, out: &mut BlockBuffer) {
            Portable.weigh_impacts(multiplier, impacts, count, out);
        }
    }

    const DOCUMENTS: u32 = 3 * WINDOW as u32;

    /// `rare` is in three documents of different windows, `frequent` in the documents of the first 100 chunks.
    fn index() -> Index {
        let rare = [7, 9000, DOCUMENTS - 1];
        let text = |document: u32| match document {
            _ if rare.contains(&document) => "rare frequent",
            0..6400 => "frequent",
            _ => "",
        };
        let documents = (0..DOCUMENTS).map(|number| (number.to_string(), String::new(), text(number).to_owned()));
        let corpus = Corpus::from_documents(documents.collect::<Vec<_>>(), CorpusOptions::default()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        build(folder.path(), corpus, &BuildOptions { threads: 1, ..BuildOptions::default() }, &Quiet).unwrap();
        Index::open(folder.path()).unwrap()
    }

    /// The hits of a query, and how many chunks were collected for it.
    fn collected(index: &Index, query: &Query) -> (usize, usize) {
        let plan = Planner::new(index).plan(query).unwrap();
        assert_eq!(plan.seed, None, "a seed would hide the threshold of a query without one");
        let task = Task { plan: &plan, stage: &plan.stages[0], index, known: &Known::default() };
        let mut workspace = Workspace::default();
        workspace.top.reset(plan.k, 0);
        let chunks = Cell::new(0);
        let mut scatter = Scatter::open(&task, Frequencies::new(&plan, index), &mut workspace).unwrap();
        scatter.run(CountingLanes(&chunks));
        (workspace.top.len(), chunks.get())
    }

    #[test]
    fn a_query_with_fewer_than_k_hits_collects_only_chunks_that_have_postings() {
        let index = index();
        assert_eq!(collected(&index, &Query::new("rare")), (3, 3));
        let nothing = Query::new("frequent").filter(Arc::new(DocumentSet::default()));
        assert_eq!(collected(&index, &nothing), (0, 102), "100 chunks, and two with one document");
    }
}
