//! The lists of an index in host memory, where kernels read them: the pages of its mapped file, registered with the
//! driver. And its static ranks, if they are too large for device memory.
//!
//! Registering pins pages, and takes a quarter of a second for four gigabytes. So it is done in steps while queries are
//! answered, and only up to a limit; lists that are not registered are uploaded with the batches that need them.

use super::PADDING;
use lanner_gpu::device::{Address, PAGE};
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::{Gpu, HostBytes, Registered};
use lanner_index::format::segment::Section;
use lanner_index::open::Index;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Bytes that one step registers: about 3 ms.
const STEP: usize = 64 << 20;

/// The file of an index.
struct File(Arc<Index>);

impl HostBytes for File {
    fn bytes(&self) -> &[u8] {
        self.0.segment().file()
    }
}

/// The lists of an index in host memory.
pub struct HostLists {
    file: Arc<dyn HostBytes>,
    /// The pages that are not registered yet, in steps; those with ranks come first.
    left: VecDeque<Range<usize>>,
    /// The pages that are registered, in order; pages that follow each other are one range.
    registered: Vec<Range<usize>>,
    /// The bytes of all pages with lists, and with ranks.
    wanted: u64,
    /// The address of the first byte of the file.
    base: Address,
    _handles: Vec<Registered>,
}

impl HostLists {
    /// Nothing is registered yet; it will be up to `most` bytes. `reads_ranks`: whether kernels read the ranks here.
    pub fn new(index: &Arc<Index>, most: usize, reads_ranks: bool) -> HostLists {
        let segment = index.segment();
        let file_end = segment.file().len().next_multiple_of(PAGE);
        let pages = |section: Section| {
            let range = segment.section_range(section);
            let end = (range.end + PADDING).next_multiple_of(PAGE).min(file_end);
            if range.is_empty() { 0..0 } else { range.start / PAGE * PAGE..end }
        };
        let ranks = if reads_ranks { pages(Section::Ranks) } else { 0..0 };
        let mut lists = [Section::LongLists, Section::ShortLists].map(pages);
        lists.sort_by_key(|range| range.start);
        let mut left = most / PAGE * PAGE;
        let mut steps = VecDeque::new();
        let (mut before, mut wanted) = (0, 0);
        let mut add = |mut pages: Range<usize>| {
            wanted += pages.len() as u64;
            while !pages.is_empty() && left > 0 {
                let bytes = STEP.min(pages.len()).min(left);
                steps.push_back(pages.start..pages.start + bytes);
                (pages.start, left) = (pages.start + bytes, left - bytes);
            }
        };
        add(ranks.clone());
        for range in lists {
            // Sections may share a page.
            let range = range.start.max(before)..range.end;
            before = range.end.max(before);
            add(range.start..range.end.min(ranks.start));
            add(range.start.max(ranks.end)..range.end);
        }
        let file: Arc<dyn HostBytes> = Arc::new(File(Arc::clone(index)));
        HostLists { file, left: steps, registered: Vec::new(), wanted, base: Address::NULL, _handles: Vec::new() }
    }

    /// Registers some more pages; returns whether there were any. Where the driver refuses, the rest is not registered.
    pub fn step(&mut self, gpu: &Gpu) -> Result<bool, GpuError> {
        let Some(pages) = self.left.pop_front() else {
            return Ok(false);
        };
        // The last page has bytes beyond the file, which are mapped, too.
        let range = pages.start..pages.end.min(self.file.bytes().len());
        match gpu.register(&self.file, range) {
            Ok(handle) => {
                let base = Address(handle.address().0.wrapping_sub(pages.start as u64));
                if self.registered.is_empty() {
                    self.base = base;
                }
                // Lists lie across steps, so that all must have the same base: the driver maps memory where it is.
                if base != self.base {
                    self.left.clear();
                    return Ok(true);
                }
                self.registered.push(pages);
                self.registered.sort_by_key(|range| range.start);
                self.registered.dedup_by(|next, before| {
                    let follows = next.start == before.end;
                    if follows {
                        before.end = next.end;
                    }
                    follows
                });
                self._handles.push(handle);
            }
            Err(error @ GpuError::Lost { .. }) => return Err(error),
            Err(_) => self.left.clear(),
        }
        Ok(true)
    }

    /// Whether all lists can be read, but for some at the end of the file.
    pub fn has_all(&self) -> bool {
        self.left.is_empty() && self.bytes() == self.wanted
    }

    /// Whether no step is left.
    pub fn is_done(&self) -> bool {
        self.left.is_empty()
    }

    /// Registers pages until some bytes of the file can be read, or cannot be; returns their address if they can.
    pub fn read_at_once(&mut self, gpu: &Gpu, bytes: Range<usize>) -> Result<Option<Address>, GpuError> {
        let is_there = |pages: &Range<usize>| pages.start < bytes.end && bytes.start < pages.end;
        while self.left.front().is_some_and(is_there) {
            self.step(gpu)?;
        }
        Ok(self.bytes_at(bytes))
    }

