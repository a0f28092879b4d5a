//! The lists of an index in host memory, where kernels read them: the pages of its mapped file, registered with the
//! driver. And its static ranks, if they are too large for device memory.
//!
//! Registering pins pages, and takes a quarter of a second for four gigabytes. So it is done in steps while queries are
//! answered, and only up to a limit for all indexes of a device; lists that are not registered are uploaded with the batches
//! that need them. What an index leaves that is closed is for the others.

use super::PADDING;
use lanner_gpu::device::{Address, PAGE};
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::{Gpu, HostBytes, Registered};
use lanner_index::format::segment::Section;
use lanner_index::open::Index;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that one step registers: about 3 ms.
const STEP: usize = 64 << 20;

/// The file of an index.
struct File(Arc<Index>);

impl HostBytes for File {
    fn bytes(&self) -> &[u8] {
        self.0.segment().file()
    }
}

/// How many bytes of host memory may still be registered for a device.
#[derive(Debug)]
pub struct Registrable(AtomicUsize);

impl Registrable {
    /// As many whole pages as fit in some bytes.
    pub fn new(bytes: usize) -> Registrable {
        Registrable(AtomicUsize::new(bytes / PAGE * PAGE))
    }

    fn is_used_up(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Takes up to `most` bytes; returns how many.
    fn take(&self, most: usize) -> usize {
        let left = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left - left.min(most)));
        left.unwrap_or_else(|left| left).min(most)
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The lists of an index in host memory.
pub struct HostLists {
    file: Arc<dyn HostBytes>,
    registrable: Arc<Registrable>,
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
    /// Nothing is registered yet. `reads_ranks`: whether kernels read the ranks here.
    pub fn new(index: &Arc<Index>, registrable: &Arc<Registrable>, reads_ranks: bool) -> HostLists {
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
        let mut steps = VecDeque::new();
        let (mut before, mut wanted) = (0, 0);
        let mut add = |mut pages: Range<usize>| {
            wanted += pages.len() as u64;
            while !pages.is_empty() {
                let end = pages.end.min(pages.start + STEP);
                steps.push_back(pages.start..end);
                pages.start = end;
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
        let (registrable, left, base) = (Arc::clone(registrable), steps, Address::NULL);
        HostLists { file, registrable, left, registered: Vec::new(), wanted, base, _handles: Vec::new() }
    }

    /// Static ranks alone.
    pub fn of_ranks(index: &Arc<Index>, registrable: &Arc<Registrable>) -> HostLists {
        let mut ranks = HostLists::new(index, registrable, true);
        let range = index.segment().section_range(Section::Ranks);
        ranks.left.retain(|pages| pages.start < range.end && range.start < pages.end);
        ranks
    }

    /// Registers some more pages; returns whether there were any. Where the driver refuses, the rest is not registered.
    pub fn step(&mut self, gpu: &Gpu) -> Result<bool, GpuError> {
        let granted = self.left.front().map_or(0, |pages| self.registrable.take(pages.len()));
        let Some(next) = self.left.front_mut().filter(|_| granted > 0) else {
            return Ok(false);
        };
        let pages = next.start..next.start + granted;
        match pages.end == next.end {
            true => drop(self.left.pop_front()),
            false => next.start = pages.end,
        }
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
                    self.refuse(granted);
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
            Err(_) => self.refuse(granted),
        }
        Ok(true)
    }

    /// Nothing else is registered; these bytes were not.
    fn refuse(&mut self, granted: usize) {
        self.left.clear();
        self.registrable.give_back(granted);
    }

    /// Whether all lists can be read, but for some at the end of the file.
    pub fn has_all(&self) -> bool {
        self.left.is_empty() && self.bytes() == self.wanted
    }

    /// Whether no step is left, or none until others are registered no more.
    pub fn is_done(&self) -> bool {
        self.left.is_empty() || self.registrable.is_used_up()
    }

    /// Registers pages until some bytes of the file can be read, or cannot be; returns their address if they can.
    pub fn read_at_once(&mut self, gpu: &Gpu, bytes: Range<usize>) -> Result<Option<Address>, GpuError> {
        let is_there = |pages: &Range<usize>| pages.start < bytes.end && bytes.start < pages.end;
        while self.left.front().is_some_and(is_there) && self.step(gpu)? {}
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

    /// How many bytes of long and of short lists kernels can read, from the first on.
    pub fn readable(&self, index: &Index) -> [usize; 2] {
        [Section::LongLists, Section::ShortLists].map(|section| {
            let start = index.segment().section_range(section).start;
            let pages = self.registered.iter().find(|pages| pages.contains(&start));
            pages.map_or(0, |pages| (pages.end - start).saturating_sub(PADDING))
        })
    }

    /// The bytes that are registered.
    pub fn bytes(&self) -> u64 {
        self.registered.iter().map(|pages| pages.len() as u64).sum()
    }
}

impl Drop for HostLists {
    fn drop(&mut self) {
        self.registrable.give_back(self.bytes() as usize);
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use lanner_gpu::faulty::{Fault, Faulty};
    use lanner_gpu::simulator::Simulator;
    use lanner_index::build::{BuildOptions, Quiet, build};
    use lanner_index::corpus::{Corpus, CorpusOptions};

    /// An index with static ranks.
    pub fn index() -> (tempfile::TempDir, Arc<Index>) {
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

    fn host(index: &Arc<Index>, most: usize, reads_ranks: bool) -> HostLists {
        HostLists::new(index, &Arc::new(Registrable::new(most)), reads_ranks)
    }

    fn gpu() -> Gpu {
        Gpu::new(Arc::new(Simulator::new(1)), 1 << 30)
    }

    #[test]
    fn lists_are_read_where_the_file_is_mapped() {
        let (_folder, index) = index();
        let mut lists = host(&index, usize::MAX, false);
        let range = index.segment().section_range(Section::LongLists);
        assert_eq!((lists.list(range.start..range.start + 16), lists.readable(&index)), (None, [0; 2]));
        while lists.step(&gpu()).unwrap() {}
        let first = index.segment().section(Section::LongLists).as_ptr() as u64;
        assert_eq!(lists.list(range.start..range.start + 16), Some(Address(first)));
        let readable = lists.readable(&index)[0];
        assert!(lists.list(range.start..range.start + readable).is_some());
        assert_eq!(lists.list(range.start..range.start + readable + 1), None);
        let end = index.segment().file().len();
        assert_eq!(lists.list(end - 16..end), None, "not where a decoder could read beyond the pages");
    }

    /// Ranks and lists, wherever their sections lie and whether or not they share pages.
    #[test]
    fn ranks_are_read_at_once_and_lists_as_before() {
        let (_folder, index) = index();
        let mut lists = host(&index, usize::MAX, true);
        let segment = index.segment();
        let ranks = segment.section_range(Section::Ranks);
        assert_eq!(lists.bytes_at(ranks.clone()), None);
        let address = |section: Section| Some(Address(segment.section(section).as_ptr() as u64));
        assert_eq!(lists.read_at_once(&gpu(), ranks.clone()).unwrap(), address(Section::Ranks));
        assert_eq!(lists.has_all(), lists.is_done());
        while lists.step(&gpu()).unwrap() {}
        for section in [Section::LongLists, Section::ShortLists] {
            let range = segment.section_range(section);
            assert!(range.is_empty() || lists.bytes_at(range) == address(section));
        }
        assert!(lists.has_all() && lists.bytes_at(ranks).is_some());
        let mut nothing = host(&index, 0, true);
        assert_eq!(nothing.read_at_once(&gpu(), segment.section_range(Section::Ranks)).unwrap(), None);
    }

    #[test]
    fn no_more_is_registered_than_is_allowed_and_what_the_driver_refuses_is_not() {
        let (_folder, index) = index();
        let mut lists = host(&index, 3 * PAGE + 17, false);
        while lists.step(&gpu()).unwrap() {}
        assert_eq!(lists.bytes(), 3 * PAGE as u64);
        assert!(lists.is_done() && !lists.has_all());
        let refusing = |fault| Gpu::new(Arc::new(Faulty::new(Arc::new(Simulator::new(1)), fault, 0)), 1 << 30);
        let mut lists = host(&index, usize::MAX, false);
        assert!(lists.step(&refusing(Fault::Once)).unwrap());
        assert_eq!((lists.bytes(), lists.is_done()), (0, true));
        assert!(host(&index, usize::MAX, false).step(&refusing(Fault::Lost)).is_err());
    }

    #[test]
    fn indexes_share_what_may_be_registered_and_one_that_is_closed_leaves_it() {
        let (_folders, indexes): (Vec<_>, Vec<_>) = [index(), index()].into_iter().unzip();
        let registrable = Arc::new(Registrable::new(usize::MAX));
        let all = |index| {
            let mut lists = HostLists::new(index, &registrable, false);
            while lists.step(&gpu()).unwrap() {}
            lists.bytes()
        };
        let bytes = all(&indexes[0]);
        assert!(bytes > PAGE as u64);
        let registrable = Arc::new(Registrable::new(bytes as usize + PAGE));
        let [mut older, mut newer] = [0, 1].map(|number| HostLists::new(&indexes[number], &registrable, false));
        while older.step(&gpu()).unwrap() {}
        while newer.step(&gpu()).unwrap() {}
        assert!(older.has_all() && newer.is_done() && !newer.has_all());
        assert_eq!(newer.bytes(), PAGE as u64);
        drop(older);
        assert!(!newer.is_done());
        while newer.step(&gpu()).unwrap() {}
        assert!(newer.has_all());
    }

    #[test]
    fn ranks_alone_are_registered_alone() {
        let (_folder, index) = index();
        let ranks = index.segment().section_range(Section::Ranks);
        let mut host = HostLists::of_ranks(&index, &Arc::new(Registrable::new(usize::MAX)));
        assert!(host.read_at_once(&gpu(), ranks.clone()).unwrap().is_some());
        assert!(host.bytes() <= ranks.len().next_multiple_of(PAGE) as u64 + 2 * PAGE as u64);
    }
}
