//! Results of many thread blocks in one array, in order: what the intersections on a GPU have in common.
//!
//! The work is cut into tiles, a thread block each. A block counts its matches, makes the count known, and looks back
//! over the tiles before it, adding up their counts until it meets one that knows its own sum already; then it makes
//! its own sum known and writes its matches behind those of the others. So a single launch counts, scans and writes.
//! The scan is the decoupled look-back of Merrill and Garland (2016).

use lanner_gpu::device::{Address, Command, Shape, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::{Gpu, Memory, Pinned};

/// Threads of a block of nearly all kernels here.
pub const THREADS: u32 = 256;
/// Bytes of shared memory that keep tiles in order.
pub const ORDER_SHARED: usize = 40;

/// A sorted list of documents, each once, that lies on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceList {
    /// Its first document, a `u32`.
    pub documents: Address,
    /// How many there are.
    pub length: u32,
}

/// Where an intersection leaves the places that its matches have in the shorter and in the longer list, two arrays of
/// as many `u32` as there are documents in the shorter one. `compaction.cu` has the same struct.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Origins {
    /// Places in the shorter list.
    pub shorter: Address,
    /// Places in the longer one.
    pub longer: Address,
}

impl Origins {
    /// Nobody asks for them.
    pub const NONE: Origins = Origins { shorter: Address::NULL, longer: Address::NULL };
}

/// What the tiles of a launch tell each other; `compaction.cu` has the same struct.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// The tile that starts next.
    pub ticket: Address,
    /// The matches of all tiles, left by the last one.
    pub total: Address,
    /// What is known of each tile, eight bytes.
    pub states: Address,
    /// How many tiles there are.
    pub tiles: u32,
    /// Nothing.
    pub reserved: u32,
}

impl Order {
    /// The bytes that it takes.
    pub fn bytes(tiles: u32) -> usize {
        8 + 8 * tiles as usize
    }

    /// Takes its place in a room.
    pub fn place(places: &mut Places, tiles: u32) -> Order {
        let ticket = places.take(Order::bytes(tiles));
        Order { ticket, total: ticket.plus(4), states: ticket.plus(8), tiles, reserved: 0 }
    }

    /// Makes it ready for a launch; the total is zero if none follows.
    pub fn clear(&self, gpu: &Gpu, stream: Stream) -> Result<(), GpuError> {
        gpu.submit(stream, Command::Clear { at: self.ticket, bytes: Order::bytes(self.tiles) })
    }

    /// A block of threads for each tile.
    pub fn shape(&self, shared: usize) -> Shape {
        Shape { grid: self.tiles, block: THREADS, shared }
    }
}

/// A piece of memory that an algorithm may use until the stream was waited for.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Where it lies.
    pub address: Address,
    /// How many bytes.
    pub bytes: usize,
}

impl From<&Memory> for Room {
    fn from(memory: &Memory) -> Room {
        Room { address: memory.address(), bytes: memory.bytes() }
    }
}

/// Gives out places in a piece of memory, one behind the other.
#[derive(Debug)]
pub struct Places {
    next: Address,
}

impl Places {
    /// From an address on, which is a multiple of 16.
    pub fn from(start: Address) -> Places {
        Places { next: start }
    }

    /// In a room that was allocated with the bytes that the algorithm asked for.
    ///
    /// # Panics
    /// If the room is smaller.
    pub fn inside(room: Room, bytes: usize) -> Places {
        assert!(room.bytes >= bytes, "a room of {} bytes, and {bytes} are needed", room.bytes);
        Places::from(room.address)
    }

    /// The next place of so many bytes.
    pub fn take(&mut self, bytes: usize) -> Address {
        let place = self.next;
        self.next = place.plus(bytes.next_multiple_of(16));
        place
    }

    /// The bytes taken since address zero.
    pub fn end(&self) -> usize {
        self.next.0 as usize
    }
}

/// Documents that a device finds: where they lie, in order, once the stream has come there.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// The first document.
    pub documents: Address,
    /// How many there are, a `u32`.
    pub count: Address,
}

impl Found {
    /// Waits for the stream, and reads how many there are: a list for the next intersection, in another room.
    pub fn list(&self, gpu: &Gpu, stream: Stream) -> Result<DeviceList, GpuError> {
        let length = read_numbers(gpu, stream, self.count, 1)?[0];
        Ok(DeviceList { documents: self.documents, length })
    }

    /// Waits for the stream, and reads the documents.
    pub fn read(&self, gpu: &Gpu, stream: Stream) -> Result<Vec<u32>, GpuError> {
        let list = self.list(gpu, stream)?;
        read_numbers(gpu, stream, list.documents, list.length as usize)
    }
}

/// Reads numbers of 32 bits off a device, behind what the stream has to do.
pub fn read_numbers(gpu: &Gpu, stream: Stream, from: Address, count: usize) -> Result<Vec<u32>, GpuError> {
    let bytes = read_bytes(gpu, stream, from, 4 * count)?;
    Ok(bytes.as_chunks().0.iter().map(|number| u32::from_le_bytes(*number)).collect())
}

/// Reads bytes off a device, behind what the stream has to do.
pub fn read_bytes(gpu: &Gpu, stream: Stream, from: Address, bytes: usize) -> Result<Pinned, GpuError> {
    let pinned = gpu.pin(bytes)?;
    gpu.submit(stream, Command::Copy { from, to: pinned.address(), bytes })?;
    gpu.wait(stream)?;
    Ok(pinned)
}
