//! OR: scatter the lists that can bring a document in, look up the others.
//!
//! One pass over the collection, window by window. In each window the lists are divided as in MaxScore, by what they
//! can add *there*: the largest bound of a sparse list's blocks that reach into the window, and the largest sum of the
//! dense lists' bounds over its chunks of 64 documents. The weakest lists that together stay below the threshold are
//! not essential: a document that is in none of the others cannot enter.
//!
//! 1. The postings of the essential sparse lists are added to accumulators, whose offsets are remembered.
//! 2. Of these documents the candidates are kept, which the other lists could lift to the threshold.
//! 3. The other sparse lists follow, strongest first. While there are many candidates, the documents of a list are
//!    decoded and compared with the accumulators, and only matches are weighed; a few candidates are looked up one by
//!    one.
//! 4. What is left is looked up in the dense lists by bit tests, strongest list first, until it can no longer enter:
//!    many candidates together, list by list, a few one by one.
//!
//! Where dense lists alone can reach the threshold, or postings are too many to remember, all sparse lists are scattered
//! and the window is scanned chunk by chunk instead: in a chunk whose bounds alone reach the threshold the strongest
//! dense lists are accumulated too, until the bounds of the others no longer reach it.
//!
//! Once the threshold is so high that a document must be in all lists to enter, what is left is an AND (`conjunction.rs`).
//!
//! Windows have 8,192 to 65,536 documents, chosen so that most have about a thousand postings, which pay for entering
//! one. The threshold starts at the plan's seed.
//!
//! Ours; the parts are MaxScore (Turtle and Flood 1995), windows of accumulators (Lucene's bulk scorer), bitmaps with
//! ranks (Jacobson 1989) and block-max bounds (Ding and Suel 2011).

mod scan;
mod sift;

use super::dense_list::DenseList;
use super::lanes::{self, CHUNK, CHUNKS, Lanes, WithLanes};
use super::sparse_list::SparseList;
use super::weigher::Weigher;
use super::{L1_WINDOW, Task, Workspace, block_buffers, conjunction};
use crate::algorithms::topk::TopK;
use crate::query::answer::Work;
use crate::query::plan::Plan;
use lanner_index::DocId;
use lanner_index::codec::BLOCK;
use lanner_index::format::IndexError;
use std::cmp::Reverse;
use std::ops::Range;

/// Documents of the widest window.
const WIDEST: usize = 1 << 16;
/// Windows are wide enough for about this many postings of sparse lists, and a block of each. Like the other constants
/// here, measured in decision 18.
const POSTINGS_PER_WINDOW: usize = 1024;
/// The accumulators that a window remembers; with more it is scanned.
const REMEMBERED: usize = 4096;
/// Where the essential lists have more postings than this in a chunk, on average, windows are scanned.
const POSTINGS_PER_CHUNK: f32 = 6.0;
/// A list is compared with the accumulators if it has at most this many postings for each candidate.
const POSTINGS_PER_CANDIDATE: usize = 32;
/// At least this many candidates of a window are looked up in a dense list together.
const LOOKED_UP_TOGETHER: usize = 8;
/// With at least this many candidates in a chunk, the next dense list is accumulated for all of them.
const ACCUMULATED_TOGETHER: u32 = 10;

/// The accumulators of a window, and what is known of it. All accumulators are zero between windows.
pub struct WindowBuffers {
    scores: Box<[u32; WIDEST]>,
    /// The offsets of accumulators that are not zero, some more than once; with space for a block beyond the last.
    touched: Box<[u32; REMEMBERED + BLOCK]>,
    /// The offsets of documents that can still enter.
    candidates: Box<[u32; REMEMBERED + BLOCK]>,
    /// The most that dense lists can add in each chunk.
    bounds: Box<[u32; WIDEST / CHUNK]>,
    /// The highest score of each chunk, where it is scanned.
    peaks: Box<[u32; WIDEST / CHUNK]>,
    /// Scratch for sorting candidates: the bits of each chunk.
    words: Box<[u64; WIDEST / CHUNK]>,
}

impl Default for WindowBuffers {
    fn default() -> Self {
        WindowBuffers {
            scores: Box::new([0; WIDEST]),
            touched: Box::new([0; REMEMBERED + BLOCK]),
            candidates: Box::new([0; REMEMBERED + BLOCK]),
            bounds: Box::new([0; WIDEST / CHUNK]),
            peaks: Box::new([0; WIDEST / CHUNK]),
            words: Box::new([0; WIDEST / CHUNK]),
        }
    }
}

