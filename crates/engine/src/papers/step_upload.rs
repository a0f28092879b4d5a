//! Uploads lists that are not resident, when the steps of a plan reach them.
//!
//! A list that is merged, accumulated or tested bit by bit is uploaded whole. A list that is searched is not (griffin,
//! section 3.1.2): first its directory, which holds the skip pointers, and the data that its codecs share among blocks;
//! then, in one copy, the blocks that can hold a candidate.

use super::steps::{STREAM, StepRun};
use crate::device::kernels::SparseRow;
use crate::device::residency::PADDING;
use crate::device::rows::ListRow;
use crate::device::session::Failure;
use crate::papers::compaction::ScratchLayout;
use crate::papers::step_kernels::DecodedBlocks;
use crate::query::plan::PlannedList;
use lanner_gpu::device::{Address, Command};
use lanner_gpu::error::GpuError;
use lanner_index::format::list::UNIT;
use lanner_index::open::List;
use std::ops::Range;

/// A list of a plan.
#[derive(Clone, Copy)]
pub struct StepList<'a> {
    /// Its row; relative to the list until that is uploaded.
    pub row: ListRow,
    on_host: Option<HostList<'a>>,
}

/// A list that is not resident.
#[derive(Clone, Copy)]
struct HostList<'a> {
    bytes: &'a [u8],
    list: List<'a>,
}

impl<'a> StepList<'a> {
    /// The list, if it is not resident and its blocks can be uploaded one by one.
    fn long(&self) -> Option<HostList<'a>> {
        self.on_host.filter(|_| matches!(self.row, ListRow::Sparse(row) if row.is_short == 0))
    }
}

