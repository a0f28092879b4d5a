//! Turns planned lists into the rows that kernels read: where each array of a list begins.

use crate::algorithms::weigher::{impact_factor, saturation_factor};
use crate::device::kernels::{DenseRow, NONE, SparseRow};
use crate::query::plan::{Plan, PlannedList};
use lanner_gpu::device::Address;
use lanner_index::codec::BLOCK;
use lanner_index::format::IndexError;
use lanner_index::format::dense::DenseLayout;
use lanner_index::format::list::{LongLayout, UNIT};
use lanner_index::open::{Column, ColumnPart, Index, ListLayout};
use std::ops::Range;

/// The row of a list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ListRow {
    /// A sparse list.
    Sparse(SparseRow),
    /// A bitmap.
    Dense(DenseRow),
}

impl ListRow {
    /// The address of its bytes.
    pub fn bytes(&self) -> Address {
        match self {
            ListRow::Sparse(row) => row.bytes,
            ListRow::Dense(row) => row.bytes,
        }
    }

    /// The same list at another address.
    pub fn at(self, bytes: Address) -> ListRow {
        match self {
            ListRow::Sparse(row) => ListRow::Sparse(SparseRow { bytes, ..row }),
            ListRow::Dense(row) => ListRow::Dense(DenseRow { bytes, ..row }),
        }
    }

    /// The row of a planned list whose bytes are at an address.
    pub fn new(index: &Index, plan: &Plan, list: &PlannedList, bytes: Address) -> Result<ListRow, IndexError> {
        let column = plan.score.column();
        let values = Values { column, bounds_hold: column == Column::Impact || plan.block_bounds_hold };
        let PlannedList { multiplier, bound, postings, span, .. } = *list;
        Ok(match index.segment().layout_at(span)? {
            ListLayout::Short { first, documents, frequencies, impacts } => {
                let weights = if column == Column::Impact { impacts } else { frequencies };
                let last = last_of_short(index, list)?;
                let row = SparseRow { bytes, multiplier, bound, postings, last, first, ..SparseRow::default() };
                ListRow::Sparse(short_row(row, documents, weights))
            }
            ListLayout::Long { layout, shared } => {
                let end = units(span.end - span.start - layout.payload());
                let row = SparseRow { bytes, multiplier, bound, postings, end, ..SparseRow::default() };
                ListRow::Sparse(long_row(row, values, &layout, &shared))
            }
            ListLayout::Dense { layout } => {
                let row = DenseRow { bytes, multiplier, bound, postings, ..DenseRow::default() };
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
    SparseRow {
        blocks: layout.blocks as u32,
        last: layout.last() as u32,
        offset: layout.offset() as u32,
        block_bound: if has_weights && bounds_hold { bound as u32 } else { 0 },
        document_byte: layout.document_byte() as u32,
        skipped_byte: if_there(is_skipped, layout.frequency_byte()),
        weight_byte: if_there(has_weights, weight_byte),
        payload: layout.payload() as u32,
        shared: shared.map(|part| if part.is_empty() { 0 } else { units(part.start) }),
        shared_bytes: shared.map(|part| part.len() as u32),
        ..row
    }
}

fn dense_row(row: DenseRow, values: Values, layout: &DenseLayout) -> DenseRow {
    let Values { column, bounds_hold } = values;
    let (chunk_bound, values, value_bits, exceptions, factor) = match column {
        Column::Frequency => (
            layout.chunk_saturation(),
            layout.frequencies(),
            layout.frequency_bits,
            layout.exceptions,
            saturation_factor(row.multiplier),
        ),
        Column::Impact => {
            let bits = if layout.has_impacts { 8 } else { 0 };
            (layout.chunk_impact(), layout.impacts(), bits, 0, impact_factor(row.multiplier))
        }
    };
    DenseRow {
        factor: if value_bits > 0 && bounds_hold { factor } else { 0 },
        window_rank: layout.window_rank() as u32,
        chunk_rank: layout.chunk_rank() as u32,
        chunk_bound: chunk_bound as u32,
        words: units(layout.words()),
        values: units(values),
        value_bits: value_bits as u32,
        exception_rank: units(layout.exception_rank()),
        exceptions: exceptions as u32,
        ..row
    }
}

fn units(bytes: usize) -> u32 {
    (bytes / UNIT) as u32
}
