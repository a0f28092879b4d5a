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
//! Partitions are long, so that a block has much to do for each search along a diagonal and each count that it waits for. Of
//! short lists there would be too few of them to occupy a device, and those few would take long: they are cut shorter.
//!
//! Liu et al., Griffin (section 3.1.2), after Green, McColl and Bader, GPU Merge Path (2012).

use super::compaction::{DeviceList, Found, Order, Origins, Places, Room, THREADS};
use super::{MERGE_PATH_LONG, MERGE_PATH_SHORT};
use lanner_gpu::device::{Address, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::kernel::TypedKernel;
use lanner_gpu::memory::Gpu;
use std::cmp::Ordering;

/// Lists with so many numbers together are cut into long partitions. On an H200 short ones take 0.85 of their time with
/// 130,000 numbers, 0.90 with 360,000, and 1.45 with 1.2 million.
const LONG_FROM: u32 = 500_000;

/// How long partitions are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partitions {
    /// 7 steps a thread.
    Short,
    /// 19 steps a thread.
    Long,
}

impl Partitions {
    /// All there are.
    pub const ALL: [Partitions; 2] = [Partitions::Short, Partitions::Long];

    /// Those that are faster for two lists.
    pub fn of(lists: [DeviceList; 2]) -> Partitions {
        let [a, b] = lists.map(|list| list.length);
        if a.saturating_add(b) < LONG_FROM { Partitions::Short } else { Partitions::Long }
    }

    /// Numbers of both lists in a partition.
    fn numbers(self) -> u32 {
        match self {
            Partitions::Short => 7 * THREADS,
            Partitions::Long => 19 * THREADS,
        }
    }

    /// What intersects them, and the bytes of shared memory that it takes.
    fn kernel(self) -> (&'static TypedKernel<MergePathArguments>, usize) {
        match self {
            Partitions::Short => (&MERGE_PATH_SHORT, 7220),
            Partitions::Long => (&MERGE_PATH_LONG, 19_508),
        }
    }
}

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

fn arguments(places: &mut Places, lists: [DeviceList; 2], partitions: Partitions) -> MergePathArguments {
    let ([a, b], numbers) = (lists, partitions.numbers());
    let sum = a.length.checked_add(b.length).filter(|&sum| sum <= u32::MAX - numbers);
    let tiles = sum.expect("lists that are shorter than 2^32 documents together").div_ceil(numbers);
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
pub fn room_bytes(lists: [DeviceList; 2], partitions: Partitions) -> usize {
    let mut places = Places::from(Address::NULL);
    arguments(&mut places, lists, partitions);
    places.end()
}

/// Intersects two lists in a room of [`room_bytes`], which the stream uses until it was waited for. The first list is
/// the shorter one of `origins`.
pub fn gpu(
    gpu: &Gpu,
    stream: Stream,
    lists: [DeviceList; 2],
    partitions: Partitions,
    origins: Origins,
    room: impl Into<Room>,
) -> Result<Found, GpuError> {
    let mut places = Places::inside(room.into(), room_bytes(lists, partitions));
    let arguments = MergePathArguments { origins, ..arguments(&mut places, lists, partitions) };
    let order = arguments.order;
    order.clear(gpu, stream)?;
    if order.tiles > 0 {
        let (kernel, shared) = partitions.kernel();
        gpu.launch(stream, kernel, order.shape(shared), &arguments)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut_into_long_partitions() {
        let of = |a: u32, b: u32| Partitions::of([a, b].map(|length| DeviceList { documents: Address::NULL, length }));
        let cases = [(0, 0), (100_000, 399_999), (100_000, 400_000), (1, 499_999), (u32::MAX, u32::MAX)];
        use Partitions::{Long, Short};
        assert_eq!(cases.map(|(a, b)| of(a, b)), [Short, Short, Long, Long, Long]);
    }
}
