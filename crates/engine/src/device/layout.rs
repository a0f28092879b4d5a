//! Where everything lies in the buffers of a batch, and the launches that it needs.

use super::Context;
use super::batch::Batch;
use super::residency::PADDING;
use crate::device::kernels::{self, BatchArguments, DenseRow, QueryRow, QueryState, SparseRow, Variant, WorkRow};
use lanner_gpu::device::Address;
use lanner_gpu::kernel::{Argument, TypedKernel};

/// Where everything lies in the buffers of a batch, in bytes.
#[derive(Debug)]
pub struct Layout {
    sparse: usize,
    dense: usize,
    and_parts: usize,
    or_parts: usize,
    /// Bytes of the rows; uploaded lists lie behind them.
    pub rows_bytes: usize,
    /// Bytes of rows and uploaded lists, with padding.
    pub upload_bytes: usize,
    /// Bytes of the states of queries, which are cleared before a launch; the arena lies behind them.
    pub states_bytes: usize,
    arena: usize,
    pub scratch_bytes: usize,
    /// Counts of hits come first in the answers, then work, then keys.
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
        let padding = if batch.upload.bytes() > 0 { PADDING } else { 0 };
        let states_bytes = queries * size_of::<QueryState>();
        let arena = states_bytes.next_multiple_of(256);
        let answers_work = (4 * queries).next_multiple_of(8);
        let answers_keys = answers_work + queries * size_of::<WorkRow>();
        Layout {
            sparse,
            dense,
            and_parts,
            or_parts,
            rows_bytes,
            upload_bytes: rows_bytes + batch.upload.bytes() + padding,
            states_bytes,
            arena,
            scratch_bytes: arena + 8 * batch.arena_keys as usize,
            answers_work,
            answers_keys,
            answers_bytes: answers_keys + 8 * batch.answer_keys,
        }
    }

    /// Writes the rows into their buffer.
    pub fn write(&self, batch: &Batch, bytes: &mut [u8]) {
        fn put<R: Argument>(bytes: &mut [u8], at: usize, rows: &[R]) {
            let targets = bytes[at..].chunks_exact_mut(size_of::<R>());
            targets.zip(rows).for_each(|(target, row)| target.copy_from_slice(row.bytes()));
        }
        put(bytes, 0, &batch.queries);
        put(bytes, self.sparse, &batch.sparse);
        put(bytes, self.dense, &batch.dense);
        for (at, parts) in [(self.and_parts, &batch.and_parts), (self.or_parts, &batch.or_parts)] {
            let targets = bytes[at..].as_chunks_mut().0;
            targets.iter_mut().zip(parts).for_each(|(target, part)| *target = part.to_le_bytes());
        }
    }

    /// The arguments of a batch whose buffers lie at these addresses.
    pub(crate) fn arguments(
        &self,
        context: &Context<'_>,
        rows: Address,
        scratch: Address,
        answers: Address,
    ) -> BatchArguments {
        BatchArguments {
            queries: rows,
            sparse: rows.plus(self.sparse),
            dense: rows.plus(self.dense),
            parts: rows,
            length_codes: context.residency.documents.length_codes(),
            norms: context.residency.documents.norms(),
            ranks: context.residency.documents.ranks(),
            states: scratch,
            arena: scratch.plus(self.arena),
            answers: answers.plus(self.answers_keys),
            answer_work: answers.plus(self.answers_work),
            answer_counts: answers,
            codecs: context.index.segment().list_context().codecs.into(),
            inverse_documents: 1.0 / context.index.documents().max(1) as f32,
            ..BatchArguments::default()
        }
    }

    /// The launches of a batch: its ANDs first, since an OR may depend on one.
    pub fn launches(&self, batch: &Batch, variant: Variant, arguments: BatchArguments) -> Vec<Launch> {
        let [conjunction, scatter] = variant.kernels();
        let of_lists = kernels::SCATTER_SHARED_PER_LIST * batch.most_sparse;
        // The parts of both operations lie in one buffer; each launch gets the address of its own.
        let with_parts = |parts: usize| BatchArguments { parts: arguments.parts.plus(parts), ..arguments };
        let launches = [
            Launch {
                name: "conjunction",
                kernel: conjunction,
                grid: batch.and_parts.len() as u32,
                threads: kernels::AND_THREADS,
                shared: kernels::CONJUNCTION_SHARED,
                arguments: with_parts(self.and_parts),
            },
            Launch {
                name: "scatter",
                kernel: scatter,
                grid: batch.or_parts.len() as u32,
                threads: kernels::OR_THREADS,
                shared: kernels::SCATTER_SHARED + of_lists,
                arguments: with_parts(self.or_parts),
            },
        ];
        launches.into_iter().filter(|launch| launch.grid > 0).collect()
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
