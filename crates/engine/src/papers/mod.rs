//! The algorithms of earlier papers, as published, to compare with those that answer by default.
//!
//! | short name | paper |
//! | --- | --- |
//! | griffin | Liu et al., Griffin |
//! | gpu-ir | Ding et al., Using Graphics Processors for High Performance IR Query Processing |
//! | cooperative | Wu et al., Efficient Lists Intersection by CPU-GPU Cooperative Computing |
//! | saat | Trotman and Crane, Micro and Macro Optimization of SaaT Search |
//!
//! GPU algorithms over plain sorted lists, which the figures of the papers measure, are one file each, with the kernels
//! in the `.cu` file beside it: `merge_path.rs`, `binary_intersection.rs`, `parallel_merge_find.rs`,
//! `batched_intersection.rs` and `selection.rs`, over `compaction.rs`.
//!
//! Whole queries run step by step: `steps.rs` runs a plan, `term_at_a_time.rs`, `intersections.rs` and `skip_search.rs`
//! its ANDs, `accumulators.rs` its ORs; `step_upload.rs` uploads lists, and `step_kernels.rs` declares the kernels.
//!
//! `saat_variants.rs`, `accumulator_pages.rs` and `accumulator_heap.rs` are the ablations of score-at-a-time, on the
//! CPU.

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
