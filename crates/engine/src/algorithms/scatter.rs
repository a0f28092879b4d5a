//! OR: scatter sparse lists, look up dense lists.
//!
//! One pass over the collection, in windows of 8,192 documents whose accumulators stay in the L1 cache. The postings of
//! sparse lists are added to the accumulators. Dense lists are not walked. The bounds of their chunks of 64 documents
//! are added to the highest score in the chunk; where the sum reaches the threshold, one comparison of the chunk's
//! accumulators with `threshold - bounds` yields the documents that can still enter the top k. Only these are looked up
//! in the dense lists, strongest list first, until they can no longer enter. In a chunk whose bounds alone reach the
//! threshold the strongest dense lists are accumulated too, until the bounds of the others no longer reach it. As in
//! MaxScore, the weakest sparse lists are not scattered but looked up, once their bounds and those of the dense lists
//! together stay below the threshold; lists with fewer than `LOOKUP_RATIO` times the postings of the essential ones are
//! scattered all the same, which is cheaper. The threshold starts at the plan's seed.
//!
//! Ours; the parts are MaxScore (Turtle and Flood 1995), windows of accumulators (Lucene's bulk scorer), bitmaps with
//! ranks (Jacobson 1989) and block-max bounds (Ding and Suel 2011).

use super::dense_list::DenseList;
use super::lanes::{self, CHUNK, CHUNKS, Lanes, WithLanes};
use super::weigher::{Postings, Weigher};
use super::{L1_WINDOW, Task, Workspace, block_buffers};
use crate::algorithms::topk::TopK;
use crate::query::answer::Work;
use crate::query::plan::{Plan, PlannedList};
use lanner_index::DocId;
use lanner_index::codec::BLOCK;
use lanner_index::format::IndexError;
use lanner_index::open::{BlockBuffer, List};
use std::cmp::Reverse;
use std::ops::Range;

/// A non-essential sparse list is looked up only if it has at least this many times the postings of the essential ones:
/// looking up a document costs more than scattering a posting (decision 17).
const LOOKUP_RATIO: usize = 8;

/// The accumulators of 8,192 documents, 32 KiB that stay in the L1 cache, with the bounds of their chunks. All
/// accumulators are zero between windows.
pub struct L1Window {
    scores: Box<[[u32; CHUNK]; CHUNKS]>,
    /// The highest score in each chunk.
    peaks: [u32; CHUNKS],
    /// The most that a document can score in each chunk: the peak and the bounds of the lists that are looked up.
    bounds: [u32; CHUNKS],
}

impl Default for L1Window {
    fn default() -> Self {
        L1Window { scores: Box::new([[0; CHUNK]; CHUNKS]), peaks: [0; CHUNKS], bounds: [0; CHUNKS] }
    }
}

/// Answers an OR.
pub fn cpu<W: Weigher>(task: &Task<'_>, weigher: W, workspace: &mut Workspace) -> Result<Work, IndexError> {
    let level = workspace.simd_level;
    let mut scatter = Scatter::open(task, weigher, workspace)?;
    lanes::run(level, &mut scatter);
    Ok(scatter.work)
}

/// A sparse list. It is scattered block by block, or looked up once it is no longer essential.
struct Sparse<'a, W> {
    list: List<'a>,
    weigher: W,
    multiplier: f32,
    bound: u32,
    /// The most that all other lists and the static rank can add.
    others: u32,
    /// The block to decode next, and the end of the blocks in the plan's range.
    next_block: usize,
    end_block: usize,
    /// `documents[position..count]` are still to be scattered.
    position: usize,
    count: usize,
    /// For lookups: the block that can have the last document looked up, and whether it is decoded.
    block: usize,
    is_decoded: bool,
    documents: &'a mut BlockBuffer,
    weights: &'a mut BlockBuffer,
}

/// An OR that is being answered.
struct Scatter<'a, W> {
    task: &'a Task<'a>,
    weigher: W,
    /// Strongest first. The first `essential` are scattered: a document that is in none of these cannot enter.
    sparse: Vec<Sparse<'a, W>>,
    essential: usize,
    /// The most that the other sparse lists can add.
    rest: u32,
    /// Strongest first.
    dense: Vec<DenseList<'a>>,
    /// The most that the dense lists can add.
    dense_bound: u32,
    window: &'a mut L1Window,
    top: &'a mut TopK,
    /// The least score that can enter, without the most that the static rank can add; at least 1.
    threshold: u32,
    work: Work,
}

/// A document that can enter, as far as its lists have been read.
struct Candidate {
    chunk: usize,
    bit: u32,
    score: u32,
    /// The most that the remaining lists can add.
    bound: u32,
    /// The first dense list that is still to be looked up.
    dense_from: usize,
}

