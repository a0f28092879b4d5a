//! `auto`: the worker that is predicted to finish first, given what waits for each.
//!
//! A thread that wants one answer soon compares two predicted moments: its own time on the CPU, longer if threads share
//! cores or others may have to wait for this one, and the time until the GPU has done everything that waits there and
//! this plan, as far as that is predicted, and what it took beyond that lately. While the GPU is not open yet, the CPU
//! answers: nobody waits for a cold start.
//!
//! A thread with many queries left, or of an engine that more queries reach than it can answer, wants both processors
//! busy. It gives plans to the GPU, which answers most of them many times faster, until so much waits there that the
//! GPU will not run dry while this thread answers a plan itself.

use super::{Aim, CPU_SHARE_FACTOR, Decision, View};
use crate::device::queue::LARGEST_BATCH;
use crate::executors::GpuLoad;
use crate::query::cost::{Features, Route};
use std::time::Duration;

/// Work that is to wait for the GPU before a thread with many queries answers one itself: two batches in flight and one
/// that waits, so that every batch is large (docs/scheduling.md has the measurement). A batch has up to 3.5 ms of
/// predicted time, or the most plans that it may have; ANDs are so short that a batch of them is full long before.
const RESERVE: Duration = Duration::from_millis(10);
const RESERVE_JOBS: usize = 3 * LARGEST_BATCH;
/// Lists are uploaded only if the plan is predicted to be answered this many times sooner than on the CPU, and in
/// throughput only if copying takes the cores this many times less: copying disturbs all other queries, and its time is
/// predicted less well. Estimates; a factor of 1 made the 99th percentile 1.5 times that of the CPU alone.
const SOONER: f64 = 1.5;
const CHEAPER: u32 = 2;
/// A plan that takes the CPU no longer than this costs its thread about as much as making rows for a GPU and its
/// answer. An estimate from the time of a stream for each query; not measured separately.
const OFFLOADING: Duration = Duration::from_micros(2);
/// No GPU is predicted to answer a single query sooner: the fastest cells of an H200 have a median of 25 us. Up to this, the
/// model of the GPU is not read, because its memory is not in the caches of an idle core.
const SOONEST: Duration = Duration::from_micros(20);

pub fn decide(features: &Features, view: &View<'_>) -> Decision {
    let on_cpu = view.on_cpu(features);
    let stays = !view.gpu.is_open
        || on_cpu <= OFFLOADING
        || match view.aim {
            Aim::Throughput => helps_throughput(on_cpu, features, view),
            Aim::Latency if view.cpu.is_saturated() => helps_throughput(on_cpu, features, view),
            // Copying lists takes cores as well, so that a busy CPU is no reason to do it.
            Aim::Latency if view.gpu.uploads_lists => {
                !view.cpu.may_copy() || on_cpu <= view.gpu_finishes_after(features).mul_f64(SOONER)
            }
            Aim::Latency => {
                let expected = on_cpu.mul_f64(view.cpu.slowdown());
                expected <= SOONEST || expected <= view.gpu_finishes_after(features)
            }
        };
    if stays { Decision::Cpu } else { Decision::Gpu }
}

/// Whether more queries are answered in the same time if this thread answers the plan itself.
fn helps_throughput(on_cpu: Duration, features: &Features, view: &View<'_>) -> bool {
    (view.gpu.uploads_lists && is_answered_while_copying(on_cpu, features, view))
        || view.gpu.waiting >= reserve(&view.gpu) + CPU_SHARE_FACTOR * on_cpu
}

/// Whether the threads of the CPU answer such plans in the time that they would take to copy the lists for the GPU: all
/// of them copy the lists that a batch uploads.
fn is_answered_while_copying(on_cpu: Duration, features: &Features, view: &View<'_>) -> bool {
    on_cpu <= CHEAPER * view.cpu.threads as u32 * view.costs.predict(features, Route::GpuHost)
}

