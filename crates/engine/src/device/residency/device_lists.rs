//! The lists on a device that are not resident as a whole: one cache for all indexes, its memory, and what is being copied.

use super::cache::{Cache, Keep, Move};
use super::entry::{PieceKey, SegmentNumber};
use super::host::{HostLists, Registrable};
use super::piece::Piece;
use super::transfer::{Source, Transfer};
use super::whole::Whole;
use super::{Holding, PADDING};
use crate::device::served::Served;
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::{Gpu, Memory};
use lanner_index::format::list::UNIT;
use lanner_index::format::segment::{Section, u32_at};
use lanner_index::open::{ListLayout, ListSpan, Segment};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most bytes of a round of transfers: with half a millisecond of the bus, it hardly delays what batches read.
const ROUND: usize = 16 << 20;
/// The share of the lists that is taken beyond them if their memory comes in several extents.
const SPARE: u64 = 4;
/// Less device memory than this is no cache.
const LEAST_MEMORY: u64 = 1 << 10;
/// How often the memory that is asked for is halved where the device has less than its budget: others may use it, too.
const MOST_HALVINGS: u32 = 6;

/// The lists of all indexes on a device that are not resident as a whole: one cache in one budget of memory.
pub struct DeviceLists {
    inner: Mutex<Inner>,
}

pub struct Inner {
    pub cache: Cache,
    /// The most memory that the cache is to have.
    most: usize,
    /// The extents of the cache's memory.
    memory: Vec<Memory>,
    /// By the numbers of segments.
    segments: Vec<Option<CachedSegment>>,
    pub transfer: Transfer,
    pub registrable: Arc<Registrable>,
    /// Why lists got less memory than the budget has, until it is reported, which is done once.
    shortage: Option<GpuError>,
    has_lacked: bool,
}

/// An index whose lists are cached.
pub struct CachedSegment {
    served: Arc<Served>,
    host: Arc<Mutex<HostLists>>,
    /// Where its sections of lists begin in the file: long, short.
    starts: [usize; 2],
}

/// Keeps the pieces that a batch names until it has ended.
pub struct Pin {
    pub device: Arc<DeviceLists>,
    pub number: u64,
}

impl fmt::Debug for Pin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Pin").field(&self.number).finish()
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.device.lock().cache.end_batch(self.number);
    }
}

impl DeviceLists {
    pub fn new(holding: &Holding) -> Arc<DeviceLists> {
        let (memory, segments, transfer) = (Vec::new(), Vec::new(), Transfer::default());
        let (cache, most) = (Cache::new(holding.keep), if holding.keep == Keep::Nothing { 0 } else { holding.cached });
        let registrable = Arc::new(Registrable::new(holding.registered));
        let (shortage, has_lacked) = (None, false);
        let inner = Inner { cache, most, memory, segments, transfer, registrable, shortage, has_lacked };
        Arc::new(DeviceLists { inner: Mutex::new(inner) })
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses device memory that has become free, but for `reserve` bytes, for as much as the lists of all its indexes have.
    pub fn grow(&self, gpu: &Gpu, reserve: u64) -> Result<(), GpuError> {
        self.lock().grow(gpu, reserve)
    }

    /// Gives all memory back for something that lacks this many bytes and cannot do without, if that is enough and no batch
    /// reads it; returns whether it did. [`DeviceLists::grow`] takes what is left then.
    pub fn give_way(&self, gpu: &Gpu, bytes: u64) -> bool {
        let mut inner = self.lock();
        let gives_way = inner.cache.memory() as u64 >= bytes.max(1) && !inner.cache.is_read();
        if gives_way {
            inner.give_back(gpu);
        }
        gives_way
    }

    /// The device memory that it takes.
    pub fn bytes(&self) -> u64 {
        self.lock().memory.iter().map(|memory| memory.bytes() as u64).sum()
    }

    /// Why lists got less memory than the budget has, if they did, and it was not taken before.
    pub fn take_shortage(&self) -> Option<GpuError> {
        self.lock().shortage.take()
    }

    /// Whether no piece is wanted, waits to be copied, or is being copied.
    pub fn is_settled(&self) -> bool {
        let inner = self.lock();
        inner.cache.is_settled() && inner.transfer.is_idle()
    }

    /// Publishes pieces that have been copied, decides about those that batches wanted, and starts to copy the next ones.
    /// Returns whether anything was done.
    pub fn step(&self, gpu: &Gpu) -> Result<bool, GpuError> {
        self.lock().step(gpu)
    }
}

impl Inner {
    /// The bytes of the lists of all indexes.
    pub fn list_bytes(&self) -> u64 {
        self.segments.iter().flatten().map(|segment| Whole::list_bytes(&segment.served.index)).sum()
    }

