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
mod device_lists;
mod documents;
mod entry;
pub mod filters;
mod host;
pub mod list_map;
pub mod piece;
pub mod replay;
pub mod report;
mod transfer;
mod visit;
mod whole;

use crate::device::kernels::{DenseRow, SparseRow};
use crate::device::plan_rows::Listed;
use crate::device::rows::{DensePlacement, SparsePlacement};
use crate::device::served::Served;
use cache::Keep;
pub use device_lists::{DeviceLists, Pin};
use device_lists::{Inner, lock};
use documents::DocumentData;
use entry::{ListKey, SegmentNumber};
use filters::Filters;
use host::HostLists;
use lanner_gpu::device::Address;
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::Gpu;
use lanner_index::open::{Column, Index, ListSpan};
pub use report::ResidencyReport;
use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard};
use whole::Whole;

/// Decoders may read up to this many bytes behind a list: three columns of a damaged block, up to 1,024 bytes each.
pub const PADDING: usize = 4096;
/// Filters take at most this share of the device memory that lists leave to batches: 128 MiB, or less on small devices.
const FILTERS_SHARE: u64 = 4;
/// Beside cached pieces of lists, static ranks are resident if they take at most this share of the device memory that is
/// left: queries read more of lists, which get the rest.
const RANKS_SHARE: u64 = 8;

/// How the lists of indexes are held.
#[derive(Clone, Copy, Debug)]
pub struct Holding {
    /// Whether each batch uploads its lists, wherever they could lie.
    pub uploads_lists: bool,
    /// What the cache may keep. If that is not everything, lists are never resident as a whole.
    pub keep: Keep,
    /// The most bytes of device memory for pieces of lists.
    pub cached: usize,
    /// The most bytes of host memory that are registered for all indexes of a device.
    pub registered: usize,
}

/// Device memory that lists leave to the buffers of batches.
#[derive(Clone, Copy, Debug)]
pub struct Reserve {
    pub bytes: u64,
    /// What buffers have not taken yet.
    pub unused: u64,
}

/// What is resident of an index on a device.
pub struct Residency {
    pub documents: DocumentData,
    pub filters: RefCell<Filters>,
    lists: Lists,
}

enum Lists {
    Whole {
        whole: Whole,
        /// Static ranks that do not fit beside the lists, in host memory.
        _ranks: Option<Box<HostLists>>,
    },
    Cached {
        segment: SegmentNumber,
        host: Arc<Mutex<HostLists>>,
        device: Arc<DeviceLists>,
    },
    Uploaded,
}

impl Residency {
    /// Uploads lengths, norms and static ranks, and finds a way to hold the lists: as a whole if they fit in the budget
    /// beside the reserve. The lists themselves come with [`Residency::step`], and pieces of them once `device`
    /// has memory.
    pub fn open(
        gpu: &Gpu,
        served: &Arc<Served>,
        holding: Holding,
        device: &Arc<DeviceLists>,
        reserve: Reserve,
    ) -> Result<Residency, GpuError> {
        let index = &served.index;
        let mut documents = DocumentData::open(gpu, index)?;
        let fits = Whole::needed(index).saturating_add(reserve.unused) <= gpu.left();
        let whole = (holding.keep == Keep::All && fits && !holding.uploads_lists).then(|| Whole::new(gpu, index));
        let lists = match whole {
            Some(Err(error)) if !error.is_out_of_memory() => return Err(error),
            Some(Ok(whole)) => {
                let spare = gpu.left().saturating_sub(reserve.unused);
                unless_out_of_memory(documents.upload_ranks(gpu, index, spare))?;
                let mut ranks = documents.lacks_ranks().then(|| HostLists::of_ranks(index, &device.lock().registrable));
                ranks.as_mut().map_or(Ok(()), |ranks| documents.read_ranks(gpu, index, ranks))?;
                Lists::Whole { whole, _ranks: ranks.map(Box::new) }
            }
            whole => {
                let ranks = documents.upload_ranks(gpu, index, gpu.left() / RANKS_SHARE);
                match holding.uploads_lists {
                    true => ranks.map(|()| Lists::Uploaded)?,
                    false => {
                        unless_out_of_memory(ranks)?;
                        let mut inner = device.lock();
                        // The device has less than the budget.
                        whole.and_then(Result::err).into_iter().for_each(|error| inner.lacks(error));
                        let (segment, host) = inner.add(served, documents.lacks_ranks());
                        documents.read_ranks(gpu, index, &mut lock(&host))?;
                        Lists::Cached { segment, host, device: Arc::clone(device) }
                    }
                }
            }
        };
        // A device that failed may have left something.
        served.list_map.clear();
        served.list_map.set_partial(matches!(lists, Lists::Cached { .. }));
        let filters = RefCell::new(Filters::new(index.documents(), reserve.bytes / FILTERS_SHARE));
        Ok(Residency { documents, filters, lists })
    }

    /// Whether pieces of lists are cached.
    pub fn is_cached(&self) -> bool {
        matches!(self.lists, Lists::Cached { .. })
    }

    /// The device memory that it takes, without the cache's and without filters.
    pub fn bytes(&self) -> u64 {
        let lists = if let Lists::Whole { whole, .. } = &self.lists { whole.bytes() } else { 0 };
        self.documents.bytes() + lists
    }

    /// Loads or registers some more lists; returns whether there were any left.
    pub fn step(&mut self, gpu: &Gpu, index: &Index) -> Result<bool, GpuError> {
        match &mut self.lists {
            Lists::Whole { whole, .. } => whole.step(gpu, index),
            Lists::Cached { host, .. } => lock(host).step(gpu),
            Lists::Uploaded => Ok(false),
        }
    }

