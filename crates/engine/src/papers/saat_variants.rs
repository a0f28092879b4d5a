//! The variants of score-at-a-time that the paper compares, and the steps from its best to our default.
//!
//! Trotman and Crane, *Micro and Macro Optimization of SaaT Search*. A variant chooses the accumulators
//! (`accumulator_pages.rs`), the update of the heap (`accumulator_heap.rs`), whether that update is inlined, and
//! whether a segment is decoded before it is processed. All variants give the answer of
//! `algorithms/score_at_a_time.rs`.

use super::accumulator_heap::{AccumulatorHeap, Clauses, Posting, algorithm_1, algorithm_2};
use super::accumulator_pages::{Array, Dynamic, LARGEST_ARRAY, Pages, new_array};
use crate::algorithms::Task;
use crate::algorithms::score_at_a_time::{Decoder, FusedDecoder, Segments};
use crate::algorithms::sweep::{Score, SweptScores};
use crate::algorithms::topk::TopK;
use crate::query::answer::Scored;
use crate::query::plan::Width;
use lanner_index::codec::qmx;
use lanner_index::format::IndexError;
use std::cmp::Reverse;

/// A variant; the default is that of `algorithms/score_at_a_time.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where the accumulators are; without a heap they are always allocated.
    pub accumulators: Accumulators,
    /// How the best k are found. Plans with a filter or a part of the documents use Algorithm 2 with a heap, not
    /// inlined.
    pub heap: Heap,
    /// Whether the update of the heap is inlined into the loop over postings.
    pub is_inlined: bool,
    /// When a segment is decoded. Algorithm 1, updates that are not inlined, and plans with a filter or a part of the
    /// documents always use [`Decoding::Separate`] with a heap.
    pub decoding: Decoding,
    /// Whether the threshold starts at the plan's seed.
    pub is_seeded: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            accumulators: Accumulators::Dynamic,
            heap: Heap::Never,
            is_inlined: true,
            decoding: Decoding::Fused,
            is_seeded: true,
        }
    }
}

/// Where the accumulators are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accumulators {
    /// In memory allocated for the collection.
    Dynamic,
    /// In an array of a size known to the compiler; collections beyond that size use `Dynamic`.
    Array,
}

/// How the best k are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heap {
    /// In a heap, with the update of ATIRE and JASS at each posting.
    Algorithm1,
    /// In a heap, with the update of the paper at each posting.
    Algorithm2,
    /// Without a heap: selected by one sweep after all postings are added.
    Never,
}

/// When the documents of a segment are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoding {
    /// The whole segment before any of it is processed.
    Separate,
    /// A few words at a time, whose documents are processed while they are in the L1 cache.
    Fused,
}

/// Memory reused from query to query.
#[derive(Default)]
pub struct Memory {
    top: TopK,
    narrow: Sums<u16>,
    wide: Sums<u32>,
    heap: AccumulatorHeap,
    short: Vec<u32>,
    decoders: Decoders,
}

#[derive(Default)]
struct Sums<S> {
    dynamic: Dynamic<S>,
    array: Option<Box<Array<S>>>,
    swept: SweptScores<S>,
}

#[derive(Default)]
struct Decoders {
    fused: FusedDecoder,
    separate: SeparateDecoder,
}

/// Decodes a whole segment, which is then processed.
#[derive(Default)]
struct SeparateDecoder {
    segment: Vec<u32>,
}

impl Decoder for SeparateDecoder {
    fn decode(&mut self, bytes: &[u8], count: usize, process: &mut dyn FnMut(&[u32])) {
        self.segment.resize(count.max(self.segment.len()), 0);
        qmx::decode(bytes, 0, &mut self.segment[..count]);
        process(&self.segment[..count]);
    }
}

