//! Where the lists of an index lie, and where kernels read them.
//!
//! If all lists fit in the memory of the device, they are copied there (`whole.rs`). If not, they stay in the mapped file,
//! which is registered with the driver so that kernels read it across the bus (`host.rs`), and a cache (`cache.rs`) keeps
//! the hottest *pieces* of lists in device memory: directories, bounds, words, ranks, values, blocks (`piece.rs`). So the
//! pieces of one list may lie in different memory; the rows of a batch have an address for each. Where nothing can be
//! registered, lists are uploaded with each batch (`upload.rs`).
//!
//! ```text
//!  mapped file ─┬─ registered: kernels read blocks across the bus ──────────────────┐
//!               ├─ cache: transfer.rs copies the hottest pieces ─▶ arena (device) ──┼─▶ rows of a batch
//!               └─ not registered: slabs of pinned memory, with each batch ─────────┘
//! ```
//!
//! Beside lists, kernels read length codes, norms and static ranks (`documents.rs`), and filters (`filters.rs`).
//!
//! Everything here happens on the thread of the device, between two batches. Loading and copying go on while batches run:
//! a row has the addresses of where the pieces are at that moment.

mod arena;
pub mod cache;
mod documents;
mod entry;
pub mod filters;
mod host;
pub mod list_map;
pub mod piece;
pub mod replay;
mod transfer;
mod whole;

use crate::device::kernels::{DenseRow, SparseRow};
use crate::device::plan_rows::Listed;
use crate::device::rows::{DensePlacement, SparsePlacement};
use crate::device::served::Served;
use cache::{Cache, CacheReport, Keep};
use documents::DocumentData;
use entry::{ListKey, PieceKey, SegmentNumber};
use filters::Filters;
use host::HostLists;
use lanner_gpu::device::Address;
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::{Gpu, Memory};
use lanner_index::format::list::UNIT;
use lanner_index::format::segment::{Section, u32_at};
use lanner_index::open::{Column, Index, ListLayout, ListSpan, Segment};
use piece::Piece;
use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transfer::{Source, Transfer};
use whole::Whole;

/// Decoders may read up to this many bytes behind a list: three columns of a damaged block, up to 1,024 bytes each.
pub const PADDING: usize = 4096;
/// The most bytes of a round of transfers: with half a millisecond of the bus, it hardly delays what batches read.
const ROUND: usize = 16 << 20;
/// Filters take at most this share of the device memory that lists leave to batches: 128 MiB, or less on small devices.
const FILTERS_SHARE: u64 = 4;
/// Less device memory than this is no cache.
const LEAST_MEMORY: u64 = 1 << 10;

/// How the lists of indexes are held.
#[derive(Clone, Copy, Debug)]
pub struct Holding {
    /// Whether each batch uploads its lists, wherever they could lie.
    pub uploads_lists: bool,
    /// What the cache may keep. If that is not everything, lists are never resident as a whole.
    pub keep: Keep,
    /// The most bytes of device memory for pieces of lists.
    pub cached: usize,
    /// The most bytes of host memory that are registered for an index.
    pub registered: usize,
}

/// The lists of all indexes on a device that are not resident as a whole: one cache in one budget of memory.
pub struct DeviceLists {
    inner: Mutex<Inner>,
}

struct Inner {
    cache: Cache,
    /// The most memory that the cache gets.
    most: usize,
    /// The extents of the cache's memory; `None` once they are given back.
    memory: Vec<Option<Memory>>,
    /// By the numbers of segments.
    segments: Vec<Option<CachedSegment>>,
    transfer: Transfer,
}

/// An index whose lists are cached.
struct CachedSegment {
    served: Arc<Served>,
    host: Arc<Mutex<HostLists>>,
    /// Where its sections of lists begin in the file: long, short.
    starts: [usize; 2],
}

/// What is resident of an index on a device.
pub struct Residency {
    pub documents: DocumentData,
    pub filters: RefCell<Filters>,
    lists: Lists,
}

enum Lists {
    Whole(Whole),
    Cached { segment: SegmentNumber, host: Arc<Mutex<HostLists>>, device: Arc<DeviceLists> },
    Uploaded,
}

/// What other threads see of the lists on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ResidencyReport {
    /// Bytes of the lists of the index.
    pub list_bytes: u64,
    /// Bytes of these that are resident; of the cache, those of all its indexes.
    pub resident_bytes: u64,
    /// Device memory for lists.
    pub memory_bytes: u64,
    /// Bytes of host memory that kernels can read.
    pub registered_bytes: u64,
    /// Whether all lists are resident as a whole, or are going to be.
    pub is_whole: bool,
    /// Whether nothing is on its way to the device.
    pub is_settled: bool,
    /// What the cache did; zeros if the lists are resident as a whole.
    pub cache: CacheReport,
}

