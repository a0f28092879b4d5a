//! Executors: they answer batches of plans, on the CPU or on a device. `inbox.rs` is how jobs reach a worker's thread.

mod counters;
mod cpu;
mod device_memory;
mod gpu;
mod gpu_options;
mod inbox;
mod open_device;
mod owner;
mod threads;

pub use crate::device::SmallBatches;
pub use crate::device::residency::ResidencyReport;
pub use crate::device::residency::cache::Keep;
pub use crate::device::residency::piece::{OfPieces, Piece, bytes_of_pieces};
pub use crate::device::residency::replay::Replay;
pub use crate::device::residency::report::CacheReport;
pub use counters::{Counters, GpuLoad};
pub use cpu::Cpu;
pub use gpu::GpuWorker;
pub use gpu_options::{GpuOptions, Open, Report};
pub(crate) use threads::{map_in_threads, panic_text};

use crate::query::answer::{Answer, Scored};
use crate::query::plan::Plan;
use lanner_index::format::IndexError;

/// Answers batches of plans.
pub trait Executor {
    /// Answers every plan: `answers[i]` belongs to `plans[i]`. It fails only if the index cannot be read.
    fn run(&self, plans: &[Plan]) -> Result<Vec<Answer<Scored>>, IndexError>;
}
