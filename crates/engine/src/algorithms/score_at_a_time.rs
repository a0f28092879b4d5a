//! Score at a time: the segments of all lists by falling impact, each posting added to its document's accumulator.
//!
//! Trotman and Crane, *Micro and Macro Optimization of SaaT Search*; Lin and Trotman, *Anytime Ranking for
//! Impact-Ordered Indexes*, ICTIR 2015, for the budget: segments come in the order of what they can add, so stopping
//! after so many postings leaves the best answer that so many can give. OR by impacts alone.
//!
//! [`Options`] choose the variants of the paper; the default is ours: decoding and adding take turns every few words,
//! so that documents never leave the first-level cache, which the paper leaves as future work, and the best k are found by one sweep at the end (`sweep.rs`) instead of a heap
//! that is asked at each posting.

use super::sweep::{Adding, Score, SweptScores};
use super::{Task, Workspace};
use crate::algorithms::topk::TopK;
use crate::papers::accumulator_heap::{AccumulatorHeap, Clauses, NoCounts, algorithm_1, algorithm_2};
use crate::papers::accumulators::{Array, Dynamic, LARGEST_ARRAY, Pages, new_array};
use crate::query::answer::Work;
use crate::query::plan::Width;
use lanner_index::codec::BLOCK;
use lanner_index::codec::qmx::{Buffer, Instructions, decode, for_each_slice};
use lanner_index::format::IndexError;
use lanner_index::open::Column;
use lanner_index::weight::impact_units;
use std::cmp::Reverse;
use std::ops::Range;

/// The variants, which all give the same answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where accumulators lie; what is swept is always allocated.
    pub accumulators: Accumulators,
    /// How the best k are kept.
    pub heap: Heap,
    /// Whether adding a posting is part of the loop, not a function that is called.
    pub is_inlined: bool,
    /// Whether a segment is decoded into memory first. Algorithm 1, and what is not inlined, always does.
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

/// Where accumulators lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accumulators {
    /// In memory allocated for the collection.
    Dynamic,
    /// In an array of a size that the compiler knows; collections that are too large for it take `Dynamic`.
    Array,
}

/// How the best k are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heap {
    /// At each posting, by the update of ATIRE and JASS.
    Algorithm1,
    /// At each posting, by the update of the paper.
    Algorithm2,
    /// Not before all postings are added.
    Never,
}

/// How the documents of a segment get to the accumulators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoding {
    /// The segment is decoded into a buffer, and the buffer is processed.
    Separate,
    /// A few words are decoded, and their documents are processed while they are in the first-level cache.
    Fused,
}

/// Memory that a thread keeps from query to query.
pub struct Memory {
    narrow: Sums<u16>,
    wide: Sums<u32>,
    heap: AccumulatorHeap,
    /// A whole segment, decoded.
    segment: Vec<u32>,
    /// A part of one.
    buffer: Box<Buffer>,
    /// The documents of short lists, by falling impact within each.
    short: Vec<u32>,
    instructions: Instructions,
}

impl Default for Memory {
    fn default() -> Self {
        Memory {
            narrow: Sums::default(),
            wide: Sums::default(),
            heap: AccumulatorHeap::default(),
            segment: Vec::new(),
            buffer: Box::new([0; 512]),
            short: Vec::new(),
            instructions: Instructions::detect(),
        }
    }
}

#[derive(Default)]
struct Sums<S> {
    dynamic: Dynamic<S>,
    array: Option<Box<Array<S>>>,
    swept: SweptScores<S>,
}

/// Postings of one list with one weight.
struct Segment<'a> {
    weight: u32,
    postings: u32,
    documents: Documents<'a>,
}

enum Documents<'a> {
    /// A `qmx` stream.
    Packed(&'a [u8]),
    /// A place in `Memory::short`.
    Short(Range<usize>),
}

/// Answers a stage by the default variant, and tells whether all postings were added.
pub fn cpu(task: &Task<'_>, workspace: &mut Workspace) -> Result<Work, IndexError> {
    run(task, &Options::default(), workspace, &mut NoCounts)
}

