//! Turns planned lists into the rows that kernels read: where each array of a list begins.
//!
//! The threads that plan make rows whose addresses are offsets in the list; the thread of the device, which knows where
//! the pieces of the list lie at that moment, adds their addresses.

use crate::algorithms::weigher::{impact_step, saturation_step};
use crate::device::kernels::{DenseRow, NONE, SparseRow};
use crate::query::plan::{Plan, PlannedList};
use lanner_gpu::device::Address;
use lanner_index::codec::BLOCK;
use lanner_index::format::IndexError;
use lanner_index::format::dense::DenseLayout;
use lanner_index::format::list::{LongLayout, UNIT};
use lanner_index::open::{Column, ColumnPart, Index, ListLayout};
use std::ops::Range;

/// The row of a list, relative to the first byte of the list, or where the list lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ListRow {
    /// A sparse list.
    Sparse(SparseRow),
    /// A bitmap.
    Dense(DenseRow),
}

/// Where the pieces of a sparse list lie: for each, the address of the first byte of a list that would lie there as a
/// whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SparsePlacement {
    pub directory: Address,
    /// Of blocks before `split`, which counts units from the first block on.
    pub head: Address,
    pub tail: Address,
    pub split: u32,
    /// Whether the tail is in host memory.
    pub is_on_host: bool,
}

impl SparsePlacement {
    /// A list that lies in device memory as a whole.
    pub fn whole(list: Address) -> SparsePlacement {
        SparsePlacement { directory: list, head: list, tail: list, split: 0, is_on_host: false }
    }
}

/// The same for a bitmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DensePlacement {
    pub ranks: Address,
    pub bounds: Address,
    pub words: Address,
    pub values: Address,
    pub exceptions: Address,
    /// Whether bounds, words and ranks are in device memory: a single query prefetches them then.
    pub is_resident: bool,
}

impl DensePlacement {
    /// A bitmap that lies in device memory as a whole.
    pub fn whole(list: Address) -> DensePlacement {
        DensePlacement { ranks: list, bounds: list, words: list, values: list, exceptions: list, is_resident: true }
    }
}

impl SparseRow {
    /// A row that is relative to its list, with addresses.
    pub fn placed(self, at: SparsePlacement) -> SparseRow {
        SparseRow {
            directory: moved(self.directory, at.directory),
            head: moved(self.head, at.head),
            tail: moved(self.tail, at.tail),
            split: at.split,
            is_on_host: u32::from(at.is_on_host),
            ..self
        }
    }
}

impl DenseRow {
    /// A row that is relative to its list, with addresses.
    pub fn placed(self, at: DensePlacement) -> DenseRow {
        DenseRow {
            window_rank: moved(self.window_rank, at.ranks),
            chunk_rank: moved(self.chunk_rank, at.ranks),
            chunk_bound: moved(self.chunk_bound, at.bounds),
            words: moved(self.words, at.words),
            values: moved(self.values, at.values),
            exception_rank: moved(self.exception_rank, at.exceptions),
            is_prefetched: u32::from(at.is_resident),
            ..self
        }
    }
}

/// An offset in a list as an address. Lists in parts have bases that may lie before the first address.
fn moved(offset: Address, list: Address) -> Address {
    Address(offset.0.wrapping_add(list.0))
}

impl ListRow {
    /// A row that is relative to its list, with the addresses of a list that lies in device memory as a whole.
    pub fn at(self, list: Address) -> ListRow {
        match self {
            ListRow::Sparse(row) => ListRow::Sparse(row.placed(SparsePlacement::whole(list))),
            ListRow::Dense(row) => ListRow::Dense(row.placed(DensePlacement::whole(list))),
        }
    }

    /// The row of a planned list, relative to the list.
    pub fn new(index: &Index, plan: &Plan, list: &PlannedList) -> Result<ListRow, IndexError> {
        let column = plan.score.column();
        let values = Values { column, bounds_hold: column == Column::Impact || plan.block_bounds_hold };
        let PlannedList { multiplier, bound, postings, span, .. } = *list;
        Ok(match index.segment().layout_at(span)? {
            ListLayout::Short { first, documents, frequencies, impacts } => {
                let weights = if column == Column::Impact { impacts } else { frequencies };
                let last = last_of_short(index, list)?;
                let row = SparseRow { multiplier, bound, postings, last, first, ..SparseRow::default() };
                ListRow::Sparse(short_row(row, documents, weights))
            }
            ListLayout::Long { layout, shared } => {
                // What blocks share follows the blocks, unless the list is damaged.
                if shared.iter().any(|part| !part.is_empty() && part.start <= layout.payload()) {
                    let what = format!("the list at byte {} has blocks after what they share", span.start);
                    return Err(index.segment().damaged(span.section(), what));
                }
                let end = units(span.end - span.start - layout.payload());
                let row = SparseRow { multiplier, bound, postings, end, ..SparseRow::default() };
                ListRow::Sparse(long_row(row, values, &layout, &shared))
            }
            ListLayout::Dense { layout } => {
                let row = DenseRow { multiplier, bound, postings, ..DenseRow::default() };
                ListRow::Dense(dense_row(row, values, &layout))
            }
        })
    }
}

