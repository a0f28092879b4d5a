//! `auto`: the worker that is predicted to finish first, given what waits for each.
//!
//! A thread that wants one answer soon compares two predicted moments: its own time on the CPU, longer if threads share
//! cores, and the time until the GPU has done everything that waits there and this plan. While the GPU is not open yet,
//! the CPU answers: nobody waits for a cold start.
//!
//! A thread with many queries left, or of an engine that more queries reach than it can answer, wants both processors
//! busy. It gives plans to the GPU, which answers most of them many times faster, until so much waits there that the
//! GPU will not run dry while this thread answers a plan itself.

use super::{Aim, Decision, View};
use crate::query::cost::{Features, Route};
use std::time::Duration;

/// Work that is to wait for the GPU before a thread with many queries answers one itself: two batches in flight and one
/// that waits, of up to 3.5 ms each, so that every batch is large (docs/scheduling.md has the measurement).
const RESERVE: Duration = Duration::from_millis(10);
/// The CPU takes a plan of time t only if more than [`RESERVE`] + `CPU_SHARE_FACTOR` · t of work waits for the GPU. So
/// it takes first the plans that cost it least, and longer ones the more the GPU falls behind.
const CPU_SHARE_FACTOR: u32 = 16;
/// A plan that takes the CPU no longer than this costs its thread about as much as making rows for a GPU and its
/// answer. An estimate from the time of a stream for each query; not measured separately.
const OFFLOADING: Duration = Duration::from_micros(2);

pub fn decide(features: &Features, view: &View<'_>) -> Decision {
    let on_cpu = view.costs.predict(features, Route::Cpu);
    let stays = !view.gpu.is_open
        || on_cpu <= OFFLOADING
        || match view.aim {
            Aim::Throughput => view.gpu.waiting >= RESERVE + CPU_SHARE_FACTOR * on_cpu,
            Aim::Latency if view.cpu.is_saturated() => view.gpu.waiting >= RESERVE + CPU_SHARE_FACTOR * on_cpu,
            Aim::Latency => {
                let on_gpu = view.gpu.time_of_single(view.costs, features);
                on_cpu.mul_f64(view.cpu.slowdown()) <= view.gpu.waiting + on_gpu
            }
        };
    if stays { Decision::Cpu } else { Decision::Gpu }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::plan::Plan;
    use crate::query::plan::tests::plan_of_lists;
    use crate::schedule::Policy;
    use crate::schedule::tests::{Row, check};

    /// An OR of lists with this many postings.
    fn or(postings: &[u32]) -> Plan {
        plan_of_lists(postings)
    }

    #[test]
    fn a_query_runs_where_it_is_predicted_to_finish_first() {
        use Aim::{Latency, Throughput};
        use Decision::{Cpu, Gpu};
        let (short, long) = (or(&[200, 300]), or(&[900_000, 2_000_000]));
        let row = |plan: &Plan, aim, (running, queued, is_open, waiting_us), expected| Row {
            plan: plan.clone(),
            aim,
            running,
            queued,
            is_open,
            waiting_us,
            expected,
        };
        let rows = [
            // An idle machine: short queries stay, long ones go.
            row(&short, Latency, (0, 0, true, 0), Cpu),
            row(&long, Latency, (0, 0, true, 0), Gpu),
            // The GPU is not open yet.
            row(&long, Latency, (0, 0, false, 0), Cpu),
            row(&long, Throughput, (0, 0, false, 0), Cpu),
            // So much waits for the GPU that the CPU is done sooner; unless many threads share its cores.
            row(&long, Latency, (0, 0, true, 60_000_000), Cpu),
            row(&short, Latency, (100_000, 0, true, 0), Gpu),
            // Others wait for a thread: the GPU is fed first, until enough waits there.
            row(&short, Latency, (0, 100_000, true, 0), Gpu),
            row(&short, Latency, (0, 100_000, true, 15_000), Cpu),
            // With many queries left, the GPU is fed first.
            row(&long, Throughput, (0, 0, true, 1_000), Gpu),
            row(&short, Throughput, (0, 0, true, 1_000), Gpu),
            row(&short, Throughput, (0, 0, true, 15_000), Cpu),
        ];
        check(Policy::Auto, &rows);
        check(
            Policy::Best,
            &[row(&short, Latency, (0, 0, false, 0), Cpu), row(&long, Latency, (0, 0, false, 1_000), Gpu)],
        );
    }
}