    /// Whether nothing is left to load or to copy.
    pub fn is_loaded(&self) -> bool {
        match &self.lists {
            Lists::Whole { whole, .. } => whole.is_loaded(),
            Lists::Cached { host, device, .. } => {
                let is_registered = lock(host).is_done();
                is_registered && device.is_settled()
            }
            Lists::Uploaded => true,
        }
    }

    /// Whether lists have to be uploaded with the batches that read them, all or some. What is not loaded yet counts.
    pub fn uploads_lists(&self) -> bool {
        match &self.lists {
            Lists::Whole { whole, .. } => !whole.is_loaded(),
            Lists::Cached { host, .. } => !lock(host).has_all(),
            Lists::Uploaded => true,
        }
    }

    /// How many bytes of long and of short lists kernels can read where they are, from the first on.
    pub fn readable(&self, index: &Index) -> [usize; 2] {
        match &self.lists {
            Lists::Whole { whole, .. } => whole.loaded_bytes(),
            Lists::Cached { host, .. } => lock(host).readable(index),
            Lists::Uploaded => [0; 2],
        }
    }

    /// Whether a list has to be uploaded with the batch that reads it, unless all of it is cached.
    pub fn uploads(&self, span: ListSpan) -> bool {
        match &self.lists {
            Lists::Whole { whole, .. } => whole.list(span).is_none(),
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
            Lists::Whole { whole, .. } => whole.list(span),
            Lists::Cached { .. } | Lists::Uploaded => None,
        }
    }

    /// Gives rows of a batch of `plans` plans, which read a column, the addresses of their lists. Only `reads` of the traffic
    /// of these is the batch's: it may run some of the stages of a plan.
    pub fn placing(&self, plans: usize, column: Column, reads: f32) -> Placing<'_> {
        let lists = match &self.lists {
            Lists::Whole { whole, .. } => PlacingLists::Whole(whole),
            Lists::Uploaded => PlacingLists::Uploaded,
            Lists::Cached { segment, host, device } => {
                let mut inner = device.lock();
                let number = inner.cache.begin_batch(plans);
                let pin = Some(Pin { device: Arc::clone(device), number });
                PlacingLists::Cached { segment: *segment, host: lock(host), inner, pin }
            }
        };
        Placing { lists, column, reads }
    }

    pub fn report(&self, index: &Index) -> ResidencyReport {
        let (list_bytes, uploads_lists) = (Whole::list_bytes(index), self.uploads_lists());
        match &self.lists {
            Lists::Uploaded => {
                ResidencyReport { list_bytes, uploads_lists, is_settled: true, ..ResidencyReport::default() }
            }
            Lists::Whole { whole, .. } => ResidencyReport {
                list_bytes,
                resident_bytes: whole.loaded(),
                memory_bytes: list_bytes,
                is_whole: true,
                uploads_lists,
                is_settled: whole.is_loaded(),
                ..ResidencyReport::default()
            },
            Lists::Cached { host, device, .. } => {
                let (inner, host) = (device.lock(), lock(host));
                let cache = inner.cache.report();
                ResidencyReport {
                    list_bytes: inner.list_bytes(),
                    resident_bytes: cache.resident_bytes,
                    memory_bytes: cache.memory_bytes,
                    registered_bytes: host.bytes(),
                    is_whole: false,
                    uploads_lists,
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

/// What is not uploaded for lack of memory is read in host memory.
fn unless_out_of_memory(uploaded: Result<(), GpuError>) -> Result<(), GpuError> {
    uploaded.or_else(|error| if error.is_out_of_memory() { Ok(()) } else { Err(error) })
}

/// Gives the rows of a batch their addresses.
pub struct Placing<'a> {
    lists: PlacingLists<'a>,
    column: Column,
    reads: f32,
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
                let traffic = &traffic.times(self.reads);
                if !span.is_long {
                    inner.cache.visit_short(traffic);
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
                let (address, traffic) = (on_host.unwrap_or(Address::NULL), &traffic.times(self.reads));
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

#[cfg(test)]
mod tests {
    use super::*;
    use lanner_gpu::simulator::Simulator;
    use lanner_index::format::segment::Section;

    #[test]
    fn static_ranks_that_do_not_fit_beside_resident_lists_are_read_in_host_memory() {
        let (_folder, index) = host::tests::index();
        let ranks = index.segment().section(Section::Ranks);
        let all = Whole::needed(&index) + ranks.len() as u64 + index.documents() as u64 + 64 * 1024;
        let holding = Holding { uploads_lists: false, keep: Keep::All, cached: usize::MAX, registered: usize::MAX };
        let open = |memory: u64, holding: Holding| {
            let gpu = Gpu::new(Arc::new(Simulator::new(1)), memory);
            let reserve = Reserve { bytes: 48 * 1024, unused: 48 * 1024 };
            let served = Arc::new(Served::new(Arc::clone(&index), Arc::default()));
            Residency::open(&gpu, &served, holding, &DeviceLists::new(&holding), reserve).unwrap()
        };
        let in_file = Address(ranks.as_ptr() as u64);
        let resident = open(all, holding);
        assert!(!resident.is_cached() && ![Address::NULL, in_file].contains(&resident.documents.ranks()));
        let little = open(all - ranks.len() as u64, holding);
        assert!(!little.is_cached() && little.documents.ranks() == in_file);
        let unregistered = open(all - ranks.len() as u64, Holding { registered: 0, ..holding });
        assert!(!unregistered.is_cached() && unregistered.documents.lacks_ranks());
    }
}
