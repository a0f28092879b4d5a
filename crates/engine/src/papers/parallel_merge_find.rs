//! Intersection by Parallel Merge Find, recursively: splitters of one list cut both into segments.
//!
//! Parallel Merge Find finds for each document of the shorter list A where it would stand in the longer list B. Done
//! directly, each search goes over all of B. Instead a few documents of A at equal distances, the splitters, are found
//! first; they cut A and B into segments that belong together. Splitters of the segments are found each in its own
//! segment of B, and so on; the documents themselves are searched for in segments of the last level, which are short.
//! With `levels` levels over m documents each segment is cut into about m^(1 / (levels + 1)).
//!
//! Ding et al., Using Graphics Processors for High Performance IR Query Processing (sections 7.1 and 7.2); without any
//! level it is `binary_intersection`.

use super::binary_intersection::tiles_of;
use super::compaction::{DeviceList, Found, ORDER_SHARED, Order, Origins, Places, Room, THREADS};
use super::{PARALLEL_MERGE_FIND, PARALLEL_MERGE_FIND_SPLIT};
use lanner_gpu::device::{Address, Shape, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::Gpu;

/// The most levels that the paper tries.
pub const MOST_LEVELS: u32 = 4;

/// What both kernels take; `parallel_merge_find.cu` says what the fields mean.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct MergeFindArguments {
    pub shorter: Address,
    pub longer: Address,
    pub parents: Address,
    pub segments: Address,
    pub results: Address,
    pub origins: Origins,
    pub order: Order,
    pub shorter_length: u32,
    pub longer_length: u32,
    pub segment: u32,
    pub fan_out: u32,
    pub segment_count: u32,
    pub reserved: u32,
}

/// The least number that, raised to a power, is at least the length.
fn fan_out(length: u32, power: u32) -> u32 {
    let reaches = |&fan_out: &u64| fan_out.checked_pow(power).is_none_or(|product| product >= u64::from(length));
    (1..).find(reaches).unwrap_or(1) as u32
}

/// Documents of a segment of each level, from the top on.
fn segments(length: u32, levels: u32) -> Vec<u32> {
    let fan_out = u64::from(fan_out(length, levels + 1));
    (1..=levels).rev().map(|below| fan_out.pow(below).min(u64::from(u32::MAX)) as u32).collect()
}

/// The bytes of a room in which a shorter list is intersected, with so many levels.
pub fn room_bytes(shorter: DeviceList, levels: u32) -> usize {
    let mut places = Places::from(Address::NULL);
    Order::place(&mut places, tiles_of(shorter));
    places.take(4 * shorter.length as usize);
    for segment in segments(shorter.length, levels) {
        places.take(4 * (shorter.length.div_ceil(segment) as usize + 1));
    }
    places.end()
}

/// Intersects a shorter list with a longer one by 1 to [`MOST_LEVELS`] levels, in a room of [`room_bytes`], which the
/// stream uses until it was waited for.
pub fn gpu(
    gpu: &Gpu,
    stream: Stream,
    [shorter, longer]: [DeviceList; 2],
    levels: u32,
    origins: Origins,
    room: impl Into<Room>,
) -> Result<Found, GpuError> {
    let mut places = Places::inside(room.into(), room_bytes(shorter, levels));
    let order = Order::place(&mut places, tiles_of(shorter));
    let mut arguments = MergeFindArguments {
        shorter: shorter.documents,
        longer: longer.documents,
        parents: Address::NULL,
        segments: Address::NULL,
        results: places.take(4 * shorter.length as usize),
        origins,
        order,
        shorter_length: shorter.length,
        longer_length: longer.length,
        segment: 1,
        fan_out: fan_out(shorter.length, levels + 1),
        segment_count: 0,
        reserved: 0,
    };
    order.clear(gpu, stream)?;
    let found = Found { documents: arguments.results, count: order.total };
    if order.tiles == 0 {
        return Ok(found);
    }
    for segment in segments(shorter.length, levels) {
        let segment_count = shorter.length.div_ceil(segment);
        arguments.segment = segment;
        arguments.segment_count = segment_count;
        arguments.segments = places.take(4 * (segment_count as usize + 1));
        let shape = Shape { grid: (segment_count + 1).div_ceil(THREADS), block: THREADS, shared: 0 };
        gpu.launch(stream, &PARALLEL_MERGE_FIND_SPLIT, shape, &arguments)?;
        arguments.parents = arguments.segments;
    }
    gpu.launch(stream, &PARALLEL_MERGE_FIND, order.shape(ORDER_SHARED), &arguments)?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_cut_into_as_many_at_every_level() {
        for (length, levels, expected) in [
            (0, 2, vec![1, 1]),
            (1, 1, vec![1]),
            (100, 1, vec![10]),
            (101, 1, vec![11]),
            (1_000_000, 1, vec![1000]),
            (1_000_000, 2, vec![10_000, 100]),
            (16_777_216, 3, vec![262_144, 4096, 64]),
            (u32::MAX, 4, vec![85u32.pow(4), 85u32.pow(3), 85 * 85, 85]),
        ] {
            assert_eq!(segments(length, levels), expected, "{length} {levels}");
        }
    }
}
