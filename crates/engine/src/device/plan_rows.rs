//! The rows of plans: all that a device's thread needs of them. The threads that plan make them, in few pieces of
//! memory, so that joining them to a batch reads no plan, whose lists lie all over the memory of another core.

use super::kernels::{AND_THREADS, DenseRow, OR_THREADS, SCORE_BINS, SHARED_KEYS, SparseRow};
use super::rows::ListRow;
use crate::query::cost::{PlanTraffic, Traffic, device_stage_work};
use crate::query::document_set::DocumentSet;
use crate::query::plan::{Operation, Plan, PlannedList, Stage};
use lanner_index::format::IndexError;
use lanner_index::open::{Index, ListSpan, prefetch_all};
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

/// The rows of several plans; those of lists have no addresses yet.
#[derive(Debug, Default)]
pub struct SubmittedRows {
    sparse: Vec<Listed<SparseRow>>,
    dense: Vec<Listed<DenseRow>>,
    stages: Vec<StageRow>,
    /// The filters of the plans, each once where consecutive plans share it.
    filters: Vec<Arc<DocumentSet>>,
}

/// The row of a list, relative to the list.
#[derive(Clone, Copy, Debug, Default)]
pub struct Listed<R> {
    pub span: ListSpan,
    /// The bytes that the plan is predicted to read of it; zeros if all lists are resident.
    pub traffic: Traffic,
    pub row: R,
}

/// A stage of a plan.
#[derive(Clone, Copy, Debug)]
pub struct StageRow {
    pub operation: Operation,
    /// The most hits.
    pub k: u32,
    /// The score that a hit must reach.
    pub seed: u32,
    /// Keys that a part needs in the arena; 0 if shared memory holds them.
    pub capacity: u32,
    /// By how many bits scores are shifted to become bins of the histogram.
    pub shift: u32,
    /// The most that the static rank adds to a score, and the share of the static rank.
    pub static_bound: u32,
    pub alpha: f32,
    /// The predicted work, in postings decoded.
    pub work: u64,
    /// The share of the traffic of the plan's lists that is this stage's.
    pub reads: f32,
}

/// Which rows belong to a plan, and what all its stages share. Small, because the device's thread fetches it from the
/// cache of another core.
#[derive(Clone, Debug, Default)]
pub struct RowRanges {
    sparse: Range<u32>,
    dense: Range<u32>,
    stages: Range<u32>,
    /// The position of its filter.
    filter: Option<u32>,
    /// Blocks that can hold a document of the plan's range.
    blocks: u64,
    /// Postings of the sparse lists, and the sum of their bounds.
    postings: u64,
    bounds: u32,
    documents: u32,
    range: Range<u32>,
}

/// The rows of a plan; those of lists are sorted as kernels need them. [`RowRanges`] describes the other fields.
#[derive(Clone, Copy, Default)]
pub struct PlanRows<'a> {
    pub sparse: &'a [Listed<SparseRow>],
    pub dense: &'a [Listed<DenseRow>],
    pub stages: &'a [StageRow],
    pub filter: Option<&'a Arc<DocumentSet>>,
    pub blocks: u64,
    pub postings: u64,
    pub bounds: u32,
    pub documents: u32,
    pub range: DocumentRange,
}

/// The rows of the lists of consecutive plans, and their positions among those of all plans.
#[derive(Clone, Copy)]
pub struct ListRows<'a> {
    pub sparse: &'a [Listed<SparseRow>],
    pub dense: &'a [Listed<DenseRow>],
    first_sparse: u32,
    first_dense: u32,
}

impl ListRows<'_> {
    /// Where the rows of one of the plans begin: the sparse and the dense ones.
    pub fn starts_of(&self, ranges: &RowRanges) -> (u32, u32) {
        (ranges.sparse.start - self.first_sparse, ranges.dense.start - self.first_dense)
    }
}

/// A range of documents that can be copied.
#[derive(Clone, Copy, Debug, Default)]
pub struct DocumentRange {
    pub start: u32,
    pub end: u32,
}

impl RowRanges {
    /// Whether there are none; plans that run in batches have some.
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }
}

impl PlanRows<'_> {
    /// The share of the traffic of the lists that some stages have.
    pub fn reads(&self, stages: &Range<usize>) -> f32 {
        self.stages.iter().take(stages.end).skip(stages.start).map(|stage| stage.reads).sum()
    }

    /// The predicted work of all stages.
    pub fn work(&self) -> u64 {
        self.stages.iter().map(|stage| stage.work).sum()
    }
}

