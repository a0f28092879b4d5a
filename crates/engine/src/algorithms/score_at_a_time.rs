//! Score at a time: segments of postings by falling impact, each posting added to its document's accumulator.
//!
//! Trotman and Crane, *Micro and Macro Optimization of SaaT Search*; Lin and Trotman, *Anytime Ranking for
//! Impact-Ordered Indexes*, ICTIR 2015, for the budget: segments come strongest first, so stopping after N postings
//! gives the best answer that N postings can give. OR by impacts only.
//!
//! Ours differs from the paper in two ways. Decoding and adding alternate every few words, so documents never leave the
//! L1 cache; the paper leaves that as future work. And one sweep at the end finds the best k (`sweep.rs`), instead of a
//! heap that is consulted at every posting. The variants of the paper are in `papers/saat_variants.rs`.

use super::sweep::{Adding, Score, SweptScores};
use super::{Task, Workspace};
use crate::algorithms::topk::TopK;
use crate::query::answer::Work;
use crate::query::plan::{PlannedList, Width};
use lanner_index::codec::BLOCK;
use lanner_index::codec::qmx::{Buffer, Instructions, Sequence, for_each_slice};
use lanner_index::format::IndexError;
use lanner_index::open::Column;
use lanner_index::weight::impact_units;
use std::cmp::Reverse;
use std::ops::Range;

/// Memory that a thread keeps from query to query.
#[derive(Default)]
pub struct Memory {
    narrow: SweptScores<u16>,
    wide: SweptScores<u32>,
    short: Vec<u32>,
    decoder: FusedDecoder,
}

/// Answers an OR by impacts, within the plan's budget.
pub fn cpu(task: &Task<'_>, workspace: &mut Workspace) -> Result<Work, IndexError> {
    let Workspace { top, score_at_a_time: Memory { narrow, wide, short, decoder }, is_exact, .. } = workspace;
    let segments = Segments::gather(task, short)?;
    *is_exact = segments.is_exact;
    top.reset(task.plan.k, segments.seed());
    let documents_scored = match task.plan.width {
        Width::Bits16 => segments.sweep(decoder, narrow, top),
        Width::Bits32 => segments.sweep(decoder, wide, top),
    };
    let blocks_decoded = segments.segments.len() as u64;
    Ok(Work { postings_decoded: segments.postings, blocks_decoded, documents_scored, ..Work::default() })
}

/// The segments of all lists of a task, within the budget.
pub struct Segments<'a> {
    /// The segments; strongest first if the budget left some out.
    pub segments: Vec<Segment<'a>>,
    /// Whether the budget covers all postings.
    pub is_exact: bool,
    task: &'a Task<'a>,
    postings: u64,
    /// The documents of short lists, by falling impact within each.
    short: &'a [u32],
}

/// Postings of one list that share a weight.
pub struct Segment<'a> {
    /// Their weight.
    pub weight: u32,
    postings: u32,
    documents: Documents<'a>,
}

/// The documents of a segment.
enum Documents<'a> {
    /// Packed by `qmx`.
    Packed(&'a [u8]),
    /// A range of `Segments::short`.
    Short(Range<usize>),
}

