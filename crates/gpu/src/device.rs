//! The interface of devices: memory, commands in a stream, waiting. The driver and the simulator implement it.

use crate::error::GpuError;
use crate::kernel::Kernel;
use std::fmt;
use std::ptr::NonNull;
use std::time::Duration;

/// An address that kernels can read: a number to the host, a pointer to a kernel.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(pub u64);

impl Address {
    /// The null pointer.
    pub const NULL: Address = Address(0);

    /// The address `bytes` further on.
    pub fn plus(self, bytes: usize) -> Address {
        Address(self.0 + bytes as u64)
    }
}

/// The properties of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Its name, with the driver's version where there is one.
    pub name: String,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes of these that were free when it was opened: the driver and other processes use the others.
    pub free: u64,
    /// SMs.
    pub multiprocessors: u32,
    /// Bytes of shared memory that a thread block may have.
    pub shared: usize,
    /// Whether it is the simulator, on which nothing is measured.
    pub is_simulated: bool,
}

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Thread blocks.
    pub grid: u32,
    /// Threads of a thread block.
    pub block: u32,
    /// Bytes of shared memory of a thread block.
    pub shared: usize,
}

/// A CUDA stream: commands that a device executes in order. Streams overlap each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stream(pub usize);

/// How many streams a device has.
pub const STREAMS: usize = 3;

/// Memory is registered in pages of this many bytes.
pub const PAGE: usize = 4096;

/// Where memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// On the device.
    Device,
    /// On the host, pinned: copies to and from it overlap with work, and kernels reach it.
    Host,
}

/// An allocation. Its owner frees it with [`Device::free`].
#[derive(Debug)]
pub struct Allocation {
    /// Its address for kernels and commands.
    pub address: Address,
    /// Its address for the host, if it is host memory.
    pub host: Option<NonNull<u8>>,
    /// How many bytes.
    pub bytes: usize,
}

// SAFETY: an allocation is an address and a length; only `Pinned` reads and writes there, with the borrow of its owner.
#[allow(unsafe_code)]
unsafe impl Send for Allocation {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Allocation {}

/// A command of a stream.
#[derive(Clone, Copy, Debug)]
pub enum Command<'a> {
    /// Copies from any host memory to the device. The bytes have been read when `submit` returns.
    Write {
        /// The bytes.
        from: &'a [u8],
        /// The destination.
        to: Address,
    },
    /// Copies between addresses. Pinned memory must not change until the stream has been waited for.
    Copy {
        /// The source.
        from: Address,
        /// The destination.
        to: Address,
        /// How many bytes.
        bytes: usize,
    },
    /// Fills with zeros.
    Clear {
        /// The first byte.
        at: Address,
        /// How many bytes.
        bytes: usize,
    },
    /// Starts a kernel.
    Launch {
        /// The kernel.
        kernel: &'a Kernel,
        /// The shape of the launch.
        shape: Shape,
        /// The bytes of its argument, a struct that [`shared!`](crate::shared) defines.
        argument: &'a [u8],
    },
    /// Loads a kernel, which may have to be compiled first; otherwise its first launch does. Not ordered with the other
    /// commands of the stream.
    Load {
        /// The kernel.
        kernel: &'a Kernel,
    },
    /// Records the time.
    Mark,
}

/// A device. Every call but `free` and `unregister` can fail, and tests make each of them fail in turn.
pub trait Device: fmt::Debug + Send + Sync {
    /// Its properties.
    fn properties(&self) -> &Properties;

    /// Allocates memory, whose content is undefined.
    fn allocate(&self, side: Side, bytes: usize) -> Result<Allocation, GpuError>;

    /// Frees memory. A lost device ignores it.
    fn free(&self, allocation: Allocation);

    /// Lets kernels and copies read pages of host memory, which stay mapped and unchanged until
    /// [`Device::unregister`]; returns their address. The first byte is that of a page, and so is the end. A device may
    /// refuse it; then the memory has to be copied.
    fn register(&self, host: NonNull<u8>, bytes: usize) -> Result<Address, GpuError>;

    /// Ends what [`Device::register`] began. No stream uses the memory any more. A lost device ignores it.
    fn unregister(&self, host: NonNull<u8>);

    /// Enqueues commands in order. A device may start several together, which costs less than one call for each. If one
    /// is refused, those before it may still be executed.
    fn submit(&self, stream: Stream, commands: &[Command<'_>]) -> Result<(), GpuError>;

    /// Waits until a stream has executed all its commands, and returns the times between its marks. Errors of the
    /// commands are reported here at the latest.
    fn wait(&self, stream: Stream) -> Result<Vec<Duration>, GpuError>;

    /// Whether a stream has executed all its commands. Reports their errors, too.
    fn is_idle(&self, stream: Stream) -> Result<bool, GpuError>;
}