impl SubmittedRows {
    /// Adds the rows of a plan with stages, a k above 0 and documents.
    /// `has_traffic`: whether lists may lie in host memory, so that it matters which bytes are read.
    pub fn add(&mut self, index: &Index, plan: &Plan, has_traffic: bool) -> Result<RowRanges, IndexError> {
        // Sorted before the rows are made, which are larger.
        let mut lists: Vec<&PlannedList> = plan.lists.iter().collect();
        lists.sort_by_key(
            |list| if list.is_dense { (1, Reverse(list.bound), 0) } else { (0, Reverse(0), list.postings) },
        );
        let (sparse, dense, stages) = (self.sparse.len() as u32, self.dense.len() as u32, self.stages.len() as u32);
        let (mut blocks, mut postings, mut bounds) = (0, 0, 0u32);
        let plan_traffic = has_traffic.then(|| PlanTraffic::of(plan));
        for list in lists {
            let traffic = plan_traffic.map_or_else(Traffic::default, |plan| plan.of_list(list));
            match ListRow::new(index, plan, list)? {
                ListRow::Sparse(row) => {
                    blocks += blocks_within(index, plan, list, row.blocks)?;
                    postings += u64::from(row.postings);
                    bounds = bounds.saturating_add(row.bound);
                    self.sparse.push(Listed { span: list.span, traffic, row });
                }
                ListRow::Dense(row) => self.dense.push(Listed { span: list.span, traffic, row }),
            }
        }
        let shares = has_traffic.then(|| PlanTraffic::shares_of_stages(plan)).into_iter().flatten();
        let shares = shares.chain(std::iter::repeat(1.0));
        self.stages.extend(plan.stages.iter().zip(shares).map(|(stage, reads)| StageRow::new(plan, stage, reads)));
        Ok(RowRanges {
            sparse: sparse..self.sparse.len() as u32,
            dense: dense..self.dense.len() as u32,
            stages: stages..self.stages.len() as u32,
            filter: plan.filter.as_ref().map(|filter| self.add_filter(filter)),
            blocks,
            postings,
            bounds,
            documents: plan.documents,
            range: plan.range.clone(),
        })
    }

    /// Adds a filter unless it is the last one; returns its position.
    fn add_filter(&mut self, filter: &Arc<DocumentSet>) -> u32 {
        if !self.filters.last().is_some_and(|last| Arc::ptr_eq(last, filter)) {
            self.filters.push(Arc::clone(filter));
        }
        self.filters.len() as u32 - 1
    }

    /// The filter of a plan.
    pub fn filter_of(&self, ranges: &RowRanges) -> Option<&Arc<DocumentSet>> {
        ranges.filter.map(|filter| &self.filters[filter as usize])
    }

    pub fn of(&self, ranges: &RowRanges) -> PlanRows<'_> {
        PlanRows {
            sparse: &self.sparse[indices(&ranges.sparse)],
            dense: &self.dense[indices(&ranges.dense)],
            stages: &self.stages[indices(&ranges.stages)],
            filter: self.filter_of(ranges),
            blocks: ranges.blocks,
            postings: ranges.postings,
            bounds: ranges.bounds,
            documents: ranges.documents,
            range: DocumentRange { start: ranges.range.start, end: ranges.range.end },
        }
    }

    /// Prefetches all rows.
    pub fn prefetch(&self) {
        prefetch_all(&self.sparse);
        prefetch_all(&self.dense);
        prefetch_all(&self.stages);
    }

    /// The rows of the lists of all plans from one to another.
    pub fn lists_of(&self, first: &RowRanges, last: &RowRanges) -> ListRows<'_> {
        ListRows {
            sparse: &self.sparse[indices(&(first.sparse.start..last.sparse.end))],
            dense: &self.dense[indices(&(first.dense.start..last.dense.end))],
            first_sparse: first.sparse.start,
            first_dense: first.dense.start,
        }
    }
}

fn indices(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}

impl StageRow {
    fn new(plan: &Plan, stage: &Stage, reads: f32) -> StageRow {
        let (k, seed) = (plan.k.min(plan.range.len()) as u32, plan.seed_of(stage));
        StageRow {
            operation: stage.operation,
            k,
            seed,
            capacity: arena_keys(k),
            shift: shift(plan.largest_score.saturating_sub(seed)),
            static_bound: plan.static_bound,
            alpha: plan.score.alpha(),
            work: device_stage_work(plan, stage.operation),
            reads,
        }
    }
}

/// Counts the blocks of a list that can hold a document of the plan's range.
fn blocks_within(index: &Index, plan: &Plan, list: &PlannedList, blocks: u32) -> Result<u64, IndexError> {
    if plan.range == (0..plan.documents) {
        return Ok(u64::from(blocks));
    }
    let list = index.list_at(list.span)?;
    let first = list.find_block(0, plan.range.start);
    let end = (list.find_block(first, plan.range.end - 1) + 1).min(list.blocks());
    Ok(end.saturating_sub(first) as u64)
}

/// Keys that a part needs in the arena: a power of two that holds k and a push of every thread, or 0 if shared memory
/// holds them.
fn arena_keys(k: u32) -> u32 {
    let needed = k.saturating_add(OR_THREADS.max(AND_THREADS)).checked_next_power_of_two().unwrap_or(1 << 31);
    if needed <= SHARED_KEYS { 0 } else { needed }
}

/// By how many bits scores up to `largest` are shifted to become bins of the histogram.
fn shift(largest: u32) -> u32 {
    (SCORE_BINS as u32 - 1).leading_zeros().saturating_sub(largest.leading_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_score_is_the_last_bin_or_before_it() {
        assert_eq!([0, 1, 1023, 1024, 2047, 2048, u32::MAX].map(shift), [0, 0, 0, 1, 1, 2, 22]);
    }

    #[test]
    fn a_large_k_lies_in_the_arena_with_capacity_for_a_push_of_every_thread() {
        assert_eq!([0, 10, 256, 257, 1000, 10_000].map(arena_keys), [0, 0, 0, 1024, 2048, 16_384]);
    }
}
