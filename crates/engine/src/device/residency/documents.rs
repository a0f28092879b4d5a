//! What kernels read of documents, beside lists: length codes, norms, static ranks.

use super::PADDING;
use super::host::HostLists;
use super::transfer::STREAM;
use lanner_gpu::device::{Address, Command};
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::{Gpu, Memory};
use lanner_index::format::segment::Section;
use lanner_index::open::Index;

/// Length codes, norms and static ranks of an index.
pub struct DocumentData {
    length_codes: Memory,
    norms: Memory,
    ranks: Ranks,
}

/// Where static ranks are.
enum Ranks {
    /// The index has none.
    Absent,
    Resident(Memory),
    /// In host memory that kernels can read and that somebody else keeps registered.
    Host(Address),
    /// Where kernels cannot read them.
    Unreadable,
}

impl DocumentData {
    /// Uploads length codes and norms. Kernels cannot read static ranks yet.
    pub fn open(gpu: &Gpu, index: &Index) -> Result<DocumentData, GpuError> {
        let norms: Vec<u8> = index.norms().table().iter().flat_map(|norm| norm.to_le_bytes()).collect();
        let norms = uploaded(gpu, &norms)?;
        let length_codes = uploaded(gpu, index.length_codes())?;
        let has_ranks = !index.segment().section(Section::Ranks).is_empty();
        let ranks = if has_ranks { Ranks::Unreadable } else { Ranks::Absent };
        Ok(DocumentData { length_codes, norms, ranks })
    }

    /// The device memory that they take.
    pub fn bytes(&self) -> u64 {
        let ranks = if let Ranks::Resident(memory) = &self.ranks { memory.bytes() } else { 0 };
        (self.length_codes.bytes() + self.norms.bytes() + ranks) as u64
    }

    /// Uploads static ranks, if there are any and they take at most this much device memory.
    pub fn upload_ranks(&mut self, gpu: &Gpu, index: &Index, most: u64) -> Result<(), GpuError> {
        let ranks = index.segment().section(Section::Ranks);
        if self.lacks_ranks() && (ranks.len() + PADDING) as u64 <= most {
            self.ranks = Ranks::Resident(uploaded(gpu, ranks)?);
        }
        Ok(())
    }

    /// Whether kernels cannot read the static ranks of the index.
    pub fn lacks_ranks(&self) -> bool {
        matches!(self.ranks, Ranks::Unreadable)
    }

    /// Makes kernels read static ranks in host memory, if they are not resident. At once, so that it is known from here on
    /// who adds them: 3 ms for each 16 million documents.
    pub fn read_ranks(&mut self, gpu: &Gpu, index: &Index, host: &mut HostLists) -> Result<(), GpuError> {
        if self.lacks_ranks()
            && let Some(address) = host.read_at_once(gpu, index.segment().section_range(Section::Ranks))?
        {
            self.ranks = Ranks::Host(address);
        }
        Ok(())
    }

    /// The length codes, one for each document.
    pub fn length_codes(&self) -> Address {
        self.length_codes.address()
    }

    /// The norms of the length codes.
    pub fn norms(&self) -> Address {
        self.norms.address()
    }

    /// The static ranks, one for each document; null if there are none, or kernels cannot read them.
    pub fn ranks(&self) -> Address {
        match &self.ranks {
            Ranks::Resident(memory) => memory.address(),
            Ranks::Host(address) => *address,
            Ranks::Absent | Ranks::Unreadable => Address::NULL,
        }
    }
}

/// Uploads bytes to memory of their own, followed by zeros.
fn uploaded(gpu: &Gpu, bytes: &[u8]) -> Result<Memory, GpuError> {
    let memory = gpu.allocate(bytes.len() + PADDING)?;
    upload(gpu, bytes, memory.address(), PADDING)?;
    Ok(memory)
}

/// Uploads bytes, followed by this many zeros, and waits for them.
pub fn upload(gpu: &Gpu, bytes: &[u8], to: Address, padding: usize) -> Result<(), GpuError> {
    let written = gpu.submit(STREAM, Command::Write { from: bytes, to });
    let cleared = gpu.submit(STREAM, Command::Clear { at: to.plus(bytes.len()), bytes: padding });
    // Even if a command was refused: the memory is freed then.
    let finished = gpu.finish(STREAM);
    written.and(cleared).and(finished).map(drop)
}