/// Keeps the pieces that a batch names until it has ended.
pub struct Pin {
    device: Arc<DeviceLists>,
    number: u64,
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

    fn lock(&self) -> MutexGuard<'_, Inner> {
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

    fn start(&mut self, gpu: &Gpu, moves: Vec<cache::Move>) -> Result<(), GpuError> {
        let Inner { cache, segments, transfer, .. } = self;
        let places = |it: &cache::Move| {
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

    fn forget(&mut self, gpu: &Gpu, number: SegmentNumber) {
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

fn range_of_piece(segment: &Segment, piece: Piece, span: ListSpan, most: usize) -> Option<Range<usize>> {
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

fn lock(host: &Mutex<HostLists>) -> MutexGuard<'_, HostLists> {
    host.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Residency {
    /// Uploads lengths, norms and static ranks, and finds a way to hold the lists: as a whole if they fit in the budget
    /// with `reserve` bytes to spare. The lists themselves come with [`Residency::step`].
    pub fn open(
        gpu: &Gpu,
        served: &Arc<Served>,
        holding: Holding,
        device: &Arc<DeviceLists>,
        reserve: u64,
    ) -> Result<Residency, GpuError> {
        let index = &served.index;
        let mut documents = DocumentData::open(gpu, index)?;
        let fits = Whole::needed(index).saturating_add(reserve) <= gpu.left();
        let lists = match holding {
            Holding { uploads_lists: true, .. } => Lists::Uploaded,
            Holding { keep: Keep::All, .. } if fits => Lists::Whole(Whole::new(gpu, index)?),
            Holding { registered, .. } => {
                let (segment, host) = device.lock().add(served, registered, documents.lacks_ranks());
                if documents.lacks_ranks() {
                    // At once, so that it is known from here on who adds them: 3 ms for each 16 million documents.
                    let bytes = index.segment().section_range(Section::Ranks);
                    let address = lock(&host).read_at_once(gpu, bytes)?;
                    address.into_iter().for_each(|address| documents.read_ranks_at(address));
                }
                device.grow(gpu, reserve)?;
                Lists::Cached { segment, host, device: Arc::clone(device) }
            }
        };
        served.list_map.set_partial(matches!(lists, Lists::Cached { .. }));
        let filters = RefCell::new(Filters::new(index.documents(), reserve / FILTERS_SHARE));
        Ok(Residency { documents, filters, lists })
    }

    /// Loads or registers some more lists; returns whether there were any left.
    pub fn step(&mut self, gpu: &Gpu, index: &Index) -> Result<bool, GpuError> {
        match &mut self.lists {
            Lists::Whole(whole) => whole.step(gpu, index),
            Lists::Cached { host, .. } => lock(host).step(gpu),
            Lists::Uploaded => Ok(false),
        }
    }

    /// Whether [`Residency::step`] has nothing to do any more.
    pub fn is_loaded(&self) -> bool {
        match &self.lists {
            Lists::Whole(whole) => whole.is_loaded(),
            Lists::Cached { host, .. } => lock(host).is_done(),
            Lists::Uploaded => true,
        }
    }

    /// Whether lists have to be uploaded with the batches that read them, all or some. What is not loaded yet counts.
    pub fn uploads_lists(&self) -> bool {
        match &self.lists {
            Lists::Whole(whole) => !whole.is_loaded(),
            Lists::Cached { host, .. } => !lock(host).has_all(),
            Lists::Uploaded => true,
        }
    }

    /// Whether a list has to be uploaded with the batch that reads it. One of which all pieces are cached does not.
    pub fn uploads(&self, span: ListSpan) -> bool {
        match &self.lists {
            Lists::Whole(whole) => whole.list(span).is_none(),
            Lists::Cached { segment, host, device } => {
                let inner = device.lock();
                lock(host).list(inner.file_range(*segment, span)).is_none()
            }
            Lists::Uploaded => true,
        }
    }

    /// The address of a list that is resident as a whole.
    pub fn list(&self, span: ListSpan) -> Option<Address> {
        match &self.lists {
            Lists::Whole(whole) => whole.list(span),
            Lists::Cached { .. } | Lists::Uploaded => None,
        }
    }

    /// Gives rows of a batch of `plans` plans, which read a column, the addresses of their lists.
    pub fn placing(&self, plans: usize, column: Column) -> Placing<'_> {
        let lists = match &self.lists {
            Lists::Whole(whole) => PlacingLists::Whole(whole),
            Lists::Uploaded => PlacingLists::Uploaded,
            Lists::Cached { segment, host, device } => {
                let mut inner = device.lock();
                let number = inner.cache.begin_batch(plans);
                let pin = Some(Pin { device: Arc::clone(device), number });
                PlacingLists::Cached { segment: *segment, host: lock(host), inner, pin }
            }
        };
        Placing { lists, column }
    }

    pub fn report(&self, index: &Index) -> ResidencyReport {
        let list_bytes = Whole::needed(index) - 2 * PADDING as u64;
        match &self.lists {
            Lists::Uploaded => ResidencyReport { list_bytes, is_settled: true, ..ResidencyReport::default() },
            Lists::Whole(whole) => ResidencyReport {
                list_bytes,
                resident_bytes: whole.loaded(),
                memory_bytes: list_bytes,
                is_whole: true,
                is_settled: whole.is_loaded(),
                ..ResidencyReport::default()
            },
            Lists::Cached { host, device, .. } => {
                let (inner, host) = (device.lock(), lock(host));
                let cache = inner.cache.report();
                ResidencyReport {
                    list_bytes,
                    resident_bytes: cache.resident_bytes,
                    memory_bytes: cache.memory_bytes,
                    registered_bytes: host.bytes(),
                    is_whole: false,
                    is_settled: host.is_done() && inner.cache.is_settled() && inner.transfer.is_idle(),
                    cache,
                }
            }
        }
    }

    /// Frees what the device holds of the lists. No batch of the index is in flight.
    pub fn forget(&mut self, gpu: &Gpu) {
        if let Lists::Cached { segment, device, .. } = &self.lists {
            device.lock().forget(gpu, *segment);
        }
        self.lists = Lists::Uploaded;
    }
}

impl Inner {
    /// Adds an index. One that shares its file with another shares what is registered.
    fn add(
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

    fn file_range(&self, segment: SegmentNumber, span: ListSpan) -> Range<usize> {
        let segment = self.segments[segment.0 as usize].as_ref().expect("a segment that is open");
        file_range(segment.starts, span)
    }
}

/// Gives the rows of a batch their addresses.
pub struct Placing<'a> {
    lists: PlacingLists<'a>,
    column: Column,
}

enum PlacingLists<'a> {
    Whole(&'a Whole),
    Cached { segment: SegmentNumber, host: MutexGuard<'a, HostLists>, inner: MutexGuard<'a, Inner>, pin: Option<Pin> },
    Uploaded,
}

impl Placing<'_> {
    /// A row with its addresses, and the bytes that are predicted to be read in host memory; `None` if the list has to be
    /// uploaded.
    pub fn sparse(&mut self, Listed { span, traffic, row }: &Listed<SparseRow>) -> Option<(SparseRow, f32)> {
        match &mut self.lists {
            PlacingLists::Whole(whole) => Some((row.placed(SparsePlacement::whole(whole.list(*span)?)), 0.0)),
            PlacingLists::Uploaded => None,
            PlacingLists::Cached { segment, host, inner, .. } => {
                let on_host = host.list(inner.file_range(*segment, *span));
                if !span.is_long {
                    return Some((row.placed(SparsePlacement::whole(on_host?)), traffic.sum()));
                }
                let key = ListKey { segment: *segment, start: span.start };
                let visited = inner.cache.visit_sparse(key, *span, traffic, on_host.unwrap_or(Address::NULL));
                (on_host.is_some() || visited.is_resident).then(|| (row.placed(visited.placement), visited.bytes))
            }
        }
    }

    /// The same for a dense list.
    pub fn dense(&mut self, Listed { span, traffic, row }: &Listed<DenseRow>) -> Option<(DenseRow, f32)> {
        match &mut self.lists {
            PlacingLists::Whole(whole) => Some((row.placed(DensePlacement::whole(whole.list(*span)?)), 0.0)),
            PlacingLists::Uploaded => None,
            PlacingLists::Cached { segment, host, inner, .. } => {
                let on_host = host.list(inner.file_range(*segment, *span));
                let key = ListKey { segment: *segment, start: span.start };
                let address = on_host.unwrap_or(Address::NULL);
                let visited = inner.cache.visit_dense(key, *span, self.column, traffic, address);
                (on_host.is_some() || visited.is_resident).then(|| (row.placed(visited.placement), visited.bytes))
            }
        }
    }

    /// Keeps the pieces that the batch names until it is dropped.
    pub fn finish(self) -> Option<Pin> {
        match self.lists {
            PlacingLists::Cached { pin, .. } => pin,
            PlacingLists::Whole(_) | PlacingLists::Uploaded => None,
        }
    }
}
