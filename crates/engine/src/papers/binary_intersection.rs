//! Intersection of a short list with a long one: a binary search for each document of the shorter one.
//!
//! Each thread searches on its own. Directly, the longer list is searched as it lies there: what the papers compare
//! their algorithms with. Over skip pointers, the last documents of its blocks of 128 are searched first, which are few
//! enough to stay in the cache, and then only the one block that may hold the document.
//!
//! Ding et al., Using Graphics Processors for High Performance IR Query Processing (section 7.1, the direct algorithm,
//! and 8.1); Liu et al., Griffin (section 3.1.2).

use super::BINARY_INTERSECTION;
use super::compaction::{DeviceList, Found, ORDER_SHARED, Order, Origins, Places, Room, THREADS};
use lanner_gpu::device::{Address, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::Gpu;

/// Documents of the shorter list that a thread searches for.
pub(super) const SEARCHED: u32 = 4;
/// Documents of a block of the longer list.
pub const SKIPPED: usize = 128;

/// What the kernel takes; `binary_intersection.cu` says what the fields mean.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct BinaryArguments {
    pub shorter: Address,
    pub longer: Address,
    pub lasts: Address,
    pub results: Address,
    pub origins: Origins,
    pub order: Order,
    pub shorter_length: u32,
    pub longer_length: u32,
}

/// The tiles of a shorter list.
pub(super) fn tiles_of(shorter: DeviceList) -> u32 {
    shorter.length.div_ceil(SEARCHED * THREADS)
}

/// The bytes of a room in which a shorter list is intersected.
pub fn room_bytes(shorter: DeviceList) -> usize {
    let mut places = Places::from(Address::NULL);
    Order::place(&mut places, tiles_of(shorter));
    places.take(4 * shorter.length as usize);
    places.end()
}

/// Intersects a shorter list with a longer one in a room of [`room_bytes`], which the stream uses until it was waited
/// for. `lasts` are the longer list's [`last_documents`] on the device; without them it is searched directly.
pub fn gpu(
    gpu: &Gpu,
    stream: Stream,
    [shorter, longer]: [DeviceList; 2],
    lasts: Option<Address>,
    origins: Origins,
    room: impl Into<Room>,
) -> Result<Found, GpuError> {
    let mut places = Places::inside(room.into(), room_bytes(shorter));
    let order = Order::place(&mut places, tiles_of(shorter));
    let arguments = BinaryArguments {
        shorter: shorter.documents,
        longer: longer.documents,
        lasts: lasts.unwrap_or(Address::NULL),
        results: places.take(4 * shorter.length as usize),
        origins,
        order,
        shorter_length: shorter.length,
        longer_length: longer.length,
    };
    order.clear(gpu, stream)?;
    if order.tiles > 0 {
        gpu.launch(stream, &BINARY_INTERSECTION, order.shape(ORDER_SHARED), &arguments)?;
    }
    Ok(Found { documents: arguments.results, count: order.total })
}

/// The skip pointers of a list: the last document of each block.
pub fn last_documents(list: &[u32]) -> Vec<u32> {
    list.chunks(SKIPPED).filter_map(|block| block.last().copied()).collect()
}

/// Intersects a shorter list with a longer one, which is searched directly.
pub fn cpu(shorter: &[u32], longer: &[u32]) -> Vec<u32> {
    shorter.iter().copied().filter(|document| longer.binary_search(document).is_ok()).collect()
}

/// Intersects a shorter list with a longer one over the longer one's [`last_documents`].
pub fn cpu_by_skips(shorter: &[u32], longer: &[u32], lasts: &[u32]) -> Vec<u32> {
    let is_in_longer = |document: &u32| {
        let first = SKIPPED * lasts.partition_point(|last| last < document);
        let block = longer.get(first..longer.len().min(first + SKIPPED)).unwrap_or_default();
        block.binary_search(document).is_ok()
    };
    shorter.iter().copied().filter(is_in_longer).collect()
}
