//! A simulated device: kernels run on the CPU, their threads interleaved in an order drawn from a seed.
//!
//! A stream executes nothing until it is waited for, so that a missing wait shows. Memory has garbage until it is
//! written. `cuda/simulator.h` says what the simulator checks. It is for tests and for learning.

use crate::device::{Address, Allocation, Command, Device, Properties, STREAMS, Shape, Side, Stream};
use crate::error::GpuError;
use crate::kernel::{Kernel, Simulate};
use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Alignment of allocations, as the driver's.
const ALIGNMENT: usize = 256;
/// The bytes of memory that was never written.
const GARBAGE: u8 = 0xA5;

/// Runs kernels on the CPU.
#[derive(Debug)]
pub struct Simulator {
    properties: Properties,
    seed: AtomicU64,
    streams: [Mutex<Commands>; STREAMS],
    /// Set once a kernel failed: then the device is lost, as a driver's.
    lost: Mutex<Option<GpuError>>,
}

/// The commands of a stream that were not executed yet, and the times of the marks that were.
#[derive(Debug, Default)]
struct Commands {
    queue: Vec<Owned>,
    marks: Vec<Instant>,
}

/// A command in a stream, with all that it needs.
#[derive(Debug)]
enum Owned {
    Write { from: Vec<u8>, to: Address },
    Copy { from: Address, to: Address, bytes: usize },
    Clear { at: Address, bytes: usize },
    Launch { name: &'static str, simulate: Simulate, shape: Shape, argument: Vec<u64> },
    Mark,
}

impl Simulator {
    /// Draws the order of threads from a seed, which every launch increments.
    pub fn new(seed: u64) -> Simulator {
        let name = "simulator".to_owned();
        let (memory, multiprocessors, shared) = (1 << 40, 2, 227 << 10);
        Simulator {
            properties: Properties { name, memory, free: memory, multiprocessors, shared, is_simulated: true },
            seed: AtomicU64::new(seed),
            streams: Default::default(),
            lost: Mutex::default(),
        }
    }

    fn check(&self) -> Result<(), GpuError> {
        match &*self.lost.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    fn stream(&self, stream: Stream) -> Result<MutexGuard<'_, Commands>, GpuError> {
        self.check()?;
        let reason = || format!("stream {} does not exist; there are {STREAMS}", stream.0);
        let stream =
            self.streams.get(stream.0).ok_or_else(|| GpuError::Failed { at: "finding a stream", reason: reason() })?;
        Ok(stream.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Executes the commands of a stream.
    fn execute(&self, stream: Stream) -> Result<MutexGuard<'_, Commands>, GpuError> {
        let mut waiting = self.stream(stream)?;
        for command in std::mem::take(&mut waiting.queue) {
            if let Err(error) = self.run(&command) {
                *self.lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.clone());
                return Err(error);
            }
            if let Owned::Mark = command {
                waiting.marks.push(Instant::now());
            }
        }
        Ok(waiting)
    }

    fn layout(bytes: usize) -> Result<Layout, GpuError> {
        let asked = bytes as u64;
        Layout::from_size_align(bytes.max(1), ALIGNMENT)
            .map_err(|error| GpuError::OutOfMemory { asked, reason: error.to_string() })
    }

    /// Copies a command with all that it needs, if it can be executed; `None` if there is nothing to do.
    fn owned(&self, command: &Command<'_>) -> Result<Option<Owned>, GpuError> {
        Ok(Some(match *command {
            Command::Write { from, to } => Owned::Write { from: from.to_vec(), to },
            Command::Copy { from, to, bytes } => Owned::Copy { from, to, bytes },
            Command::Clear { at, bytes } => Owned::Clear { at, bytes },
            Command::Launch { kernel, shape, argument } => {
                let name = kernel.name;
                let is_too_large =
                    shape.shared > self.properties.shared || shape.grid == 0 || !(1..=1024).contains(&shape.block);
                if is_too_large {
                    let reason = format!("the simulator cannot run {shape:?}");
                    return Err(GpuError::Launch { name: name.to_owned(), reason });
                }
                let simulate = simulation_of(kernel)?;
                // As words, so that the struct is aligned.
                let words = argument.chunks(8).map(|chunk| {
                    let mut word = [0; 8];
                    word[..chunk.len()].copy_from_slice(chunk);
                    u64::from_ne_bytes(word)
                });
                Owned::Launch { name, simulate, shape, argument: words.collect() }
            }
            // Its simulation is part of this program.
            Command::Load { kernel } => return simulation_of(kernel).map(|_| None),
            Command::Mark => Owned::Mark,
        }))
    }

