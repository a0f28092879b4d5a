//! OR with one accumulator for each document, in the global memory of the GPU.
//!
//! Accumulators are cleared, every posting of every list is added to the accumulator of its document, and the documents
//! with a score that pass the filter are gathered, with the parts of their static ranks.
//!
//! Ding et al., Using Graphics Processors for High Performance IR Query Processing (section 8.3).

use super::compaction::{Lookback, ScratchLayout};
use super::step_kernels::{
    ACCUMULATORS_ADD_FREQUENCY, ACCUMULATORS_ADD_IMPACT, ACCUMULATORS_GATHER, AccumulateArguments, GatherArguments,
    STEP_SHARED, TILE,
};
use super::steps::{Keys, STREAM, StepRun};
use crate::device::rows::ListRow;
use lanner_gpu::device::{Address, Command, Shape};
use lanner_gpu::error::GpuError;
use lanner_index::format::dense::CHUNK;
use lanner_index::open::Column;

impl StepRun<'_> {
    /// Adds all postings to accumulators, and gathers the documents with a score.
    pub(super) fn accumulate(&mut self, lists: &[ListRow]) -> Result<Keys, GpuError> {
        let range = self.plan.range.clone();
        let count = range.len() as u32;
        let accumulators = self.scratch(|scratch| &mut scratch.accumulators, 4 * range.len())?.address;
        self.begin()?.submit(STREAM, Command::Clear { at: accumulators, bytes: 4 * range.len() })?;
        self.end("clear")?;
        let arguments = AccumulateArguments {
            accumulators,
            length_codes: self.context.residency.documents.length_codes(),
            norms: self.context.residency.documents.norms(),
            first: range.start,
            end: range.end,
            codecs: self.context.index.segment().list_context().codecs.into(),
            ..AccumulateArguments::default()
        };
        let kernel = match self.plan.score.column() {
            Column::Frequency => &ACCUMULATORS_ADD_FREQUENCY,
            Column::Impact => &ACCUMULATORS_ADD_IMPACT,
        };
        let shapes: Vec<Shape> = lists.iter().map(|list| self.warps(warps_needed(list, count), STEP_SHARED)).collect();
        let gpu = self.begin()?;
        for (list, &shape) in lists.iter().zip(&shapes) {
            let arguments = match *list {
                ListRow::Sparse(sparse) => AccumulateArguments { sparse, ..arguments },
                ListRow::Dense(dense) => AccumulateArguments { dense, ..arguments },
            };
            gpu.launch(STREAM, kernel, shape, &arguments)?;
        }
        self.end("accumulate")?;
        let postings = lists.iter().map(|list| u64::from(postings_of(list))).sum::<u64>();
        self.note_decoded(lists);
        self.gather(accumulators, postings.min(u64::from(count)) as u32)
    }

    fn note_decoded(&mut self, lists: &[ListRow]) {
        for list in lists {
            if let ListRow::Sparse(row) = list {
                self.work.blocks_decoded += u64::from(row.blocks);
                self.work.postings_decoded += u64::from(row.postings);
            }
        }
    }

    /// Makes keys of the documents with a score, at most `most`.
    fn gather(&mut self, accumulators: Address, most: u32) -> Result<Keys, GpuError> {
        let range = self.plan.range.clone();
        let count = range.len() as u32;
        let lay_out = |layout: &mut ScratchLayout| Lookback::reserve(layout, count.div_ceil(TILE));
        let lookback = self.lay_out(|scratch| &mut scratch.found[0], lay_out)?;
        let keys = self.scratch(|scratch| &mut scratch.keys, 8 * most as usize)?.address;
        let (filter, (ranks, alpha)) = (self.filter(), self.ranks());
        let first = range.start;
        let arguments =
            GatherArguments { accumulators, filter, ranks, keys, lookback, first, count, capacity: most, alpha };
        self.launch_tiles(&ACCUMULATORS_GATHER, lookback, &arguments, "gather")?;
        let [count] = self.read([lookback.total])?;
        Ok(Keys { address: keys, count: count.min(most) })
    }
}

/// Blocks of a sparse list, or chunks of a dense one, that a launch over `documents` reads.
fn warps_needed(list: &ListRow, documents: u32) -> u32 {
    match list {
        ListRow::Sparse(row) => row.blocks,
        ListRow::Dense(_) => documents / CHUNK + 2,
    }
}

/// Postings of a list.
fn postings_of(list: &ListRow) -> u32 {
    match list {
        ListRow::Sparse(row) => row.postings,
        ListRow::Dense(row) => row.postings,
    }
}