/// Answers an OR.
pub fn cpu<W: Weigher>(task: &Task<'_>, weigher: W, workspace: &mut Workspace) -> Result<Work, IndexError> {
    let level = workspace.simd_level;
    let mut scatter = Scatter::open(task, weigher, workspace)?;
    let left = lanes::run(level, &mut scatter);
    let work = scatter.work;
    if left.is_empty() { Ok(work) } else { intersect(task, weigher, workspace, (left, work)) }
}

/// Answers the rest of an OR, documents that must be in all lists to enter, as an AND.
fn intersect<W: Weigher>(
    task: &Task<'_>,
    weigher: W,
    workspace: &mut Workspace,
    (range, mut work): (Range<u32>, Work),
) -> Result<Work, IndexError> {
    let plan = Plan { range, ..task.plan.clone() };
    let more = conjunction::cpu(&Task { plan: &plan, ..*task }, weigher, workspace)?;
    // All blocks have been counted as skipped once.
    work.blocks_skipped = work.blocks_skipped.saturating_sub(more.blocks_decoded);
    work += Work { blocks_skipped: 0, ..more };
    Ok(work)
}

/// An OR that is being answered.
struct Scatter<'a, W> {
    task: &'a Task<'a>,
    weigher: W,
    /// Strongest first. By the bounds of whole lists, the first `essential` can bring a document in.
    sparse: Vec<SparseList<'a>>,
    essential: usize,
    /// The most that the other sparse lists can add.
    rest: u32,
    /// Strongest first.
    dense: Vec<DenseList<'a>>,
    /// The most that the dense lists can add.
    dense_bound: u32,
    /// The most that all lists can add, and the weakest one; with a single list there is no weakest.
    bound_of_all: u64,
    weakest: u64,
    /// Documents of a window.
    width: usize,
    buffers: &'a mut WindowBuffers,
    top: &'a mut TopK,
    /// The least score that can enter, without the most that the static rank can add; at least 1.
    threshold: u32,
    work: Work,
}

/// A window as its bounds show it.
struct Window {
    /// The document of the first accumulator, which may lie before the plan's range.
    origin: u32,
    /// The number of accumulators.
    width: usize,
    documents: Range<u32>,
    /// The most that dense lists can add to a document.
    dense_bound: u32,
    /// The most that all lists can add.
    all: u32,
    /// The first lists, which can bring a document in, and the most that the other sparse ones can add.
    essential: usize,
    rest: u32,
}

impl Window {
    /// The accumulator of a document. Only in a damaged file does a document lie outside the window.
    #[inline(always)]
    fn offset_of(&self, document: u32) -> usize {
        document.wrapping_sub(self.origin) as usize & (self.width - 1) & (WIDEST - 1)
    }
}

/// A document that can enter, as far as its lists have been read.
struct Candidate {
    document: u32,
    score: u32,
    /// The most that the remaining lists can add.
    bound: u32,
    /// The first dense and the first sparse list that are still to be looked up.
    dense_from: usize,
    sparse_from: usize,
}

