//! Intersection of candidates with a sparse list: only blocks that can hold a candidate are decoded.
//!
//! The skip pointers of the list, the last documents of its blocks, are searched for each candidate. The blocks that
//! were hit are decoded, each by a warp, and each candidate is searched in its block. Of a list that is not resident
//! only the directory and these blocks are uploaded. The kernels are in `term_at_a_time.cu`.
//!
//! Liu et al., Griffin (section 3.1.2, binary search over skip pointers); Ding et al., Using Graphics Processors for
//! High Performance IR Query Processing (section 8.1, choosing blocks before decoding).

use super::compaction::{DeviceList, Lookback, ScratchLayout};
use super::intersections::{Candidates, Intersections, place_blocks};
use super::step_kernels::{
    BlocksArguments, DecodedBlocks, TERM_AT_A_TIME_FIND_BLOCKS, TERM_AT_A_TIME_SEARCH_BLOCKS, TILE,
};
use super::step_upload::StepList;
use crate::device::kernels::SparseRow;
use lanner_gpu::error::GpuError;

impl Intersections<'_, '_> {
    /// Finds the blocks that can hold a candidate, uploads them if the list is not resident (the row then covers the
    /// directory alone), decodes them and searches them.
    pub(super) fn search(
        &mut self,
        list: &StepList<'_>,
        row: &SparseRow,
        candidates: DeviceList,
    ) -> Result<Candidates, GpuError> {
        let (turn, count) = (self.turn, candidates.length);
        let next = self.next(count)?;
        let (tiles, blocks) = (count.div_ceil(TILE), count.min(row.blocks));
        let lay_out = |layout: &mut ScratchLayout| {
            let (lookback, candidate_blocks) = Lookback::with_results(layout, tiles, count);
            let decoded = DecodedBlocks { blocks: layout.take(4 * blocks as usize), ..place_blocks(layout, blocks) };
            (lookback, candidate_blocks, DecodedBlocks { count: lookback.total, ..decoded })
        };
        let (lookback, candidate_blocks, decoded) = self.run.lay_out(|scratch| &mut scratch.list, lay_out)?;
        let lay_out = |layout: &mut ScratchLayout| Lookback::with_results(layout, tiles, count);
        let (found, results) = self.run.lay_out(|scratch| &mut scratch.found[turn], lay_out)?;
        let arguments = BlocksArguments {
            candidates: candidates.documents,
            candidate_blocks,
            results,
            origins: next.origins,
            lookback,
            count,
            ..self.blocks_arguments(row, decoded)
        };
        self.run.launch_tiles(&TERM_AT_A_TIME_FIND_BLOCKS, lookback, &arguments, "find blocks")?;
        let decoded = self.run.upload_blocks(list, decoded)?;
        let arguments = BlocksArguments { decoded, lookback: found, ..arguments };
        self.decode(&arguments, blocks)?;
        self.run.launch_tiles(&TERM_AT_A_TIME_SEARCH_BLOCKS, found, &arguments, "intersect")?;
        let [length, hit] = self.run.read([found.total, lookback.total])?;
        self.note_decoded(row, hit.min(blocks));
        let list = DeviceList { documents: results, length: length.min(count) };
        Ok(Candidates { list, decoded, ..next })
    }
}
