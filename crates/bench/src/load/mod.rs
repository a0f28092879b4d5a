//! A load on an engine: queries that arrive while others are answered.
//!
//! An *open loop* ([`OpenLoop`]) sends each query at a moment that was drawn before the run ([`arrivals`]), whether or
//! not earlier ones are answered, as independent users do. A *closed loop* ([`ClosedLoop`]) has a fixed number of
//! clients that ask again once they are answered, and so measures how much the engine can do. A *stream*
//! ([`StreamLoad`]) is asked by one caller, which never waits.
//!
//! A load generator that waits for an answer before it sends the next query hides the delays that it is to measure:
//! while the engine is stuck, nothing is sent, and the queries that would have waited are never counted (Tene's
//! *coordinated omission*). Here nothing waits for answers. The delay of a query counts from its scheduled arrival, so
//! a sender that is late itself makes delays longer, never shorter, and [`Load::lateness`] says by how much. The moment
//! of an answer is recorded by the thread of the engine that delivers it, in a waker; senders take and check answers
//! while they have nothing to send.
//!
//! Every answer is checked: [`Load::check`] fails if one differs from that of the CPU, or is missing.

mod answers;
mod arrivals;
mod closed_loop;
mod intervals;
mod open_loop;
mod outcomes;
mod pass;
mod stream_load;

pub use answers::{QuerySet, Questions};
pub use arrivals::{Phase, poisson, replay};
pub use closed_loop::ClosedLoop;
pub use intervals::{Interval, intervals, recovery};
pub use open_loop::{OpenLoop, Way};
pub use outcomes::{Load, with_delays};
pub use pass::Pass;
pub use stream_load::{RunLength, StreamLoad};

use std::time::Instant;

/// The time since a moment.
fn nanoseconds(since: Instant) -> u64 {
    since.elapsed().as_nanos() as u64
}