impl<'a, W: Weigher> Scatter<'a, W> {
    fn open(task: &'a Task<'a>, weigher: W, workspace: &'a mut Workspace) -> Result<Scatter<'a, W>, IndexError> {
        let Plan { lists, documents, .. } = task.plan;
        let Workspace { top, window: buffers, blocks, .. } = workspace;
        let mut block_buffers = block_buffers(blocks, 2 * lists.len());
        let mut buffer = || block_buffers.next().expect("there are two buffers for each list");
        let (mut sparse, mut dense) = (Vec::with_capacity(lists.len()), Vec::with_capacity(lists.len()));
        for planned in lists.iter() {
            let list = task.index.list_at(planned.span)?;
            match list.dense() {
                Some(found) => dense.push(DenseList::new(weigher, found, planned.multiplier, planned.bound)),
                None => sparse.push(SparseList::new(list, task.plan, planned, [buffer(), buffer()])),
            }
        }
        sparse.sort_by_key(|sparse| Reverse(sparse.bound));
        dense.sort_by_key(|dense| Reverse(dense.bound));
        let dense_bound = dense.iter().fold(0u32, |sum, dense| sum.saturating_add(dense.bound));
        let blocks_skipped = sparse.iter().map(SparseList::blocks_left).sum();
        let postings = sparse.iter().map(|sparse| u64::from(sparse.list.postings())).sum();
        let bounds = || lists.iter().map(|list| u64::from(list.bound));
        let weakest = if lists.len() > 1 { bounds().min().unwrap_or(0) } else { 0 };
        Ok(Scatter {
            task,
            weigher,
            bound_of_all: bounds().sum(),
            weakest,
            essential: sparse.len(),
            rest: 0,
            dense,
            dense_bound,
            width: width(sparse.len(), postings, *documents),
            sparse,
            buffers,
            top,
            threshold: 1,
            work: Work { blocks_skipped, ..Work::default() },
        })
    }
}

/// The width of windows over a number of lists that have this many postings together.
fn width(lists: usize, postings: u64, documents: u32) -> usize {
    let wanted = POSTINGS_PER_WINDOW.max(lists * BLOCK) as u64;
    let mut width = L1_WINDOW;
    while width < WIDEST && postings * (width as u64) < wanted * u64::from(documents) {
        width *= 2;
    }
    width
}

impl<W: Weigher> WithLanes for &mut Scatter<'_, W> {
    /// The documents that are left because they must be in all lists to enter.
    type Output = Range<u32>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Range<u32> {
        self.raise_threshold();
        let range = self.task.plan.range.clone();
        let mut origin = first_of_l1_window(range.start);
        while origin < range.end && self.divide() {
            if self.are_all_needed() {
                return origin.max(range.start)..range.end;
            }
            origin = origin.max(first_of_l1_window(self.next_document()));
            if origin >= range.end {
                break;
            }
            // Dense lists that alone can reach the threshold fill all accumulators, which then should fit the L1 cache.
            let width = if self.dense_bound >= self.threshold { L1_WINDOW } else { self.width };
            self.window(lanes, origin, width);
            origin = origin.saturating_add(width as u32);
        }
        range.end..range.end
    }
}

/// The first document of a document's L1 window; windows begin there.
fn first_of_l1_window(document: u32) -> u32 {
    document / L1_WINDOW as u32 * L1_WINDOW as u32
}