    fn grow(&mut self, gpu: &Gpu, reserve: u64) -> Result<(), GpuError> {
        let lists: u64 = self.segments.iter().flatten().map(|segment| Whole::needed(&segment.served.index)).sum();
        let free = gpu.left().saturating_sub(reserve + PADDING as u64);
        // A piece does not span two extents, nor what is left between others: in as much as the lists have, the last ones
        // would find no place.
        let has_some = (1..lists).contains(&(self.cache.memory() as u64));
        let wanted = if has_some { lists + lists / SPARE } else { lists };
        let bytes = wanted.min(self.most as u64).saturating_sub(self.cache.memory() as u64).min(free);
        for bytes in (0..=MOST_HALVINGS).map(|halvings| bytes >> halvings).take_while(|&bytes| bytes >= LEAST_MEMORY) {
            match gpu.allocate(bytes as usize + PADDING) {
                Ok(memory) => {
                    self.cache.add_memory(memory.address(), bytes as usize);
                    self.memory.push(memory);
                    break;
                }
                // Without a cache, lists are read in host memory.
                Err(error) if error.is_out_of_memory() => self.lacks(error),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Notes that the device has less memory than its budget.
    pub fn lacks(&mut self, error: GpuError) {
        if !std::mem::replace(&mut self.has_lacked, true) {
            self.shortage = Some(error);
        }
    }

    fn step(&mut self, gpu: &Gpu) -> Result<bool, GpuError> {
        let published = self.transfer.poll(gpu)?;
        self.publish(&published);
        let Inner { cache, segments, .. } = self;
        let evicted = cache.decide(|key, span, most| range_of(segments, key, span, most));
        evicted.iter().for_each(|key| self.note(key, false));
        if !self.transfer.is_idle() {
            return Ok(!published.is_empty());
        }
        let moves = self.cache.take_moves(ROUND);
        let is_any = !moves.is_empty();
        if is_any {
            self.start(gpu, moves)?;
        }
        Ok(is_any || !published.is_empty())
    }

    fn start(&mut self, gpu: &Gpu, moves: Vec<Move>) -> Result<(), GpuError> {
        let Inner { cache, segments, transfer, .. } = self;
        let places = |it: &Move| {
            let segment = segments[it.key.0.segment.0 as usize].as_ref().expect("lists of a segment that is open");
            (segment.source(it.span, it.range.clone()), cache.address(&it.region))
        };
        match transfer.start(gpu, moves, places) {
            Ok(()) => Ok(()),
            Err((error, moves)) => {
                moves.iter().for_each(|it| cache.abandon(it));
                // Without memory for rows, they stay where they are.
                if error.is_out_of_memory() { Ok(()) } else { Err(error) }
            }
        }
    }

    /// Lets the threads that plan know whether a piece is resident.
    fn note(&self, key: &PieceKey, is_resident: bool) {
        if let Some(Some(segment)) = self.segments.get(key.0.segment.0 as usize) {
            segment.served.list_map.set(key.0.start, key.1, is_resident);
        }
    }

    /// Forgets an index, none of whose batches is in flight. Its memory is for the pieces of others, whose batches may still
    /// read what was evicted there; the last one gives it back.
    pub fn forget(&mut self, gpu: &Gpu, number: SegmentNumber) {
        self.finish_transfer(gpu);
        self.cache.forget(number);
        if let Some(segment) = self.segments[number.0 as usize].take() {
            segment.served.list_map.clear();
        }
        if self.segments.iter().all(Option::is_none) {
            self.give_back(gpu);
        }
    }

    /// Gives back all memory. No batch reads it.
    fn give_back(&mut self, gpu: &Gpu) {
        self.finish_transfer(gpu);
        self.cache.clear();
        self.segments.iter().flatten().for_each(|segment| segment.served.list_map.clear());
        self.memory.clear();
    }

    /// Waits for pieces that are being copied. Where that fails, they are not resident; the next call of the device says
    /// whether it is lost.
    fn finish_transfer(&mut self, gpu: &Gpu) {
        match self.transfer.finish(gpu) {
            Ok(moves) => self.publish(&moves),
            Err((_, moves)) => moves.iter().for_each(|it| self.cache.abandon(it)),
        }
    }

    fn publish(&mut self, moves: &[Move]) {
        for it in moves {
            self.cache.publish(it);
            self.note(&it.key, true);
        }
    }
}

/// The bytes of a list that a piece has, of blocks no more than `most`; `None` if the piece cannot be kept.
fn range_of(segments: &[Option<CachedSegment>], key: &PieceKey, span: ListSpan, most: usize) -> Option<Range<usize>> {
    let segment = segments.get(key.0.segment.0 as usize)?.as_ref()?.served.index.segment();
    range_of_piece(segment, key.1, span, most)
}

pub fn range_of_piece(segment: &Segment, piece: Piece, span: ListSpan, most: usize) -> Option<Range<usize>> {
    let (layout, bytes) = (segment.layout_at(span).ok()?, segment.bytes_at(span).ok()?);
    let range = piece.range(&layout, span.bytes());
    match (&layout, piece) {
        _ if range.len() <= most => Some(range),
        (ListLayout::Long { layout, .. }, Piece::Blocks) => {
            let offset = |block: usize| UNIT * u32_at(bytes, layout.offset() + 4 * block) as usize;
            let end = offset(last_within(layout.blocks, |block| offset(block) <= most)?).min(most);
            (end > 0).then_some(range.start..range.start + end)
        }
        _ => None,
    }
}

/// The last of `count` numbers that is within a limit, if the first ones are; any, or none, in other cases.
fn last_within(count: usize, is_within: impl Fn(usize) -> bool) -> Option<usize> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = (low + high) / 2;
        if is_within(middle) { low = middle + 1 } else { high = middle }
    }
    low.checked_sub(1)
}

impl CachedSegment {
    fn source(&self, span: ListSpan, range: Range<usize>) -> Source<'_> {
        let file = file_range(self.starts, span);
        match lock(&self.host).list(file.clone()) {
            Some(list) => Source::Registered(list.plus(range.start)),
            None => {
                let bytes = self.served.index.segment().file();
                Source::Pageable(&bytes[file.start + range.start..(file.start + range.end).min(bytes.len())])
            }
        }
    }
}

/// The bytes of the file that a list has.
fn file_range(starts: [usize; 2], span: ListSpan) -> Range<usize> {
    let start = starts[usize::from(!span.is_long)];
    start + span.start..start + span.end
}

pub fn lock(host: &Mutex<HostLists>) -> MutexGuard<'_, HostLists> {
    host.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    /// Adds an index. One that shares its file with another shares what is registered.
    pub fn add(&mut self, served: &Arc<Served>, reads_ranks: bool) -> (SegmentNumber, Arc<Mutex<HostLists>>) {
        let index = &served.index;
        let same = self.segments.iter().flatten().find(|segment| Arc::ptr_eq(&segment.served.index, index));
        let host = same.map(|segment| Arc::clone(&segment.host));
        let host = host.unwrap_or_else(|| Arc::new(Mutex::new(HostLists::new(index, &self.registrable, reads_ranks))));
        let section = |section| index.segment().section_range(section).start;
        let starts = [Section::LongLists, Section::ShortLists].map(section);
        let number = SegmentNumber(self.segments.len() as u32);
        self.segments.push(Some(CachedSegment { served: Arc::clone(served), host: Arc::clone(&host), starts }));
        (number, host)
    }

