//! Intersection of two lists of about the same length by merging them: GPU MergePath.
//!
//! Merging A and B is a path through a grid of |A| x |B| cells: a step right for a number of A, a step down for one of
//! B. The cell where the path crosses a diagonal of the grid is found by a search along that diagonal alone, for all
//! diagonals in parallel. Equidistant diagonals cut the path into partitions with equally many numbers. A thread block
//! loads a partition into shared memory and divides it again among its threads, each of which merges its share as a CPU
//! would. Of two equal numbers, that of A comes first and that of B is the next step. The match is found at the step of
//! B, so no partition has to look into the next.
//!
//! Where A has few numbers in a partition, threads search for them among those of B in shared memory instead.
//!
//! Partitions are long, so that a thread block has much to do for each search along a diagonal and each look-back.
//! Short lists would give too few long partitions to occupy a device, so theirs are shorter.
//!
//! [`gpu`] launches one thread block per partition. `intersections.rs` calls it for the ANDs of whole queries, where
//! `term_at_a_time.rs` chooses it; the kernels are in `merge_path.cu`.
//!
//! Liu et al., Griffin (section 3.1.2), after Green, McColl and Bader, GPU Merge Path (2012).

use super::compaction::{DeviceList, Found, Lookback, Operands, Origins, ScratchLayout, THREADS};
use lanner_gpu::device::{Address, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::kernel::TypedKernel;
use lanner_gpu::memory::Gpu;
use std::cmp::Ordering;

lanner_gpu::shared! {
    mod header = "src/ptx/merge_path.h", includes "ptx/compaction.h", in papers;

    /// Steps of a thread in a short partition. Odd, so that the threads of a warp start in different banks.
    const SHORT_STEPS: u32 = 7;
    /// Steps of a thread in a long partition.
    const LONG_STEPS: u32 = 19;
    /// Bytes of shared memory for short partitions.
    const SHORT_SHARED: usize = 7220;
    /// Bytes of shared memory for long partitions.
    const LONG_SHARED: usize = 19508;

    /// The argument of both kernels.
    struct MergePathArguments {
        /// The list A.
        a: Address to "const unsigned",
        /// The list B.
        b: Address to "const unsigned",
        /// Space for as many documents as the shorter list has.
        results: Address to "unsigned",
        /// Positions in A, as the shorter list, and in B.
        origins: Origins,
        /// The state that the tiles share; a tile is a partition.
        lookback: Lookback,
        /// Numbers of A.
        a_length: u32,
        /// Numbers of B.
        b_length: u32,
    }
}

lanner_gpu::kernels! {
    super::MODULE;
    /// Intersects two lists in short partitions.
    MERGE_PATH_SHORT = "merge_path_short": MergePathArguments;
    /// Intersects two lists in long partitions.
    MERGE_PATH_LONG = "merge_path_long": MergePathArguments;
}

/// Lists with at least this many numbers together are cut into long partitions. On an H200, short partitions take 0.85
/// of their time with 130,000 numbers, 0.90 with 360,000, and 1.45 with 1.2 million.
const LONG_FROM: u32 = 500_000;

/// How long partitions are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partitions {
    /// 7 steps per thread.
    Short,
    /// 19 steps per thread.
    Long,
}

impl Partitions {
    /// Both.
    pub const ALL: [Partitions; 2] = [Partitions::Short, Partitions::Long];

    /// The faster ones for two lists.
    pub fn of(lists: [DeviceList; 2]) -> Partitions {
        let [a, b] = lists.map(|list| list.length);
        if a.saturating_add(b) < LONG_FROM { Partitions::Short } else { Partitions::Long }
    }

    /// Numbers of both lists in a partition.
    fn numbers(self) -> u32 {
        match self {
            Partitions::Short => SHORT_STEPS * THREADS,
            Partitions::Long => LONG_STEPS * THREADS,
        }
    }

    /// The kernel, and the bytes of shared memory that it needs.
    fn kernel(self) -> (&'static TypedKernel<MergePathArguments>, usize) {
        match self {
            Partitions::Short => (&MERGE_PATH_SHORT, SHORT_SHARED),
            Partitions::Long => (&MERGE_PATH_LONG, LONG_SHARED),
        }
    }
}

fn arguments(layout: &mut ScratchLayout, lists: [DeviceList; 2], partitions: Partitions) -> MergePathArguments {
    let ([a, b], numbers) = (lists, partitions.numbers());
    let sum = a.length.checked_add(b.length).filter(|&sum| sum <= u32::MAX - numbers);
    let tiles = sum.expect("lists with fewer than 2^32 documents together").div_ceil(numbers);
    let (lookback, results) = Lookback::with_results(layout, tiles, a.length.min(b.length));
    MergePathArguments {
        a: a.documents,
        b: b.documents,
        lookback,
        results,
        origins: Origins::NONE,
        a_length: a.length,
        b_length: b.length,
    }
}

/// The bytes of scratch that [`gpu`] needs for two lists.
pub fn scratch_bytes(lists: [DeviceList; 2], partitions: Partitions) -> usize {
    ScratchLayout::bytes_of(|layout| arguments(layout, lists, partitions))
}

/// Intersects two lists of any lengths.
pub fn gpu(gpu: &Gpu, stream: Stream, operands: Operands, partitions: Partitions) -> Result<Found, GpuError> {
    let Operands { lists, origins, scratch } = operands;
    let mut layout = ScratchLayout::inside(scratch, scratch_bytes(lists, partitions));
    let arguments = MergePathArguments { origins, ..arguments(&mut layout, lists, partitions) };
    let lookback = arguments.lookback;
    lookback.clear(gpu, stream)?;
    if lookback.tiles > 0 {
        let (kernel, shared) = partitions.kernel();
        gpu.launch(stream, kernel, lookback.shape(shared), &arguments)?;
    }
    Ok(Found { documents: arguments.results, count: lookback.total })
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
