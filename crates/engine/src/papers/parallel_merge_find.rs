//! Intersection by Parallel Merge Find, recursively: splitters of one list cut both into segments.
//!
//! Parallel Merge Find finds the position that each document of the shorter list A has, or would have, in the longer
//! list B. A direct search goes over all of B. Instead, a few equidistant documents of A, the splitters, are found
//! first; they cut A and B into corresponding segments. Splitters of the segments are then found, each in its segment
//! of B, and so on; the documents themselves are searched for in segments of the last level, which are short. With
//! `levels` levels over m documents, each segment is cut into about m^(1 / (levels + 1)).
//!
//! Ding et al., Using Graphics Processors for High Performance IR Query Processing (sections 7.1 and 7.2); without any
//! level it is `binary_intersection`.

use super::binary_intersection::lay_out;
use super::compaction::{DeviceList, Found, LOOKBACK_SHARED, Lookback, Operands, Origins, ScratchLayout, THREADS};
use lanner_gpu::device::{Address, Shape, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::Gpu;

/// The most levels that the paper tries.
pub const MOST_LEVELS: u32 = 4;

lanner_gpu::shared! {
    mod header = "src/ptx/parallel_merge_find.h", includes "ptx/compaction.h", in papers;

    /// The argument of both kernels.
    #[derive(Default)]
    struct MergeFindArguments {
        /// The shorter list.
        shorter: Address to "const unsigned",
        /// The longer list.
        longer: Address to "const unsigned",
        /// Where the segments of the level above begin in the longer list, and the end of the last; null at the top
        /// level.
        parents: Address to "const unsigned",
        /// Space for the same of this level; unused by the last launch.
        segments: Address to "unsigned",
        /// Space for as many documents as the shorter list has.
        results: Address to "unsigned",
        /// Positions in both lists.
        origins: Origins,
        /// The state that the tiles share.
        lookback: Lookback,
        /// Documents of the shorter list.
        shorter_length: u32,
        /// Documents of the longer list.
        longer_length: u32,
        /// Documents of the shorter list in a segment of this level; 1 for the last launch.
        segment: u32,
        /// Segments of this level in one of the level above.
        fan_out: u32,
        /// Segments of this level.
        segment_count: u32,
        /// Unused.
        reserved: u32,
    }
}

lanner_gpu::kernels! {
    super::MODULE;
    /// Finds the splitters of one level.
    PARALLEL_MERGE_FIND_SPLIT = "parallel_merge_find_split": MergeFindArguments;
    /// Finds documents in the segments of the last level.
    PARALLEL_MERGE_FIND = "parallel_merge_find": MergeFindArguments;
}

/// The least number whose power is at least the length.
fn fan_out(length: u32, power: u32) -> u32 {
    let reaches = |&fan_out: &u64| fan_out.checked_pow(power).is_none_or(|product| product >= u64::from(length));
    (1..).find(reaches).unwrap_or(1) as u32
}

/// Documents of a segment of each level, from the top on.
fn segments(length: u32, levels: u32) -> Vec<u32> {
    let fan_out = u64::from(fan_out(length, levels + 1));
    (1..=levels).rev().map(|below| fan_out.pow(below).min(u64::from(u32::MAX)) as u32).collect()
}

/// The bytes of scratch that [`gpu`] needs for a shorter list and a number of levels.
pub fn scratch_bytes(shorter: DeviceList, levels: u32) -> usize {
    ScratchLayout::bytes_of(|layout| {
        lay_out(layout, shorter);
        for segment in segments(shorter.length, levels) {
            layout.take(4 * (shorter.length.div_ceil(segment) as usize + 1));
        }
    })
}

/// Intersects a shorter list with a longer one by 1 to [`MOST_LEVELS`] levels.
pub fn gpu(gpu: &Gpu, stream: Stream, operands: Operands, levels: u32) -> Result<Found, GpuError> {
    let Operands { lists: [shorter, longer], origins, scratch } = operands;
    let mut layout = ScratchLayout::inside(scratch, scratch_bytes(shorter, levels));
    let (lookback, results) = lay_out(&mut layout, shorter);
    let mut arguments = MergeFindArguments {
        shorter: shorter.documents,
        longer: longer.documents,
        results,
        origins,
        lookback,
        shorter_length: shorter.length,
        longer_length: longer.length,
        segment: 1,
        fan_out: fan_out(shorter.length, levels + 1),
        ..MergeFindArguments::default()
    };
    lookback.clear(gpu, stream)?;
    let found = Found { documents: results, count: lookback.total };
    if lookback.tiles == 0 {
        return Ok(found);
    }
    for segment in segments(shorter.length, levels) {
        let segment_count = shorter.length.div_ceil(segment);
        arguments.segment = segment;
        arguments.segment_count = segment_count;
        arguments.segments = layout.take(4 * (segment_count as usize + 1));
        let shape = Shape { grid: (segment_count + 1).div_ceil(THREADS), block: THREADS, shared: 0 };
        gpu.launch(stream, &PARALLEL_MERGE_FIND_SPLIT, shape, &arguments)?;
        arguments.parents = arguments.segments;
    }
    gpu.launch(stream, &PARALLEL_MERGE_FIND, lookback.shape(LOOKBACK_SHARED), &arguments)?;
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