/// Answers a stage by a variant and counts what its heap does.
pub fn run<C: Clauses>(
    task: &Task<'_>,
    options: &Options,
    workspace: &mut Workspace,
    clauses: &mut C,
) -> Result<Work, IndexError> {
    let Workspace { top, score_at_a_time: memory, is_exact, .. } = workspace;
    let mut segments = segments(task, &mut memory.short)?;
    let all: u64 = segments.iter().map(|segment| u64::from(segment.postings)).sum();
    let budget = task.plan.budget.unwrap_or(u64::MAX);
    if options.heap != Heap::Never || budget < all {
        segments.sort_unstable_by_key(|segment| Reverse(segment.weight));
    }
    *is_exact = all <= budget;
    // That k documents reach the seed holds for all postings, not for those of a budget.
    let seed = if options.is_seeded && *is_exact { task.plan.seed_of(task.stage) } else { 0 };
    top.reset(task.plan.k, seed);
    let postings = cut(&mut segments, budget);
    let mut work = Work { postings_decoded: postings, blocks_decoded: segments.len() as u64, ..Work::default() };
    let mut query = Query {
        task,
        options,
        segments: &segments,
        short: &memory.short,
        segment: &mut memory.segment,
        buffer: &mut memory.buffer,
        instructions: memory.instructions,
        postings,
    };
    work.documents_scored = match task.plan.width {
        Width::Bits16 => query.answer(&mut memory.narrow, &mut memory.heap, seed, top, clauses),
        Width::Bits32 => query.answer(&mut memory.wide, &mut memory.heap, seed, top, clauses),
    };
    Ok(work)
}

/// The segments of all lists. Lists of less than a block are not stored by impact: they are sorted here.
fn segments<'a>(task: &Task<'a>, short: &mut Vec<u32>) -> Result<Vec<Segment<'a>>, IndexError> {
    short.clear();
    let mut segments = Vec::with_capacity(64 * task.plan.lists.len());
    for planned in task.plan.lists.iter() {
        let weight = |impact| impact_units(planned.multiplier, impact);
        if let Some(list) = task.index.impact_ordered(planned.id)? {
            segments.extend(list.segments().map(|segment| Segment {
                weight: weight(segment.impact),
                postings: segment.postings,
                documents: Documents::Packed(segment.documents),
            }));
            continue;
        }
        let list = task.index.list_at(planned.span)?;
        let (mut documents, mut impacts) = ([0; BLOCK], [0; BLOCK]);
        let count = list.decode_documents(0, &mut documents);
        list.decode_weights(Column::Impact, 0, &mut impacts);
        let mut postings: [(u32, u32); BLOCK] = std::array::from_fn(|i| (impacts[i], documents[i]));
        let postings = &mut postings[..count];
        postings.sort_unstable_by_key(|&(impact, document)| (Reverse(impact), document));
        for postings in postings.chunk_by(|a, b| a.0 == b.0) {
            let start = short.len();
            short.extend(postings.iter().map(|&(_, document)| document));
            segments.push(Segment {
                weight: weight(postings[0].0),
                postings: postings.len() as u32,
                documents: Documents::Short(start..short.len()),
            });
        }
    }
    Ok(segments)
}

/// Leaves the first segments with `budget` postings, the last one in part, and returns their postings.
fn cut(segments: &mut Vec<Segment<'_>>, budget: u64) -> u64 {
    let mut postings = 0;
    for (number, segment) in segments.iter_mut().enumerate() {
        let left = budget - postings;
        if u64::from(segment.postings) > left {
            segment.postings = left as u32;
            segments.truncate(number + usize::from(left > 0));
            return budget;
        }
        postings += u64::from(segment.postings);
    }
    postings
}

/// A query on its way.
struct Query<'a> {
    task: &'a Task<'a>,
    options: &'a Options,
    segments: &'a [Segment<'a>],
    short: &'a [u32],
    segment: &'a mut Vec<u32>,
    buffer: &'a mut Buffer,
    instructions: Instructions,
    postings: u64,
}