/// The values that a plan reads.
#[derive(Clone, Copy)]
struct Values {
    column: Column,
    /// Whether the stored bounds of blocks and chunks hold for the plan.
    bounds_hold: bool,
}

/// The last document of a short list.
fn last_of_short(index: &Index, list: &PlannedList) -> Result<u32, IndexError> {
    let mut documents = [0; BLOCK];
    let count = index.list_at(list.span)?.decode_documents(0, &mut documents);
    Ok(documents[count.clamp(1, BLOCK) - 1])
}

fn short_row(row: SparseRow, documents: Option<ColumnPart>, weights: Option<ColumnPart>) -> SparseRow {
    let byte = |part: Option<ColumnPart>| part.map_or(NONE, |part| u32::from(part.byte));
    let start = |part: Option<ColumnPart>| part.map_or(0, |part| part.start as u32);
    SparseRow {
        blocks: 1,
        offset: start(documents),
        document_byte: byte(documents),
        skipped_byte: NONE,
        weight_byte: byte(weights),
        payload: start(weights),
        is_short: 1,
        ..row
    }
}

fn long_row(row: SparseRow, values: Values, layout: &LongLayout, shared: &[Range<usize>; 3]) -> SparseRow {
    let Values { column, bounds_hold } = values;
    let if_there = |is_there: bool, array: usize| if is_there { array as u32 } else { NONE };
    let (has_weights, weight_byte, bound, weights) = match column {
        Column::Frequency => (layout.has_frequencies, layout.frequency_byte(), layout.frequency_bound(), 1),
        Column::Impact => (layout.has_impacts, layout.impact_byte(), layout.impact_bound(), 2),
    };
    let is_skipped = column == Column::Impact && layout.has_frequencies;
    let shared = [&shared[0], &shared[1], &shared[weights]];
    let blocks = Address(layout.payload() as u64);
    SparseRow {
        head: blocks,
        tail: blocks,
        blocks: layout.blocks as u32,
        last: layout.last() as u32,
        offset: layout.offset() as u32,
        block_bound: if has_weights && bounds_hold { bound as u32 } else { 0 },
        document_byte: layout.document_byte() as u32,
        skipped_byte: if_there(is_skipped, layout.frequency_byte()),
        weight_byte: if_there(has_weights, weight_byte),
        payload: layout.payload() as u32,
        shared: shared.map(|part| if part.is_empty() { 0 } else { units(part.start - layout.payload()) }),
        shared_bytes: shared.map(|part| part.len() as u32),
        ..row
    }
}

fn dense_row(row: DenseRow, values: Values, layout: &DenseLayout) -> DenseRow {
    let Values { column, bounds_hold } = values;
    let (chunk_bound, values, value_bits, exceptions, step) = match column {
        Column::Frequency => (
            layout.chunk_saturation(),
            layout.frequencies(),
            layout.frequency_bits,
            layout.exceptions,
            saturation_step(row.multiplier),
        ),
        Column::Impact => {
            let bits = if layout.has_impacts { 8 } else { 0 };
            (layout.chunk_impact(), layout.impacts(), bits, 0, impact_step(row.multiplier))
        }
    };
    let offset = |array: usize| Address(array as u64);
    DenseRow {
        factor: if value_bits > 0 && bounds_hold { step.ceil().max(1.0) as u32 } else { 0 },
        window_rank: offset(layout.window_rank()),
        chunk_rank: offset(layout.chunk_rank()),
        chunk_bound: offset(chunk_bound),
        words: offset(layout.words()),
        values: offset(values),
        value_bits: value_bits as u32,
        exception_rank: offset(layout.exception_rank()),
        exceptions: exceptions as u32,
        ..row
    }
}

fn units(bytes: usize) -> u32 {
    (bytes / UNIT) as u32
}