impl<'a> StepRun<'a> {
    /// The plan's lists, shortest first; nothing is uploaded yet.
    pub fn lists(&self) -> Result<Vec<StepList<'a>>, Failure> {
        let (context, plan) = (self.context, self.plan);
        let mut lists: Vec<_> = plan.lists.iter().collect();
        lists.sort_by_key(|list| list.postings);
        let step_list = |list: &PlannedList| {
            let address = context.residency.list(list.span);
            let on_host = match address {
                Some(_) => None,
                None => Some(HostList {
                    bytes: context.index.segment().bytes_at(list.span)?,
                    list: context.index.list_at(list.span)?,
                }),
            };
            let row = ListRow::new(context.index, plan, list)?;
            Ok(StepList { row: address.map_or(row, |address| row.at(address)), on_host })
        };
        lists.into_iter().map(step_list).collect()
    }

    /// Uploads whole lists that are not resident. Earlier uploads are overwritten.
    pub fn upload(&mut self, lists: &[StepList<'_>]) -> Result<Vec<ListRow>, GpuError> {
        let bytes: Vec<&[u8]> = lists.iter().filter_map(|list| Some(list.on_host?.bytes)).collect();
        let mut addresses = self.write(&bytes)?.into_iter();
        let row = |list: &StepList<'_>| match list.on_host {
            Some(_) => list.row.at(addresses.next().expect("an address for each list that was written")),
            None => list.row,
        };
        Ok(lists.iter().map(row).collect())
    }

    /// Uploads one list if it is not resident, and returns its row.
    pub fn upload_whole(&mut self, list: &StepList<'_>) -> Result<ListRow, GpuError> {
        match list.on_host {
            Some(HostList { bytes, .. }) => Ok(list.row.at(self.write(&[bytes])?[0])),
            None => Ok(list.row),
        }
    }

    /// Uploads the directory of a list and the data that its blocks share: enough to find blocks, and to decode them
    /// once they are uploaded too.
    pub fn upload_directory(&mut self, list: &StepList<'_>) -> Result<ListRow, GpuError> {
        let (Some(HostList { bytes, .. }), ListRow::Sparse(row)) = (list.long(), list.row) else {
            return self.upload_whole(list);
        };
        // Both lie within the list, or its parts would not have been found.
        let (directory, blocks) = bytes.split_at(row.payload as usize);
        let shared = shared_units(&row);
        let shared_bytes = &blocks[UNIT * shared.start as usize..UNIT * shared.end as usize];
        let addresses = self.write(&[directory, shared_bytes])?;
        let moved = |start: u32| if start > 0 { start - shared.start + 1 } else { 0 };
        let row = SparseRow {
            directory: addresses[0],
            // An offset of 0 would mean that there is nothing.
            tail: Address(addresses[1].0 - UNIT as u64),
            shared: row.shared.map(moved),
            ..row
        };
        Ok(ListRow::Sparse(row))
    }

    /// Uploads the blocks that a search has found, unless the list is on the device as a whole.
    pub fn upload_blocks(&mut self, list: &StepList<'_>, found: DecodedBlocks) -> Result<DecodedBlocks, GpuError> {
        let Some(HostList { list, .. }) = list.long() else {
            return Ok(found);
        };
        let numbers = self.read_numbers(found.count, found.blocks, found.capacity)?;
        let blocks: Vec<&[u8]> =
            numbers.iter().map(|&number| uploaded_part(list.block_bytes(number as usize))).collect();
        // A table of their offsets comes first.
        let mut layout = ScratchLayout::from(Address::NULL);
        layout.take(size_of::<u32>() * blocks.len());
        let starts: Vec<usize> = blocks.iter().map(|block| layout.take(block.len()).0 as usize).collect();
        let bytes = layout.end();
        // The stream is idle: it uses neither side of the buffer.
        let buffers = &mut self.buffers.blocks;
        buffers.grow(self.context.gpu, bytes + PADDING)?;
        let table = buffers.host().as_chunks_mut().0;
        table.iter_mut().zip(&starts).for_each(|(row, start)| *row = ((start / UNIT) as u32).to_le_bytes());
        for (block, &start) in blocks.iter().zip(&starts) {
            buffers.host()[start..start + block.len()].copy_from_slice(block);
        }
        let (from, to) = (buffers.host_address(), buffers.address());
        let gpu = self.begin()?;
        gpu.submit(STREAM, Command::Copy { from, to, bytes })?;
        gpu.submit(STREAM, Command::Clear { at: to.plus(bytes), bytes: PADDING })?;
        self.end("upload")?;
        self.work.bytes_uploaded += bytes as u64;
        Ok(DecodedBlocks { uploaded: to, ..found })
    }

    /// Writes pieces to the device, each aligned to 16 bytes, with padding behind the last.
    fn write(&mut self, pieces: &[&[u8]]) -> Result<Vec<Address>, GpuError> {
        if pieces.is_empty() {
            return Ok(Vec::new());
        }
        let mut layout = ScratchLayout::from(Address::NULL);
        let starts: Vec<usize> = pieces.iter().map(|piece| layout.take(piece.len()).0 as usize).collect();
        let end = layout.end();
        let uploaded = self.scratch(|scratch| &mut scratch.uploaded, end + PADDING)?.address;
        let addresses: Vec<Address> = starts.into_iter().map(|start| uploaded.plus(start)).collect();
        let gpu = self.begin()?;
        for (&from, &to) in pieces.iter().zip(&addresses).filter(|(piece, _)| !piece.is_empty()) {
            gpu.submit(STREAM, Command::Write { from, to })?;
        }
        gpu.submit(STREAM, Command::Clear { at: uploaded.plus(end), bytes: PADDING })?;
        self.end("upload")?;
        self.work.bytes_uploaded += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
        Ok(addresses)
    }
}

/// The range of units that holds all data shared among the blocks of a list.
fn shared_units(row: &SparseRow) -> Range<u32> {
    let parts = || row.shared.into_iter().zip(row.shared_bytes).filter(|&(start, _)| start > 0);
    let start = parts().map(|(start, _)| start).min().unwrap_or(0);
    let end = parts().map(|(start, bytes)| start + bytes.div_ceil(UNIT as u32)).max().unwrap_or(0);
    start..end
}

/// The bytes of a block to upload: all, unless damage makes it longer than decoders read.
fn uploaded_part(block: &[u8]) -> &[u8] {
    block.get(..PADDING).unwrap_or(block)
}
