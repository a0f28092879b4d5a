//! What the five papers did, as they did it, beside the algorithms that answer by default.
//!
//! Griffin's, gpu-ir's and cooperative's GPU algorithms over plain sorted lists, which the papers' figures measure, are one
//! file each, with the `.cu` file of its kernels beside it. Whole queries are answered with them step by step: `steps.rs`,
//! `intersections.rs` and `sending.rs`, with the kernels of `step_kernels.rs`. `accumulators.rs` and `accumulator_heap.rs`
//! are the CPU's, for the ablations of score-at-a-time.

pub mod accumulator_heap;
pub mod accumulators;
pub mod batched_intersection;
pub mod binary_intersection;
pub mod compaction;
pub(crate) mod intersections;
pub mod merge_path;
pub mod parallel_merge_find;
pub mod selection;
pub(crate) mod sending;
pub(crate) mod step_kernels;
pub(crate) mod steps;
pub mod term_at_a_time;

use lanner_gpu::kernel::Module;

/// The kernels of `papers.cu`, over plain lists and keys.
pub(crate) static MODULE: Module = Module { name: "papers", ptx: include_str!("../ptx/papers.ptx") };
