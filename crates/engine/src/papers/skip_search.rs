//! Intersection of candidates with a list in blocks: only blocks that can hold a candidate are decoded.
//!
//! The skip pointers of the list, the last documents of its blocks, are searched for each candidate. The blocks that were
//! hit are decoded, each by a warp, and each candidate is searched in its block. Of a list that is not resident only the
//! directory and these blocks are uploaded. The kernels are in `term_at_a_time.cu`.
//!
//! Liu et al., Griffin (section 3.1.2, binary search over skip pointers); Ding et al., Using Graphics Processors for High
//! Performance IR Query Processing (section 8.1, choosing blocks before decoding).

use super::compaction::{DeviceList, ORDER_SHARED, Order, Places};
use super::intersections::{Candidates, Intersections, bytes_of, place_blocks};
use super::step_kernels::{
    BlocksArguments, DecodedBlocks, TERM_AT_A_TIME_FIND_BLOCKS, TERM_AT_A_TIME_SEARCH_BLOCKS, TILE,
};
use super::step_upload::StepList;
use super::steps::STREAM;
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
        let lay = |places: &mut Places| {
            let order = Order::place(places, tiles);
            let slots = places.take(4 * count as usize);
            let decoded = DecodedBlocks { blocks: places.take(4 * blocks as usize), ..place_blocks(places, blocks) };
            (order, slots, DecodedBlocks { count: order.total, ..decoded })
        };
        let room = self.run.scratch(|scratch| &mut scratch.list, bytes_of(lay))?;
        let (order, slots, decoded) = lay(&mut Places::from(room.address));
        let find = |places: &mut Places| (Order::place(places, tiles), places.take(4 * count as usize));
        let room = self.run.scratch(|scratch| &mut scratch.found[turn], bytes_of(find))?;
        let (found_order, results) = find(&mut Places::from(room.address));
        let arguments = BlocksArguments {
            candidates: candidates.documents,
            slots,
            results,
            origins: next.origins,
            order,
            count,
            ..self.blocks_arguments(row, decoded)
        };
        let gpu = self.run.begin()?;
        order.clear(gpu, STREAM)?;
        gpu.launch(STREAM, &TERM_AT_A_TIME_FIND_BLOCKS, order.shape(ORDER_SHARED), &arguments)?;
        self.run.end("find blocks")?;
        let decoded = self.run.upload_blocks(list, decoded)?;
        let arguments = BlocksArguments { decoded, ..arguments };
        self.decode(&arguments, blocks)?;
        let arguments = BlocksArguments { order: found_order, ..arguments };
        let gpu = self.run.begin()?;
        found_order.clear(gpu, STREAM)?;
        gpu.launch(STREAM, &TERM_AT_A_TIME_SEARCH_BLOCKS, found_order.shape(ORDER_SHARED), &arguments)?;
        self.run.end("intersect")?;
        let [length, hit] = self.run.read([found_order.total, order.total])?;
        self.note_decoded(row, hit.min(blocks));
        let list = DeviceList { documents: results, length: length.min(count) };
        Ok(Candidates { list, decoded, ..next })
    }
}
