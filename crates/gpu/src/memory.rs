//! Memory of a device that goes back by itself, within a budget.

use crate::device::{Address, Command, Device, Limits, Piece, Shape, Side, Stream};
use crate::error::GpuError;
use crate::kernel::{Argument, TypedKernel};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// How often memory is looked at before the device is asked, which takes a microsecond.
const LOOKS: u32 = 256;

/// A device with a budget of its memory.
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
    /// Uses at most so many bytes of a device's memory.
    pub fn new(device: Arc<dyn Device>, budget: u64) -> Gpu {
        Gpu { device, budget: Arc::new(Budget { bytes: budget, used: AtomicU64::new(0) }) }
    }

    /// What the device has.
    pub fn limits(&self) -> &Limits {
        self.device.limits()
    }

    /// The bytes that may still be taken.
    pub fn left(&self) -> u64 {
        self.budget.bytes.saturating_sub(self.budget.used.load(Ordering::Relaxed))
    }

    /// Takes memory of the device.
    pub fn allocate(&self, bytes: usize) -> Result<Memory, GpuError> {
        let (asked, budget) = (bytes as u64, self.budget.bytes);
        let take = |used: u64| used.checked_add(asked).filter(|&used| used <= budget);
        self.budget
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .map_err(|used| GpuError::OverBudget { asked, left: budget.saturating_sub(used), budget })?;
        match self.device.allocate(Side::Device, bytes) {
            Ok(piece) => Ok(Memory { gpu: self.clone(), piece: Some(piece) }),
            Err(error) => {
                self.budget.used.fetch_sub(asked, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    /// Takes pinned memory of the host, which no budget counts.
    pub fn pin(&self, bytes: usize) -> Result<Pinned, GpuError> {
        let piece = self.device.allocate(Side::Host, bytes)?;
        Ok(Pinned { device: Arc::clone(&self.device), piece: Some(piece) })
    }

    /// Puts a command behind what the stream has to do.
    pub fn submit(&self, stream: Stream, command: Command<'_>) -> Result<(), GpuError> {
        self.device.submit(stream, &[command])
    }

    /// Puts commands behind what the stream has to do, together; see [`Device::submit`].
    pub fn submit_all(&self, stream: Stream, commands: &[Command<'_>]) -> Result<(), GpuError> {
        self.device.submit(stream, commands)
    }

    /// Starts a kernel with its argument, behind what the stream has to do.
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

    /// Waits until a kernel of the stream has written another number than `before` to the first word of pinned memory, or
    /// the stream has done all it had to. That is known sooner than what [`Gpu::wait`] says; an error of the stream may
    /// show with the next call only.
    pub fn wait_for(&self, stream: Stream, pinned: &Pinned, before: u32) -> Result<(), GpuError> {
        loop {
            for _ in 0..LOOKS {
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

/// Memory of a device.
#[derive(Debug)]
pub struct Memory {
    gpu: Gpu,
    /// There until it is given back.
    piece: Option<Piece>,
}

impl Memory {
    /// Where it lies.
    pub fn address(&self) -> Address {
        self.piece.as_ref().map_or(Address::NULL, |piece| piece.address)
    }

    /// How many bytes.
    pub fn bytes(&self) -> usize {
        self.piece.as_ref().map_or(0, |piece| piece.bytes)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(piece) = self.piece.take() {
            self.gpu.budget.used.fetch_sub(piece.bytes as u64, Ordering::Relaxed);
            self.gpu.device.free(piece);
        }
    }
}

/// Pinned memory of the host: bytes to the host, an address to commands and kernels.
///
/// A stream that copies from or to it must be waited for before it is changed or read: all of it by [`Gpu::wait`], what a
/// kernel wrote before the first word by [`Gpu::wait_for`].
#[derive(Debug)]
pub struct Pinned {
    device: Arc<dyn Device>,
    piece: Option<Piece>,
}

impl Pinned {
    /// Where kernels and commands find it.
    pub fn address(&self) -> Address {
        self.piece.as_ref().map_or(Address::NULL, |piece| piece.address)
    }

    /// The first word, which a kernel may be writing; 0 where there is none.
    #[allow(unsafe_code)]
    fn first_word(&self) -> u32 {
        match self.parts() {
            // SAFETY: the device gave at least these bytes there, aligned for any number. What kernels write meanwhile is
            // one word at a time, and an atomic load takes that for what it is.
            (pointer, 4..) => unsafe { AtomicU32::from_ptr(pointer.cast()) }.load(Ordering::Acquire),
            _ => 0,
        }
    }

    fn parts(&self) -> (*mut u8, usize) {
        let host = self.piece.as_ref().and_then(|piece| Some((piece.host?.as_ptr(), piece.bytes)));
        host.unwrap_or((std::ptr::NonNull::dangling().as_ptr(), 0))
    }
}

#[allow(unsafe_code)]
impl Deref for Pinned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let (pointer, bytes) = self.parts();
        // SAFETY: the device gave so many bytes there, initialized, and takes them back when this is dropped.
        unsafe { std::slice::from_raw_parts(pointer, bytes) }
    }
}

#[allow(unsafe_code)]
impl DerefMut for Pinned {
    fn deref_mut(&mut self) -> &mut [u8] {
        let (pointer, bytes) = self.parts();
        // SAFETY: as above, and the borrow is the only one.
        unsafe { std::slice::from_raw_parts_mut(pointer, bytes) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(piece) = self.piece.take() {
            self.device.free(piece);
        }
    }
}