impl<'a> Segments<'a> {
    /// Gathers the segments of all lists and cuts them to the budget. `short` is scratch memory.
    pub fn gather(task: &'a Task<'a>, short: &'a mut Vec<u32>) -> Result<Segments<'a>, IndexError> {
        short.clear();
        let mut segments = Vec::with_capacity(64 * task.plan.lists.len());
        for planned in task.plan.lists.iter() {
            match task.index.impact_ordered(planned.id)? {
                Some(list) => segments.extend(list.segments().map(|segment| Segment {
                    weight: impact_units(planned.multiplier, segment.impact),
                    postings: segment.postings,
                    documents: Documents::Packed(segment.documents),
                })),
                None => sort_short_list(task, planned, short, &mut segments)?,
            }
        }
        let all: u64 = segments.iter().map(|segment| u64::from(segment.postings)).sum();
        let budget = task.plan.budget.unwrap_or(u64::MAX);
        if budget < all {
            segments.sort_unstable_by_key(|segment| Reverse(segment.weight));
            cut(&mut segments, budget);
        }
        Ok(Segments { segments, is_exact: all <= budget, task, postings: all.min(budget), short })
    }

    /// The seed of the task; 0 within a budget: k documents reach the seed by all postings, not by some of them.
    pub fn seed(&self) -> u32 {
        if self.is_exact { self.task.plan.seed_of(self.task.stage) } else { 0 }
    }

    /// Passes the documents of a segment to `process`, as the decoder delivers them.
    pub fn process(&self, segment: &Segment<'_>, decoder: &mut impl Decoder, process: &mut dyn FnMut(&[u32])) {
        let count = segment.postings as usize;
        match &segment.documents {
            Documents::Packed(bytes) => decoder.decode(bytes, count, process),
            Documents::Short(range) => process(&self.short[range.clone()][..count]),
        }
    }

    /// Adds up all postings, then sweeps the best into `top`; returns how many documents were pushed.
    pub fn sweep<S: Score>(&self, decoder: &mut impl Decoder, scores: &mut SweptScores<S>, top: &mut TopK) -> u64 {
        let range = self.task.plan.range.clone();
        let is_marked = SweptScores::<S>::are_marked(self.postings, range.len());
        match is_marked {
            true => self.add_up(decoder, scores.add::<true>(range.start, range.len())),
            false => self.add_up(decoder, scores.add::<false>(range.start, range.len())),
        }
        scores.sweep(self.task, is_marked, top)
    }

    fn add_up<S: Score, const MARKED: bool>(&self, decoder: &mut impl Decoder, mut adding: Adding<'_, S, MARKED>) {
        for segment in &self.segments {
            let weight = S::of(segment.weight);
            self.process(segment, decoder, &mut |documents| adding.postings(documents, weight));
        }
    }
}

/// Appends the segments of a list of less than a block, which is not stored by impact.
fn sort_short_list(
    task: &Task<'_>,
    planned: &PlannedList,
    short: &mut Vec<u32>,
    segments: &mut Vec<Segment<'_>>,
) -> Result<(), IndexError> {
    let list = task.index.list_at(planned.span)?;
    let (mut documents, mut impacts) = ([0; BLOCK], [0; BLOCK]);
    let count = list.decode_documents(0, &mut documents);
    list.decode_values(Column::Impact, 0, &mut impacts);
    let mut postings: [(u32, u32); BLOCK] = std::array::from_fn(|i| (impacts[i], documents[i]));
    let postings = &mut postings[..count];
    postings.sort_unstable_by_key(|&(impact, document)| (Reverse(impact), document));
    for postings in postings.chunk_by(|a, b| a.0 == b.0) {
        let start = short.len();
        short.extend(postings.iter().map(|&(_, document)| document));
        segments.push(Segment {
            weight: impact_units(planned.multiplier, postings[0].0),
            postings: postings.len() as u32,
            documents: Documents::Short(start..short.len()),
        });
    }
    Ok(())
}

/// Keeps the first segments with `budget` postings, the last of them in part.
fn cut(segments: &mut Vec<Segment<'_>>, budget: u64) {
    let mut left = budget;
    segments.retain_mut(|segment| {
        segment.postings = u64::from(segment.postings).min(left) as u32;
        left -= u64::from(segment.postings);
        segment.postings > 0
    });
}

/// Decodes the documents of segments.
pub trait Decoder {
    /// Decodes `count` documents and passes them to `process`, in order.
    fn decode(&mut self, bytes: &[u8], count: usize, process: &mut dyn FnMut(&[u32]));
}

/// Decodes a few words at a time, whose documents are processed while they are in the L1 cache.
pub struct FusedDecoder {
    buffer: Box<Buffer>,
    instructions: Instructions,
}

impl Default for FusedDecoder {
    fn default() -> Self {
        FusedDecoder { buffer: Box::new([0; 512]), instructions: Instructions::detect() }
    }
}

impl Decoder for FusedDecoder {
    fn decode(&mut self, bytes: &[u8], count: usize, process: &mut dyn FnMut(&[u32])) {
        for_each_slice(self.instructions, Sequence { bytes, base: 0, count }, &mut self.buffer, process);
    }
}
