//! Copies pieces of lists to the device, on a stream of their own, while batches run.
//!
//! Pieces are short and lie all over the file: thousands of copies of some kilobytes, which the driver would start one by
//! one, at 3 us each. So a kernel fetches them across the bus, all pieces of a round in one launch (`transfer.cu`). Pieces
//! of memory that is not registered are written by the driver.

use super::cache::Move;
use crate::device::buffers::Buffers;
use lanner_gpu::device::{Address, Command, Shape, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::kernel::{Argument, Module};
use lanner_gpu::memory::Gpu;
use lanner_index::format::list::UNIT;

/// The stream of transfers; the slots of sessions have the others.
pub const STREAM: Stream = Stream(2);

lanner_gpu::shared! {
    mod header = "src/ptx/transfer.h";

    /// Threads of a thread block.
    const TRANSFER_THREADS: u32 = 256;
    /// The most units of 16 bytes that a thread block copies.
    const TRANSFER_UNITS: u32 = 1024;

    /// A part of a piece.
    #[derive(Default, PartialEq)]
    struct TransferRow {
        /// In host memory.
        from: Address to "const uint4",
        /// In device memory.
        to: Address to "uint4",
        /// How many units.
        units: u64,
    }

    /// The argument of the kernel.
    struct TransferArguments {
        /// A row for each thread block.
        rows: Address to "const TransferRow",
    }
}

static MODULE: Module = Module { name: "transfer", ptx: include_str!("../../ptx/transfer.ptx") };

lanner_gpu::kernels! {
    MODULE;
    /// Copies the rows.
    TRANSFER = "transfer": TransferArguments;
}

/// Where a piece is copied from.
pub enum Source<'a> {
    /// Registered memory.
    Registered(Address),
    /// Memory that the driver has to copy.
    Pageable(&'a [u8]),
}

/// The round that is being copied.
#[derive(Default)]
pub struct Transfer {
    rows: Buffers,
    in_flight: Vec<Move>,
}

impl Transfer {
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Starts to copy pieces. No other round may be in flight. After a failure the stream is idle, or the device lost;
    /// the pieces are returned.
    pub fn start<'a>(
        &mut self,
        gpu: &Gpu,
        moves: Vec<Move>,
        places: impl Fn(&Move) -> (Source<'a>, Address),
    ) -> Result<(), (GpuError, Vec<Move>)> {
        match self.submit(gpu, &moves, places) {
            Ok(()) => {
                self.in_flight = moves;
                Ok(())
            }
            Err(error) => {
                let error = gpu.finish(STREAM).err().unwrap_or(error);
                Err((error, moves))
            }
        }
    }

    fn submit<'a>(
        &mut self,
        gpu: &Gpu,
        moves: &[Move],
        places: impl Fn(&Move) -> (Source<'a>, Address),
    ) -> Result<(), GpuError> {
        let mut rows: Vec<TransferRow> = Vec::new();
        for it in moves {
            match places(it) {
                (Source::Registered(from), to) => rows.extend(rows_of(from, to, it.range.len())),
                (Source::Pageable(from), to) => gpu.submit(STREAM, Command::Write { from, to })?,
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
        self.rows.grow_host(gpu, rows.len() * size_of::<TransferRow>())?;
        let targets = self.rows.host().chunks_exact_mut(size_of::<TransferRow>());
        targets.zip(&rows).for_each(|(target, row)| target.copy_from_slice(row.bytes()));
        let shape = Shape { grid: rows.len() as u32, block: TRANSFER_THREADS, shared: 0 };
        gpu.launch(STREAM, &TRANSFER, shape, &TransferArguments { rows: self.rows.host_address() })
    }

    /// The pieces of the round in flight, if it has ended.
    pub fn poll(&mut self, gpu: &Gpu) -> Result<Vec<Move>, GpuError> {
        match self.in_flight.is_empty() || !gpu.is_idle(STREAM)? {
            true => Ok(Vec::new()),
            false => Ok(std::mem::take(&mut self.in_flight)),
        }
    }

    /// Waits for the round in flight. After a failure its pieces are returned, too: they may not have been copied, but
    /// nothing writes to their memory any more.
    pub fn finish(&mut self, gpu: &Gpu) -> Result<Vec<Move>, (GpuError, Vec<Move>)> {
        let moves = std::mem::take(&mut self.in_flight);
        match moves.is_empty() {
            true => Ok(moves),
            false => match gpu.finish(STREAM) {
                Ok(_) => Ok(moves),
                Err(error) => Err((error, moves)),
            },
        }
    }
}

fn rows_of(from: Address, to: Address, bytes: usize) -> impl Iterator<Item = TransferRow> {
    let most = TRANSFER_UNITS as usize * UNIT;
    (0..bytes).step_by(most).map(move |start| {
        let units = (bytes - start).min(most) / UNIT;
        TransferRow { from: from.plus(start), to: to.plus(start), units: units as u64 }
    })
}
