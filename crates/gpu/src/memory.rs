//! Device and pinned memory that is freed when dropped, within a budget.

use crate::device::{Address, Allocation, Command, Device, PAGE, Properties, Shape, Side, Stream};
use crate::error::GpuError;
use crate::kernel::{Argument, TypedKernel};
use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// How often pinned memory is polled before the stream is queried, which takes a microsecond.
pub const POLLS: u32 = 256;

/// A device, and how much of its memory may be used.
#[derive(Clone, Debug)]
pub struct Gpu {
    device: Arc<dyn Device>,
    budget: Arc<Budget>,
}

#[derive(Debug)]
struct Budget {
    bytes: u64,
    used: AtomicU64,
}

impl Gpu {
    /// Uses up to `budget` bytes of a device's memory.
    pub fn new(device: Arc<dyn Device>, budget: u64) -> Gpu {
        Gpu { device, budget: Arc::new(Budget { bytes: budget, used: AtomicU64::new(0) }) }
    }

    /// The properties of the device.
    pub fn properties(&self) -> &Properties {
        self.device.properties()
    }

    /// The bytes that are allocated.
    pub fn used(&self) -> u64 {
        self.budget.used.load(Ordering::Relaxed)
    }

    /// The bytes that may still be allocated.
    pub fn left(&self) -> u64 {
        self.budget.bytes.saturating_sub(self.used())
    }

    /// An error unless this many bytes may still be allocated, in whatever parts.
    pub fn check_left(&self, asked: u64) -> Result<(), GpuError> {
        let (left, budget) = (self.left(), self.budget.bytes);
        if asked <= left { Ok(()) } else { Err(GpuError::OverBudget { asked, left, budget }) }
    }

    /// Allocates device memory.
    pub fn allocate(&self, bytes: usize) -> Result<Memory, GpuError> {
        let (asked, budget) = (bytes as u64, self.budget.bytes);
        let take = |used: u64| used.checked_add(asked).filter(|&used| used <= budget);
        self.budget
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .map_err(|used| GpuError::OverBudget { asked, left: budget.saturating_sub(used), budget })?;
        let give_back = |_: &GpuError| _ = self.budget.used.fetch_sub(asked, Ordering::Relaxed);
        let allocation = self.device.allocate(Side::Device, bytes).inspect_err(give_back)?;
        Ok(Memory { gpu: self.clone(), allocation: Some(allocation) })
    }

    /// Allocates pinned host memory, which does not count against the budget.
    pub fn pin(&self, bytes: usize) -> Result<Pinned, GpuError> {
        let allocation = self.device.allocate(Side::Host, bytes)?;
        Ok(Pinned { device: Arc::clone(&self.device), allocation: Some(allocation) })
    }

    /// Lets kernels and copies read a range of host memory, extended to whole pages, for as long as what is returned
    /// lives; nothing may change it meanwhile. It does not count against the budget.
    pub fn register(&self, memory: &Arc<dyn HostBytes>, range: Range<usize>) -> Result<Registered, GpuError> {
        let bytes = memory.bytes();
        let first = bytes[range.clone()].as_ptr() as usize;
        let (start, end) = (first / PAGE * PAGE, (first + range.len()).next_multiple_of(PAGE));
        let host = NonNull::new(start as *mut u8).filter(|_| !range.is_empty());
        let nothing = || GpuError::Failed { at: "registering memory", reason: "there are no bytes".to_owned() };
        let host = host.ok_or_else(nothing)?;
        let address = self.device.register(host, end - start)?.plus(first - start);
        Ok(Registered { device: Arc::clone(&self.device), _memory: Arc::clone(memory), host: HostPage(host), address })
    }

    /// Enqueues a command.
    pub fn submit(&self, stream: Stream, command: Command<'_>) -> Result<(), GpuError> {
        self.device.submit(stream, &[command])
    }

