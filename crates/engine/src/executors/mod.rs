//! Executors: what answers a batch of plans.

mod batch;
mod cpu;
mod gpu;
mod intersections;
mod layout;
mod parcel;
mod resident;
mod rows;
mod sending;
mod session;
mod steps;
mod threads;

pub use cpu::Cpu;
pub use gpu::{Counters, GpuExecutor, Open, Report};
pub use session::SmallBatches;
pub(crate) use threads::map_in_threads;

use crate::answer::Answer;
use crate::plan::Plan;
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
