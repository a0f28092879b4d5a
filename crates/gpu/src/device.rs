//! What the engine asks of a device: memory, commands in a stream, waiting. Behind it stands a driver or the simulator.

use crate::error::GpuError;
use crate::kernel::Kernel;
use std::fmt;
use std::ptr::NonNull;
use std::time::Duration;

/// A place in memory that kernels reach: a number to the host, a pointer to a kernel.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(pub u64);

impl Address {
    /// No place.
    pub const NULL: Address = Address(0);

    /// So many bytes further on.
    pub fn plus(self, bytes: usize) -> Address {
        Address(self.0 + bytes as u64)
    }
}

/// What a device has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Its name, with the driver's version where there is one.
    pub name: String,
    /// Bytes of memory.
    pub memory: u64,
    /// Processors that run blocks side by side.
    pub multiprocessors: u32,
    /// Bytes of shared memory that a block may have.
    pub shared: usize,
    /// Whether this is no real device: nothing is measured on it.
    pub is_simulated: bool,
}

/// How many blocks of how many threads, with how much shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks.
    pub grid: u32,
    /// Threads of a block.
    pub block: u32,
    /// Bytes of shared memory of a block.
    pub shared: usize,
}

/// Work that a device does in order. Streams overlap each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stream(pub usize);

/// So many streams a device has.
pub const STREAMS: usize = 2;

/// Where memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// On the device.
    Device,
    /// On the host, pinned: copies to and from it overlap with work, and kernels reach it.
    Host,
}

/// A piece of memory as a device gave it. Whoever has it gives it back with [`Device::free`].
#[derive(Debug)]
pub struct Piece {
    /// Where kernels find it.
    pub address: Address,
    /// Where the host finds it, if it lies there.
    pub host: Option<NonNull<u8>>,
    /// How many bytes.
    pub bytes: usize,
    /// Where it lies.
    pub side: Side,
}

// SAFETY: a piece is a place and a length; `Pinned` alone reads and writes there, with the borrow of its owner.
#[allow(unsafe_code)]
unsafe impl Send for Piece {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Piece {}

/// What a stream does next.
#[derive(Clone, Copy, Debug)]
pub enum Command<'a> {
    /// Copies to the device from any memory of the host. The bytes are taken before `submit` returns.
    Write {
        /// What is copied.
        from: &'a [u8],
        /// Where to.
        to: Address,
    },
    /// Copies between places that kernels reach. Pinned memory must stay as it is until the stream was waited for.
    Copy {
        /// Where from.
        from: Address,
        /// Where to.
        to: Address,
        /// How many bytes.
        bytes: usize,
    },
    /// Fills with zeros.
    Clear {
        /// From here on.
        at: Address,
        /// How many bytes.
        bytes: usize,
    },
    /// Starts a kernel.
    Launch {
        /// The kernel.
        kernel: &'a Kernel,
        /// Its blocks.
        shape: Shape,
        /// The bytes of its one argument, a `#[repr(C)]` struct that both sides know.
        argument: &'a [u8],
    },
    /// Notes the time.
    Mark,
}

/// A device. Every call but `free` can fail, and tests make each of them fail in turn.
pub trait Device: fmt::Debug + Send + Sync {
    /// What it has.
    fn limits(&self) -> &Limits;

    /// Takes memory, which holds anything.
    fn allocate(&self, side: Side, bytes: usize) -> Result<Piece, GpuError>;

    /// Gives memory back. A device that was lost takes it without a word.
    fn free(&self, piece: Piece);

    /// Puts commands behind what the stream has to do, in their order. A device may start several together, which costs
    /// less than to hand them in one by one. Where one is refused, those before it may be done nevertheless.
    fn submit(&self, stream: Stream, commands: &[Command<'_>]) -> Result<(), GpuError>;

    /// Waits until a stream has done all it had to, and returns the times between its marks. What went wrong in it
    /// shows here at the latest.
    fn wait(&self, stream: Stream) -> Result<Vec<Duration>, GpuError>;

    /// Whether a stream has done all it had to. What went wrong in it shows here too.
    fn is_idle(&self, stream: Stream) -> Result<bool, GpuError>;
}