/// The time of what is to wait for the GPU so that it does not run dry.
fn reserve(gpu: &GpuLoad) -> Duration {
    let of_jobs = gpu.waiting.mul_f64(RESERVE_JOBS as f64 / gpu.waiting_jobs.max(1) as f64);
    RESERVE.min(of_jobs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::cost::Costs;
    use crate::query::plan::Plan;
    use crate::query::plan::tests::plan_of_lists;
    use crate::schedule::tests::{Row, check};
    use crate::schedule::{CpuLoad, Policy};

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
            waiting_jobs: 0,
            excess_us: 0,
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
            // Others may have to wait for a thread: short queries go too, if all of the four are busy or needed.
            row(&short, Latency, (1, 0, true, 0), Cpu),
            row(&short, Latency, (4, 0, true, 0), Gpu),
            row(&short, Latency, (0, 4, true, 0), Gpu),
            // Others wait for a thread: the GPU is fed first, until enough waits there.
            row(&short, Latency, (0, 100_000, true, 0), Gpu),
            row(&short, Latency, (0, 100_000, true, 15_000), Cpu),
            // With many queries left, the GPU is fed first.
            row(&long, Throughput, (0, 0, true, 1_000), Gpu),
            row(&short, Throughput, (0, 0, true, 1_000), Gpu),
            row(&short, Throughput, (0, 0, true, 15_000), Cpu),
        ];
        check(Policy::Auto, &rows);
        // While something waits for the GPU, it is expected to exceed its predicted time as before.
        let taking = |excess_us: u64, waiting_jobs: usize, expected| Row {
            waiting_jobs,
            excess_us,
            ..row(&long, Latency, (0, 0, true, 0), expected)
        };
        check(Policy::Auto, &[taking(60_000_000, 1, Cpu), taking(60_000_000, 0, Gpu), taking(100, 1, Gpu)]);
        // Enough waits if there are three full batches, however short their plans are.
        let many = |waiting_jobs: usize, expected| Row {
            waiting_jobs,
            ..row(&short, Throughput, (0, 0, true, 5_000), expected)
        };
        check(Policy::Auto, &[many(RESERVE_JOBS, Gpu), many(2 * RESERVE_JOBS, Cpu)]);
        check(
            Policy::Best,
            &[row(&short, Latency, (0, 0, false, 0), Cpu), row(&long, Latency, (0, 0, false, 1_000), Gpu)],
        );
    }

    #[test]
    fn what_the_cpu_answers_sooner_than_any_gpu_stays_whatever_the_model_of_the_gpu_says() {
        let plan = or(&[2_000, 3_000]);
        let features = Features::of(&plan);
        let costs = Costs::default();
        let single = costs.modelled(&features, Route::GpuSingle);
        (0..1_000).for_each(|_| costs.observe(single, Route::GpuSingle, Duration::from_micros(1)));
        let on_cpu = costs.predict(&features, Route::Cpu);
        assert!(costs.predict(&features, Route::GpuSingle) < on_cpu && on_cpu < SOONEST, "{on_cpu:?}");
        let (waiting, excess) = (Duration::ZERO, Duration::ZERO);
        let gpu = GpuLoad { is_open: true, uploads_lists: false, waiting, waiting_jobs: 0, excess };
        let decide = |running: usize| {
            let cpu = CpuLoad { cores: 4, threads: 4, running, queued: 0 };
            decide(&features, &View { costs: &costs, cpu, gpu, missing: 0.0, aim: Aim::Latency })
        };
        assert_eq!([0, 4].map(decide), [Decision::Cpu, Decision::Gpu], "with all threads busy, its time is worth more");
    }

    #[test]
    fn lists_are_not_uploaded_if_the_threads_answer_the_plan_sooner_than_they_copy_them() {
        // The bytes of the lists decide how long copying takes; those of a plan in tests have next to none.
        let plan = or(&[900_000, 2_000_000]);
        let features = Features { bytes: 1e6, ..Features::of(&plan) };
        let costs = Costs::default();
        let (waiting, excess) = (Duration::ZERO, Duration::ZERO);
        let gpu = GpuLoad { is_open: true, uploads_lists: true, waiting, waiting_jobs: 0, excess };
        let decide = |bytes: f64, threads: usize| {
            let cpu = CpuLoad { cores: threads, threads, running: 0, queued: 0 };
            let view = View { costs: &costs, cpu, gpu, missing: 1.0, aim: Aim::Throughput };
            decide(&Features { bytes, ..features }, &view)
        };
        let one_beside = |running: usize| {
            let cpu = CpuLoad { cores: 8, threads: 8, running, queued: 0 };
            let view = View { costs: &costs, cpu, gpu, missing: 1.0, aim: Aim::Latency };
            super::decide(&Features { bytes: 1e5, ..features }, &view)
        };
        assert_eq!([0, 2, 3].map(one_beside), [Decision::Gpu, Decision::Gpu, Decision::Cpu], "a few may run meanwhile");
        let on_cpu = costs.predict(&features, Route::Cpu);
        assert!(on_cpu > Duration::from_millis(2), "{on_cpu:?}");
        assert_eq!(decide(1e5, 4), Decision::Gpu);
        assert_eq!(decide(1e8, 4), Decision::Cpu);
        assert_eq!([4, 256].map(|threads| decide(1e6, threads)), [Decision::Gpu, Decision::Cpu]);
    }
}
