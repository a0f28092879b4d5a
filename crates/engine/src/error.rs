//! All errors of the library but those of [`eval`](crate::eval).

pub use crate::engine::SearchError;
pub use crate::query::planner::PlanError;
pub use crate::query::{QueryError, UnknownName};
pub use lanner_gpu::error::GpuError;
pub use lanner_index::build::BuildError;
pub use lanner_index::format::IndexError;
