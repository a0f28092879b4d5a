//! Buffers on both sides of the bus that grow on demand and are reused from batch to batch.

use lanner_gpu::device::Address;
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::{Gpu, Memory, Pinned};

/// Buffers grow in multiples of this many bytes, so that few batches make them grow.
const STEP: usize = 64 << 10;

/// A pinned buffer of the host and its twin on the device.
#[derive(Default)]
pub struct Buffers {
    host: Option<Pinned>,
    device: Option<Memory>,
}

impl Buffers {
    /// Makes both sides hold at least this many bytes; their contents are lost if they grow.
    pub fn grow(&mut self, gpu: &Gpu, bytes: usize) -> Result<(), GpuError> {
        grow(gpu, &mut self.device, bytes)?;
        self.grow_host(gpu, bytes)
    }

    /// How much device memory [`Buffers::grow`] would take.
    pub fn growth(&self, bytes: usize) -> u64 {
        growth(&self.device, bytes)
    }

    /// Makes the host's side hold at least this many bytes.
    pub fn grow_host(&mut self, gpu: &Gpu, bytes: usize) -> Result<(), GpuError> {
        if self.host.as_ref().is_none_or(|host| host.len() < bytes) {
            // Freed before the larger one is allocated.
            self.host = None;
            self.host = Some(gpu.pin(bytes.next_multiple_of(STEP))?);
        }
        Ok(())
    }

    /// The address of the device's side.
    pub fn address(&self) -> Address {
        self.device.as_ref().map_or(Address::NULL, Memory::address)
    }

    /// The address of the host's side.
    pub fn host_address(&self) -> Address {
        self.host.as_ref().map_or(Address::NULL, Pinned::address)
    }

    /// The host's side, which must have been grown.
    pub fn host(&mut self) -> &mut Pinned {
        self.host.as_mut().expect("a buffer is grown before it is used")
    }
}

/// Makes a buffer hold at least this many bytes; its contents are lost if it grows.
pub fn grow(gpu: &Gpu, memory: &mut Option<Memory>, bytes: usize) -> Result<(), GpuError> {
    if memory.as_ref().is_none_or(|memory| memory.bytes() < bytes) {
        *memory = None;
        *memory = Some(gpu.allocate(bytes.next_multiple_of(STEP))?);
    }
    Ok(())
}

/// How much device memory [`grow`] would take, beyond what it frees first.
pub fn growth(memory: &Option<Memory>, bytes: usize) -> u64 {
    let has = memory.as_ref().map_or(0, Memory::bytes);
    if has < bytes { (bytes.next_multiple_of(STEP) - has) as u64 } else { 0 }
}

/// The address of a buffer; null before it is first grown.
pub fn address(memory: &Option<Memory>) -> Address {
    memory.as_ref().map_or(Address::NULL, Memory::address)
}