    /// Enqueues commands together; see [`Device::submit`].
    pub fn submit_all(&self, stream: Stream, commands: &[Command<'_>]) -> Result<(), GpuError> {
        self.device.submit(stream, commands)
    }

    /// Enqueues the launch of a kernel with its argument. `cuda.rs` hands it to the driver, `simulator.rs` runs it on
    /// the CPU.
    pub fn launch<A: Argument>(
        &self,
        stream: Stream,
        kernel: &TypedKernel<A>,
        shape: Shape,
        argument: &A,
    ) -> Result<(), GpuError> {
        self.submit(stream, Command::Launch { kernel: &kernel.kernel, shape, argument: argument.bytes() })
    }

    /// Waits for a stream; see [`Device::wait`].
    pub fn wait(&self, stream: Stream) -> Result<Vec<Duration>, GpuError> {
        self.device.wait(stream)
    }

    /// Waits until a stream has stopped using memory that is about to be freed or written. Where waiting fails, it is tried
    /// once more: the device may go on, for others. An error means that commands may not have been executed.
    pub fn finish(&self, stream: Stream) -> Result<Vec<Duration>, GpuError> {
        self.device.wait(stream).inspect_err(|_| _ = self.device.wait(stream))
    }

    /// Whether a stream has executed all its commands; see [`Device::is_idle`].
    pub fn is_idle(&self, stream: Stream) -> Result<bool, GpuError> {
        self.device.is_idle(stream)
    }

    /// Waits until a kernel of the stream has changed the first word of pinned memory, which was `before`, or the
    /// stream is idle. This returns sooner than [`Gpu::wait`]; an error of the stream may only be reported by the next
    /// call.
    pub fn wait_for(&self, stream: Stream, pinned: &Pinned, before: u32) -> Result<(), GpuError> {
        loop {
            for _ in 0..POLLS {
                if pinned.first_word() != before {
                    return Ok(());
                }
                std::hint::spin_loop();
            }
            if self.device.is_idle(stream)? {
                return Ok(());
            }
        }
    }
}

/// Host memory whose bytes never change, such as a mapped file of an index.
pub trait HostBytes: Send + Sync {
    /// The same bytes at the same address, as long as it lives.
    fn bytes(&self) -> &[u8];
}

/// Host memory that kernels read. Its owner waits for all streams that use it before it is dropped.
pub struct Registered {
    device: Arc<dyn Device>,
    /// Keeps the memory mapped.
    _memory: Arc<dyn HostBytes>,
    host: HostPage,
    address: Address,
}

/// The first page of registered memory.
#[derive(Clone, Copy, Debug)]
struct HostPage(NonNull<u8>);

// SAFETY: only a number: nothing is read or written through it.
#[allow(unsafe_code)]
unsafe impl Send for HostPage {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for HostPage {}

impl fmt::Debug for Registered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Registered").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Registered {
    /// The address of the first byte of the range, for kernels and commands.
    pub fn address(&self) -> Address {
        self.address
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.device.unregister(self.host.0);
    }
}

/// Device memory, freed when dropped.
#[derive(Debug)]
pub struct Memory {
    gpu: Gpu,
    /// `None` once it is freed.
    allocation: Option<Allocation>,
}

impl Memory {
    /// Its address.
    pub fn address(&self) -> Address {
        self.allocation.as_ref().map_or(Address::NULL, |allocation| allocation.address)
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.allocation.as_ref().map_or(0, |allocation| allocation.bytes)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(allocation) = self.allocation.take() {
            self.gpu.budget.used.fetch_sub(allocation.bytes as u64, Ordering::Relaxed);
            self.gpu.device.free(allocation);
        }
    }
}

/// Pinned host memory, freed when dropped: bytes to the host, an address to commands and kernels.
///
/// A stream that uses it must be waited for before the host reads or changes it: by [`Gpu::wait`], or, for data that a
/// kernel wrote before it changed the first word, by [`Gpu::wait_for`].
#[derive(Debug)]
pub struct Pinned {
    device: Arc<dyn Device>,
    allocation: Option<Allocation>,
}

impl Pinned {
    /// Its address for kernels and commands.
    pub fn address(&self) -> Address {
        self.allocation.as_ref().map_or(Address::NULL, |allocation| allocation.address)
    }

    /// The first word, which a kernel may be writing; 0 if there are fewer than 4 bytes.
    #[allow(unsafe_code)]
    pub fn first_word(&self) -> u32 {
        match self.parts() {
            // SAFETY: the device allocated at least these bytes, aligned for any number. Kernels write whole words,
            // which an atomic load may race with.
            (pointer, 4..) => unsafe { AtomicU32::from_ptr(pointer.cast()) }.load(Ordering::Acquire),
            _ => 0,
        }
    }

    fn parts(&self) -> (*mut u8, usize) {
        let host = self.allocation.as_ref().and_then(|allocation| Some((allocation.host?.as_ptr(), allocation.bytes)));
        host.unwrap_or((NonNull::dangling().as_ptr(), 0))
    }
}

#[allow(unsafe_code)]
impl Deref for Pinned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let (pointer, bytes) = self.parts();
        // SAFETY: the device allocated and initialized these bytes, and frees them when this is dropped.
        unsafe { std::slice::from_raw_parts(pointer, bytes) }
    }
}

#[allow(unsafe_code)]
impl DerefMut for Pinned {
    fn deref_mut(&mut self) -> &mut [u8] {
        let (pointer, bytes) = self.parts();
        // SAFETY: as above, and this is the only borrow.
        unsafe { std::slice::from_raw_parts_mut(pointer, bytes) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(allocation) = self.allocation.take() {
            self.device.free(allocation);
        }
    }
}
