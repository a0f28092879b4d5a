//! Where everything lies in the buffers of a batch, and the launches that it needs.

use super::batch::Batch;
use super::resident::PADDING;
use crate::device::kernels::{self, BatchArguments, DenseRow, QueryRow, QueryState, SparseRow, WorkRow};
use lanner_gpu::device::Address;
use lanner_gpu::kernel::{Argument, TypedKernel};
use lanner_index::open::Column;

/// Where everything lies in the buffers of a batch, in bytes.
pub struct Layout {
    sparse: usize,
    dense: usize,
    and_parts: usize,
    or_parts: usize,
    /// Where rows end, and the lists that are sent begin.
    pub rows_bytes: usize,
    /// Bytes of rows and lists, with room behind them.
    pub sent_bytes: usize,
    /// What has to be zeros before a launch.
    pub zeros_bytes: usize,
    arena: usize,
    pub scratch_bytes: usize,
    /// Of an answer: counts at the start, then work, then keys.
    pub answers_work: usize,
    pub answers_keys: usize,
    pub answers_bytes: usize,
}

impl Layout {
    /// The layout of a batch.
    pub fn new(batch: &Batch) -> Layout {
        let queries = batch.queries.len();
        let sparse = queries * size_of::<QueryRow>();
        let dense = sparse + batch.sparse.len() * size_of::<SparseRow>();
        let and_parts = dense + batch.dense.len() * size_of::<DenseRow>();
        let or_parts = and_parts + batch.and_parts.len() * size_of::<u32>();
        let rows_bytes = (or_parts + batch.or_parts.len() * size_of::<u32>()).next_multiple_of(256);
        let padding = if batch.parcel.bytes() > 0 { PADDING } else { 0 };
        let zeros_bytes = queries * size_of::<QueryState>();
        let arena = zeros_bytes.next_multiple_of(256);
        let answers_work = (4 * queries).next_multiple_of(8);
        let answers_keys = answers_work + queries * size_of::<WorkRow>();
        Layout {
            sparse,
            dense,
            and_parts,
            or_parts,
            rows_bytes,
            sent_bytes: rows_bytes + batch.parcel.bytes() + padding,
            zeros_bytes,
            arena,
            scratch_bytes: arena + 8 * batch.arena_keys as usize,
            answers_work,
            answers_keys,
            answers_bytes: answers_keys + 8 * batch.answer_keys,
        }
    }

    /// Writes the rows.
    pub fn write(&self, batch: &Batch, bytes: &mut [u8]) {
        fn put<R: Argument>(bytes: &mut [u8], at: usize, rows: &[R]) {
            let places = bytes[at..].chunks_exact_mut(size_of::<R>());
            places.zip(rows).for_each(|(place, row)| place.copy_from_slice(row.bytes()));
        }
        put(bytes, 0, &batch.queries);
        put(bytes, self.sparse, &batch.sparse);
        put(bytes, self.dense, &batch.dense);
        for (at, parts) in [(self.and_parts, &batch.and_parts), (self.or_parts, &batch.or_parts)] {
            let places = bytes[at..].as_chunks_mut().0;
            places.iter_mut().zip(parts).for_each(|(place, part)| *place = part.to_le_bytes());
        }
    }

    /// Says in the arguments where everything lies.
    pub fn place(&self, rows: Address, scratch: Address, answers: Address, arguments: &mut BatchArguments) {
        *arguments = BatchArguments {
            queries: rows,
            sparse: rows.plus(self.sparse),
            dense: rows.plus(self.dense),
            parts: rows,
            states: scratch,
            arena: scratch.plus(self.arena),
            answers: answers.plus(self.answers_keys),
            answer_work: answers.plus(self.answers_work),
            answer_counts: answers,
            ..*arguments
        };
    }
}

/// A launch over the parts of one operation.
pub struct Launch {
    pub name: &'static str,
    pub kernel: &'static TypedKernel<BatchArguments>,
    pub grid: u32,
    pub threads: u32,
    pub shared: usize,
    pub arguments: BatchArguments,
}

/// The launches that a batch needs: its ANDs first, since an OR may depend on one.
pub fn launches(
    batch: &Batch,
    is_bitpack: bool,
    column: Column,
    is_alone: bool,
    arguments: BatchArguments,
    layout: &Layout,
) -> Vec<Launch> {
    let [conjunction, scatter] = kernels::answering(is_bitpack, column, is_alone);
    let (ands, ors) = (batch.and_parts.len(), batch.or_parts.len());
    let lists = kernels::SCATTER_SHARED_PER_LIST * batch.most_sparse;
    // The rows of both lie in one buffer; each launch sees its own from the first on.
    let rows = arguments.parts;
    let all = [
        Launch {
            name: "conjunction",
            kernel: conjunction,
            grid: ands as u32,
            threads: kernels::AND_THREADS,
            shared: kernels::CONJUNCTION_SHARED,
            arguments: BatchArguments { parts: rows.plus(layout.and_parts), ..arguments },
        },
        Launch {
            name: "scatter",
            kernel: scatter,
            grid: ors as u32,
            threads: kernels::OR_THREADS,
            shared: kernels::SCATTER_SHARED + lists,
            arguments: BatchArguments { parts: rows.plus(layout.or_parts), ..arguments },
        },
    ];
    all.into_iter().filter(|launch| launch.grid > 0).collect()
}