    /// The address of bytes of the file, if kernels can read them.
    pub fn bytes_at(&self, bytes: Range<usize>) -> Option<Address> {
        let is_inside = |pages: &Range<usize>| pages.start <= bytes.start && bytes.end <= pages.end;
        self.registered.iter().any(is_inside).then(|| Address(self.base.0.wrapping_add(bytes.start as u64)))
    }

    /// The address of a list that begins at a byte of the file, if kernels can read it, with what decoders of damaged
    /// blocks may read behind it.
    pub fn list(&self, bytes: Range<usize>) -> Option<Address> {
        self.bytes_at(bytes.start..bytes.end + PADDING)
    }

    /// The bytes that are registered.
    pub fn bytes(&self) -> u64 {
        self.registered.iter().map(|pages| pages.len() as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanner_gpu::faulty::{Fault, Faulty};
    use lanner_gpu::simulator::Simulator;
    use lanner_index::build::{BuildOptions, Quiet, build};
    use lanner_index::corpus::{Corpus, CorpusOptions};

    fn index() -> (tempfile::TempDir, Arc<Index>) {
        let folder = tempfile::tempdir().unwrap();
        let ranks = folder.path().join("ranks");
        std::fs::write(&ranks, (0..5000).map(|number| format!("{number}\t{number}\n")).collect::<String>()).unwrap();
        let text = |number: usize| format!("falcon heron{} {}", number % 7, "water ".repeat(number % 5));
        let documents = (0..5000).map(|number| (number.to_string(), String::new(), text(number)));
        let corpus = Corpus::from_documents(documents.collect::<Vec<_>>(), CorpusOptions::default()).unwrap();
        let at = folder.path().join("index");
        build(&at, corpus, &BuildOptions { ranks: Some(ranks), ..BuildOptions::default() }, &Quiet).unwrap();
        let index = Arc::new(Index::open(&at).unwrap());
        (folder, index)
    }

    fn gpu() -> Gpu {
        Gpu::new(Arc::new(Simulator::new(1)), 1 << 30)
    }

    #[test]
    fn lists_are_read_where_the_file_is_mapped() {
        let (_folder, index) = index();
        let mut host = HostLists::new(&index, usize::MAX, false);
        let range = index.segment().section_range(Section::LongLists);
        assert_eq!(host.list(range.start..range.start + 16), None);
        while host.step(&gpu()).unwrap() {}
        let first = index.segment().section(Section::LongLists).as_ptr() as u64;
        assert_eq!(host.list(range.start..range.start + 16), Some(Address(first)));
        let end = index.segment().file().len();
        assert_eq!(host.list(end - 16..end), None, "not where a decoder could read beyond the pages");
    }

    /// Ranks and lists, wherever their sections lie and whether or not they share pages.
    #[test]
    fn ranks_are_read_at_once_and_lists_as_before() {
        let (_folder, index) = index();
        let mut host = HostLists::new(&index, usize::MAX, true);
        let segment = index.segment();
        let ranks = segment.section_range(Section::Ranks);
        assert_eq!(host.bytes_at(ranks.clone()), None);
        let address = |section: Section| Some(Address(segment.section(section).as_ptr() as u64));
        assert_eq!(host.read_at_once(&gpu(), ranks.clone()).unwrap(), address(Section::Ranks));
        assert_eq!(host.has_all(), host.is_done());
        while host.step(&gpu()).unwrap() {}
        for section in [Section::LongLists, Section::ShortLists] {
            let range = segment.section_range(section);
            assert!(range.is_empty() || host.bytes_at(range) == address(section));
        }
        assert!(host.has_all() && host.bytes_at(ranks).is_some());
        let mut nothing = HostLists::new(&index, 0, true);
        assert_eq!(nothing.read_at_once(&gpu(), segment.section_range(Section::Ranks)).unwrap(), None);
    }

    #[test]
    fn no_more_is_registered_than_is_allowed_and_what_the_driver_refuses_is_not() {
        let (_folder, index) = index();
        let mut host = HostLists::new(&index, 3 * PAGE + 17, false);
        while host.step(&gpu()).unwrap() {}
        assert_eq!(host.bytes(), 3 * PAGE as u64);
        let refusing = |fault| Gpu::new(Arc::new(Faulty::new(Arc::new(Simulator::new(1)), fault, 0)), 1 << 30);
        let mut host = HostLists::new(&index, usize::MAX, false);
        assert!(host.step(&refusing(Fault::Once)).unwrap());
        assert_eq!((host.bytes(), host.is_done()), (0, true));
        assert!(HostLists::new(&index, usize::MAX, false).step(&refusing(Fault::Lost)).is_err());
    }
}