/// Answers a stage by a variant, and counts the clauses that its heap executes.
pub fn run(
    task: &Task<'_>,
    options: &Options,
    memory: &mut Memory,
    clauses: &mut impl Clauses,
) -> Result<Vec<Scored>, IndexError> {
    let Memory { top, narrow, wide, heap, short, decoders } = memory;
    let mut segments = Segments::gather(task, short)?;
    if options.heap != Heap::Never {
        segments.segments.sort_unstable_by_key(|segment| Reverse(segment.weight));
    }
    let seed = if options.is_seeded { segments.seed() } else { 0 };
    top.reset(task.plan.k, seed);
    heap.reset(task.plan.k, seed);
    let mut variant = Variant { task, options, segments: &segments, decoders, heap, clauses };
    match task.plan.width {
        Width::Bits16 => variant.answer(narrow, top),
        Width::Bits32 => variant.answer(wide, top),
    }
    Ok(top.take(|hit| hit))
}

/// A query that is being answered.
struct Variant<'a, C> {
    task: &'a Task<'a>,
    options: &'a Options,
    segments: &'a Segments<'a>,
    decoders: &'a mut Decoders,
    heap: &'a mut AccumulatorHeap,
    clauses: &'a mut C,
}

impl<C: Clauses> Variant<'_, C> {
    /// Adds up all segments and leaves the best documents in `top`.
    fn answer<S: Score>(&mut self, sums: &mut Sums<S>, top: &mut TopK) {
        let Decoders { fused, separate } = &mut *self.decoders;
        let fits_array = self.task.index.documents() as usize <= LARGEST_ARRAY;
        match (self.options.heap, self.options.decoding, self.options.accumulators) {
            (Heap::Never, Decoding::Fused, _) => _ = self.segments.sweep(fused, &mut sums.swept, top),
            (Heap::Never, Decoding::Separate, _) => _ = self.segments.sweep(separate, &mut sums.swept, top),
            (_, _, Accumulators::Array) if fits_array => {
                self.add_with_heap(&mut **sums.array.get_or_insert_with(new_array), top);
            }
            _ => self.add_with_heap(&mut sums.dynamic, top),
        }
    }

    /// Adds posting after posting and updates the heap with each.
    fn add_with_heap<S: Score, P: Pages<S> + ?Sized>(&mut self, pages: &mut P, top: &mut TopK) {
        let Variant { task, options, segments, decoders, heap, clauses } = self;
        let Options { heap: update, is_inlined, decoding, .. } = **options;
        let plan = task.plan;
        pages.reset(task.index.documents() as usize);
        let is_restricted = plan.filter.is_some() || plan.range != (0..task.index.documents());
        let passes = |document: u32| plan.range.contains(&document) && task.passes(document);
        let can_fuse = update == Heap::Algorithm2 && is_inlined && !is_restricted;
        for segment in &segments.segments {
            let weight = S::of(segment.weight);
            let process = &mut |documents: &[u32]| {
                // In registers, not loaded again for each posting.
                let (heap, pages, clauses) = (&mut **heap, &mut *pages, &mut **clauses);
                let postings = documents.iter().map(|&document| Posting { document, weight });
                match (update, is_inlined) {
                    _ if is_restricted => postings
                        .filter(|posting| passes(posting.document))
                        .for_each(|posting| call_2(heap, pages, clauses, posting)),
                    (Heap::Algorithm1, true) => postings.for_each(|posting| algorithm_1(heap, pages, clauses, posting)),
                    (Heap::Algorithm1, false) => postings.for_each(|posting| call_1(heap, pages, clauses, posting)),
                    (_, true) => postings.for_each(|posting| algorithm_2(heap, pages, clauses, posting)),
                    (_, false) => postings.for_each(|posting| call_2(heap, pages, clauses, posting)),
                }
            };
            match decoding {
                Decoding::Fused if can_fuse => segments.process(segment, &mut decoders.fused, process),
                _ => segments.process(segment, &mut decoders.separate, process),
            }
        }
        heap.give(pages, top);
    }
}

#[inline(never)]
fn call_1<S: Score, P: Pages<S> + ?Sized>(
    heap: &mut AccumulatorHeap,
    pages: &mut P,
    clauses: &mut impl Clauses,
    posting: Posting<S>,
) {
    algorithm_1(heap, pages, clauses, posting);
}

#[inline(never)]
fn call_2<S: Score, P: Pages<S> + ?Sized>(
    heap: &mut AccumulatorHeap,
    pages: &mut P,
    clauses: &mut impl Clauses,
    posting: Posting<S>,
) {
    algorithm_2(heap, pages, clauses, posting);
}