impl<'a, W: Weigher> Scatter<'a, W> {
    fn open(task: &'a Task<'a>, weigher: W, workspace: &'a mut Workspace) -> Result<Scatter<'a, W>, IndexError> {
        let Plan { range, lists, largest_score, .. } = task.plan;
        let Workspace { top, window, blocks, .. } = workspace;
        let mut buffers = block_buffers(blocks, 2 * lists.len());
        let mut buffer = || buffers.next().expect("there are two buffers for each list");
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
            sparse.push(Sparse {
                list,
                weigher,
                multiplier,
                bound,
                others: largest_score.saturating_sub(bound),
                next_block,
                end_block,
                position: 0,
                count: 0,
                block: 0,
                is_decoded: false,
                documents: buffer(),
                weights: buffer(),
            });
        }
        sparse.sort_by_key(|sparse| Reverse(sparse.bound));
        dense.sort_by_key(|dense| Reverse(dense.bound));
        let dense_bound = dense.iter().fold(0u32, |sum, dense| sum.saturating_add(dense.bound));
        let essential = sparse.len();
        Ok(Scatter { task, weigher, sparse, essential, rest: 0, dense, dense_bound, window, top, threshold: 1, work })
    }
}

impl<W: Weigher> WithLanes for &mut Scatter<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        self.raise_threshold();
        let range = &self.task.plan.range;
        for window in range.start as usize / L1_WINDOW..(range.end as usize).div_ceil(L1_WINDOW) {
            if !self.divide() {
                return;
            }
            let has_postings = self.scatter(lanes, (window * L1_WINDOW) as u32);
            self.add_bounds(lanes, window);
            let mut chunks = lanes.chunks_at_least(&self.window.bounds, self.threshold);
            // Chunks after the last document do not exist, and their bounds mean nothing.
            let count = (self.task.index.documents() as usize - window * L1_WINDOW).div_ceil(CHUNK);
            if count < CHUNKS {
                chunks &= (1 << count) - 1;
            }
            if has_postings {
                self.clear(lanes.chunks_at_least(&self.window.peaks, 1) & !chunks);
            }
            while chunks != 0 {
                let chunk = chunks.trailing_zeros() as usize;
                chunks &= chunks - 1;
                self.collect(lanes, window * CHUNKS + chunk, chunk);
            }
            self.window.peaks = [0; CHUNKS];
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

    /// Makes the weakest sparse lists non-essential whose bounds, with those of the dense lists, stay below the
    /// threshold: a document that is in no other list cannot enter. Lists that are not much longer than the essential
    /// ones stay essential. Returns whether any document can still enter.
    #[inline(always)]
    fn divide(&mut self) -> bool {
        while let Some((weakest, others)) = self.sparse[..self.essential].split_last_mut() {
            let rest = self.rest.saturating_add(weakest.bound);
            if self.dense_bound.saturating_add(rest) >= self.threshold {
                return true;
            }
            let candidates = others.iter().map(|other| other.list.postings() as usize).sum::<usize>();
            if (weakest.list.postings() as usize) < LOOKUP_RATIO * candidates {
                return true;
            }
            weakest.block = weakest.next_block.saturating_sub(1);
            self.rest = rest;
            self.essential -= 1;
        }
        self.dense_bound >= self.threshold
    }

    /// Adds the postings of the essential lists to the window that begins at `start`; returns whether there were any.
    #[inline(always)]
    fn scatter<L: Lanes>(&mut self, lanes: L, start: u32) -> bool {
        let window = start..start.saturating_add(L1_WINDOW as u32);
        let mut has_postings = false;
        for sparse in &mut self.sparse[..self.essential] {
            while sparse.position < sparse.count || sparse.next(lanes, window.clone(), self.threshold, &mut self.work) {
                has_postings |= sparse.scatter(self.window, window.clone());
                if sparse.position < sparse.count {
                    break;
                }
            }
        }
        has_postings
    }

    /// Clears the accumulators of chunks in which no document can enter.
    #[inline(always)]
    fn clear(&mut self, mut chunks: u128) {
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
        for dense in &self.dense {
            dense.add_bounds(lanes, window * CHUNKS, bounds);
        }
    }

    /// Pushes the documents of a chunk that can enter, and clears its accumulators.
    #[inline(always)]
    fn collect<L: Lanes>(&mut self, lanes: L, chunk: usize, chunk_in_window: usize) {
        let mut bound = self.window.bounds[chunk_in_window].wrapping_sub(self.window.peaks[chunk_in_window]);
        let mut dense_from = 0;
        while bound >= self.threshold && dense_from < self.dense.len() {
            let strongest = &self.dense[dense_from];
            bound = bound.wrapping_sub(strongest.bound_in(chunk));
            let postings = strongest.add(lanes, self.weigher, chunk, &mut self.window.scores[chunk_in_window]);
            self.work.postings_decoded += u64::from(postings);
            dense_from += 1;
        }
        let inside = self.inside(chunk);
        let scores = &mut self.window.scores[chunk_in_window];
        // A document without a posting so far cannot enter: all lists are accumulated, or the others do not suffice.
        let least = self.threshold.saturating_sub(bound).max(1);
        let mut candidates = lanes.at_least(scores, least) & inside;
        if candidates != 0 {
            let found = *scores;
            *scores = [0; CHUNK];
            while candidates != 0 {
                let bit = candidates.trailing_zeros();
                candidates &= candidates - 1;
                let score = found[bit as usize % CHUNK];
                self.finish(lanes, Candidate { chunk, bit, score, bound, dense_from });
            }
        } else {
            *scores = [0; CHUNK];
        }
    }

    /// Returns the bits of a chunk's documents that are in the plan's range.
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

    /// Looks a candidate up in the lists that were not accumulated, and pushes it if it can still enter.
    #[inline(always)]
    fn finish<L: Lanes>(&mut self, lanes: L, candidate: Candidate) {
        let Candidate { chunk, bit, mut score, mut bound, dense_from } = candidate;
        let document = (chunk * CHUNK) as u32 + bit;
        for dense in &self.dense[dense_from..] {
            if score.wrapping_add(bound) < self.threshold {
                return;
            }
            bound = bound.wrapping_sub(dense.bound_in(chunk));
            let word = dense.dense.word(chunk);
            if word >> bit & 1 == 1 {
                score = score.wrapping_add(dense.weigh(self.weigher, chunk, word, bit));
            }
        }
        for sparse in &mut self.sparse[self.essential..] {
            if score.wrapping_add(bound) < self.threshold {
                return;
            }
            bound = bound.wrapping_sub(sparse.bound);
            let least = self.threshold.saturating_sub(score.wrapping_add(bound));
            match sparse.look_up(lanes, document, least, &mut self.work) {
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

impl<W: Weigher> Sparse<'_, W> {
    /// Adds the decoded postings up to the end of the window; returns whether there were any.
    #[inline(always)]
    fn scatter(&mut self, into: &mut L1Window, window: Range<u32>) -> bool {
        let scores = into.scores.as_flattened_mut().as_mut_array::<L1_WINDOW>().expect("a window of scores");
        let mut position = self.position;
        while position < self.count {
            let document = self.documents[position % BLOCK];
            if document >= window.end {
                break;
            }
            // Only in a damaged file does a document lie before the window.
            let offset = document.wrapping_sub(window.start) as usize % L1_WINDOW;
            let score = scores[offset].wrapping_add(self.weights[position % BLOCK]);
            scores[offset] = score;
            let peak = &mut into.peaks[offset / CHUNK];
            *peak = score.max(*peak);
            position += 1;
        }
        let has_postings = position > self.position;
        self.position = position;
        has_postings
    }

    /// Returns the weight of a document, 0 if the list does not have it. Returns `None` if the weight is known to be
    /// below `least`: the list does not have the document, or the bound of its block is too low. Documents come in
    /// order.
    #[inline(always)]
    fn look_up<L: Lanes>(&mut self, lanes: L, document: u32, least: u32, work: &mut Work) -> Option<u32> {
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
        if self.weigher.block_bound(&self.list, self.block, self.multiplier) < least {
            return None;
        }
        if !self.is_decoded {
            let count = self.list.decode_documents(self.block, self.documents);
            self.documents[count..].fill(u32::MAX);
            self.is_decoded = true;
            count_block(work, count);
        }
        let position = lanes.count_below(self.documents, document) % BLOCK;
        if self.documents[position] != document {
            return absent;
        }
        let value = self.list.value_at(W::COLUMN, self.block, position);
        Some(self.weigher.weigh(self.multiplier, value, document))
    }

    /// Decodes and weighs the next block that can have a document of the window and whose bound allows a hit; returns
    /// whether there is one.
    #[inline(always)]
    fn next<L: Lanes>(&mut self, lanes: L, window: Range<u32>, threshold: u32, work: &mut Work) -> bool {
        let last = window.end - 1;
        loop {
            let block = self.next_block;
            if block >= self.end_block || (block > 0 && self.list.last_document(block - 1) >= last) {
                return false;
            }
            self.next_block += 1;
            // `others` includes the static rank, which the threshold does not: a looser bound, but a bound.
            if self.weigher.block_bound(&self.list, block, self.multiplier).saturating_add(self.others) < threshold {
                continue;
            }
            self.count = self.list.decode_documents(block, self.documents);
            self.position = 0;
            if self.documents[0] < window.start {
                // The plan's first block may begin before its first window.
                self.position = self.documents[..self.count].partition_point(|&document| document < window.start);
            }
            let mut values = [1; BLOCK];
            self.list.decode_values(W::COLUMN, block, &mut values);
            let postings = Postings { values: &values, documents: self.documents, count: self.count };
            self.weigher.weigh_block(lanes, self.multiplier, &postings, self.weights);
            count_block(work, self.count);
            return true;
        }
    }
}

/// Counts a block as decoded. At first all blocks are counted as skipped.
#[inline(always)]
fn count_block(work: &mut Work, postings: usize) {
    work.postings_decoded += postings as u64;
    work.blocks_decoded += 1;
    work.blocks_skipped = work.blocks_skipped.saturating_sub(1);
}

#[cfg(test)]
mod tests {
    use super::super::EarlierHits;
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

    const DOCUMENTS: u32 = 3 * L1_WINDOW as u32;

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
        let task = Task { plan: &plan, stage: &plan.stages[0], index, earlier: &EarlierHits::default() };
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
