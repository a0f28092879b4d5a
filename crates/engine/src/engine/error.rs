//! Why a query was not answered: part of the public interface.

use crate::query::planner::PlanError;
use lanner_index::format::IndexError;
use std::time::Duration;

/// Why a query was not answered.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The query cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A query of a batch cannot be planned.
    #[error("query {number}: {error}")]
    Query {
        /// Which query, counting from 1.
        number: usize,
        /// Why.
        error: PlanError,
    },
    /// The index cannot be read.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The engine has accepted as many queries as it may.
    #[error("the engine has {limit} queries to answer and accepts no more; ask again later, or raise the limit")]
    Busy {
        /// The most queries that it accepts.
        limit: usize,
    },
    /// The deadline of the query passed.
    #[error("no answer within {} ms; allow a longer time, or partial answers", deadline.as_millis())]
    Deadline {
        /// The time that the query was allowed.
        deadline: Duration,
    },
    /// The system starts no thread that could answer submitted queries.
    #[error("no thread can be started for submitted queries; allow more threads, or search on the calling thread")]
    NoThread,
    /// The thread that answered the query panicked. Others go on.
    #[error("a thread panicked while it answered the query: {reason}; please report this with the query and the index")]
    Panicked {
        /// The message of the panic.
        reason: String,
    },
}
