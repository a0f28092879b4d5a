//! The cost of plans: the only place that predicts time or work. Each constant names the measurement behind it.
//!
//! Two kinds of predictions:
//!
//! - `coarse.rs`: formulas that order plans, split them among threads and divide thread blocks. A factor of two matters
//!   little, and they need no measurement on this machine.
//! - [`Costs`]: the time of a plan on each [`Route`], to choose between processors. [`Features`] describe a plan,
//!   [`Model`]s turn them into a time, and a correction for each route and operation follows the times observed.
//!   `lanner calibrate` fits the models ([`Model::fit`]); without it there are default models, which are simple
//!   formulas.

mod coarse;
mod correction;
mod costs;
mod features;
mod fit;
mod model;
mod quality;
mod stored;
mod traffic;

pub use coarse::{cpu_time, device_stage_work};
pub use costs::{Costs, Modelled, Route, Together};
pub use features::Features;
pub use fit::Sample;
pub use model::Model;
pub use quality::{Metric, mean_relative_error, r_squared};
pub use stored::{CostsError, FORMAT};
pub use traffic::{PlanTraffic, Traffic};

use std::time::Duration;

/// A single query predicted to take at least this long is split among the threads of the CPU. Starting and joining a
/// thread takes 34 to 50 us (median of 2,000 scopes of 1, 3 and 15 threads on a busy machine with two cores; measured
/// for threads started for the query, as `Cpu::run` does; the engine's own threads are already running).
pub const SPLIT_FROM: Duration = Duration::from_micros(400);

/// A device answers plans of up to this many launches sooner as single queries than as a batch: eight ORs take 161
/// instead of 213 us on an H200, sixteen the same either way (docs/decisions/0015-graphs-and-plans-apart.md).
pub const FEW_LAUNCHES: usize = 12;
/// With up to this many plans, the overhead of starting a batch on a device matters (the same decision).
pub const SMALL_BATCH: usize = 64;
