//! What the five papers did, as they did it, beside the algorithms that answer by default.
//!
//! Griffin's, gpu-ir's and cooperative's GPU algorithms over plain sorted lists, which the papers' figures measure, are one
//! file each, with the kernels in the `.cu` file beside it. Whole queries are answered with them step by step: `steps.rs`,
//! `intersections.rs`, `skip_search.rs`, `accumulators.rs` and `step_upload.rs`, with the kernels of `step_kernels.rs`. `saat_variants.rs`,
//! `accumulator_pages.rs` and `accumulator_heap.rs` are the ablations of score-at-a-time, on the CPU.

pub mod accumulator_heap;
pub mod accumulator_pages;
pub(crate) mod accumulators;
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

use lanner_gpu::kernel::Module;

/// The kernels of `papers.cu`, over plain lists and keys.
pub(crate) static MODULE: Module = Module { name: "papers", ptx: include_str!("../ptx/papers.ptx") };