    pub fn file_range(&self, segment: SegmentNumber, span: ListSpan) -> Range<usize> {
        let segment = self.segments[segment.0 as usize].as_ref().expect("a segment that is open");
        file_range(segment.starts, span)
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::{ListKey, State};
    use super::super::{Reserve, Residency};
    use super::*;
    use crate::query::Query;
    use crate::query::cost::Traffic;
    use crate::query::plan::Plan;
    use crate::query::planner::Planner;
    use lanner_gpu::device::{Address, Command, Stream};
    use lanner_gpu::faulty::{Fault, Faulty};
    use lanner_gpu::simulator::Simulator;
    use lanner_index::build::{BuildOptions, Quiet, build};
    use lanner_index::corpus::{Corpus, CorpusOptions};
    use lanner_index::open::Index;
    use tempfile::TempDir;

    const HOLDING: Holding =
        Holding { uploads_lists: false, keep: Keep::Pieces, cached: usize::MAX, registered: usize::MAX };
    /// Device memory that lists leave to batches.
    const RESERVE: Reserve = Reserve { bytes: 64 << 10, unused: 64 << 10 };

    /// A device on which two indexes are open, whose lists are cached. The files of the indexes last as long.
    struct Two {
        gpu: Gpu,
        device: Arc<Faulty>,
        lists: Arc<DeviceLists>,
        /// Of each: the index, what is resident of it, and a long list.
        indexes: [(Arc<Served>, Residency, ListKey, ListSpan); 2],
        _folders: [TempDir; 2],
    }

    impl Two {
        /// The device fails once, at this call.
        fn new(fails_at: u64) -> Two {
            let device = Arc::new(Faulty::new(Arc::new(Simulator::new(1)), Fault::Once, fails_at));
            let gpu = Gpu::new(Arc::clone(&device) as _, 1 << 20);
            let lists = DeviceLists::new(&HOLDING);
            let (mut indexes, mut folders) = (Vec::new(), Vec::new());
            for number in 0..2 {
                let (folder, index) = index();
                let span = Planner::new(&index).plan(&Query::new("falcon")).unwrap().lists[0].span;
                let served = Arc::new(Served::new(index, Arc::default()));
                let mut residency = Residency::open(&gpu, &served, HOLDING, &lists, RESERVE).unwrap();
                while residency.step(&gpu, &served.index).unwrap() {}
                let key = ListKey { segment: SegmentNumber(number), start: span.start };
                indexes.push((served, residency, key, span));
                folders.push(folder);
            }
            lists.grow(&gpu, RESERVE.unused).unwrap();
            let (indexes, folders) = (indexes.try_into().ok().unwrap(), folders.try_into().unwrap());
            Two { gpu, device, lists, indexes, _folders: folders }
        }

        fn plan(&self, index: usize) -> Plan {
            Planner::new(&self.indexes[index].0.index).plan(&Query::new("falcon")).unwrap()
        }

        /// A batch visits the list of an index, and begins to copy its pieces.
        fn visit(&self, index: usize) {
            let (_, _, key, span) = self.indexes[index];
            let mut inner = self.lists.lock();
            let number = inner.cache.begin_batch(1);
            let traffic = Traffic { directory: 128.0, blocks: 4096.0, ..Traffic::default() };
            inner.cache.visit_sparse(key, span, &traffic, Address::NULL);
            inner.cache.end_batch(number);
            assert!(inner.step(&self.gpu).unwrap() && !inner.transfer.is_idle());
        }

        /// The pieces of the list of an index that are resident, and whether their bytes are those of the file.
        fn resident(&self, index: usize) -> (usize, bool) {
            let (served, _, key, span) = &self.indexes[index];
            let (segment, inner) = (served.index.segment(), self.lists.lock());
            let residents = inner.cache.pieces_of(key).into_iter().filter_map(|(piece, state)| match state {
                State::Resident(resident) => Some((range_of_piece(segment, piece, *span, usize::MAX)?, resident)),
                _ => None,
            });
            let residents: Vec<_> = residents.collect();
            let is_same = |(range, resident): &(Range<usize>, super::super::entry::Resident)| {
                let copy = self.gpu.pin(range.len()).unwrap();
                let from = Address(resident.list.0.wrapping_add(range.start as u64));
                self.gpu.submit(Stream(0), Command::Copy { from, to: copy.address(), bytes: range.len() }).unwrap();
                self.gpu.wait(Stream(0)).unwrap();
                copy[..] == segment.bytes_at(*span).unwrap()[range.clone()]
            };
            (residents.len(), residents.iter().all(is_same))
        }
    }

    fn index() -> (TempDir, Arc<Index>) {
        let folder = tempfile::tempdir().unwrap();
        let text = |number: usize| format!("water {}", "falcon ".repeat(number % 3));
        let documents = (0..5000).map(|number| (number.to_string(), String::new(), text(number)));
        let corpus = Corpus::from_documents(documents.collect::<Vec<_>>(), CorpusOptions::default()).unwrap();
        build(folder.path(), corpus, &BuildOptions { dense: false, ..BuildOptions::default() }, &Quiet).unwrap();
        let index = Arc::new(Index::open(folder.path()).unwrap());
        (folder, index)
    }

    #[test]
    fn where_the_device_has_less_memory_than_its_budget_the_cache_is_smaller() {
        let bytes = |fails_at: u64| {
            let two = Two::new(fails_at);
            let is_reported = two.lists.take_shortage().is_some();
            assert!(two.lists.take_shortage().is_none());
            (two.device.calls(), two.lists.bytes() - PADDING as u64, is_reported)
        };
        let (calls, all, is_reported) = bytes(u64::MAX);
        assert!(!is_reported && all > 0);
        // The last call allocates it.
        assert_eq!(bytes(calls - 1), (calls + 1, all / 2, true));
    }

    #[test]
    #[cfg_attr(not(simulator), ignore = "needs the simulator")]
    fn memory_that_a_batch_of_another_index_may_read_is_not_freed() {
        let mut two = Two::new(u64::MAX);
        let (gpu, left) = (two.gpu.clone(), two.gpu.left());
        // It may read a piece that has been evicted since for one of the index that is forgotten.
        let number = two.lists.lock().cache.begin_batch(1);
        two.indexes[0].1.forget(&gpu);
        assert_eq!(gpu.left(), left);
        two.lists.lock().cache.end_batch(number);
        two.visit(1);
        assert!(two.indexes[1].0.missing_share(&two.plan(1)) == 1.0);
        while two.lists.step(&gpu).unwrap() {}
        assert!(two.indexes[1].0.missing_share(&two.plan(1)) < 0.5);
        two.indexes[1].1.forget(&gpu);
        assert!(gpu.left() > left, "nobody has pieces");
        assert_eq!(two.indexes[1].0.missing_share(&two.plan(1)), 1.0, "none is resident");
    }

    #[test]
    #[cfg_attr(not(simulator), ignore = "needs the simulator")]
    fn pieces_are_not_resident_if_waiting_for_their_copies_failed() {
        // While pieces of the second index are being copied, the first one is closed.
        let forget = |fails_at: u64| {
            let mut two = Two::new(fails_at);
            two.visit(1);
            let waits_at = two.device.calls();
            let gpu = two.gpu.clone();
            two.indexes[0].1.forget(&gpu);
            (waits_at, two)
        };
        let (waits_at, two) = forget(u64::MAX);
        assert_eq!(two.resident(1), (2, true), "directory and blocks");
        let (_, two) = forget(waits_at);
        assert!(two.device.has_failed());
        assert_eq!(two.resident(1), (0, true));
        // They come again, to memory that nothing else is copied to.
        two.visit(1);
        while two.lists.step(&two.gpu).unwrap() {}
        assert_eq!(two.resident(1), (2, true));
    }
}
