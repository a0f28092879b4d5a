//! The resident data of an index on a device: lengths and norms always, the lists if they fit.

use lanner_gpu::device::{Address, Command, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::{Gpu, Memory};
use lanner_index::format::segment::Section;
use lanner_index::open::{Index, ListSpan};

/// Decoders may read up to this many bytes behind a list: three columns of a damaged block, up to 1,024 bytes each.
pub const PADDING: usize = 4096;

/// Sections of an index on a device, byte by byte as in the file.
#[derive(Debug)]
pub struct Resident {
    /// Long and short lists; `None` if batches upload their lists.
    lists: Option<[Memory; 2]>,
    length_codes: Memory,
    norms: Memory,
}

impl Resident {
    /// Uploads the resident data, including the lists if they fit in the budget with `reserve` bytes to spare.
    pub fn upload(gpu: &Gpu, index: &Index, reserve: u64) -> Result<Resident, GpuError> {
        let norms: Vec<u8> = index.norms().table().iter().flat_map(|norm| norm.to_le_bytes()).collect();
        let norms = upload(gpu, &norms)?;
        let length_codes = upload(gpu, index.length_codes())?;
        let sections = [Section::LongLists, Section::ShortLists].map(|section| index.segment().section(section));
        let needed = sections.iter().map(|section| (section.len() + PADDING) as u64).sum::<u64>();
        let fits = needed.saturating_add(reserve) <= gpu.left();
        let lists = if fits { Some([upload(gpu, sections[0])?, upload(gpu, sections[1])?]) } else { None };
        Ok(Resident { lists, length_codes, norms })
    }

    /// Whether the lists are resident.
    pub fn has_lists(&self) -> bool {
        self.lists.is_some()
    }

    /// The address of a list; `None` if it is not resident.
    pub fn address(&self, span: ListSpan) -> Option<Address> {
        let [long, short] = self.lists.as_ref()?;
        Some(if span.is_long { long } else { short }.address().plus(span.start))
    }

    /// The length codes, one for each document.
    pub fn length_codes(&self) -> Address {
        self.length_codes.address()
    }

    /// The norms of the length codes.
    pub fn norms(&self) -> Address {
        self.norms.address()
    }
}

/// Uploads bytes, followed by zeros.
fn upload(gpu: &Gpu, bytes: &[u8]) -> Result<Memory, GpuError> {
    let memory = gpu.allocate(bytes.len() + PADDING)?;
    let written = gpu.submit(Stream(0), Command::Write { from: bytes, to: memory.address() });
    let cleared = gpu.submit(Stream(0), Command::Clear { at: memory.address().plus(bytes.len()), bytes: PADDING });
    // The memory must stay until the stream has stopped using it, even if a command was refused or waiting failed: the
    // device may go on, for other indexes.
    let waited = gpu.wait(Stream(0)).inspect_err(|_| _ = gpu.wait(Stream(0)));
    written.and(cleared).and(waited)?;
    Ok(memory)
}
