//! What the five papers did, as they did it, beside the algorithms that answer by default.
//!
//! Griffin's, gpu-ir's and cooperative's GPU algorithms over plain sorted lists, which the papers' figures measure, and
//! whole queries answered with them step by step (`steps.rs`, `intersections.rs`, `step_upload.rs`).

pub mod accumulator_heap;
pub mod accumulators;
pub mod batched_intersection;
pub mod binary_intersection;
pub mod compaction;
pub(crate) mod intersections;
pub mod merge_path;
pub mod parallel_merge_find;
pub mod saat_variants;
pub mod selection;
pub(crate) mod skip_search;
pub(crate) mod step_kernels;
pub(crate) mod step_upload;
pub(crate) mod steps;
pub mod term_at_a_time;

use batched_intersection::{BatchedArguments, BatchedList, BatchedQuery};
use binary_intersection::BinaryArguments;
use lanner_gpu::kernel::{Module, kernels};
use merge_path::MergePathArguments;
use parallel_merge_find::MergeFindArguments;
use selection::{RadixArguments, SelectArguments, SelectionState, SortArguments, TreeArguments};

/// The kernels of `papers.cu`.
pub static MODULE: Module = Module { name: "papers", ptx: include_str!("../ptx/papers.ptx") };

kernels! {
    MODULE;
    [BatchedList: 16 bytes]
    [BatchedQuery: 16 bytes]
    [BatchedArguments: 72 bytes]
    [BinaryArguments: 88 bytes]
    [MergePathArguments: 80 bytes]
    [MergeFindArguments: 112 bytes]
    [SortArguments: 40 bytes]
    [TreeArguments: 64 bytes]
    [SelectionState: 32 bytes]
    [SelectArguments: 48 bytes]
    [RadixArguments: 72 bytes]
    /// Intersects two lists, in short partitions.
    MERGE_PATH_SHORT = merge_path_short: MergePathArguments;
    /// Intersects two lists, in long partitions.
    MERGE_PATH_LONG = merge_path_long: MergePathArguments;
    /// Searches a longer list for the documents of a shorter one.
    BINARY_INTERSECTION = binary_intersection: BinaryArguments;
    /// Finds the splitters of one level.
    PARALLEL_MERGE_FIND_SPLIT = parallel_merge_find_split: MergeFindArguments;
    /// Finds documents in the segments of the last level.
    PARALLEL_MERGE_FIND = parallel_merge_find: MergeFindArguments;
    /// Intersects a query, a thread block.
    BATCHED_INTERSECTION_PART = batched_intersection_part: BatchedArguments;
    /// Intersects a document, a thread.
    BATCHED_INTERSECTION_PARA = batched_intersection_para: BatchedArguments;
    /// Sorts keys in thread blocks.
    SELECTION_SORT = selection_sort: SortArguments;
    /// Makes a level of the tree.
    SELECTION_TREE_LEVEL = selection_tree_level: TreeArguments;
    /// Takes the best keys off the tree.
    SELECTION_TREE_EXTRACT = selection_tree_extract: TreeArguments;
    /// Finds the least and the greatest key.
    SELECTION_BUCKET_RANGE = selection_bucket_range: SelectArguments;
    /// Chooses a bucket of one width.
    SELECTION_BUCKET_ROUND = selection_bucket_round: SelectArguments;
    /// Chooses a digit.
    SELECTION_RADIX_ROUND = selection_radix_round: SelectArguments;
    /// Gathers the keys that are not below the chosen range.
    SELECTION_COLLECT = selection_collect: SelectArguments;
    /// Counts digits, tile by tile.
    SELECTION_RADIX_COUNT = selection_radix_count: RadixArguments;
    /// Adds up the counts.
    SELECTION_RADIX_SCAN = selection_radix_scan: RadixArguments;
    /// Moves keys to where their digits belong.
    SELECTION_RADIX_MOVE = selection_radix_move: RadixArguments;
}
