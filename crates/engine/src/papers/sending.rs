//! Lists that do not lie on the device: what of them is sent, when it is their turn in the steps of a plan.
//!
//! A list that is merged, added up or asked bit by bit is sent whole. One that is searched is not (griffin, section
//! 3.1.2): its directory goes first, which has the skip pointers, and what its codecs keep for all blocks; then, in one
//! copy, the blocks that can have a candidate.

use super::steps::{Course, STREAM};
use crate::device::kernels::SparseRow;
use crate::device::resident::PADDING;
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
pub struct Listed<'a> {
    /// Where it lies on the device; nowhere if it has to be sent.
    pub row: ListRow,
    unsent: Option<Unsent<'a>>,
}

/// A list on the host.
#[derive(Clone, Copy)]
struct Unsent<'a> {
    bytes: &'a [u8],
    list: List<'a>,
}

impl<'a> Listed<'a> {
    /// A list to send whose blocks can go without the others.
    fn long(&self) -> Option<Unsent<'a>> {
        self.unsent.filter(|_| matches!(self.row, ListRow::Sparse(row) if row.is_short == 0))
    }
}

impl<'a> Course<'a> {
    /// The plan's lists, the shortest first. None is sent yet.
    pub fn lists(&self) -> Result<Vec<Listed<'a>>, Failure> {
        let (ground, plan) = (self.ground, self.plan);
        let mut lists: Vec<_> = plan.lists.iter().collect();
        lists.sort_by_key(|list| list.postings);
        let listed = |list: &PlannedList| {
            let address = ground.resident.address(list.span);
            let unsent = match address {
                Some(_) => None,
                None => Some(Unsent {
                    bytes: ground.index.segment().bytes_at(list.span)?,
                    list: ground.index.list_at(list.span)?,
                }),
            };
            let row = ListRow::new(ground.index, plan, list, address.unwrap_or(Address::NULL))?;
            Ok(Listed { row, unsent })
        };
        lists.into_iter().map(listed).collect()
    }

    /// Sends lists whole, where they do not lie on the device already. What was sent before is lost.
    pub fn send(&mut self, lists: &[Listed<'_>]) -> Result<Vec<ListRow>, GpuError> {
        let bytes: Vec<&[u8]> = lists.iter().filter_map(|list| Some(list.unsent?.bytes)).collect();
        let mut addresses = self.write(&bytes)?.into_iter();
        let mut address = |list: &Listed<'_>| list.unsent.and_then(|_| addresses.next());
        Ok(lists.iter().map(|list| address(list).map_or(list.row, |address| list.row.at(address))).collect())
    }

    /// Likewise one list, and says where it lies.
    pub fn send_whole(&mut self, list: &Listed<'_>) -> Result<Address, GpuError> {
        match list.unsent {
            Some(Unsent { bytes, .. }) => Ok(self.write(&[bytes])?[0]),
            None => Ok(list.row.bytes()),
        }
    }

    /// Sends of a list in blocks what it takes to find blocks, and to decode them once they are there too.
    pub fn send_directory(&mut self, row: SparseRow, list: &Listed<'_>) -> Result<SparseRow, GpuError> {
        let Some(Unsent { bytes, .. }) = list.long() else {
            return Ok(SparseRow { bytes: self.send_whole(list)?, ..row });
        };
        let shared = shared_units(&row);
        // Both lie within the list, or its parts would not have been found.
        let directory = &bytes[..row.payload as usize];
        let addresses = self.write(&[directory, &bytes[UNIT * shared.start as usize..UNIT * shared.end as usize]])?;
        // The shared parts follow the directory, which ends with a whole unit.
        let moved = |start: u32| if start > 0 { start - shared.start + row.payload / UNIT as u32 } else { 0 };
        Ok(SparseRow { bytes: addresses[0], shared: row.shared.map(moved), ..row })
    }

    /// Sends the blocks that a search has found, and says where they lie; nothing of a list that lies there whole.
    pub fn send_blocks(&mut self, list: &Listed<'_>, found: DecodedBlocks) -> Result<DecodedBlocks, GpuError> {
        let Some(Unsent { list, .. }) = list.long() else {
            return Ok(found);
        };
        let numbers = self.read_numbers(found.count, found.blocks, found.capacity)?;
        let blocks: Vec<&[u8]> = numbers.iter().map(|&number| sent_part(list.block_bytes(number as usize))).collect();
        // A table of where they lie comes first.
        let mut places = ScratchLayout::from(Address::NULL);
        places.take(size_of::<u32>() * blocks.len());
        let starts: Vec<usize> = blocks.iter().map(|block| places.take(block.len()).0 as usize).collect();
        let bytes = places.end();
        // The stream has been waited for: it uses neither side.
        let hit = &mut self.rooms.hit;
        hit.grow(self.ground.gpu, bytes + PADDING)?;
        let table = hit.bytes().as_chunks_mut().0;
        table.iter_mut().zip(&starts).for_each(|(row, start)| *row = ((start / UNIT) as u32).to_le_bytes());
        for (block, &start) in blocks.iter().zip(&starts) {
            hit.bytes()[start..start + block.len()].copy_from_slice(block);
        }
        let (from, to) = (hit.host_address(), hit.address());
        let gpu = self.begin()?;
        gpu.submit(STREAM, Command::Copy { from, to, bytes })?;
        gpu.submit(STREAM, Command::Clear { at: to.plus(bytes), bytes: PADDING })?;
        self.end("send")?;
        self.work.bytes_uploaded += bytes as u64;
        Ok(DecodedBlocks { sent: to, ..found })
    }

    /// Writes pieces to the device, each from a multiple of 16 bytes on, with zeros behind the last.
    fn write(&mut self, pieces: &[&[u8]]) -> Result<Vec<Address>, GpuError> {
        if pieces.is_empty() {
            return Ok(Vec::new());
        }
        let mut places = ScratchLayout::from(Address::NULL);
        let starts: Vec<usize> = pieces.iter().map(|piece| places.take(piece.len()).0 as usize).collect();
        let end = places.end();
        let sent = self.room(|rooms| &mut rooms.sent, end + PADDING)?.address;
        let addresses: Vec<Address> = starts.into_iter().map(|start| sent.plus(start)).collect();
        let gpu = self.begin()?;
        for (&from, &to) in pieces.iter().zip(&addresses).filter(|(piece, _)| !piece.is_empty()) {
            gpu.submit(STREAM, Command::Write { from, to })?;
        }
        gpu.submit(STREAM, Command::Clear { at: sent.plus(end), bytes: PADDING })?;
        self.end("send")?;
        self.work.bytes_uploaded += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
        Ok(addresses)
    }
}

/// Where the parts lie that the blocks of a list share, from the first to the end of the last, in units.
fn shared_units(row: &SparseRow) -> Range<u32> {
    let parts = || row.shared.into_iter().zip(row.shared_bytes).filter(|&(start, _)| start > 0);
    let start = parts().map(|(start, _)| start).min().unwrap_or(0);
    let end = parts().map(|(start, bytes)| start + bytes.div_ceil(UNIT as u32)).max().unwrap_or(0);
    start..end
}

/// What is sent of a block: all, unless damage makes it longer than decoders read.
fn sent_part(block: &[u8]) -> &[u8] {
    block.get(..PADDING).unwrap_or(block)
}
