//! The lists on a device that are not resident as a whole: one cache for all indexes, its memory, and what is being copied.

use super::cache::{Cache, Keep, Move};
use super::entry::{PieceKey, SegmentNumber};
use super::host::HostLists;
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
/// Less device memory than this is no cache.
const LEAST_MEMORY: u64 = 1 << 10;

/// The lists of all indexes on a device that are not resident as a whole: one cache in one budget of memory.
pub struct DeviceLists {
    inner: Mutex<Inner>,
}

pub struct Inner {
    pub cache: Cache,
    /// The most memory that the cache gets.
    most: usize,
    /// The extents of the cache's memory; `None` once they are given back.
    memory: Vec<Option<Memory>>,
    /// By the numbers of segments.
    segments: Vec<Option<CachedSegment>>,
    pub transfer: Transfer,
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
        Arc::new(DeviceLists { inner: Mutex::new(Inner { cache, most, memory, segments, transfer }) })
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses device memory that has become free, but for `reserve` bytes, for as much as the lists of all its indexes have.
    pub fn grow(&self, gpu: &Gpu, reserve: u64) -> Result<(), GpuError> {
        self.lock().grow(gpu, reserve)
    }

    /// Gives back all memory, and takes half of it at most from now on: it is needed for a batch. Returns whether there
    /// was any, and no batch was reading it.
    pub fn shrink(&self, gpu: &Gpu) -> bool {
        self.lock().shrink(gpu)
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
    fn grow(&mut self, gpu: &Gpu, reserve: u64) -> Result<(), GpuError> {
        let lists: u64 = self.segments.iter().flatten().map(|segment| Whole::needed(&segment.served.index)).sum();
        let free = gpu.left().saturating_sub(reserve + PADDING as u64);
        let bytes = lists.min(self.most as u64).saturating_sub(self.cache.memory() as u64).min(free);
        if bytes < LEAST_MEMORY {
            return Ok(());
        }
        match gpu.allocate(bytes as usize + PADDING) {
            Ok(memory) => {
                self.cache.add_memory(memory.address(), bytes as usize);
                self.memory.push(Some(memory));
                Ok(())
            }
            // Without a cache, lists are read in host memory.
            Err(error) if error.is_out_of_memory() => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn shrink(&mut self, gpu: &Gpu) -> bool {
        if self.cache.memory() == 0 || self.cache.is_read() {
            return false;
        }
        self.most = self.cache.memory() / 2;
        self.finish_transfer(gpu);
        self.cache.clear();
        self.segments.iter().flatten().for_each(|segment| segment.served.list_map.clear());
        self.drop_free();
        true
    }

    fn step(&mut self, gpu: &Gpu) -> Result<bool, GpuError> {
        let published = self.transfer.poll(gpu)?;
        for it in &published {
            self.cache.publish(it);
            self.note(&it.key, true);
        }
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
            (segment.source(it.span, it.range.clone()), cache.address(&it.place))
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

    pub fn forget(&mut self, gpu: &Gpu, number: SegmentNumber) {
        self.finish_transfer(gpu);
        self.cache.forget(number);
        self.segments[number.0 as usize] = None;
        self.drop_free();
    }

    /// Waits for pieces that are being copied.
    fn finish_transfer(&mut self, gpu: &Gpu) {
        for it in &self.transfer.finish(gpu) {
            self.cache.publish(it);
            self.note(&it.key, true);
        }
    }

    fn drop_free(&mut self) {
        self.cache.drop_free().into_iter().for_each(|extent| self.memory[extent] = None);
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
    pub fn add(
        &mut self,
        served: &Arc<Served>,
        registered: usize,
        reads_ranks: bool,
    ) -> (SegmentNumber, Arc<Mutex<HostLists>>) {
        let index = &served.index;
        let same = self.segments.iter().flatten().find(|segment| Arc::ptr_eq(&segment.served.index, index));
        let host = same.map(|segment| Arc::clone(&segment.host));
        let host = host.unwrap_or_else(|| Arc::new(Mutex::new(HostLists::new(index, registered, reads_ranks))));
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