impl Query<'_> {
    /// Adds all segments up and leaves the best in `top`; returns how many documents were given to it.
    fn answer<S: Score>(
        &mut self,
        sums: &mut Sums<S>,
        heap: &mut AccumulatorHeap,
        seed: u32,
        top: &mut TopK,
        clauses: &mut impl Clauses,
    ) -> u64 {
        let documents = self.task.index.documents() as usize;
        heap.reset(self.task.plan.k, seed);
        match (self.options.heap, self.options.accumulators) {
            (Heap::Never, _) => {
                let range = self.task.plan.range.clone();
                let is_marked = SweptScores::<S>::are_marked(self.postings, range.len());
                match is_marked {
                    true => self.add_up(sums.swept.add::<true>(range.start, range.len())),
                    false => self.add_up(sums.swept.add::<false>(range.start, range.len())),
                }
                sums.swept.sweep(self.task, is_marked, top)
            }
            (_, Accumulators::Array) if documents <= LARGEST_ARRAY => {
                let array = sums.array.get_or_insert_with(new_array);
                self.with_heap(&mut **array, heap, top, clauses)
            }
            _ => self.with_heap(&mut sums.dynamic, heap, top, clauses),
        }
    }

    fn add_up<S: Score, const MARKED: bool>(&mut self, mut adding: Adding<'_, S, MARKED>) {
        for segment in self.segments {
            let weight = S::of(segment.weight);
            match self.options.decoding {
                Decoding::Fused => self.process(segment, &mut |documents| adding.postings(documents, weight)),
                Decoding::Separate => adding.postings(self.documents(segment), weight),
            }
        }
    }

    fn with_heap<S: Score, P: Pages<S> + ?Sized>(
        &mut self,
        pages: &mut P,
        heap: &mut AccumulatorHeap,
        top: &mut TopK,
        clauses: &mut impl Clauses,
    ) -> u64 {
        let task = self.task;
        pages.reset(task.index.documents() as usize);
        let is_restricted = task.plan.filter.is_some() || task.plan.range != (0..task.index.documents());
        let passes = |document: u32| task.plan.range.contains(&document) && task.passes(document);
        for segment in self.segments {
            let (weight, heap, pages) = (S::of(segment.weight), &mut *heap, &mut *pages);
            match (self.options.heap, self.options.is_inlined, self.options.decoding) {
                _ if is_restricted => {
                    let documents = self.documents(segment).iter().filter(|&&document| passes(document));
                    documents.for_each(|&document| call_2(heap, pages, clauses, document, weight));
                }
                (Heap::Algorithm1, true, _) => {
                    let documents = self.documents(segment).iter();
                    documents.for_each(|&document| algorithm_1(heap, pages, clauses, document, weight));
                }
                (Heap::Algorithm1, false, _) => {
                    let documents = self.documents(segment).iter();
                    documents.for_each(|&document| call_1(heap, pages, clauses, document, weight));
                }
                (_, true, Decoding::Fused) => {
                    self.process(segment, &mut |documents| {
                        for &document in documents {
                            algorithm_2(heap, pages, clauses, document, weight);
                        }
                    });
                }
                (_, true, Decoding::Separate) => {
                    let documents = self.documents(segment).iter();
                    documents.for_each(|&document| algorithm_2(heap, pages, clauses, document, weight));
                }
                (_, false, _) => {
                    let documents = self.documents(segment).iter();
                    documents.for_each(|&document| call_2(heap, pages, clauses, document, weight));
                }
            }
        }
        heap.give(pages, top);
        top.len() as u64
    }

    /// Has the documents of a segment processed a few at a time, while they are in the first-level cache.
    fn process(&mut self, segment: &Segment<'_>, process: &mut dyn FnMut(&[u32])) {
        let count = segment.postings as usize;
        match &segment.documents {
            Documents::Short(range) => process(&self.short[range.clone()][..count]),
            Documents::Packed(stream) => for_each_slice(self.instructions, stream, 0, count, self.buffer, process),
        }
    }

    /// The documents of a segment, decoded as a whole.
    fn documents(&mut self, segment: &Segment<'_>) -> &[u32] {
        let count = segment.postings as usize;
        match &segment.documents {
            Documents::Short(range) => &self.short[range.clone()][..count],
            Documents::Packed(stream) => {
                self.segment.resize(count.max(self.segment.len()), 0);
                decode(stream, 0, &mut self.segment[..count]);
                &self.segment[..count]
            }
        }
    }
}

#[inline(never)]
fn call_1<S: Score, P: Pages<S> + ?Sized>(
    heap: &mut AccumulatorHeap,
    pages: &mut P,
    clauses: &mut impl Clauses,
    document: u32,
    weight: S,
) {
    algorithm_1(heap, pages, clauses, document, weight);
}

#[inline(never)]
fn call_2<S: Score, P: Pages<S> + ?Sized>(
    heap: &mut AccumulatorHeap,
    pages: &mut P,
    clauses: &mut impl Clauses,
    document: u32,
    weight: S,
) {
    algorithm_2(heap, pages, clauses, document, weight);
}
