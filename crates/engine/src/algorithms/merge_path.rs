//! Intersection of two lists of about the same length by merging them: GPU MergePath.
//!
//! Merging A and B is a path through a grid of |A| x |B| cells, a step right for a number of A and a step down for one
//! of B. The cell where the path crosses a diagonal of the grid is found by a search along that diagonal alone, for
//! every diagonal at once. Diagonals at equal distances cut the path into partitions of as many numbers each. A
//! thread block takes a partition into shared memory, cuts it again among its threads, and each thread merges its share
//! as a CPU would. Of equal numbers A's comes first, so B's is always the step behind it: there the match is found, and
//! no partition has to look into the next one.
//!
//! Where A has few numbers in a partition, threads look for them among those of B instead, in shared memory: a binary search
//! near at hand.
//!
//! Liu et al., Griffin (section 3.1.2), after Green, McColl and Bader, GPU Merge Path (2012).

use super::compaction::{DeviceList, Found, Order, Origins, Places, Room, THREADS};
use super::papers::MERGE_PATH_INTERSECT;
use lanner_gpu::device::{Address, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::Gpu;
use std::cmp::Ordering;

/// Numbers of both lists in a partition.
const PARTITION: u32 = 19 * THREADS;
/// Bytes of shared memory of `merge_path_intersect`.
const SHARED: usize = 19_508;

/// What the kernel takes; `merge_path.cu` says what the fields mean.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct MergePathArguments {
    pub a: Address,
    pub b: Address,
    pub results: Address,
    pub origins: Origins,
    pub order: Order,
    pub a_length: u32,
    pub b_length: u32,
}

fn arguments(places: &mut Places, a: DeviceList, b: DeviceList) -> MergePathArguments {
    let sum = a.length.checked_add(b.length).filter(|&sum| sum <= u32::MAX - PARTITION);
    let tiles = sum.expect("lists that are shorter than 2^32 documents together").div_ceil(PARTITION);
    MergePathArguments {
        a: a.documents,
        b: b.documents,
        order: Order::place(places, tiles),
        results: places.take(4 * a.length.min(b.length) as usize),
        origins: Origins::NONE,
        a_length: a.length,
        b_length: b.length,
    }
}

/// The bytes of a room in which two lists are intersected.
pub fn room_bytes(a: DeviceList, b: DeviceList) -> usize {
    let mut places = Places::from(Address::NULL);
    arguments(&mut places, a, b);
    places.end()
}

/// Intersects two lists in a room of [`room_bytes`], which the stream uses until it was waited for. The first list is
/// the shorter one of `origins`.
pub fn gpu(
    gpu: &Gpu,
    stream: Stream,
    lists: [DeviceList; 2],
    origins: Origins,
    room: impl Into<Room>,
) -> Result<Found, GpuError> {
    let [a, b] = lists;
    let arguments = arguments(&mut Places::inside(room.into(), room_bytes(a, b)), a, b);
    let arguments = MergePathArguments { origins, ..arguments };
    let order = arguments.order;
    order.clear(gpu, stream)?;
    if order.tiles > 0 {
        gpu.launch(stream, &MERGE_PATH_INTERSECT, order.shape(SHARED), &arguments)?;
    }
    Ok(Found { documents: arguments.results, count: order.total })
}

/// Intersects two lists by merging them.
pub fn cpu(a: &[u32], b: &[u32]) -> Vec<u32> {
    let (mut i, mut j) = (0, 0);
    let mut results = Vec::new();
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            Ordering::Less => i += 1,
            Ordering::Greater => j += 1,
            Ordering::Equal => {
                results.push(a[i]);
                i += 1;
                j += 1;
            }
        }
    }
    results
}
