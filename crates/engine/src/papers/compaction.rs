//! Compaction: the matches of many thread blocks in one array, in order, by a single launch.
//!
//! The work is divided into tiles, one thread block each. A thread block counts its matches, publishes the count, and
//! looks back over the tiles before it, adding up their counts until it reaches a tile that has published its prefix
//! sum; then it publishes its own prefix sum and writes its matches after those of the tiles before. This is the scan
//! with decoupled look-back of Merrill and Garland (2016). All intersections on a GPU use it.

use lanner_gpu::device::{Address, Command, Shape, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::{Gpu, Memory, Pinned};

lanner_gpu::shared! {
    mod header = "src/ptx/compaction.h", in papers;

    /// Threads of a thread block of nearly all kernels of the papers.
    const THREADS: u32 = 256;
    /// Warps of such a thread block.
    const WARPS: u32 = THREADS / 32;
    /// Consecutive documents that a thread searches for.
    const SEARCHED: u32 = 4;
    /// Bytes of shared memory of a kernel that only compacts.
    const LOOKBACK_SHARED: usize = 40;

    /// Where an intersection writes the positions of its matches in both lists: arrays of as many numbers as the
    /// shorter list has documents, or null.
    #[derive(Default)]
    struct Origins {
        /// Positions in the shorter list.
        shorter: Address to "unsigned",
        /// Positions in the longer list.
        longer: Address to "unsigned",
    }

    /// The state that the tiles of a launch share; zeros before the launch.
    #[derive(Default)]
    struct Lookback {
        /// The tile that starts next.
        ticket: Address to "unsigned",
        /// The matches of all tiles, written by the last one.
        total: Address to "unsigned",
        /// For each tile its count or prefix sum; zero until its count is known.
        states: Address to "unsigned long long",
        /// How many tiles there are.
        tiles: u32,
        /// Unused.
        reserved: u32,
    }
}

/// A sorted list of distinct documents in device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceList {
    /// Its first document, a `u32`.
    pub documents: Address,
    /// How many there are.
    pub length: u32,
}

impl Origins {
    /// No positions are written.
    pub const NONE: Origins = Origins { shorter: Address::NULL, longer: Address::NULL };
}

/// What an intersection takes: two lists, of which the first counts as the shorter one, and where it may write.
#[derive(Clone, Copy, Debug)]
pub struct Operands {
    /// The lists.
    pub lists: [DeviceList; 2],
    /// The positions of matches.
    pub origins: Origins,
    /// As many bytes as `scratch_bytes` of the algorithm says; the stream uses them until it has been waited for.
    pub scratch: Scratch,
}

impl Operands {
    /// Two lists, without positions of matches.
    pub fn new(lists: [DeviceList; 2], scratch: impl Into<Scratch>) -> Operands {
        Operands { lists, origins: Origins::NONE, scratch: scratch.into() }
    }
}

impl Lookback {
    /// The bytes that it takes.
    pub fn bytes(tiles: u32) -> usize {
        8 + 8 * tiles as usize
    }

    /// Reserves scratch for a number of tiles.
    pub fn reserve(layout: &mut ScratchLayout, tiles: u32) -> Lookback {
        let ticket = layout.take(Lookback::bytes(tiles));
        Lookback { ticket, total: ticket.plus(4), states: ticket.plus(8), tiles, reserved: 0 }
    }

    /// Reserves scratch for a number of tiles, and for up to `most` documents that they find.
    pub fn with_results(layout: &mut ScratchLayout, tiles: u32, most: u32) -> (Lookback, Address) {
        (Lookback::reserve(layout, tiles), layout.take(4 * most as usize))
    }

    /// Zeroes it for a launch. If no launch follows, the total stays zero.
    pub fn clear(&self, gpu: &Gpu, stream: Stream) -> Result<(), GpuError> {
        gpu.submit(stream, Command::Clear { at: self.ticket, bytes: Lookback::bytes(self.tiles) })
    }

    /// A launch with a thread block for each tile.
    pub fn shape(&self, shared: usize) -> Shape {
        Shape { grid: self.tiles, block: THREADS, shared }
    }
}

/// Device memory that an algorithm uses until its stream has been waited for.
#[derive(Clone, Copy, Debug)]
pub struct Scratch {
    /// Its first byte.
    pub address: Address,
    /// How many bytes it has.
    pub bytes: usize,
}

impl From<&Memory> for Scratch {
    fn from(memory: &Memory) -> Scratch {
        Scratch { address: memory.address(), bytes: memory.bytes() }
    }
}

/// Divides scratch into buffers, one after the other.
#[derive(Debug)]
pub struct ScratchLayout {
    next: Address,
}

impl ScratchLayout {
    /// Starts at an address, which is a multiple of 16.
    pub fn from(start: Address) -> ScratchLayout {
        ScratchLayout { next: start }
    }

    /// Divides scratch that must have at least `bytes` bytes.
    ///
    /// # Panics
    /// If it has fewer.
    pub fn inside(scratch: Scratch, bytes: usize) -> ScratchLayout {
        assert!(scratch.bytes >= bytes, "{} bytes of scratch, and {bytes} are needed", scratch.bytes);
        ScratchLayout::from(scratch.address)
    }

    /// The next buffer.
    pub fn take(&mut self, bytes: usize) -> Address {
        let buffer = self.next;
        self.next = buffer.plus(bytes.next_multiple_of(16));
        buffer
    }

    /// The bytes that a layout takes.
    pub fn bytes_of<T>(lay_out: impl FnOnce(&mut ScratchLayout) -> T) -> usize {
        let mut layout = ScratchLayout::from(Address::NULL);
        lay_out(&mut layout);
        layout.end()
    }

    /// The bytes taken, if the layout started at address 0.
    pub fn end(&self) -> usize {
        self.next.0 as usize
    }
}

/// The documents that an intersection finds, in order; valid once the stream has got there.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// The first document.
    pub documents: Address,
    /// How many there are, a `u32`.
    pub count: Address,
}

impl Found {
    /// Waits for the stream and reads how many there are: a list for the next intersection, which needs other scratch.
    pub fn list(&self, gpu: &Gpu, stream: Stream) -> Result<DeviceList, GpuError> {
        let length = read_numbers(gpu, stream, self.count, 1)?[0];
        Ok(DeviceList { documents: self.documents, length })
    }

    /// Waits for the stream and reads the documents.
    pub fn read(&self, gpu: &Gpu, stream: Stream) -> Result<Vec<u32>, GpuError> {
        let list = self.list(gpu, stream)?;
        read_numbers(gpu, stream, list.documents, list.length as usize)
    }
}

/// Waits for the stream and reads 32-bit numbers from the device.
pub fn read_numbers(gpu: &Gpu, stream: Stream, from: Address, count: usize) -> Result<Vec<u32>, GpuError> {
    let bytes = read_bytes(gpu, stream, from, 4 * count)?;
    Ok(bytes.as_chunks().0.iter().map(|number| u32::from_le_bytes(*number)).collect())
}

/// Waits for the stream and reads bytes from the device.
pub fn read_bytes(gpu: &Gpu, stream: Stream, from: Address, bytes: usize) -> Result<Pinned, GpuError> {
    let pinned = gpu.pin(bytes)?;
    gpu.submit(stream, Command::Copy { from, to: pinned.address(), bytes })?;
    gpu.wait(stream)?;
    Ok(pinned)
}
