//! All lists of an index in device memory, which they reach one after the other while queries are answered.

use super::PADDING;
use super::documents::upload;
use lanner_gpu::device::Address;
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::{Gpu, Memory};
use lanner_index::format::segment::Section;
use lanner_index::open::{Index, ListSpan};

/// Bytes that one step uploads: about a millisecond.
const STEP: usize = 16 << 20;

/// Both sections of lists, byte by byte as in the file.
pub struct Whole {
    /// Long and short lists.
    memory: [Memory; 2],
    /// How many bytes of each are there.
    loaded: [usize; 2],
    bytes: [usize; 2],
}

impl Whole {
    /// The bytes of the lists of an index.
    pub fn list_bytes(index: &Index) -> u64 {
        sections(index).iter().map(|section| section.len() as u64).sum()
    }

    /// The bytes of device memory that it takes.
    pub fn needed(index: &Index) -> u64 {
        Whole::list_bytes(index) + 2 * PADDING as u64
    }

    /// Allocates memory; nothing is there yet.
    pub fn new(gpu: &Gpu, index: &Index) -> Result<Whole, GpuError> {
        let bytes = sections(index).map(<[u8]>::len);
        let memory = [gpu.allocate(bytes[0] + PADDING)?, gpu.allocate(bytes[1] + PADDING)?];
        Ok(Whole { memory, loaded: [0; 2], bytes })
    }

    /// The device memory that it takes.
    pub fn bytes(&self) -> u64 {
        self.memory.iter().map(|memory| memory.bytes() as u64).sum()
    }

    /// Uploads some more bytes, and waits for them; returns whether there were any left.
    pub fn step(&mut self, gpu: &Gpu, index: &Index) -> Result<bool, GpuError> {
        let Some(section) = (0..2).find(|&section| self.loaded[section] < self.bytes[section]) else {
            return Ok(false);
        };
        let start = self.loaded[section];
        let end = self.bytes[section].min(start + STEP);
        let padding = if end == self.bytes[section] { PADDING } else { 0 };
        upload(gpu, &sections(index)[section][start..end], self.memory[section].address().plus(start), padding)?;
        self.loaded[section] = end;
        Ok(true)
    }

    /// Whether everything is there.
    pub fn is_loaded(&self) -> bool {
        self.loaded == self.bytes
    }

    /// How many bytes of long and of short lists are there.
    pub fn loaded_bytes(&self) -> [usize; 2] {
        self.loaded
    }

    /// The bytes that are there.
    pub fn loaded(&self) -> u64 {
        self.loaded.iter().sum::<usize>() as u64
    }

    /// The address of a list, if it is there.
    pub fn list(&self, span: ListSpan) -> Option<Address> {
        let section = usize::from(!span.is_long);
        // Decoders of damaged blocks may read what follows, which is memory of this device, whatever it has.
        (span.end <= self.loaded[section]).then(|| self.memory[section].address().plus(span.start))
    }
}

fn sections(index: &Index) -> [&[u8]; 2] {
    [Section::LongLists, Section::ShortLists].map(|section| index.segment().section(section))
}