impl<W: Weigher> Scatter<'_, W> {
    /// Takes over the threshold of the hits so far. Documents come in order.
    #[inline(always)]
    fn raise_threshold(&mut self) {
        // A weight is at least 1, so a chunk whose bound is 0 has no posting, whatever the static rank adds.
        self.threshold = self.top.threshold_in_order().saturating_sub(self.task.plan.static_bound).max(1);
    }

    /// Makes the weakest sparse lists non-essential whose bounds, with those of the dense lists, stay below the
    /// threshold: a document that is in no other list cannot enter. Returns whether any document can still enter.
    #[inline(always)]
    fn divide(&mut self) -> bool {
        while let Some(weakest) = self.sparse[..self.essential].last() {
            let rest = self.rest.saturating_add(weakest.bound);
            if self.dense_bound.saturating_add(rest) >= self.threshold {
                return true;
            }
            self.rest = rest;
            self.essential -= 1;
        }
        self.dense_bound >= self.threshold
    }

    /// Whether a document must be in all lists to enter: without the weakest one they stay below the threshold.
    #[inline(always)]
    fn are_all_needed(&self) -> bool {
        self.bound_of_all.saturating_sub(self.weakest) < u64::from(self.threshold)
    }

    /// A document before which none can enter: the next posting of an essential list.
    #[inline(always)]
    fn next_document(&self) -> u32 {
        if self.dense_bound >= self.threshold {
            return 0;
        }
        self.sparse[..self.essential].iter().map(SparseList::next_document).min().unwrap_or(u32::MAX)
    }

    /// Pushes the documents of a window that can enter.
    #[inline(always)]
    fn window<L: Lanes>(&mut self, lanes: L, origin: u32, width: usize) {
        let Some(mut window) = self.bound_window(lanes, origin, width) else {
            return;
        };
        let chunks = width / CHUNK;
        let postings = self.sparse[..window.essential].iter().map(SparseList::share_of_documents).sum::<f32>();
        let has_many = postings * CHUNK as f32 > POSTINGS_PER_CHUNK;
        let touched = match window.dense_bound >= self.threshold || has_many {
            true => {
                // Scattering the other lists too is cheaper than looking up many candidates in them.
                (window.essential, window.rest) = (self.sparse.len(), 0);
                self.buffers.peaks[..chunks].fill(0);
                self.scatter_to_peaks(lanes, &window);
                None
            }
            false => {
                let touched = self.scatter_to_offsets(lanes, &window);
                if touched.is_none() {
                    self.find_peaks(chunks);
                }
                touched
            }
        };
        match touched {
            Some(touched) => self.sift(lanes, &window, touched),
            None => self.scan(lanes, &window),
        }
    }

    /// Adds up what the lists can add in a window, and divides them; `None` if no document can enter.
    #[inline(always)]
    fn bound_window<L: Lanes>(&mut self, lanes: L, origin: u32, width: usize) -> Option<Window> {
        let range = &self.task.plan.range;
        let documents = origin.max(range.start)..origin.saturating_add(width as u32).min(range.end);
        let dense_bound = self.add_dense_bounds(lanes, origin, width);
        let mut all = dense_bound;
        for sparse in &mut self.sparse {
            sparse.enter(self.weigher, &documents);
            all = all.saturating_add(sparse.window_bound);
        }
        if all < self.threshold {
            return None;
        }
        let (mut essential, mut rest) = (self.sparse.len(), 0u32);
        while let Some(weakest) = self.sparse[..essential].last() {
            let more = rest.saturating_add(weakest.window_bound);
            if dense_bound.saturating_add(more) >= self.threshold {
                break;
            }
            rest = more;
            essential -= 1;
        }
        Some(Window { origin, width, documents, dense_bound, all, essential, rest })
    }

    /// Adds up the bounds of the dense lists in a window's chunks, and returns the largest sum.
    #[inline(always)]
    fn add_dense_bounds<L: Lanes>(&mut self, lanes: L, origin: u32, width: usize) -> u32 {
        if self.dense.is_empty() {
            return 0;
        }
        let first = origin as usize / CHUNK;
        let count = (self.task.index.documents() as usize).div_ceil(CHUNK).saturating_sub(first).min(width / CHUNK);
        let parts = self.buffers.bounds[..width / CHUNK].as_chunks_mut::<CHUNKS>().0;
        for (part, bounds) in parts.iter_mut().enumerate().take(count.div_ceil(CHUNKS)) {
            *bounds = [0; CHUNKS];
            for dense in &self.dense {
                dense.add_bounds(lanes, first + part * CHUNKS, bounds);
            }
        }
        // Chunks after the last document do not exist, and their bounds mean nothing.
        self.buffers.bounds[count..width / CHUNK].fill(0);
        self.buffers.bounds[..count].iter().copied().max().unwrap_or(0)
    }

    /// Adds the postings of the essential lists to the accumulators, and returns how many offsets were recorded; `None`
    /// if there were too many.
    #[inline(always)]
    fn scatter_to_offsets<L: Lanes>(&mut self, lanes: L, window: &Window) -> Option<usize> {
        let WindowBuffers { scores, touched, .. } = &mut *self.buffers;
        let (mut count, mut is_full) = (0, false);
        // A list that is alone brings in only what the others can lift to the threshold.
        let is_alone = window.essential == 1;
        let least = self.threshold.saturating_sub(window.dense_bound.saturating_add(window.rest)).max(1);
        for sparse in &mut self.sparse[..window.essential] {
            let least_bound = self.threshold.saturating_sub(window.all - sparse.window_bound);
            let least_value = if is_alone { sparse.least_value(self.weigher, least) } else { 1 };
            for block in sparse.blocks() {
                if !sparse.reaches(self.weigher, block, least_bound) {
                    continue;
                }
                let positions = sparse.open_block(lanes, block, &window.documents, &mut self.work);
                if positions.is_empty() {
                    continue;
                }
                if count + BLOCK > REMEMBERED {
                    (is_full, count) = (true, 0);
                }
                if is_alone {
                    let mut strong = sparse.weigh_strong(lanes, self.weigher, positions, (least, least_value));
                    let (documents, weights) = sparse.postings();
                    while strong != 0 {
                        let position = strong.trailing_zeros() as usize % BLOCK;
                        strong &= strong - 1;
                        let offset = window.offset_of(documents[position]);
                        scores[offset] = weights[position];
                        touched[count] = offset as u32;
                        count += 1;
                    }
                } else {
                    sparse.weigh(lanes, self.weigher);
                    let (documents, weights) = sparse.postings();
                    for (&document, &weight) in documents[positions.clone()].iter().zip(&weights[positions]) {
                        let offset = window.offset_of(document);
                        scores[offset] = scores[offset].wrapping_add(weight);
                        touched[count] = offset as u32;
                        count += 1;
                    }
                }
            }
        }
        (!is_full).then_some(count)
    }

    /// Adds the postings of the essential lists to the accumulators, and raises the peaks of their chunks.
    #[inline(always)]
    fn scatter_to_peaks<L: Lanes>(&mut self, lanes: L, window: &Window) {
        let WindowBuffers { scores, peaks, .. } = &mut *self.buffers;
        for sparse in &mut self.sparse[..window.essential] {
            let least_bound = self.threshold.saturating_sub(window.all - sparse.window_bound);
            for block in sparse.blocks() {
                if !sparse.reaches(self.weigher, block, least_bound) {
                    continue;
                }
                let part = (block, &window.documents);
                sparse.add_block(lanes, self.weigher, part, &mut self.work, |document, weight| {
                    let offset = window.offset_of(document);
                    let score = scores[offset].wrapping_add(weight);
                    scores[offset] = score;
                    peaks[offset / CHUNK] = peaks[offset / CHUNK].max(score);
                });
            }
        }
    }

    /// Looks a candidate up in the lists that are left, and pushes it if it can still enter.
    #[inline(always)]
    fn finish<L: Lanes>(&mut self, lanes: L, candidate: Candidate) {
        let Candidate { document, mut score, mut bound, dense_from, sparse_from } = candidate;
        let (chunk, bit) = (document as usize / CHUNK, document % CHUNK as u32);
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
        for sparse in &mut self.sparse[sparse_from..] {
            if score.wrapping_add(bound) < self.threshold {
                return;
            }
            bound = bound.wrapping_sub(sparse.window_bound);
            let least = self.threshold.saturating_sub(score.wrapping_add(bound));
            match sparse.look_up(lanes, self.weigher, (document, least), &mut self.work) {
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

#[cfg(test)]
mod tests {
    use super::super::EarlierHits;
    use super::super::lanes::{BlockToWeigh, Portable};
    use super::super::weigher::Frequencies;
    use super::*;
    use crate::query::document_set::DocumentSet;
    use crate::query::plan::{Operation, Stage};
    use crate::query::planner::Planner;
    use crate::query::{Algorithm, Query};
    use lanner_index::build::{BuildOptions, Quiet, build};
    use lanner_index::corpus::{Corpus, CorpusOptions};
    use lanner_index::open::{BlockBuffer, Index};
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
        assert_eq!(collected(&index, &Query::new("rare")), (3, 0), "their accumulators are remembered");
        let nothing = Query::new("frequent").filter(Arc::new(DocumentSet::default()));
        assert_eq!(collected(&index, &nothing), (0, 102), "100 chunks, and two with one document");
    }

    #[test]
    fn windows_are_as_wide_as_leaves_them_enough_postings() {
        let documents = 1 << 22;
        let rows = [(0, WIDEST), (1 << 10, WIDEST), (1 << 16, WIDEST), (1 << 17, 4 * L1_WINDOW), (1 << 19, L1_WINDOW)];
        for (postings, expected) in rows {
            assert_eq!(width(2, postings, documents), expected, "{postings}");
        }
        assert_eq!(width(1, u64::from(u32::MAX), u32::MAX), L1_WINDOW);
        assert_eq!(width(64, 1 << 20, documents), 4 * L1_WINDOW, "a block of each list");
    }

    /// Words, with n for a word that is in one of n documents: dense and sparse lists, with blocks that span windows.
    const WORDS: [(&str, u32); 11] = [
        ("all", 1),
        ("half", 2),
        ("tenth", 10),
        ("more", 31),
        ("others", 33),
        ("bit", 40),
        ("some", 70),
        ("few", 150),
        ("runs", 300),
        ("rare", 900),
        ("rarest", 5000),
    ];

    /// An index of several windows with texts of different lengths.
    fn index_of_words(documents: u32) -> Index {
        let mut random = 7u64;
        let mut draw = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as u32
        };
        let mut text = |document: u32| {
            let mut text = String::new();
            for (word, one_in) in WORDS {
                let is_run = word == "runs" && document / 500 % 30 == 3;
                if is_run || draw().is_multiple_of(one_in) {
                    text.push_str(&format!("{word} ").repeat(1 + draw() as usize % 3));
                }
            }
            text + &"x".repeat(draw() as usize % 2)
        };
        let documents: Vec<_> =
            (0..documents).map(|number| (number.to_string(), String::new(), text(number))).collect();
        let corpus = Corpus::from_documents(documents, CorpusOptions::default()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        build(folder.path(), corpus, &BuildOptions { impacts: true, ..BuildOptions::default() }, &Quiet).unwrap();
        Index::open(folder.path()).unwrap()
    }

    /// The hits of a plan, by `scatter` with windows of a width or by `exhaustive`, and whether a part of it was an AND.
    fn hits(index: &Index, plan: &Plan, width: Option<usize>, level: lanes::SimdLevel) -> (Vec<(DocId, u32)>, bool) {
        let algorithm = if width.is_some() { Algorithm::Scatter } else { Algorithm::Exhaustive };
        let stage = Stage { operation: Operation::Or, algorithm };
        let task = Task { plan, stage: &stage, index, earlier: &EarlierHits::default() };
        let mut workspace = Workspace { simd_level: level, ..Workspace::default() };
        let mut has_and = false;
        match width {
            None => _ = task.run(&mut workspace).unwrap(),
            Some(width) => {
                workspace.top.reset(plan.k, plan.seed.unwrap_or(0));
                let mut scatter = Scatter::open(&task, Frequencies::new(plan, index), &mut workspace).unwrap();
                scatter.width = width;
                let (left, work) = (lanes::run(level, &mut scatter), scatter.work);
                has_and = !left.is_empty();
                if has_and {
                    intersect(&task, Frequencies::new(plan, index), &mut workspace, (left, work)).unwrap();
                }
                let zeros =
                    [workspace.window.scores.iter().sum::<u32>(), workspace.window.words.iter().sum::<u64>() as u32];
                assert_eq!(zeros, [0, 0], "accumulators are zero between queries");
            }
        }
        (workspace.top.take(|hit| (hit.document, hit.units)), has_and)
    }

    #[test]
    fn windows_of_every_width_give_the_hits_of_the_exhaustive_algorithm() {
        let index = index_of_words(70_000);
        let planner = Planner::new(&index);
        for number in 1..1 << WORDS.len() {
            // Every seventh of the sets of words.
            if number % 7 != 0 {
                continue;
            }
            let words = WORDS.iter().enumerate().filter(|(bit, _)| number >> bit & 1 == 1);
            let text: Vec<String> = words.map(|(bit, (word, _))| format!("{word}^{}", 1 + bit % 3)).collect();
            let query = Query::new(text.join(" ")).k([1, 10, 200, 1000][number / 7 % 4]);
            let plan = planner.plan(&query).unwrap();
            let range = [0..index.documents(), 5..66_001, 8_191..8_193, 30_000..69_999, 0..1][number / 28 % 5].clone();
            // A seed holds for the whole collection alone.
            let seed = plan.seed.filter(|_| range.len() == index.documents() as usize);
            let plan = Plan { range, seed, ..plan };
            let (expected, _) = hits(&index, &plan, None, lanes::SimdLevel::Portable);
            for level in [lanes::SimdLevel::Portable, lanes::SimdLevel::Avx2, lanes::SimdLevel::Avx512] {
                for width in [L1_WINDOW, 2 * L1_WINDOW, WIDEST] {
                    let (found, _) = hits(&index, &plan, Some(width), level);
                    assert_eq!(found, expected, "{text:?} {width} {level:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_left_when_every_list_is_needed_is_an_and() {
        let index = index_of_words(70_000);
        let planner = Planner::new(&index);
        let mut with_and = 0;
        for first in 0..WORDS.len() {
            for second in 0..first {
                // Weights that make both lists about as strong, so that hits soon have both words.
                let [one, other] = [first, second].map(|word| WORDS[word]);
                let text = format!("{} {}^{}", one.0, other.0, 1 + one.1.ilog2() / (1 + other.1.ilog2()));
                for k in [1, 10] {
                    let plan = planner.plan(&Query::new(&text).k(k)).unwrap();
                    let (expected, _) = hits(&index, &plan, None, lanes::SimdLevel::Portable);
                    for level in [lanes::SimdLevel::Portable, lanes::SimdLevel::Avx2, lanes::SimdLevel::Avx512] {
                        let (found, has_and) = hits(&index, &plan, Some(L1_WINDOW), level);
                        assert_eq!(found, expected, "{text:?} {k} {level:?}");
                        with_and += usize::from(has_and);
                    }
                }
            }
        }
        assert!(with_and >= 30, "{with_and} of 330 ended as an AND");
    }
}
