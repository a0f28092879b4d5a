//! Executors: what answers a batch of plans.

mod cpu;
mod gpu;
mod threads;

pub use crate::device::SmallBatches;
pub use cpu::Cpu;
pub use gpu::{Counters, GpuExecutor, Open, Report};
pub(crate) use threads::map_in_threads;

use crate::query::answer::Answer;
use crate::query::plan::Plan;
use lanner_index::format::IndexError;
use std::time::Duration;

/// Answers batches of plans.
pub trait Executor {
    /// Its name in traces and commands.
    fn name(&self) -> &str;

    /// How long a plan would take by itself; `None` where it cannot be answered here.
    fn estimate(&self, plan: &Plan) -> Option<Duration>;

    /// Answers every plan, in their order.
    fn run(&self, plans: &[Plan]) -> Result<Vec<Answer>, ExecutorError>;
}

/// Why a batch was not answered.
#[derive(Debug, thiserror::Error)]
pub enum ExecutorError {
    /// The index cannot be read.
    #[error(transparent)]
    Index(#[from] IndexError),
}
