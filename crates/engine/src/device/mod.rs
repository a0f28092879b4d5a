//! Plans on a device: rows that kernels read, batches of rows, resident data, and the session that runs batches.
//!
//! Follow a batch in this order: `plan_rows.rs`, `submission.rs`, `session.rs`, `queue.rs`, `slot.rs`, `batch.rs`,
//! `layout.rs`, then the kernel in `algorithms/scatter.cu` or `algorithms/conjunction.cu`. docs/gpu.md explains it.
//!
//! | file | what |
//! | --- | --- |
//! | `plan_rows.rs` | the rows of plans, made by the threads that plan |
//! | `submission.rs` | plans on their way to the device's thread, and their outcomes on the way back |
//! | `served.rs` | an index that the device serves |
//! | `session.rs` | an index on an open device; answers jobs in batches |
//! | `queue.rs` | jobs that wait, and the batches that they become |
//! | `slot.rs` | the buffers of one stream and the batch in flight there; `buffers.rs`: how they grow |
//! | `batch.rs` | a batch as rows, and how its queries are divided among thread blocks |
//! | `rows.rs` | one list as a row |
//! | `answers.rs` | what the device returned for a batch, and the answers made of it |
//! | `layout.rs` | where everything lies in the buffers of a batch, and its launches |
//! | `kernels.rs` | the kernels that answer queries, and the structs that they read; sources in `kernels/` |
//! | `part.cu` | the part of a query that a thread block answers |
//! | `residency/` | where lists lie: resident as a whole, in host memory, pieces of them in a cache on the device; filters |
//! | `upload.rs` | lists that are uploaded with a batch |
//! | `decode.rs` | kernels that only decode blocks, for tests and benchmarks |

pub(crate) mod answers;
pub(crate) mod batch;
pub(crate) mod buffers;
pub mod decode;
pub mod kernels;
pub(crate) mod layout;
mod plan_rows;
pub(crate) mod queue;
pub(crate) mod residency;
pub(crate) mod rows;
pub(crate) mod served;
pub(crate) mod session;
pub(crate) mod slot;
pub(crate) mod submission;
pub(crate) mod upload;

pub use queue::SmallBatches;

use crate::query::answer::Place;
use lanner_gpu::memory::Gpu;
use lanner_index::open::Index;
use residency::Residency;

/// A device and the index whose plans it answers.
pub(crate) struct Context<'a> {
    pub gpu: &'a Gpu,
    pub residency: &'a Residency,
    pub index: &'a Index,
    /// How the trace names the device.
    pub place: Place,
}