    #[allow(unsafe_code)]
    fn run(&self, command: &Owned) -> Result<(), GpuError> {
        match command {
            // SAFETY of all three: addresses are those that `allocate` returned, which callers keep alive until they
            // have waited; AddressSanitizer checks that commands stay inside their allocations.
            Owned::Write { from, to } => unsafe {
                std::ptr::copy_nonoverlapping(from.as_ptr(), to.0 as *mut u8, from.len());
            },
            Owned::Copy { from, to, bytes } => unsafe {
                std::ptr::copy(from.0 as *const u8, to.0 as *mut u8, *bytes);
            },
            Owned::Clear { at, bytes } => unsafe { std::ptr::write_bytes(at.0 as *mut u8, 0, *bytes) },
            Owned::Launch { name, simulate, shape, argument } => {
                let seed = self.seed.fetch_add(1, Ordering::Relaxed);
                let live = 1 + (seed % 4) as u32;
                let argument = argument.as_ptr().cast::<c_void>();
                // SAFETY: the argument is the kernel's struct, as `kernels!` declares; the text lives until the next
                // run.
                let text =
                    unsafe { CStr::from_ptr(simulate(shape.grid, shape.block, shape.shared, argument, seed, live)) };
                if !text.is_empty() {
                    let reason = format!("{name}, seed {seed}: {}", text.to_string_lossy());
                    return Err(GpuError::Lost { reason });
                }
            }
            Owned::Mark => {}
        }
        Ok(())
    }
}

/// The function that simulates a kernel.
fn simulation_of(kernel: &Kernel) -> Result<Simulate, GpuError> {
    let missing =
        || GpuError::Launch { name: kernel.name.to_owned(), reason: "this build has no simulator".to_owned() };
    kernel.simulate.ok_or_else(missing)
}

impl Device for Simulator {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    #[allow(unsafe_code)]
    fn allocate(&self, side: Side, bytes: usize) -> Result<Allocation, GpuError> {
        self.check()?;
        let layout = Simulator::layout(bytes)?;
        // SAFETY: the layout has at least a byte.
        let Some(pointer) = NonNull::new(unsafe { alloc(layout) }) else {
            return Err(GpuError::OutOfMemory { asked: bytes as u64, reason: "the host is out of memory".to_owned() });
        };
        // SAFETY: just allocated, of that size.
        unsafe { pointer.as_ptr().write_bytes(GARBAGE, bytes) };
        let host = (side == Side::Host).then_some(pointer);
        Ok(Allocation { address: Address(pointer.as_ptr() as u64), host, bytes })
    }

    #[allow(unsafe_code)]
    fn free(&self, allocation: Allocation) {
        if let Ok(layout) = Simulator::layout(allocation.bytes) {
            // SAFETY: `allocate` returned the allocation with the same layout, and its owner frees it once.
            unsafe { dealloc(allocation.address.0 as *mut u8, layout) };
        }
    }

    /// Kernels run in this process and reach all its memory.
    fn register(&self, host: NonNull<u8>, _: usize) -> Result<Address, GpuError> {
        self.check()?;
        Ok(Address(host.as_ptr() as u64))
    }

    fn unregister(&self, _: NonNull<u8>) {}

    fn submit(&self, stream: Stream, commands: &[Command<'_>]) -> Result<(), GpuError> {
        let mut waiting = self.stream(stream)?;
        for command in commands {
            waiting.queue.extend(self.owned(command)?);
        }
        Ok(())
    }

    fn wait(&self, stream: Stream) -> Result<Vec<Duration>, GpuError> {
        let marks = std::mem::take(&mut self.execute(stream)?.marks);
        Ok(marks.windows(2).map(|pair| pair[1] - pair[0]).collect())
    }

    /// Executes the commands, which otherwise nobody would.
    fn is_idle(&self, stream: Stream) -> Result<bool, GpuError> {
        self.execute(stream).map(|_| true)
    }
}
